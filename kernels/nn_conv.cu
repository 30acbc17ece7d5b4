// Convolution along time, plain, strided, dilated, in groups and transposed, in float; nn_conv_16.cu has 16-bit types.
//
//   nn_conv_few        a thread an output: groups of few outputs (depthwise), and what is no product of tiles
//   nn_conv_f32        a block 128 rows x 128 positions, a thread 8 x 8; any types
//   nn_conv_f32_small  a block 64 x 64, a thread 8 x 4; nn_conv_f32_split: four blocks of a cluster share the terms
//
// Terms come eight at a time to shared memory, [term][row] and [term][position], three steps ahead of their use (f32 by
// copies in the background). Judge: the CPU's (models/nn_conv.c), and torch.
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
            sum += load(a.weight.data, a.weight.type, w + c * a.weight.strides[1]) * x_at(a, n, group * a.inputs + c, at);
    }
    float y = after(a.after, sum + load_or(a.bias, channel, 0), channel);
    if (a.residual.data)
        y += load(a.residual.data, a.residual.type, n * a.residual.strides[0] + channel * a.residual.strides[1] + position);
    store(a.out.data, a.out.type, n * a.out.strides[0] + channel * a.out.strides[1] + position, y);
}

// ---- products

#define TERMS  8 // of a step
#define STAGES 4

// What a thread brings of each step: four rows of a term, and four positions of one.
template <int SIDE> struct carrier {
    long long weights[4], x; // of the rows; of the signal's group
    int n_taps[4], at[4];    // of the rows; of the positions
    int w_term, w_row, x_term, x_position;
};

template <int SIDE> static __device__ __forceinline__ carrier<SIDE> carrier_of(const nn_conv_args &a, const tile &t)
{
    const nn_conv_product &p = a.product;
    carrier<SIDE> c;
    c.x_term = threadIdx.x / (SIDE / 4);
    c.x_position = threadIdx.x % (SIDE / 4);
    c.w_term = p.rows_inside ? c.x_term : threadIdx.x % TERMS;
    c.w_row = p.rows_inside ? c.x_position : threadIdx.x / TERMS;
    c.x = t.n * a.x.strides[0] + (long long)t.group * a.inputs * a.x.strides[1];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        c.weights[j] = weights_of(a, t, t.row + c.w_row + SIDE / 4 * j, &c.n_taps[j]);
        c.at[j] = (t.position + c.x_position + SIDE / 4 * j) * p.x_step + p.at;
    }
    return c;
}

// Channel and tap of a term; the channel is beyond the last one's where there is no such term.
static __device__ __forceinline__ void term_of(const nn_conv_product &p, int k, int *channel, int *tap)
{
    const int u = (int)__umulhi((unsigned)k, p.magic), v = k - u * p.inner;
    *channel = p.taps_inside ? u : v;
    *tap = p.taps_inside ? v : u;
}

static __device__ __forceinline__ void bring(float *to, const nn_vector &from, long long at, bool valid)
{
    if (from.type == NN_F32) copy_async_4(to, (const float *)from.data + (valid ? at : 0), valid);
    else *to = valid ? load(from.data, from.type, at) : 0;
}

// Terms k .. k + TERMS - 1.
template <int SIDE>
static __device__ __forceinline__ void bring_step(const nn_conv_args &a, const carrier<SIDE> &c, int k, float *w, float *x)
{
    const nn_conv_product &p = a.product;
    int channel, tap;
    term_of(p, k + c.w_term, &channel, &tap);
    const long long from = channel * a.weight.strides[1] + (long long)tap * p.merged * a.weight.strides[2];
#pragma unroll
    for (int j = 0; j < 4; j++)
        bring(w + c.w_term * (SIDE + 4) + c.w_row + SIDE / 4 * j, {a.weight.data, a.weight.type}, c.weights[j] + from,
              channel < a.inputs && tap < c.n_taps[j]);
    term_of(p, k + c.x_term, &channel, &tap);
    const long long line = c.x + channel * a.x.strides[1];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int at = c.at[j] + tap * p.at_step;
        bring(x + c.x_term * (SIDE + 4) + c.x_position + SIDE / 4 * j, {a.x.data, a.x.type}, line + at,
              channel < a.inputs && tap < p.n_taps && (unsigned)at < (unsigned)a.length);
    }
    copy_async_commit();
}

// Threads 16 y + x: rows 8 y .., positions 4 x .. of each 64.
template <int SIDE>
static __device__ __forceinline__ void add_terms(const float *w, const float *x, float (*sums)[SIDE / 16])
{
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int k = 0; k < TERMS; k++) {
        float v[8], y[SIDE / 16];
#pragma unroll
        for (int i = 0; i < 8; i += 4) *(float4 *)(v + i) = *(const float4 *)(w + k * (SIDE + 4) + 8 * ty + i);
#pragma unroll
        for (int i = 0; i < SIDE / 16; i += 4) *(float4 *)(y + i) = *(const float4 *)(x + k * (SIDE + 4) + 16 * i + 4 * tx);
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < SIDE / 16; j++) sums[i][j] += v[i] * y[j];
    }
}

template <int SIDE, int SPLITS> static __device__ __forceinline__ void conv_f32(const nn_conv_args &a)
{
    constexpr int stage = TERMS * (SIDE + 4);
    __shared__ float4 memory[2 * STAGES * stage / 4]; // weights, x; then 64 rows of sums
    float *const w = (float *)memory, *const x = w + STAGES * stage;
    const tile t = tile_of<SIDE, SPLITS>(a);
    const int steps = (a.inputs * a.product.n_taps + TERMS - 1) / TERMS;
    const int begin = steps * t.split / SPLITS, end = steps * (t.split + 1) / SPLITS;
    float sums[8][SIDE / 16] = {};
    let_next_begin();
    wait_for_earlier();
    const carrier<SIDE> c = carrier_of<SIDE>(a, t);
    for (int s = begin; s < begin + STAGES - 1; s++)
        if (s < end) bring_step<SIDE>(a, c, s * TERMS, w + (s - begin) * stage, x + (s - begin) * stage);
        else copy_async_commit();
    for (int s = begin; s < end; s++) {
        const int now = (s - begin) % STAGES, next = (s - begin + STAGES - 1) % STAGES;
        copy_async_wait<STAGES - 2>();
        __syncthreads(); // the step's terms are there, and those of the step before were used by all
        if (s + STAGES - 1 < end) bring_step<SIDE>(a, c, (s + STAGES - 1) * TERMS, w + next * stage, x + next * stage);
        else copy_async_commit();
        add_terms<SIDE>(w + now * stage, x + now * stage, sums);
    }
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (int first = 0; first < SIDE; first += 64) {
        __syncthreads();
        if (8 * ty >= first && 8 * ty < first + 64) {
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < SIDE / 16; j += 4)
                    *(float4 *)(w + (8 * ty - first + i) * (SIDE + 4) + 16 * j + 4 * tx) = *(const float4 *)(sums[i] + j);
        }
        finish<SIDE, SPLITS, 2 * SIDE, 64>(a, t, w, first);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) nn_conv_f32(nn_conv_args a) { conv_f32<128, 1>(a); }
extern "C" __global__ void __launch_bounds__(128, 4) nn_conv_f32_small(nn_conv_args a) { conv_f32<64, 1>(a); }
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(128, 4) nn_conv_f32_split(nn_conv_args a)
{
    conv_f32<64, SPLITS_MOST>(a);
}
