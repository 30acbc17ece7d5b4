// Norms: out = activation(norm(x + residual) * weight + bias).
//
//   nn_norm_warp      a warp a row, 8 of them a block: rows up to 1024
//   nn_norm_block     a block of 256 a row; nn_norm_wide a block of 1024: the groups of GroupNorm and InstanceNorm
//   nn_norm_channels  over the channels of each position of [n][channels][length]: a block 32 positions, 8 slices of
//                     the channels
//
// A row is read once for the mean, once for the squares of what is left, once for the result; but for the first time it
// comes from the caches. Sums in float, in an order that depends on the shape alone. Judge: the CPU's
// (models/nn_norm.c), and torch.
#include "nn.cuh"

template <int TEAM> static __device__ __forceinline__ float team_sum(float x, float *scratch)
{
    return TEAM == 32 ? warp_sum(x) : block_sum(x, scratch);
}

// x + residual, as it is kept.
template <int N> static __device__ __forceinline__ void source(const nn_norm_args &a, long long row, long long k, float *x)
{
    float other[N];
    load_some<N>(a.x, row * a.x.stride + k, x);
    if (!a.residual.data) return;
    load_some<N>(a.residual, row * a.residual.stride + k, other);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] += other[i];
    if (!a.sum.data) return;
    store_some<N>(a.sum, row * a.sum.stride + k, x);
    load_some<N>(a.sum, row * a.sum.stride + k, x);
}

// `which`: the row of weights and biases.
static __device__ __forceinline__ float finished(const nn_norm_args &a, float x, long long which, long long channel)
{
    const float w = a.weight.data ? load(a.weight.data, a.weight.type, which * a.weight.stride + channel)
                                  : (a.one_plus ? 0.0f : 1.0f);
    const float b = a.bias.data ? load(a.bias.data, a.bias.type, which * a.bias.stride + channel) : 0.0f;
    return after(a.after, x * (a.one_plus ? 1 + w : w) + b, channel);
}

template <int TEAM, int N> static __device__ __forceinline__ void norm_row(const nn_norm_args &a, long long row, int t)
{
    __shared__ float scratch[32];
    nn_norm_args own = a; // after the first pass the sum is read, and nothing is added
    float x[N], mean = 0, squares = 0;
    const bool sums = a.residual.data && a.sum.data;
    if (a.centre || sums)
        for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
            source<N>(a, row, k, x);
#pragma unroll
            for (int i = 0; i < N; i++) mean += x[i];
        }
    mean = a.centre ? team_sum<TEAM>(mean, scratch) / (float)a.width : 0;
    if (sums) {
        own.x = a.sum;
        own.residual.data = 0;
    }
    for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
        source<N>(own, row, k, x);
#pragma unroll
        for (int i = 0; i < N; i++) squares += (x[i] - mean) * (x[i] - mean);
    }
    squares = team_sum<TEAM>(squares, scratch);
    const float scale = a.l2 ? 1 / fmaxf(sqrtf(squares), a.eps) : 1 / sqrtf(squares / (float)a.width + a.eps);
    const long long which = row / a.rows_a_weight, group = row % a.groups * a.channels;
    for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
        source<N>(own, row, k, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = finished(a, (x[i] - mean) * scale, which, group + (a.inner == 1 ? k + i : (k + i) / a.inner));
        store_some<N>(a.out, row * a.out.stride + k, x);
    }
}

template <int TEAM> static __device__ __forceinline__ void norm_rows(const nn_norm_args &a)
{
    const long long row = TEAM == 32 ? (long long)blockIdx.x * 8 + threadIdx.x / 32 : blockIdx.x;
    if (row >= a.rows) return; // a whole warp
    if (a.packs) norm_row<TEAM, 4>(a, row, threadIdx.x % TEAM);
    else norm_row<TEAM, 1>(a, row, threadIdx.x % TEAM);
}

extern "C" __global__ void __launch_bounds__(256) nn_norm_warp(nn_norm_args a) { norm_rows<32>(a); }
extern "C" __global__ void __launch_bounds__(256) nn_norm_block(nn_norm_args a) { norm_rows<256>(a); }
extern "C" __global__ void __launch_bounds__(1024) nn_norm_wide(nn_norm_args a) { norm_rows<1024>(a); }

// Of the 8 threads of a position, for all of them.
static __device__ __forceinline__ float slices_sum(float x, float (*parts)[32])
{
    const int lane = threadIdx.x % 32;
    __syncthreads(); // the last sum has been read
    parts[threadIdx.x / 32][lane] = x;
    __syncthreads();
    x = 0;
    for (int s = 0; s < 8; s++) x += parts[s][lane];
    return x;
}

// rows are n, width the channels, inner the length; strides are those of n, channels lie `inner` apart.
extern "C" __global__ void __launch_bounds__(256) nn_norm_channels(nn_norm_args a)
{
    __shared__ float parts[8][32];
    const long long n = blockIdx.y, at = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    const long long in = n * a.x.stride + at, out = n * a.out.stride + at;
    const int first = threadIdx.x / 32, end = at < a.inner ? (int)a.width : 0;
    float mean = 0, squares = 0;
    for (int c = first; c < end; c += 8) mean += load(a.x.data, a.x.type, in + c * a.inner);
    mean = slices_sum(mean, parts) / (float)a.width;
    for (int c = first; c < end; c += 8) {
        const float x = load(a.x.data, a.x.type, in + c * a.inner) - mean;
        squares += x * x;
    }
    const float scale = 1 / sqrtf(slices_sum(squares, parts) / (float)a.width + a.eps);
    const long long which = n / a.rows_a_weight;
    for (int c = first; c < end; c += 8) {
        const float x = (load(a.x.data, a.x.type, in + c * a.inner) - mean) * scale;
        store(a.out.data, a.out.type, out + c * a.inner, finished(a, x, which, c));
    }
}
