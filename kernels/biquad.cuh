// biquad: one warp a channel, F neighbouring frames a lane. Each lane runs its frames from rest, a scan over the lanes
// joins their end states (by the step's powers F, 2F, ... 16F), and each lane runs again from its true state. Sections
// that follow each other pass their frames on in registers.
#pragma once
#include "chain.cuh"
#include "biquad_kernel.h"

// One section over a lane's frames, in place; those from n on are of no account.
template <int F>
static __device__ __forceinline__ void biquad_scan(float (&x)[F], int n, const biquad_coeffs *k, float *state)
{
    const int lane = threadIdx.x & 31, first = lane * F, log2_f = F == 1 ? 0 : F == 2 ? 1 : F == 4 ? 2 : 3;
    const float4 a = *(const float4 *)k->a, bc = *(const float4 *)k->b;
    const float d = k->d, begin0 = lane == 0 ? state[0] : 0.0f, begin1 = lane == 0 ? state[1] : 0.0f;
    float s0 = begin0, s1 = begin1;
    const auto step = [&](float in) {
        const float t = s0 + (a.x * s0 + a.y * s1 + bc.x * in);
        s1 += a.z * s0 + a.w * s1 + bc.y * in;
        s0 = t;
    };
#pragma unroll
    for (int i = 0; i < F; i++) step(x[i]);
#pragma unroll
    for (int j = 0; j < 5; j++) {
        const float4 p = *(const float4 *)k->power[log2_f + j];
        const float e0 = shift_up(s0, 1 << j, 0.0f), e1 = shift_up(s1, 1 << j, 0.0f);
        s0 += e0 + (p.x * e0 + p.y * e1), s1 += e1 + (p.z * e0 + p.w * e1);
    }
    const float e0 = __shfl_up_sync(~0u, s0, 1), e1 = __shfl_up_sync(~0u, s1, 1);
    s0 = lane == 0 ? begin0 : e0, s1 = lane == 0 ? begin1 : e1;
#pragma unroll
    for (int i = 0; i < F; i++) {
        if (first + i >= n) continue;
        const float y = bc.z * s0 + bc.w * s1 + d * x[i];
        step(x[i]);
        x[i] = y;
    }
    __syncwarp();
    if (lane == (n - 1) / F) state[0] = s0, state[1] = s1;
}

// Sections in a line over one channel; section(i) sets the coefficients and the state of section i.
template <int F, class Section>
static __device__ void biquad_sections(const float *x, float *y, int n, int count, Section section)
{
    const int first = (threadIdx.x & 31) * F;
    float at[F];
#pragma unroll
    for (int i = 0; i < F; i++) at[i] = first + i < n ? x[first + i] : 0.0f;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const biquad_coeffs *k;
        float *state;
        section(i, &k, &state);
        biquad_scan<F>(at, n, k, state);
    }
#pragma unroll
    for (int i = 0; i < F; i++)
        if (first + i < n) y[first + i] = at[i];
    __syncwarp();
}

// One channel of up to CHAIN_MOST_FRAMES frames by the calling warp. Where blocks are short one form serves
// all lengths.
template <class Section>
static __device__ __forceinline__ void biquad_cascade(const float *x, float *y, int n, int count, Section section)
{
    if (CHAIN_MOST_FRAMES <= 64) biquad_sections<2>(x, y, n, count, section);
    else if (n <= 32) biquad_sections<1>(x, y, n, count, section);
    else if (n <= 64) biquad_sections<2>(x, y, n, count, section);
    else if (n <= 128) biquad_sections<4>(x, y, n, count, section);
    else biquad_sections<8>(x, y, n, count, section);
}

static __device__ void biquad_channel(const float *x, float *y, int n, const biquad_coeffs *coeffs, float *own)
{
    biquad_cascade(x, y, n, 1, [&](int, const biquad_coeffs **k, float **state) { *k = coeffs, *state = own; });
}

// Nodes `node` .. `node` + count - 1, each working in place on what the one before left.
static __device__ void biquad_line(const chain_args &a, const chain_room &room, int n, int node, int count)
{
    const wt_node_place *p = room.places + node;
    const int buffer_floats = a.buffer_channels * a.block_frames;
    const float *in = shared + p->input[0] * buffer_floats;
    float *out = shared + p->output * buffer_floats;
    for_each_channel_warp(p->output_channels, [&](int c) {
        biquad_cascade(in + c * a.block_frames, out + c * a.block_frames, n, count,
                       [&](int i, const biquad_coeffs **k, float **state) {
                           *k = (const biquad_coeffs *)(room.memory + p[i].coeffs);
                           *state = ((biquad_state *)(room.memory + p[i].state))->s[c];
                       });
    });
}
