// Attention of few tokens over the cache of keys and values.
//
//   llm_attend   a block a part of the positions, some heads that share a head of keys, and a token (grid: parts,
//                heads, tokens), for steps with llm_place (llm_place.cu) before it, or that leave a single token's
//                norms, RoPE and place in the cache to this: what the cache has is read while q, k and v are on their
//                way. A row of keys or values is read once for all those heads by a team of lanes, 16 bytes each; the
//                block's teams take positions side by side and keep their own maxima, totals and sums. The teams of a
//                block are added in order. The block that is done last adds all parts, in order too. Steps of single
//                tokens mostly have llm_attend_one.cu, whose blocks need not wait for the last.
//
// Compiled for a head's size (D_HEAD), the heads that share one of keys and values (GROUP) and the cache's type (KV).
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_cache.cuh"
#include "llm_turn.cuh"

#include "mma.cuh"
#include "overlap.cuh"

#define THREADS   128
#define UNROLL    4
#define MAX_PARTS WT_LLM_MAX_PARTS

static constexpr int widest(int n) { return D_HEAD % n ? widest(n / 2) : n; }
static constexpr int heads_at_once(int n) // the largest divisor of the group up to 8
{
    return GROUP % n ? heads_at_once(n - 1) : n;
}
static constexpr int lanes_for(int n) { return n >= 32 ? 32 : n > 16 ? 32 : n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n; }

static constexpr int N = widest(KV == WT_LLM_F32 ? 4 : 8); // elements a lane reads at once, 16 bytes or 8 of fp8
static constexpr int CHUNKS = D_HEAD / N;
static constexpr int TEAM = lanes_for(CHUNKS); // lanes of a position
static constexpr int TEAMS = THREADS / TEAM;
static constexpr int PER = (CHUNKS + TEAM - 1) / TEAM; // chunks of a lane
static constexpr int HEADS = heads_at_once(GROUP < 8 ? GROUP : 8);
static constexpr int AT_ONCE = TEAMS * UNROLL;                              // positions of a block
static constexpr int ASKED = AT_ONCE < WT_LLM_PAGE ? AT_ONCE : WT_LLM_PAGE; // asked for together
static constexpr int BLOCKS = HEADS * PER * N <= 32 ? 4 : 2; // half of a processor's registers at two blocks
static constexpr int PITCH = (D_HEAD + 5) / 4 * 4;           // of a team's sums, maximum and total
static constexpr int WIDE = D_HEAD % 4 ? 1 : 4;              // elements of a part that are read at once
static constexpr int PIECES = HEADS * D_HEAD / WIDE;         // of a block's results
typedef pack<kv_type, N> chunk;
typedef pack<float, WIDE> wide;

// A team's scores of UNROLL positions for all heads: score i of head i / UNROLL, position i % UNROLL, of which a lane
// finds the exponentials of scores lane, lane + TEAM ..
static constexpr int SCORES = HEADS * UNROLL;
static constexpr int OWN = (SCORES + TEAM - 1) / TEAM;

struct running {
    float most[OWN], total[OWN]; // of the lane's scores: the maximum of their head, and what they add up to
    float sum[HEADS][PER * N];
};

struct team_memory {
    float scores[SCORES], shares[SCORES], fades[HEADS + (4 - HEADS % 4) % 4];
};

// What a block has: positions from .. to - 1 for some heads of a token, as one of n parts.
struct part {
    wt_llm_token token;
    int t, head, kv_head, from, to, n;
    bool has_own; // the token's own is the last of them, and not in the cache yet
};

static __device__ __forceinline__ part part_of(const wt_llm_attend_args &a)
{
    part p;
    p.t = blockIdx.z;
    p.head = blockIdx.y * HEADS;
    p.kv_head = p.head / GROUP;
    p.token = a.tokens[p.t];
    const int begin = a.window && p.token.place >= a.window ? p.token.place - a.window + 1 : 0;
    const int end = p.token.place + 1, share = (end - begin + a.n_splits - 1) / a.n_splits;
    p.n = (end - begin + share - 1) / share;
    p.from = begin + (int)blockIdx.x * share;
    p.to = min(end, p.from + share);
    p.has_own = a.k && p.to == end && p.from < end;
    return p;
}

// Positions first, first + TEAMS .. of a team.
struct positions {
    chunk keys[UNROLL][PER], values[UNROLL][PER];
    int n;
};

// Those that the cache has.
static __device__ __forceinline__ void load_positions(const wt_llm_attend_args &a, const part &own, int first,
                                                      positions *p)
{
    const int lane = threadIdx.x % TEAM, end = own.has_own ? own.to - 1 : own.to;
    p->n = first < end ? (end - first + TEAMS - 1) / TEAMS : 0;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (u >= p->n) continue;
        const long long at = cache_at(a.cache, own.token.sequence, first + u * TEAMS, own.kv_head);
#pragma unroll
        for (int i = 0; i < PER; i++)
            if (i * TEAM + lane < CHUNKS) {
                p->keys[u][i] = ((const chunk *)((const kv_type *)a.cache.keys + at))[i * TEAM + lane];
                p->values[u][i] = ((const chunk *)((const kv_type *)a.cache.values + at))[i * TEAM + lane];
            }
    }
}

// The rest of them, to the L2 cache: keys by one thread and values by another.
static __device__ __forceinline__ void ask_for_rest(const wt_llm_attend_args &a, const part &own)
{
    if (threadIdx.x % 64) return;
    const kv_type *from = (const kv_type *)(threadIdx.x ? a.cache.values : a.cache.keys);
    for (int j = (own.from + AT_ONCE) / ASKED * ASKED; j < own.to - own.has_own; j += ASKED)
        ask_for(from + cache_at(a.cache, own.token.sequence, j, own.kv_head), ASKED * D_HEAD * sizeof(kv_type));
}

// Sums over the lanes of a team of COUNT numbers each, whose number `base` and those after it a lane has then: as long
// as they are even, half of them goes to the half of the lanes under BIT.
template <int COUNT, int BIT> static __device__ __forceinline__ void fold(float *x, float *to)
{
    if constexpr (BIT == 0) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) to[k] = x[k];
    } else if constexpr (COUNT % 2) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) x[k] += __shfl_xor_sync(ALL, x[k], BIT);
        fold<COUNT, BIT / 2>(x, to);
    } else {
        const bool upper = threadIdx.x & BIT;
#pragma unroll
        for (int k = 0; k < COUNT / 2; k++) {
            const float other = __shfl_xor_sync(ALL, upper ? x[k] : x[k + COUNT / 2], BIT);
            x[k] = (upper ? x[k + COUNT / 2] : x[k]) + other;
        }
        fold<COUNT / 2, BIT / 2>(x, to + (upper ? COUNT / 2 : 0));
    }
}

// Dot products with the heads, to m->scores.
static __device__ __forceinline__ void score_positions(const positions &p, const float (*heads)[D_HEAD], team_memory *m)
{
    const int lane = threadIdx.x % TEAM, most = __shfl_sync(ALL, p.n, 0); // the first of the warp's teams has the most
    float dots[SCORES] = {};
#pragma unroll
    for (int first = 0; first < UNROLL; first += 2) { // two at a time, as floats
        if (first >= most) continue;
        float keys[2][PER * N];
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int k = 0; k < PER * N; k++)
                keys[u][k] =
                    first + u < p.n && k / N * TEAM + lane < CHUNKS ? widen(p.keys[first + u][k / N].at[k % N]) : 0;
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float dot[2] = {0, 0};
#pragma unroll
            for (int k = 0; k < PER * N; k += WIDE) {
                const int d = (k / N * TEAM + lane) * N + k % N;
                wide q = {};
                if (d < D_HEAD) q = *(const wide *)&heads[h][d];
#pragma unroll
                for (int j = 0; j < WIDE; j++)
#pragma unroll
                    for (int u = 0; u < 2; u++) dot[u] += q.at[j] * keys[u][k + j];
            }
            dots[h * UNROLL + first] = dot[0];
            dots[h * UNROLL + first + 1] = dot[1];
        }
    }
    fold<SCORES, TEAM / 2>(dots, m->scores);
    __syncwarp();
}

// Exponentials of the lane's scores under their head's maximum, to m->shares, and what those before fade by.
static __device__ __forceinline__ void share_positions(int n, float scale, team_memory *m, running *r)
{
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const int i = threadIdx.x % TEAM + k * TEAM;
        if (i >= SCORES) continue;
        float most = r->most[k];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (u < n) most = fmaxf(most, m->scores[i / UNROLL * UNROLL + u] * scale);
        const float fade = r->most[k] == NOTHING ? 0 : expf(r->most[k] - most);
        const float share = i % UNROLL < n ? expf(m->scores[i] * scale - most) : 0;
        r->most[k] = most;
        r->total[k] = r->total[k] * fade + share;
        m->shares[i] = share;
        if (i % UNROLL == 0) m->fades[i / UNROLL] = fade;
    }
    __syncwarp();
}

static __device__ __forceinline__ void take_positions(const positions &p, const float (*heads)[D_HEAD], float scale,
                                                      team_memory *m, running *r)
{
    const int lane = threadIdx.x % TEAM;
    score_positions(p, heads, m);
    share_positions(p.n, scale, m, r);
    float shares[HEADS][UNROLL];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const float fade = m->fades[h];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) shares[h][u] = m->shares[h * UNROLL + u];
#pragma unroll
        for (int k = 0; k < PER * N; k++) r->sum[h][k] *= fade;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (u >= p.n) continue;
#pragma unroll
        for (int k = 0; k < PER * N; k++) {
            if (k / N * TEAM + lane >= CHUNKS) continue;
            const float value = widen(p.values[u][k / N].at[k % N]);
#pragma unroll
            for (int h = 0; h < HEADS; h++) r->sum[h][k] += shares[h][u] * value;
        }
    }
    __syncwarp(); // the team's memory is used
}

// Maxima and totals of the heads to a team's rows.
static __device__ __forceinline__ void give_totals(const running &r, team_memory *m, float (*teams)[TEAMS][PITCH])
{
    const int lane = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
#pragma unroll
    for (int k = 0; k < OWN; k++)
        if (lane + k * TEAM < SCORES) m->shares[lane + k * TEAM] = r.total[k];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        const int i = lane + k * TEAM;
        if (i >= SCORES || i % UNROLL) continue;
        float total = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) total += m->shares[i + u];
        teams[i / UNROLL][team][D_HEAD] = r.most[k];
        teams[i / UNROLL][team][D_HEAD + 1] = total;
    }
}

// sums += factor x.
static __device__ __forceinline__ void add(wide *sums, float factor, const wide &x)
{
#pragma unroll
    for (int j = 0; j < WIDE; j++) sums->at[j] += factor * x.at[j];
}

// The teams of a head, each [D_HEAD] sums, their maximum, their total: elements d .. of the sum under the common
// maximum. A team without a position has zeros.
static __device__ __forceinline__ wide merge(const float (*teams)[PITCH], int d, float *most, float *total)
{
    wide sums = {};
    *most = NOTHING;
    *total = 0;
#pragma unroll
    for (int k = 0; k < TEAMS; k++) *most = fmaxf(*most, teams[k][D_HEAD]);
#pragma unroll
    for (int k = 0; k < TEAMS; k++) {
        const float fade = expf(teams[k][D_HEAD] - *most);
        *total += fade * teams[k][D_HEAD + 1];
        add(&sums, fade, *(const wide *)&teams[k][d]);
    }
    return sums;
}

// What a part says of a piece of a head: its sums under its maximum, and its total.
struct message {
    wide sums;
    float most, total;
};

// What the lane's parts say of a piece: a part or two.
struct heard {
    message m[MAX_PARTS / 32];
};

// A piece of a head from what its n parts said, by a warp.
static __device__ __forceinline__ wide add_messages(const heard &all, int n)
{
    const int lane = threadIdx.x % 32;
    float most = NOTHING, total = 0;
    wide sums = {};
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++)
        if (lane + k * 32 < n) most = fmaxf(most, all.m[k].most);
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++) {
        if (lane + k * 32 >= n) continue;
        const float fade = expf(all.m[k].most - most);
        total += fade * all.m[k].total;
        add(&sums, fade, all.m[k].sums);
    }
    total = warp_sum(total);
#pragma unroll
    for (int j = 0; j < WIDE; j++) sums.at[j] = warp_sum(sums.at[j]) / total;
    return sums;
}

// What n parts say of a piece, which other blocks have written.
static __device__ __forceinline__ void hear(const float *messages, int n, heard *all)
{
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++) {
        const int part = threadIdx.x % 32 + k * 32;
        if (part >= n) continue;
        const float4 *from = (const float4 *)(messages + part * WT_LLM_MESSAGE);
        const float4 x = __ldcg(from), y = __ldcg(from + 1);
        const float words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int j = 0; j < WIDE; j++) all->m[k].sums.at[j] = words[j];
        all->m[k].most = y.x;
        all->m[k].total = y.y;
    }
}

static __device__ __forceinline__ void send(const message &m, float *to)
{
    float words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < WIDE; j++) words[j] = m.sums.at[j];
    ((float4 *)to)[0] = make_float4(words[0], words[1], words[2], words[3]);
    ((float4 *)to)[1] = make_float4(m.most, m.total, 0, 0); // a whole sector of the L2 cache
}

// The block's heads of q turned, when they come, and in the block of the token's own position k, turned, and v: to
// shared memory in the cache's type and, by the first heads that share them, to the cache. All that a warp turns is on
// its way together.
static __device__ __forceinline__ void turn_and_place(const wt_llm_attend_args &a, const part &p,
                                                      float (*heads)[D_HEAD], kv_type (*own)[D_HEAD])
{
    enum { WARPS = THREADS / 32, MOST = (HEADS + 2 + WARPS - 1) / WARPS };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = HEADS + (p.has_own ? 2 : 0);
    const long long at = ((long long)p.t * a.n_kv_heads + p.kv_head) * D_HEAD;
    raw_head raw[MOST]; // loads without branches (see load_if): some heads twice
#pragma unroll
    for (int k = 0; k < MOST; k++)
        load_turn(a.turn, p.t, min(warp + k * WARPS, n - 1) < HEADS ? a.turn.q_norm : a.turn.k_norm, &raw[k]);
    wait_for_earlier();
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = min(warp + k * WARPS, n - 1);
        load_values(i < HEADS    ? a.q + ((long long)p.t * a.n_heads + p.head + i) * D_HEAD
                    : i == HEADS ? a.k + at
                                 : a.v + at,
                    &raw[k]);
    }
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = warp + k * WARPS;
        const bool is_v = i > HEADS;
        if (i >= n) continue;
        if (!is_v) turn(a.turn, raw[k], i < HEADS ? a.turn.q_norm : a.turn.k_norm, heads[i]);
        if (i < HEADS) continue;
        kv_type *to = (kv_type *)(is_v ? a.cache.values : a.cache.keys) +
                      cache_at(a.cache, p.token.sequence, p.token.place, p.kv_head);
#pragma unroll
        for (int j = 0; j < OF_LANE; j++) {
            const int d = lane + 32 * j;
            if (d >= D_HEAD) continue;
            narrow(is_v ? raw[k].values[j] : heads[HEADS][d], &own[is_v][d]);
            if (p.head % GROUP == 0) to[d] = own[is_v][d];
        }
    }
}

// The block's heads of q, and its own position if it has one.
static __device__ __forceinline__ void prepare_heads(const wt_llm_attend_args &a, const part &p, float (*heads)[D_HEAD],
                                                     kv_type (*own)[D_HEAD])
{
    if (a.k)
        turn_and_place(a, p, heads, own);
    else {
        const float *q = a.q + ((long long)p.t * a.n_heads + p.head) * D_HEAD;
        for (int i = threadIdx.x; i < HEADS * D_HEAD; i += THREADS) heads[i / D_HEAD][i % D_HEAD] = q[i];
    }
    __syncthreads();
}

// If `wanted`, else what there was: no branch, where registers allow.
static __device__ __forceinline__ void load_shared_if(bool wanted, const chunk *from, chunk *to)
{
    if constexpr (sizeof(chunk) == 16)
        load_shared_16((unsigned *)to, from, wanted);
    else if (wanted)
        *to = *from;
}

// The token's own position, after `before` others of this turn.
static __device__ __forceinline__ void add_own(const kv_type (*own)[D_HEAD], int before, positions *p)
{
    const int lane = threadIdx.x % TEAM;
    const bool is_mine = (int)threadIdx.x / TEAM == before % TEAMS;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const bool here = is_mine && u == before / TEAMS && i * TEAM + lane < CHUNKS;
            load_shared_if(here, (const chunk *)own[0] + i * TEAM + lane, &p->keys[u][i]);
            load_shared_if(here, (const chunk *)own[1] + i * TEAM + lane, &p->values[u][i]);
        }
    p->n += is_mine;
}

// All positions of the team, of which it has the first already.
static __device__ __forceinline__ void take_all(const wt_llm_attend_args &a, const part &own, positions *p,
                                                const float (*heads)[D_HEAD], const kv_type (*own_position)[D_HEAD],
                                                team_memory *m, running *r)
{
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        r->most[k] = NOTHING;
        r->total[k] = 0;
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++)
#pragma unroll
        for (int k = 0; k < PER * N; k++) r->sum[h][k] = 0;
#pragma unroll 1
    for (int j = own.from; j < own.to; j += AT_ONCE) {
        if (own.has_own && own.to - j <= AT_ONCE) add_own(own_position, own.to - 1 - j, p);
        if (__shfl_sync(ALL, p->n, 0)) take_positions(*p, heads, a.scale, m, r);
        load_positions(a, own, j + AT_ONCE + (int)threadIdx.x / TEAM, p);
    }
}

// Sums, maxima and totals to the team's rows.
static __device__ __forceinline__ void give(const running &r, team_memory *m, float (*teams)[TEAMS][PITCH])
{
    const int lane = threadIdx.x % TEAM;
#pragma unroll
    for (int h = 0; h < HEADS; h++)
#pragma unroll
        for (int k = 0; k < PER * N; k += WIDE) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            wide sums;
#pragma unroll
            for (int j = 0; j < WIDE; j++) sums.at[j] = r.sum[h][k + j];
            if (d < D_HEAD) *(wide *)&teams[h][threadIdx.x / TEAM][d] = sums;
        }
    give_totals(r, m, teams);
    __syncthreads();
}

static __device__ __forceinline__ void put(const wt_llm_attend_args &a, long long at, float x)
{
    store_parts(a.out, a.out_type, at, x, a.two_parts, (long long)a.n_tokens * a.n_heads * D_HEAD);
}

// What the block's teams have together: the result where there is one part, else messages, [PIECES][n_splits] of the
// heads.
static __device__ __forceinline__ void end_part(const wt_llm_attend_args &a, const part &p,
                                                const float (*teams)[TEAMS][PITCH], float *messages)
{
    for (int piece = threadIdx.x; piece < PIECES && p.from < p.to; piece += THREADS) {
        message m;
        m.sums = merge(teams[piece * WIDE / D_HEAD], piece * WIDE % D_HEAD, &m.most, &m.total);
        if (a.n_splits > 1) {
            send(m, messages + ((long long)piece * a.n_splits + blockIdx.x) * WT_LLM_MESSAGE);
            continue;
        }
        const long long at = ((long long)p.t * a.n_heads + p.head) * D_HEAD + piece * WIDE;
        for (int j = 0; j < WIDE; j++) put(a, at + j, m.sums.at[j] / m.total);
    }
}

// All parts of the heads, by the warps in turn.
static __device__ __forceinline__ void add_parts(const wt_llm_attend_args &a, const part &p, const float *messages)
{
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int piece = threadIdx.x / 32; piece < PIECES; piece += THREADS / 32) {
        heard all;
        hear(messages + piece * a.n_splits * WT_LLM_MESSAGE, p.n, &all);
        const wide sums = add_messages(all, p.n);
        float own = sums.at[0];
#pragma unroll
        for (int j = 1; j < WIDE; j++) own = lane == j ? sums.at[j] : own;
        if (lane < WIDE)
            put(a, ((long long)p.t * a.n_heads + p.head) * D_HEAD + piece * WIDE + lane, own);
    }
}

// Whether this is the last block of the heads' parts.
static __device__ __forceinline__ bool is_last(int *arrived, int n)
{
    __shared__ int place;
    __threadfence(); // what was said is there before it is counted
    __syncthreads();
    if (!threadIdx.x) {
        place = atomicAdd(arrived, 1);
        if (place == n - 1) *arrived = 0;
    }
    __syncthreads();
    return place == n - 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) llm_attend(const __grid_constant__ wt_llm_attend_args a)
{
    __shared__ alignas(16) float teams[HEADS][TEAMS][PITCH], heads[HEADS + 1][D_HEAD];
    __shared__ alignas(16) team_memory memories[TEAMS];
    __shared__ alignas(16) kv_type own[2][D_HEAD];
    let_next_begin();
    if (!a.k) wait_for_earlier(); // else only q, k and v come from kernels of this step that may still run
    const part part = part_of(a);
    team_memory *m = &memories[threadIdx.x / TEAM];
    positions p;
    load_positions(a, part, part.from + (int)threadIdx.x / TEAM, &p);
    ask_for_rest(a, part);
    float *messages =
        a.messages + ((long long)blockIdx.z * gridDim.y + blockIdx.y) * a.n_splits * PIECES * WT_LLM_MESSAGE;
    prepare_heads(a, part, heads, own);
    running r;
    take_all(a, part, &p, heads, own, m, &r);
    give(r, m, teams);
    end_part(a, part, teams, messages);
    if (a.n_splits > 1 && is_last(a.arrived + part.t * a.n_heads + part.head, a.n_splits)) add_parts(a, part, messages);
}
