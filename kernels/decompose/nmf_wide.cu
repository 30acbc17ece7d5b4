// Factorisation with more components than a block's shared memory holds (kernels/decompose/nmf.cu): rows of both sides,
// their products and b^T b lie in memory.
//
//   nmf_wide_multiply   a block a square of a product, by squares of both matrices
//   nmf_wide_descend    a block a row: its numbers, one after the other
//   nmf_wide_scale      a thread a number
//
// Sums in double, always in the same order. Judge: the CPU's, 2e-6 of the peak.
#include "nmf_wide_kernel.h"

#define EPSILON 1.1920928955078125e-07 // float's

enum { SIDE = WT_NMF_SQUARE, THREADS = SIDE * SIDE, WARPS = THREADS / 32 };

extern "C" __global__ void __launch_bounds__(THREADS) nmf_wide_multiply(wt_nmf_multiply_args a)
{
    __shared__ double left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    const int across = (a.columns + SIDE - 1) / SIDE, x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const long long i = (long long)(blockIdx.x / across) * SIDE + y, j = (long long)(blockIdx.x % across) * SIDE + x;
    double sum = 0;
    for (int first = 0; first < a.depth; first += SIDE) {
        const bool in_left = i < a.rows && first + x < a.depth, in_right = j < a.columns && first + y < a.depth;
        left[y][x] = in_left ? a.left[i * a.left_row + (first + x) * a.left_step] : 0;
        right[y][x] = in_right ? a.right[(first + y) * a.right_step + j * a.right_column] : 0;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < SIDE; r++) sum += left[y][r] * right[r][x];
        __syncthreads();
    }
    if (i >= a.rows || j >= a.columns) return;
    const long long at = i * a.columns + j;
    a.out[at] = a.over ? a.over[at] / fmax(sum, EPSILON) : sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) nmf_wide_descend(wt_nmf_update_args a)
{
    __shared__ double sums[WARPS];
    const double *product = a.product + (long long)blockIdx.x * a.k;
    double *row = a.a + (long long)blockIdx.x * a.k;
    for (int t = 0; t < a.k; t++) {
        const double *gram = a.by + (long long)t * a.k;
        double slope = 0;
        for (int i = threadIdx.x; i < a.k; i += THREADS) slope += gram[i] * row[i];
        for (int d = 16; d; d /= 2) slope += __shfl_xor_sync(0xffffffff, slope, d);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = slope;
        __syncthreads();
        if (threadIdx.x == 0 && gram[t] != 0) {
            for (int w = 1; w < WARPS; w++) slope += sums[w];
            row[t] = fmax(row[t] - (slope - product[t]) / gram[t], 0.0);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) nmf_wide_scale(wt_nmf_update_args a)
{
    const long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (at >= a.m * a.k) return;
    const double by = a.by[a.shared ? at % a.k : at], x = a.a[at] * (a.product[at] / (by == 0 ? EPSILON : by));
    a.a[at] = a.clip && x < 2.2204460492503131e-16 ? 0 : x;
}
