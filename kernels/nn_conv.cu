// Convolution along time, plain, strided, dilated, in groups and transposed: all as plain ones (nn_kernel.h, nn_phase).
// Grid: tiles of positions; tiles of outputs of each group; phases of each n.
//
//   nn_conv_few   a thread an output: groups of few outputs (depthwise), and windows that no block can hold
//   nn_conv_f32   a block 16 OUTPUTS x 64 positions, a thread OUTPUTS x 4; any types
//   nn_conv_f16, nn_conv_bf16  a block 128 outputs x 64 positions on tensor cores, four warps of 64 x 32, for x and
//                 weights of one type
//
// A block takes the window of x that its positions touch, some channels at a time, and the weights of those channels for
// up to TAPS taps, to shared memory; every element of x is read once a tile of outputs. In 16 bits the window lies
// transposed, [position][channel], so that any stride and dilation is a distance between rows.
// Judge: the CPU's (models/nn_conv.c), and torch.
#include "nn.cuh"

#define POSITIONS 64
#define TAPS      8 // as in models/nn_conv.c, like the numbers of channels

struct tile {
    nn_phase phase;
    long long position; // the first, of the phase
    int n, group, output;
};

static __device__ __forceinline__ tile tile_of(const nn_conv_args &a, int outputs_a_tile)
{
    const int tiles = (a.outputs + outputs_a_tile - 1) / outputs_a_tile;
    tile t;
    t.phase = nn_phase_of(&a, (int)blockIdx.z % a.phases);
    t.n = (int)blockIdx.z / a.phases;
    t.group = (int)blockIdx.y / tiles;
    t.output = (int)blockIdx.y % tiles * outputs_a_tile;
    t.position = (long long)blockIdx.x * POSITIONS;
    return t;
}

static __device__ __forceinline__ float x_at(const nn_conv_args &a, const tile &t, int channel, long long at)
{
    if (channel >= a.inputs || at < 0 || at >= a.length) return 0;
    return load(a.x.data, a.x.type,
                t.n * a.x.strides[0] + ((long long)t.group * a.inputs + channel) * a.x.strides[1] + at);
}

static __device__ __forceinline__ long long weight_at(const nn_conv_args &a, int group, int output, int channel, int tap)
{
    return group * a.next_group + output * a.weight.strides[0] + channel * a.weight.strides[1] + tap * a.weight.strides[2];
}

static __device__ __forceinline__ void put(const nn_conv_args &a, const tile &t, int output, long long position, float sum)
{
    if (output >= a.outputs || position >= t.phase.n) return;
    const long long channel = (long long)t.group * a.outputs + output, at = t.phase.first + position * t.phase.step;
    float y = after(a.after, sum + load_or(a.bias, channel, 0), channel);
    if (a.residual.data)
        y += load(a.residual.data, a.residual.type, t.n * a.residual.strides[0] + channel * a.residual.strides[1] + at);
    store(a.out.data, a.out.type, t.n * a.out.strides[0] + channel * a.out.strides[1] + at, y);
}

extern "C" __global__ void __launch_bounds__(256) nn_conv_few(nn_conv_args a)
{
    tile t = tile_of(a, 4);
    const nn_phase &p = t.phase;
    const long long position = t.position + threadIdx.x % POSITIONS;
    const int output = t.output + (int)threadIdx.x / POSITIONS;
    if (output >= a.outputs || position >= p.n) return;
    float sum = 0;
    for (int c = 0; c < a.inputs; c++)
        for (int i = 0; i < p.n_taps; i++)
            sum += load(a.weight.data, a.weight.type, weight_at(a, t.group, output, c, p.tap + i * p.tap_step)) *
                   x_at(a, t, c, p.at + (long long)i * p.at_step + position * p.x_step);
    put(a, t, output, position, sum);
}

// Taps first .. first + n - 1 of a tile: where their window begins, its length, and where tap i lies in it.
struct window {
    long long begin;
    int length, first, n;
};

static __device__ __forceinline__ window window_of(const tile &t, int first)
{
    const nn_phase &p = t.phase;
    window w;
    w.first = first;
    w.n = min(TAPS, p.n_taps - first);
    const int last = first + w.n - 1, low = p.at_step < 0 ? last : first;
    w.begin = p.at + (long long)low * p.at_step + t.position * p.x_step;
    w.length = (POSITIONS - 1) * p.x_step + (w.n - 1) * (p.at_step < 0 ? -p.at_step : p.at_step) + 1;
    return w;
}

static __device__ __forceinline__ int place_of(const tile &t, const window &w, int i)
{
    return t.phase.at_step < 0 ? (w.n - 1 - i) * -t.phase.at_step : i * t.phase.at_step;
}

// ---- float

#define CHANNELS 8

// OUTPUTS of a channel's tap, for positions 16 apart.
template <int OUTPUTS>
static __device__ __forceinline__ void add_tap(const float *weights, const float *x, int step, float (*sums)[4])
{
    float y[4];
#pragma unroll
    for (int j = 0; j < 4; j++) y[j] = x[16 * j * step];
#pragma unroll
    for (int o = 0; o < OUTPUTS; o += 4) {
        const float4 v = *(const float4 *)(weights + o);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            sums[o][j] += v.x * y[j];
            sums[o + 1][j] += v.y * y[j];
            sums[o + 2][j] += v.z * y[j];
            sums[o + 3][j] += v.w * y[j];
        }
    }
}

template <int OUTPUTS> static __device__ __forceinline__ void conv_f32(const nn_conv_args &a)
{
    extern __shared__ float4 memory_f32[];
    float *shared = (float *)memory_f32;
    constexpr int pitch = 16 * OUTPUTS + 4;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const tile t = tile_of(a, 16 * OUTPUTS);
    if (t.position >= t.phase.n) return;
    float *weights = shared, *x = shared + CHANNELS * TAPS * pitch, sums[OUTPUTS][4] = {};
    for (int first = 0; first < t.phase.n_taps; first += TAPS) {
        const window w = window_of(t, first);
        for (int channel = 0; channel < a.inputs; channel += CHANNELS) {
            __syncthreads(); // the last ones have been used
            const int each = CHANNELS * w.n;
            for (int e = threadIdx.x; e < 16 * OUTPUTS * each; e += 256) {
                const int output = e / each, c = e % each / w.n, i = e % w.n;
                const bool is_there = t.output + output < a.outputs && channel + c < a.inputs;
                weights[e % each * pitch + output] =
                    is_there ? load(a.weight.data, a.weight.type,
                                    weight_at(a, t.group, t.output + output, channel + c,
                                              t.phase.tap + (first + i) * t.phase.tap_step))
                             : 0;
            }
            for (int e = threadIdx.x; e < CHANNELS * w.length; e += 256)
                x[e] = x_at(a, t, channel + e / w.length, w.begin + e % w.length);
            __syncthreads();
            for (int c = 0; c < CHANNELS; c++)
                for (int i = 0; i < w.n; i++)
                    add_tap<OUTPUTS>(weights + (c * w.n + i) * pitch + ty * OUTPUTS,
                                     x + c * w.length + place_of(t, w, i) + tx * t.phase.x_step, t.phase.x_step, sums);
        }
    }
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
        for (int j = 0; j < 4; j++) put(a, t, t.output + ty * OUTPUTS + o, t.position + tx + 16 * j, sums[o][j]);
}

extern "C" __global__ void __launch_bounds__(256) nn_conv_f32(nn_conv_args a)
{
    if (a.wide) conv_f32<8>(a);
    else conv_f32<4>(a);
}

// ---- tensor cores

#define OUTPUTS16  128
#define CHANNELS16 32
#define PITCH      (CHANNELS16 + 8) // elements of a row: rows side by side lie in other banks

// Weights of the window's taps, [tap][output][channel].
static __device__ __forceinline__ void fetch_weights(const nn_conv_args &a, const tile &t, const window &w, int channel,
                                                     unsigned short *to)
{
    if (a.packs) {
        for (int e = threadIdx.x; e < w.n * OUTPUTS16 * (CHANNELS16 / 8); e += 128) {
            const int c = e % (CHANNELS16 / 8) * 8, row = e / (CHANNELS16 / 8), output = t.output + row % OUTPUTS16;
            const int tap = t.phase.tap + (w.first + row / OUTPUTS16) * t.phase.tap_step;
            const bool valid = output < a.outputs && channel + c < a.inputs;
            const long long at = weight_at(a, t.group, valid ? output : 0, valid ? channel + c : 0, tap);
            copy_async_16(to + row * PITCH + c, (const unsigned short *)a.weight.data + at, valid);
        }
        copy_async_commit();
        return;
    }
    const int each = CHANNELS16 * w.n;
    for (int e = threadIdx.x; e < OUTPUTS16 * each; e += 128) {
        const int output = e / each, c = e % each / w.n, i = e % w.n;
        const bool valid = t.output + output < a.outputs && channel + c < a.inputs;
        const int tap = t.phase.tap + (w.first + i) * t.phase.tap_step;
        to[(i * OUTPUTS16 + output) * PITCH + c] =
            valid ? ((const unsigned short *)a.weight.data)[weight_at(a, t.group, t.output + output, channel + c, tap)] : 0;
    }
}

// The window, [position][channel], two channels a store.
static __device__ __forceinline__ void fetch_window(const nn_conv_args &a, const tile &t, const window &w, int channel,
                                                    unsigned short *to)
{
    const unsigned short *x = (const unsigned short *)a.x.data + t.n * a.x.strides[0] +
                              ((long long)t.group * a.inputs + channel) * a.x.strides[1] + w.begin;
    for (int e = threadIdx.x; e < CHANNELS16 / 2 * w.length; e += 128) {
        const int c = e / w.length * 2, p = e % w.length;
        const bool inside = w.begin + p >= 0 && w.begin + p < a.length;
        const unsigned low = inside && channel + c < a.inputs ? x[c * a.x.strides[1] + p] : 0;
        const unsigned high = inside && channel + c + 1 < a.inputs ? x[(c + 1) * a.x.strides[1] + p] : 0;
        *(unsigned *)(to + p * PITCH + c) = low | high << 16;
    }
}

template <bool BF16>
static __device__ __forceinline__ void multiply(const tile &t, const window &w, const unsigned short *weights,
                                                const unsigned short *x, float (*sums)[4][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8;
    const unsigned short *a_row = weights + (warp / 2 * 64 + lane % 16) * PITCH + lane / 16 * 8;
    const int position = warp % 2 * 32 + matrix / 2 * 8 + lane % 8;
    for (int i = 0; i < w.n; i++) {
        const int place = place_of(t, w, i);
#pragma unroll
        for (int k = 0; k < CHANNELS16; k += 16) {
            unsigned b[2][4];
#pragma unroll
            for (int n = 0; n < 2; n++)
                load_matrices(b[n], x + (place + (position + 16 * n) * t.phase.x_step) * PITCH + k + matrix % 2 * 8);
#pragma unroll
            for (int m = 0; m < 4; m++) {
                unsigned own[4];
                load_matrices(own, a_row + (i * OUTPUTS16 + 16 * m) * PITCH + k);
#pragma unroll
                for (int n = 0; n < 4; n++)
                    if (BF16) mma_bf16(sums[m][n], own, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                    else mma_f16(sums[m][n], own, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
            }
        }
    }
}

template <bool BF16> static __device__ __forceinline__ void conv_16(const nn_conv_args &a)
{
    extern __shared__ uint4 memory[];
    const tile t = tile_of(a, OUTPUTS16);
    if (t.position >= t.phase.n) return;
    unsigned short *weights = (unsigned short *)memory, *x = weights + min(TAPS, a.taps) * OUTPUTS16 * PITCH;
    float sums[4][4][4] = {};
    for (int first = 0; first < t.phase.n_taps; first += TAPS) {
        const window w = window_of(t, first);
        for (int channel = 0; channel < a.inputs; channel += CHANNELS16) {
            __syncthreads(); // the last ones have been used
            fetch_weights(a, t, w, channel, weights);
            fetch_window(a, t, w, channel, x);
            copy_async_wait<0>();
            __syncthreads();
            multiply<BF16>(t, w, weights, x, sums);
        }
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                put(a, t, t.output + warp / 2 * 64 + 16 * m + lane / 4 + c / 2 * 8,
                    t.position + warp % 2 * 32 + 8 * n + lane % 4 * 2 + c % 2, sums[m][n][c]);
}

extern "C" __global__ void __launch_bounds__(128) nn_conv_f16(nn_conv_args a) { conv_16<false>(a); }
extern "C" __global__ void __launch_bounds__(128) nn_conv_bf16(nn_conv_args a) { conv_16<true>(a); }
