// mono: one thread a frame.
#pragma once
#include "mono_kernel.h"

static __device__ void mono_process(const wt_node_io *io, const mono_plan *p, void *, void *)
{
    for (int n = threadIdx.x; n < io->n_frames; n += blockDim.x) {
        float sum = 0.0f;
        for (int c = 0; c < io->channels[0]; c++) sum += io->in[0][c * io->stride + n];
        for (int c = 0; c < io->out_channels; c++) io->out[c * io->stride + n] = sum * p->weight;
    }
}
