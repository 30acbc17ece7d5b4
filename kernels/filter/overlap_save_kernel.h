/// Arguments of the convolution of whole rows by overlap-save.
#ifndef WT_OVERLAP_SAVE_KERNEL_H
#define WT_OVERLAP_SAVE_KERNEL_H
#include "spectrum_kernel.h"

/// A block makes two runs of `fresh` outputs, from transforms of N inputs each a part of the taps: the last `fresh` of
/// their N points are right.
typedef struct wt_overlap_save_args {
    const float *in;       ///< [n_rows][n_in]
    float *out;            ///< [n_rows][n_out]
    const float *response; ///< [n_parts][N][2] transforms of the taps' parts, divided by N
    const float *twiddles; ///< pass by pass [radix - 1][m][2]
    long long n_in, n_out;
    int fresh, part, n_parts; ///< part: taps of all but the last
} wt_overlap_save_args;
#endif
