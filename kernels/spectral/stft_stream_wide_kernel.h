/// Arguments of running signals' frames that no block holds.
#ifndef WT_STFT_STREAM_WIDE_KERNEL_H
#define WT_STFT_STREAM_WIDE_KERNEL_H
#include "stft_stream_kernel.h"

typedef struct wt_stft_stream_wide_args {
    wt_stft_stream_args stream;
    double *in;        ///< [n_rows][pitch][2]
    const double *out; ///< the same behind the transform
    long long first;   ///< row: frame first % n_frames of line first / n_frames, and those behind it
    int n_rows, pitch;
} wt_stft_stream_wide_args;

#endif
