// dc_block: a biquad section.
#pragma once
#include "biquad.cuh"
#include "dc_block_kernel.h"

static __device__ void dc_block_process(const wt_node_io *io, const dc_block_plan *, const biquad_coeffs *k,
                                        biquad_state *s)
{
    for_each_channel_warp(io->out_channels, [&](int c) {
        biquad_channel(io->in[0] + c * io->stride, io->out + c * io->stride, io->n_frames, k, s->s[c]);
    });
}
