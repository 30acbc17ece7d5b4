// What a token needs outside of products and attention:
//
//   llm_embed    a block a token: its row of the embedding, and the cosines and sines of its position
//   llm_norm     a block a row: RMSNorm or LayerNorm, to the type that the products take
//   llm_choose   a warp a token: softmax over the experts, the most probable ones and their shares
//
// All positions and ids are read from memory, so that a recorded step serves every token.
// Judge: the CPU's steps (models/llm/ops_cpu.c), and through them transformers.
#include "llm_types.cuh"

extern "C" __global__ void __launch_bounds__(256) llm_embed(wt_llm_embed_args a)
{
    const long long t = blockIdx.x, d = a.d_model;
    const wt_llm_token token = a.tokens[t];
    for (int k = threadIdx.x; k < d; k += 256) {
        float x = load(a.embedding, a.embedding_type, token.id * d + k);
        if (a.positions) x += load(a.positions, a.positions_type, token.place * d + k);
        a.x[t * d + k] = x;
    }
    for (int k = threadIdx.x; k < a.half; k += 256) {
        const float angle = (float)token.place * a.frequencies[k];
        a.cosines[t * a.half + k] = cosf(angle) * a.rope_scale;
        a.sines[t * a.half + k] = sinf(angle) * a.rope_scale;
    }
}

extern "C" __global__ void __launch_bounds__(256) llm_norm(wt_llm_norm_args a)
{
    __shared__ float scratch[32];
    const float *x = a.x + (long long)blockIdx.x * a.width;
    float mean = 0, squares = 0;
    if (a.bias) {
        for (int k = threadIdx.x; k < a.width; k += 256) mean += x[k];
        mean = block_sum(mean, scratch) / (float)a.width;
    }
    for (int k = threadIdx.x; k < a.width; k += 256) squares += (x[k] - mean) * (x[k] - mean);
    const float scale = 1 / sqrtf(block_sum(squares, scratch) / (float)a.width + a.eps);
    for (int k = threadIdx.x; k < a.width; k += 256)
        store(a.out, a.type, (long long)blockIdx.x * a.width + k,
              (x[k] - mean) * scale * a.weight[k] + (a.bias ? a.bias[k] : 0));
}

// Lanes hold experts lane, lane + 32 ...; a chosen one is marked by a probability below 0.
extern "C" __global__ void __launch_bounds__(32) llm_choose(wt_llm_choose_args a)
{
    extern __shared__ float p[];
    const int lane = threadIdx.x, n = a.n_experts;
    const float *routes = a.routes + (long long)blockIdx.x * n;
    const long long at = (long long)blockIdx.x * a.n_used;
    float most = routes[0], total = 0, kept = 0;
    for (int e = lane; e < n; e += 32) most = fmaxf(most, routes[e]);
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    for (int e = lane; e < n; e += 32) total += p[e] = expf(routes[e] - most);
    total = warp_sum(total);
    for (int k = 0; k < a.n_used; k++) {
        float best = -2;
        int which = n;
        for (int e = lane; e < n; e += 32)
            if (p[e] > best) {
                best = p[e];
                which = e;
            }
        for (int step = 16; step; step /= 2) {
            const float other = __shfl_xor_sync(ALL, best, step);
            const int whose = __shfl_xor_sync(ALL, which, step);
            if (other > best || (other == best && whose < which)) {
                best = other;
                which = whose;
            }
        }
        if (which == n) which = k; // not a number is nobody's largest
        kept += best / total;
        if (lane == which % 32) { // who alone reads and writes that place
            a.chosen[at + k] = which;
            a.shares[at + k] = best / total;
            p[which] = -1;
        }
    }
    __syncwarp();
    if (a.normalise && !lane)
        for (int k = 0; k < a.n_used; k++) a.shares[at + k] /= kept;
}
