/// Arguments of the autocorrelation's kernels, which stand around two transforms.
#ifndef WT_AUTOCORRELATE_KERNEL_H
#define WT_AUTOCORRELATE_KERNEL_H

#define WT_AUTOCORRELATE_TILE 1024 ///< numbers of a block

typedef struct wt_autocorrelate_args {
    const float *in; ///< [n_signals][n]
    float *out;      ///< [n_signals][lags]
    float *signals;  ///< [at_once][n_fft]
    float *spectra;  ///< [at_once][n_fft / 2 + 1][2]
    int n, lags, n_fft, n_signals, at_once;
} wt_autocorrelate_args;

#endif
