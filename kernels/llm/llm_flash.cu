// Attention of many tokens that follow each other in one sequence, on tensor cores, for caches of 16 bits or fp8 and
// heads of a multiple of 16: a block 128 tokens of a head, a warp 16 of them (grid: heads; groups of tokens, of all
// heads the last and longest first). Pages of keys and values come to shared memory, the next while one is used; a warp
// keeps its tokens' queries, sums, maxima and totals in registers. Scores are floats; shares are rounded to the cache's
// type before they meet the values. Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c), errors of 2^-9 (bf16)
// and 2^-12 (f16).
#include "llm_flash.cuh"

#define WARPS   8
#define THREADS (32 * WARPS)
#define TOKENS  (16 * WARPS)
#define PITCH   (D_HEAD + 8) // elements of a row in shared memory: rows side by side lie in other banks
#define STEPS   (D_HEAD / 16)
#define TILE    (WT_LLM_PAGE * PITCH)

// Four 8 x 8 matrices, transposed: lane l names row l % 8 of matrix l / 8 and gets of each (rows 2t, 2t + 1; column g).
static __device__ __forceinline__ void load_transposed(unsigned *r, const tile_type *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

// Eight elements; fp8 become f16 on their way, which has all their values.
static __device__ __forceinline__ void fetch_8(tile_type *to, const kv_type *from, bool valid)
{
#if KV == WT_LLM_E4M3
    pack<kv_type, 8> eight = {};
    pack<tile_type, 8> wide;
    if (valid) eight = *(const pack<kv_type, 8> *)from;
    for (int k = 0; k < 8; k++) narrow(widen(eight.at[k]), &wide.at[k]);
    *(pack<tile_type, 8> *)to = wide;
#else
    copy_async_16(to, from, valid);
#endif
}

// Keys and values of a page; zeros beyond position `last`, whose memory may hold anything.
static __device__ __forceinline__ void fetch_page(const wt_llm_attend_args &a, int sequence, int kv_head, int page,
                                                  int last, tile_type *keys, tile_type *values)
{
    const long long at = cache_at(a.cache, sequence, page * WT_LLM_PAGE, kv_head);
    for (int i = threadIdx.x; i < WT_LLM_PAGE * (D_HEAD / 8); i += THREADS) {
        const int j = i / (D_HEAD / 8), d = i % (D_HEAD / 8) * 8;
        const bool valid = page * WT_LLM_PAGE + j <= last;
        fetch_8(keys + j * PITCH + d, (const kv_type *)a.cache.keys + at + j * D_HEAD + d, valid);
        fetch_8(values + j * PITCH + d, (const kv_type *)a.cache.values + at + j * D_HEAD + d, valid);
    }
    copy_async_commit();
}

// A warp's 16 queries as the first side of products.
static __device__ __forceinline__ void load_queries(const wt_llm_attend_args &a, int first, int head, unsigned (*to)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int token = first + g + 8 * h;
        const bool is_there = token < a.n_tokens;
        const float *q = a.q + ((long long)(is_there ? token : 0) * a.n_heads + head) * D_HEAD + 2 * t;
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            to[k][h] = is_there ? pair_of(q[16 * k], q[16 * k + 1]) : 0;
            to[k][h + 2] = is_there ? pair_of(q[16 * k + 8], q[16 * k + 9]) : 0;
        }
    }
}

static __device__ __forceinline__ void score(const unsigned (*q)[4], const tile_type *keys, float (*s)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < WT_LLM_PAGE / 8; n++) {
        const unsigned *row = (const unsigned *)(keys + (8 * n + g) * PITCH);
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
        for (int k = 0; k < STEPS; k++) mma(s[n], q[k], row[8 * k + t], row[8 * k + 4 + t]);
    }
}

static __device__ __forceinline__ void add_values(rows *r, const tile_type *values, const float (*s)[4])
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < WT_LLM_PAGE / 16; k++) {
        unsigned p[4];
        shares_of(s, k, p);
        const tile_type *row = values + (16 * k + matrix % 2 * 8 + lane % 8) * PITCH + matrix / 2 * 8;
#pragma unroll
        for (int n = 0; n < STEPS; n++) { // 16 dimensions
            unsigned b[4];
            load_transposed(b, row + 16 * n);
            mma(r->sum[2 * n], p, b[0], b[1]);
            mma(r->sum[2 * n + 1], p, b[2], b[3]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) llm_flash(const __grid_constant__ wt_llm_attend_args a)
{
    extern __shared__ uint4 memory[];
    tile_type *shared = (tile_type *)memory; // [2][keys, values][TILE]
    let_next_begin();
    wait_for_earlier();
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * TOKENS, head = blockIdx.x, kv_head = head / GROUP;
    const int end = min(first + TOKENS, a.n_tokens);
    const wt_llm_token from = a.tokens[first];
    const int last = a.tokens[end - 1].place;
    const int first_page = a.window && from.place >= a.window ? (from.place - a.window + 1) / WT_LLM_PAGE : 0;
    const int last_page = last / WT_LLM_PAGE;
    const int warp_first = first + (int)threadIdx.x / 32 * 16;
    unsigned q[STEPS][4];
    rows r;
    load_queries(a, warp_first, head, q);
    begin_rows(a, warp_first, &r);
    fetch_page(a, from.sequence, kv_head, first_page, last, shared, shared + TILE);
    for (int page = first_page; page <= last_page; page++) {
        tile_type *now = shared + (page - first_page) % 2 * 2 * TILE,
                  *next = shared + (page - first_page + 1) % 2 * 2 * TILE;
        copy_async_wait<0>();
        __syncthreads(); // the page is there, and the one before was used by all
        if (page < last_page) fetch_page(a, from.sequence, kv_head, page + 1, last, next, next + TILE);
        float s[WT_LLM_PAGE / 8][4];
        score(q, now, s);
        mask(a, r, page * WT_LLM_PAGE, s);
        share(&r, a.scale * LOG2_E, s);
        add_values(&r, now + TILE, s);
    }
    end_rows(a, warp_first, head, r);
}
