// llm_flash.cu on the tensor cores of compute capability 9.0, for heads of 64 and 128 (flash_wgmma.cuh): a block 128
// tokens of a head (grid: heads; groups of tokens, of all heads the last and longest first). Judge: the CPU's steps
// (models/llm/ops_cpu.c, attention.c), errors of 2^-9 (bf16) and 2^-12 (f16).
//
// Architecture: sm_90a
#define KEYS 128
#include "llm_flash.cuh"

#include "matmul_kernel.h"
#define MM_X (KV == WT_LLM_F16 ? WT_MM_F16 : WT_MM_BF16)
#include "flash_wgmma.cuh"

// 64 tokens' queries, which llm_place has made of the cache's type at their rows' beginnings.
static __device__ __forceinline__ void copy_queries(const wt_llm_attend_args &a, int first, int head, int group,
                                                    shared *m)
{
    const int piece = threadIdx.x % PIECES, row = 64 * group + threadIdx.x % GROUP_THREADS / PIECES;
    const kv_type *q = (const kv_type *)(a.q + ((long long)(first + row) * a.n_heads + head) * D_HEAD) + 8 * piece;
    const long long next = 2ll * a.n_heads * D_HEAD; // a token's rows, in elements of two bytes
    uint4 *own = piece_at<TOKENS>(m->queries, row, piece);
#pragma unroll
    for (int k = 0; k < 64; k += AT_ONCE) copy_async_16(own + 8 * k, q + k * next, first + row + k < a.n_tokens);
}

// Two pages of keys or of values; zeros beyond position `last`, whose memory may hold anything.
static __device__ __forceinline__ void copy_pages(const wt_llm_attend_args &a, const void *from, int sequence,
                                                  int kv_head, int begin, int last, uint4 (*to)[KEYS][8])
{
    const int piece = threadIdx.x % PIECES, row = threadIdx.x % GROUP_THREADS / PIECES, left = last - begin - row;
    uint4 *own = piece_at<KEYS>(to, row, piece);
#pragma unroll
    for (int half = 0; half < KEYS; half += WT_LLM_PAGE) {
        const long long at = cache_at(a.cache, sequence, min(begin + half, last / WT_LLM_PAGE * WT_LLM_PAGE), kv_head);
        const kv_type *x = (const kv_type *)from + at + row * D_HEAD + 8 * piece;
#pragma unroll
        for (int k = 0; k < WT_LLM_PAGE; k += AT_ONCE)
            copy_async_16(own + 8 * (half + k), x + k * D_HEAD, half + k <= left);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) llm_flash(const __grid_constant__ wt_llm_attend_args a)
{
    extern __shared__ unsigned char memory[];
    let_next_begin();
    shared *m = begin_shared(memory);
    wait_for_earlier();
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * TOKENS, head = blockIdx.x, kv_head = head / GROUP;
    const wt_llm_token from = a.tokens[first];
    const int last = a.tokens[min(first + TOKENS, a.n_tokens) - 1].place;
    const int begin = a.window && from.place >= a.window ? (from.place - a.window + 1) / KEYS * KEYS : 0;
    const int n_tiles = (last - begin) / KEYS + 1, group = (int)threadIdx.x / GROUP_THREADS - 1;
    if (group < 0) {
        registers_down<40>();
        const auto copy = [&](const void *x) {
            return [&, x](int k, uint4(*to)[KEYS][8]) {
                copy_pages(a, x, from.sequence, kv_head, begin + k * KEYS, last, to);
            };
        };
        copy_tiles(m, n_tiles, copy(a.cache.keys), copy(a.cache.values));
        return;
    }
    registers_up<232>();
    const int own = first + ((int)threadIdx.x / 32 - 4) * 16; // the warp's tokens
    rows r;
    copy_queries(a, first, head, group, m);
    begin_rows(a, own, &r);
    queries_copied(group);
    attend_tiles(m, group, n_tiles, &r, [&](int k, float(*s)[4], float *fade) {
        mask(a, r, begin + k * KEYS, s);
        share(&r, a.scale * LOG2_E, s, fade);
    });
    end_rows(a, own, head, r);
}
