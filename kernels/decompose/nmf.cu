// Factorisation of spectrograms, one iteration of one side after the other (dsp/decompose/nmf.c has the rules):
//
//   nmf_gram   a block has one number of b^T b, or one column's sum
//   nmf_side   a block has one row of a: v's row times b in tiles of WT_NMF_TILE columns, a lane a component and a warp
//              every eighth column; then the row's update
//   nmf_load   floats to doubles, v also turned;  nmf_store  back
//
// a.first + blockIdx.y is the signal. Sums are taken in another order than on the CPU, in double.
// Judge: the CPU's, 2e-6 of the peak.
#include "nmf_kernel.h"

enum { WARPS = WT_NMF_TILE / 32, PARTS = WT_NMF_MOST / 32 };

static __device__ double block_sum(double x)
{
    __shared__ double sums[WARPS];
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(0xffffffff, x, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < WARPS; w++) x += sums[w];
    return x;
}

extern "C" __global__ void __launch_bounds__(WT_NMF_TILE) nmf_gram(wt_nmf_side_args a)
{
    const bool divergence = a.solver == 2;
    const int i = divergence ? blockIdx.x : blockIdx.x / a.k, j = blockIdx.x % a.k;
    const long long signal = a.first + (long long)blockIdx.y;
    const double *b = a.b + signal * a.n * a.k;
    double sum = 0;
    for (int r = threadIdx.x; r < a.n; r += WT_NMF_TILE)
        sum += b[(long long)r * a.k + i] * (divergence ? 1 : b[(long long)r * a.k + j]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) a.gram[signal * a.k * a.k + blockIdx.x] = sum;
}

static __device__ __forceinline__ double divisor(double x)
{
    return x == 0 ? 1.1920928955078125e-07 : x; // float's epsilon
}

// The factors by which a row's numbers move, one after the other: a warp.
static __device__ void descend(int k, const double *gram, const double *product, double *row)
{
    const int lane = threadIdx.x % 32;
    for (int t = 0; t < k; t++) {
        double slope = 0;
        for (int i = lane; i < k; i += 32) slope += gram[t * k + i] * row[i];
        for (int d = 16; d; d /= 2) slope += __shfl_xor_sync(0xffffffff, slope, d);
        if (lane == 0 && gram[t * k + t] != 0) row[t] = fmax(row[t] - (slope - product[t]) / gram[t * k + t], 0.0);
        __syncwarp();
    }
}

static __device__ void multiply(const wt_nmf_side_args &a, const double *gram, const double *product, double *row)
{
    const int t = threadIdx.x;
    double next = 0;
    if (t < a.k) {
        double by = a.solver == 2 ? gram[t] : 0;
        for (int i = 0; i < a.k && a.solver != 2; i++) by += row[i] * gram[i * a.k + t];
        next = row[t] * (product[t] / divisor(by));
    }
    __syncthreads();
    if (t < a.k) row[t] = next;
}

extern "C" __global__ void __launch_bounds__(WT_NMF_TILE) nmf_side(wt_nmf_side_args a)
{
    __shared__ double row[WT_NMF_MOST], product[WT_NMF_MOST], tile[WT_NMF_TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = a.k;
    const long long signal = a.first + (long long)blockIdx.y;
    const double *v = a.v + (signal * a.m + blockIdx.x) * a.n, *b = a.b + signal * a.n * k;
    const double *gram = a.gram + signal * k * k;
    double *out = a.a + (signal * a.m + blockIdx.x) * k;
    double part[PARTS] = {};
    if (threadIdx.x < k) row[threadIdx.x] = out[threadIdx.x], product[threadIdx.x] = 0;
    __syncthreads();
    for (int begin = 0; begin < a.n; begin += WT_NMF_TILE) {
        const int n = begin + threadIdx.x;
        double value = n < a.n ? v[n] : 0;
        if (a.solver == 2 && n < a.n) {
            double sum = 0;
            for (int t = 0; t < k; t++) sum += row[t] * b[(long long)n * k + t];
            value /= fmax(sum, 1.1920928955078125e-07);
        }
        tile[threadIdx.x] = value;
        __syncthreads();
        for (int i = warp; i < WT_NMF_TILE && begin + i < a.n; i += WARPS) {
            const double *at = b + (long long)(begin + i) * k;
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                if (p * 32 + lane < k) part[p] += tile[i] * at[p * 32 + lane];
        }
        __syncthreads();
    }
    for (int w = 0; w < WARPS; w++) { // in order: the same sum every time
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            if (w == warp && p * 32 + lane < k) product[p * 32 + lane] += part[p];
        __syncthreads();
    }
    if (a.solver != 0)
        multiply(a, gram, product, row);
    else if (warp == 0)
        descend(k, gram, product, row);
    __syncthreads();
    if (threadIdx.x < k) {
        const double x = row[threadIdx.x];
        out[threadIdx.x] = a.clip && x < 2.2204460492503131e-16 ? 0 : x;
    }
}

// ---- from and to floats: 256 threads, one number each

extern "C" __global__ void __launch_bounds__(256) nmf_load(wt_nmf_turn_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, signal = a.first + blockIdx.y;
    const long long rows = a.rows, columns = a.columns, k = a.k;
    if (at < rows * columns) {
        const double x = a.v[signal * rows * columns + at];
        a.wide[signal * rows * columns + at] = x;
        a.turned[signal * rows * columns + at % columns * rows + at / columns] = x;
    }
    if (at < rows * k) a.wide_w[signal * rows * k + at] = a.w[signal * rows * k + at];
    if (at < columns * k) a.wide_h[signal * columns * k + at] = a.h[signal * columns * k + at % k * columns + at / k];
}

extern "C" __global__ void __launch_bounds__(256) nmf_store(wt_nmf_turn_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, signal = a.first + blockIdx.y;
    const long long rows = a.rows, columns = a.columns, k = a.k;
    if (at < rows * k) a.w[signal * rows * k + at] = (float)a.wide_w[signal * rows * k + at];
    if (at < columns * k)
        a.h[signal * columns * k + at % k * columns + at / k] = (float)a.wide_h[signal * columns * k + at];
}
