/// Private to dsp/: YIN's difference function, which YIN and pYIN begin with.
#ifndef WT_YIN_INTERNAL_H
#define WT_YIN_INTERNAL_H

#include "yin_kernel.h"

#include <warptone/pitch.h>

enum { WT__YIN_CHUNK = 64 }; ///< frames worked on at once; neighbours share their products

/// Check and resolve `frames` (its defaults are filled in), and lay out the search. `op` begins the sentences.
WT_CHECKED wt_status wt__yin_layout(const char *op, wt_pitch_frames *frames, wt_yin_args *args);

/// Scratch of one thread: the functions of a chunk of frames.
typedef struct wt__yin_scratch {
    double *samples;  ///< the chunk's, padded behind by zeros
    double *products; ///< [n_shared][n_lags] sums over the hops, a ring
    double *tail;     ///< a frame's last samples, zeros behind
    double *sums;     ///< [n_lags] autocorrelation, then numerators
    double *means;    ///< [n_lags] denominators
    double *function; ///< [max_period - min_period + 1] the cumulative mean normalised difference, zeros behind
} wt__yin_scratch;

WT_CHECKED wt_status wt__yin_scratch_create(const char *op, const wt_yin_args *args, wt__yin_scratch *scratch);
void wt__yin_scratch_destroy(wt__yin_scratch *scratch); ///< a zeroed one is allowed

/// For frames begin .. begin + count - 1 (count <= WT__YIN_CHUNK) of one signal call take(user, t, function) with
/// `scratch->function`; NULL when a sample of the frame is not finite.  [rt]
typedef void (*wt__yin_take)(void *user, int64_t t, const double *function);
WT_RT void wt__yin_functions(const wt_yin_args *args, wt__yin_scratch *scratch, const float *pcm, int64_t begin,
                             int count, wt__yin_take take, void *user);

#endif
