// llm_attend.cu on tensor cores, for one token of each of some sequences: caches of 16 bits or fp8, heads of 64 and
// 128, compute capability 9.0 and newer.
//
// A block has some heads that share a head of keys (four, where it can be, so that there is room for blocks of the
// launches before and after it), and a warp 16 positions at a time: the first side of a product is
// 16 positions, then 16 dimensions of their values, the second the heads, four of a product's eight columns as numbers
// of the tiles' type and the other four as what rounding left of them: errors of 2^-17 (bf16) and 2^-22 (f16). Keys and
// values of positions before this step go from memory to registers as mma.m16n8k16 wants them, before the step's own q,
// k and v are there. These are turned by every block for its heads; the block that has the step's own position puts it
// into the cache. Warps of a block are added in order, then the blocks of a cluster, which share the positions: each
// sends every other its pieces of what that one adds. Grid: parts of the positions, a cluster; heads; tokens.
//
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_positions.cuh"
#include "llm_turn.cuh"

#include "barrier.cuh"
#include "cluster.cuh"
#include "overlap.cuh"

#define WARPS   WT_LLM_ATTEND_WARPS
#define THREADS (32 * WARPS)

static constexpr int heads_at_once(int n) // the largest divisor of the group up to 8
{
    return GROUP % n ? heads_at_once(n - 1) : n;
}
static constexpr int HEADS = GROUP % 4 ? heads_at_once(GROUP < 8 ? GROUP : 8) : 4; // as gpu.c; of more no room beside
static constexpr int FOURS = (HEADS + 3) / 4;                                             // heads of a product
static constexpr int PAIRS = HEADS * D_HEAD / 2;                                          // of a block's sums
static constexpr int DIMS = D_HEAD / 16;                                                  // products of the values
static constexpr int OF_WARP = WT_LLM_ATTEND_OF_WARP(D_HEAD, sizeof(kv_type), HEADS) / 4; // floats of shared memory
static constexpr int BLOCKS = HEADS > 4 ? 1 : 2; // half of a processor's registers, where that is enough

// What a lane has found: of heads 4 f + t % 2 * 2 + 0 and 1.
struct found {
    float sum[FOURS][DIMS][4], most[FOURS][2], total[FOURS][2];
};

struct shared {
    tile_type queries[FOURS][8][PITCH]; // rounded, then what that left
    kv_type own[2][PITCH];              // key and value of this step
    float2 found[HEADS][WARPS];         // maximum and total
    float turned[WARPS][D_HEAD];
    float4 sent[PAIRS]; // by the blocks of the cluster, in turn: a pair, its maximum and its total
    unsigned long long all_sent;
};

// ---- positions

// A tile in shared memory: what a lane has, side by side with the others'.
struct fetched_tile {
    piece *at; // the lane's
    __device__ __forceinline__ piece *key(int n, int k) { return at + 32 * (n * (D_HEAD / 32) + k); }
    __device__ __forceinline__ piece *value(int i, int e) { return at + 32 * (D_HEAD / 16 + i * (D_HEAD / 64) + e); }
};

static __device__ __forceinline__ void fetch(const kv_type *keys, const kv_type *values, fetched_tile to)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int k = 0; k < D_HEAD / 32; k++)
            copy_piece(to.key(n, k), (const piece *)(keys + (8 * n + g) * D_HEAD) + 4 * k + t);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int e = 0; e < D_HEAD / 64; e++)
            copy_piece(to.value(i, e), (const piece *)(values + row_of_values(i) * D_HEAD) + 8 * e + g);
    copy_async_commit();
}

// This step's, as row `row` of the tile. Values beyond it become 0: they may be no numbers.
template <class T> static __device__ __forceinline__ void add_own(const shared *m, int row, T &to)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int k = 0; k < D_HEAD / 32; k++)
            if (8 * n + g == row) *to.key(n, k) = *(const piece *)(m->own[0] + 8 * (4 * k + t));
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int e = 0; e < D_HEAD / 64; e++) {
            if (row_of_values(i) == row) *to.value(i, e) = *(const piece *)(m->own[1] + 8 * (8 * e + g));
            if (row_of_values(i) > row) *to.value(i, e) = {};
        }
}

// ---- products

// Of positions g (0 and 1) and g + 8 (2 and 3) with the lane's heads. Four sums, so that products need not wait for
// each other.
template <class T> static __device__ __forceinline__ void score(const shared *m, T &p, float (*s)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int f = 0; f < FOURS; f++) {
        float sums[4][4] = {};
#pragma unroll
        for (int k = 0; k < D_HEAD / 32; k++) {
            const uint4 x = widened(*p.key(0, k)), y = widened(*p.key(1, k));
            const uint4 q = *(const uint4 *)(m->queries[f][g] + 8 * (4 * k + t));
            const unsigned first[4] = {x.x, y.x, x.y, y.y}, second[4] = {x.z, y.z, x.w, y.w};
            mma(sums[k % 2 * 2], first, q.x, q.y);
            mma(sums[k % 2 * 2 + 1], second, q.z, q.w);
        }
#pragma unroll
        for (int c = 0; c < 4; c++) {
            s[f][c] = (sums[0][c] + sums[1][c]) + (sums[2][c] + sums[3][c]);
            s[f][c] += __shfl_xor_sync(ALL, s[f][c], 2);
        }
    }
}

static __device__ __forceinline__ float most_of(float x)
{
#pragma unroll
    for (int step = 4; step < 32; step *= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

// Scores to shares under the new maximum; what was summed under the old one fades, unless there is nothing yet.
static __device__ __forceinline__ void share(float scale, float (*s)[4], bool is_first, found *r)
{
#pragma unroll
    for (int f = 0; f < FOURS; f++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float most = most_of(fmaxf(r->most[f][h], fmaxf(s[f][h], s[f][h + 2])));
            const float base = most == NOTHING ? 0 : most * scale, fade = power_of_2(r->most[f][h] * scale - base);
            s[f][h] = power_of_2(s[f][h] * scale - base);
            s[f][h + 2] = power_of_2(s[f][h + 2] * scale - base);
            r->total[f][h] = r->total[f][h] * fade + s[f][h] + s[f][h + 2]; // of the lane's positions
            r->most[f][h] = most;
            if (is_first) continue;
#pragma unroll
            for (int k = 0; k < DIMS; k++) {
                r->sum[f][k][h] *= fade;
                r->sum[f][k][h + 2] *= fade;
            }
        }
}

// Two numbers as a word of the tiles' type, or, of the upper lanes, what that leaves of them.
static __device__ __forceinline__ unsigned part_of(float x, float y)
{
    tile_type low, high;
    narrow(x, &low);
    narrow(y, &high);
    const unsigned left = pair_of(x - widen(low), y - widen(high));
    return threadIdx.x & 2 ? left : low.bits | (unsigned)high.bits << 16;
}

// Rows and columns of 8 x 8 numbers of 16 bits change places.
static __device__ __forceinline__ unsigned transposed(unsigned x)
{
    unsigned y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// The lane's k-th dimension of two positions.
static __device__ __forceinline__ unsigned two_of(const uint4 (*v)[D_HEAD / 64], int k)
{
    return __byte_perm(word_of(v[0][k / 8], k % 8 / 2), word_of(v[1][k / 8], k % 8 / 2), k % 2 ? 0x7632 : 0x5410);
}

template <class T> static __device__ __forceinline__ void add_values(T &p, const float (*s)[4], found *r)
{
    unsigned shares[FOURS][2];
#pragma unroll
    for (int f = 0; f < FOURS; f++) {
        shares[f][0] = transposed(part_of(s[f][0], s[f][1]));
        shares[f][1] = transposed(part_of(s[f][2], s[f][3]));
    }
    uint4 v[4][D_HEAD / 64];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int e = 0; e < D_HEAD / 64; e++) v[i][e] = widened(*p.value(i, e));
#pragma unroll
    for (int k = 0; k < DIMS; k++) {
        const unsigned a[4] = {two_of(v, k), two_of(v, k + DIMS), two_of(v + 2, k), two_of(v + 2, k + DIMS)};
#pragma unroll
        for (int f = 0; f < FOURS; f++) mma(r->sum[f][k], a, shares[f][0], shares[f][1]);
    }
}

// ---- a block

// Tiles first, first + 1 .. end - 1 of a sequence, the last with the step's own position, for some heads of a token.
struct task {
    wt_llm_token token;
    int head, kv_head;
    int begin; // the first position that it sees
    int first, end;
    bool has_own;     // the block that takes the last tile
    long long own_at; // where its key and value go
};

template <int SPLITS> static __device__ __forceinline__ task task_of(const wt_llm_attend_args &a)
{
    task u;
    u.head = blockIdx.y * HEADS;
    u.kv_head = u.head / GROUP;
    u.token = a.tokens[blockIdx.z];
    u.begin = a.window && u.token.place >= a.window ? u.token.place - a.window + 1 : 0;
    u.first = u.begin / KEYS;
    u.end = u.token.place / KEYS + 1;
    u.has_own = (u.end - 1 - u.first) / WARPS % SPLITS == (int)blockIdx.x;
    u.own_at = u.has_own ? cache_at(a.cache, u.token.sequence, u.token.place, u.kv_head) : 0;
    return u;
}

// As turn() does it where the elements of a pair are one lane's.
static __device__ __forceinline__ void turn_own(const wt_llm_turn_args &a, bool has_norm, raw_head &raw)
{
    constexpr int HALF = OF_LANE / 2;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) squares += raw.values[i] * raw.values[i];
    const float scale = has_norm ? rsqrtf(warp_sum(squares) / D_HEAD + a.eps) : 1;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        const float p = raw.values[i] * (scale * raw.weights[i]);
        const float q = raw.values[i + HALF] * (scale * raw.weights[i + HALF]);
        raw.values[i] = p * raw.cosines[i] - q * raw.sines[i];
        raw.values[i + HALF] = q * raw.cosines[i] + p * raw.sines[i];
    }
}

// Elements lane, lane + 32 .. of the i-th query of the block, as numbers of the tiles' type and what that leaves.
static __device__ __forceinline__ void put_query(const raw_head &turned, int i, shared *m)
{
#pragma unroll
    for (int e = 0; e < OF_LANE; e++) {
        tile_type *rounded = &m->queries[i / 4][i % 4][threadIdx.x % 32 + 32 * e];
        narrow(turned.values[e], rounded);
        narrow(turned.values[e] - widen(*rounded), rounded + 4 * PITCH);
    }
}

// Of the step's key or value, also to the cache, if nobody else does.
static __device__ __forceinline__ void put_own(const wt_llm_attend_args &a, const task &u, const raw_head &turned,
                                               bool is_value, shared *m)
{
    kv_type *to = (kv_type *)(is_value ? a.cache.values : a.cache.keys) + u.own_at;
#pragma unroll
    for (int e = 0; e < OF_LANE; e++) {
        const int d = threadIdx.x % 32 + 32 * e;
        kv_type x;
        narrow(turned.values[e], &x);
        m->own[is_value][d] = x;
        if (u.head % GROUP == 0) to[d] = x;
    }
}

// Heads of queries, then the step's key and value, a warp each.
static __device__ __forceinline__ void prepare(const wt_llm_attend_args &a, const task &u, int warp, shared *m)
{
    const int lane = threadIdx.x % 32, n = HEADS + (u.has_own ? 2 : 0), t = blockIdx.z;
    const long long own = ((long long)t * a.n_kv_heads + u.kv_head) * D_HEAD;
    for (int i = warp; i < n; i += WARPS) {
        const bool is_query = i<HEADS, is_value = i> HEADS;
        const float *norm = is_query ? a.turn.q_norm : is_value ? nullptr : a.turn.k_norm;
        const float *from = is_query   ? a.q + ((long long)t * a.n_heads + u.head + i) * D_HEAD
                            : is_value ? a.v + own
                                       : a.k + own;
        raw_head raw;
        load_turn(a.turn, t, norm, &raw);
        wait_for_earlier();
        load_values(from, &raw);
        if (!is_value && a.turn.n_dims == D_HEAD && !a.turn.interleaved) {
            turn_own(a.turn, norm, raw);
        } else if (!is_value) {
            turn(a.turn, raw, norm, m->turned[warp]);
            load_values(m->turned[warp], &raw);
            __syncwarp(); // the next turn's
        }
        if (is_query)
            put_query(raw, i, m);
        else
            put_own(a, u, raw, is_value, m);
        if (HEADS + 2 <= WARPS) break; // that was all
    }
    __syncthreads();
}

// Scores of positions that the token does not see.
static __device__ __forceinline__ void hide(const task &u, int now, float (*s)[4])
{
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int c = 0; c < 4; c += 2) {
        const int j = now * KEYS + g + c / 2 * 8;
        const bool hidden = j > u.token.place || j < u.begin;
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            s[f][c] = hidden ? NOTHING : s[f][c];
            s[f][c + 1] = hidden ? NOTHING : s[f][c + 1];
        }
    }
}

static __device__ __forceinline__ float total_of(float x)
{
#pragma unroll
    for (int step = 4; step < 32; step *= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// What the warp found, to shared memory: `sums` [HEADS][SUM_PITCH]. A lane and the one beside it by two have both parts
// of the same heads: each adds those of half of the dimensions.
static __device__ __forceinline__ void give(found *r, int warp, float *sums, shared *m)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, upper = t / 2;
#pragma unroll
    for (int f = 0; f < FOURS; f++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int head = 4 * f + t % 2 * 2 + h;
            const float total = total_of(r->total[f][h]);
            float x[DIMS];
#pragma unroll
            for (int k = 0; k < DIMS; k++) {
                const float other = upper ? r->sum[f][k][h] : r->sum[f][k][h + 2];
                x[k] = (upper ? r->sum[f][k][h + 2] : r->sum[f][k][h]) + __shfl_xor_sync(ALL, other, 2);
            }
            if (head >= HEADS) continue;
            if (threadIdx.x % 32 < 2) m->found[head][warp] = {r->most[f][h], total};
            // dimension k of the lane: of D_HEAD 128 those of piece g + 8 upper, of 64 half of piece g
            float *to = sums + SUM_PITCH * head + (D_HEAD == 128 ? 64 * upper + 8 * g : 8 * g + 4 * upper);
#pragma unroll
            for (int k = 0; k < DIMS; k += 4) *(float4 *)(to + k) = make_float4(x[k], x[k + 1], x[k + 2], x[k + 3]);
        }
    __syncthreads();
}

// The product that takes the output wants floats.
static __device__ __forceinline__ void put(const wt_llm_attend_args &a, const task &u, int pair, float x, float y,
                                           float total)
{
    float *out = (float *)a.out + ((long long)blockIdx.z * a.n_heads + u.head) * D_HEAD;
    const float whole = __fdividef(1, total);
    ((float2 *)out)[pair] = make_float2(x * whole, y * whole);
}

// A pair of sums of the block's warps, with the maximum and the total of their head.
static __device__ __forceinline__ float4 add_warps(const shared *m, const float *sums, int pair, float scale)
{
    const int head = 2 * pair / D_HEAD, d = 2 * pair % D_HEAD;
    float most = NOTHING, total = 0, x = 0, y = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, m->found[head][w].x);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        const float2 of = m->found[head][w], pairs = *(const float2 *)(sums + w * OF_WARP + SUM_PITCH * head + d);
        const float factor = power_of_2((of.x - most) * scale);
        total += factor * of.y;
        x += factor * pairs.x;
        y += factor * pairs.y;
    }
    return make_float4(x, y, most, total);
}

// Pairs of the block to the blocks that add them, in the cluster's order, and those that this one adds.
template <int SPLITS>
static __device__ __forceinline__ void add_blocks(const wt_llm_attend_args &a, const task &u, const float *sums,
                                                  float scale, shared *m)
{
    constexpr int EACH = PAIRS / SPLITS;
    const int rank = blockIdx.x;
    cluster_wait(); // the others are there
    for (int pair = threadIdx.x; pair < PAIRS; pair += THREADS)
        send_to(&m->sent[rank * EACH + pair % EACH], pair / EACH, add_warps(m, sums, pair, scale), &m->all_sent);
    if (threadIdx.x >= EACH) return;
    barrier_wait_in_cluster(&m->all_sent, 0);
    for (int k = threadIdx.x; k < EACH; k += THREADS) {
        float4 parts[SPLITS];
        float most = NOTHING, total = 0, x = 0, y = 0;
#pragma unroll
        for (int i = 0; i < SPLITS; i++) {
            parts[i] = m->sent[i * EACH + k];
            most = fmaxf(most, parts[i].z);
        }
#pragma unroll
        for (int i = 0; i < SPLITS; i++) {
            const float factor = power_of_2((parts[i].z - most) * scale);
            total += factor * parts[i].w;
            x += factor * parts[i].x;
            y += factor * parts[i].y;
        }
        put(a, u, rank * EACH + k, x, y, total);
    }
}

static __device__ __forceinline__ void begin(found *r)
{
#pragma unroll
    for (int f = 0; f < FOURS; f++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            r->most[f][h] = NOTHING;
            r->total[f][h] = 0;
        }
#pragma unroll
        for (int k = 0; k < DIMS; k++)
#pragma unroll
            for (int c = 0; c < 4; c++) r->sum[f][k][c] = 0;
    }
}

// A warp's tile, its first or a later one.
template <class T>
static __device__ __forceinline__ void take(const shared *m, const task &u, int now, bool is_first, float scale, T &p,
                                            found *r)
{
    const bool is_last = now == u.end - 1; // of the sequence
    float s[FOURS][4];
    if (is_last) add_own(m, u.token.place % KEYS, p);
    score(m, p, s);
    if (is_last || now == u.first) hide(u, now, s);
    share(scale, s, is_first, r);
    add_values(p, s, r);
}

static __device__ __forceinline__ long long tile_at(const wt_llm_attend_args &a, const task &u, int tile)
{
    return cache_at(a.cache, u.token.sequence, tile * KEYS, u.kv_head);
}

template <int SPLITS> static __device__ __forceinline__ void attend(const wt_llm_attend_args &a)
{
    constexpr int STEP = SPLITS * WARPS;
    __shared__ alignas(16) shared memory;
    extern __shared__ uint4 of_warps[]; // of each a tile, then its sums
    shared *m = &memory;
    let_next_begin();
    const task u = task_of<SPLITS>(a);
    const int warp = __shfl_sync(ALL, threadIdx.x / 32, 0); // one number, as the compiler should know
    const kv_type *const keys = (const kv_type *)a.cache.keys, *const values = (const kv_type *)a.cache.values;
    const float scale = a.scale * LOG2_E;
    const int first = u.first + blockIdx.x * WARPS + warp;
#pragma unroll 1
    for (int k = 2; k <= ASKED && first + k * STEP < u.end; k++)
        if (threadIdx.x % 16 == 0) // keys and values
            ask_for((threadIdx.x % 32 ? values : keys) + tile_at(a, u, first + k * STEP),
                    KEYS * D_HEAD * sizeof(kv_type));
    if (SPLITS > 1) {
        if (!threadIdx.x) {
            barrier_create(&m->all_sent, 1);
            barriers_created();
            barrier_expect(&m->all_sent, sizeof m->sent);
        }
        cluster_arrive();
    }
    tile p;
    if (first < u.end) {
        const long long at = tile_at(a, u, first);
        load_keys(keys + at, D_HEAD, &p);
        load_values(values + at, D_HEAD, &p);
    }
    float *const sums = (float *)of_warps;
    fetched_tile later = {(piece *)(sums + warp * OF_WARP) + threadIdx.x % 32};
    if (first + STEP < u.end) {
        const long long at = tile_at(a, u, first + STEP);
        fetch(keys + at, values + at, later);
    }
    prepare(a, u, warp, m);
    found r;
    begin(&r);
    if (first < u.end) take(m, u, first, true, scale, p, &r);
#pragma unroll 1
    for (int now = first + STEP; now < u.end; now += STEP) {
        copy_async_wait<0>();
        take(m, u, now, false, scale, later, &r);
        if (now + STEP >= u.end) break;
        const long long at = tile_at(a, u, now + STEP);
        fetch(keys + at, values + at, later);
    }
    __syncwarp(); // all lanes have their parts of the tile
    give(&r, warp, sums + warp * OF_WARP, m);
    if (SPLITS > 1) {
        add_blocks<SPLITS>(a, u, sums, scale, m);
        return;
    }
    for (int pair = threadIdx.x; pair < PAIRS; pair += THREADS) {
        const float4 sum = add_warps(m, sums, pair, scale);
        put(a, u, pair, sum.x, sum.y, sum.w);
    }
}

#define KERNEL(splits)                                                                                                 \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(THREADS, BLOCKS)                                     \
        llm_attend_one_##splits(const __grid_constant__ wt_llm_attend_args a)                                          \
    {                                                                                                                  \
        attend<splits>(a);                                                                                             \
    }

KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
