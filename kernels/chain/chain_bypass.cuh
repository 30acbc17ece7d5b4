// A node's bypass. All threads call chain_keep before the node, when any is bypassed, and chain_mix behind its barrier.
// Judge: the CPU's (chain_run.c).
#pragma once
#include "chain.cuh"

// Where the first input is kept: in the node's line, or in the spare buffer where nothing delays it.
struct chain_kept {
    const wt_node_place *p;
    const wt_bypass *bypass;
    float *line, *spare;
    int stride;
    __device__ __forceinline__ float *at(int c, int f, long long frame) const
    {
        const int size = p->latency + WT_CHAIN_BLOCK;
        return p->latency ? line + c * size + (int)(frame % size) : spare + c * stride + f;
    }
};

static __device__ __forceinline__ chain_kept chain_kept_of(const chain_args &a, const chain_room &room, int k)
{
    const wt_node_place *p = room.places + k;
    wt_bypass *bypass = (wt_bypass *)(room.memory + p->bypass);
    chain_kept kept = {p, bypass, (float *)(bypass + 1), shared + (chain_n_buffers(a) - 1) * chain_buffer_floats(a),
                       chain_stride(a)};
    return kept;
}

static __device__ __noinline__ void chain_keep(const chain_args &a, unsigned char *memory, int n, long long position,
                                               int k)
{
    const chain_kept kept = chain_kept_of(a, chain_room_of(a, memory), k);
    const float *in = shared + kept.p->input[0] * chain_buffer_floats(a);
    if (!wt_bypass_on(kept.bypass)) return;
    for_each_frame(kept.p->input_channels[0], n,
                   [&](int c, int f) { *kept.at(c, f, position + f) = in[c * kept.stride + f]; });
    __syncthreads();
}

// What is heard of it: a channel of the output is that of the input with the same number, modulo how many there are.
static __device__ __noinline__ void chain_mix(const chain_args &a, unsigned char *memory, int n, long long position,
                                              int k)
{
    const chain_kept kept = chain_kept_of(a, chain_room_of(a, memory), k);
    float *out = shared + kept.p->output * chain_buffer_floats(a);
    if (kept.bypass->from == 0.0f && kept.bypass->to == 0.0f) return;
    for_each_frame(kept.p->output_channels, n, [&](int c, int f) {
        const float dry = *kept.at(c % kept.p->input_channels[0], f, position + f + WT_CHAIN_BLOCK), // latency earlier
            share = wt_bypass_share(kept.bypass, (int)((position + f) & (WT_QUANTUM - 1)));
        float *y = out + c * kept.stride + f;
        *y = share < 1.0f ? *y + share * (dry - *y) : dry;
    });
    __syncthreads();
}
