// agc: one warp a channel turns and sums, in pieces that end with a step. Judge: the CPU's, 120 dB.
#pragma once
#include "chain.cuh"
#include "node_agc_kernel.h"

static __device__ void node_agc_process(const wt_node_io *io, const node_agc_plan *, const agc_rules *r,
                                        node_agc_state *s)
{
    for (int done = 0, n; done < io->n_frames; done += n) {
        const int at = (int)((io->position + done) & (AGC_STEP - 1));
        n = min(io->n_frames - done, AGC_STEP - at);
        for_each_channel_warp(io->out_channels, [&](int c) {
            double sum = 0;
            for (int i = threadIdx.x & 31; i < n; i += 32) {
                const int here = c * io->stride + done + i;
                const float x = io->in[0][here];
                sum += (double)x * x;
                io->out[here] = agc_turn(&s->line, x, at + i);
            }
            for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
            if ((threadIdx.x & 31) == 0) s->ears[c].sum += sum;
        });
        __syncthreads();
        if (at + n == AGC_STEP && threadIdx.x == 0) node_agc_end_step(r, s, io->out_channels, io->readings);
        __syncthreads();
    }
}
