// align: write the block into the ring, then read `delay_frames` behind; one thread a sample.
#pragma once
#include "align_kernel.h"

static __device__ void align_process(const wt_node_io *io, const align_plan *p, const void *, align_state *s)
{
    for_each_sample(io, [&](int c, int n) {
        int at = (int)((io->position + n) % p->ring_frames);
        s->ring[c * p->ring_frames + at] = io->in[0][c * io->stride + n];
    });
    __syncthreads();
    for_each_sample(io, [&](int c, int n) {
        int at = (int)((io->position + n + p->ring_frames - p->delay_frames) % p->ring_frames);
        io->out[c * io->stride + n] = s->ring[c * p->ring_frames + at];
    });
}
