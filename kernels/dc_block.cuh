// dc_block: a biquad section.
#pragma once
#include "biquad.cuh"
#include "dc_block_kernel.h"

static __device__ void dc_block_process(const wt_node_io *io, const dc_block_plan *, const biquad_coeffs *k,
                                        biquad_state *s)
{
    biquad_process(io, 0, k, s);
}
