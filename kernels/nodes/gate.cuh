// gate: the warps of dynamics.cuh.
#pragma once
#include "dynamics.cuh"
#include "gate_kernel.h"

static __device__ void gate_process(const wt_node_io *io, const dynamics_plan *p, const dynamics_coeffs *k,
                                    dynamics_state *s)
{
    dynamics_process(io, p, k, s);
}
