/// Private to dsp/: attacks of a batch of signals on a GPU (kernels/stretch/transient.cu).
#ifndef WT_TRANSIENTS_CUDA_H
#define WT_TRANSIENTS_CUDA_H

#include "op.h"
#include "stretch_cuda.h"
#include "transient_kernel.h"

typedef struct wt__transients_cuda {
    wt_module *module;
    wt_kernel *energies, *find, *places;
    wt_buffer *work;
    wt_transient_args args; ///< where its results lie
    int n_lines;
    int energy_blocks, place_blocks;
} wt__transients_cuda;

/// For n_lines signals of a shape, and n_places places a hop apart. Errors: those of wt_module_create, WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt__transients_cuda_create(wt_device *device, const wt__stretch_shape *shape, int n_lines,
                                                int64_t n_places, wt__transients_cuda *t);
void wt__transients_cuda_release(wt__transients_cuda *t); ///< a zeroed one is allowed
/// List the attacks of n_lines signals, and the places.
WT_CHECKED wt_status wt__transients_cuda_enqueue(const wt__transients_cuda *t, wt_stream *stream, const float *pcm);

#endif
