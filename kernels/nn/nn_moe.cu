// Mixtures of experts, but for the products, which wt_matmul makes with `offsets`:
//
//   nn_route      a warp a token: shares over the experts, the best of them
//   nn_group      one block: where each expert's rows begin, and which of its rows a choice has; in the order of tokens
//   nn_permute    a block a choice: the token's row to the expert's
//   nn_unpermute  a block a token: the sum of what its experts gave, in the order of the choice
//
// Judge: the CPU's (models/nn_moe.c), and torch.
#include "moe_group.cuh"
#include "nn.cuh"

// The largest of all lanes' (value, which), the first of equals.
static __device__ __forceinline__ int best_of(float value, int which)
{
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(ALL, value, step);
        const int whose = __shfl_xor_sync(ALL, which, step);
        if (other > value || (other == value && whose < which)) {
            value = other;
            which = whose;
        }
    }
    return which;
}

static __device__ __forceinline__ float score_at(const nn_moe_args &a, long long token, int e)
{
    return load(a.scores.data, a.scores.type, token * a.scores.stride + e);
}

extern "C" __global__ void __launch_bounds__(32) nn_route(nn_moe_args a)
{
    extern __shared__ float keys[]; // what the choice goes by; below any number once chosen
    const float lowest = -__int_as_float(0x7f800000);
    const int lane = threadIdx.x;
    const long long token = blockIdx.x, at = token * a.used;
    float most = lowest, total = 0, kept = 0;
    for (int e = lane; e < a.experts; e += 32) most = fmaxf(most, score_at(a, token, e));
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, step));
    for (int e = lane; e < a.experts; e += 32) total += expf(score_at(a, token, e) - most);
    total = warp_sum(total);
    for (int e = lane; e < a.experts; e += 32) {
        const float x = score_at(a, token, e), share = a.sigmoid ? 1 / (1 + expf(-x)) : expf(x - most) / total;
        keys[e] = share + load_or(a.bias, e, 0);
    }
    for (int k = 0; k < a.used; k++) {
        float best = lowest;
        int which = a.experts;
        for (int e = lane; e < a.experts; e += 32)
            if (keys[e] > best) {
                best = keys[e];
                which = e;
            }
        which = best_of(best, which);
        if (which == a.experts) which = k; // not a number is nobody's largest
        const float x = score_at(a, token, which), share = a.sigmoid ? 1 / (1 + expf(-x)) : expf(x - most) / total;
        kept += share;
        if (!lane) {
            a.chosen[at + k] = which;
            a.shares[at + k] = share;
        }
        if (lane == which % 32) keys[which] = lowest; // who alone reads it
    }
    const float scale = a.normalise ? a.scale / kept : a.scale;
    if (!lane)
        for (int k = 0; k < a.used; k++) a.shares[at + k] *= scale;
}

extern "C" __global__ void __launch_bounds__(1024) nn_group(nn_moe_args a)
{
    __shared__ int begins[1025];
    group_by_expert(a.chosen, a.tokens * a.used, a.experts, begins, a.offsets, a.slots);
}

extern "C" __global__ void __launch_bounds__(256) nn_permute(nn_moe_args a)
{
    const int slot = a.slots[blockIdx.x];
    if (slot < 0) return;
    const long long from = (long long)(blockIdx.x / a.used) * a.x.stride, to = slot * a.grouped.stride;
    if (a.x.type == NN_F32)
        for (long long k = threadIdx.x; k < a.width; k += 256)
            ((float *)a.grouped.data)[to + k] = ((const float *)a.x.data)[from + k];
    else
        for (long long k = threadIdx.x; k < a.width; k += 256)
            ((unsigned short *)a.grouped.data)[to + k] = ((const unsigned short *)a.x.data)[from + k];
}

extern "C" __global__ void __launch_bounds__(256) nn_unpermute(nn_moe_args a)
{
    const long long token = blockIdx.x;
    for (long long k = threadIdx.x; k < a.width; k += 256) {
        float sum = a.residual.data ? load(a.residual.data, a.residual.type, token * a.residual.stride + k) : 0;
        for (int j = 0; j < a.used; j++) {
            const int slot = a.slots[token * a.used + j];
            if (slot >= 0)
                sum += a.shares[token * a.used + j] * load(a.grouped.data, a.grouped.type, slot * a.grouped.stride + k);
        }
        store(a.out.data, a.out.type, token * a.out.stride + k, sum);
    }
}
