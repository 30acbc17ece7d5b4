// limiter: one thread a sample for peaks, the sliding maximum and output, one warp for release and sums. What a stereo
// block of 64 frames waits for is its barriers and its longest chain of shuffles, so both are kept few.
#pragma once
#include "dynamics.cuh"
#include "limiter_kernel.h"
#include "true_peak.cuh"

// Running sums over the warp's lanes of F values each, in place, on top of `before`.
template <int F>
static __device__ __forceinline__ void limiter_running_sum(unsigned long long (&x)[F], unsigned long long before)
{
    for (int i = 1; i < F; i++) x[i] += x[i - 1];
    unsigned long long sum = x[F - 1];
    for (int d = 1; d < 32; d *= 2) sum += shift_up(sum, d, 0ull);
    before += sum - x[F - 1];
    for (int i = 0; i < F; i++) x[i] += before;
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
#pragma unroll 1 // from the last warp down: the first ones have samples
    for (int n = blockDim.x - 1 - threadIdx.x; n < before; n += blockDim.x)
        line[n] = s->need[(int)((io->position - before + n) & mask)];
#pragma unroll 1
    for (int n = (threadIdx.x + blockDim.x / 2) % blockDim.x; n < io->n_frames; n += blockDim.x) line[before + n] = 0.0f;
    __syncthreads();
    for_each_sample(io, [&](int c, int n) {
        const float *ring = audio + c * p->ring_frames;
        const int now = (int)((io->position + n) & mask);
        float x[TRUE_PEAK_TAPS + 1];
        if (now < TRUE_PEAK_TAPS) true_peak_load<TRUE_PEAK_TAPS>([&](int k) { return ring[(now - k) & mask]; }, x);
        else true_peak_load<TRUE_PEAK_TAPS>([&](int k) { return ring[now - k]; }, x); // one address, short offsets
        const float need = limiter_need(k, true_peak_top_of(x));
        atomicMax((int *)&line[before + n], __float_as_int(need)); // floats >= 0 order like their bits
    });
    __syncthreads();
#pragma unroll 1
    for (int n = threadIdx.x; n < io->n_frames; n += blockDim.x)
        s->need[(int)((io->position + n) & mask)] = line[before + n];
}

// highest[i] is the highest of line[i .. i + window - 1]. A pass joins eight neighbours of the one before, the last
// as many as the window holds, and one that ends with it.
static __device__ void limiter_sliding_maximum(float *line, float *other, int window, int n_frames, float *highest)
{
    int reach = 1;
    for (; 8 * reach < window; reach *= 8) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n_frames + window - 8 * reach; i += blockDim.x) {
            float most = line[i];
#pragma unroll
            for (int k = 1; k < 8; k++) most = wt_max(line[i + k * reach], most);
            other[i] = most;
        }
        __syncthreads();
        float *swap = line;
        line = other, other = swap;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < n_frames; i += blockDim.x) {
        float most = line[i + window - reach];
#pragma unroll
        for (int k = 0; k < 7; k++) most = wt_max(line[i + min(k * reach, window - reach)], most);
        highest[i] = most;
    }
    __syncthreads();
}

// Needs to gains in place, by the first warp, two neighbouring frames a lane.
static __device__ void limiter_find_gain(const wt_node_io *io, const limiter_plan *p, const limiter_coeffs *k,
                                         limiter_state *s, float *gain)
{
    enum { F = 2 };
    const int mask = p->ring_frames - 1;
    unsigned long long *ring1 = (unsigned long long *)((char *)s + p->sums1),
                       *ring2 = (unsigned long long *)((char *)s + p->sums2), before1 = s->sum1, before2 = s->sum2;
    float y = s->y;
#pragma unroll 1
    for (int first = 0; first < io->n_frames; first += 32 * F) {
        const int n = first + (int)threadIdx.x * F, last = min(31, (io->n_frames - 1 - first) / F);
        const int place = (int)((io->position + n) & mask);
        float x[F];
        unsigned long long sum[F], more[F];
        for (int i = 0; i < F; i++) x[i] = n + i < io->n_frames ? gain[n + i] : 0.0f;
        float released = before_branch<F>(x, k->release, y);
        for (int i = 0; i < F; i++) {
            if (n + i < io->n_frames) released = wt_max(x[i], k->release * released + (1.0f - k->release) * x[i]);
            sum[i] = n + i < io->n_frames ? limiter_attenuation(released) : 0u;
        }
        limiter_running_sum(sum, before1);
        for (int i = 0; i < F; i++)
            if (n + i < io->n_frames) ring1[(place + i) & mask] = sum[i];
        __syncwarp();
        for (int i = 0; i < F; i++)
            more[i] = n + i < io->n_frames ? sum[i] - ring1[(place + i - p->box1) & mask] : 0ull;
        limiter_running_sum(more, before2);
        for (int i = 0; i < F; i++)
            if (n + i < io->n_frames) ring2[(place + i) & mask] = more[i];
        __syncwarp();
        for (int i = 0; i < F; i++)
            if (n + i < io->n_frames)
                gain[n + i] = 1.0f - (float)(long long)(more[i] - ring2[(place + i - p->box2) & mask]) * p->scale;
        y = __shfl_sync(~0u, released, last);
        before1 = __shfl_sync(~0u, sum[F - 1], 31);
        before2 = __shfl_sync(~0u, more[F - 1], 31);
    }
    __syncwarp();
    if (threadIdx.x) return;
    s->y = y;
    s->sum1 = before1, s->sum2 = before2;
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
    if (threadIdx.x == blockDim.x - 32) io->readings[0] = -WT_DB_PER_OCTAVE * wt_log2(gain[io->n_frames - 1]);
    for_each_sample(io, [&](int c, int n) {
        int at = (int)((io->position + n - p->latency) & (p->ring_frames - 1));
        io->out[c * io->stride + n] = audio[c * p->ring_frames + at] * gain[n];
    });
}
