// Attention: out = softmax(scale q k^T + mask) v, a tile of keys at a time, with running maxima and totals, so that no
// matrix of scores lies in memory.
//
//   nn_attend_f32  any types: a block 32 queries of a head, four threads a query, tiles of 32 keys in shared memory as float
//   nn_attend_16   q, k and v of one 16-bit type (-DBF16=1: bf16), on tensor cores: a block 64 queries, a warp 16 of them,
//                  tiles of 64 keys; shares are rounded to that type before they meet the values. -DD_HEAD: 64 or 128,
//                  smaller heads are filled up with zeros
//
// Grid: tiles of queries, heads, n. Judge: the CPU's (models/nn_attend.c), and torch.
#include "nn.cuh"

#ifndef D_HEAD
#define D_HEAD 64
#endif
#ifndef BF16
#define BF16 1
#endif
#define NOTHING (-1e30f)

// Keys that query i may look at are first .. end - 1.
struct span {
    int first, end;
};

static __device__ __forceinline__ span span_of(const nn_attend_args &a, int query)
{
    const int end = a.causal ? min(query + a.keys - a.queries + 1, a.keys) : a.keys;
    const int last = a.causal ? query + a.keys - a.queries : a.keys - 1;
    span s = {a.window ? max(last - a.window + 1, 0) : 0, max(end, 0)};
    return s;
}

// A score under the mask, in units of log2; NOTHING where the query may not look.
static __device__ __forceinline__ float masked(const nn_attend_args &a, const span &s, int head, int query, int key, float x)
{
    if (key < s.first || key >= s.end) return NOTHING;
    x *= a.scale * 1.44269504f;
    if (!a.mask) return x;
    const long long at = blockIdx.z * a.mask_strides[0] + head * a.mask_strides[1] + query * a.mask_strides[2] +
                         key * a.mask_strides[3];
    if (a.mask_type == NN_BOOL) return ((const unsigned char *)a.mask)[at] ? x : NOTHING;
    return fmaxf(x + load(a.mask, a.mask_type, at) * 1.44269504f, NOTHING);
}

static __device__ __forceinline__ long long row_of(const nn_strided &x, int head, long long position)
{
    return blockIdx.z * x.strides[0] + head * x.strides[1] + position * x.strides[2];
}

// Tiles of keys that any query of first .. last looks at: begin, rounded down, and end.
static __device__ __forceinline__ span tiles_of(const nn_attend_args &a, int first, int last, int keys_a_tile)
{
    span s = {span_of(a, first).first / keys_a_tile * keys_a_tile, span_of(a, min(last, a.queries - 1)).end};
    return s;
}

// ---- float

#define QUERIES 32
#define KEYS    32

// Threads 4 q + r of query q: keys and dimensions r, r + 4 ..; d_head up to 256, 64 dimensions a thread.
extern "C" __global__ void __launch_bounds__(128) nn_attend_f32(nn_attend_args a)
{
    extern __shared__ float shared[]; // [q, k, v][32][pitch]
    const int pitch = a.d_head + 1, own = threadIdx.x / 4, r = threadIdx.x % 4, head = blockIdx.y, first = blockIdx.x * QUERIES;
    const int query = first + own, kv_head = head / a.group;
    float *q = shared, *k = q + QUERIES * pitch, *v = k + KEYS * pitch, sums[64], most = NOTHING, total = 0;
    const span mine = span_of(a, query), tiles = tiles_of(a, first, first + QUERIES - 1, KEYS);
    for (int i = threadIdx.x; i < QUERIES * a.d_head; i += 128) {
        const int row = i / a.d_head, d = i % a.d_head;
        q[row * pitch + d] = first + row < a.queries ? load(a.q.data, a.q.type, row_of(a.q, head, first + row) + d) : 0;
    }
#pragma unroll
    for (int d = 0; d < 64; d++) sums[d] = 0;
    for (int begin = tiles.first; begin < tiles.end; begin += KEYS) {
        __syncthreads(); // the last tile has been used
        for (int i = threadIdx.x; i < KEYS * a.d_head; i += 128) {
            const int row = i / a.d_head, d = i % a.d_head;
            const bool is_there = begin + row < a.keys;
            k[row * pitch + d] = is_there ? load(a.k.data, a.k.type, row_of(a.k, kv_head, begin + row) + d) : 0;
            v[row * pitch + d] = is_there ? load(a.v.data, a.v.type, row_of(a.v, kv_head, begin + row) + d) : 0;
        }
        __syncthreads();
        float s[KEYS / 4], now = most, fade;
#pragma unroll
        for (int j = 0; j < KEYS / 4; j++) {
            const float *row = k + (4 * j + r) * pitch;
            s[j] = 0;
            for (int d = 0; d < a.d_head; d++) s[j] += q[own * pitch + d] * row[d];
            s[j] = query < a.queries ? masked(a, mine, head, query, begin + 4 * j + r, s[j]) : NOTHING;
            now = fmaxf(now, s[j]);
        }
        now = fmaxf(now, __shfl_xor_sync(ALL, now, 1));
        now = fmaxf(now, __shfl_xor_sync(ALL, now, 2));
        fade = exp2f(most - now);
        most = now;
        total *= fade;
#pragma unroll
        for (int d = 0; d < 64; d++) sums[d] *= fade;
#pragma unroll
        for (int j = 0; j < KEYS / 4; j++) {
            s[j] = s[j] > NOTHING ? exp2f(s[j] - most) : 0;
            total += s[j];
#pragma unroll
            for (int other = 0; other < 4; other++) { // the shares of all four threads
                const float share = __shfl_sync(ALL, s[j], threadIdx.x % 32 / 4 * 4 + other);
                const float *row = v + (4 * j + other) * pitch + r;
#pragma unroll
                for (int d = 0; d < 64; d++)
                    if (4 * d < a.d_head) sums[d] += share * row[4 * d];
            }
        }
    }
    total += __shfl_xor_sync(ALL, total, 1);
    total += __shfl_xor_sync(ALL, total, 2);
    const float whole = total > 0 ? 1 / total : 0;
#pragma unroll
    for (int d = 0; d < 64; d++)
        if (4 * d < a.d_head && query < a.queries)
            store(a.out.data, a.out.type, row_of(a.out, head, query) + 4 * d + r, sums[d] * whole);
}

// ---- tensor cores

#define PITCH (D_HEAD + 8) // elements of a row: rows side by side lie in other banks
#define TILE  64           // of queries and keys

static __device__ __forceinline__ unsigned pair_of(float low, float high)
{
    return BF16 ? bf16_of_f32(low) | (unsigned)bf16_of_f32(high) << 16 : f16_of_f32(low) | (unsigned)f16_of_f32(high) << 16;
}

static __device__ __forceinline__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1)
{
    if (BF16) mma_bf16(d, a, b0, b1);
    else mma_f16(d, a, b0, b1);
}

// 64 rows of q, k or v; zeros beyond the last row and the head's width.
static __device__ __forceinline__ void fetch(const nn_attend_args &a, const nn_strided &x, int head, int first, int rows,
                                             unsigned short *to)
{
    for (int i = threadIdx.x; i < TILE * (D_HEAD / 8); i += 128) {
        const int row = i / (D_HEAD / 8), d = i % (D_HEAD / 8) * 8;
        const bool valid = first + row < rows && d < a.d_head;
        const long long at = valid ? row_of(x, head, first + row) + d : 0;
        copy_async_16(to + row * PITCH + d, (const unsigned short *)x.data + at, valid);
    }
    copy_async_commit();
}

// What a lane has of its warp's 16 queries: rows g and g + 8, lane = 4 g + t, columns 2 t and 2 t + 1 of each 8.
struct fragment {
    unsigned q[D_HEAD / 16][4];
    float sums[D_HEAD / 8][4], most[2], total[2];
    int head, query[2];
    span may[2];
};

// The queries, through shared memory.
static __device__ __forceinline__ void load_queries(const nn_attend_args &a, int first, unsigned short *tiles, fragment &f)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    fetch(a, a.q, f.head, first, a.queries, tiles);
    copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D_HEAD / 16; k++)
        load_matrices(f.q[k], tiles + (16 * warp + lane % 16) * PITCH + 16 * k + lane / 16 * 8);
    __syncthreads(); // the queries are in registers
}

// Queries times the keys of a tile.
static __device__ __forceinline__ void score(const fragment &f, const unsigned short *keys, float (&s)[TILE / 8][4])
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int n = 0; n < TILE / 8; n += 2) { // 16 keys
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = s[n + 1][0] = s[n + 1][1] = s[n + 1][2] = s[n + 1][3] = 0;
#pragma unroll
        for (int k = 0; k < D_HEAD / 16; k++) {
            unsigned b[4];
            load_matrices(b, keys + (8 * n + matrix / 2 * 8 + lane % 8) * PITCH + 16 * k + matrix % 2 * 8);
            mma(s[n], f.q[k], b[0], b[1]);
            mma(s[n + 1], f.q[k], b[2], b[3]);
        }
    }
}

// Scores of the keys from `begin` on to shares, and what was summed before to the new largest.
static __device__ __forceinline__ void weigh(const nn_attend_args &a, int begin, float (&s)[TILE / 8][4], fragment &f)
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float now = f.most[h], sum = 0;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int c = 2 * h; c < 2 * h + 2; c++) {
                const int key = begin + 8 * n + 2 * t + c % 2;
                s[n][c] = f.query[h] < a.queries ? masked(a, f.may[h], f.head, f.query[h], key, s[n][c]) : NOTHING;
                now = fmaxf(now, s[n][c]);
            }
        now = fmaxf(now, __shfl_xor_sync(ALL, now, 1));
        now = fmaxf(now, __shfl_xor_sync(ALL, now, 2));
        const float fade = exp2f(f.most[h] - now);
        f.most[h] = now;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int c = 2 * h; c < 2 * h + 2; c++) {
                s[n][c] = s[n][c] > NOTHING ? exp2f(s[n][c] - now) : 0;
                sum += s[n][c];
            }
        f.total[h] = f.total[h] * fade + sum;
#pragma unroll
        for (int n = 0; n < D_HEAD / 8; n++) {
            f.sums[n][2 * h] *= fade;
            f.sums[n][2 * h + 1] *= fade;
        }
    }
}

// Shares times the values of a tile.
static __device__ __forceinline__ void add_values(const float (&s)[TILE / 8][4], const unsigned short *values, fragment &f)
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        const unsigned p[4] = {pair_of(s[2 * k][0], s[2 * k][1]), pair_of(s[2 * k][2], s[2 * k][3]),
                               pair_of(s[2 * k + 1][0], s[2 * k + 1][1]), pair_of(s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < D_HEAD / 16; n++) {
            unsigned b[4];
            load_matrices_transposed(b, values + (16 * k + matrix % 2 * 8 + lane % 8) * PITCH + 16 * n + matrix / 2 * 8);
            mma(f.sums[2 * n], p, b[0], b[1]);
            mma(f.sums[2 * n + 1], p, b[2], b[3]);
        }
    }
}

static __device__ __forceinline__ void finish(const nn_attend_args &a, fragment &f)
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        f.total[h] += __shfl_xor_sync(ALL, f.total[h], 1);
        f.total[h] += __shfl_xor_sync(ALL, f.total[h], 2);
        if (f.query[h] >= a.queries) continue;
        const float whole = f.total[h] > 0 ? 1 / f.total[h] : 0;
        const long long at = row_of(a.out, f.head, f.query[h]);
#pragma unroll
        for (int n = 0; n < D_HEAD / 8; n++)
#pragma unroll
            for (int c = 0; c < 2; c++)
                if (8 * n + 2 * t + c < a.d_head)
                    store(a.out.data, a.out.type, at + 8 * n + 2 * t + c, f.sums[n][2 * h + c] * whole);
    }
}

extern "C" __global__ void __launch_bounds__(128) nn_attend_16(nn_attend_args a)
{
    extern __shared__ uint4 memory[]; // two tiles of keys and values; first the queries
    unsigned short *tiles = (unsigned short *)memory;
    const int first = ((int)gridDim.x - 1 - (int)blockIdx.x) * TILE, head = blockIdx.y, kv_head = head / a.group;
    const int row = first + 16 * (threadIdx.x / 32) + threadIdx.x % 32 / 4;
    const span all = tiles_of(a, first, first + TILE - 1, TILE);
    fragment f = {{}, {}, {NOTHING, NOTHING}, {0, 0}, head, {row, row + 8}, {span_of(a, row), span_of(a, row + 8)}};
    load_queries(a, first, tiles, f);
    if (all.first < all.end) {
        fetch(a, a.k, kv_head, all.first, a.keys, tiles);
        fetch(a, a.v, kv_head, all.first, a.keys, tiles + TILE * PITCH);
    }
    for (int begin = all.first, turn = 0; begin < all.end; begin += TILE, turn ^= 1) {
        const unsigned short *keys = tiles + turn * 2 * TILE * PITCH;
        unsigned short *next = tiles + (turn ^ 1) * 2 * TILE * PITCH;
        copy_async_wait<0>();
        __syncthreads(); // the tile is there, and the one before was used by all
        if (begin + TILE < all.end) {
            fetch(a, a.k, kv_head, begin + TILE, a.keys, next);
            fetch(a, a.v, kv_head, begin + TILE, a.keys, next + TILE * PITCH);
        }
        float s[TILE / 8][4];
        score(f, keys, s);
        weigh(a, begin, s, f);
        add_values(s, keys + TILE * PITCH, f);
    }
    finish(a, f);
}
