// mix: one thread a sample, inputs summed in their order.
#pragma once
#include "mix_kernel.h"

static __device__ void mix_process(const wt_node_io *io, const mix_plan *, const mix_coeffs *k, void *)
{
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for_each_sample(io, [&](int c, int n) {
        float sum = 0.0f;
        for (int i = 0; i < io->n_inputs; i++) {
            int from = io->channels[i] == 1 ? 0 : c;
            sum = fmaf(io->in[i][from * io->stride + n], k->gain[i] + k->slope[i] * (float)(phase + n), sum);
        }
        io->out[c * io->stride + n] = sum;
    });
}
