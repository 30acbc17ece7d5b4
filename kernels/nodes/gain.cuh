// gain: one thread a sample.
#pragma once
#include "gain_kernel.h"

static __device__ void gain_process(const wt_node_io *io, const gain_plan *, const gain_coeffs *k, void *)
{
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for_each_sample(io, [&](int c, int n) {
        float g = k->slope == 0.0f ? k->gain : k->gain + k->slope * (float)(phase + n);
        io->out[c * io->stride + n] = io->in[0][c * io->stride + n] * g;
    });
}
