/// Private to dsp/: spectra of sixteen real signals at once, in double, for ops that live on the phases of weak bins.
#ifndef WT_FFT_LANES_H
#define WT_FFT_LANES_H

#include <warptone/status.h>

enum { WT__FFT_LANES = 8, WT__FFT_LANES_SIGNALS = 16 };

typedef struct wt__fft_lanes wt__fft_lanes;

/// n >= 1; quick when its prime factors are small, n times the largest factor otherwise.
WT_CHECKED wt_status wt__fft_lanes_create(int n, wt__fft_lanes **plan);
void wt__fft_lanes_destroy(wt__fft_lanes *plan);

/// Where to write sixteen signals: [2][n][8], sample i of signal s at [s / 8][i][s % 8].
double *wt__fft_lanes_input(wt__fft_lanes *plan);
/// Transform it: signal s to out[s], [n / 2 + 1][2], for s < n_out.
WT_RT void wt__fft_lanes_run(wt__fft_lanes *plan, float *const *out, int n_out);

#endif
