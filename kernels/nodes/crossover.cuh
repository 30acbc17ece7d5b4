// crossover: one warp a channel runs all sections of its band.
#pragma once
#include "biquad.cuh"
#include "crossover_kernel.h"

static __device__ void crossover_process(const wt_node_io *io, const crossover_plan *p, const crossover_coeffs *k,
                                         crossover_state *s)
{
    for_each_channel_warp(io->out_channels, [&](int c) {
        const float *x = io->in[0] + c * io->stride;
        for (int i = 0; i < p->n_sections; i++, x = io->out + c * io->stride) {
            biquad_channel(x, io->out + c * io->stride, io->n_frames, &k->section[i], s->section[i].s[c]);
            __syncwarp();
        }
    });
}
