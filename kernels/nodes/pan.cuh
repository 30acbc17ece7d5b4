// pan: one thread a frame, so that a mono input may share its buffer with the output.
#pragma once
#include "pan_kernel.h"

static __device__ void pan_process(const wt_node_io *io, const pan_plan *, const pan_coeffs *k, void *)
{
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for (int n = threadIdx.x; n < io->n_frames; n += blockDim.x) {
        float left = io->in[0][n], right = io->channels[0] == 2 ? io->in[0][io->stride + n] : left;
        io->out[n] = left * (k->gain[0] + k->slope[0] * (float)(phase + n));
        io->out[io->stride + n] = right * (k->gain[1] + k->slope[1] * (float)(phase + n));
    }
}
