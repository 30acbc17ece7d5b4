// What the kernels of matrix products share: elements and scales of every type, and what is done with a finished sum.
#include "matmul_kernel.h"
#include "mma.cuh"

static __device__ __forceinline__ float f32_of_bf16(unsigned short h) { return __uint_as_float((unsigned)h << 16); }

// OCP FP8 1.0 without NaN and infinities: the fields moved into a float's, and its exponent's offset by a product,
// which is exact, subnormals included.
static __device__ __forceinline__ float f32_of_e4m3(unsigned char b)
{
    return __uint_as_float((b & 0x7fu) << 20 | (b & 0x80u) << 24) * 0x1p120f;
}

static __device__ __forceinline__ float f32_of_e5m2(unsigned char b)
{
    return __uint_as_float((b & 0x7fu) << 21 | (b & 0x80u) << 24) * 0x1p112f;
}

// OCP FP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
static __device__ __forceinline__ float f32_of_e2m1(unsigned n)
{
    return __uint_as_float((n & 7u) << 22 | (n & 8u) << 28) * 0x1p126f;
}

// Element k of a plain type.
static __device__ __forceinline__ float element(int type, const unsigned char *p, long long k)
{
    switch (type) {
    case WT_MM_F32:
        return ((const float *)p)[k];
    case WT_MM_F16:
        return f32_of_f16(((const unsigned short *)p)[k]);
    case WT_MM_BF16:
        return f32_of_bf16(((const unsigned short *)p)[k]);
    case WT_MM_E4M3:
        return f32_of_e4m3(p[k]);
    case WT_MM_E5M2:
        return f32_of_e5m2(p[k]);
    case WT_MM_I8:
        return (float)(signed char)p[k];
    default:
        return 0;
    }
}

// ---- blocks of GGUF: element k of a row. Source: ggml/src/ggml-common.h and dequantize_row_* of ggml-quants.c. A
// scale and a minimum are multiplied and rounded as there, without fused sums.

static __device__ __forceinline__ float half_at(const unsigned char *p)
{
    return f32_of_f16((unsigned short)(p[0] | p[1] << 8));
}

static __device__ float q8_0_at(const unsigned char *row, int k)
{
    const unsigned char *p = row + k / 32 * 34;
    return half_at(p) * (float)(signed char)p[2 + k % 32];
}

static __device__ float q4_0_at(const unsigned char *row, int k)
{
    const unsigned char *p = row + k / 32 * 18;
    const int q = p[2 + k % 16] >> (k & 16 ? 4 : 0) & 15;
    return half_at(p) * (float)(q - 8);
}

// Scale and minimum of part j of 8 of a Q4_K block, 6 bits each.
static __device__ __forceinline__ void q4_k_part(const unsigned char *s, int j, int *scale, int *minimum)
{
    *scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    *minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

static __device__ float q4_k_at(const unsigned char *row, int k)
{
    const unsigned char *p = row + k / 256 * 144;
    const int j = k % 256 / 32, q = p[16 + j / 2 * 32 + k % 32] >> (j & 1 ? 4 : 0) & 15;
    int scale, minimum;
    q4_k_part(p + 4, j, &scale, &minimum);
    return __fsub_rn(__fmul_rn(half_at(p) * (float)scale, (float)q), half_at(p + 2) * (float)minimum);
}

static __device__ float q6_k_at(const unsigned char *row, int k)
{
    const unsigned char *p = row + k / 256 * 210;
    const int i = k % 256, half = i / 128, part = i % 128 / 32, n = i % 32;
    const int low = p[half * 64 + part % 2 * 32 + n] >> (part & 2 ? 4 : 0) & 15;
    const int high = p[128 + half * 32 + n] >> 2 * part & 3;
    return half_at(p + 208) * (float)(signed char)p[192 + i / 16] * (float)((low | high << 4) - 32);
}

// ---- scales

static __device__ __forceinline__ float scale_at(const wt_mm_args &a, const wt_mm_part &p, int stack, int r, int k)
{
    if (!p.scales) return 1;
    const float s = element(a.scale_type, p.scales + stack * p.scales_next,
                            (long long)(r / a.scale_rows) * a.scale_stride + k / a.scale_columns);
    return p.tensor_scale ? s * *p.tensor_scale : s;
}

static __device__ __forceinline__ int zero_at(const wt_mm_args &a, const wt_mm_part &p, int stack, int r, int k)
{
    if (!p.zeros) return 8;
    return p.zeros[stack * p.zeros_next + (long long)r * a.scale_stride + k / a.scale_columns];
}

// Element k of a row of W, of any type; blocks of GGUF with the scales they hold, others without.
static __device__ float unscaled_at(int type, const unsigned char *row, int k, int zero)
{
    const unsigned nibble = type == WT_MM_U4 || type == WT_MM_E2M1 ? row[k / 2] >> (k & 1 ? 4 : 0) & 15u : 0;
    switch (type) {
    case WT_MM_Q8_0:
        return q8_0_at(row, k);
    case WT_MM_Q4_0:
        return q4_0_at(row, k);
    case WT_MM_Q4_K:
        return q4_k_at(row, k);
    case WT_MM_Q6_K:
        return q6_k_at(row, k);
    case WT_MM_U4:
        return (float)((int)nibble - zero);
    case WT_MM_E2M1:
        return f32_of_e2m1(nibble);
    default:
        return element(type, row, k);
    }
}

// Element k of x, with the scale of its group.
static __device__ __forceinline__ float x_at(const wt_mm_args &a, long long k)
{
    if (a.x_type != WT_MM_E2M1) return element(a.x_type, a.x, k);
    return f32_of_e2m1(a.x[k / 2] >> (k & 1 ? 4 : 0) & 15u) * f32_of_e4m3(a.x_groups[k / 16]);
}

// Weight k of row r with its scale.
static __device__ float weight_at(const wt_mm_args &a, const wt_mm_part &p, int stack, int r, int k)
{
    const unsigned char *row = p.w + stack * p.w_next + r * a.row_bytes;
    const int zero = a.w_type == WT_MM_U4 ? zero_at(a, p, stack, r, k) : 0;
    return unscaled_at(a.w_type, row, k, zero) * scale_at(a, p, stack, r, k);
}

// ---- tiles of many rows of x

#define BAND 16 // tiles of x whose blocks run together

struct mm_place {
    int part, first; // row of W
    wt_mm_tile tile;
};

// What a block of matmul_tiles or matmul_wgmma has: `rows` rows of W, of both parts of a gated product, by WT_MM_TILE of
// x; false for nothing. Blocks in bands of BAND tiles of x, so that those which run together share rows of both.
static __device__ bool find_place(const wt_mm_args &a, int block, int n_blocks, int rows, bool gated, mm_place *p)
{
    const int n_x = wt_mm_n_tiles(&a, WT_MM_TILE), n_w = n_blocks / n_x;
    const int band = block / (BAND * n_w), in = block - band * BAND * n_w;
    const int left = n_x - band * BAND, width = left < BAND ? left : BAND, row_tile = in / width;
    p->part = 0;
    for (int k = 1; k < a.n_parts && !gated; k++)
        if (row_tile >= a.parts[k].first_tile) p->part = k;
    p->first = (row_tile - a.parts[p->part].first_tile) * rows;
    return wt_mm_find_tile(&a, band * BAND + in % width, WT_MM_TILE, &p->tile);
}

// Four columns of a row of W by those of eight rows of x, to the sums of each.
static __device__ __forceinline__ void add_products(float4 w, const float4 *x, float *sums)
{
#pragma unroll
    for (int j = 0; j < 8; j++) sums[j] += w.x * x[j].x;
#pragma unroll
    for (int j = 0; j < 8; j++) sums[j] += w.y * x[j].y;
#pragma unroll
    for (int j = 0; j < 8; j++) sums[j] += w.z * x[j].z;
#pragma unroll
    for (int j = 0; j < 8; j++) sums[j] += w.w * x[j].w;
}

// ---- finished sums

static __device__ __forceinline__ float activated(int activation, float v)
{
    switch (activation) {
    case WT_MM_RELU:
        return fmaxf(v, 0.0f);
    case WT_MM_SILU:
        return v / (1.0f + expf(-v));
    case WT_MM_GELU:
        return 0.5f * v * (1.0f + erff(v * 0.70710678f));
    case WT_MM_GELU_TANH:
        return 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    default:
        return v;
    }
}

// SiLU that is rounded to 16 bits, whose steps are 2^8 times those by which the short exponential and quotient err.
static __device__ __forceinline__ float silu_of_16(float v) { return __fdividef(v, 1 + __expf(-v)); }

static __device__ __forceinline__ float biased(const wt_mm_part &p, int stack, int r, float v)
{
    return p.bias ? v + p.bias[(long long)stack * p.rows + r] : v;
}

// Sums of a lane's two rows of x, 2 (lane % 4) and the next, with those four rows on (WT_MM_WITHIN).
static __device__ __forceinline__ float4 with_other_half(float4 v)
{
    return {v.x + __shfl_xor_sync(0xffffffffu, v.x, 2), v.y + __shfl_xor_sync(0xffffffffu, v.y, 2),
            v.z + __shfl_xor_sync(0xffffffffu, v.z, 2), v.w + __shfl_xor_sync(0xffffffffu, v.w, 2)};
}

// What finish_normed reads: it can be on its way before the sum is there.
struct before {
    float y, weight;
};

static __device__ __forceinline__ before before_norm(const wt_mm_args &a, int i, int r)
{
    const wt_mm_part &p = a.parts[0];
    return {a.add ? ((const float *)p.y)[i * p.y_stride + r] : 0, a.norm_weight[r]};
}

// Row i of x, row r of W: y += v, and for the norm that follows y times its weight. Returns the square of y.
static __device__ __forceinline__ float finish_normed(const wt_mm_args &a, int i, int r, float v, before b)
{
    const wt_mm_part &p = a.parts[0];
    v = b.y + activated(a.activation, biased(p, 0, r, v));
    ((float *)p.y)[i * p.y_stride + r] = v;
    unsigned short *normed = a.normed + (long long)i * p.rows + r;
    *normed = bf16_of_f32(v * b.weight);
    if (a.two_parts) normed[(long long)a.m * p.rows] = bf16_of_f32(v * b.weight - f32_of_bf16(*normed));
    return v * v;
}

// Two elements of F16 or BF16 in a word.
static __device__ __forceinline__ unsigned pair_of(int type, float a, float b)
{
    return type == WT_MM_F16 ? f16_pair_of(a, b) : bf16_pair_of(a, b);
}

// Row i of y and its batch, element r.
static __device__ __forceinline__ void store(const wt_mm_args &a, const wt_mm_part &p, const wt_mm_tile &t, int i,
                                             int r, float v)
{
    const long long at = t.y_batches * p.y_batch + (t.first + i) * p.y_stride + r;
    if (a.y_type == WT_MM_F32) {
        float *y = (float *)p.y + at;
        *y = a.add ? *y + v : v;
        return;
    }
    unsigned short *y = (unsigned short *)p.y + at, *low = y + a.m * p.y_stride;
    if (a.y_type == WT_MM_F16) {
        *y = f16_of_f32(a.add ? f32_of_f16(*y) + v : v);
        if (a.two_parts) *low = f16_of_f32(v - f32_of_f16(*y));
    } else {
        *y = bf16_of_f32(a.add ? f32_of_bf16(*y) + v : v);
        if (a.two_parts) *low = bf16_of_f32(v - f32_of_bf16(*y));
    }
}

// The bare sum of an I8 product.
static __device__ __forceinline__ void store_sum(const wt_mm_part &p, const wt_mm_tile &t, int i, int r, int sum)
{
    ((int *)p.y)[t.y_batches * p.y_batch + (t.first + i) * p.y_stride + r] = sum;
}

// Row i of the tile, element r of part `part`; of a gated product `v1` is part 1's sum.
static __device__ __forceinline__ void finish(const wt_mm_args &a, int part, const wt_mm_tile &t, int i, int r, float v,
                                              float v1)
{
    const wt_mm_part &p = a.parts[part];
    v = activated(a.activation, biased(p, t.stack, r, v));
    if (a.gated) v *= biased(a.parts[1], t.stack, r, v1);
    store(a, p, t, i, r, v);
}

// ---- four neighbours of a row of y at once

static __device__ __forceinline__ int bytes_of(int y_type)
{
    return y_type == WT_MM_F32 || y_type == WT_MM_I32 ? 4 : 2;
}

// Elements r .. r + 3 are there, and y is aligned to four.
static __device__ __forceinline__ bool is_whole(const wt_mm_args &a, const wt_mm_part &part, int r)
{
    const int bytes = bytes_of(a.y_type);
    const long long all = (long long)part.y | part.y_stride * bytes | part.y_batch * bytes;
    return r + 4 <= part.rows && all % (4 * bytes) == 0;
}

// Returns what y is then.
static __device__ __forceinline__ float4 store_four(const wt_mm_args &a, unsigned char *y, float4 v)
{
    if (a.y_type == WT_MM_F32) {
        if (a.add) {
            const float4 b = *(const float4 *)y;
            v = {v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w};
        }
        *(float4 *)y = v;
        return v;
    }
    if (a.add) {
        const ushort4 b = *(const ushort4 *)y;
        const bool f16 = a.y_type == WT_MM_F16;
        v = {v.x + (f16 ? f32_of_f16(b.x) : f32_of_bf16(b.x)), v.y + (f16 ? f32_of_f16(b.y) : f32_of_bf16(b.y)),
             v.z + (f16 ? f32_of_f16(b.z) : f32_of_bf16(b.z)), v.w + (f16 ? f32_of_f16(b.w) : f32_of_bf16(b.w))};
    }
    *(uint2 *)y = {pair_of(a.y_type, v.x, v.y), pair_of(a.y_type, v.z, v.w)};
    return v;
}

// Scale and bias of four rows of W; scales that are not constant along columns were applied before, but for a tensor's.
struct factors {
    float4 scale, bias;
};

static __device__ __forceinline__ factors factors_of(const wt_mm_args &a, const wt_mm_part &part, int stack, int r,
                                                     bool constant)
{
    float scale[4], bias[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int row = r + c < part.rows ? r + c : part.rows - 1;
        scale[c] = constant ? scale_at(a, part, stack, row, 0) : part.tensor_scale ? *part.tensor_scale : 1;
        bias[c] = part.bias ? part.bias[(long long)stack * part.rows + row] : 0;
    }
    return {{scale[0], scale[1], scale[2], scale[3]}, {bias[0], bias[1], bias[2], bias[3]}};
}

static __device__ __forceinline__ float4 finished(const factors &f, float4 sum, float x_scale)
{
    return {sum.x * (f.scale.x * x_scale) + f.bias.x, sum.y * (f.scale.y * x_scale) + f.bias.y,
            sum.z * (f.scale.z * x_scale) + f.bias.z, sum.w * (f.scale.w * x_scale) + f.bias.w};
}
