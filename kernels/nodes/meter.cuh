// meter: one warp a channel for filters and peaks, in pieces that end with a step; integer sums join the warps.
#pragma once
#include "biquad.cuh"
#include "meter_kernel.h"
#include "true_peak.cuh"

static __device__ __forceinline__ unsigned long long warp_sum(unsigned long long x)
{
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

// One channel of one piece. `y` holds the K-weighted piece in shared memory.
static __device__ void meter_channel(const meter_plan *p, meter_state *s, int c, const float *x, float *y, int n)
{
    const int lane = threadIdx.x & 31;
    unsigned long long weighted = 0, plain = 0;
    float peak = 0.0f, true_peak = 0.0f;
    biquad_channel(x, y, n, &p->shelf, s->shelf[c]);
    __syncwarp();
    biquad_channel(y, y, n, &p->highpass, s->highpass[c]);
    __syncwarp();
    const float *history = s->history[c];
    for (int i = lane; i < n; i += 32) {
        float tap[LOUDNESS_TAPS + 1];
        weighted += meter_power(y[i], p->weight[c]);
        plain += meter_power(x[i], 1.0f);
        peak = wt_max(fabsf(x[i]), peak);
        true_peak_load<LOUDNESS_TAPS>([&](int k) { return i >= k ? x[i - k] : history[LOUDNESS_TAPS + i - k]; }, tap);
        true_peak = wt_max(true_peak_highest(tap), true_peak);
    }
    weighted = warp_sum(weighted), plain = warp_sum(plain);
    float kept = 0.0f;
    if (lane < LOUDNESS_TAPS) { // the last samples, from this piece or from before it
        int from = n - LOUDNESS_TAPS + lane;
        kept = from >= 0 ? x[from] : history[LOUDNESS_TAPS + from];
    }
    __syncwarp();
    if (lane < LOUDNESS_TAPS) s->history[c][lane] = kept;
    atomicMax(&s->peak, __float_as_int(peak));
    atomicMax(&s->true_peak, __float_as_int(wt_max(true_peak, peak)));
    if (lane) return;
    atomicAdd(&s->weighted, weighted);
    atomicAdd(&s->plain, plain);
}

// Gated loudness, by the first warp.
static __device__ void meter_integrate(const meter_plan *p, const meter_state *s, float *readings)
{
    const int lane = threadIdx.x;
    unsigned long long power, count;
    meter_above(s, 0, lane, 32, &power, &count);
    float ungated = meter_mean_lufs(p, warp_sum(power), warp_sum(count));
    meter_above(s, meter_gate_bin(p, s, ungated), lane, 32, &power, &count);
    float gated = meter_mean_lufs(p, warp_sum(power), warp_sum(count));
    if (lane == 0) readings[METER_INTEGRATED_LUFS] = gated;
}

static __device__ void meter_process(const wt_node_io *io, const meter_plan *p, const void *, meter_state *s)
{
    for (int done = 0, n; done < io->n_frames; done += n) {
        const int left = p->step_frames - (int)((io->position + done) % p->step_frames);
        n = min(io->n_frames - done, left);
        for_each_channel_warp(io->out_channels, [&](int c) {
            float *y = io->scratch + threadIdx.x / 32 * WT_CHAIN_BLOCK;
            meter_channel(p, s, c, io->in[0] + c * io->stride + done, y, n);
        });
        __syncthreads();
        if (n < left) continue;
        if (threadIdx.x == 0) meter_end_step(p, s, io->readings);
        __syncthreads();
        if (threadIdx.x < 32) meter_integrate(p, s, io->readings);
        __syncthreads();
    }
    if (threadIdx.x == 0) meter_show_peaks(s, io->readings);
    if (io->out == io->in[0]) return;
    for_each_sample(io, [&](int c, int n) { io->out[c * io->stride + n] = io->in[0][c * io->stride + n]; });
}
