// nn_attend.cu in float for heads up to 256, of any types: a block 32 queries of a head, tiles of as many keys. Threads
// 16 y
// + x: of scores four queries and every 16th key, of sums the same queries and dimensions 4 x .. of each 64. Queries
// and keys lie turned in shared memory, [dimension][row], shares [key][query]; keys and values take turns in one place.
// Judge: the CPU's (models/nn_attend.c), and torch.
#include "nn_attend.cuh"

#define THREADS 128
#define D       256
#define TILE    32 // of queries and keys
#define PITCH   (TILE + 4)

static __device__ __forceinline__ void bring(float *to, const nn_strided &x, long long at, bool valid)
{
    if (x.type == NN_F32)
        copy_async_4(to, (const float *)x.data + (valid ? at : 0), valid);
    else
        *to = valid ? load(x.data, x.type, at) : 0;
}

// TILE rows, turned; zeros beyond the last row. Keys lie with those of a thread side by side: row 16 j + x in column
// n x + j of TILE = 16 n, so that threads write shares of neighbours to other banks.
template <bool ARE_KEYS>
static __device__ __forceinline__ void bring_turned(const nn_attend_args &a, const nn_strided &x, int head, int first,
                                                    int n_rows, float *to)
{
    constexpr int n = TILE / 16;
    for (int k = threadIdx.x / 8; k < TILE; k += THREADS / 8) { // a warp brings neighbouring columns
        const int row = ARE_KEYS ? k % n * 16 + k / n : k;
        const long long at = row_of(x, head, first + row);
        for (int d = threadIdx.x % 8; d < a.d_head; d += 8) bring(to + d * PITCH + k, x, at + d, first + row < n_rows);
    }
}

// TILE rows as they are, D + 4 apart; zeros beyond the last row. Four elements at once where they lie so.
static __device__ __forceinline__ void bring_rows(const nn_attend_args &a, const nn_strided &x, int head, int first,
                                                  int n_rows, float *to)
{
    if (a.fours) {
        for (int i = threadIdx.x; i < TILE * (D / 4); i += THREADS) {
            const int row = i / (D / 4), d = i % (D / 4) * 4;
            const bool valid = first + row < n_rows && d < a.d_head;
            const long long at = valid ? row_of(x, head, first + row) + d : 0;
            copy_async_16(to + row * (D + 4) + d, (const float *)x.data + at, valid);
        }
        return;
    }
    for (int i = threadIdx.x; i < TILE * D; i += THREADS) {
        const int row = i / D, d = i % D;
        bring(to + row * (D + 4) + d, x, row_of(x, head, first + row) + d, first + row < n_rows && d < a.d_head);
    }
}

template <int N> static __device__ __forceinline__ void load_shared(float *to, const float *from)
{
    if (N % 4) {
        *(float2 *)to = *(const float2 *)from;
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i += 4) *(float4 *)(to + i) = *(const float4 *)(from + i);
}

// Scores of the tile to shares under the new maxima; what was summed under the old ones fades.
static __device__ __forceinline__ void share(const nn_attend_args &a, int first, int begin, const span &common,
                                             float (*s)[TILE / 16], float *most, float *total, float (*sums)[D / 16])
{
    const int head = blockIdx.x, query = first + TILE / 8 * (threadIdx.x / 16), key = begin + threadIdx.x % 16;
    const bool plain = !a.mask && begin >= common.first && begin + TILE <= common.end;
    const float scale = a.scale * LOG2_E;
#pragma unroll
    for (int i = 0; i < TILE / 8; i++) {
        float now = most[i], sum = 0;
        const span own = query + i < a.queries ? span_of(a, query + i) : span{0, 0};
        const long long row = mask_row_of(a, head, query + i);
#pragma unroll
        for (int j = 0; j < TILE / 16; j++) {
            s[i][j] = plain || (key + 16 * j >= own.first && key + 16 * j < own.end) ? s[i][j] * scale : NOTHING;
            if (a.mask) masked(a, row, key + 16 * j, &s[i][j]);
            now = fmaxf(now, s[i][j]);
        }
#pragma unroll
        for (int step = 8; step; step /= 2) now = fmaxf(now, __shfl_xor_sync(ALL, now, step));
        const float base = now == NOTHING ? 0 : now, fade = power_of_2(most[i] - base);
#pragma unroll
        for (int j = 0; j < TILE / 16; j++) sum += s[i][j] = power_of_2(s[i][j] - base);
        total[i] = total[i] * fade + sum; // of this thread's keys
        most[i] = now;
#pragma unroll
        for (int j = 0; j < D / 16; j++) sums[i][j] *= fade;
    }
}

// Products of the thread's queries with its keys of the tile.
static __device__ __forceinline__ void add_scores(const nn_attend_args &a, const float *q, const float *keys,
                                                  float (*s)[TILE / 16])
{
    constexpr int n_queries = TILE / 8, n_keys = TILE / 16;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 4
    for (int d = 0; d < a.d_head; d++) {
        float u[n_queries], v[n_keys];
        load_shared<n_queries>(u, q + d * PITCH + n_queries * ty);
        load_shared<n_keys>(v, keys + d * PITCH + n_keys * tx);
#pragma unroll
        for (int i = 0; i < n_queries; i++)
#pragma unroll
            for (int j = 0; j < n_keys; j++) s[i][j] += u[i] * v[j];
    }
}

static __device__ __forceinline__ void add_values(const float *shares, const float *values, float (*sums)[D / 16])
{
    constexpr int n_queries = TILE / 8;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 4
    for (int key = 0; key < TILE; key++) {
        float u[n_queries], v[D / 16];
        load_shared<n_queries>(u, shares + key * PITCH + n_queries * ty);
#pragma unroll
        for (int j = 0; j < D / 16; j += 4) load_shared<4>(v + j, values + key * (D + 4) + 16 * j + 4 * tx);
#pragma unroll
        for (int i = 0; i < n_queries; i++)
#pragma unroll
            for (int j = 0; j < D / 16; j++) sums[i][j] += u[i] * v[j];
    }
}

// The thread's sums over the totals of all threads' shares.
static __device__ __forceinline__ void finish(const nn_attend_args &a, int first, const float (*sums)[D / 16],
                                              float *total)
{
    constexpr int n_queries = TILE / 8;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, head = blockIdx.x;
#pragma unroll
    for (int i = 0; i < n_queries; i++) {
        const int query = first + n_queries * ty + i;
#pragma unroll
        for (int step = 8; step; step /= 2) total[i] += __shfl_xor_sync(ALL, total[i], step);
        const float whole = total[i] > 0 ? 1 / total[i] : 0;
#pragma unroll
        for (int j = 0; j < D / 16; j++) {
            const int d = 16 * (j / 4 * 4) + 4 * tx + j % 4;
            if (query < a.queries && d < a.d_head)
                store(a.out.data, a.out.type, row_of(a.out, head, query) + d, sums[i][j] * whole);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) nn_attend_wide(const __grid_constant__ nn_attend_args a)
{
    extern __shared__ float4 memory[];
    constexpr int n_queries = TILE / 8, n_keys = TILE / 16;
    float *const q = (float *)memory, *const shares = q + D * PITCH, *const keys = shares + TILE * PITCH;
    float *const values = keys;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, head = blockIdx.x, kv_head = head / a.group;
    const int first = ((int)gridDim.y - 1 - (int)blockIdx.y) * TILE;
    const span all = tiles_of(a, first, first + TILE - 1, TILE), common = common_of(a, first, first + TILE - 1);
    float sums[n_queries][D / 16] = {}, most[n_queries], total[n_queries] = {};
#pragma unroll
    for (int i = 0; i < n_queries; i++) most[i] = NOTHING;
    let_next_begin();
    wait_for_earlier();
    if (all.first < all.end) {
        bring_turned<false>(a, a.q, head, first, a.queries, q);
        bring_turned<true>(a, a.k, kv_head, all.first, a.keys, keys);
        copy_async_commit();
    }
    for (int begin = all.first; begin < all.end; begin += TILE) {
        const bool more = begin + TILE < all.end;
        float s[n_queries][n_keys] = {};
        copy_async_wait<0>();
        __syncthreads(); // the keys are there
        add_scores(a, q, keys, s);
        __syncthreads(); // the keys were used by all
        bring_rows(a, a.v, kv_head, begin, a.keys, values);
        copy_async_commit();
        share(a, first, begin, common, s, most, total, sums);
#pragma unroll
        for (int j = 0; j < n_keys; j++)
#pragma unroll
            for (int i = 0; i < n_queries; i += 4)
                *(float4 *)(shares + (16 * j + tx) * PITCH + n_queries * ty + i) =
                    make_float4(s[i][j], s[i + 1][j], s[i + 2][j], s[i + 3][j]);
        copy_async_wait<0>();
        __syncthreads(); // the values and the shares are there
        add_values(shares, values, sums);
        __syncthreads(); // the values were used by all
        if (more) bring_turned<true>(a, a.k, kv_head, begin + TILE, a.keys, keys);
        copy_async_commit();
    }
    finish(a, first, sums, total);
}
