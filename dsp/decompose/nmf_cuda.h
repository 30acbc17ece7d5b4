/// Private to dsp/decompose/nmf.c: factorisation on a GPU.
#ifndef WT_NMF_CUDA_H
#define WT_NMF_CUDA_H

#include "op.h"

#include <warptone/decompose.h>

typedef struct wt__nmf_cuda wt__nmf_cuda;
/// `config` with its defaults resolved.
WT_CHECKED wt_status wt__nmf_cuda_create(wt_device *device, const wt_nmf_config *config, wt__nmf_cuda **cuda);
void wt__nmf_cuda_destroy(wt__nmf_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__nmf_cuda_enqueue(const wt__nmf_cuda *cuda, wt_stream *stream, const float *v, float *w,
                                          float *h);

#endif
