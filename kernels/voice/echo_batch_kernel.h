/// Arguments of the kernels of echo cancellation of many signals.
#ifndef WT_ECHO_BATCH_KERNEL_H
#define WT_ECHO_BATCH_KERNEL_H
#include "echo_kernel.h"

/// What a part of samples leaves to the next; kernels read one and write another.
typedef struct echo_samples {
    float *mic;      ///< [n_lines][block] the last
    float *playback; ///< [n_signals][2 block] the last
    float *ready;    ///< [n_lines][block] on its way out
} echo_samples;

/// A part of `n` samples that begins `at` samples behind a multiple of the block, and the blocks that end in it. A line
/// is a microphone of a signal; a bin is two floats.
typedef struct echo_batch_args {
    const float *mic;      ///< [n_lines][pitch], n of each
    const float *playback; ///< [n_signals][pitch]
    float *out;            ///< [n_lines][pitch], may be mic
    echo_samples old, now;
    float *windows;        ///< [n_blocks][n_signals][2 block] of playback
    float *heard;          ///< [n_blocks][n_signals][n_bins] their spectra
    int *silent;           ///< [n_blocks][n_signals]
    float *x;              ///< [n_ring][n_signals][n_bins] spectra of the playback, a ring
    float *w;              ///< [n_lines][n_parts][n_bins]
    float *doubt;          ///< [n_lines][n_parts][n_bins] floats
    float *near;           ///< [n_lines][n_bins] floats: smoothed power of the error
    float *step;           ///< [n_lines][n_bins] floats: 1 / D
    echo_worth *worth;     ///< [n_lines]
    int *in_doubt;         ///< [n_lines] all weights are, in this block
    float *spectrum;       ///< [n_lines][n_bins] of the echo, then of the error
    float *wave;           ///< [n_lines][2 block] the echo, then zeros and the error
    float *gradient;       ///< [n_lines][n_parts][n_bins]
    float *taps;           ///< [n_lines][n_parts][2 block] the gradient in time
    float *ready;          ///< [n_blocks][n_lines][block]
    const float *twiddles; ///< of a transform of `block` points (kernels/fft/fft.cuh), and
    const float *roots;    ///< [block + 1][2] e^(-pi i k / block): where one kernel learns
    long long pitch;
    int n, at, n_blocks, n_signals, channels;
    int block, n_bins, n_parts, n_ring;
    int head; ///< place in the ring of the part's first block
    int turn; ///< block of the part that is worked on
    echo_rules rules;
} echo_batch_args;

#endif
