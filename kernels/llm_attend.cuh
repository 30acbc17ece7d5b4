// Attention of few tokens over the cache, launched by itself (llm_attend.cu) or in a step's one kernel (llm_step.cu). A
// block takes a part of the positions for some heads that share a head of keys. A row of keys or values is read once for
// all those heads by a team of lanes, 16 bytes each; the block's teams take positions side by side and keep their own
// maximum, total and sum. The teams of a block are added in order, and the parts by the block that is done last, in
// order too.
//
// ATTEND_THREADS: of a block.
#include "llm_cache.cuh"

#include "overlap.cuh"

#ifndef UNROLL
#    define UNROLL 4 // positions of a team that are read at once
#endif
#define MAX_PARTS WT_LLM_MAX_PARTS

// ---- a head's norm and RoPE

#define OF_LANE ((D_HEAD + 31) / 32) // elements of a head that a lane has: lane, lane + 32 ..

// The head at `x` to shared memory, normalised and turned, by a warp.
static __device__ void turn_head(const wt_llm_turn_args &a, int t, const float *x, const float *norm, float *head)
{
    const int lane = threadIdx.x % 32, half = a.n_dims / 2, step = a.interleaved ? 2 : 1;
    const int apart = a.interleaved ? 1 : half;
    float values[OF_LANE], weights[OF_LANE], cosines[OF_LANE], sines[OF_LANE], squares = 0;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) { // all that is read, at once
        const int d = lane + 32 * i;
        values[i] = d < D_HEAD ? x[d] : 0;
        weights[i] = norm && d < D_HEAD ? norm[d] : 1;
        cosines[i] = d < half ? a.cosines[(long long)t * half + d] : 1;
        sines[i] = d < half ? a.sines[(long long)t * half + d] : 0;
        squares += values[i] * values[i];
    }
    const float scale = norm ? 1 / sqrtf(warp_sum(squares) / (float)D_HEAD + a.eps) : 1;
#pragma unroll
    for (int i = 0; i < OF_LANE; i++)
        if (lane + 32 * i < D_HEAD) head[lane + 32 * i] = values[i] * (scale * weights[i]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < OF_LANE; i++) {
        const int k = lane + 32 * i;
        if (k >= half) continue;
        const float p = head[k * step], q = head[k * step + apart];
        head[k * step] = p * cosines[i] - q * sines[i];
        head[k * step + apart] = q * cosines[i] + p * sines[i];
    }
    __syncwarp();
}

// ---- attention

static constexpr int heads_at_once(int n) // the largest divisor of the group up to 8
{
    return GROUP % n ? heads_at_once(n - 1) : n;
}

static constexpr int N = WT_LLM_ATTEND_WIDTH(D_HEAD, KV); // elements a lane reads at once, 16 bytes or 8 of fp8
static constexpr int CHUNKS = D_HEAD / N;
static constexpr int TEAM = WT_LLM_ATTEND_TEAM(D_HEAD, KV); // lanes of a position
static constexpr int TEAMS = ATTEND_THREADS / TEAM;
static constexpr int PER = (CHUNKS + TEAM - 1) / TEAM; // chunks of a lane
static constexpr int HEADS = heads_at_once(GROUP < 8 ? GROUP : 8);
static constexpr int PIECE = TEAMS * UNROLL < WT_LLM_PAGE ? TEAMS * UNROLL : WT_LLM_PAGE; // positions taken at once
static constexpr int PITCH = WT_LLM_PART_PITCH(D_HEAD);
static constexpr int WIDE = D_HEAD % 4 ? 1 : 4; // elements of a part that are read at once
static constexpr int EACH = (HEADS * D_HEAD / WIDE + ATTEND_THREADS - 1) / ATTEND_THREADS;
typedef pack<kv_type, N> chunk;

// What a block has in shared memory: see wt_llm_attend_shared.
struct attend_memory {
    alignas(16) kv_type own[2][D_HEAD]; // k and v of the token's own position
    float heads[HEADS + 1][D_HEAD];     // of q, and k
    float factors[HEADS][MAX_PARTS];
    float teams[HEADS][TEAMS][D_HEAD + 2], fades[HEADS][TEAMS], most[HEADS];
    int is_last;
};

struct running {
    float most[HEADS], total[HEADS], sum[HEADS][PER * N];
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

static __device__ __forceinline__ void take_positions(const positions &p, const float (*heads)[D_HEAD], float scale,
                                                      running *r)
{
    const int lane = threadIdx.x % TEAM;
    float scores[HEADS][UNROLL];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float q[PER * N]; // from shared memory, so that a block of the next launch finds registers
#pragma unroll
        for (int k = 0; k < PER * N; k++) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            q[k] = d < D_HEAD ? heads[h][d] : 0;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const bool is_there = u < p.n;
            float dot = 0;
#pragma unroll
            for (int i = 0; i < PER; i++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (is_there && i * TEAM + lane < CHUNKS) dot += q[i * N + k] * widen(p.keys[u][i].at[k]);
            for (int step = TEAM / 2; step; step /= 2) dot += __shfl_xor_sync(ALL, dot, step);
            scores[h][u] = is_there ? dot * scale : NOTHING;
        }
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float most = r->most[h];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) most = fmaxf(most, scores[h][u]);
        const float fade = r->most[h] == NOTHING ? 0 : expf(r->most[h] - most);
        r->most[h] = most;
        r->total[h] *= fade;
#pragma unroll
        for (int k = 0; k < PER * N; k++) r->sum[h][k] *= fade;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (u >= p.n) continue;
            const float share = expf(scores[h][u] - most);
            r->total[h] += share;
#pragma unroll
            for (int i = 0; i < PER; i++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (i * TEAM + lane < CHUNKS) r->sum[h][i * N + k] += share * widen(p.values[u][i].at[k]);
        }
    }
}

// What the sums of each team are multiplied with under their head's maximum. A team without a position has zeros.
static __device__ __forceinline__ void fade_teams(attend_memory &m)
{
    for (int i = threadIdx.x; i < HEADS * TEAMS; i += ATTEND_THREADS) {
        const int h = i / TEAMS, team = i % TEAMS;
        float most = NOTHING;
        for (int k = 0; k < TEAMS; k++) most = fmaxf(most, m.teams[h][k][D_HEAD]);
        m.fades[h][team] = expf(m.teams[h][team][D_HEAD] - most);
        if (!team) m.most[h] = most;
    }
}

// Element d of a head's sum, d = D_HEAD + 1 for its total.
static __device__ __forceinline__ float merge(const attend_memory &m, int h, int d)
{
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < TEAMS; k++) sum += m.fades[h][k] * m.teams[h][k][d];
    return sum;
}

// The parts of this block's heads, from `row` on. First a warp finds a head's factors, then threads add the sums, some of
// them in flight at once.
static __device__ void merge_parts(const wt_llm_attend_args &a, long long row, int n, int n_splits, float (*factors)[MAX_PARTS])
{
    const int lane = threadIdx.x % 32;
    for (int h = threadIdx.x / 32; h < HEADS; h += ATTEND_THREADS / 32) {
        const float *parts = a.partial + (row + h) * n_splits * PITCH + D_HEAD;
        float most = NOTHING, total = 0;
        for (int k = lane; k < n; k += 32) most = fmaxf(most, parts[k * PITCH]);
        for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
        for (int k = lane; k < n; k += 32) {
            const float fade = expf(parts[k * PITCH] - most);
            factors[h][k] = fade;
            total += fade * parts[k * PITCH + 1];
        }
        total = warp_sum(total);
        for (int k = lane; k < n; k += 32) factors[h][k] /= total;
    }
    sync_workers();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = (e * ATTEND_THREADS + (int)threadIdx.x) * WIDE, h = i / D_HEAD;
        if (i >= HEADS * D_HEAD) continue;
        const float *parts = a.partial + (row + h) * n_splits * PITCH + i % D_HEAD;
        float sums[WIDE] = {};
#pragma unroll 8
        for (int k = 0; k < n; k++) {
            const pack<float, WIDE> part = *(const pack<float, WIDE> *)(parts + k * PITCH);
#pragma unroll
            for (int j = 0; j < WIDE; j++) sums[j] += factors[h][k] * part.at[j];
        }
        for (int j = 0; j < WIDE; j++) store(a.out, a.out_type, row * D_HEAD + i + j, sums[j]);
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

// ---- a block's part

struct attend_part {
    wt_llm_token token;
    int t, head, split, n_splits; // the first head of HEADS
    int from, to_old;             // positions from .. to_old - 1 are in the cache
    bool has_own;                 // and the token's own position comes after them
    int n_used;                   // parts that have positions
};

static __device__ __forceinline__ attend_part attend_part_of(const wt_llm_attend_args &a, const wt_llm_token &token, int t,
                                                            int head, int split, int n_splits)
{
    const int begin = a.window && token.place >= a.window ? token.place - a.window + 1 : 0, end = token.place + 1;
    // in pieces of a share of a page
    const int first_piece = begin / PIECE, n_pieces = token.place / PIECE - first_piece + 1;
    const int share = (n_pieces + n_splits - 1) / n_splits;
    const int from = max(begin, (first_piece + split * share) * PIECE);
    const int to = min(end, (first_piece + (split + 1) * share) * PIECE);
    const bool has_own = a.k && to == end && from < to;
    return {token, t, head, split, n_splits, from, has_own ? to - 1 : to, has_own, (n_pieces + share - 1) / share};
}

// What the cache has of the part, from position `first` on, to the L2 cache.
static __device__ __forceinline__ void ask_for_part(const wt_llm_attend_args &a, const attend_part &part, int first)
{
    if (threadIdx.x != 0 && threadIdx.x != 64) return; // one for keys and one for values
    for (int j = first / PIECE * PIECE; j < part.to_old; j += PIECE)
        ask_for((const kv_type *)(threadIdx.x ? a.cache.values : a.cache.keys) +
                    cache_at(a.cache, part.token.sequence, j, part.head / GROUP),
                PIECE * D_HEAD * sizeof(kv_type));
}

// The first positions of each team.
static __device__ __forceinline__ void load_first(const wt_llm_attend_args &a, const attend_part &part, positions *p)
{
    load_positions(a, part.token.sequence, part.head / GROUP, part.from + threadIdx.x / TEAM, part.to_old, p);
}

// The block's heads of q turned, and in the block of the token's own position k, turned, and v: to shared memory in the
// cache's type and, by the first heads that share them, to the cache.
static __device__ void turn_and_place(const wt_llm_attend_args &a, const attend_part &part,
                                      attend_memory &m)
{
    const int lane = threadIdx.x % 32, kv_head = part.head / GROUP;
    for (int i = threadIdx.x / 32; i < HEADS + (part.has_own ? 2 : 0); i += ATTEND_THREADS / 32) {
        if (i < HEADS) {
            turn_head(a.turn, part.t, a.q + ((long long)part.t * a.n_heads + part.head + i) * D_HEAD, a.turn.q_norm, m.heads[i]);
            continue;
        }
        const bool is_v = i > HEADS;
        const float *from = (is_v ? a.v : a.k) + ((long long)part.t * a.n_kv_heads + kv_head) * D_HEAD;
        if (!is_v) {
            turn_head(a.turn, part.t, from, a.turn.k_norm, m.heads[HEADS]);
            from = m.heads[HEADS];
        }
        kv_type *to = (kv_type *)(is_v ? a.cache.values : a.cache.keys) +
                      cache_at(a.cache, part.token.sequence, part.token.place, kv_head);
        for (int d = lane; d < D_HEAD; d += 32) {
            narrow(from[d], &m.own[is_v][d]);
            if (part.head % GROUP == 0) to[d] = m.own[is_v][d];
        }
    }
}

// All positions of the part, with the block's heads of q in shared memory.
static __device__ __forceinline__ void take_part(const wt_llm_attend_args &a, const attend_part &part,
                                                 positions &p, attend_memory &m)
{
    const int lane = threadIdx.x % TEAM, team = threadIdx.x / TEAM, kv_head = part.head / GROUP;
    running r;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        r.most[h] = NOTHING;
        r.total[h] = 0;
#pragma unroll
        for (int k = 0; k < PER * N; k++) r.sum[h][k] = 0;
    }
    for (int j = part.from; j < part.to_old; j += TEAMS * UNROLL) {
        take_positions(p, m.heads, a.scale, &r);
        load_positions(a, part.token.sequence, kv_head, j + TEAMS * UNROLL + team, part.to_old, &p);
    }
    if (part.has_own) {
        load_own(m.own, &p);
        take_positions(p, m.heads, a.scale, &r);
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
#pragma unroll
        for (int k = 0; k < PER * N; k++) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            if (d < D_HEAD) m.teams[h][team][d] = r.sum[h][k];
        }
        if (!lane) {
            m.teams[h][team][D_HEAD] = r.most[h];
            m.teams[h][team][D_HEAD + 1] = r.total[h];
        }
    }
}

// The block's teams together: to the result, or to its part of it, and by the block that is done last to the result.
static __device__ __forceinline__ void finish_part(const wt_llm_attend_args &a, const attend_part &part,
                                                   attend_memory &m)
{
    const long long row = (long long)part.t * a.n_heads + part.head;
    fade_teams(m);
    sync_workers();
    for (int i = threadIdx.x; i < HEADS * D_HEAD; i += ATTEND_THREADS) {
        const int h = i / D_HEAD, d = i % D_HEAD;
        const float sum = merge(m, h, d);
        if (part.n_splits == 1) {
            store(a.out, a.out_type, (row + h) * D_HEAD + d, sum / merge(m, h, D_HEAD + 1));
            continue;
        }
        float *to = a.partial + ((row + h) * part.n_splits + part.split) * PITCH;
        to[d] = sum;
        if (!d) {
            to[D_HEAD] = m.most[h];
            to[D_HEAD + 1] = merge(m, h, D_HEAD + 1);
        }
    }
    if (part.n_splits == 1) return;

    sync_workers(); // the part is written before one thread, for all, says so and sees what others wrote
    if (!threadIdx.x) {
        __threadfence();
        m.is_last = atomicAdd(a.arrived + row, 1) == part.n_splits - 1;
        __threadfence();
    }
    sync_workers();
    if (!m.is_last) return;
    merge_parts(a, row, part.n_used, part.n_splits, m.factors);
    if (!threadIdx.x) a.arrived[row] = 0;
}
