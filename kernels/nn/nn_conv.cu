// Convolution along time, plain, strided, dilated, in groups and transposed, in float; nn_conv_16.cu has 16-bit types.
//
//   nn_conv_few        a thread an output: groups of few outputs (depthwise), and what is no product of tiles
//   nn_conv_f32_128_s  a block 128 rows x 128 positions, a thread 8 x 8; s blocks of a cluster share the terms
//   nn_conv_f32_64_s   a block 64 x 64, a thread 8 x 4
//   nn_conv_any        likewise, of any types
//
// Terms come sixteen at a time to shared memory, [term][row] and [term][position], while the sixteen before are used
// (F32 by copies in the background). Judge: the CPU's (models/nn_conv.c), and torch.
#include "nn_conv.cuh"

static __device__ __forceinline__ float x_at(const nn_conv_args &a, int n, int channel, long long at)
{
    if (at < 0 || at >= a.length) return 0;
    return load(a.x.data, a.x.type, n * a.x.strides[0] + channel * a.x.strides[1] + at);
}

// Grid: blocks of 256 positions, output channels, n.
extern "C" __global__ void __launch_bounds__(256) nn_conv_few(nn_conv_args a)
{
    let_next_begin();
    wait_for_earlier();
    const long long position = (long long)blockIdx.x * 256 + threadIdx.x;
    if (position >= a.out_length) return;
    const int n = blockIdx.z, channel = blockIdx.y, group = channel / a.outputs, output = channel % a.outputs;
    float sum = 0;
    for (int tap = 0; tap < a.taps; tap++) {
        long long at = position * a.stride - a.padding + (long long)tap * a.dilation;
        if (a.transposed) {
            const long long from = position + a.padding - (long long)tap * a.dilation;
            at = (int)from == from ? (int)from / a.stride : from / a.stride;
            if (from < 0 || at * a.stride != from) continue;
        }
        const long long w = group * a.next_group + output * a.weight.strides[0] + tap * a.weight.strides[2];
        for (int c = 0; c < a.inputs; c++)
            sum +=
                load(a.weight.data, a.weight.type, w + c * a.weight.strides[1]) * x_at(a, n, group * a.inputs + c, at);
    }
    float y = after(a.after, sum + load_or(a.bias, channel, 0), channel);
    if (a.residual.data)
        y += load(a.residual.data, a.residual.type,
                  n * a.residual.strides[0] + channel * a.residual.strides[1] + position);
    store(a.out.data, a.out.type, n * a.out.strides[0] + channel * a.out.strides[1] + position, y);
}

// ---- products

#define TERMS 16          // of a step
#define EACH  (TERMS / 2) // that a thread brings of weights and of x

// What a thread brings of each step: EACH rows of a term, and EACH positions of one.
struct carrier {
    int weights[EACH], at[EACH], n_taps[EACH]; // where rows begin, of the group's weights; positions; taps of the rows
    int w_term, w_row, x_term, x_position;
    const char *w, *x; // of the group
};

static __device__ __forceinline__ int bytes_of(int type) { return type == NN_F32 ? 4 : 2; }

template <int SIDE> static __device__ __forceinline__ carrier carrier_of(const nn_conv_args &a, const tile &t)
{
    const nn_conv_product &p = a.product;
    carrier c;
    c.x_term = threadIdx.x / (SIDE / EACH);
    c.x_position = threadIdx.x % (SIDE / EACH);
    c.w_term = p.rows_inside ? c.x_term : threadIdx.x % TERMS;
    c.w_row = p.rows_inside ? c.x_position : threadIdx.x / TERMS;
    c.w = (const char *)a.weight.data + t.group * a.next_group * bytes_of(a.weight.type);
    c.x = (const char *)a.x.data +
          (t.n * a.x.strides[0] + (long long)t.group * a.inputs * a.x.strides[1]) * bytes_of(a.x.type);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        c.weights[j] = (int)weights_of(a, t.row + c.w_row + SIDE / EACH * j, &c.n_taps[j]);
        c.at[j] = (t.position + c.x_position + SIDE / EACH * j) * p.x_step + p.at;
    }
    return c;
}

// Channel and tap of a term; the channel is beyond the last one's, or the tap, where there is no such term.
static __device__ __forceinline__ void term_of(const nn_conv_product &p, int k, int *channel, int *tap)
{
    const int u = (int)__umulhi((unsigned)k, p.magic), v = k - u * p.inner;
    *channel = p.taps_inside ? u : v;
    *tap = p.taps_inside ? v : u;
}

template <bool ANY>
static __device__ __forceinline__ void bring(float *to, const char *from, int type, long long at, bool valid)
{
    if (ANY)
        *to = valid ? load(from, type, at) : 0;
    else
        copy_async_4(to, (const float *)from + at, valid);
}

// Terms k .. k + TERMS - 1.
template <int SIDE, bool ANY>
static __device__ __forceinline__ void bring_step(const nn_conv_args &a, const carrier &c, int k, float *w, float *x)
{
    const nn_conv_product &p = a.product;
    int channel, tap;
    term_of(p, k + c.w_term, &channel, &tap);
    const int from = channel * (int)a.weight.strides[1] + tap * p.merged * (int)a.weight.strides[2];
    const int last = channel < a.inputs ? tap : a.taps; // no row has that one
#pragma unroll
    for (int j = 0; j < EACH; j++)
        bring<ANY>(w + c.w_term * (SIDE + 4) + c.w_row + SIDE / EACH * j, c.w, a.weight.type, c.weights[j] + from,
                   last < c.n_taps[j]);
    term_of(p, k + c.x_term, &channel, &tap);
    const long long line = channel * a.x.strides[1];
    const int shift = tap * p.at_step;
    const unsigned length = channel < a.inputs && tap < p.n_taps ? (unsigned)a.length : 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        bring<ANY>(x + c.x_term * (SIDE + 4) + c.x_position + SIDE / EACH * j, c.x, a.x.type, line + (c.at[j] + shift),
                   (unsigned)(c.at[j] + shift) < length);
    copy_async_commit();
}

// Of a thread: warps have 32 rows and SIDE / 2 positions, lanes 8 y + x rows 4 y .. of each 16, positions 4 x .. of
// each 32.
template <int SIDE> static __device__ __forceinline__ int row_of_thread()
{
    return threadIdx.x / 64 * 32 + threadIdx.x % 32 / 8 * 4;
}

template <int SIDE> static __device__ __forceinline__ int position_of_thread()
{
    return threadIdx.x / 32 % 2 * (SIDE / 2) + threadIdx.x % 8 * 4;
}

template <int SIDE>
static __device__ __forceinline__ void add_terms(const float *w, const float *x, float (*sums)[SIDE / 16])
{
    w += row_of_thread<SIDE>();
    x += position_of_thread<SIDE>();
#pragma unroll
    for (int k = 0; k < TERMS; k++) {
        float v[8], y[SIDE / 16];
#pragma unroll
        for (int i = 0; i < 8; i += 4) *(float4 *)(v + i) = *(const float4 *)(w + k * (SIDE + 4) + 4 * i);
#pragma unroll
        for (int i = 0; i < SIDE / 16; i += 4) *(float4 *)(y + i) = *(const float4 *)(x + k * (SIDE + 4) + 8 * i);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < SIDE / 16; j++) sums[i][j] += v[i] * y[j];
    }
}

template <int SIDE, int SPLITS, bool ANY = false> static __device__ __forceinline__ void conv_f32(const nn_conv_args &a)
{
    constexpr int stage = TERMS * (SIDE + 4);
    __shared__ float4 memory[2 * 2 * stage / 4]; // weights and x of two steps; then 64 rows of sums
    float *const w = (float *)memory, *const x = w + 2 * stage;
    const tile t = tile_of<SIDE, SPLITS>(a);
    const int steps = (a.inputs * a.product.n_taps + TERMS - 1) / TERMS;
    const int begin = steps * t.split / SPLITS, end = steps * (t.split + 1) / SPLITS;
    float sums[8][SIDE / 16] = {};
    let_next_begin();
    wait_for_earlier();
    const carrier c = carrier_of<SIDE>(a, t);
    if (begin < end) bring_step<SIDE, ANY>(a, c, begin * TERMS, w, x);
    for (int s = begin; s < end; s++) {
        const int now = (s - begin) % 2 * stage, next = stage - now;
        copy_async_wait<0>();
        __syncthreads(); // the step's terms are there, and those of the step before were used by all
        if (s + 1 < end) bring_step<SIDE, ANY>(a, c, (s + 1) * TERMS, w + next, x + next);
        add_terms<SIDE>(w + now, x + now, sums);
    }
    const int row = row_of_thread<SIDE>(), position = position_of_thread<SIDE>();
    for (int first = 0; first < SIDE; first += 64) {
        __syncthreads();
        if (row >= first && row < first + 64) {
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < SIDE / 16; j += 4)
                    *(float4 *)(w + (row - first + i % 4 + i / 4 * 16) * (SIDE + 4) + position + 8 * j) =
                        make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        }
        finish<SIDE, SPLITS, 2 * SIDE, 64>(a, t, w, first);
    }
}

#define KERNEL(side, splits, blocks)                                                                                   \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(2 * side, blocks)                                    \
        nn_conv_f32_##side##_##splits(const __grid_constant__ nn_conv_args a)                                          \
    {                                                                                                                  \
        conv_f32<side, splits>(a);                                                                                     \
    }

KERNEL(128, 1, 2)
KERNEL(128, 2, 2)
KERNEL(128, 3, 2)
KERNEL(128, 4, 2)
KERNEL(64, 1, 4)
KERNEL(64, 8, 4)

extern "C" __global__ void __launch_bounds__(128, 4) nn_conv_any(const __grid_constant__ nn_conv_args a)
{
    conv_f32<64, 1, true>(a);
}
