// What convolutions as products share (nn_kernel.h, nn_conv_product): tiles of rows and positions, and their end, in
// shared memory [row][position], also where the blocks of a cluster each had a part of the terms.
// Grid: tiles of positions, SPLITS blocks each; tiles of rows of each group; n.
#include "nn.cuh"

#include "cluster.cuh"
#include "overlap.cuh"

struct tile {
    int n, group, row, position; // the first
    int split;
};

template <int SIDE, int SPLITS> static __device__ __forceinline__ tile tile_of(const nn_conv_args &a)
{
    const int tiles = (a.product.rows + SIDE - 1) / SIDE;
    tile t;
    t.n = (int)blockIdx.z;
    t.group = (int)blockIdx.y / tiles;
    t.row = (int)blockIdx.y % tiles * SIDE;
    t.position = (int)blockIdx.x / SPLITS * SIDE;
    t.split = (int)blockIdx.x % SPLITS;
    return t;
}

// Weights of a row of a group: where they begin, and how many taps it has; none beyond the last row.
static __device__ __forceinline__ long long weights_of(const nn_conv_args &a, int row, int *n_taps)
{
    const nn_conv_product &p = a.product;
    const int output = row / p.merged, r = row % p.merged;
    *n_taps = row < p.rows ? (a.taps - r + p.merged - 1) / p.merged : 0;
    return row < p.rows ? output * a.weight.strides[0] + r * a.weight.strides[2] : 0;
}

// Four sums of a row, at position q of the tile's n, to where they belong.
static __device__ __forceinline__ void give(const nn_conv_args &a, const tile &t, int row, int q, float4 sum)
{
    const nn_conv_product &p = a.product;
    const int output = row / p.merged, r = row % p.merged;
    const long long channel = (long long)t.group * a.outputs + output, at = (long long)q * p.merged + r - p.shift;
    const long long out = t.n * a.out.strides[0] + channel * a.out.strides[1] + at;
    const long long other = t.n * a.residual.strides[0] + channel * a.residual.strides[1] + at;
    const nn_rows to = {a.out.data, 0, a.out.type}, from = {a.residual.data, 0, a.residual.type};
    const float bias = load_or(a.bias, channel, 0);
    float y[4] = {sum.x + bias, sum.y + bias, sum.z + bias, sum.w + bias}, more[4];
    after_all<4>(a.after, y, channel, true);
    if (p.fours && at + 3 < a.out_length) {
        if (from.data) {
            load_some<4>(from, other, more);
#pragma unroll
            for (int i = 0; i < 4; i++) y[i] += more[i];
        }
        store_some<4>(to, out, y);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const long long place = at + i * p.merged;
        if (place < 0 || place >= a.out_length) continue;
        if (from.data) y[i] += load(from.data, from.type, other + i * p.merged);
        store(to.data, to.type, out + i * p.merged, y[i]);
    }
}

// N rows of the tile from row `first` on, which lie in shared memory, [N][SIDE + 4]; of the cluster's blocks each does
// a part of them.
template <int SIDE, int SPLITS, int THREADS, int N>
static __device__ __forceinline__ void finish(const nn_conv_args &a, const tile &t, const float *sums, int first)
{
    constexpr int all = N * (SIDE / 4);
    const bool along = a.product.merged == 1; // neighbours in memory: positions, or rows
    if (SPLITS > 1)
        cluster_meet();
    else
        __syncthreads();
    for (int e = all * t.split / SPLITS + threadIdx.x; e < all * (t.split + 1) / SPLITS; e += THREADS) {
        const int row = along ? e / (SIDE / 4) : e % N, q = (along ? e % (SIDE / 4) : e / N) * 4;
        const float *at = sums + row * (SIDE + 4) + q;
        float4 sum = SPLITS > 1 ? load_from(at, 0) : *(const float4 *)at;
#pragma unroll
        for (int rank = 1; rank < SPLITS; rank++) {
            const float4 more = load_from(at, rank);
            sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
        }
        if (t.row + first + row < a.product.rows) give(a, t, t.row + first + row, t.position + q, sum);
    }
    if (SPLITS > 1)
        cluster_meet(); // the others have read
    else
        __syncthreads();
}
