/// Arguments of the streaming short-time transform's kernels.
#ifndef WT_STFT_STREAM_KERNEL_H
#define WT_STFT_STREAM_KERNEL_H
#include "spectrum_kernel.h"

typedef struct wt_stft_stream_args {
    float *pcm;       ///< [n_lines][n] a block: taken, or given
    float *frames;    ///< [n_lines][n_frames][bins][2]
    const float *old; ///< [n_lines][n_fft] the newest samples before the block; on the way back sums from its begin on
    float *state;     ///< [n_lines][n_fft] the same behind the block
    float *windowed;  ///< [n_lines][n_frames][n_fft] frames on their way back
    const float *window, *twiddles;
    const float *steady; ///< [hop] 1 / sum of squared windows
    int n, n_frames, hop, n_fft;
    int first; ///< samples of the block that frame 0 ends behind
} wt_stft_stream_args;
#endif
