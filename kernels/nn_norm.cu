// Norms: out = activation(norm(x + residual) * weight + bias).
//
//   nn_norm_warp      a warp a row, 4 of them a block: rows up to 1280
//   nn_norm_block     a block of 256 a row; nn_norm_wide a block of 1024: the groups of GroupNorm and InstanceNorm
//   nn_norm_channels  over the channels of each position of [n][channels][length]: a block 32 positions, 8 slices of
//                     the channels
//
// A row is read once and stays in registers, as many packs of each thread as KEEP; what is wider is read again for the
// squares and for the result, from the caches. Sums in float, in an order that depends on the shape alone. Judge: the
// CPU's (models/nn_norm.c), and torch.
#include "nn.cuh"

#include "overlap.cuh"

template <int TEAM> static __device__ __forceinline__ float team_sum(float x, float *scratch)
{
    return TEAM == 32 ? warp_sum(x) : block_sum(x, scratch);
}

// Where a row's weights, biases and channels begin.
struct place {
    long long weight, bias, channel;
};

template <int N>
static __device__ __forceinline__ void load_factors(const nn_rows &r, long long at, bool one, float otherwise, float *w)
{
    if (r.data && !one) load_some<N>(r, at, w);
    const float same = r.data && one ? load(r.data, r.type, at) : otherwise;
    if (r.data && !one) return;
#pragma unroll
    for (int i = 0; i < N; i++) w[i] = same;
}

// x to activation((x - mean) * scale * weight + bias), of columns k .. k + N - 1, which have one channel or N.
template <int N>
static __device__ __forceinline__ void finish(const nn_norm_args &a, const place &p, long long k, float mean, float scale,
                                              float *x)
{
    float w[N], b[N];
    long long channel = p.channel;
    if (a.inner == 1) channel += k;
    else if (a.channels > 1) channel += a.width <= 0xffffffffll ? (unsigned)k / (unsigned)a.inner : k / a.inner;
    load_factors<N>(a.weight, p.weight + channel, a.inner > 1, a.one_plus ? 0 : 1, w);
    load_factors<N>(a.bias, p.bias + channel, a.inner > 1, 0, b);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = (x[i] - mean) * scale * (a.one_plus ? 1 + w[i] : w[i]) + b[i];
    after_all<N>(a.after, x, channel, a.inner > 1);
}

// y += more, as it is kept.
template <class T, int N>
static __device__ __forceinline__ void add(const nn_norm_args &a, long long row, long long k, const held<T, N> &more, float *y)
{
#pragma unroll
    for (int i = 0; i < N; i++) y[i] += more.get(i);
    if (!a.sum.data) return;
    held<T, N>::give(a.sum, row * a.sum.stride + k, y);
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = rounded(y[i], a.sum.type);
}

// x + residual of columns that registers do not hold; the sum, where `added` tells that this thread has written it.
template <class T, int N>
static __device__ __forceinline__ void read(const nn_norm_args &a, long long row, long long k, bool added, float *y)
{
    held<T, N> one, more;
    const bool is_sum = a.sum.data && added;
    if (is_sum) one.take(a.sum, row * a.sum.stride + k);
    else one.take(a.x, row * a.x.stride + k);
    if (a.residual.data && !is_sum) more.take(a.residual, row * a.residual.stride + k);
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = one.get(i);
    if (a.residual.data && !is_sum) add<T, N>(a, row, k, more, y);
}

// Thread t of TEAM has packs t, t + TEAM ..: the first KEEP in registers, all asked for before one is used.
template <class T, int TEAM, int N, int KEEP>
static __device__ __forceinline__ void norm_row(const nn_norm_args &a, long long row, int t)
{
    __shared__ float scratch[32];
    constexpr int step = TEAM * N, PAIR = KEEP % 2 ? 1 : 2; // of the residual at once
    const long long first = (long long)t * N, rest = first + (long long)KEEP * step;
    float x[KEEP][N], y[N], mean = 0, squares = 0;
    held<T, N> source[KEEP];
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < a.width) source[j].take(a.x, row * a.x.stride + first + j * step);
#pragma unroll
    for (int j = 0; j < KEEP; j++)
#pragma unroll
        for (int i = 0; i < N; i++) x[j][i] = first + j * step < a.width ? source[j].get(i) : 0;
    if (a.residual.data) {
#pragma unroll
        for (int j = 0; j < KEEP; j += PAIR) {
            held<T, N> more[PAIR];
#pragma unroll
            for (int i = j; i < j + PAIR; i++)
                if (first + i * step < a.width) more[i - j].take(a.residual, row * a.residual.stride + first + i * step);
#pragma unroll
            for (int i = j; i < j + PAIR; i++)
                if (first + i * step < a.width) add<T, N>(a, row, first + i * step, more[i - j], x[i]);
        }
    }
#pragma unroll
    for (int j = 0; j < KEEP; j++)
#pragma unroll
        for (int i = 0; i < N; i++) mean += x[j][i];
    for (long long k = rest; k < a.width && (a.centre || a.sum.data); k += step) {
        read<T, N>(a, row, k, false, y);
#pragma unroll
        for (int i = 0; i < N; i++) mean += y[i];
    }
    mean = a.centre ? team_sum<TEAM>(mean, scratch) / (float)a.width : 0;
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < a.width) {
#pragma unroll
            for (int i = 0; i < N; i++) squares += (x[j][i] - mean) * (x[j][i] - mean);
        }
    for (long long k = rest; k < a.width; k += step) {
        read<T, N>(a, row, k, true, y);
#pragma unroll
        for (int i = 0; i < N; i++) squares += (y[i] - mean) * (y[i] - mean);
    }
    squares = team_sum<TEAM>(squares, scratch);
    const float scale = a.l2 ? 1 / fmaxf(sqrtf(squares), a.eps) : 1 / sqrtf(squares / (float)a.width + a.eps);
    const long long which = row / a.rows_a_weight;
    const place p = {which * a.weight.stride, which * a.bias.stride, row % a.groups * a.channels};
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < a.width) {
            finish<N>(a, p, first + j * step, mean, scale, x[j]);
            held<T, N>::give(a.out, row * a.out.stride + first + j * step, x[j]);
        }
    for (long long k = rest; k < a.width; k += step) {
        read<T, N>(a, row, k, true, y);
        finish<N>(a, p, k, mean, scale, y);
        held<T, N>::give(a.out, row * a.out.stride + k, y);
    }
}

// FLOATS of a row in a thread's registers.
template <int TEAM, int FLOATS> static __device__ __forceinline__ void norm_rows(const nn_norm_args &a)
{
    const long long row = TEAM == 32 ? (long long)blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
    const int t = threadIdx.x % TEAM;
    let_next_begin();
    wait_for_earlier();
    if (row >= a.rows) return; // a whole warp
    switch (a.access) {
    case NN_PACKS_F32: norm_row<float, TEAM, 4, FLOATS / 4>(a, row, t); break;
    case NN_PACKS_F16: norm_row<f16, TEAM, 8, FLOATS / 8>(a, row, t); break;
    case NN_PACKS_BF16: norm_row<bf16, TEAM, 8, FLOATS / 8>(a, row, t); break;
    case NN_PACKS: norm_row<any_type, TEAM, 4, 4>(a, row, t); break;
    default: norm_row<any_type, TEAM, 1, 4>(a, row, t); break;
    }
}

extern "C" __global__ void __launch_bounds__(128) nn_norm_warp(nn_norm_args a) { norm_rows<32, 40>(a); }
extern "C" __global__ void __launch_bounds__(256) nn_norm_block(nn_norm_args a) { norm_rows<256, 16>(a); }
extern "C" __global__ void __launch_bounds__(1024) nn_norm_wide(nn_norm_args a) { norm_rows<1024, 24>(a); }

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
    let_next_begin();
    wait_for_earlier();
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
        float x = load(a.x.data, a.x.type, in + c * a.inner);
        finish<1>(a, {which * a.weight.stride, which * a.bias.stride, c}, 0, mean, scale, &x);
        store(a.out.data, a.out.type, out + c * a.inner, x);
    }
}
