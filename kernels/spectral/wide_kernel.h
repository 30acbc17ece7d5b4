/// Arguments of the kernels around transforms in double that lie in memory (kernels/fft/fft_double.cu).
#ifndef WT_WIDE_KERNEL_H
#define WT_WIDE_KERNEL_H
#include "transient_kernel.h"

/// Pairs of a line's frames, each pair one complex signal: a tile of all lines'.
typedef struct wt_wide_pairs {
    double *in, *out;          ///< [n_pairs][pitch][2] before and after a transform
    double *levels;            ///< [n_pairs][2] what frames' bins are to be taken times, NULL = 1
    long long first;           ///< pair first % pairs of line first / pairs, and those behind it
    long long pairs, n_frames; ///< of a line
    int n_pairs, n_fft, pitch, unused;
} wt_wide_pairs;

/// Windowed frames of samples: frame t begins at sample t hop - margin.
typedef struct wt_wide_fill_args {
    wt_wide_pairs pairs;
    const float *pcm;      ///< [n_lines][n_samples]
    const double *samples; ///< or these, lines `apart`
    const double *window;  ///< [n_fft]
    long long n_samples, apart;
    int hop, margin, pad, unused; ///< pad: wt_stft_pad
} wt_wide_fill_args;

/// Windowed samples of frames back to sums, which begin as zeros.
typedef struct wt_wide_add_args {
    wt_wide_pairs pairs; ///< behind the way back, parts exchanged
    double *sums;        ///< [n_lines][n_sums] of the padded signals
    const double *window;
    long long n_sums, line, n_lines; ///< of those that the tile touches: the first line, how many,
    long long begin, count;          ///< the first sample of each, how many
    long long used;                  ///< frames of a line that count
    int hop, unused;
} wt_wide_add_args;

#endif
