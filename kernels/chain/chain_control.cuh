// Parameters and reset of an instance, for the kernels that run a composed chain. The text before this file defines
//   chain_design(node, plan, v0, v1, coeffs)                     coefficients of one node
#pragma once

// Control point: one thread a node steps its ramps and designs its coefficients. Returns 1 while anything moves.
// With `all` every node is designed, from ramps that just jumped.
static __device__ __noinline__ int chain_control(const chain_args &a, unsigned char *memory, bool all)
{
    int moving = 0;
#pragma unroll 1
    for (int k = threadIdx.x; k < a.n_nodes; k += blockDim.x) {
        const wt_node_place &p = a.places[k];
        float v0[WT_MAX_NODE_PARAMS], v1[WT_MAX_NODE_PARAMS];
        if (!wt_ramps_step((wt_ramp *)(memory + p.ramps), p.n_params, p.logarithmic, v0, v1) && !all) continue;
        chain_design(k, a.plans + p.plan, v0, v1, memory + p.coeffs);
        moving = 1;
    }
    moving = __syncthreads_or(moving);
#ifdef CHAIN_IN_SHARED
    if (moving && threadIdx.x == 0) chain_changed = CHAIN_DESIGNED_ANEW;
#endif
    return moving;
}

// Take over a set of targets: every ramp whose target differs starts to move. `quanta` 0 jumps.
static __device__ __noinline__ int chain_aim(const chain_args &a, unsigned char *memory, int quanta)
{
    int moving = 0, first = 0;
    for (int k = 0; k < a.n_nodes; first += a.places[k++].n_params) {
        const wt_node_place &p = a.places[k];
        wt_ramp *ramps = (wt_ramp *)(memory + p.ramps);
#pragma unroll 1
        for (int i = threadIdx.x; i < p.n_params; i += blockDim.x) {
            if (ramps[i].target != a.targets[first + i]) wt_ramp_aim(&ramps[i], a.targets[first + i], quanta);
            moving |= ramps[i].left != 0;
        }
    }
    return __syncthreads_or(moving);
}

// Zero state, parameters at their targets, coefficients designed.
static __device__ __noinline__ void chain_rest(const chain_args &a, unsigned char *memory)
{
    int4 *words = (int4 *)memory;
    __syncthreads();
#pragma unroll 1
    for (unsigned long long i = threadIdx.x; i < a.instance_bytes / sizeof(int4); i += blockDim.x)
        words[i] = make_int4(0, 0, 0, 0);
    __syncthreads();
    chain_aim(a, memory, 0);
    chain_control(a, memory, true);
#ifdef CHAIN_IN_SHARED
    if (threadIdx.x == 0) chain_changed = CHAIN_RESTED;
    __syncthreads();
#endif
}
