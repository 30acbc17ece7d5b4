// llm_attend.cu on tensor cores, for some tokens that follow each other in one sequence, or one of each of several:
// caches of 16 bits or fp8, heads of 64 and 128, compute capability 9.0 and newer.
//
// A block has 16 rows, the heads that share a head of keys times as many tokens. In a turn each of its warps scores 16
// positions, whose keys go from memory to registers as mma.m16n8k16 wants them; the shares, by the block's maximum, go
// to shared memory, where the turn's values are, of which each warp then sums 16 dimensions. Keys and values of
// positions before this step are there before the step's own q, k and v, which every block turns for its rows. One warp
// of the cluster has the step's own positions in its first turn, and its block puts them into the cache. Queries and
// shares are two numbers of the tiles' type each, the second what rounding left of the first: errors of 2^-17 (bf16)
// and 2^-22 (f16). The blocks of a cluster, which share the positions, send each other what each adds. Grid: parts of
// the positions, a cluster; heads of keys; groups of tokens.
//
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_positions.cuh"

#include "llm_heads.cuh"

#include "barrier.cuh"
#include "cluster.cuh"
#include "overlap.cuh"

#define ROWS        WT_LLM_ATTEND_ROWS
#define WARPS       WT_LLM_ATTEND_WARPS
#define THREADS     (32 * WARPS)
#define TOKENS      (ROWS / GROUP)
#define MOST_SPLITS 8

static constexpr int ROW_BYTES = D_HEAD * (int)sizeof(kv_type); // of a position's keys or values
static constexpr int TILE_BYTES = KEYS * ROW_BYTES;             // of the values of a warp's positions
static constexpr int DIMS = 16;                                 // that a warp sums
static constexpr int HALVES = WARPS * DIMS / D_HEAD;            // of the positions, where there are warps for two
static constexpr int OF_WARP = ROWS / WARPS;                    // rows of queries that a warp turns
static constexpr int UNITS = 2 * D_HEAD / DIMS;                 // of a block's sums: 8 rows, 16 dimensions

struct shared {
    tile_type queries[2][ROWS][PITCH]; // rounded, and what that left
    kv_type own[KEYS][PITCH];          // keys of this step
    uint4 shares[2][WARPS][32];        // likewise, as a lane wants them
    float most[ROWS][WARPS], total[ROWS][WARPS];
    float turned[WARPS][D_HEAD];
    float4 sent[HALVES * UNITS][32]; // by the blocks of the cluster, in turn
    float2 found[MOST_SPLITS][ROWS]; // maxima and totals, likewise
    unsigned long long all_sent;
};

// ---- values of 16 positions in shared memory

// Rows of pieces of 16 bytes; eight rows' pieces of the same dimensions lie in different banks.
static __device__ __forceinline__ int place_of(int row, int byte)
{
    return row * ROW_BYTES + 16 * (byte / 16 ^ (ROW_BYTES == 64 ? row / 2 % 4 : row % 8)) + byte % 16;
}

// The first n_rows; the others become 0.
static __device__ __forceinline__ void fetch(const kv_type *values, int n_rows, unsigned char *to)
{
#pragma unroll
    for (int k = 0; k < TILE_BYTES; k += 512) {
        const int at = k + 16 * (threadIdx.x % 32), row = at / ROW_BYTES;
        copy_async_16(to + place_of(row, at % ROW_BYTES), (const unsigned char *)values + at, row < n_rows);
    }
}

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

// What a lane has of rows g and g + 8: sums of its warp's dimensions, the block's maximum, its own positions' total.
struct rows {
    float sum[2][4], most[2], total[2];
};

// The warp's largest scores, to the others.
static __device__ __forceinline__ void tell_most(const float (*s)[4], int warp, shared *m)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float most = fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1]));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 2));
        if (threadIdx.x % 4 == 0) m->most[threadIdx.x % 32 / 4 + 8 * h][warp] = most;
    }
}

// Of all warps, and x.
static __device__ __forceinline__ float most_of(float x, const float *of_warps)
{
    const float4 a = ((const float4 *)of_warps)[0], b = ((const float4 *)of_warps)[1];
    return fmaxf(fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w))), x);
}

static __device__ __forceinline__ float total_of(const float *of_warps)
{
    const float4 a = ((const float4 *)of_warps)[0], b = ((const float4 *)of_warps)[1];
    return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}

// Scores to shares under the block's new maximum; what was summed under the old one fades.
static __device__ __forceinline__ void share(float scale, float (*s)[4], int warp, rows *r, shared *m)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = lane / 4 + 8 * h;
        const float most = most_of(r->most[h], m->most[row]), base = most == NOTHING ? 0 : most * scale;
        const float fade = power_of_2(r->most[h] * scale - base);
        float total = 0;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int c = 2 * h; c < 2 * h + 2; c++) {
                total += s[n][c] = power_of_2(s[n][c] * scale - base);
                r->sum[n][c] *= fade;
            }
        r->most[h] = most;
        r->total[h] = total = r->total[h] * fade + total;
        total += __shfl_xor_sync(ALL, total, 1);
        total += __shfl_xor_sync(ALL, total, 2);
        if (lane % 4 == 0) m->total[row][warp] = total;
    }
    unsigned shares[4], left[4];
#pragma unroll
    for (int i = 0; i < 4; i++) shares[i] = parted(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1], &left[i]);
    m->shares[0][warp][lane] = {shares[0], shares[1], shares[2], shares[3]};
    m->shares[1][warp][lane] = {left[0], left[1], left[2], left[3]};
}

static __device__ __forceinline__ void multiply(const shared *m, int of_warp, const unsigned *v, float (*sum)[4],
                                                float (*left)[4])
{
    const uint4 x = m->shares[0][of_warp][threadIdx.x % 32], y = m->shares[1][of_warp][threadIdx.x % 32];
    const unsigned a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
    mma(sum[0], a, v[0], v[1]);
    mma(sum[1], a, v[2], v[3]);
    mma(left[0], b, v[0], v[1]);
    mma(left[1], b, v[2], v[3]);
}

// The warp's 16 dimensions of all positions of the turn, or of half of them.
static __device__ __forceinline__ void add_values(const shared *m, const unsigned char *values, int warp, rows *r)
{
    const int lane = threadIdx.x % 32, group = warp % (D_HEAD / DIMS),
              first = warp / (D_HEAD / DIMS) * (WARPS / HALVES);
    float left[2][4] = {};
#if KV == WT_LLM_E4M3 // columns of two dimensions: their even ones, then the odd
    values += (first + lane / 16) * TILE_BYTES + place_of(lane % 16, DIMS * group);
#    pragma unroll
    for (int w = 0; w < WARPS / HALVES; w += 2) {
        unsigned pairs[4];
        load_matrices_transposed(pairs, values + w * TILE_BYTES);
#    pragma unroll
        for (int k = 0; k < 2; k++) {
            unsigned v[4];
#    pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] = two_halves((unsigned short)__byte_perm(pairs[2 * k + i % 2], 0, i / 2 ? 0x4431 : 0x4420));
            multiply(m, first + w + k, v, r->sum, left);
        }
    }
#else
    values += first * TILE_BYTES + place_of(lane % 16, 2 * DIMS * group + lane / 16 * 16);
#    pragma unroll
    for (int w = 0; w < WARPS / HALVES; w++) {
        unsigned v[4];
        load_matrices_transposed(v, values + w * TILE_BYTES);
        multiply(m, first + w, v, r->sum, left);
    }
#endif
#pragma unroll
    for (int c = 0; c < 4; c++) {
        r->sum[0][c] += left[0][c];
        r->sum[1][c] += left[1][c];
    }
}

// ---- a block

// Slots of 16 positions: tiles of those before this step, and among them, in the first turn, the step's own.
struct task {
    int kv_head, sequence;
    int first, n;  // its tokens; n * GROUP rows
    int place;     // of the first
    int n_own;     // tokens of this step that they see, up to themselves
    int old;       // positions before this step
    int first_own; // token of position `old`
    int first_tile, n_tiles;
    int own;      // the step's slot
    bool has_own; // the block that takes it
};

template <int SPLITS> static __device__ __forceinline__ task task_of(const wt_llm_attend_args &a)
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
    u.first_tile = a.window && u.place >= a.window ? (u.place - a.window + 1) / KEYS : 0;
    u.n_tiles = max((u.old + KEYS - 1) / KEYS - u.first_tile, 0);
    u.own = min(u.n_tiles, SPLITS * WARPS - 1);
    u.has_own = u.own / WARPS == (int)blockIdx.x;
    return u;
}

// The tile of a slot that is not the step's.
static __device__ __forceinline__ int tile_of(const task &u, int slot) { return u.first_tile + slot - (slot > u.own); }

static __device__ __forceinline__ bool has_tile(const task &u, int slot) { return slot <= u.n_tiles && slot != u.own; }

static __device__ __forceinline__ long long tile_at(const wt_llm_attend_args &a, const task &u, int slot)
{
    return cache_at(a.cache, u.sequence, tile_of(u, slot) * KEYS, u.kv_head);
}

// Of a slot with nothing zeros, of the step's nothing.
static __device__ __forceinline__ void fetch_slot(const wt_llm_attend_args &a, const task &u, int slot,
                                                  unsigned char *to)
{
    const kv_type *const values = (const kv_type *)a.cache.values;
    if (has_tile(u, slot))
        fetch(values + tile_at(a, u, slot), u.old - tile_of(u, slot) * KEYS, to);
    else if (slot != u.own)
        fetch(values, 0, to);
}

// ---- the step's own

static __device__ __forceinline__ void put_query(const head &x, int row, shared *m)
{
    put_parts(x, m->queries[0][row], m->queries[1][row]);
}

// The i-th key of the step, to the cache too, where others put theirs themselves.
static __device__ __forceinline__ void put_key(const wt_llm_attend_args &a, const task &u, int i, const head &x,
                                               long long at, shared *m)
{
    put_head(x, m->own[i]);
    if (u.first_own + i >= u.first) put_head(x, (kv_type *)a.cache.keys + at);
}

// Likewise; values beyond the step's become 0.
static __device__ __forceinline__ void put_value(const wt_llm_attend_args &a, const task &u, int i,
                                                 const pack<float, OF_LANE> &x, long long at, unsigned char *values)
{
    const int d = OF_LANE * (threadIdx.x % 32);
    const pack<kv_type, OF_LANE> y = narrowed(x);
    *(pack<kv_type, OF_LANE> *)(values + place_of(i, d * (int)sizeof(kv_type))) = y;
    if (u.first_own + i >= u.first && i < u.n_own) *(pack<kv_type, OF_LANE> *)((kv_type *)a.cache.values + at + d) = y;
}

// A row of queries: its token, and where it lies.
static __device__ __forceinline__ int token_of(const task &u, int row) { return u.first + row / GROUP; }

static __device__ __forceinline__ const float *query_of(const wt_llm_attend_args &a, const task &u, int row)
{
    return a.q + ((long long)token_of(u, row) * a.n_heads + u.kv_head * GROUP + row % GROUP) * D_HEAD;
}

// Where the i-th key and value of the step lie, and go to in the cache.
static __device__ __forceinline__ long long own_of(const wt_llm_attend_args &a, const task &u, int i)
{
    return ((long long)(u.first_own + i) * a.n_kv_heads + u.kv_head) * D_HEAD;
}

static __device__ __forceinline__ long long own_at(const wt_llm_attend_args &a, const task &u, int i)
{
    return cache_at(a.cache, u.sequence, u.old + i, u.kv_head);
}

// A key and a value of the step, on their way.
struct own_pair {
    turning w;
    long long at;
    head key;
    pack<float, OF_LANE> value;
};

// What is there before the pair is.
static __device__ __forceinline__ void load_before(const wt_llm_attend_args &a, const task &u, int i, own_pair *x)
{
    x->w = load_turning(a.turn, u.first_own + i, a.turn.k_norm);
    x->at = own_at(a, u, i);
}

static __device__ __forceinline__ void load_pair(const wt_llm_attend_args &a, const task &u, int i, own_pair *x)
{
    x->key = load_halves(a.k + own_of(a, u, i));
    x->value = *(const pack<float, OF_LANE> *)(a.v + own_of(a, u, i) + OF_LANE * (threadIdx.x % 32));
}

static __device__ __forceinline__ void put_pair(const wt_llm_attend_args &a, const task &u, int i, own_pair *x,
                                                unsigned char *values, shared *m)
{
    turn_own(a.turn, x->w, a.turn.k_norm, &x->key);
    put_key(a, u, i, x->key, x->at, m);
    put_value(a, u, i, x->value, x->at, values);
}

// Rows of queries and, in the block that has it, a key and a value of the step's, all on their way together.
static __device__ __forceinline__ void prepare(const wt_llm_attend_args &a, const task &u, int warp,
                                               unsigned char *values, shared *m)
{
    const bool has_pair = u.has_own && warp < u.n_own;
    turning w[OF_WARP];
    head x[OF_WARP];
    own_pair own;
#pragma unroll
    for (int k = 0; k < OF_WARP; k++)
        w[k] = load_turning(a.turn, token_of(u, min(warp + WARPS * k, u.n * GROUP - 1)), a.turn.q_norm);
    if (has_pair) load_before(a, u, warp, &own);
    wait_for_earlier();
#pragma unroll
    for (int k = 0; k < OF_WARP; k++) x[k] = load_halves(query_of(a, u, min(warp + WARPS * k, u.n * GROUP - 1)));
    if (has_pair) load_pair(a, u, warp, &own);
#pragma unroll
    for (int k = 0; k < OF_WARP; k++) {
        turn_own(a.turn, w[k], a.turn.q_norm, &x[k]);
        put_query(x[k], warp + WARPS * k, m);
    }
    if (has_pair) put_pair(a, u, warp, &own, values, m);
    if (!u.has_own) return;
#pragma unroll 1
    for (int i = has_pair ? warp + WARPS : warp; i < KEYS; i += WARPS) {
        if (i >= u.n_own) {
            put_value(a, u, i, {}, 0, values);
            continue;
        }
        load_before(a, u, i, &own);
        load_pair(a, u, i, &own);
        put_pair(a, u, i, &own, values, m);
    }
}

// Any way of turning.
static __device__ __forceinline__ void prepare_any(const wt_llm_attend_args &a, const task &u, int warp,
                                                   unsigned char *values, shared *m)
{
    wait_for_earlier();
    const int n = u.n * GROUP;
#pragma unroll 1
    for (int i = warp; i < (u.has_own ? ROWS + KEYS : ROWS); i += WARPS) {
        const bool is_query = i < ROWS;
        const int row = is_query ? i : i - ROWS, own = min(row, u.n_own - 1), real = min(row, n - 1);
        const head x = turned(a.turn, is_query ? token_of(u, real) : u.first_own + own,
                              is_query ? query_of(a, u, real) : a.k + own_of(a, u, own),
                              is_query ? a.turn.q_norm : a.turn.k_norm, m->turned[warp]);
        if (is_query) {
            put_query(x, row, m);
            continue;
        }
        const long long at = own_at(a, u, own);
        pack<float, OF_LANE> value = {};
        if (row < u.n_own) {
            put_key(a, u, row, x, at, m);
            value = *(const pack<float, OF_LANE> *)(a.v + own_of(a, u, own) + OF_LANE * (threadIdx.x % 32));
        }
        put_value(a, u, row, value, at, values);
    }
}

// ---- turns

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

// Of a slot that has positions: those of an inner tile are seen by all rows.
static __device__ __forceinline__ void score_slot(const wt_llm_attend_args &a, const task &u, int slot, tile *p,
                                                  float (*s)[4], const shared *m)
{
    const bool is_own = slot == u.own;
    const int begin = is_own ? u.old : tile_of(u, slot) * KEYS, end = is_own ? u.old + u.n_own : u.old;
    if (is_own) load_keys(m->own[0], PITCH, p);
    score(m, *p, s);
    if (is_own || begin + KEYS > end || (a.window && begin <= u.place + u.n - 1 - a.window)) hide(a, u, begin, end, s);
}

// ---- what the blocks found

// The block's sums to the blocks of the cluster that add them, a unit's to one, and to all what its rows found.
template <int SPLITS> static __device__ __forceinline__ void send(const rows &r, bool has_any, int warp, shared *m)
{
    constexpr int OF_BLOCK = UNITS / SPLITS;
    const int lane = threadIdx.x % 32, h = lane % 4, group = warp % (D_HEAD / DIMS);
    const int part = (int)blockIdx.x * HALVES + warp / (D_HEAD / DIMS);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int unit = 2 * group + k;
#if KV == WT_LLM_E4M3
        const float4 x = {r.sum[0][2 * k], r.sum[1][2 * k], r.sum[0][2 * k + 1], r.sum[1][2 * k + 1]};
#else
        const float4 x = {r.sum[0][2 * k], r.sum[0][2 * k + 1], r.sum[1][2 * k], r.sum[1][2 * k + 1]};
#endif
        float4 *const to = &m->sent[part * OF_BLOCK + unit % OF_BLOCK][lane];
        if (SPLITS > 1)
            send_to(to, unit / OF_BLOCK, x, &m->all_sent);
        else
            *to = x;
    }
    if (warp >= SPLITS || h >= 2) return;
    const int row = lane / 4 + 8 * h;
    const float2 found = {h ? r.most[1] : r.most[0], has_any ? total_of(m->total[row]) : 0};
    if (SPLITS > 1)
        send_to(&m->found[blockIdx.x][row], warp, found, &m->all_sent);
    else
        m->found[0][row] = found;
}

static __device__ __forceinline__ void put_two(const wt_llm_attend_args &a, long long at, float x, float y)
{
    unsigned short *const out = (unsigned short *)a.out + at;
    if (a.out_type == WT_LLM_F32) {
        *(float2 *)((float *)a.out + at) = make_float2(x, y);
        return;
    }
    const bool is_f16 = a.out_type == WT_LLM_F16;
    const unsigned pair = is_f16 ? f16_pair_of(x, y) : bf16_pair_of(x, y);
    *(unsigned *)out = pair;
    if (!a.two_parts) return;
    x -= is_f16 ? f32_of_f16((unsigned short)pair) : __uint_as_float(pair << 16);
    y -= is_f16 ? f32_of_f16((unsigned short)(pair >> 16)) : __uint_as_float(pair & 0xffff0000u);
    *(unsigned *)(out + (long long)a.n_tokens * a.n_heads * D_HEAD) = is_f16 ? f16_pair_of(x, y) : bf16_pair_of(x, y);
}

// The block's units of all blocks' sums.
template <int SPLITS>
static __device__ __forceinline__ void add_blocks(const wt_llm_attend_args &a, const task &u, float scale,
                                                  const shared *m)
{
    constexpr int OF_BLOCK = UNITS / SPLITS;
    for (int i = threadIdx.x; i < 32 * OF_BLOCK; i += THREADS) {
        const int unit = (int)blockIdx.x * OF_BLOCK + i / 32, lane = i % 32, row = lane / 4 + unit % 2 * 8;
        float2 found[SPLITS];
        float4 parts[SPLITS * HALVES];
        float most = NOTHING, total = 0, sum[4] = {};
#pragma unroll
        for (int k = 0; k < SPLITS; k++) {
            found[k] = m->found[k][row];
            most = fmaxf(most, found[k].x);
        }
#pragma unroll
        for (int k = 0; k < SPLITS * HALVES; k++) parts[k] = m->sent[k * OF_BLOCK + i / 32][lane];
#pragma unroll
        for (int k = 0; k < SPLITS; k++) {
            const float factor = power_of_2((found[k].x - most) * scale);
            total += factor * found[k].y;
#pragma unroll
            for (int e = 0; e < HALVES; e++) {
                const float4 x = parts[k * HALVES + e];
                sum[0] += factor * x.x, sum[1] += factor * x.y, sum[2] += factor * x.z, sum[3] += factor * x.w;
            }
        }
        if (row >= u.n * GROUP) continue;
        const bool is_wide = sizeof(kv_type) > 1; // then columns are 8 dimensions and the next 8
        const int d = unit / 2 * DIMS + lane % 4 * (is_wide ? 2 : 4);
        const long long at =
            ((long long)(u.first + row / GROUP) * a.n_heads + u.kv_head * GROUP + row % GROUP) * D_HEAD + d;
        const float whole = __fdividef(1, total);
        put_two(a, at, sum[0] * whole, sum[1] * whole);
        put_two(a, at + (is_wide ? 8 : 2), sum[2] * whole, sum[3] * whole);
    }
}

template <int SPLITS> static __device__ __forceinline__ void attend(const wt_llm_attend_args &a)
{
    constexpr int STEP = SPLITS * WARPS;
    __shared__ alignas(16) shared memory;
    extern __shared__ uint4 fetched[]; // values of a turn and the next
    shared *m = &memory;
    unsigned char *const values = (unsigned char *)fetched;
    let_next_begin();
    const task u = task_of<SPLITS>(a);
    const int warp = __shfl_sync(ALL, threadIdx.x / 32, 0); // one number, as the compiler should know
    const kv_type *const keys = (const kv_type *)a.cache.keys;
    const float scale = a.scale * LOG2_E;
    const int begin = blockIdx.x * WARPS;
    tile p;
    if (has_tile(u, begin + warp)) load_keys(keys + tile_at(a, u, begin + warp), D_HEAD, &p);
    fetch_slot(a, u, begin + warp, values + warp * TILE_BYTES);
    copy_async_commit();
#pragma unroll 1
    for (int k = 1; k <= ASKED && begin + warp + k * STEP <= u.n_tiles; k++)
        if (threadIdx.x % 16 == 0) // keys and values
            ask_for((threadIdx.x % 32 ? (const kv_type *)a.cache.values : keys) +
                        tile_at(a, u, begin + warp + k * STEP),
                    TILE_BYTES);
    if (SPLITS > 1) {
        if (!threadIdx.x) {
            barrier_create(&m->all_sent, 1);
            barriers_created();
            barrier_expect(&m->all_sent, sizeof m->sent + SPLITS * sizeof m->found[0]);
        }
        cluster_arrive();
    }
    unsigned char *const own_values = values + u.own % WARPS * TILE_BYTES;
    if (is_plain(a.turn))
        prepare(a, u, warp, own_values, m);
    else
        prepare_any(a, u, warp, own_values, m);
    __syncthreads();
    rows r = {{}, {NOTHING, NOTHING}, {}};
    int at = 0; // of the turn's values
#pragma unroll 1
    for (int first = begin; first <= u.n_tiles; first += STEP, at ^= WARPS * TILE_BYTES) {
        const int slot = first + warp;
        const bool more = first + STEP <= u.n_tiles;
        float s[2][4] = {{NOTHING, NOTHING, NOTHING, NOTHING}, {NOTHING, NOTHING, NOTHING, NOTHING}};
        if (slot <= u.n_tiles) score_slot(a, u, slot, &p, s, m);
        if (more && has_tile(u, slot + STEP)) load_keys(keys + tile_at(a, u, slot + STEP), D_HEAD, &p);
        tell_most(s, warp, m);
        __syncthreads(); // nobody reads the last turn's shares and values any more
        if (more) fetch_slot(a, u, slot + STEP, values + (at ^ WARPS * TILE_BYTES) + warp * TILE_BYTES);
        copy_async_commit();
        share(scale, s, warp, &r, m);
        copy_async_wait<1>();
        __syncthreads();
        add_values(m, values + at, warp, &r);
    }
    if (SPLITS > 1) cluster_wait(); // the others are there
    send<SPLITS>(r, begin <= u.n_tiles, warp, m);
    if (SPLITS == 1)
        __syncthreads();
    else if (threadIdx.x < 32 * (UNITS / SPLITS))
        barrier_wait_in_cluster(&m->all_sent, 0);
    add_blocks<SPLITS>(a, u, scale, m);
}

#define KERNEL(splits)                                                                                                 \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(THREADS, 2)                                          \
        llm_attend_16_##splits(const __grid_constant__ wt_llm_attend_args a)                                           \
    {                                                                                                                  \
        attend<splits>(a);                                                                                             \
    }

KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
