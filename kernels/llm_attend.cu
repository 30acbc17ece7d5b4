// Attention of few tokens over the cache of keys and values.
//
//   llm_attend   a block a part of the positions, some heads that share a head of keys, and a token (grid: parts, heads,
//                tokens), for steps with llm_place in it: what the cache has is read while q, k and v are on their way. A row of keys or values is read once for all those heads by a team of lanes, 16 bytes each;
//                the block's teams take positions side by side and keep their own maximum, total and sum. The teams of a
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
static constexpr int EACH = (HEADS * D_HEAD / WIDE + THREADS - 1) / THREADS;
typedef pack<kv_type, N> chunk;

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

// The teams of a head, each [D_HEAD] sums, their maximum, their total: element d of the sum under the common maximum. A
// team without a position has zeros.
static __device__ __forceinline__ float merge(const float (*teams)[D_HEAD + 2], int d, float *most, float *total)
{
    float sum = 0;
    *most = NOTHING;
    *total = 0;
    for (int k = 0; k < TEAMS; k++) *most = fmaxf(*most, teams[k][D_HEAD]);
    for (int k = 0; k < TEAMS; k++) {
        const float fade = expf(teams[k][D_HEAD] - *most);
        *total += fade * teams[k][D_HEAD + 1];
        sum += fade * teams[k][d];
    }
    return sum;
}

// The parts of this block's heads, from `row` on. First a warp finds a head's factors, then threads add the sums, some of
// them in flight at once.
static __device__ void merge_parts(const wt_llm_attend_args &a, long long row, int n, float (*factors)[MAX_PARTS])
{
    const int lane = threadIdx.x % 32;
    for (int h = threadIdx.x / 32; h < HEADS; h += THREADS / 32) {
        const float *parts = a.partial + (row + h) * a.n_splits * PITCH + D_HEAD;
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
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = (e * THREADS + (int)threadIdx.x) * WIDE, h = i / D_HEAD;
        if (i >= HEADS * D_HEAD) continue;
        const float *parts = a.partial + (row + h) * a.n_splits * PITCH + i % D_HEAD;
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

// The block's heads of q turned, and in the block of the token's own position k, turned, and v: to shared memory in the
// cache's type and, by the first heads that share them, to the cache.
static __device__ void turn_and_place(const wt_llm_attend_args &a, int t, int head, const wt_llm_token &token, bool has_own,
                                      float (*heads)[D_HEAD], kv_type (*own)[D_HEAD])
{
    const int lane = threadIdx.x % 32, kv_head = head / GROUP;
    for (int i = threadIdx.x / 32; i < HEADS + (has_own ? 2 : 0); i += THREADS / 32) {
        if (i < HEADS) {
            turn_head(a.turn, t, a.q + ((long long)t * a.n_heads + head + i) * D_HEAD, a.turn.q_norm, heads[i]);
            continue;
        }
        const bool is_v = i > HEADS;
        const float *from = (is_v ? a.v : a.k) + ((long long)t * a.n_kv_heads + kv_head) * D_HEAD;
        if (!is_v) {
            turn_head(a.turn, t, from, a.turn.k_norm, heads[HEADS]);
            from = heads[HEADS];
        }
        kv_type *to = (kv_type *)(is_v ? a.cache.values : a.cache.keys) +
                      cache_at(a.cache, token.sequence, token.place, kv_head);
        for (int d = lane; d < D_HEAD; d += 32) {
            narrow(from[d], &own[is_v][d]);
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
    __shared__ float teams[HEADS][TEAMS][D_HEAD + 2];
    __shared__ float factors[HEADS][MAX_PARTS], heads[HEADS + 1][D_HEAD];
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
    running r;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        r.most[h] = NOTHING;
        r.total[h] = 0;
#pragma unroll
        for (int k = 0; k < PER * N; k++) r.sum[h][k] = 0;
    }
    for (int j = from; j < to_old; j += TEAMS * UNROLL) {
        take_positions(p, heads, a.scale, &r);
        load_positions(a, token.sequence, kv_head, j + TEAMS * UNROLL + team, to_old, &p);
    }
    if (has_own) {
        load_own(own, &p);
        take_positions(p, heads, a.scale, &r);
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
#pragma unroll
        for (int k = 0; k < PER * N; k++) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            if (d < D_HEAD) teams[h][team][d] = r.sum[h][k];
        }
        if (!lane) {
            teams[h][team][D_HEAD] = r.most[h];
            teams[h][team][D_HEAD + 1] = r.total[h];
        }
    }
    __syncthreads();

    const long long row = (long long)t * a.n_heads + head;
    for (int i = threadIdx.x; i < HEADS * D_HEAD; i += THREADS) {
        const int h = i / D_HEAD, d = i % D_HEAD;
        float most, total, sum = merge(teams[h], d, &most, &total);
        if (a.n_splits == 1) {
            store(a.out, a.out_type, (row + h) * D_HEAD + d, sum / total);
            continue;
        }
        float *part = a.partial + ((row + h) * a.n_splits + blockIdx.x) * PITCH;
        part[d] = sum;
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
    merge_parts(a, row, (n_pieces + share - 1) / share, factors);
    if (!threadIdx.x) a.arrived[row] = 0;
}
