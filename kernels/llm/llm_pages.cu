// What is done with pages of the cache between steps:
//
//   llm_copy_page   a page's keys and values (grid y 0 and 1) to another page
//   llm_shift       a block a head of keys or values (grid y 0 and 1) of a layer: positions move down over dropped
//                   ones, 8 at a time, from the lowest on, so that nothing is overwritten before it was read; keys turn
//                   back by the angle of the places they move
//
// Judge: models/llm/cache.c.
#include "llm_cache.cuh"

#define WARPS 8

extern "C" __global__ void __launch_bounds__(256) llm_copy_page(const __grid_constant__ wt_llm_copy_args a)
{
    uint4 *all = (uint4 *)(blockIdx.y ? a.values : a.keys);
    for (int k = blockIdx.x * 256 + threadIdx.x; k < a.n; k += gridDim.x * 256) all[a.to + k] = all[a.from + k];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) llm_shift(const __grid_constant__ wt_llm_shift_args a)
{
    __shared__ float rows[WARPS][D_HEAD];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = a.n_dims / 2;
    const int step = a.interleaved ? 2 : 1, apart = a.interleaved ? 1 : half;
    kv_type *all = (kv_type *)(blockIdx.y ? a.cache.values : a.cache.keys);
    float *row = rows[warp];
    for (int first = a.first; first < a.end; first += WARPS) {
        const int place = first + warp;
        if (place < a.end) {
            const kv_type *from = all + cache_at(a.cache, a.sequence, place + a.n_drop, blockIdx.x);
            for (int d = lane; d < D_HEAD; d += 32) row[d] = widen(from[d]);
        }
        __syncthreads(); // all eight are read
        for (int k = lane; k < half && !blockIdx.y; k += 32) {
            const float angle = (float)a.n_drop * a.frequencies[k], c = cosf(angle), s = sinf(angle);
            const float p = row[k * step], q = row[k * step + apart];
            row[k * step] = p * c + q * s;
            row[k * step + apart] = q * c - p * s;
        }
        __syncwarp();
        if (place < a.end) {
            kv_type *to = all + cache_at(a.cache, a.sequence, place, blockIdx.x);
            for (int d = lane; d < D_HEAD; d += 32) narrow(row[d], to + d);
        }
        __syncthreads(); // they are written before the next are read
    }
}
