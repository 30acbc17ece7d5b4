// pitch: a thread takes four neighbouring lags, so that one load serves four products; the first warp adds up, picks
// and shows. Scratch: the frame, one word in 32 left out so that lanes four apart meet no bank twice, d and d
// normalised. Judge: the CPU's, 0.1 cents.
#pragma once
#include "chain.cuh"
#include "node_pitch_kernel.h"

static __device__ __forceinline__ int pitch_at(int i) { return i + (i >> 5); }

static __device__ void pitch_differences(const node_pitch_plan *p, const float *x, float *d)
{
    for (int first = threadIdx.x * PITCH_STEP; first < p->last + 2; first += blockDim.x * PITCH_STEP) {
        float y[2 * PITCH_STEP], sum[PITCH_STEP] = {};
#pragma unroll
        for (int i = 0; i < PITCH_STEP; i++) y[i] = x[pitch_at(first + i)];
        for (int n = 0; n < p->width; n += PITCH_STEP) { // width is a multiple of it
#pragma unroll
            for (int i = 0; i < PITCH_STEP; i++) y[PITCH_STEP + i] = x[pitch_at(n + PITCH_STEP + first + i)];
#pragma unroll
            for (int i = 0; i < PITCH_STEP; i++) {
                const float here = x[pitch_at(n + i)];
#pragma unroll
                for (int k = 0; k < PITCH_STEP; k++) sum[k] = fmaf(here - y[i + k], here - y[i + k], sum[k]);
            }
#pragma unroll
            for (int i = 0; i < PITCH_STEP; i++) y[i] = y[PITCH_STEP + i];
        }
#pragma unroll
        for (int k = 0; k < PITCH_STEP; k++) d[first + k] = sum[k];
    }
}

// The first warp: sums of d, and d over their mean.
static __device__ void pitch_normalise(const node_pitch_plan *p, const float *d, float *normal)
{
    const int lane = threadIdx.x;
    float before = 0.0f;
    for (int base = 1; base < p->last + 2; base += 32) {
        const int lag = base + lane;
        const float x = lag < p->last + 2 ? d[lag] : 0.0f;
        float sum = x;
        for (int s = 1; s < 32; s *= 2) {
            const float y = __shfl_up_sync(~0u, sum, s);
            if (lane >= s) sum += y;
        }
        if (lag < p->last + 2) normal[lag] = pitch_normal(x, before + sum, lag);
        before += __shfl_sync(~0u, sum, 31);
    }
    __syncwarp();
}

// The first warp: the first trough below the threshold, else the lowest, else 0.
static __device__ int pitch_pick(const node_pitch_plan *p, const float *normal)
{
    float lowest = 3e38f;
    int at = 0;
    for (int base = p->first; base <= p->last; base += 32) {
        const int lag = base + threadIdx.x;
        const bool trough = lag <= p->last && pitch_is_trough(normal, lag);
        const unsigned low = __ballot_sync(~0u, trough && normal[lag] < p->threshold);
        if (low) return base + __ffs(low) - 1;
        if (trough && normal[lag] < lowest) lowest = normal[lag], at = lag;
    }
    for (int s = 16; s; s /= 2) {
        const float other = __shfl_xor_sync(~0u, lowest, s);
        const int other_at = __shfl_xor_sync(~0u, at, s);
        if (other < lowest || (other == lowest && other_at < at)) lowest = other, at = other_at;
    }
    return at;
}

// The sound, and its mean of all channels into the ring.
static __device__ void node_pitch_process(const wt_node_io *io, const node_pitch_plan *p, const node_pitch_coeffs *,
                                          node_pitch_state *s)
{
    float *ring = (float *)(s + 1);
    for (int f = threadIdx.x; f < io->n_frames; f += blockDim.x) {
        float sum = 0.0f;
        for (int c = 0; c < p->channels; c++) {
            const float y = io->in[0][c * io->stride + f];
            io->out[c * io->stride + f] = y;
            sum += y;
        }
        ring[(io->position + f) & (p->ring - 1)] = sum / (float)p->channels;
    }
}

// The last frame that has ended, unless it has been looked at. The ring holds a block more than a frame.
static __device__ void node_pitch_after(const wt_node_io *io, const node_pitch_plan *p, const node_pitch_coeffs *k,
                                        node_pitch_state *s)
{
    const long long end = io->position / p->hop * p->hop;
    const int mask = p->ring - 1, room = pitch_at(p->frame + p->lags) + 1;
    float *ring = (float *)(s + 1), *x = io->scratch, *d = x + room, *normal = d + p->lags;
    if (end <= s->shown || end <= io->position - WT_CHAIN_BLOCK) return;
    for (int i = threadIdx.x; i < p->frame + p->lags; i += blockDim.x)
        x[pitch_at(i)] = i < p->frame ? ring[(end - p->frame + i) & mask] : 0.0f;
    __syncthreads();
    pitch_differences(p, x, d);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    pitch_normalise(p, d, normal);
    const int lag = pitch_pick(p, normal);
    if (threadIdx.x) return;
    pitch_show(p, k, d, normal, lag, io->readings);
    s->shown = end;
}
