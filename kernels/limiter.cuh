// limiter: one thread a sample for peaks, the sliding maximum and output, one warp for release and sums.
#pragma once
#include "dynamics.cuh"
#include "limiter_kernel.h"
#include "true_peak.cuh"

static __device__ __forceinline__ unsigned long long scan_sum(unsigned long long x)
{
    const int lane = threadIdx.x & 31;
    for (int d = 1; d < 32; d *= 2) {
        unsigned long long before = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += before;
    }
    return x;
}

// Keep the block, then find the need of every frame behind `before` floats of history in `line`.
static __device__ void limiter_find_need(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                         limiter_state *s, float *line)
{
    const int mask = p->ring_frames - 1, before = p->window - 1;
    float *audio = (float *)((char *)s + p->audio);
    for_each_sample(io, [&](int c, int n) {
        audio[c * p->ring_frames + (int)((io->position + n) & mask)] = io->in[0][c * io->stride + n];
    });
#pragma unroll 1
    for (int n = threadIdx.x; n < before; n += blockDim.x) line[n] = s->need[(int)((io->position - before + n) & mask)];
#pragma unroll 1
    for (int n = threadIdx.x; n < io->n_frames; n += blockDim.x) line[before + n] = 0.0f;
    __syncthreads();
    for_each_sample(io, [&](int c, int n) {
        float x[TRUE_PEAK_TAPS + 1];
        true_peak_load<TRUE_PEAK_TAPS>(
            [&](int k) { return audio[c * p->ring_frames + (int)((io->position + n - k) & mask)]; }, x);
        atomicMax((int *)&line[before + n], __float_as_int(true_peak_top_of(x))); // floats >= 0 order like their bits
    });
    __syncthreads();
#pragma unroll 1
    for (int n = threadIdx.x; n < io->n_frames; n += blockDim.x)
        s->need[(int)((io->position + n) & mask)] = line[before + n] = limiter_need(k, line[before + n]);
    __syncthreads();
}

static __device__ void limiter_sliding_maximum(float *line, float *other, int window, int n_frames, float *highest)
{
    int reach = 1;
    for (; 2 * reach <= window; reach *= 2) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n_frames + window - 2 * reach; i += blockDim.x)
            other[i] = wt_max(line[i], line[i + reach]);
        __syncthreads();
        float *swap = line;
        line = other, other = swap;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < n_frames; i += blockDim.x) highest[i] = wt_max(line[i], line[i + window - reach]);
    __syncthreads();
}

// Needs to gains in place, by the first warp.
static __device__ void limiter_find_gain(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                         limiter_state *s, float *gain)
{
    const int lane = threadIdx.x, mask = p->ring_frames - 1;
    unsigned long long *ring1 = (unsigned long long *)((char *)s + p->sums1),
                       *ring2 = (unsigned long long *)((char *)s + p->sums2), before1 = s->sum1, before2 = s->sum2;
    float y = s->y;
    for (int first = 0; first < io->n_frames; first += 32) {
        const int n = first + lane, last = min(31, io->n_frames - 1 - first);
        const bool active = n < io->n_frames;
        const long long frame = io->position + n;
        const float need = active ? gain[n] : 0.0f;
        const float earlier = before_branch<1>(&need, k->release, y);
        const float released = wt_max(need, k->release * earlier + (1.0f - k->release) * need);
        unsigned long long sum1 = before1 + scan_sum(active ? limiter_attenuation(released) : 0u);
        if (active) ring1[frame & mask] = sum1;
        __syncwarp();
        unsigned long long sum2 = before2 + scan_sum(active ? sum1 - ring1[(frame - p->box1) & mask] : 0ull);
        if (active) ring2[frame & mask] = sum2;
        __syncwarp();
        if (active) gain[n] = 1.0f - (float)(long long)(sum2 - ring2[(frame - p->box2) & mask]) * p->scale;
        y = __shfl_sync(~0u, released, last);
        before1 = __shfl_sync(~0u, sum1, last);
        before2 = __shfl_sync(~0u, sum2, last);
    }
    __syncwarp();
    if (lane) return;
    s->y = y;
    s->sum1 = before1, s->sum2 = before2;
    io->readings[0] = -WT_DB_PER_OCTAVE * wt_log2(gain[io->n_frames - 1]);
}

static __device__ void limiter_process(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                       limiter_state *s)
{
    float *gain = io->scratch, *line = gain + WT_CHAIN_BLOCK, *other = line + p->window + WT_CHAIN_BLOCK;
    const float *audio = (const float *)((char *)s + p->audio);
    limiter_find_need(io, p, k, s, line);
    limiter_sliding_maximum(line, other, p->window, io->n_frames, gain);
    if (threadIdx.x < 32) limiter_find_gain(io, p, k, s, gain);
    __syncthreads();
    for_each_sample(io, [&](int c, int n) {
        int at = (int)((io->position + n - p->latency) & (p->ring_frames - 1));
        io->out[c * io->stride + n] = audio[c * p->ring_frames + at] * gain[n];
    });
}
