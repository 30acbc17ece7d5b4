/// Private to dsp/: the predominant local pulse on a GPU.
#ifndef WT_PLP_CUDA_H
#define WT_PLP_CUDA_H

#include "op.h"
#include "plp_kernel.h"

typedef struct wt__plp_cuda wt__plp_cuda;

/// For envelopes of n_frames, windows of `length` frames and the bins first .. last.
WT_CHECKED wt_status wt__plp_cuda_create(wt_device *device, int length, int first, int last, int64_t n_frames,
                                         int n_signals, wt__plp_cuda **cuda);
void wt__plp_cuda_destroy(wt__plp_cuda *cuda);
WT_CHECKED wt_status wt__plp_cuda_enqueue(const wt__plp_cuda *cuda, wt_stream *stream, const float *envelope,
                                          float *pulse);

#endif
