// llm_flash.cu on the tensor cores of compute capability 9.0, for heads of 64 and 128: a block 128 tokens of a head, a
// warpgroup 64 of them (grid: groups of tokens, the last and longest first; heads). Queries stay in shared memory,
// pages of keys and values come there, the next while one is used, all in panels of 64 dimensions: rows of 128 bytes
// whose 16-byte pieces are swizzled over eight rows, as products want them. Scores and shares stay in registers. Two
// blocks on a processor: one finds shares while the other multiplies. Judge: the CPU's steps (models/llm/ops_cpu.c,
// attention.c), errors of 2^-9 (bf16) and 2^-12 (f16).
//
// Architecture: sm_90a
#include "llm_flash.cuh"

#include "matmul_kernel.h"
#define MM_X (KV == WT_LLM_F16 ? WT_MM_F16 : WT_MM_BF16)
#include "flash_wgmma.cuh"

#define THREADS 256

static __device__ __forceinline__ void load_queries(const wt_llm_attend_args &a, int first, int head, shared *s)
{
    for (int i = threadIdx.x; i < TOKENS * PIECES; i += THREADS) {
        const int row = i / PIECES, token = first + row;
        const float4 *q = (const float4 *)(a.q + ((long long)token * a.n_heads + head) * D_HEAD) + i % PIECES * 2;
        uint4 piece = {0, 0, 0, 0};
        if (token < a.n_tokens) {
            const float4 x = q[0], y = q[1];
            piece = {pair_of(x.x, x.y), pair_of(x.z, x.w), pair_of(y.x, y.y), pair_of(y.z, y.w)};
        }
        *piece_at<TOKENS>(s->queries, row, i % PIECES) = piece;
    }
}

// Keys and values of a page; zeros beyond position `last`, whose memory may hold anything.
static __device__ __forceinline__ void fetch_page(const wt_llm_attend_args &a, long long at, int number, int last,
                                                  page *to)
{
    constexpr int each = THREADS / PIECES; // rows at once, a multiple of eight: all are swizzled alike
    const int piece = threadIdx.x % PIECES, row = threadIdx.x / PIECES, left = last - number * WT_LLM_PAGE - row;
    const kv_type *keys = (const kv_type *)a.cache.keys + at + row * D_HEAD + 8 * piece;
    const kv_type *values = (const kv_type *)a.cache.values + at + row * D_HEAD + 8 * piece;
    uint4 *own_keys = piece_at<WT_LLM_PAGE>(to->keys, row, piece);
    uint4 *own_values = piece_at<WT_LLM_PAGE>(to->values, row, piece);
#pragma unroll
    for (int k = 0; k < WT_LLM_PAGE; k += each) {
        copy_async_16(own_keys + 8 * k, keys + k * D_HEAD, k <= left);
        copy_async_16(own_values + 8 * k, values + k * D_HEAD, k <= left);
    }
    copy_async_commit();
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) llm_flash(const __grid_constant__ wt_llm_attend_args a)
{
    extern __shared__ unsigned char memory[];
    shared *m = (shared *)(memory + (-shared_of(memory) & 1023u));
    let_next_begin();
    wait_for_earlier();
    const int first = ((int)gridDim.x - 1 - (int)blockIdx.x) * TOKENS, head = blockIdx.y, kv_head = head / GROUP;
    const int end = min(first + TOKENS, a.n_tokens), group = threadIdx.x / 128;
    const wt_llm_token from = a.tokens[first];
    const int last = a.tokens[end - 1].place, group_last = min(last, from.place + 64 * group + 63);
    const int first_page = a.window && from.place >= a.window ? (from.place - a.window + 1) / WT_LLM_PAGE : 0;
    const int last_page = last / WT_LLM_PAGE;
    const auto page_at = [&](int number) {
        return cache_at(a.cache, from.sequence, min(number, last / WT_LLM_PAGE) * WT_LLM_PAGE, kv_head);
    };
    fetch_page(a, page_at(first_page), first_page, last, &m->pages[0]);
    long long at = page_at(first_page + 1);
    load_queries(a, first, head, m);
    rows r;
    begin_rows(a, first + (int)threadIdx.x / 32 * 16, &r);
    for (int number = first_page; number <= last_page; number++) {
        const int slot = (number - first_page) % 2;
        copy_async_wait<0>();
        written();
        __syncthreads(); // the page is there, and the one before was used by all
        if (number < last_page) fetch_page(a, at, number + 1, last, &m->pages[1 - slot]);
        at = page_at(number + 2);
        if (number * WT_LLM_PAGE > group_last) continue; // the whole warpgroup
        float s[WT_LLM_PAGE / 8][4];
        score(m, group, &m->pages[slot], s[0]);
        mask(a, r, number * WT_LLM_PAGE, s);
        share(&r, a.scale * LOG2_E, s);
        add_values(&r, &m->pages[slot], s);
    }
    end_rows(a, first + (int)threadIdx.x / 32 * 16, head, r);
}
