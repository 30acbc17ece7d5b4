// Products of any types that no faster kernel takes: a warp a row of W and up to MM_ROWS rows of x, its lanes over the
// columns; the weight is dequantised to float once for all of them. Grid: (groups of 8 rows of W over all parts, tiles
// of x). Bound by its scalar loads. Judge: the CPU.
#include "matmul.cuh"

#define MM_ROWS  8
#define MM_WARPS 8
#define ALL      0xffffffffu

// The sums of row r of a part with the tile's rows of x, in all lanes.
static __device__ void sums_of(const wt_mm_args &a, const wt_mm_part &p, const wt_mm_tile &t, int r, float *sums)
{
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++) sums[i] = 0;
    for (int k = threadIdx.x % 32; k < a.columns; k += 32) {
        const float w = weight_at(a, p, t.stack, r, k);
#pragma unroll
        for (int i = 0; i < MM_ROWS; i++)
            if (i < t.count) {
                const long long at = t.x + i * a.x_stride + k;
                sums[i] += w * (a.two_parts ? x_at(a, at) + x_at(a, at + a.x_low) : x_at(a, at));
            }
    }
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++)
        for (int step = 16; step; step /= 2) sums[i] += __shfl_xor_sync(ALL, sums[i], step);
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++)
        if (a.x_scales && i < t.count) sums[i] *= a.x_scales[t.first + i];
}

// The same of I8, in whole numbers.
static __device__ void exact_sums_of(const wt_mm_args &a, const wt_mm_part &p, const wt_mm_tile &t, int r, int *sums)
{
    const signed char *w = (const signed char *)p.w + t.stack * p.w_next + r * a.row_bytes;
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++) sums[i] = 0;
    for (int k = threadIdx.x % 32; k < a.columns; k += 32) {
        const int v = w[k];
#pragma unroll
        for (int i = 0; i < MM_ROWS; i++)
            if (i < t.count) sums[i] += v * (int)(signed char)a.x[t.x + i * a.x_stride + k];
    }
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++)
        for (int step = 16; step; step /= 2) sums[i] += __shfl_xor_sync(ALL, sums[i], step);
}

// Groups of rows are counted over the parts, each part's last one perhaps not full; a gated product has part 0's only.
static __device__ int part_of(const wt_mm_args &a, int group)
{
    int part = 0;
    for (int k = 1; k < a.n_parts && !a.gated; k++)
        if (group >= a.parts[k].first_tile) part = k;
    return part;
}

extern "C" __global__ void __launch_bounds__(32 * MM_WARPS) matmul_any(const __grid_constant__ wt_mm_args a)
{
    const int part = part_of(a, blockIdx.x), lane = threadIdx.x % 32;
    const int r = (blockIdx.x - a.parts[part].first_tile) * MM_WARPS + threadIdx.x / 32;
    wt_mm_tile t;
    if (r >= a.parts[part].rows || !wt_mm_find_tile(&a, blockIdx.y, MM_ROWS, &t)) return;
    float v[MM_ROWS], v1[MM_ROWS];
    sums_of(a, a.parts[part], t, r, v);
    if (a.gated) sums_of(a, a.parts[1], t, r, v1);
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++)
        if (lane == i && i < t.count) finish(a, part, t, i, r, v[i], a.gated ? v1[i] : 0);
}

extern "C" __global__ void __launch_bounds__(32 * MM_WARPS) matmul_any_i8(const __grid_constant__ wt_mm_args a)
{
    const int part = part_of(a, blockIdx.x), lane = threadIdx.x % 32;
    const wt_mm_part &p = a.parts[part];
    const int r = (blockIdx.x - p.first_tile) * MM_WARPS + threadIdx.x / 32;
    wt_mm_tile t;
    if (r >= p.rows || !wt_mm_find_tile(&a, blockIdx.y, MM_ROWS, &t)) return;
    int v[MM_ROWS], v1[MM_ROWS];
    exact_sums_of(a, p, t, r, v);
    if (a.gated) exact_sums_of(a, a.parts[1], t, r, v1);
#pragma unroll
    for (int i = 0; i < MM_ROWS; i++) {
        if (lane != i || i >= t.count) continue;
        if (a.y_type == WT_MM_I32) {
            store_sum(p, t, i, r, v[i]);
            continue;
        }
        const float s = a.x_scales ? a.x_scales[t.first + i] : 1;
        finish(a, part, t, i, r, (float)v[i] * (s * scale_at(a, p, t.stack, r, 0)),
               a.gated ? (float)v1[i] * (s * scale_at(a, a.parts[1], t.stack, r, 0)) : 0);
    }
}
