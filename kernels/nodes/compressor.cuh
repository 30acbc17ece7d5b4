// compressor: the warps of dynamics.cuh.
#pragma once
#include "dynamics.cuh"
#include "compressor_kernel.h"

static __device__ __forceinline__ bool compressor_quick(const wt_node_io *io, const dynamics_plan *p,
                                                        const dynamics_coeffs *k, dynamics_state *s)
{
    if (!dynamics_is_short(io, p)) return false;
    dynamics_process_short(io, p, k, s);
    return true;
}

static __device__ void compressor_process(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                    dynamics_state *s)
{
    dynamics_process(io, p, k, s);
}
