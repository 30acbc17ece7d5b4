/// Private to dsp/pitch/yin.c: the plan on a GPU.
#ifndef WT_YIN_CUDA_H
#define WT_YIN_CUDA_H

#include "yin_kernel.h"

#include <warptone/kernel.h>

typedef struct wt__yin_cuda wt__yin_cuda;

/// Choose the frames of a thread block so that it fits its shared memory, with `extra_bytes` beside it: sets args->tile
/// and launch, whose grid[1] is left for the signals. When not even one does, blocks work in memory: *scratch is
/// theirs, args->places are set, and the text is to be compiled with PLACES.
WT_CHECKED wt_status wt__yin_place(wt_device *device, size_t extra_bytes, wt_yin_args *args, wt_launch *launch,
                                   wt_buffer **scratch);

WT_CHECKED wt_status wt__yin_cuda_create(const char *op, wt_device *device, const wt_yin_args *args,
                                         wt__yin_cuda **cuda);
void wt__yin_cuda_destroy(wt__yin_cuda *cuda); ///< NULL is allowed
WT_CHECKED wt_status wt__yin_cuda_enqueue(const wt__yin_cuda *cuda, wt_stream *stream, const float *pcm, float *f0);

#endif
