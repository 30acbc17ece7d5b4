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
    float *sum, *weight;   ///< [n_fft] of pieces, and of their windows, from sample `to` - n_fft / 2 on
    int64_t to, before;    ///< where the next piece goes, and where the one before it is from
} wt__wsola;

/// The sizes and the window are filled in.
WT_CHECKED wt_status wt__wsola_create(wt__wsola *w);
void wt__wsola_destroy(wt__wsola *w); ///< a zeroed one is allowed
/// Begin with a signal.
void wt__wsola_begin(wt__wsola *w);
/// A piece more of the stretch of one signal, whose attacks are known; returns how many samples, the next ones, it
/// finishes: at most a hop.  [rt]
WT_RT int64_t wt__wsola_next(wt__wsola *w, const wt__transients *t, const float *pcm, float *out);

#endif
