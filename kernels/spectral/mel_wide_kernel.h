/// Arguments of mel bands from spectra that lie in memory.
#ifndef WT_MEL_WIDE_KERNEL_H
#define WT_MEL_WIDE_KERNEL_H
#include "spectrum_kernel.h"
#include "wide_kernel.h"

typedef struct wt_mel_wide_args {
    wt_wide_pairs pairs;
    float *powers;            ///< [n_pairs][2][bins]
    wt_spectrum_mel_args mel; ///< but frames and slopes
    int bins, unused;
} wt_mel_wide_args;

/// wt_spectrum_finish_args with its matrix [n_mels][n_out]; n_out 0: the bands in place, once.
typedef struct wt_mel_finish_args {
    wt_spectrum_finish_args finish;
    long long count; ///< of numbers that come out
} wt_mel_finish_args;

#endif
