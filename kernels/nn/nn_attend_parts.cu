// nn_attend.cu in float on tensor cores, every number in three bf16 (parts.cuh), for any types and heads up to 128: a
// block 128 queries, a warp 16 of them. A tile of keys and values, 64 or 32 of them, is on its way from memory while
// the one before is used; parts lie in shared memory, [part][key][dimension], of two tiles in turn. Judge: the CPU's
// (models/nn_attend.c), and torch.
#define BF16 1
#ifndef D_HEAD
#    define D_HEAD 64
#endif
#define KEYS (D_HEAD == 64 ? 64 : 32)
#include "nn_attend_16.cuh"

#include "parts.cuh"

#define THREADS 256
#define QUERIES 128
#define PITCH   (D_HEAD + 8)                    // elements of a row: rows side by side lie in other banks
#define EACH    (KEYS * (D_HEAD / 4) / THREADS) // fours of a thread

struct shared {
    unsigned short keys[PARTS][KEYS][PITCH], values[PARTS][KEYS][PITCH];
};

// ---- to shared memory

struct coming {
    float4 keys[EACH], values[EACH];
};

static __device__ __forceinline__ float4 four_of(const nn_attend_args &a, const nn_strided &x, long long at,
                                                 bool is_there)
{
    if (!is_there) return {0, 0, 0, 0};
    if (a.fours) return *(const float4 *)((const float *)x.data + at);
    return {load(x.data, x.type, at), load(x.data, x.type, at + 1), load(x.data, x.type, at + 2),
            load(x.data, x.type, at + 3)};
}

static __device__ __forceinline__ void fetch(const nn_attend_args &a, int kv_head, int begin, coming *to)
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = threadIdx.x + i * THREADS, row = begin + e / (D_HEAD / 4), d = e % (D_HEAD / 4) * 4;
        const bool is_there = row < a.keys && d < a.d_head;
        to->keys[i] = four_of(a, a.k, row_of(a.k, kv_head, row) + d, is_there);
        to->values[i] = four_of(a, a.v, row_of(a.v, kv_head, row) + d, is_there);
    }
}

static __device__ __forceinline__ void put(const float4 &x, int e, unsigned short (*to)[KEYS][PITCH])
{
    unsigned low[PARTS], high[PARTS];
    part_pair(x.x, x.y, low);
    part_pair(x.z, x.w, high);
#pragma unroll
    for (int p = 0; p < PARTS; p++)
        *(uint2 *)&to[p][e / (D_HEAD / 4)][e % (D_HEAD / 4) * 4] = make_uint2(low[p], high[p]);
}

static __device__ __forceinline__ void put(const coming &own, shared *to)
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        put(own.keys[i], threadIdx.x + i * THREADS, to->keys);
        put(own.values[i], threadIdx.x + i * THREADS, to->values);
    }
}

// ---- products

typedef unsigned parts_of_16[PARTS][4]; // 16 x 16 numbers as the first side of a product

static __device__ __forceinline__ void load_queries(const nn_attend_args &a, int head, int first, parts_of_16 *q)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < D_HEAD / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int query = first + g + i % 2 * 8, d = 16 * k + i / 2 * 8 + 2 * t;
            const bool is_there = query < a.queries && d < a.d_head;
            const long long at = row_of(a.q, head, is_there ? query : 0) + d;
            unsigned own[PARTS];
            part_pair(is_there ? load(a.q.data, a.q.type, at) : 0, is_there ? load(a.q.data, a.q.type, at + 1) : 0,
                      own);
#pragma unroll
            for (int p = 0; p < PARTS; p++) q[k][p][i] = own[p];
        }
}

// A short sum: of 16 rows by two columns of eight of B, the first of which has words 0 and 1 of each part.
struct two_columns {
    float large[2][4], small[2][4];
};

static __device__ __forceinline__ void add_product(two_columns *d, const parts_of_16 &a, const unsigned (*b)[4])
{
#pragma unroll
    for (int n = 0; n < 2; n++) {
        const unsigned low[PARTS] = {b[0][2 * n], b[1][2 * n], b[2][2 * n]};
        const unsigned high[PARTS] = {b[0][2 * n + 1], b[1][2 * n + 1], b[2][2 * n + 1]};
        mma_parts(d->large[n], d->small[n], a, low, high);
    }
}

static __device__ __forceinline__ void score(const parts_of_16 *q, const shared *m, float (*s)[4])
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int n = 0; n < KEYS / 8; n += 2) { // 16 keys
        two_columns sum = {};
#pragma unroll
        for (int k = 0; k < D_HEAD / 16; k++) {
            unsigned b[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                load_matrices(b[p], &m->keys[p][8 * n + matrix / 2 * 8 + lane % 8][16 * k + matrix % 2 * 8]);
            add_product(&sum, q[k], b);
        }
#pragma unroll
        for (int c = 0; c < 4; c++) {
            s[n][c] = sum.large[0][c] + sum.small[0][c];
            s[n + 1][c] = sum.large[1][c] + sum.small[1][c];
        }
    }
}

static __device__ __forceinline__ void add_values(const float (*s)[4], const shared *m, rows *r)
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
    parts_of_16 shares[KEYS / 16];
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned own[PARTS];
            part_pair(s[2 * k + i / 2][i % 2 * 2], s[2 * k + i / 2][i % 2 * 2 + 1], own);
#pragma unroll
            for (int p = 0; p < PARTS; p++) shares[k][p][i] = own[p];
        }
#pragma unroll
    for (int n = 0; n < D_HEAD / 16; n++) { // 16 dimensions
        two_columns sum = {};
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
            unsigned b[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                load_matrices_transposed(b[p],
                                         &m->values[p][16 * k + matrix % 2 * 8 + lane % 8][16 * n + matrix / 2 * 8]);
            add_product(&sum, shares[k], b);
        }
#pragma unroll
        for (int c = 0; c < 4; c++) {
            r->sum[2 * n][c] += sum.large[0][c] + sum.small[0][c];
            r->sum[2 * n + 1][c] += sum.large[1][c] + sum.small[1][c];
        }
    }
}

template <bool MASKED> static __device__ __forceinline__ void attend(const nn_attend_args &a)
{
    extern __shared__ uint4 memory[];
    shared *m = (shared *)memory; // of two tiles
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * QUERIES, head = blockIdx.x, kv_head = head / a.group;
    const int own = first + (int)threadIdx.x / 32 * 16;
    const span all = tiles_of(a, first, first + QUERIES - 1, KEYS);
    parts_of_16 q[D_HEAD / 16];
    coming next;
    rows r;
    let_next_begin();
    wait_for_earlier();
    begin_rows(&r);
    load_queries(a, head, own, q);
    if (all.first < all.end) {
        fetch(a, kv_head, all.first, &next);
        put(next, m);
    }
    for (int begin = all.first, turn = 0; begin < all.end; begin += KEYS, turn ^= 1) {
        if (begin + KEYS < all.end) fetch(a, kv_head, begin + KEYS, &next);
        __syncthreads(); // the tile is there, and the one before was used by all
        float s[KEYS / 8][4], fade[2];
        score(q, m + turn, s);
        weigh<MASKED>(a, own, begin, s, &r, fade);
        fade_sums(&r, fade);
        add_values(s, m + turn, &r);
        if (begin + KEYS < all.end) put(next, m + (turn ^ 1));
    }
    end_rows(a, own, &r);
}

extern "C" __global__ void __launch_bounds__(THREADS) nn_attend_parts(const __grid_constant__ nn_attend_args a)
{
    attend<false>(a);
}

extern "C" __global__ void __launch_bounds__(THREADS) nn_attend_parts_masked(const __grid_constant__ nn_attend_args a)
{
    attend<true>(a);
}
