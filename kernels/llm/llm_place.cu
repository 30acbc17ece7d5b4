// Before attention: norm and RoPE of q and k, and keys and values into the cache. A warp takes a head of a token, and
// then others of the same token (grid: tokens, warps of a token); a lane keeps what all heads have of the place and of
// the norms. Bound by reading and writing. Compiled as llm_attend.cu is. Judge: the CPU's steps (models/llm/ops_cpu.c).
#include "llm_tile.cuh"

#include "overlap.cuh"

#define WARPS   WT_LLM_PLACE_WARPS
#define AT_ONCE 2 // heads that are used while others are on their way

static constexpr int widest(int n) { return D_HEAD % n ? widest(n / 2) : n; }
static constexpr int WIDE = widest(4);                   // elements that a lane has together
static constexpr int PIECES = (D_HEAD / WIDE + 31) / 32; // of a lane
typedef pack<float, WIDE> piece;

static __device__ __forceinline__ int first_of(int i) { return (threadIdx.x % 32 + 32 * i) * WIDE; }

// What a lane multiplies its elements and those that turn with them by.
struct turning {
    piece cosines[PIECES], sines[PIECES], q_norm[PIECES], k_norm[PIECES];
};

// The element that turns with d.
static __device__ __forceinline__ int other_of(const wt_llm_turn_args &a, int d)
{
    const int half = a.n_dims / 2;
    return a.interleaved ? d ^ 1 : d < half ? d + half : d - half;
}

static __device__ __forceinline__ turning load_turning(const wt_llm_turn_args &a, int t)
{
    const int half = a.n_dims / 2;
    turning own;
#pragma unroll
    for (int i = 0; i < PIECES; i++)
#pragma unroll
        for (int k = 0; k < WIDE; k++) {
            const int d = first_of(i) + k, at = a.interleaved ? d / 2 : d < half ? d : d - half;
            const bool turns = d < a.n_dims;
            own.cosines[i].at[k] = turns ? a.cosines[(long long)t * half + at] : 1;
            own.sines[i].at[k] = !turns               ? 0
                                 : d < other_of(a, d) ? -a.sines[(long long)t * half + at]
                                                      : a.sines[(long long)t * half + at];
            own.q_norm[i].at[k] = a.q_norm && d < D_HEAD ? a.q_norm[d] : 1;
            own.k_norm[i].at[k] = a.k_norm && d < D_HEAD ? a.k_norm[d] : 1;
        }
    return own;
}

// Normalised with `norm` unless `has_norm` is false, and turned, by way of `head`.
static __device__ __forceinline__ void turn(const wt_llm_turn_args &a, const turning &own, bool has_norm,
                                            const piece *norm, piece *x, float *head)
{
    float squares = 0;
#pragma unroll
    for (int i = 0; i < PIECES; i++)
#pragma unroll
        for (int k = 0; k < WIDE; k++) squares += x[i].at[k] * x[i].at[k];
    const float scale = has_norm ? 1 / sqrtf(warp_sum(squares) / (float)D_HEAD + a.eps) : 1;
    __syncwarp(); // the head before was read
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
#pragma unroll
        for (int k = 0; k < WIDE; k++) x[i].at[k] *= scale * norm[i].at[k];
        if (first_of(i) < D_HEAD) *(piece *)(head + first_of(i)) = x[i];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < PIECES; i++)
#pragma unroll
        for (int k = 0; k < WIDE; k++) {
            const int d = first_of(i) + k;
            if (d < a.n_dims)
                x[i].at[k] = x[i].at[k] * own.cosines[i].at[k] + head[other_of(a, d)] * own.sines[i].at[k];
        }
}

template <class T> static __device__ __forceinline__ void put(const piece *x, T *to)
{
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        pack<T, WIDE> narrowed;
#pragma unroll
        for (int k = 0; k < WIDE; k++) narrow(x[i].at[k], &narrowed.at[k]);
        if (first_of(i) < D_HEAD) *(pack<T, WIDE> *)(to + first_of(i)) = narrowed;
    }
}

// Head h of q, then of k, then of v.
static __device__ __forceinline__ float *head_of(const wt_llm_place_args &a, int t, int h)
{
    if (h < a.n_heads) return a.q + ((long long)t * a.n_heads + h) * D_HEAD;
    h -= a.n_heads;
    return (float *)(h < a.n_kv_heads ? a.k : a.v) + ((long long)t * a.n_kv_heads + h % a.n_kv_heads) * D_HEAD;
}

static __device__ __forceinline__ void place_head(const wt_llm_place_args &a, const turning &own,
                                                  const wt_llm_token &token, int t, int h, piece *x, float *head)
{
    if (h < a.n_heads) {
        turn(a.turn, own, a.turn.q_norm, own.q_norm, x, head);
        if (a.narrow_q)
            put(x, (tile_type *)head_of(a, t, h));
        else
            put(x, head_of(a, t, h));
        return;
    }
    const int kv_head = (h - a.n_heads) % a.n_kv_heads;
    const bool is_k = h - a.n_heads < a.n_kv_heads;
    if (is_k) turn(a.turn, own, a.turn.k_norm, own.k_norm, x, head);
    put(x, (kv_type *)(is_k ? a.cache.keys : a.cache.values) + cache_at(a.cache, token.sequence, token.place, kv_head));
}

static __device__ __forceinline__ void load_heads(const wt_llm_place_args &a, int t, int h, int step,
                                                  piece (*x)[PIECES])
{
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            const bool is_there = h + u * step < a.n_heads + 2 * a.n_kv_heads && first_of(i) < D_HEAD;
            x[u][i] = is_there ? *(const piece *)(head_of(a, t, h + u * step) + first_of(i)) : piece{};
        }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) llm_place(const __grid_constant__ wt_llm_place_args a)
{
    __shared__ __align__(16) float heads[WARPS][(D_HEAD + 3) / 4 * 4];
    const int t = blockIdx.x, step = gridDim.y * WARPS, n = a.n_heads + 2 * a.n_kv_heads;
    const int first = blockIdx.y * WARPS + threadIdx.x / 32;
    piece x[AT_ONCE][PIECES], next[AT_ONCE][PIECES];
    let_next_begin();
    wait_for_earlier();
    load_heads(a, t, first, step, x);
    const wt_llm_token token = a.tokens[t];
    const turning own = load_turning(a.turn, t);
    for (int h = first; h < n; h += AT_ONCE * step) { // the whole warp
        load_heads(a, t, h + AT_ONCE * step, step, next);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (h + u * step < n) place_head(a, own, token, t, h + u * step, x[u], heads[threadIdx.x / 32]);
#pragma unroll
            for (int i = 0; i < PIECES; i++) x[u][i] = next[u][i];
        }
    }
}
