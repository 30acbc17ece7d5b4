/// Private to dsp/: onset strength and detection on a GPU.
#ifndef WT_ONSET_CUDA_H
#define WT_ONSET_CUDA_H

#include "op.h"
#include "onset_kernel.h"

#include <warptone/onset.h>

typedef struct wt__onset_cuda wt__onset_cuda;

/// `config` has its defaults resolved.
WT_CHECKED wt_status wt__onset_cuda_create(wt_device *device, const wt_onset_config *config, int shift,
                                           int64_t *n_frames, wt__onset_cuda **cuda);
void wt__onset_cuda_destroy(wt__onset_cuda *cuda);
WT_CHECKED wt_status wt__onset_cuda_enqueue(const wt__onset_cuda *cuda, wt_stream *stream, const wt_buffer *pcm,
                                            size_t pcm_offset, float *envelope);

#endif
