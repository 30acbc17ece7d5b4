/// Arguments of the transforms in double that no block holds.
#ifndef WT_FFT_DOUBLE_KERNEL_H
#define WT_FFT_DOUBLE_KERNEL_H

typedef struct wt_fft_double_args {
    double *from, *to;   ///< [rows][points][2]; a pass: not the same
    const double *roots; ///< of a pass: exp(-2 pi i k / points) [points][2]; else what is multiplied with
    long long rows;
    int points, done; ///< done: the product of the passes' radices before
    int n, swap;      ///< a product: numbers that are there, zeros behind them; 1 = parts exchanged
} wt_fft_double_args;

#endif
