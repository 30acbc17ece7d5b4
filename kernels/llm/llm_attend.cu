// Attention of few tokens over the cache of keys and values.
//
//   llm_attend   a block a part of the positions, some heads that share a head of keys, and a token (grid: parts, heads,
//                tokens), for steps with llm_place in it: what the cache has is read while q, k and v are on their way.
//                A row of keys or values is read once for all those heads by a team of lanes, 16 bytes each; the
//                block's teams take positions side by side and keep their own maxima, totals and sums. The teams of a
//                block are added in order, and the parts by the block that is done last, in order too.
//
// Compiled for a head's size (D_HEAD), the heads that share one of keys and values (GROUP) and the cache's type (KV).
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_cache.cuh"
#include "llm_turn.cuh"

#include "overlap.cuh"

#define THREADS   128
#define UNROLL    4
#define MAX_PARTS WT_LLM_MAX_PARTS
#define AT_ONCE   17 // parts of a thread on their way together: a half of those of 132 processors and 8 heads

static constexpr int widest(int n)
{
    return D_HEAD % n ? widest(n / 2) : n;
}
static constexpr int heads_at_once(int n) // the largest divisor of the group up to 8
{
    return GROUP % n ? heads_at_once(n - 1) : n;
}
static constexpr int lanes_for(int n)
{
    return n >= 32 ? 32 : n > 16 ? 32 : n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
}

static constexpr int N = widest(KV == WT_LLM_F32 ? 4 : 8); // elements a lane reads at once, 16 bytes or 8 of fp8
static constexpr int CHUNKS = D_HEAD / N;
static constexpr int TEAM = lanes_for(CHUNKS);              // lanes of a position
static constexpr int TEAMS = THREADS / TEAM;
static constexpr int PER = (CHUNKS + TEAM - 1) / TEAM;      // chunks of a lane
static constexpr int HEADS = heads_at_once(GROUP < 8 ? GROUP : 8);
static constexpr int PIECE = TEAMS * UNROLL < WT_LLM_PAGE ? TEAMS * UNROLL : WT_LLM_PAGE; // positions taken at once
static constexpr int BLOCKS = HEADS * PER * N <= 32 ? 4 : 2; // half of a processor's registers at two blocks
static constexpr int PITCH = WT_LLM_PART_PITCH(D_HEAD);
static constexpr int WIDE = D_HEAD % 4 ? 1 : 4; // elements of a part that are read at once
static constexpr int PIECES = HEADS * D_HEAD / WIDE;       // of a block's results
static constexpr int EACH = (PIECES + THREADS - 1) / THREADS;
static constexpr int SHARERS = THREADS / PIECES > 1 ? THREADS / PIECES : 1; // threads that add the parts of a piece
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

// Positions first, first + TEAMS .. below `end` of a team.
struct positions {
    chunk keys[UNROLL][PER], values[UNROLL][PER];
    int n;
};

static __device__ __forceinline__ void load_positions(const wt_llm_attend_args &a, int sequence, int kv_head, int first,
                                                      int end, positions *p)
{
    const int lane = threadIdx.x % TEAM;
    p->n = first < end ? (end - first + TEAMS - 1) / TEAMS : 0;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (u >= p->n) continue;
        const long long at = cache_at(a.cache, sequence, first + u * TEAMS, kv_head);
#pragma unroll
        for (int i = 0; i < PER; i++)
            if (i * TEAM + lane < CHUNKS) {
                p->keys[u][i] = ((const chunk *)((const kv_type *)a.cache.keys + at))[i * TEAM + lane];
                p->values[u][i] = ((const chunk *)((const kv_type *)a.cache.values + at))[i * TEAM + lane];
            }
    }
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
    const int lane = threadIdx.x % TEAM;
    float dots[SCORES];
#pragma unroll
    for (int first = 0; first < UNROLL; first += 2) { // two at a time, as floats
        float keys[2][PER * N];
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int k = 0; k < PER * N; k++)
                keys[u][k] = first + u < p.n && k / N * TEAM + lane < CHUNKS
                                 ? widen(p.keys[first + u][k / N].at[k % N])
                                 : 0;
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

// Factors of a head's n parts, which have their maximum and total at `ends`, by a warp.
static __device__ __forceinline__ void find_factors(const float *ends, int n, float *factors)
{
    const int lane = threadIdx.x % 32;
    float2 end[MAX_PARTS / 32];
    float most = NOTHING, total = 0;
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++) {
        const int part = k * 32 + lane;
        const float *at = ends + min(part, n - 1) * PITCH;
        end[k] = make_float2(at[0], at[1]);
        most = fmaxf(most, end[k].x);
    }
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++) {
        end[k].x = k * 32 + lane < n ? expf(end[k].x - most) : 0;
        total += end[k].x * end[k].y;
    }
    total = warp_sum(total);
#pragma unroll
    for (int k = 0; k < MAX_PARTS / 32; k++)
        if (k * 32 + lane < n) factors[k * 32 + lane] = end[k].x / total;
}

// Parts first, first + SHARERS .. of a piece, AT_ONCE of them, or the last one again.
static __device__ __forceinline__ void load_parts(const float *parts, int first, int n, wide (&loaded)[AT_ONCE])
{
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) loaded[k] = *(const wide *)(parts + min(first + k * SHARERS, n - 1) * PITCH);
}

// The parts of this block's heads, from `row` on: warps find the heads' factors while the sums are on their way.
static __device__ void merge_parts(const wt_llm_attend_args &a, long long row, int n, float (*factors)[MAX_PARTS],
                                   wide (*shares)[PIECES])
{
    const int sharer = SHARERS > 1 ? threadIdx.x / PIECES : 0;
    wide loaded[AT_ONCE];
    for (int e = 0; e < EACH; e++) {
        const int own = SHARERS > 1 ? threadIdx.x % PIECES : e * THREADS + (int)threadIdx.x;
        const bool is_mine = sharer < SHARERS && own < PIECES;
        const int piece = is_mine ? own : 0, h = piece * WIDE / D_HEAD, d = piece * WIDE % D_HEAD;
        const float *parts = a.partial + (row + h) * a.n_splits * PITCH + d;
        load_parts(parts, sharer, n, loaded);
        if (!e) {
            for (int head = threadIdx.x / 32; head < HEADS; head += THREADS / 32)
                find_factors(a.partial + (row + head) * a.n_splits * PITCH + D_HEAD, n, factors[head]);
            __syncthreads();
        }
        wide sums = {};
        for (int first = sharer; is_mine && first < n; first += AT_ONCE * SHARERS) {
            if (first > sharer) load_parts(parts, first, n, loaded);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                if (first + k * SHARERS < n) add(&sums, factors[h][first + k * SHARERS], loaded[k]);
        }
        if (SHARERS > 1) {
            if (is_mine) shares[sharer][piece] = sums;
            __syncthreads();
            if (sharer) continue;
            for (int k = 1; k < SHARERS; k++) add(&sums, 1, shares[k][piece]);
        }
        if (is_mine)
            for (int j = 0; j < WIDE; j++) store(a.out, a.out_type, row * D_HEAD + piece * WIDE + j, sums.at[j]);
    }
}

// The block's heads of q turned, and in the block of the token's own position k, turned, and v: to shared memory in the
// cache's type and, by the first heads that share them, to the cache. All that a warp turns is on its way together.
static __device__ __forceinline__ void turn_and_place(const wt_llm_attend_args &a, int t, int head,
                                                      const wt_llm_token &token, bool has_own, float (*heads)[D_HEAD],
                                                      kv_type (*own)[D_HEAD])
{
    enum { WARPS = THREADS / 32, MOST = (HEADS + 2 + WARPS - 1) / WARPS };
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, kv_head = head / GROUP, n = HEADS + (has_own ? 2 : 0);
    const long long at = ((long long)t * a.n_kv_heads + kv_head) * D_HEAD;
    raw_head raw[MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = warp + k * WARPS;
        if (i >= n) continue;
        const float *from = i < HEADS    ? a.q + ((long long)t * a.n_heads + head + i) * D_HEAD
                            : i == HEADS ? a.k + at
                                         : a.v + at;
        raw[k] = load_head(a.turn, t, from, i < HEADS ? a.turn.q_norm : a.turn.k_norm);
    }
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = warp + k * WARPS;
        const bool is_v = i > HEADS;
        if (i >= n) continue;
        if (!is_v) turn(a.turn, raw[k], i < HEADS ? a.turn.q_norm : a.turn.k_norm, heads[i]);
        if (i < HEADS) continue;
        kv_type *to = (kv_type *)(is_v ? a.cache.values : a.cache.keys) +
                      cache_at(a.cache, token.sequence, token.place, kv_head);
#pragma unroll
        for (int j = 0; j < OF_LANE; j++) {
            const int d = lane + 32 * j;
            if (d >= D_HEAD) continue;
            narrow(is_v ? raw[k].values[j] : heads[HEADS][d], &own[is_v][d]);
            if (head % GROUP == 0) to[d] = own[is_v][d];
        }
    }
}

// The token's own position, which one team takes.
static __device__ __forceinline__ void load_own(const kv_type (*own)[D_HEAD], positions *p)
{
    const int lane = threadIdx.x % TEAM;
    p->n = threadIdx.x < TEAM;
#pragma unroll
    for (int i = 0; i < PER; i++)
        if (p->n && i * TEAM + lane < CHUNKS) {
            p->keys[0][i] = ((const chunk *)own[0])[i * TEAM + lane];
            p->values[0][i] = ((const chunk *)own[1])[i * TEAM + lane];
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) llm_attend(const __grid_constant__ wt_llm_attend_args a)
{
    __shared__ alignas(16) float teams[HEADS][TEAMS][PITCH], heads[HEADS + 1][D_HEAD];
    __shared__ float factors[HEADS][MAX_PARTS];
    __shared__ alignas(16) team_memory memories[TEAMS];
    __shared__ alignas(16) kv_type own[2][D_HEAD];
    __shared__ int is_last;
    let_next_begin();
    if (!a.k) wait_for_earlier(); // else only q, k and v come from kernels of this step that may still run
    const int t = blockIdx.z, head = blockIdx.y * HEADS, kv_head = head / GROUP, lane = threadIdx.x % TEAM;
    const int team = threadIdx.x / TEAM;
    const wt_llm_token token = a.tokens[t];
    const int begin = a.window && token.place >= a.window ? token.place - a.window + 1 : 0, end = token.place + 1;
    // this block's part, in pieces of a share of a page
    const int first_piece = begin / PIECE, n_pieces = token.place / PIECE - first_piece + 1;
    const int share = (n_pieces + a.n_splits - 1) / a.n_splits;
    const int from = max(begin, (first_piece + (int)blockIdx.x * share) * PIECE);
    const int to = min(end, (first_piece + ((int)blockIdx.x + 1) * share) * PIECE);
    const bool has_own = a.k && to == end && from < to;
    const int to_old = has_own ? to - 1 : to;

    positions p;
    load_positions(a, token.sequence, kv_head, from + team, to_old, &p);
    if (threadIdx.x % 64 == 0) // of the rest, keys by one thread and values by another
        for (int j = (from / PIECE + 1) * PIECE; j < to_old; j += PIECE)
            ask_for((const kv_type *)(threadIdx.x ? a.cache.values : a.cache.keys) +
                        cache_at(a.cache, token.sequence, j, kv_head),
                    PIECE * D_HEAD * sizeof(kv_type));
    if (a.k) {
        wait_for_earlier();
        turn_and_place(a, t, head, token, has_own, heads, own);
    } else {
        for (int i = threadIdx.x; i < HEADS * D_HEAD; i += THREADS)
            heads[i / D_HEAD][i % D_HEAD] = a.q[((long long)t * a.n_heads + head) * D_HEAD + i];
    }
    __syncthreads();
    team_memory *m = &memories[team];
    running r;
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        r.most[k] = NOTHING;
        r.total[k] = 0;
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++)
#pragma unroll
        for (int k = 0; k < PER * N; k++) r.sum[h][k] = 0;
#pragma unroll 1
    for (int j = from;; j += TEAMS * UNROLL) { // at last the token's own
        const bool is_own = j >= to_old;
        if (is_own && !has_own) break;
        if (is_own) load_own(own, &p);
        take_positions(p, heads, a.scale, m, &r);
        if (is_own) break;
        load_positions(a, token.sequence, kv_head, j + TEAMS * UNROLL + team, to_old, &p);
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
#pragma unroll
        for (int k = 0; k < PER * N; k += WIDE) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            wide four;
#pragma unroll
            for (int j = 0; j < WIDE; j++) four.at[j] = r.sum[h][k + j];
            if (d < D_HEAD) *(wide *)&teams[h][team][d] = four;
        }
    }
    give_totals(r, m, teams);
    __syncthreads();

    const long long row = (long long)t * a.n_heads + head;
    for (int piece = threadIdx.x; piece < PIECES; piece += THREADS) {
        const int h = piece * WIDE / D_HEAD, d = piece * WIDE % D_HEAD;
        float most, total;
        const wide sums = merge(teams[h], d, &most, &total);
        if (a.n_splits == 1) {
            for (int j = 0; j < WIDE; j++) store(a.out, a.out_type, (row + h) * D_HEAD + d + j, sums.at[j] / total);
            continue;
        }
        float *part = a.partial + ((row + h) * a.n_splits + blockIdx.x) * PITCH;
        *(wide *)(part + d) = sums;
        if (!d) {
            part[D_HEAD] = most;
            part[D_HEAD + 1] = total;
        }
    }
    if (a.n_splits == 1) return;

    __threadfence(); // the part is written before it is counted
    __syncthreads();
    if (!threadIdx.x) is_last = atomicAdd(a.arrived + row, 1) == a.n_splits - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    merge_parts(a, row, (n_pieces + share - 1) / share, factors, (wide(*)[PIECES]) & teams[0][0][0]);
    if (!threadIdx.x) a.arrived[row] = 0;
}
