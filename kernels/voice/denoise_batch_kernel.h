/// Arguments of the kernels of noise reduction of many lines.
#ifndef WT_DENOISE_BATCH_KERNEL_H
#define WT_DENOISE_BATCH_KERNEL_H
#include "denoise_kernel.h"

/// What a part leaves to the next; kernels read one and write another.
typedef struct denoise_lines {
    float *past;                     ///< [n_lines][frame] the last input
    float *ready, *sum;              ///< [n_lines][hop] on its way out; of the last window, still to be added to
    float *noise, *presence, *clean; ///< [n_lines][n_bins]
    int *n_heard;                    ///< [n_lines]
} denoise_lines;

/// A part of `n` samples that begins `at` samples behind a multiple of the hop, and the spectra that end in it.
typedef struct denoise_batch_args {
    const float *in;      ///< [n_lines][pitch], n of each
    float *out;           ///< the same, may be in
    float *windowed;      ///< [n_spectra][n_lines][frame]
    const float *spectra; ///< [n_spectra][n_lines][n_bins][2]
    float *turned;        ///< the same, not in the same place
    const float *back;    ///< [n_spectra][n_lines][frame] turned, in time
    int *heard;           ///< [n_spectra][n_lines] is it more than silence
    denoise_lines old, now;
    const float *analysis, *synthesis; ///< [frame], [2 hop]
    long long pitch;
    int n, n_lines, n_spectra, at;
    int hop, frame;
    int keeps_noise, gains; ///< reset: noise has been learnt; 0 = nothing is turned down, no noise is known
    float strength;
    denoise_rules rules;
} denoise_batch_args;

#endif
