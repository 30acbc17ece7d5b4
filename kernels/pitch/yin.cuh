// YIN's difference function on a thread block, for kernels/pitch/yin.cu and kernels/pitch/pyin.cu.
//
// A block takes `tile` frames of one signal. Its samples lie in shared memory as doubles; products of floats are exact.
// As on the CPU, each whole hop's products are made once for all frames over it ("pieces"), then each frame's tail.
// A thread makes eight neighbouring lags of a piece, eight samples a step: 64 products for 8 + 8 loads. Steps lie on a
// grid of eight samples, so that loads are pairs; what of a step is outside its piece counts as zero. Two doubles of
// padding in ten spread the threads' loads over the banks.
// A block's array: (span + margin) * 10 / 8 samples, pieces * lags sums, in doubles.
#ifndef WT_YIN_CUH
#define WT_YIN_CUH
#include "places.cuh"
#include "yin_kernel.h"

enum { YIN_STEP = 8, YIN_THREADS = 256, YIN_WARPS = YIN_THREADS / 32 };

struct yin_block {
    double *samples; // padded: sample i at yin_at(i)
    double *sums;    // [2 tile + n_shared - 1][lags]
    int lags;        // max_period + 1, up to a whole step
    int span;        // samples of the tile
};

__device__ __forceinline__ int yin_at(int i) { return i + (i >> 3) * 2; }

__device__ __forceinline__ float yin_sample(const wt_yin_args &a, const float *pcm, long long at)
{
    const long long n = a.n_samples;
    if (at >= 0 && at < n) return pcm[at];
    const long long outside = at < 0 ? -at : at - n + 1;
    const float edge = pcm[at < 0 ? 0 : n - 1];
    if (a.pad == 0) return 0;
    if (a.pad == 4) return outside < a.margin ? edge * (float)(a.margin - outside) / (float)a.margin : 0;
    if (a.pad == 3 || n == 1) return edge;
    const int symmetric = a.pad == 2;
    const long long period = symmetric ? 2 * n : 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return pcm[at < n ? at : period - at - symmetric];
}

__device__ __forceinline__ yin_block yin_load(const wt_yin_args &a, double *shared, int signal, long long first_frame)
{
    yin_block b;
    b.lags = (a.max_period + YIN_STEP) / YIN_STEP * YIN_STEP;
    b.span = a.frame + (a.tile - 1) * a.hop;
    const int room = (b.span + b.lags + 3 * YIN_STEP) / YIN_STEP * YIN_STEP;
    b.samples = shared;
    b.sums = shared + yin_at(room);
    const float *pcm = a.pcm + signal * a.n_samples;
    const long long first = first_frame * a.hop - a.margin;
    for (int i = threadIdx.x; i < room; i += YIN_THREADS)
        b.samples[yin_at(i)] = i < b.span ? (double)yin_sample(a, pcm, first + i) : 0.0;
    __syncthreads();
    return b;
}

__device__ __forceinline__ void yin_read8(const double *samples, int at, int begin, int end, double *v)
{
    const double2 *from = (const double2 *)(samples + yin_at(at));
#pragma unroll
    for (int i = 0; i < YIN_STEP; i += 2) {
        const double2 pair = from[i / 2];
        v[i] = pair.x, v[i + 1] = pair.y;
    }
    if (at >= begin && at + YIN_STEP <= end) return;
#pragma unroll
    for (int i = 0; i < YIN_STEP; i++)
        if (at + i < begin || at + i >= end) v[i] = 0;
}

// Sum over begin <= m < end, m + lag < limit of y(m) y(m + lag), for the eight lags from `lag`.
__device__ __forceinline__ void yin_products(const double *samples, int begin, int end, int limit, int lag,
                                             double *sums)
{
    double x[YIN_STEP], y[2 * YIN_STEP], acc[YIN_STEP] = {};
    int m = begin & ~(YIN_STEP - 1);
    yin_read8(samples, m + lag, 0, limit, y);
    for (; m < end; m += YIN_STEP) {
        yin_read8(samples, m, begin, end, x);
        yin_read8(samples, m + lag + YIN_STEP, 0, limit, y + YIN_STEP);
#pragma unroll
        for (int i = 0; i < YIN_STEP; i++)
#pragma unroll
            for (int k = 0; k < YIN_STEP; k++) acc[k] += x[i] * y[i + k];
#pragma unroll
        for (int i = 0; i < YIN_STEP; i++) y[i] = y[i + YIN_STEP];
    }
#pragma unroll
    for (int k = 0; k < YIN_STEP; k++) sums[k] = acc[k];
}

// All pieces: the hops, then the tails. A tail's lags end where the frame does, so its samples end sooner.
__device__ __forceinline__ void yin_correlate(const wt_yin_args &a, const yin_block &b)
{
    const int groups = b.lags / YIN_STEP, hops = a.n_shared ? a.tile + a.n_shared - 1 : 0;
    for (int unit = threadIdx.x; unit < (hops + a.tile) * groups; unit += YIN_THREADS) {
        const int piece = unit / groups, lag = unit % groups * YIN_STEP;
        double *sums = b.sums + piece * b.lags + lag;
        if (piece < hops) {
            yin_products(b.samples, piece * a.hop, (piece + 1) * a.hop, b.span + b.lags, lag, sums);
        } else {
            const int begin = (piece - hops) * a.hop, limit = begin + a.frame;
            const int end = limit - lag > begin ? limit - lag : begin;
            yin_products(b.samples, begin + a.n_shared * a.hop, end, limit, lag, sums);
        }
    }
    __syncthreads();
}

__device__ __forceinline__ double yin_scan(double v) // inclusive, over a warp
{
    for (int step = 1; step < 32; step *= 2) {
        const double before = __shfl_up_sync(0xffffffffu, v, step);
        if ((threadIdx.x & 31) >= step) v += before;
    }
    return v;
}

// One warp: the function of frame f of the tile, over its tail's sums; entry i is lag min_period + i. False when a
// sample of the frame is not finite.
__device__ __forceinline__ bool yin_function(const wt_yin_args &a, const yin_block &b, int f, double **function)
{
    const int lane = threadIdx.x & 31, hops = a.n_shared ? a.tile + a.n_shared - 1 : 0;
    double *sums = b.sums + (hops + f) * b.lags;
    for (int k = lane; k <= a.max_period; k += 32)
        for (int s = 0; s < a.n_shared; s++) sums[k] += b.sums[(f + s) * b.lags + k];
    __syncwarp();
    const double r0 = sums[0];
    double energy = 0, total = 0; // up to the last lag of the round before
    __syncwarp();
    for (int k0 = 1; k0 <= a.max_period; k0 += 32) {
        const int k = k0 + lane;
        const double y = b.samples[yin_at(f * a.hop + k - 1)];
        const double head = energy + yin_scan(y * y);
        double d = k <= a.max_period ? 2 * (r0 - sums[k]) - (k > 1 ? head : 0) : 0;
        const double mean = total + yin_scan(d);
        if (k <= a.max_period) sums[k] = d / (mean / k + 2.2250738585072014e-308);
        energy = __shfl_sync(0xffffffffu, head, 31);
        total = __shfl_sync(0xffffffffu, mean, 31);
    }
    __syncwarp();
    *function = sums + a.min_period;
    return isfinite(r0);
}

// Is entry i of n a trough? The first one's rule is strict on its right, having no left.
__device__ __forceinline__ bool yin_is_trough(const double *d, int i, int n)
{
    if (n < 2) return false;
    if (i == 0) return d[0] < d[1];
    return d[i] < d[i - 1] && (i + 1 == n || d[i] <= d[i + 1]);
}

__device__ __forceinline__ double yin_shift_at(const double *d, int i, int n)
{
    return i > 0 && i + 1 < n ? wt__yin_shift(d[i - 1], d[i], d[i + 1]) : 0;
}
#endif
