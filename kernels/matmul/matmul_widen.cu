// A matrix as 16-bit floats, its scales applied, for products of many rows of x. A thread has eight neighbours, which
// share a scale, of each of WT_MM_WIDEN_ROWS rows. Bound by reading and writing. Judge: the CPU, through the products.
#ifndef MM_W
#    define MM_W WT_MM_U4 // of 4 or 8 bits, eights of a row in whole words; -1 = of any type
#    define MM_X WT_MM_BF16
#endif
#include "matmul.cuh"

#include "matmul_unpack.cuh"

#define ROWS WT_MM_WIDEN_ROWS

// Eight weights of a row as they lie, with the row's part of the scales.
struct eight {
    unsigned words[2], zero;
    float scale;
};

static __device__ __forceinline__ eight load_eight(const wt_mm_args &a, const wt_mm_part &p, int r, int k)
{
    const unsigned char *row = p.w + r * a.row_bytes;
    const int group = a.scale_shift < 0 ? k / a.scale_columns : k >> a.scale_shift;
    const int scale_row = a.scale_rows == 1 ? r : r / a.scale_rows;
    eight e = {{0, 0}, 8, 1};
    if (VECTOR == 32) {
        e.words[0] = *(const unsigned *)(row + k / 2);
        if (MM_W == WT_MM_U4 && p.zeros) e.zero = p.zeros[(long long)r * a.scale_stride + group];
    } else {
        const uint2 words = *(const uint2 *)(row + k);
        e.words[0] = words.x;
        e.words[1] = words.y;
    }
    if (p.scales) e.scale = element(a.scale_type, p.scales, (long long)scale_row * a.scale_stride + group);
    if (p.scales && p.tensor_scale) e.scale *= *p.tensor_scale;
    return e;
}

static __device__ __forceinline__ float half_of(unsigned pair, int high)
{
    if (!MM_BF) return f32_of_f16((unsigned short)(high ? pair >> 16 : pair));
    return __uint_as_float(high ? pair & 0xffff0000u : pair << 16);
}

static __device__ __forceinline__ uint4 widened(const eight &e)
{
    unsigned pairs[4];
    float v[8];
    unpack(e.words, placed_zero(e.zero), pairs);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int at = VECTOR == 32 ? k : k / 2 * 4 + k % 2, apart = VECTOR == 32 ? 4 : 2;
        v[at] = half_of(pairs[k], 0) * e.scale;
        v[at + apart] = half_of(pairs[k], 1) * e.scale;
    }
    return {pair_of(MM_X, v[0], v[1]), pair_of(MM_X, v[2], v[3]), pair_of(MM_X, v[4], v[5]), pair_of(MM_X, v[6], v[7])};
}

// The same of any type.
static __device__ __forceinline__ uint4 widened_any(const wt_mm_args &a, const wt_mm_part &p, int r, int k)
{
    const unsigned char *row = p.w + r * a.row_bytes;
    const float scale = a.w_type >= WT_MM_Q8_0 ? 1 : scale_at(a, p, 0, r, k); // blocks of GGUF have their own
    const int zero = a.w_type == WT_MM_U4 ? zero_at(a, p, 0, r, k) : 0;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = unscaled_at(a.w_type, row, k + i, zero) * scale;
    return {pair_of(a.x_type, v[0], v[1]), pair_of(a.x_type, v[2], v[3]), pair_of(a.x_type, v[4], v[5]),
            pair_of(a.x_type, v[6], v[7])};
}

extern "C" __global__ void __launch_bounds__(256) matmul_widen(const __grid_constant__ wt_mm_widen_args f)
{
    const wt_mm_args &a = f.args;
    const wt_mm_part &p = a.parts[f.part];
    const int first = blockIdx.x * ROWS, k = (blockIdx.y * blockDim.x + threadIdx.x) * 8;
    if (k >= a.columns) return;
    eight eights[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS && MM_W >= 0; i++) eights[i] = load_eight(a, p, min(first + i, p.rows - 1), k);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int r = first + i;
        if (r < p.rows)
            *(uint4 *)(f.out + (long long)r * a.columns + k) = MM_W >= 0 ? widened(eights[i]) : widened_any(a, p, r, k);
    }
}
