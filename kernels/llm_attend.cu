// The cache of keys and values, and attention of few tokens over it.
//
//   llm_place    a warp a head of q, k or v of a token (grid: tokens, groups of heads): norm, RoPE, and into the cache
//   llm_attend   a block a part of the positions, some heads that share a head of keys, and a token (grid: parts, heads,
//                tokens), for steps with llm_place in it: what the cache has is read while q, k and v are on their way
//
// Compiled for a head's size (D_HEAD), the heads that share one of keys and values (GROUP) and the cache's type (KV).
// Judge: the CPU's steps (models/llm/ops_cpu.c, attention.c).
#define PLACE_WARPS    8
#define ATTEND_THREADS 128

#include "llm_attend.cuh"

// ---- into the cache

extern "C" __global__ void __launch_bounds__(32 * PLACE_WARPS) llm_place(const __grid_constant__ wt_llm_place_args a)
{
    __shared__ float heads[PLACE_WARPS][D_HEAD];
    const int t = blockIdx.x, lane = threadIdx.x % 32;
    int h = blockIdx.y * PLACE_WARPS + threadIdx.x / 32;
    let_next_begin();
    wait_for_earlier();
    if (h >= a.n_heads + 2 * a.n_kv_heads) return; // the whole warp
    float *head = heads[threadIdx.x / 32];
    if (h < a.n_heads) {
        float *q = a.q + ((long long)t * a.n_heads + h) * D_HEAD;
        turn_head(a.turn, t, q, a.turn.q_norm, head);
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
        turn_head(a.turn, t, from, a.turn.k_norm, head);
        from = head;
    }
    for (int d = lane; d < D_HEAD; d += 32) narrow(from[d], to + d);
}

// ---- attention

static constexpr int BLOCKS = HEADS * PER * N <= 32 ? 4 : 2; // half of a processor's registers at two blocks

extern "C" __global__ void __launch_bounds__(ATTEND_THREADS, BLOCKS) llm_attend(const __grid_constant__ wt_llm_attend_args a)
{
    __shared__ attend_memory m;
    let_next_begin();
    if (!a.k) wait_for_earlier(); // else only q, k and v come from kernels of this step that may still run
    const int t = blockIdx.z;
    const attend_part part = attend_part_of(a, a.tokens[t], t, blockIdx.y * HEADS, blockIdx.x, a.n_splits);
    positions p;
    load_first(a, part, &p);
    ask_for_part(a, part, part.from + PIECE);
    if (a.k) {
        wait_for_earlier();
        turn_and_place(a, part, m);
    } else {
        for (int i = threadIdx.x; i < HEADS * D_HEAD; i += ATTEND_THREADS)
            m.heads[i / D_HEAD][i % D_HEAD] = a.q[((long long)t * a.n_heads + part.head) * D_HEAD + i];
    }
    __syncthreads();
    take_part(a, part, p, m);
    __syncthreads();
    finish_part(a, part, m);
}
