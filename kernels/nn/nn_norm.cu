// Norms: out = activation(norm(x + residual) * weight + bias).
//
//   nn_norm_warp      a warp a row, 4 of them a block: rows up to 1280
//   nn_norm_block     a block of 256 a row: up to 4096
//   nn_norm_narrow, nn_norm_wide   rows of mixed types and odd widths, and wider ones (the groups of GroupNorm and
//                     InstanceNorm): a warp, a block of 1024 a row
//   nn_norm_channels  over the channels of each position of [n][channels][length]: a block 32 positions, 8 slices of
//                     the channels
//
// The first two read a row once and keep it in registers; the next two read it again for the squares and for the
// result, from the caches. Sums in float, in an order that depends on the shape alone. Judge: the CPU's
// (models/nn_norm.c), and torch.
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

// Factors of columns that have one channel or N; of T or F32 where columns are read as T.
template <class T, int N>
static __device__ __forceinline__ void load_factors(const nn_rows &r, long long at, bool one, float otherwise, float *w)
{
    if (r.data && !one) {
        if (r.type == NN_F32)
            load_pack<float, N>(r.data, at, w);
        else
            held<T, N>::load(r, at, w);
        return;
    }
    const float same = r.data ? load(r.data, r.type, at) : otherwise;
#pragma unroll
    for (int i = 0; i < N; i++) w[i] = same;
}

// x to activation((x - mean) * scale * weight + bias), of columns k .. k + N - 1.
template <class T, int N>
static __device__ __forceinline__ void finish(const nn_norm_args &a, const place &p, long long k, float mean,
                                              float scale, float *x)
{
    float w[N], b[N];
    long long channel = p.channel;
    if (a.inner == 1)
        channel += k;
    else if (a.channels > 1)
        channel += a.width <= 0xffffffffll ? (unsigned)k / (unsigned)a.inner : k / a.inner;
    load_factors<T, N>(a.weight, p.weight + channel, a.inner > 1, a.one_plus ? 0 : 1, w);
    load_factors<T, N>(a.bias, p.bias + channel, a.inner > 1, 0, b);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = (x[i] - mean) * scale * (a.one_plus ? 1 + w[i] : w[i]) + b[i];
    after_all<N>(a.after, x, channel, a.inner > 1);
}

// y += more, as it is kept.
template <class T, int N>
static __device__ __forceinline__ void add(const nn_norm_args &a, long long row, long long k, const held<T, N> &more,
                                           float *y)
{
#pragma unroll
    for (int i = 0; i < N; i++) y[i] += more.get(i);
    if (!a.sum.data) return;
    held<T, N>::give(a.sum, row * a.sum.stride + k, y);
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = held<T, N>::kept(y[i], a.sum.type);
}

// x + residual of columns that registers do not hold; the sum, where `added` tells that this thread has written it.
template <class T, int N>
static __device__ __forceinline__ void read(const nn_norm_args &a, long long row, long long k, bool added, float *y)
{
    held<T, N> one, more;
    const bool is_sum = a.sum.data && added;
    if (is_sum)
        one.take(a.sum, row * a.sum.stride + k);
    else
        one.take(a.x, row * a.x.stride + k);
    if (a.residual.data && !is_sum) more.take(a.residual, row * a.residual.stride + k);
#pragma unroll
    for (int i = 0; i < N; i++) y[i] = one.get(i);
    if (a.residual.data && !is_sum) add<T, N>(a, row, k, more, y);
}

// What is left of a row's squares, and where it finds its factors.
static __device__ __forceinline__ float scale_of(const nn_norm_args &a, float squares)
{
    return a.l2 ? 1 / fmaxf(sqrtf(squares), a.eps) : 1 / sqrtf(squares / (float)a.width + a.eps);
}

static __device__ __forceinline__ place place_of(const nn_norm_args &a, long long row)
{
    const long long which = row / a.rows_a_weight;
    place p = {which * a.weight.stride, which * a.bias.stride, row % a.groups * a.channels};
    return p;
}

// Thread t of TEAM has packs t, t + TEAM .., KEEP of them, all asked for before one is used.
template <class T, int TEAM, int N, int KEEP>
static __device__ __forceinline__ void norm_row(const nn_norm_args &a, long long row, int t)
{
    __shared__ float scratch[32];
    constexpr int step = TEAM * N, PAIR = KEEP % 2 ? 1 : 2; // of the residual at once
    const int first = t * N, width = (int)a.width;
    float x[KEEP][N], mean = 0, squares = 0;
    held<T, N> source[KEEP];
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < width) source[j].take(a.x, row * a.x.stride + first + j * step);
#pragma unroll
    for (int j = 0; j < KEEP; j++)
#pragma unroll
        for (int i = 0; i < N; i++) x[j][i] = first + j * step < width ? source[j].get(i) : 0;
    if (a.residual.data) {
#pragma unroll
        for (int j = 0; j < KEEP; j += PAIR) {
            held<T, N> more[PAIR];
#pragma unroll
            for (int i = j; i < j + PAIR; i++)
                if (first + i * step < width) more[i - j].take(a.residual, row * a.residual.stride + first + i * step);
#pragma unroll
            for (int i = j; i < j + PAIR; i++)
                if (first + i * step < width) add<T, N>(a, row, first + i * step, more[i - j], x[i]);
        }
    }
    if (a.centre) {
#pragma unroll
        for (int j = 0; j < KEEP; j++)
#pragma unroll
            for (int i = 0; i < N; i++) mean += x[j][i];
        mean = team_sum<TEAM>(mean, scratch) / (float)width;
    }
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < width) {
#pragma unroll
            for (int i = 0; i < N; i++) squares += (x[j][i] - mean) * (x[j][i] - mean);
        }
    const float scale = scale_of(a, team_sum<TEAM>(squares, scratch));
    const place p = place_of(a, row);
#pragma unroll
    for (int j = 0; j < KEEP; j++)
        if (first + j * step < width) {
            finish<T, N>(a, p, first + j * step, mean, scale, x[j]);
            held<T, N>::give(a.out, row * a.out.stride + first + j * step, x[j]);
        }
}

template <class T, int TEAM, int N>
static __device__ __forceinline__ void norm_any_row(const nn_norm_args &a, long long row, int t)
{
    __shared__ float scratch[32];
    float x[N], mean = 0, squares = 0;
    if (a.centre || a.sum.data)
        for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
            read<T, N>(a, row, k, false, x);
#pragma unroll
            for (int i = 0; i < N; i++) mean += x[i];
        }
    mean = a.centre ? team_sum<TEAM>(mean, scratch) / (float)a.width : 0;
    for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
        read<T, N>(a, row, k, true, x);
#pragma unroll
        for (int i = 0; i < N; i++) squares += (x[i] - mean) * (x[i] - mean);
    }
    const float scale = scale_of(a, team_sum<TEAM>(squares, scratch));
    const place p = place_of(a, row);
    for (long long k = (long long)t * N; k < a.width; k += TEAM * N) {
        read<T, N>(a, row, k, true, x);
        finish<T, N>(a, p, k, mean, scale, x);
        held<T, N>::give(a.out, row * a.out.stride + k, x);
    }
}

// The row of this team; waits for the kernels before.
template <int TEAM> static __device__ __forceinline__ long long row_of_team()
{
    let_next_begin();
    wait_for_earlier();
    return TEAM == 32 ? (long long)blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
}

// FLOATS of a row in a thread's registers.
template <int TEAM, int FLOATS> static __device__ __forceinline__ void norm_rows(const nn_norm_args &a)
{
    const long long row = row_of_team<TEAM>();
    const int t = threadIdx.x % TEAM;
    if (row >= a.rows) return; // a whole warp
    if (a.access == NN_PACKS_F32)
        norm_row<float, TEAM, 4, FLOATS / 4>(a, row, t);
    else if (a.access == NN_PACKS_F16)
        norm_row<f16, TEAM, 8, FLOATS / 8>(a, row, t);
    else
        norm_row<bf16, TEAM, 8, FLOATS / 8>(a, row, t);
}

template <int TEAM> static __device__ __forceinline__ void norm_any_rows(const nn_norm_args &a)
{
    const long long row = row_of_team<TEAM>();
    const int t = threadIdx.x % TEAM;
    if (row >= a.rows) return;
    if (a.access == NN_PACKS_F32)
        norm_any_row<float, TEAM, 4>(a, row, t);
    else if (a.access == NN_SINGLE)
        norm_any_row<any_type, TEAM, 1>(a, row, t);
    else
        norm_any_row<any_type, TEAM, 4>(a, row, t);
}

extern "C" __global__ void __launch_bounds__(128) nn_norm_warp(nn_norm_args a) { norm_rows<32, 40>(a); }
extern "C" __global__ void __launch_bounds__(256) nn_norm_block(nn_norm_args a) { norm_rows<256, 16>(a); }
extern "C" __global__ void __launch_bounds__(128) nn_norm_narrow(nn_norm_args a) { norm_any_rows<32>(a); }
extern "C" __global__ void __launch_bounds__(1024) nn_norm_wide(nn_norm_args a) { norm_any_rows<1024>(a); }

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
        finish<any_type, 1>(a, {which * a.weight.stride, which * a.bias.stride, c}, 0, mean, scale, &x);
        store(a.out.data, a.out.type, out + c * a.inner, x);
    }
}
