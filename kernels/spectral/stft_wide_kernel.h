/// Arguments of the kernels around short-time transforms that no block holds.
#ifndef WT_STFT_WIDE_KERNEL_H
#define WT_STFT_WIDE_KERNEL_H
#include "wide_kernel.h"

typedef struct wt_stft_wide_args {
    wt_wide_pairs pairs;
    const float *in;      ///< of the way back [n_lines][n_frames][bins][2]
    float *out;           ///< [n_lines][n_frames][bins], pairs when complex; of the way back [n_lines][length]
    const double *sums;   ///< [n_lines][margin + length] of windowed frames
    const double *window; ///< [n_fft]
    long long length, n_lines, used; ///< used: frames that count on the way back
    int bins, hop, margin, kind;     ///< kind: wt_stft_output
} wt_stft_wide_args;

#endif
