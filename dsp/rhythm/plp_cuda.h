/// Private to dsp/: the predominant local pulse on a GPU.
#ifndef WT_PLP_CUDA_H
#define WT_PLP_CUDA_H

#include "op.h"
#include "plp_kernel.h"

typedef struct wt__plp_cuda wt__plp_cuda;

typedef struct wt__plp_tables {
    int length, first, last;               ///< frames of a window; bins within the range of tempi
    const double *window, *turn, *squares; ///< as wt_plp_args has them
} wt__plp_tables;

/// For envelopes of n_frames.
WT_CHECKED wt_status wt__plp_cuda_create(wt_device *device, const wt__plp_tables *tables, int64_t n_frames,
                                         int n_signals, wt__plp_cuda **cuda);
void wt__plp_cuda_destroy(wt__plp_cuda *cuda);
WT_CHECKED wt_status wt__plp_cuda_enqueue(const wt__plp_cuda *cuda, wt_stream *stream, const float *envelope,
                                          float *pulse);

#endif
