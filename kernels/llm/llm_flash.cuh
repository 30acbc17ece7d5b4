// What both kernels of attention over many tokens share (llm_flash.cu, llm_flash_wgmma.cu): a warp's 16 tokens, whose
// sums, maxima and totals lie as those of mma.m16n8k16: lane 4 g + t has rows g and g + 8, columns 2t and 2t + 1 of
// each 8.
#include "llm_tile.cuh"

#include "overlap.cuh"

struct rows {
    float sum[D_HEAD / 8][4], most[2], total[2];
    int place[2];  // -1 = no token
    int low, high; // places of the warp's first and last token
};

#include "flash.cuh"

// The warp's tokens begin at `first`.
static __device__ __forceinline__ void begin_rows(const wt_llm_attend_args &a, int first, rows *r)
{
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int token = first + g + 8 * h;
        r->place[h] = token < a.n_tokens ? a.tokens[token].place : -1;
        r->most[h] = NOTHING;
        r->total[h] = 0;
    }
    r->low = __shfl_sync(ALL, r->place[0], 0);
    r->high = __shfl_sync(ALL, r->place[1], 28);
    if (r->high < 0) r->low = -1; // some are not there
#pragma unroll
    for (int n = 0; n < D_HEAD / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) r->sum[n][c] = 0;
}

// What a token does not see of the tile that begins at position `begin`.
static __device__ __forceinline__ void mask(const wt_llm_attend_args &a, const rows &r, int begin, float (*s)[4])
{
    if (begin + KEYS - 1 <= r.low && (!a.window || begin > r.high - a.window)) return; // all see all
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int j = begin + 8 * n + 2 * t + c % 2, place = r.place[c / 2];
            if (j > place || (a.window && j <= place - a.window)) s[n][c] = NOTHING;
        }
}

static __device__ __forceinline__ void end_rows(const wt_llm_attend_args &a, int first, int head, const rows &r)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float total = r.total[h];
        total += __shfl_xor_sync(ALL, total, 1);
        total += __shfl_xor_sync(ALL, total, 2);
        if (r.place[h] < 0) continue;
        const long long at = ((long long)(first + g + 8 * h) * a.n_heads + head) * D_HEAD + 2 * t;
        const float whole = 1 / total;
#pragma unroll
        for (int n = 0; n < D_HEAD / 8; n++)
            if (a.out_type == KV)
                *(unsigned *)((tile_type *)a.out + at + 8 * n) =
                    pair_of(r.sum[n][2 * h] * whole, r.sum[n][2 * h + 1] * whole);
            else
                for (int c = 0; c < 2; c++) store(a.out, a.out_type, at + 8 * n + c, r.sum[n][2 * h + c] * whole);
    }
}
