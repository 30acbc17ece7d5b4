/// Private to dsp/pitch/pyin.c: the plan on a GPU.
#ifndef WT_PYIN_CUDA_H
#define WT_PYIN_CUDA_H

#include "pyin_internal.h"

typedef struct wt__pyin_cuda wt__pyin_cuda;

WT_CHECKED wt_status wt__pyin_cuda_create(wt_device *device, const wt_yin_args *args, const wt__pyin_tables *tables,
                                          bool keep_unvoiced, bool calibrated,
                                          wt__pyin_cuda **cuda);
void wt__pyin_cuda_destroy(wt__pyin_cuda *cuda); ///< NULL is allowed
WT_CHECKED wt_status wt__pyin_cuda_enqueue(const wt__pyin_cuda *cuda, wt_stream *stream, const float *pcm, float *out);

#endif
