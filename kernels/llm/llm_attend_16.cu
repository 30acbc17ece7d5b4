// llm_attend.cu on tensor cores, for one token or some that follow each other, of one sequence or one of each of
// several: caches of 16 bits or fp8, heads of 64 and 128, compute capability 9.0 and newer.
//
// A block has 16 rows, the heads that share a head of keys times as many tokens, and a warp 16 positions at a time:
// keys and values of positions before this step go from memory to registers as mma.m16n8k16 wants them, before the
// step's own q, k and v are there. These are turned by every block for its rows; the last of a cluster has the step's
// own positions too, and puts them into the cache. Queries and shares are two numbers of the tiles' type each, the
// second what rounding left of the first: errors of 2^-17 (bf16) and 2^-22 (f16). Warps of a block are added in order,
// then the blocks of a cluster, which share the positions, in each other's shared memory. Grid: parts of the positions,
// a cluster; heads of keys; groups of tokens.
//
// Column g of the k-th product of values is dimension k of the lane's piece (llm_positions.cuh).
//
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_positions.cuh"
#include "llm_turn.cuh"

#include "cluster.cuh"
#include "flash.cuh"
#include "overlap.cuh"

#define ROWS       WT_LLM_ATTEND_ROWS
#define MOST_WARPS WT_LLM_ATTEND_WARPS
#define TOKENS     (ROWS / GROUP)

struct rows {
    float sum[D_HEAD / 8][4], most[2], total[2];
};

struct shared {
    tile_type queries[2][ROWS][PITCH]; // rounded, and what that left
    kv_type own[2][KEYS][PITCH];       // keys and values of this step
    float turned[MOST_WARPS][D_HEAD];
    float2 found[MOST_WARPS][ROWS]; // maximum and total
    float4 whole[ROWS];             // of the block
    float sums[1][ROWS][SUM_PITCH]; // of each warp
};
static_assert(sizeof(shared) == WT_LLM_ATTEND_SHARED(D_HEAD, sizeof(kv_type), 1), "as the host has it");

// ---- products

static __device__ __forceinline__ void score(const shared *m, const tile &p, float (*s)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float left[2][4] = {};
#pragma unroll
    for (int c = 0; c < 4; c++) s[0][c] = s[1][c] = 0;
#pragma unroll
    for (int k = 0; k < D_HEAD / 32; k++) {
        const uint4 x = widened(p.keys[0][k]), y = widened(p.keys[1][k]);
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const uint4 low = *(const uint4 *)(m->queries[part][g] + 8 * (4 * k + t));
            const uint4 high = *(const uint4 *)(m->queries[part][g + 8] + 8 * (4 * k + t));
            const unsigned first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
            float(*to)[4] = part ? left : s;
            mma(to[0], first, x.x, x.y);
            mma(to[1], first, y.x, y.y);
            mma(to[0], second, x.z, x.w);
            mma(to[1], second, y.z, y.w);
        }
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        s[0][c] += left[0][c];
        s[1][c] += left[1][c];
    }
}

// Two numbers as a word of the tiles' type, and what that leaves of them as another.
static __device__ __forceinline__ unsigned pair_of(float x, float y, unsigned *left)
{
    tile_type low, high;
    narrow(x, &low);
    narrow(y, &high);
    *left = pair_of(x - widen(low), y - widen(high));
    return low.bits | (unsigned)high.bits << 16;
}

// The first n_rows of the tile's values count; what lies beyond may be anything.
static __device__ __forceinline__ void add_values(rows *r, const tile &p, const float (*s)[4], int n_rows)
{
    unsigned shares[4], left[4];
#pragma unroll
    for (int i = 0; i < 4; i++) shares[i] = pair_of(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1], &left[i]);
#pragma unroll
    for (int e = 0; e < D_HEAD / 64; e++) {
        uint4 v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = widened(p.values[i][e]);
        if (n_rows < KEYS) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (row_of_values(i) >= n_rows) v[i] = {0, 0, 0, 0};
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const unsigned halves = k % 2 ? 0x7632 : 0x5410;
            const unsigned b0 = __byte_perm(word_of(v[0], k / 2), word_of(v[1], k / 2), halves);
            const unsigned b1 = __byte_perm(word_of(v[2], k / 2), word_of(v[3], k / 2), halves);
            mma(r->sum[8 * e + k], shares, b0, b1);
            mma(r->sum[8 * e + k], left, b0, b1);
        }
    }
}

// ---- a block

struct task {
    int kv_head, sequence;
    int first, n;  // its tokens; n * GROUP rows
    int place;     // of the first
    int n_own;     // tokens of this step that they see, up to themselves
    int old;       // positions before this step
    int first_own; // token of position `old`
    bool has_own;  // the block that takes them
};

static __device__ __forceinline__ task task_of(const wt_llm_attend_args &a)
{
    task u;
    u.kv_head = blockIdx.y;
    u.first = a.follow ? blockIdx.z * TOKENS : blockIdx.z;
    u.n = a.follow ? min(TOKENS, a.n_tokens - u.first) : 1;
    u.first_own = a.follow ? 0 : u.first;
    const wt_llm_token token = a.tokens[u.first_own];
    u.sequence = token.sequence;
    u.old = token.place;
    u.place = u.old + u.first - u.first_own;
    u.n_own = u.first - u.first_own + u.n;
    u.has_own = blockIdx.x == gridDim.x - 1;
    return u;
}

// The i-th thing to be done before products: rows of queries, then keys, then values of this step.
struct item {
    const float *from, *norm;
    int token; // of the batch
    bool is_query, is_value;
};

static __device__ __forceinline__ item item_of(const wt_llm_attend_args &a, const task &u, int i)
{
    const int own = i - u.n * GROUP;
    item x;
    x.is_query = own < 0;
    x.is_value = own >= u.n_own;
    x.norm = x.is_query ? a.turn.q_norm : x.is_value ? nullptr : a.turn.k_norm;
    x.token = x.is_query ? u.first + i / GROUP : u.first_own + (x.is_value ? own - u.n_own : own);
    x.from = x.is_query ? a.q + ((long long)x.token * a.n_heads + u.kv_head * GROUP + i % GROUP) * D_HEAD
                        : (x.is_value ? a.v : a.k) + ((long long)x.token * a.n_kv_heads + u.kv_head) * D_HEAD;
    return x;
}

static __device__ __forceinline__ void finish(const wt_llm_attend_args &a, const task &u, int i, const item &x,
                                              const raw_head &raw, shared *m)
{
    const int lane = threadIdx.x % 32;
    float *turned = m->turned[threadIdx.x / 32];
    if (!x.is_value) turn(a.turn, raw, x.norm, turned);
#pragma unroll
    for (int e = 0; e < OF_LANE; e++) {
        const int d = lane + 32 * e;
        const float y = x.is_value ? raw.values[e] : turned[d];
        if (x.is_query) {
            narrow(y, &m->queries[0][i][d]);
            narrow(y - widen(m->queries[0][i][d]), &m->queries[1][i][d]);
            continue;
        }
        const int own = x.token - u.first_own;
        narrow(y, &m->own[x.is_value][own][d]);
        if (x.token >= u.first) // others put theirs themselves
            ((kv_type *)(x.is_value ? a.cache.values
                                    : a.cache.keys))[cache_at(a.cache, u.sequence, u.old + own, u.kv_head) + d] =
                m->own[x.is_value][own][d];
    }
    __syncwarp(); // the next turn's
}

static __device__ __forceinline__ void ask_for_lines(const float *from, int n)
{
    for (int k = 32 * threadIdx.x; from && k < n; k += 32 * blockDim.x) prefetch_global(from + k);
}

// What prepare reads beside the heads: the layer's weights have driven it from the L2 cache.
static __device__ __forceinline__ void ask_for_turns(const wt_llm_attend_args &a, const task &u)
{
    const int half = a.turn.n_dims / 2, n = (u.first - u.first_own + u.n) * half;
    ask_for_lines(a.turn.q_norm, D_HEAD);
    ask_for_lines(a.turn.k_norm, D_HEAD);
    ask_for_lines(a.turn.cosines + (long long)u.first_own * half, n);
    ask_for_lines(a.turn.sines + (long long)u.first_own * half, n);
}

// Two at a time, so that one's way from memory is the other's too.
static __device__ __forceinline__ void prepare(const wt_llm_attend_args &a, const task &u, shared *m)
{
    const int n_warps = blockDim.x / 32, n = u.n * GROUP + (u.has_own ? 2 * u.n_own : 0);
    for (int i = threadIdx.x / 32; i < n; i += 2 * n_warps) {
        const int j = i + n_warps < n ? i + n_warps : i;
        const item x = item_of(a, u, i), y = item_of(a, u, j);
        const raw_head of_x = load_head(a.turn, x.token, x.from, x.norm),
                       of_y = load_head(a.turn, y.token, y.from, y.norm);
        finish(a, u, i, x, of_x, m);
        if (j != i) finish(a, u, j, y, of_y, m);
    }
}

// Scores of positions begin .. that a row does not see; `end`: those that are no positions.
static __device__ __forceinline__ void hide(const wt_llm_attend_args &a, const task &u, int begin, int end,
                                            float (*s)[4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int j = begin + 8 * n + 2 * t + c % 2, place = u.place + (g + c / 2 * 8) / GROUP;
            if (j >= end || j > place || (a.window && j <= place - a.window)) s[n][c] = NOTHING;
        }
}

static __device__ __forceinline__ void take(const wt_llm_attend_args &a, const task &u, const shared *m, int begin,
                                            int end, const tile &p, float (*s)[4], rows *r)
{
    score(m, p, s);
    hide(a, u, begin, end, s);
    share(r, a.scale * LOG2_E, s);
}

// What the warp found, to shared memory.
static __device__ __forceinline__ void give(rows *r, shared *m)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warp = threadIdx.x / 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r->total[h] += __shfl_xor_sync(ALL, r->total[h], 1);
        r->total[h] += __shfl_xor_sync(ALL, r->total[h], 2);
        if (!t) m->found[warp][g + 8 * h] = {r->most[h], r->total[h]};
#pragma unroll
        for (int e = 0; e < D_HEAD / 64; e++)
#pragma unroll
            for (int k = 0; k < 16; k += 4) { // column 2 t + k / 8, dimensions k % 8 ..
                const float(*sum)[4] = &r->sum[8 * e + k % 8];
                *(float4 *)&m->sums[warp][g + 8 * h][64 * e + 16 * t + k] = make_float4(
                    sum[0][2 * h + k / 8], sum[1][2 * h + k / 8], sum[2][2 * h + k / 8], sum[3][2 * h + k / 8]);
            }
    }
}

static __device__ __forceinline__ void add(float4 *sum, float factor, const float4 &x)
{
    sum->x += factor * x.x, sum->y += factor * x.y, sum->z += factor * x.z, sum->w += factor * x.w;
}

static __device__ __forceinline__ void put(const wt_llm_attend_args &a, const task &u, int row, int d, float4 sum,
                                           float total)
{
    const long long at =
        ((long long)(u.first + row / GROUP) * a.n_heads + u.kv_head * GROUP + row % GROUP) * D_HEAD + d;
    const float whole = 1 / total;
    if (a.out_type == WT_LLM_F32) {
        *(float4 *)((float *)a.out + at) = make_float4(sum.x * whole, sum.y * whole, sum.z * whole, sum.w * whole);
        return;
    }
    store(a.out, a.out_type, at, sum.x * whole);
    store(a.out, a.out_type, at + 1, sum.y * whole);
    store(a.out, a.out_type, at + 2, sum.z * whole);
    store(a.out, a.out_type, at + 3, sum.w * whole);
}

// The warps of the block.
template <bool ALONE>
static __device__ __forceinline__ void add_warps(const wt_llm_attend_args &a, const task &u, shared *m)
{
    const int n_warps = blockDim.x / 32;
    const float scale = a.scale * LOG2_E;
    __syncthreads();
    for (int i = threadIdx.x; i < u.n * GROUP * (D_HEAD / 4); i += blockDim.x) {
        const int row = i / (D_HEAD / 4), d = i % (D_HEAD / 4) * 4;
        float most = NOTHING, total = 0;
        float4 sum = make_float4(0, 0, 0, 0);
        for (int w = 0; w < n_warps; w++) most = fmaxf(most, m->found[w][row].x);
        for (int w = 0; w < n_warps; w++) {
            const float factor = power_of_2((m->found[w][row].x - most) * scale);
            total += factor * m->found[w][row].y;
            add(&sum, factor, *(const float4 *)&m->sums[w][row][d]);
        }
        if (ALONE) {
            put(a, u, row, d, sum, total);
            continue;
        }
        *(float4 *)&m->sums[0][row][d] = sum; // which nobody else reads
        if (!d) m->whole[row] = make_float4(most, total, 0, 0);
    }
}

// The blocks of the cluster, of whose rows each does a share.
template <int SPLITS>
static __device__ __forceinline__ void add_blocks(const wt_llm_attend_args &a, const task &u, shared *m)
{
    const int all = u.n * GROUP * (D_HEAD / 4), rank = blockIdx.x;
    const float scale = a.scale * LOG2_E;
    cluster_meet();
    for (int i = all * rank / SPLITS + (int)threadIdx.x; i < all * (rank + 1) / SPLITS; i += blockDim.x) {
        const int row = i / (D_HEAD / 4), d = i % (D_HEAD / 4) * 4;
        float4 wholes[SPLITS], parts[SPLITS], sum = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < SPLITS; k++) {
            wholes[k] = load_from((const float *)&m->whole[row], k);
            parts[k] = load_from(&m->sums[0][row][d], k);
        }
        float most = NOTHING, total = 0;
#pragma unroll
        for (int k = 0; k < SPLITS; k++) most = fmaxf(most, wholes[k].x);
#pragma unroll
        for (int k = 0; k < SPLITS; k++) {
            const float factor = power_of_2((wholes[k].x - most) * scale);
            total += factor * wholes[k].y;
            add(&sum, factor, parts[k]);
        }
        put(a, u, row, d, sum, total);
    }
    cluster_meet(); // the others have read
}

template <int SPLITS> static __device__ __forceinline__ void attend(const wt_llm_attend_args &a)
{
    extern __shared__ uint4 memory[];
    shared *m = (shared *)memory;
    let_next_begin();
    const task u = task_of(a);
    const int n_warps = blockDim.x / 32, warp = threadIdx.x / 32, step = SPLITS * n_warps;
    const int begin = a.window && u.place >= a.window ? u.place - a.window + 1 : 0, end = (u.old + KEYS - 1) / KEYS;
    const kv_type *const keys = (const kv_type *)a.cache.keys, *const values = (const kv_type *)a.cache.values;
    int now = begin / KEYS + blockIdx.x * n_warps + warp;
    tile p;
    if (now < end) {
        const long long at = cache_at(a.cache, u.sequence, now * KEYS, u.kv_head);
        load_keys(keys + at, D_HEAD, &p);
        load_values(values + at, D_HEAD, &p);
    }
    for (int k = 1; k <= ASKED && now + k * step < end; k++)
        if (threadIdx.x % 16 == 0) // keys and values
            ask_for((threadIdx.x % 32 ? values : keys) +
                        cache_at(a.cache, u.sequence, (now + k * step) * KEYS, u.kv_head),
                    KEYS * D_HEAD * sizeof(kv_type));
    ask_for_turns(a, u);
    wait_for_earlier();
    prepare(a, u, m);
    __syncthreads();
    rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        r.most[h] = NOTHING;
        r.total[h] = 0;
    }
#pragma unroll
    for (int n = 0; n < D_HEAD / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) r.sum[n][c] = 0;
    float s[2][4];
    for (; now < end; now += step) {
        const bool more = now + step < end;
        const long long at = more ? cache_at(a.cache, u.sequence, (now + step) * KEYS, u.kv_head) : 0;
        take(a, u, m, now * KEYS, u.old, p, s, &r);
        if (more) load_keys(keys + at, D_HEAD, &p);
        add_values(&r, p, s, u.old - now * KEYS);
        if (more) load_values(values + at, D_HEAD, &p);
    }
    if (u.has_own && warp == n_warps - 1) {
        load_keys(m->own[0][0], PITCH, &p);
        load_values(m->own[1][0], PITCH, &p);
        take(a, u, m, u.old, u.old + u.n_own, p, s, &r);
        add_values(&r, p, s, u.n_own);
    }
    give(&r, m);
    add_warps<SPLITS == 1>(a, u, m);
    if (SPLITS > 1) add_blocks<SPLITS>(a, u, m);
}

#define KERNEL(splits)                                                                                                 \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(32 * MOST_WARPS)                                     \
        llm_attend_16_##splits(const __grid_constant__ wt_llm_attend_args a)                                           \
    {                                                                                                                  \
        attend<splits>(a);                                                                                             \
    }

KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
