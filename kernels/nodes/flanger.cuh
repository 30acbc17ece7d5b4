// flanger: one warp a channel; as many frames at once as the present delay leaves independent of each other, up to 32.
#pragma once
#include "flanger_kernel.h"

// Frame first + i reads nothing younger than first - 1 while i + LAGRANGE_BEFORE + 1 <= delay - i * slew.
static __device__ int flanger_independent(const flanger_coeffs *k, long long position, unsigned int phase, int first)
{
    int at = ((int)position & (WT_QUANTUM - 1)) + first;
    int delay = lfo_delay_at(&k->delay, at, phase + (unsigned int)first * k->delay.increment);
    float spare = (float)k->delay.base + (float)delay * (1.0f / LFO_UNITS) - (LAGRANGE_BEFORE + 1);
    return min(32, 1 + max(0, (int)(spare / (1.001f + k->slew))));
}

static __device__ void flanger_process(const wt_node_io *io, const flanger_plan *p, const flanger_coeffs *k,
                                       flanger_state *s)
{
    const int lane = threadIdx.x & 31;
    const unsigned int block_phase = s->phase;
    __syncthreads(); // all have read the phase
    for_each_channel_warp(io->out_channels, [&](int c) {
        const unsigned int phase = block_phase + (unsigned int)c * p->channel_step;
        const float *x = io->in[0] + c * io->stride;
        float *ring = s->ring + c * (p->mask + 1);
        for (int first = 0, count; first < io->n_frames; first += count) {
            count = min(flanger_independent(k, io->position, phase, first), io->n_frames - first);
            int n = first + lane;
            if (lane < count)
                io->out[c * io->stride + n] = flanger_frame(p, k, ring, io->position, phase, n, x[n]);
            __syncwarp();
        }
    });
    if (threadIdx.x == 0) s->phase = block_phase + (unsigned int)io->n_frames * k->delay.increment;
}
