// chorus: no frame waits for another: all go into the rings, then one thread a sample reads its voices.
#pragma once
#include "chorus_kernel.h"

static __device__ void chorus_process(const wt_node_io *io, const chorus_plan *p, const chorus_coeffs *k,
                                      chorus_state *s)
{
    const unsigned int phase = s->phase;
    for_each_sample(io, [&](int c, int n) {
        s->ring[c * (p->mask + 1) + (int)((io->position + n) & p->mask)] = io->in[0][c * io->stride + n];
    });
    __syncthreads();
    if (threadIdx.x == 0) s->phase = phase + (unsigned int)io->n_frames * k->delay.increment;
    for_each_sample(io, [&](int c, int n) {
        float sum = 0.0f;
        for (int v = 0; v < p->voices; v++)
            sum += chorus_voice(p, &k->delay, s->ring + c * (p->mask + 1), io->position,
                                phase + (unsigned int)c * p->channel_step + (unsigned int)v * p->voice_step, n);
        float x = io->in[0][c * io->stride + n];
        io->out[c * io->stride + n] = chorus_blend(p, k, io->position, n, x, sum);
    });
}
