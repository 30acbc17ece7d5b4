// Attention of q, k and v of one 16-bit type (-DBF16=1: bf16) over tiles of keys (flash.cuh): what the kernels with
// mma.sync and with products of warpgroups share. Shares are rounded to that type before they meet the values.
// -DD_HEAD: 64 or 128, smaller heads are filled up with zeros.
#include "nn_attend.cuh"

#ifndef D_HEAD
#    define D_HEAD 64
#endif
#ifndef BF16
#    define BF16 1
#endif

static __device__ __forceinline__ unsigned pair_of(float low, float high)
{
    unsigned pair;
    if (BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

#include "flash.cuh"

// What a lane has of its warp's 16 queries.
struct rows {
    float sum[D_HEAD / 8][4], most[2], total[2];
};

static __device__ __forceinline__ void begin_rows(rows *r)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r->most[h] = NOTHING;
        r->total[h] = 0;
    }
#pragma unroll
    for (int n = 0; n < D_HEAD / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) r->sum[n][c] = 0;
}

// Scores of the keys from `begin` on to shares; `first`: the warp's first query. A mask has kernels of its own, which
// may take more registers.
template <bool MASKED>
static __device__ __forceinline__ void weigh(const nn_attend_args &a, int first, int begin, float (*s)[4], rows *r,
                                             float *fade)
{
    const span common = common_of(a, first, first + 15);
    const float scale = a.scale * LOG2_E;
    const bool scaled = MASKED || scale < 0; // before the largest is looked for
    if (scaled || begin < common.first || begin + KEYS > common.end) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int query = first + threadIdx.x % 32 / 4 + 8 * h, key = begin + threadIdx.x % 4 * 2;
            const span own = query < a.queries ? span_of(a, query) : span{0, 0};
            const long long row = MASKED ? mask_row_of(a, blockIdx.x, query) : 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    float *x = &s[n][2 * h + c];
                    const int at = key + 8 * n + c;
                    *x = at < own.first || at >= own.end ? NOTHING : scaled ? *x * scale : *x;
                    if (MASKED) masked(a, row, at, x);
                }
        }
    }
    share(r, scaled ? 1 : scale, s, fade);
}

static __device__ __forceinline__ void end_rows(const nn_attend_args &a, int first, rows *r)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r->total[h] += __shfl_xor_sync(ALL, r->total[h], 1);
        r->total[h] += __shfl_xor_sync(ALL, r->total[h], 2);
        const int query = first + g + 8 * h;
        if (query >= a.queries) continue;
        const float whole = r->total[h] > 0 ? 1 / r->total[h] : 0;
        const long long at = row_of(a.out, blockIdx.x, query) + 2 * t;
#pragma unroll
        for (int n = 0; n < D_HEAD / 8; n++) {
            if (8 * n >= a.d_head) break;
            const float x = r->sum[n][2 * h] * whole, y = r->sum[n][2 * h + 1] * whole;
            if (a.pairs) {
                *(unsigned *)((unsigned short *)a.out.data + at + 8 * n) = pair_of(x, y);
            } else {
                store(a.out.data, a.out.type, at + 8 * n, x);
                store(a.out.data, a.out.type, at + 8 * n + 1, y);
            }
        }
    }
}
