// nn_attend.cu by products of warpgroups (flash_wgmma.cuh): a block 128 queries. Judge: the CPU's (models/nn_attend.c),
// and torch.
//
// Architecture: sm_90a
#define KEYS 128
#include "nn_attend_16.cuh"

#include "matmul_kernel.h"
#define MM_X (BF16 ? WT_MM_BF16 : WT_MM_F16)
#include "flash_wgmma.cuh"

// Rows first .. of q, k or v to rows `at` .. of the panels, N of them by a warpgroup; zeros beyond the last row and the
// head's width.
template <int N, int ROWS>
static __device__ __forceinline__ void copy_rows(const nn_attend_args &a, const nn_strided &x, int head, int first,
                                                 int n_rows, uint4 (*to)[ROWS][8], int at)
{
    const int piece = threadIdx.x % PIECES, row = threadIdx.x % GROUP_THREADS / PIECES;
    const int left = 8 * piece < a.d_head ? n_rows - first - row : 0;
    const unsigned short *from = (const unsigned short *)x.data + row_of(x, head, first + row) + 8 * piece;
    uint4 *own = piece_at<ROWS>(to, at + row, piece);
#pragma unroll
    for (int k = 0; k < N; k += AT_ONCE) copy_async_16(own + 8 * k, from + k * x.strides[2], k < left);
}

template <bool MASKED> static __device__ __forceinline__ void attend(const nn_attend_args &a)
{
    extern __shared__ unsigned char memory[];
    let_next_begin();
    shared *m = begin_shared(memory);
    wait_for_earlier();
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * TOKENS, head = blockIdx.x, kv_head = head / a.group;
    const span all = tiles_of(a, first, first + TOKENS - 1, KEYS);
    const int n_tiles = max(all.end - all.first + KEYS - 1, 0) / KEYS, group = (int)threadIdx.x / GROUP_THREADS - 1;
    if (group < 0) {
        registers_down<40>();
        const auto copy = [&](const nn_strided &x) {
            return [&](int k, uint4(*to)[KEYS][8]) {
                copy_rows<KEYS, KEYS>(a, x, kv_head, all.first + k * KEYS, a.keys, to, 0);
            };
        };
        copy_tiles(m, n_tiles, copy(a.k), copy(a.v));
        return;
    }
    registers_up<232>();
    const int own = first + ((int)threadIdx.x / 32 - 4) * 16; // the warp's queries
    rows r;
    copy_rows<64, TOKENS>(a, a.q, head, first + 64 * group, a.queries, m->queries, 64 * group);
    begin_rows(&r);
    queries_copied(group);
    if (n_tiles)
        attend_tiles(m, group, n_tiles, &r, [&](int k, float(*s)[4], float *fade) {
            weigh<MASKED>(a, own, all.first + k * KEYS, s, &r, fade);
        });
    end_rows(a, own, &r);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) nn_attend_16(const __grid_constant__ nn_attend_args a)
{
    attend<false>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) nn_attend_16_masked(const __grid_constant__ nn_attend_args a)
{
    attend<true>(a);
}
