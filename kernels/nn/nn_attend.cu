// Attention: out = softmax(scale q k^T + mask) v, a tile of keys at a time, with running maxima and totals, so that no
// matrix of scores lies in memory. On tensor cores by mma.sync: a block 64 queries, a warp 16 of them;
// nn_attend_wgmma.cu is for compute capability 9.0, nn_attend_f32.cu for other types and wider heads. Judge: the CPU's
// (models/nn_attend.c), and torch.
#include "nn_attend_16.cuh"

#define PITCH (D_HEAD + 8) // elements of a row: rows side by side lie in other banks
#define TILE  64           // of queries and keys

static __device__ __forceinline__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    if (BF16)
        mma_bf16(d, a, b0, b1);
    else
        mma_f16(d, a, b0, b1);
}

// 64 rows of q, k or v; zeros beyond the last row and the head's width.
static __device__ __forceinline__ void fetch(const nn_attend_args &a, const nn_strided &x, int head, int first,
                                             int n_rows, unsigned short *to)
{
    for (int i = threadIdx.x; i < TILE * (D_HEAD / 8); i += 128) {
        const int row = i / (D_HEAD / 8), d = i % (D_HEAD / 8) * 8;
        const bool valid = first + row < n_rows && d < a.d_head;
        const long long at = valid ? row_of(x, head, first + row) + d : 0;
        copy_async_16(to + row * PITCH + d, (const unsigned short *)x.data + at, valid);
    }
    copy_async_commit();
}

// The queries, through shared memory.
static __device__ __forceinline__ void load_queries(const nn_attend_args &a, int head, int first, unsigned short *tiles,
                                                    unsigned (*q)[4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    fetch(a, a.q, head, first, a.queries, tiles);
    copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D_HEAD / 16; k++)
        load_matrices(q[k], tiles + (16 * warp + lane % 16) * PITCH + 16 * k + lane / 16 * 8);
    __syncthreads(); // the queries are in registers
}

// Queries times the keys of a tile.
static __device__ __forceinline__ void score(const unsigned (*q)[4], const unsigned short *keys, float (*s)[4])
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n += 2) { // 16 keys
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = s[n + 1][0] = s[n + 1][1] = s[n + 1][2] = s[n + 1][3] = 0;
#pragma unroll
        for (int k = 0; k < D_HEAD / 16; k++) {
            unsigned b[4];
            load_matrices(b, keys + (8 * n + matrix / 2 * 8 + lane % 8) * PITCH + 16 * k + matrix % 2 * 8);
            mma(s[n], q[k], b[0], b[1]);
            mma(s[n + 1], q[k], b[2], b[3]);
        }
    }
}

// Shares times the values of a tile.
static __device__ __forceinline__ void add_values(const float (*s)[4], const unsigned short *values, rows *r)
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        unsigned p[4];
        shares_of(s, k, p);
#pragma unroll
        for (int n = 0; n < D_HEAD / 16; n++) {
            unsigned b[4];
            load_matrices_transposed(b,
                                     values + (16 * k + matrix % 2 * 8 + lane % 8) * PITCH + 16 * n + matrix / 2 * 8);
            mma(r->sum[2 * n], p, b[0], b[1]);
            mma(r->sum[2 * n + 1], p, b[2], b[3]);
        }
    }
}

template <bool MASKED> static __device__ __forceinline__ void attend(const nn_attend_args &a)
{
    extern __shared__ uint4 memory[]; // two tiles of keys and values; first the queries
    unsigned short *tiles = (unsigned short *)memory;
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * TILE, head = blockIdx.x, kv_head = head / a.group;
    const span all = tiles_of(a, first, first + TILE - 1, KEYS);
    unsigned q[D_HEAD / 16][4];
    rows r;
    let_next_begin();
    wait_for_earlier();
    begin_rows(&r);
    load_queries(a, head, first, tiles, q);
    if (all.first < all.end) {
        fetch(a, a.k, kv_head, all.first, a.keys, tiles);
        fetch(a, a.v, kv_head, all.first, a.keys, tiles + TILE * PITCH);
    }
    for (int begin = all.first, turn = 0; begin < all.end; begin += KEYS, turn ^= 1) {
        const unsigned short *keys = tiles + turn * 2 * TILE * PITCH;
        unsigned short *next = tiles + (turn ^ 1) * 2 * TILE * PITCH;
        copy_async_wait<0>();
        __syncthreads(); // the tile is there, and the one before was used by all
        if (begin + KEYS < all.end) {
            fetch(a, a.k, kv_head, begin + KEYS, a.keys, next);
            fetch(a, a.v, kv_head, begin + KEYS, a.keys, next + TILE * PITCH);
        }
        float s[KEYS / 8][4], fade[2];
        score(q, keys, s);
        weigh<MASKED>(a, first + 16 * (threadIdx.x / 32), begin, s, &r, fade);
        fade_sums(&r, fade);
        add_values(s, keys + TILE * PITCH, &r);
    }
    end_rows(a, first + 16 * (threadIdx.x / 32), &r);
}

extern "C" __global__ void __launch_bounds__(128) nn_attend_16(const __grid_constant__ nn_attend_args a)
{
    attend<false>(a);
}
extern "C" __global__ void __launch_bounds__(128) nn_attend_16_masked(const __grid_constant__ nn_attend_args a)
{
    attend<true>(a);
}
