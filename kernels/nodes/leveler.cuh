// leveler: one warp a channel weighs and sums, in pieces that end with a step; then one thread a sample.
#pragma once
#include "leveler_kernel.h"
#include "meter.cuh"

static __device__ void leveler_weigh(const leveler_plan *p, leveler_state *s, int c, const float *x, float *y, int n)
{
    unsigned long long weighted = 0;
    biquad_channel(x, y, n, &p->meter.shelf, s->shelf[c]);
    __syncwarp();
    biquad_channel(y, y, n, &p->meter.highpass, s->highpass[c]);
    __syncwarp();
    for (int i = threadIdx.x & 31; i < n; i += 32) weighted += meter_power(y[i], p->meter.weight[c]);
    weighted = warp_sum(weighted);
    if ((threadIdx.x & 31) == 0) atomicAdd(&s->weighted, weighted);
}

static __device__ void leveler_process(const wt_node_io *io, const leveler_plan *p, const leveler_coeffs *k,
                                       leveler_state *s)
{
    for (int done = 0, n; done < io->n_frames; done += n) {
        const long long position = io->position + done;
        const int at = (int)(position % p->meter.step_frames), left = p->meter.step_frames - at;
        n = min(io->n_frames - done, left);
        for_each_channel_warp(io->out_channels, [&](int c) {
            const float *x = io->in[0] + c * io->stride + done;
            float *ring = s->delay + c * (p->mask + 1);
            leveler_weigh(p, s, c, x, io->scratch + threadIdx.x / 32 * WT_CHAIN_BLOCK, n);
            for (int i = threadIdx.x & 31; i < n; i += 32) ring[(position + i) & p->mask] = x[i];
        });
        __syncthreads();
        for (int j = threadIdx.x; j < io->out_channels * n; j += blockDim.x) {
            int c = j / n, i = j - c * n;
            float x = s->delay[c * (p->mask + 1) + (int)((position + i - p->lookahead) & p->mask)];
            io->out[c * io->stride + done + i] = x * leveler_gain(p, s, at + i);
        }
        __syncthreads();
        if (n == left && threadIdx.x == 0) leveler_end_step(p, k, s, io->readings);
        __syncthreads();
    }
}
