// A matrix of any type as 16-bit floats, its scales applied, for products of many rows of x. A thread has eight
// neighbours of a row, which share a scale. Bound by writing. Judge: the CPU, through the products.
#include "matmul.cuh"

#define EACH 8

static __device__ __forceinline__ bool has_own_scales(int type) { return type >= WT_MM_Q8_0; }

extern "C" __global__ void __launch_bounds__(256) matmul_widen(const __grid_constant__ wt_mm_widen_args f)
{
    const wt_mm_args &a = f.args;
    const wt_mm_part &p = a.parts[f.part];
    const int r = blockIdx.x, k = (blockIdx.y * blockDim.x + threadIdx.x) * EACH;
    if (k >= a.columns) return;
    const unsigned char *row = p.w + r * a.row_bytes;
    const float scale = has_own_scales(a.w_type) ? 1 : scale_at(a, p, 0, r, k);
    const int zero = a.w_type == WT_MM_U4 ? zero_at(a, p, 0, r, k) : 0;
    unsigned short h[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const float v = unscaled_at(a.w_type, row, k + i, zero) * scale;
        h[i] = a.x_type == WT_MM_F16 ? f16_of_f32(v) : bf16_of_f32(v);
    }
    uint4 out;
    out.x = h[0] | (unsigned)h[1] << 16;
    out.y = h[2] | (unsigned)h[3] << 16;
    out.z = h[4] | (unsigned)h[5] << 16;
    out.w = h[6] | (unsigned)h[7] << 16;
    *(uint4 *)(f.out + (long long)r * a.columns + k) = out;
}
