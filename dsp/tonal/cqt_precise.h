/// Private to dsp/tonal/cqt.c: sixteen frames of an octave by transforms and sums in double.
#ifndef WT_DSP_CQT_PRECISE_H
#define WT_DSP_CQT_PRECISE_H

#include "cqt_plan.h"

typedef struct wt__cqt_precise wt__cqt_precise;

/// `window` [n_fft] of the pseudo part, NULL without one; plan and window are borrowed until it is destroyed.
WT_CHECKED wt_status wt__cqt_precise_create(const wt__cqt_plan *plan, const float *window, wt__cqt_precise **precise);
void wt__cqt_precise_destroy(wt__cqt_precise *precise); ///< NULL is allowed.
/// The frames at x, x + hop ... : rows [n_rows][16][2]; of a pseudo part sums of magnitudes and 0.  [rt, running]
WT_RT void wt__cqt_precise_rows(wt__cqt_precise *precise, int part, const float *x, float *rows);

#endif
