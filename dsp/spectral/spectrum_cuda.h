/// Private to dsp/: what ops on the kernels of kernels/spectral/spectrum.cu share.
#ifndef WT_SPECTRUM_CUDA_H
#define WT_SPECTRUM_CUDA_H

#include "op.h"
#include "spectrum_kernel.h"
#include "stft_internal.h"

typedef struct wt__spectrum_cuda {
    wt_module *module;
    wt_buffer *tables; ///< window and twiddles
    int n_fft, threads, frames; ///< threads and frames of a block
    int resident;               ///< blocks of a walk that an SM holds
    size_t shared_bytes;        ///< of its transforms
    wt_spectrum_frames args;    ///< all but pcm, n_samples and n_frames
} wt__spectrum_cuda;

/// Compile for one n_fft. Errors: WT_ERR_UNSUPPORTED (n_fft of 1, above 8192, or with a prime factor above 13).
WT_CHECKED wt_status wt__spectrum_cuda_create(const char *op, wt_device *device, const wt_stft *stft,
                                              wt__spectrum_cuda *s);
/// The same for another text on kernels/spectral/spectrum.cuh, and a window of n_fft floats; args has the tables alone.
WT_CHECKED wt_status wt__spectrum_cuda_open(const char *op, wt_device *device, const char *text, int n_fft,
                                            const float *window, wt__spectrum_cuda *s);
/// That with the window, hop, margin and padding of a short-time transform.
WT_CHECKED wt_status wt__spectrum_cuda_load(const char *op, wt_device *device, const wt_stft *stft, const char *text,
                                            wt__spectrum_cuda *s);
void wt__spectrum_cuda_release(wt__spectrum_cuda *s);
/// Refuses lengths that no block transforms.
WT_CHECKED wt_status wt__spectrum_cuda_check(const char *op, int n_fft);
/// The transform's factors in double, pass by pass [radix - 1][m] pairs; returns the numbers, writes when `table`.
size_t wt__spectrum_twiddles(int n, double *table);
/// One block for each `per_block` of a line's `count`; refuses more blocks than a grid has.
WT_CHECKED wt_status wt__spectrum_cuda_grid(const char *op, int64_t n_lines, int64_t count, int64_t per_block,
                                            int *blocks);
/// Shape the walk of blocks along `n_lines` lines of `length` samples, and its launch. Refuses hops whose sums shared
/// memory does not hold.
WT_CHECKED wt_status wt__spectrum_cuda_walk(const char *op, wt_device *device, const wt__spectrum_cuda *s,
                                            int64_t n_lines, int64_t length, wt_spectrum_walk *walk,
                                            wt_launch *launch);

#endif
