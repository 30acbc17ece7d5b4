/// Private to dsp/rhythm/tempo.c: the steps of a tempogram.
#ifndef WT_TEMPOGRAM_INTERNAL_H
#define WT_TEMPOGRAM_INTERNAL_H

#include <warptone/tempo.h>

/// Defaults resolved; the window [win_length].
const wt_tempogram_config *wt__tempogram_config(const wt_tempogram *plan);
const float *wt__tempogram_window(const wt_tempogram *plan);
/// Row t, windowed: [win_length].  [rt]
WT_RT void wt__tempogram_row(wt_tempogram *plan, const float *envelope, int64_t n, int64_t t, double *row);
/// Power spectrum of row t over twice the window, and the row's energy (lag 0).  [rt]
int wt__tempogram_bins(const wt_tempogram *plan);
WT_RT double wt__tempogram_power(wt_tempogram *plan, const float *envelope, int64_t n, int64_t t, float *power);
/// Lags 0 .. win_length - 1 of a power spectrum, whose contents are lost.  [rt]
WT_RT void wt__tempogram_lags(wt_tempogram *plan, float *power, float *lags);

#endif
