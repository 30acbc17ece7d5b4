/// Arguments of convolution by overlap-save, of whole rows and of rows that go on.
#ifndef WT_OVERLAP_SAVE_KERNEL_H
#define WT_OVERLAP_SAVE_KERNEL_H
#include "spectrum_kernel.h"

/// Two runs of `fresh` outputs are one transform, of N inputs for each part of the taps: the last `fresh` of its N
/// points are right.
typedef struct wt_overlap_save_taps {
    const float *response;    ///< [n_parts][N][2] transforms of the taps' parts, divided by N
    const float *twiddles;    ///< pass by pass [radix - 1][m][2]
    int fresh, part, n_parts; ///< part: taps of all but the last
} wt_overlap_save_taps;

typedef struct wt_overlap_save_args {
    const float *in; ///< [n_rows][n_in]
    float *out;      ///< [n_rows][n_out]
    long long n_in, n_out;
    wt_overlap_save_taps taps;
} wt_overlap_save_args;

/// A block of rows that go on. Frame t since reset has its place t % n_past among the inputs, and t % n_made among the
/// outputs.
typedef struct wt_overlap_save_stream_args {
    const float *in; ///< [n_rows][pitch], n_frames of each
    float *out;      ///< likewise, may be `in`
    float *past;     ///< [n_rows][n_past] inputs
    float *made;     ///< [n_rows][n_made] outputs
    long long pitch, n_rows;
    int n_frames, n_past, n_made;
    int past_at, made_at;           ///< places of the block's first input, and of the first output handed out
    int pair_past_at, pair_made_at; ///< and of the first pair of runs that now has all its inputs, `n_pairs` of them
    int n_pairs;
    wt_overlap_save_taps taps;
} wt_overlap_save_stream_args;
#endif
