/// Private to dsp/stretch/stretch.c: attacks of a signal, and where its output comes from.
#ifndef WT_STRETCH_TRANSIENTS_H
#define WT_STRETCH_TRANSIENTS_H

#include "transient_kernel.h"

#include <stdint.h>
#include <warptone/status.h>

typedef struct wt__transients {
    int64_t n_samples, n_out;
    int n_fft;
    double rate;
    int64_t count, most;
    wt_transient *at; ///< [most]
} wt__transients;

/// Samples of a block whose energy is looked at; samples between two attacks, at least; room for a signal's attacks.
int wt__transients_block(int n_fft);
int wt__transients_gap(int n_fft);
int64_t wt__transients_most(int64_t n_samples, int n_fft);

/// The sizes are filled in, room for the attacks is made.
WT_CHECKED wt_status wt__transients_create(wt__transients *t);
void wt__transients_destroy(wt__transients *t); ///< a zeroed one is allowed
/// List the attacks of a signal.  [rt]
WT_RT void wt__transients_find(wt__transients *t, const float *pcm);
/// Where output sample `out` comes from.  [rt]
static inline wt_stretch_place wt__transients_place(const wt__transients *t, int64_t out)
{
    return wt__transient_place(t->at, t->count, t->n_samples, t->n_out, out);
}

#endif
