/// Private to dsp/stretch/stretch.c: time stretch by overlapped pieces of the signal.
#ifndef WT_STRETCH_WSOLA_H
#define WT_STRETCH_WSOLA_H

#include "stretch_transients.h"

typedef struct wt__wsola {
    int n_fft, hop;
    const double *window;  ///< [n_fft] borrowed
    double *wanted, *near; ///< [n_fft], [2 n_fft]: how the piece before goes on; where to look for the like
    double *squares;       ///< [2 n_fft + 1] of `near`, added up
    double *like;          ///< [n_fft] likenesses
    float *weight;         ///< [n_out] the windows' sum
} wt__wsola;

/// The sizes and the window are filled in.
WT_CHECKED wt_status wt__wsola_create(wt__wsola *w, int64_t n_out);
void wt__wsola_destroy(wt__wsola *w); ///< a zeroed one is allowed
/// Stretch one signal, whose attacks are known, to n_out samples.  [rt]
WT_RT void wt__wsola_run(const wt__wsola *w, const wt__transients *t, const float *pcm, float *out);

#endif
