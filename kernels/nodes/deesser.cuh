// deesser: one warp a channel for the band, one a group for the gain, one thread a sample for the rest.
#pragma once
#include "biquad.cuh"
#include "deesser_kernel.h"
#include "dynamics.cuh"

static __device__ void deesser_process(const wt_node_io *io, const deesser_plan *p, const deesser_coeffs *k,
                                       deesser_state *s)
{
    float *band = io->scratch, *lines = band + io->out_channels * WT_CHAIN_BLOCK;
    for_each_channel_warp(io->out_channels, [&](int c) {
        biquad_channel(io->in[0] + c * io->stride, band + c * WT_CHAIN_BLOCK, io->n_frames, &k->band, s->band[c]);
    });
    __syncthreads();
    dynamics_find(io, &p->dynamics, &k->dynamics, &s->dynamics, io->out_channels,
                   [=](int c, int n) { return band[c * WT_CHAIN_BLOCK + n]; }, lines);
    __syncthreads();
    dynamics_show(io, &p->dynamics, &k->dynamics, &s->dynamics);
    for_each_sample(io, [&](int c, int n) {
        const float g = dynamics_gain_of(io, &p->dynamics, &k->dynamics, lines, c, n);
        io->out[c * io->stride + n] = io->in[0][c * io->stride + n] + (g - 1.0f) * band[c * WT_CHAIN_BLOCK + n];
    });
}
