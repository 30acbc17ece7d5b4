// What a token needs outside of products and attention:
//
//   llm_embed    two blocks a token: its row of the embedding; the cosines and sines of its position
//   llm_norm     a block a row: RMSNorm or LayerNorm, to the type that the products take
//   llm_norm_many  blocks that take one row after the other, the next one on its way: RMSNorm of many rows, the same
//                  bits
//   llm_choose   a warp a token: softmax over the experts, the most probable ones and their shares
//   llm_route    the router of one token, with its norm: a block has 8 rows, and a lane the same columns of all of them
//   llm_group    one block: where each expert's rows begin, and which of its rows a pair of token and expert has
//   llm_gather   a block a pair: the token's vector to that row
//   llm_mix      blocks share a token: the sum of what its experts gave, in the order of the choice
//   llm_pick     blocks share the logits, the last one done takes the largest: the next token, for the device and the
//                host, and what it leads by
//
// All positions and ids are read from memory, so that a recorded step serves every token. llm_embed alone is launched
// in plain order: what was before the step is done when anything of it runs, so later ones may read tokens, pages and
// what the cache had at once. Nor does the next one begin before its end: a block of it that found its processor taken
// went beside another one, and so did one of each launch after it.
// Judge: the CPU's steps (models/llm/ops_cpu.c), and through them transformers.
#include "llm_choice.cuh"
#include "llm_types.cuh"
#include "llm_routes.cuh"
#include "moe_group.cuh"

#include "overlap.cuh"

#define EMBEDDED 16 // elements of a row that a thread asks for at once

template <class T>
static __device__ __forceinline__ void embed_row(const wt_llm_embed_args &a, const wt_llm_token &token, long long t)
{
    const long long id = token.id < 0 ? 0 : token.id; // there is no next token after logits that are no numbers
    const long long d = a.d_model;
    const T *row = (const T *)a.embedding + id * d;
    for (int first = threadIdx.x; first < d; first += 256 * EMBEDDED) {
        float x[EMBEDDED];
#pragma unroll
        for (int i = 0; i < EMBEDDED; i++) x[i] = first + 256 * i < d ? widen(row[first + 256 * i]) : 0;
#pragma unroll
        for (int i = 0; i < EMBEDDED; i++) {
            const int k = first + 256 * i;
            if (k >= d) continue;
            if (a.positions) x[i] += load(a.positions, a.positions_type, token.place * d + k);
            a.x[t * d + k] = x[i];
        }
    }
}

static __device__ __forceinline__ void turn_angles(const wt_llm_embed_args &a, const wt_llm_token &token, long long t)
{
    for (int k = threadIdx.x; k < a.half; k += 256) {
        const float angle = (float)token.place * a.frequencies[(long long)token.sequence * a.half + k];
        a.cosines[t * a.half + k] = cosf(angle) * a.rope_scale;
        a.sines[t * a.half + k] = sinf(angle) * a.rope_scale;
    }
}

extern "C" __global__ void __launch_bounds__(256) llm_embed(const __grid_constant__ wt_llm_embed_args a)
{
    const long long t = blockIdx.x;
    const wt_llm_token token = a.tokens[t];
    if (blockIdx.y) {
        turn_angles(a, token, t);
        return;
    }
    if (!threadIdx.x) a.tokens[t].lead = 1;
    if (a.embedding_type == WT_LLM_F32) embed_row<float>(a, token, t);
    if (a.embedding_type == WT_LLM_F16) embed_row<f16>(a, token, t);
    if (a.embedding_type == WT_LLM_BF16) embed_row<bf16>(a, token, t);
}

#define KEPT 8 // times four elements of a row that a thread keeps

static __device__ __forceinline__ float sum4(float4 x) { return (x.x + x.y) + (x.z + x.w); }

// Returns what rounding left.
template <class T> static __device__ __forceinline__ float4 narrow4(float4 x, T *to)
{
    pack<T, 4> y;
    narrow(x.x, &y.at[0]);
    narrow(x.y, &y.at[1]);
    narrow(x.z, &y.at[2]);
    narrow(x.w, &y.at[3]);
    *(pack<T, 4> *)to = y;
    return {x.x - widen(y.at[0]), x.y - widen(y.at[1]), x.z - widen(y.at[2]), x.w - widen(y.at[3])};
}

// And what that leaves, `behind` elements on, if `two`.
template <class T> static __device__ __forceinline__ void narrow_parts4(float4 x, T *to, bool two, long long behind)
{
    const float4 left = narrow4(x, to);
    if (two) narrow4(left, to + behind);
}

// Rows of a multiple of four elements, at most 4 * 256 * KEPT, which are read once; the weights before the row is
// there.
static __device__ void norm_kept(const wt_llm_norm_args &a, float *scratch)
{
    const int n = a.width / 4;
    const float4 *rows = (const float4 *)a.x + (long long)blockIdx.x * n;
    float4 x[KEPT], weights[KEPT];
    float mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int c = threadIdx.x + 256 * i;
        weights[i] = c < n ? ((const float4 *)a.weight)[c] : float4{0, 0, 0, 0};
    }
    wait_for_earlier();
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int c = threadIdx.x + 256 * i;
        x[i] = c < n ? rows[c] : float4{0, 0, 0, 0};
    }
    if (a.bias) {
#pragma unroll
        for (int i = 0; i < KEPT; i++) mean += sum4(x[i]);
        mean = block_sum(mean, scratch) / (float)a.width;
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        if ((int)threadIdx.x + 256 * i >= n) continue;
        x[i] = {x[i].x - mean, x[i].y - mean, x[i].z - mean, x[i].w - mean};
        squares += sum4({x[i].x * x[i].x, x[i].y * x[i].y, x[i].z * x[i].z, x[i].w * x[i].w});
    }
    const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.width + a.eps);
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        const int c = threadIdx.x + 256 * i;
        if (c >= n) continue;
        const float4 bias = a.bias ? ((const float4 *)a.bias)[c] : float4{0, 0, 0, 0}, w = weights[i];
        const float4 y = {x[i].x * scale * w.x + bias.x, x[i].y * scale * w.y + bias.y, x[i].z * scale * w.z + bias.z,
                          x[i].w * scale * w.w + bias.w};
        const long long at = ((long long)blockIdx.x * n + c) * 4, all = (long long)gridDim.x * a.width;
        if (a.type == WT_LLM_F32) ((float4 *)a.out)[at / 4] = y;
        if (a.type == WT_LLM_F16) narrow_parts4(y, (f16 *)a.out + at, a.two_parts, all);
        if (a.type == WT_LLM_BF16) narrow_parts4(y, (bf16 *)a.out + at, a.two_parts, all);
    }
}

extern "C" __global__ void __launch_bounds__(256) llm_norm(const __grid_constant__ wt_llm_norm_args a)
{
    __shared__ float scratch[32];
    let_next_begin();
    if (a.width % 4 == 0 && a.width <= 4 * 256 * KEPT &&
        !(((unsigned long long)a.weight | (unsigned long long)a.bias) % 16)) {
        norm_kept(a, scratch);
        return;
    }
    wait_for_earlier();
    const float *x = a.x + (long long)blockIdx.x * a.width;
    float mean = 0, squares = 0;
    if (a.bias) {
        for (int k = threadIdx.x; k < a.width; k += 256) mean += x[k];
        mean = block_sum(mean, scratch) / (float)a.width;
    }
    for (int k = threadIdx.x; k < a.width; k += 256) squares += (x[k] - mean) * (x[k] - mean);
    const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.width + a.eps);
    for (int k = threadIdx.x; k < a.width; k += 256)
        store_parts(a.out, a.type, (long long)blockIdx.x * a.width + k,
                    (x[k] - mean) * scale * a.weight[k] + (a.bias ? a.bias[k] : 0), a.two_parts,
                    (long long)gridDim.x * a.width);
}

#define KEPT_OF_MANY 4 // times four elements

static __device__ __forceinline__ void load_row(const wt_llm_norm_args &a, int row, float4 *x)
{
#pragma unroll
    for (int i = 0; i < KEPT_OF_MANY; i++) {
        const int c = threadIdx.x + 256 * i;
        x[i] = c < a.width / 4 && row < a.n_rows ? ((const float4 *)a.x)[(long long)row * (a.width / 4) + c]
                                                 : float4{0, 0, 0, 0};
    }
}

// Of rows of a multiple of four elements, at most 4 * 256 * KEPT_OF_MANY, to 16 bits.
extern "C" __global__ void __launch_bounds__(256, 4) llm_norm_many(const __grid_constant__ wt_llm_norm_args a)
{
    __shared__ float scratch[32];
    float4 x[KEPT_OF_MANY], weights[KEPT_OF_MANY];
    let_next_begin();
#pragma unroll
    for (int i = 0; i < KEPT_OF_MANY; i++) {
        const int c = threadIdx.x + 256 * i;
        weights[i] = c < a.width / 4 ? ((const float4 *)a.weight)[c] : float4{0, 0, 0, 0};
    }
    wait_for_earlier();
    load_row(a, blockIdx.x, x);
    for (int row = blockIdx.x; row < a.n_rows; row += gridDim.x) {
        float4 next[KEPT_OF_MANY];
        float squares = 0;
        load_row(a, row + gridDim.x, next);
#pragma unroll
        for (int i = 0; i < KEPT_OF_MANY; i++)
            squares += sum4({x[i].x * x[i].x, x[i].y * x[i].y, x[i].z * x[i].z, x[i].w * x[i].w});
        const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.width + a.eps);
#pragma unroll
        for (int i = 0; i < KEPT_OF_MANY; i++) {
            const int c = threadIdx.x + 256 * i;
            const float4 w = weights[i];
            const float4 y = {x[i].x * scale * w.x, x[i].y * scale * w.y, x[i].z * scale * w.z, x[i].w * scale * w.w};
            const long long at = (long long)row * a.width + 4 * c;
            if (c < a.width / 4 && a.type == WT_LLM_F16) narrow4(y, (f16 *)a.out + at);
            if (c < a.width / 4 && a.type == WT_LLM_BF16) narrow4(y, (bf16 *)a.out + at);
            x[i] = next[i];
        }
    }
}

#define MOST_EXPERTS 1024

extern "C" __global__ void __launch_bounds__(32) llm_choose(const __grid_constant__ wt_llm_choose_args a)
{
    let_next_begin();
    wait_for_earlier();
    const long long t = blockIdx.x;
    const float *routes = a.routes + t * a.n_experts;
    int *chosen = a.chosen + t * a.n_used;
    float *shares = a.shares + t * a.n_used;
    const routed own = a.n_experts <= WT_LLM_ROUTED ? choose<WT_LLM_ROUTED / 32>(a, routes, chosen, shares, true)
                                                    : choose<MOST_EXPERTS / 32>(a, routes, chosen, shares, true);
    if (!threadIdx.x) a.tokens[t].lead = fminf(a.tokens[t].lead, own.lead);
}

#define ROUTER_ROWS    WT_LLM_ROUTE_ROWS
#define ROUTER_COLUMNS 2048 // that a block has at once, 8 a lane

// Eight columns of a row; those beyond are read elsewhere, and not used.
template <class T> static __device__ __forceinline__ pack<T, 8> load_8(const T *row, int column, int width)
{
    return *(const pack<T, 8> *)(row + (column < width ? column : 0));
}

template <class T>
static __device__ __forceinline__ void load_router(const wt_llm_route_args &a, int column, pack<T, 8> *w)
{
    const int first = blockIdx.x * ROUTER_ROWS;
#pragma unroll
    for (int r = 0; r < ROUTER_ROWS; r++)
        w[r] = load_8((const T *)a.router + (long long)min(first + r, a.n_experts - 1) * a.width, column, a.width);
}

// The block's rows of the router times the lane's columns of the vector, and what those have of its squares.
template <class T> static __device__ __forceinline__ void multiply_router(const wt_llm_route_args &a, float *sums)
{
    pack<T, 8> w[ROUTER_ROWS];
    load_router(a, threadIdx.x * 8, w);
    wait_for_earlier();
    for (int column = threadIdx.x * 8; column < a.width; column += ROUTER_COLUMNS) {
        if (column >= ROUTER_COLUMNS) load_router(a, column, w);
        const pack<float, 8> x = load_8(a.x, column, a.width), norm = load_8(a.norm_weight, column, a.width);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            sums[ROUTER_ROWS] += x.at[k] * x.at[k];
#pragma unroll
            for (int r = 0; r < ROUTER_ROWS; r++) sums[r] += widen(w[r].at[k]) * (x.at[k] * norm.at[k]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) llm_route(const __grid_constant__ wt_llm_route_args a)
{
    __shared__ float of_warps[8][ROUTER_ROWS + 1];
    const int n_blocks = (a.n_experts + ROUTER_ROWS - 1) / ROUTER_ROWS; // the others are there to be in the way
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, expert = blockIdx.x * ROUTER_ROWS + lane;
    float sums[ROUTER_ROWS + 1] = {};
    let_next_begin();
    if ((int)blockIdx.x >= n_blocks) {
        wait_for_earlier();
        return;
    }
    if (a.type == WT_LLM_F32) multiply_router<float>(a, sums);
    if (a.type == WT_LLM_F16) multiply_router<f16>(a, sums);
    if (a.type == WT_LLM_BF16) multiply_router<bf16>(a, sums);
#pragma unroll
    for (int r = 0; r <= ROUTER_ROWS; r++) {
        sums[r] = warp_sum(sums[r]);
        if (!lane) of_warps[warp][r] = sums[r];
    }
    __syncthreads();
    if (warp) return;
    float sum = 0, squares = 0;
    for (int k = 0; k < 8; k++) {
        sum += of_warps[k][min(lane, ROUTER_ROWS)];
        squares += of_warps[k][ROUTER_ROWS];
    }
    if (lane < ROUTER_ROWS && expert < a.n_experts)
        a.routes[expert] = sum / sqrtf(squares / (float)a.width + a.eps);
}

extern "C" __global__ void __launch_bounds__(1024) llm_group(const __grid_constant__ wt_llm_mix_args a)
{
    let_next_begin();
    wait_for_earlier();
    __shared__ int begins[1025];
    group_by_expert(a.chosen, a.n_pairs, a.n_experts, begins, a.offsets, a.slots);
}

extern "C" __global__ void __launch_bounds__(256) llm_gather(const __grid_constant__ wt_llm_mix_args a)
{
    let_next_begin();
    wait_for_earlier();
    const long long from = (long long)(blockIdx.x / a.n_used) * a.d_model,
                    to = (long long)a.slots[blockIdx.x] * a.d_model;
    for (int k = threadIdx.x; k < a.d_model; k += 256)
        if (a.type == WT_LLM_F32)
            ((float *)a.grouped)[to + k] = ((const float *)a.n)[from + k];
        else
            ((unsigned short *)a.grouped)[to + k] = ((const unsigned short *)a.n)[from + k];
}

extern "C" __global__ void __launch_bounds__(256) llm_mix(const __grid_constant__ wt_llm_mix_args a)
{
    let_next_begin();
    wait_for_earlier();
    const long long t = blockIdx.x;
    for (int k = blockIdx.y * 256 + threadIdx.x; k < a.d_model; k += gridDim.y * 256) {
        float sum = 0;
        const float before = a.x[t * a.d_model + k];
#pragma unroll 8 // read together
        for (int j = 0; j < a.n_used; j++) {
            const long long pair = t * a.n_used + j, row = a.slots ? a.slots[pair] : pair;
            sum += a.shares[pair] * a.mixed[row * a.d_model + k];
        }
        a.x[t * a.d_model + k] = before + sum;
    }
}

#define LOOKED_AT 10 // logits that a thread asks for at once: of 64 blocks those of a vocabulary of 160k

// The thread's of a row of logits.
static __device__ __forceinline__ standing best_of(const float *logits, int vocab_size)
{
    const float highest = __int_as_float(0x7f800000);
    const int step = (int)gridDim.x * 256;
    standing c = nobody();
    for (int first = blockIdx.x * 256 + threadIdx.x; first < vocab_size; first += LOOKED_AT * step) {
        float x[LOOKED_AT];
#pragma unroll
        for (int i = 0; i < LOOKED_AT; i++) x[i] = first + i * step < vocab_size ? logits[first + i * step] : -highest;
#pragma unroll
        for (int i = 0; i < LOOKED_AT; i++) {
            const int k = first + i * step, id = k < vocab_size ? k : 0x7fffffff;
            c = joined(c, {{x[i], x[i] == x[i] ? id : -1}, -highest, x[i] > -highest ? x[i] : highest});
        }
    }
    return c;
}

extern "C" __global__ void __launch_bounds__(256) llm_pick(const __grid_constant__ wt_llm_pick_args a)
{
    __shared__ standing scratch[8];
    __shared__ int n_before;
    float4 *best = (float4 *)a.best + blockIdx.y * gridDim.x;
    wait_for_earlier();
    standing c = joined_block(best_of(a.logits + (long long)blockIdx.y * a.vocab_size, a.vocab_size), scratch);
    if (!threadIdx.x) {
        best[blockIdx.x] = {c.best.logit, __int_as_float(c.best.id), c.second, c.lowest};
        __threadfence(); // a block's best is written before it is counted
        n_before = atomicAdd(a.arrived + blockIdx.y, 1);
        __threadfence();
    }
    __syncthreads();
    if (n_before != (int)gridDim.x - 1) return;
    c = nobody();
    for (int k = threadIdx.x; k < (int)gridDim.x; k += 256) {
        const float4 of = __ldcg(best + k);
        c = joined(c, {{of.x, __float_as_int(of.y)}, of.z, of.w});
    }
    c = joined_block(c, scratch);
    if (threadIdx.x) return;
    if (c.best.logit == -__int_as_float(0x7f800000)) c.best.id = -1;
    a.arrived[blockIdx.y] = 0;
    const float lead = c.best.logit > c.lowest ? (c.best.logit - c.second) / (c.best.logit - c.lowest) : 0;
    a.tokens[blockIdx.y].lead = fminf(a.tokens[blockIdx.y].lead, lead);
    say_next(a.tokens + blockIdx.y, c.best.id, a.step, a.ring);
}
