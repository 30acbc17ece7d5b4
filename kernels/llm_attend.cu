// The cache of keys and values, and attention of few tokens over it.
//
//   llm_place    a warp a head of q, k or v of a token (grid: tokens, groups of heads): norm, RoPE, and into the cache
//   llm_attend   a block a part of the positions, some heads that share a head of keys, and a token (grid: parts, heads,
//                tokens). A row of keys or values is read once for all those heads by a team of lanes, 16 bytes each;
//                the block's teams take positions side by side and keep their own maximum, total and sum. The teams of a
//                block are added in order, and the parts by the block that is done last, in order too.
//
// Compiled for a head's size (D_HEAD), the heads that share one of keys and values (GROUP) and the cache's type (KV).
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#include "llm_cache.cuh"

#define PLACE_WARPS 8
#define THREADS     128
#define UNROLL      4
#define MAX_PARTS   WT_LLM_MAX_PARTS

// ---- into the cache

// The head at `x` to shared memory, normalised and turned.
static __device__ void prepare_head(const wt_llm_place_args &a, int t, const float *x, const float *norm, float *head)
{
    const int lane = threadIdx.x % 32, half = a.n_dims / 2, step = a.interleaved ? 2 : 1;
    const int apart = a.interleaved ? 1 : half;
    float squares = 0;
    for (int d = lane; d < D_HEAD; d += 32) {
        head[d] = x[d];
        squares += x[d] * x[d];
    }
    if (norm) {
        const float scale = 1 / sqrtf(warp_sum(squares) / (float)D_HEAD + a.eps);
        for (int d = lane; d < D_HEAD; d += 32) head[d] *= scale * norm[d];
    }
    __syncwarp();
    for (int k = lane; k < half; k += 32) {
        const float c = a.cosines[(long long)t * half + k], s = a.sines[(long long)t * half + k];
        const float p = head[k * step], q = head[k * step + apart];
        head[k * step] = p * c - q * s;
        head[k * step + apart] = q * c + p * s;
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(32 * PLACE_WARPS) llm_place(const __grid_constant__ wt_llm_place_args a)
{
    __shared__ float heads[PLACE_WARPS][D_HEAD];
    const int t = blockIdx.x, lane = threadIdx.x % 32;
    int h = blockIdx.y * PLACE_WARPS + threadIdx.x / 32;
    if (h >= a.n_heads + 2 * a.n_kv_heads) return; // the whole warp
    float *head = heads[threadIdx.x / 32];
    if (h < a.n_heads) {
        float *q = a.q + ((long long)t * a.n_heads + h) * D_HEAD;
        prepare_head(a, t, q, a.q_norm, head);
        for (int d = lane; d < D_HEAD; d += 32) q[d] = head[d];
        return;
    }
    h -= a.n_heads;
    const bool is_k = h < a.n_kv_heads;
    if (!is_k) h -= a.n_kv_heads;
    const wt_llm_token token = a.tokens[t];
    const float *from = (is_k ? a.k : a.v) + ((long long)t * a.n_kv_heads + h) * D_HEAD;
    kv_type *to = (kv_type *)(is_k ? a.cache.keys : a.cache.values) + cache_at(a.cache, token.sequence, token.place, h);
    if (is_k) {
        prepare_head(a, t, from, a.k_norm, head);
        from = head;
    }
    for (int d = lane; d < D_HEAD; d += 32) narrow(from[d], to + d);
}

// ---- attention

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

static constexpr int N = widest(16 / (int)sizeof(kv_type)); // elements a lane reads at once
static constexpr int CHUNKS = D_HEAD / N;
static constexpr int TEAM = lanes_for(CHUNKS);              // lanes of a position
static constexpr int TEAMS = THREADS / TEAM;
static constexpr int PER = (CHUNKS + TEAM - 1) / TEAM;      // chunks of a lane
static constexpr int HEADS = heads_at_once(GROUP < 8 ? GROUP : 8);
static constexpr int EACH = (HEADS * D_HEAD + THREADS - 1) / THREADS; // elements of a thread
typedef pack<kv_type, N> chunk;

struct running {
    float most[HEADS], total[HEADS], sum[HEADS][PER * N];
};

// UNROLL positions of a team: first + u * TEAMS.
static __device__ __forceinline__ void take_positions(const wt_llm_attend_args &a, const float (*q)[PER * N], int sequence,
                                                      int kv_head, int first, int end, running *r)
{
    const int lane = threadIdx.x % TEAM;
    chunk keys[UNROLL][PER], values[UNROLL][PER];
    float scores[HEADS][UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int j = first + u * TEAMS;
        if (j >= end) continue;
        const long long at = cache_at(a.cache, sequence, j, kv_head);
#pragma unroll
        for (int p = 0; p < PER; p++)
            if (p * TEAM + lane < CHUNKS) {
                keys[u][p] = ((const chunk *)((const kv_type *)a.cache.keys + at))[p * TEAM + lane];
                values[u][p] = ((const chunk *)((const kv_type *)a.cache.values + at))[p * TEAM + lane];
            }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const bool is_there = first + u * TEAMS < end;
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float dot = 0;
#pragma unroll
            for (int p = 0; p < PER; p++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (is_there && p * TEAM + lane < CHUNKS) dot += q[h][p * N + k] * widen(keys[u][p].at[k]);
            for (int step = TEAM / 2; step; step /= 2) dot += __shfl_xor_sync(ALL, dot, step);
            scores[h][u] = is_there ? dot : NOTHING;
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
            if (first + u * TEAMS >= end) continue;
            const float share = expf(scores[h][u] - most);
            r->total[h] += share;
#pragma unroll
            for (int p = 0; p < PER; p++)
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (p * TEAM + lane < CHUNKS) r->sum[h][p * N + k] += share * widen(values[u][p].at[k]);
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
        const float *parts = a.partial + (row + h) * a.n_splits * (D_HEAD + 2) + D_HEAD;
        float most = NOTHING, total = 0;
        for (int k = lane; k < n; k += 32) most = fmaxf(most, parts[k * (D_HEAD + 2)]);
        for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
        for (int k = lane; k < n; k += 32) {
            const float fade = expf(parts[k * (D_HEAD + 2)] - most);
            factors[h][k] = fade;
            total += fade * parts[k * (D_HEAD + 2) + 1];
        }
        total = warp_sum(total);
        for (int k = lane; k < n; k += 32) factors[h][k] /= total;
    }
    __syncthreads();
    float sums[EACH] = {};
#pragma unroll 4
    for (int k = 0; k < n; k++)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int i = e * THREADS + threadIdx.x, h = i / D_HEAD;
            if (i < HEADS * D_HEAD)
                sums[e] += factors[h][k] * a.partial[((row + h) * a.n_splits + k) * (D_HEAD + 2) + i % D_HEAD];
        }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = e * THREADS + threadIdx.x;
        if (i < HEADS * D_HEAD) store(a.out, a.out_type, row * D_HEAD + i, sums[e]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) llm_attend(const __grid_constant__ wt_llm_attend_args a)
{
    __shared__ float teams[HEADS][TEAMS][D_HEAD + 2];
    __shared__ float factors[HEADS][MAX_PARTS];
    __shared__ int is_last;
    const int t = blockIdx.z, head = blockIdx.y * HEADS, kv_head = head / GROUP, lane = threadIdx.x % TEAM;
    const int team = threadIdx.x / TEAM;
    const wt_llm_token token = a.tokens[t];
    const int begin = a.window && token.place >= a.window ? token.place - a.window + 1 : 0, end = token.place + 1;
    // this block's part: whole pages
    const int first_page = begin / WT_LLM_PAGE, n_pages = token.place / WT_LLM_PAGE - first_page + 1;
    const int share = (n_pages + a.n_splits - 1) / a.n_splits;
    const int from = max(begin, (first_page + (int)blockIdx.x * share) * WT_LLM_PAGE);
    const int to = min(end, (first_page + ((int)blockIdx.x + 1) * share) * WT_LLM_PAGE);

    float q[HEADS][PER * N];
    running r;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        r.most[h] = NOTHING;
        r.total[h] = 0;
#pragma unroll
        for (int k = 0; k < PER * N; k++) {
            const int d = (k / N * TEAM + lane) * N + k % N;
            q[h][k] = d < D_HEAD ? a.q[((long long)t * a.n_heads + head + h) * D_HEAD + d] * a.scale : 0;
            r.sum[h][k] = 0;
        }
    }
    for (int j = from; j < to; j += TEAMS * UNROLL)
        take_positions(a, q, token.sequence, kv_head, j + team, to, &r);
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
        float *part = a.partial + ((row + h) * a.n_splits + blockIdx.x) * (D_HEAD + 2);
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
    merge_parts(a, row, (n_pages + share - 1) / share, factors);
    if (!threadIdx.x) a.arrived[row] = 0;
}
