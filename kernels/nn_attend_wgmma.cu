// nn_attend.cu by products of warpgroups: a block 128 queries, a warpgroup 64 of them. Two blocks on a processor: one
// finds shares while the other multiplies. Judge: the CPU's (models/nn_attend.c), and torch.
//
// Architecture: sm_90a
#include "nn_attend_16.cuh"

#include "matmul_kernel.h"
#define MM_X (BF16 ? WT_MM_BF16 : WT_MM_F16)
#include "flash_wgmma.cuh"

#define THREADS 256

// N rows of q, k or v; zeros beyond the last row and the head's width.
template <int N>
static __device__ __forceinline__ void fetch(const nn_attend_args &a, const nn_strided &x, int head, int first,
                                             int n_rows, uint4 (*to)[N][8])
{
    constexpr int each = THREADS / PIECES; // rows at once, a multiple of eight: all are swizzled alike
    const int piece = threadIdx.x % PIECES, row = threadIdx.x / PIECES;
    const int left = 8 * piece < a.d_head ? n_rows - first - row : 0;
    const unsigned short *from = (const unsigned short *)x.data + row_of(x, head, first + row) + 8 * piece;
    uint4 *own = piece_at<N>(to, row, piece);
#pragma unroll
    for (int k = 0; k < N; k += each) copy_async_16(own + 8 * k, from + k * x.strides[2], k < left);
}

static __device__ __forceinline__ void fetch_page(const nn_attend_args &a, int kv_head, int begin, page *to)
{
    fetch<KEYS>(a, a.k, kv_head, begin, a.keys, to->keys);
    fetch<KEYS>(a, a.v, kv_head, begin, a.keys, to->values);
    copy_async_commit();
}

template <bool MASKED> static __device__ __forceinline__ void attend(const nn_attend_args &a)
{
    extern __shared__ unsigned char memory[];
    shared *m = (shared *)(memory + (-shared_of(memory) & 1023u));
    const int first = ((int)gridDim.x - 1 - (int)blockIdx.x) * TOKENS, head = blockIdx.y, kv_head = head / a.group;
    const int group = threadIdx.x / 128;
    const span all = tiles_of(a, first, first + TOKENS - 1, KEYS);
    const span own = tiles_of(a, first + 64 * group, first + 64 * group + 63, KEYS);
    rows r;
    let_next_begin();
    wait_for_earlier();
    if (all.first < all.end) {
        fetch<TOKENS>(a, a.q, head, first, a.queries, m->queries);
        fetch_page(a, kv_head, all.first, &m->pages[0]);
    }
    begin_rows(&r);
    for (int begin = all.first, slot = 0; begin < all.end; begin += KEYS, slot ^= 1) {
        copy_async_wait<0>();
        written();
        __syncthreads(); // the tile is there, and the one before was used by all
        if (begin + KEYS < all.end) fetch_page(a, kv_head, begin + KEYS, &m->pages[slot ^ 1]);
        if (begin < own.first || begin >= own.end) continue; // the whole warpgroup
        float s[KEYS / 8][4];
        score(m, group, &m->pages[slot], s[0]);
        weigh<MASKED>(a, first + (int)threadIdx.x / 32 * 16, begin, s, &r);
        add_values(&r, &m->pages[slot], s);
    }
    end_rows(a, first + (int)threadIdx.x / 32 * 16, &r);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) nn_attend_16(const __grid_constant__ nn_attend_args a)
{
    attend<false>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS) nn_attend_16_masked(const __grid_constant__ nn_attend_args a)
{
    attend<true>(a);
}
