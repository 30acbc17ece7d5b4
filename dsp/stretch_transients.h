/// Private to dsp/stretch.c: attacks of a signal, and the time map that moves them as they are.
#ifndef WT_STRETCH_TRANSIENTS_H
#define WT_STRETCH_TRANSIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/status.h>

typedef struct wt__transient {
    int64_t in, out; ///< where it is, where it belongs
    int64_t half;    ///< the output within so many samples of it runs at rate 1
} wt__transient;

typedef struct wt__transients {
    int64_t n_samples, n_out;
    int n_fft;
    double rate;
    int64_t count, most;
    wt__transient *at; ///< [most]
} wt__transients;

/// A place of the output in the input.
typedef struct wt__stretch_place {
    int64_t centre;      ///< in the input
    int64_t first, last; ///< of the input between the attacks' surroundings; held: both the centre
    int64_t held;        ///< the attack that it goes with, -1 = none
} wt__stretch_place;

/// The sizes are filled in, room for the attacks is made.
WT_CHECKED wt_status wt__transients_create(wt__transients *t);
void wt__transients_destroy(wt__transients *t); ///< a zeroed one is allowed
/// List the attacks of a signal.  [rt]
WT_RT void wt__transients_find(wt__transients *t, const float *pcm);
/// Where output sample `out` comes from; `cursor` begins at 0 and is kept between calls with rising `out`.  [rt]
WT_RT wt__stretch_place wt__transients_place(const wt__transients *t, int64_t out, int64_t *cursor);

#endif
