// What is done token by token.
//
//   nn_embed  a block a row: the sum or mean of the table's rows in its bag, and its position's row
//   nn_rope   a block a token: cosines and sines of its position, then all its heads, of a joint projection in three
//             arrays
//
// Judge: the CPU's (models/nn_token.c), and torch.
#include "nn.cuh"

static __device__ __forceinline__ long long id_at(int type, const void *ids, long long at)
{
    return type == NN_I64 ? ((const long long *)ids)[at] : ((const int *)ids)[at];
}

extern "C" __global__ void __launch_bounds__(256) nn_embed(nn_embed_args a)
{
    const long long row = blockIdx.x, place = a.places ? id_at(a.places_type, a.places, row) : row % a.n_places;
    int found = 0;
    for (long long j = 0; j < a.bag; j++) {
        const long long id = id_at(a.ids_type, a.ids, row * a.bag + j);
        found += id >= 0 && id < a.vocab;
    }
    const float scale = a.mean && found ? a.scale / (float)found : a.scale;
    for (long long k = threadIdx.x; k < a.width; k += 256) {
        float sum = 0;
        for (long long j = 0; j < a.bag; j++) {
            const long long id = id_at(a.ids_type, a.ids, row * a.bag + j);
            if (id >= 0 && id < a.vocab) sum += load(a.table.data, a.table.type, id * a.table.stride + k);
        }
        sum *= scale;
        if (a.positions.data && place >= 0 && place < a.n_positions)
            sum += load(a.positions.data, a.positions.type, place * a.positions.stride + k);
        store(a.out.data, a.out.type, row * a.out.stride + k, sum);
    }
}

// Threads take a pair that turns, or a dimension that does not: half + (d_head - 2 half) places of a head.
extern "C" __global__ void __launch_bounds__(256) nn_rope(nn_rope_args a)
{
    __shared__ float cosines[512], sines[512];
    const long long t = blockIdx.x;
    const int heads = a.heads + 2 * a.kv_heads, places = a.d_head - a.half;
    for (int k = threadIdx.x; a.positions && k < a.half; k += 256) {
        const float angle = (float)a.positions[t] * a.frequencies[k];
        cosines[k] = cosf(angle) * a.scale;
        sines[k] = sinf(angle) * a.scale;
    }
    __syncthreads();
    for (int n = threadIdx.x; n < heads * places; n += 256) {
        const int h = n / places, k = n % places, part = h < a.heads ? 0 : h < a.heads + a.kv_heads ? 1 : 2;
        const int own = part == 0 ? h : h - a.heads - (part - 1) * a.kv_heads;
        const nn_strided &out = part == 0 ? a.out[0] : part == 1 ? a.out[1] : a.out[2];
        const long long from = t * a.x.strides[0] + h * a.x.strides[1];
        const long long to = t * out.strides[0] + own * out.strides[1], biases = (long long)h * a.d_head;
        const int i = k >= a.half ? k + a.half : a.interleaved ? 2 * k : k, j = a.interleaved ? i + 1 : i + a.half;
        const float p = load(a.x.data, a.x.type, from + i) + load_or(a.bias, biases + i, 0);
        if (k >= a.half) {
            store(out.data, out.type, to + i, p);
            continue;
        }
        const float q = load(a.x.data, a.x.type, from + j) + load_or(a.bias, biases + j, 0);
        const bool turns = a.positions && part < 2;
        const float c = turns ? cosines[k] : 1, s = turns ? sines[k] : 0;
        store(out.data, out.type, to + i, p * c - q * s);
        store(out.data, out.type, to + j, q * c + p * s);
    }
}
