/// Private to dsp/: chroma on a GPU.
#ifndef WT_CHROMA_CUDA_H
#define WT_CHROMA_CUDA_H

#include "chroma_kernel.h"
#include "op.h"

typedef struct wt__chroma_cuda wt__chroma_cuda;

/// `kernels`: one or two of kernels/tonal/chroma.cu, run in turn. `table` is uploaded; args.bank, begins or window is
/// set to its address by the caller's `place` (NULL without a table). `steps`: floats of a scratch array.
WT_CHECKED wt_status wt__chroma_cuda_create(wt_device *device, const char *const kernels[2], const wt_chroma_args *args,
                                            const void *table, size_t table_bytes, size_t steps,
                                            void (*place)(wt_chroma_args *args, uintptr_t table),
                                            wt__chroma_cuda **cuda);
void wt__chroma_cuda_destroy(wt__chroma_cuda *cuda);
/// n_all frames, n_frames of each signal.
WT_CHECKED wt_status wt__chroma_cuda_enqueue(const wt__chroma_cuda *cuda, wt_stream *stream, const float *in,
                                             int64_t n_frames, int64_t n_all, float *out);

#endif
