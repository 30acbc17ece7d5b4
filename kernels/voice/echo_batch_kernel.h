/// Arguments of the kernels of echo cancellation of many signals.
#ifndef WT_ECHO_BATCH_KERNEL_H
#define WT_ECHO_BATCH_KERNEL_H
#include "echo_kernel.h"
#include "fft_kernel.h"

// Where thread blocks filter by themselves (ECHO_POINTS): parts in so many groups, whose sums are added in one order
// however many thread blocks share a line; threads of a block at most, and of a line's own transforms at least.
#define ECHO_GROUPS       4
#define ECHO_MOST_THREADS 512
#define ECHO_LINE         128

/// Floats of shared memory but for weights: sums or the parts' transforms, a transform of the line, and its rows.
WT_FFT_BOTH int wt__echo_work_floats(int n, int n_teams, int n_groups)
{
    const int sums = 4 * n_groups * (n + 1), transforms = n_teams * wt__fft_shared_floats(n);
    return ((sums > transforms ? sums : transforms) + 3) / 4 * 4;
}
WT_FFT_BOTH int wt__echo_line_floats(int n) { return wt__fft_shared_floats(n) + 6 * (n + 1) + 2 * n; }

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
    float *step;           ///< [n_lines][n_bins] floats: 1 / D, with wt_fft
    echo_worth *worth;     ///< [n_lines]
    int *in_doubt;         ///< [n_lines] all weights are, in this block; with wt_fft
    float *spectrum;       ///< [n_lines][n_bins] of the echo, then of the error; this and the next three: with wt_fft
    float *wave;           ///< [n_lines][2 block] the echo, then zeros and the error
    float *gradient;       ///< [n_lines][n_parts][n_bins]
    float *taps;           ///< [n_lines][n_parts][2 block] the gradient in time
    float *ready;          ///< [n_blocks][n_lines][block]
    const float *twiddles; ///< of a transform of `block` points (kernels/fft/fft.cuh), and
    const float *roots;    ///< [block + 1][2] e^(-pi i k / block): where thread blocks filter by themselves
    long long pitch;
    int n, at, n_blocks, n_signals, channels;
    int block, n_bins, n_parts, n_ring;
    int n_twiddles; ///< floats
    int head;       ///< place in the ring of the part's first block
    int turn;       ///< block of the part that is worked on, with wt_fft
    echo_rules rules;
} echo_batch_args;

#endif
