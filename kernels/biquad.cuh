// biquad: one warp a channel, F neighbouring frames a lane. Each lane runs its frames from rest, a scan over the lanes
// joins their end states (by the step's powers F, 2F, ... 16F), and each lane runs again from its true state.
#pragma once
#include "biquad_kernel.h"

template <int F>
static __device__ void biquad_scan(const float *x, float *y, int n, const biquad_coeffs *k, float *state)
{
    const int lane = threadIdx.x & 31, first = lane * F, log2_f = F == 1 ? 0 : F == 2 ? 1 : F == 4 ? 2 : 3;
    float in[F], s0 = lane == 0 ? state[0] : 0.0f, s1 = lane == 0 ? state[1] : 0.0f;
    float begin0 = s0, begin1 = s1;
    for (int i = 0; i < F; i++) {
        in[i] = first + i < n ? x[first + i] : 0.0f;
        float t = s0 + (k->a[0] * s0 + k->a[1] * s1 + k->b[0] * in[i]);
        s1 += k->a[2] * s0 + k->a[3] * s1 + k->b[1] * in[i];
        s0 = t;
    }
    for (int d = 0; d < 5; d++) {
        float e0 = __shfl_up_sync(~0u, s0, 1 << d), e1 = __shfl_up_sync(~0u, s1, 1 << d);
        const float *p = k->power[log2_f + d];
        if (lane >= 1 << d) s0 += e0 + (p[0] * e0 + p[1] * e1), s1 += e1 + (p[2] * e0 + p[3] * e1);
    }
    float e0 = __shfl_up_sync(~0u, s0, 1), e1 = __shfl_up_sync(~0u, s1, 1);
    s0 = lane == 0 ? begin0 : e0, s1 = lane == 0 ? begin1 : e1;
    for (int i = 0; i < F && first + i < n; i++) {
        y[first + i] = k->c[0] * s0 + k->c[1] * s1 + k->d * in[i];
        float t = s0 + (k->a[0] * s0 + k->a[1] * s1 + k->b[0] * in[i]);
        s1 += k->a[2] * s0 + k->a[3] * s1 + k->b[1] * in[i];
        s0 = t;
    }
    __syncwarp();
    if (lane == (n - 1) / F) state[0] = s0, state[1] = s1;
}

// One channel of up to CHAIN_MOST_FRAMES frames by the calling warp. Where blocks are short one form serves
// all lengths.
static __device__ void biquad_channel(const float *x, float *y, int n, const biquad_coeffs *k, float *state)
{
    if (CHAIN_MOST_FRAMES <= 64) biquad_scan<2>(x, y, n, k, state);
    else if (n <= 32) biquad_scan<1>(x, y, n, k, state);
    else if (n <= 64) biquad_scan<2>(x, y, n, k, state);
    else if (n <= 128) biquad_scan<4>(x, y, n, k, state);
    else biquad_scan<8>(x, y, n, k, state);
}

static __device__ void biquad_process(const wt_node_io *io, const biquad_plan *, const biquad_coeffs *k, biquad_state *s)
{
    for_each_channel_warp(io->out_channels, [&](int c) {
        biquad_channel(io->in[0] + c * io->stride, io->out + c * io->stride, io->n_frames, k, s->s[c]);
    });
}
