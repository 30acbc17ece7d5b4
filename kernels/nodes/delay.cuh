// delay: as many frames at once as the shortest delay leaves independent of each other, one thread a sample.
#pragma once
#include "delay_kernel.h"

static __device__ void delay_process(const wt_node_io *io, const delay_plan *p, const delay_coeffs *k, delay_state *s)
{
    int step = max(1, (int)k->shortest - LAGRANGE_BEFORE);
    for (int first = 0; first < io->n_frames; first += step) {
        int count = min(step, io->n_frames - first);
        for (int i = threadIdx.x; i < io->out_channels * count; i += blockDim.x) {
            int c = i / count, n = first + i - c * count;
            float x = io->in[0][c * io->stride + n];
            io->out[c * io->stride + n] = delay_frame(p, k, s->ring + c * (p->mask + 1), io->position + n, x);
        }
        __syncthreads();
    }
}
