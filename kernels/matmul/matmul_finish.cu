// What follows a product whose bare sums a library left in scratch memory: scales, bias, activation, gate, residual. A
// thread has eight neighbours of WT_MM_FINISH_ROWS rows of y. Bound by reading the sums and writing y. Judge: the CPU.
#include "matmul.cuh"

#include "overlap.cuh"

#define EACH 8

// Eight sums at `at`, a multiple of eight.
static __device__ __forceinline__ void load_sums(int type, const void *sums, long long at, float *v)
{
    if (type == WT_MM_F16 || type == WT_MM_BF16) {
        const uint4 four = *(const uint4 *)((const unsigned short *)sums + at);
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const unsigned short h = (unsigned short)(words[k / 2] >> k % 2 * 16);
            v[k] = type == WT_MM_F16 ? f32_of_f16(h) : f32_of_bf16(h);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        v[k] = type == WT_MM_I32 ? (float)((const int *)sums)[at + k] : ((const float *)sums)[at + k];
}

// Elements r .. r + 7 of row i in 16 bits, aligned.
static __device__ __forceinline__ void store_eight(const wt_mm_finish_args &f, const wt_mm_part &p, int i, int r,
                                                   const float *v)
{
    const long long at = f.batch * p.y_batch + (long long)(f.first + i) * p.y_stride + r;
    const int type = f.args.y_type;
    *(uint4 *)((unsigned short *)p.y + at) = {pair_of(type, v[0], v[1]), pair_of(type, v[2], v[3]),
                                              pair_of(type, v[4], v[5]), pair_of(type, v[6], v[7])};
}

// What most prompts of language models have: gated by SiLU, 16 bits on both sides, neither scales nor biases.
static __device__ __forceinline__ bool is_gated_silu(const wt_mm_finish_args &f)
{
    const wt_mm_args &a = f.args;
    const wt_mm_part &p = a.parts[0], &q = a.parts[1];
    return a.gated && a.activation == WT_MM_SILU && f.whole && !a.add && a.y_type != WT_MM_F32 &&
           f.sum_type == a.y_type && !a.x_scales && !p.scales && !q.scales && !p.bias && !q.bias;
}

// All rows' sums are on their way before the first are used.
static __device__ __forceinline__ void gate_rows(const wt_mm_finish_args &f, int first, int r)
{
    uint4 sums[WT_MM_FINISH_ROWS][2];
#pragma unroll
    for (int k = 0; k < WT_MM_FINISH_ROWS; k++) {
        if (first + k >= f.count) break;
        const long long at = (long long)(first + k) * f.pitch + r;
        sums[k][0] = *(const uint4 *)((const unsigned short *)f.sums + at);
        sums[k][1] = *(const uint4 *)((const unsigned short *)f.sums1 + at);
    }
#pragma unroll
    for (int k = 0; k < WT_MM_FINISH_ROWS; k++) {
        if (first + k >= f.count) break;
        float v[EACH], v1[EACH];
        load_sums(f.sum_type, &sums[k][0], 0, v);
        load_sums(f.sum_type, &sums[k][1], 0, v1);
#pragma unroll
        for (int i = 0; i < EACH; i++) v[i] = silu_of_16(v[i]) * v1[i];
        store_eight(f, f.args.parts[0], first + k, r, v);
    }
}

static __device__ __forceinline__ void finish_row(const wt_mm_finish_args &f, int i, int r)
{
    const wt_mm_args &a = f.args;
    const wt_mm_part &p = a.parts[f.part];
    wt_mm_tile t;
    t.stack = t.y_batches = f.batch;
    t.first = f.first;
    const float x_scale = a.x_scales ? a.x_scales[f.first + i] : 1; // as everywhere, batches share them
    float v[EACH], v1[EACH];
    load_sums(f.sum_type, f.sums, (long long)i * f.pitch + r, v);
    if (a.gated) load_sums(f.sum_type, f.sums1, (long long)i * f.pitch + r, v1);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int row = r + k < p.rows ? r + k : p.rows - 1;
        v[k] = activated(a.activation, biased(p, t.stack, row, v[k] * (x_scale * scale_at(a, p, t.stack, row, 0))));
        if (a.gated) {
            const wt_mm_part &q = a.parts[1];
            v[k] *= biased(q, t.stack, row, v1[k] * (x_scale * scale_at(a, q, t.stack, row, 0)));
        }
    }
    if (f.whole && !a.add && a.y_type != WT_MM_F32) {
        store_eight(f, p, i, r, v);
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (r + k < p.rows) store(a, p, t, i, r + k, v[k]);
}

extern "C" __global__ void __launch_bounds__(128) matmul_finish(const __grid_constant__ wt_mm_finish_args f)
{
    const int r = (blockIdx.x * blockDim.x + threadIdx.x) * EACH, first = blockIdx.y * WT_MM_FINISH_ROWS;
    let_next_begin();
    wait_for_earlier();
    if (r >= f.args.parts[f.part].rows) return;
    if (is_gated_silu(f)) {
        gate_rows(f, first, r);
        return;
    }
    for (int i = first; i < min(first + WT_MM_FINISH_ROWS, f.count); i++) finish_row(f, i, r);
}
