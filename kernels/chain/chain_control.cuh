// Parameters, bypasses and reset of an instance, for the kernels that run a composed chain. The text before it defines
//   chain_design(node, plan, v0, v1, coeffs)                     coefficients of one node
#pragma once

// Control point: one thread a node steps its ramps and designs its coefficients. Returns 1 while anything moves. What
// it says of bypassed nodes is thread 0's to read until the next barrier.
// With `all` every node is designed, from ramps that just jumped.
static __device__ __noinline__ int chain_control(const chain_args &a, unsigned char *memory, bool all)
{
    int moving = 0, designed = 0, bypassed = 0;
#pragma unroll 1
    for (int k = threadIdx.x; k < a.n_nodes; k += blockDim.x) {
        const wt_node_place &p = a.places[k];
        wt_bypass *bypass = (wt_bypass *)(memory + p.bypass);
        moving |= wt_bypass_step(bypass, p.latency, a.ramp_quanta);
        bypassed |= wt_bypass_on(bypass);
        float v0[WT_MAX_NODE_PARAMS], v1[WT_MAX_NODE_PARAMS];
        if (!wt_ramps_step((wt_ramp *)(memory + p.ramps), p.n_params, p.logarithmic, v0, v1) && !all) continue;
        chain_design(k, a.plans + p.plan, v0, v1, memory + p.coeffs);
        designed = 1;
    }
    designed = __syncthreads_or(designed);
    moving = __syncthreads_or(moving);
    bypassed = __syncthreads_or(bypassed);
    if (threadIdx.x == 0) ((wt_instance *)memory)->bypassed = bypassed;
#ifdef CHAIN_IN_SHARED
    if (designed && threadIdx.x == 0) chain_changed = CHAIN_DESIGNED_ANEW;
#endif
    return moving | designed;
}

// Take over a set of targets: every ramp whose target differs starts to move. `quanta` 0 jumps.
static __device__ __noinline__ int chain_aim(const chain_args &a, unsigned char *memory, int quanta)
{
    int moving = 0, first = 0;
    for (int k = 0; k < a.n_nodes; first += wt_place_targets(&a.places[k++])) {
        const wt_node_place &p = a.places[k];
        wt_bypass *bypass = (wt_bypass *)(memory + p.bypass);
#pragma unroll 1
        for (int i = threadIdx.x; i < wt_place_targets(&p); i += blockDim.x) {
            const float target = a.targets[first + i];
            if (i == p.n_params) {
                if (quanta == 0) wt_bypass_rest(bypass, target, p.latency);
                moving |= wt_bypass_aim(bypass, target);
                continue;
            }
            wt_ramp *ramp = (wt_ramp *)(memory + p.ramps) + i;
            if (ramp->target != target) wt_ramp_aim(ramp, target, quanta);
            moving |= ramp->left != 0;
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
