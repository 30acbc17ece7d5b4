// nn_conv.cu for x and weights of one 16-bit type (-DBF16=1: bf16) on tensor cores.
//
//   nn_conv_16_128_s   a block 128 rows x 128 positions, four warps of 64 x 64; s blocks of a cluster share the
//   channels nn_conv_16_64_s    a block 64 x 64, warps of 32 x 32
//
// CHANNELS channels at a time: the window of x that the block's positions touch lies transposed, [position][channel],
// so that strides and taps are distances between rows; the next window is read while one is used. Weights of a tap come
// as [row][channel], three taps ahead of their use. Windows of too many taps come in chunks of them. Judge: the CPU's
// (models/nn_conv.c), and torch.
#include "nn_conv.cuh"

#ifndef BF16
#    define BF16 1
#endif
#define CHANNELS 32
#define PITCH    (CHANNELS + 8) // elements of a row: rows side by side lie in other banks
#define THREADS  128
#define STAGES   4
#define HELD     3 // parts of the next window in a thread's registers

// A tap of some channels; the windows of a block are numbered, chunks of taps outside, channels inside.
struct turn {
    int window, tap; // of the chunk
    int first, n;    // taps of the chunk
    int channel;
};

static __device__ __forceinline__ void begin_window(const nn_conv_args &a, turn *u, int window)
{
    const nn_conv_product &p = a.product;
    const int each = (a.inputs + CHANNELS - 1) / CHANNELS;
    u->window = window;
    u->tap = 0;
    u->first = window / each * p.chunk;
    u->n = min(p.chunk, p.n_taps - u->first);
    u->channel = window % each * CHANNELS;
}

static __device__ __forceinline__ void advance(const nn_conv_args &a, turn *u)
{
    if (++u->tap == u->n) begin_window(a, u, u->window + 1);
}

// ---- weights

template <int SIDE> struct rows_of_weights {
    long long at[SIDE / 32];
    int n_taps[SIDE / 32];
};

// A tap's weights, [row][channel]: thread 4 r + c has eight channels of rows r, r + 32 ..
template <int SIDE>
static __device__ __forceinline__ void bring_weights(const nn_conv_args &a, const rows_of_weights<SIDE> &rows,
                                                     const turn &u, unsigned short *to)
{
    const int c = threadIdx.x % 4 * 8, channel = u.channel + c, tap = u.first + u.tap;
    const long long from = channel * a.weight.strides[1] + (long long)tap * a.product.merged * a.weight.strides[2];
    const unsigned short *weights = (const unsigned short *)a.weight.data;
#pragma unroll
    for (int j = 0; j < SIDE / 32; j++) {
        unsigned short *own = to + (threadIdx.x / 4 + 32 * j) * PITCH + c;
        const bool valid = tap < rows.n_taps[j];
        if (a.product.w_packs) {
            const bool is_there = valid && channel < a.inputs;
            copy_async_16(own, weights + (is_there ? rows.at[j] + from : 0), is_there);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                own[i] = valid && channel + i < a.inputs ? weights[rows.at[j] + from + i * a.weight.strides[1]] : 0;
        }
    }
}

// ---- windows of x: parts of eight positions of two channels; part 16 e + c has channels 2 c and 2 c + 1

struct part {
    uint4 low, high;
};

struct span {                // of x, in a window; begins at a multiple of eight where packs are read
    int begin, place, parts; // place: row of the tile's first position and the chunk's first tap
};

template <int SIDE> static __device__ __forceinline__ span span_of(const nn_conv_args &a, const tile &t, const turn &u)
{
    const nn_conv_product &p = a.product;
    const int first = t.position * p.x_step + p.at + u.first * p.at_step,
              apart = p.at_step < 0 ? -p.at_step : p.at_step;
    const int low = p.at_step < 0 ? first - (u.n - 1) * apart : first;
    const int begin = low - (low & 7), length = low - begin + (SIDE - 1) * p.x_step + (u.n - 1) * apart + 1;
    span s = {begin, first - begin, (length + 7) / 8 * (CHANNELS / 2)};
    return s;
}

static __device__ __forceinline__ uint4 eight_of(const nn_conv_args &a, const unsigned short *x, int begin, bool valid)
{
    if (!valid || begin + 7 < 0 || begin >= a.length) return {0, 0, 0, 0};
    if (a.product.x_packs && begin >= 0 && begin + 7 < a.length) return *(const uint4 *)(x + begin);
    unsigned own[8];
#pragma unroll
    for (int i = 0; i < 8; i++) own[i] = begin + i >= 0 && begin + i < a.length ? x[begin + i] : 0;
    return {own[0] | own[1] << 16, own[2] | own[3] << 16, own[4] | own[5] << 16, own[6] | own[7] << 16};
}

static __device__ __forceinline__ part part_of(const nn_conv_args &a, const tile &t, const turn &u, const span &s,
                                               int number)
{
    const int channel = u.channel + number % (CHANNELS / 2) * 2, begin = s.begin + number / (CHANNELS / 2) * 8;
    const unsigned short *x = (const unsigned short *)a.x.data + t.n * a.x.strides[0] +
                              ((long long)t.group * a.inputs + channel) * a.x.strides[1];
    part own = {eight_of(a, x, begin, number < s.parts && channel < a.inputs),
                eight_of(a, x + a.x.strides[1], begin, number < s.parts && channel + 1 < a.inputs)};
    return own;
}

static __device__ __forceinline__ void put(const part &own, int number, unsigned short *window)
{
    unsigned *to = (unsigned *)(window + number / (CHANNELS / 2) * 8 * PITCH) + number % (CHANNELS / 2);
    const unsigned low[4] = {own.low.x, own.low.y, own.low.z, own.low.w};
    const unsigned high[4] = {own.high.x, own.high.y, own.high.z, own.high.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[2 * i * (PITCH / 2)] = __byte_perm(low[i], high[i], 0x5410);
        to[(2 * i + 1) * (PITCH / 2)] = __byte_perm(low[i], high[i], 0x7632);
    }
}

// ---- products

template <int SIDE>
static __device__ __forceinline__ void multiply(const nn_conv_args &a, int place, const unsigned short *weights,
                                                const unsigned short *x, float (*sums)[SIDE / 16][4])
{
    constexpr int side = SIDE / 2; // of a warp
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8, step = a.product.x_step;
    const unsigned short *row = weights + (warp / 2 * side + lane % 16) * PITCH + lane / 16 * 8;
    const unsigned short *column =
        x + (place + (warp % 2 * side + matrix / 2 * 8 + lane % 8) * step) * PITCH + matrix % 2 * 8;
#pragma unroll
    for (int k = 0; k < CHANNELS; k += 16) {
        unsigned b[side / 16][4];
#pragma unroll
        for (int n = 0; n < side / 16; n++) load_matrices(b[n], column + 16 * n * step * PITCH + k);
#pragma unroll
        for (int m = 0; m < side / 16; m++) {
            unsigned own[4];
            load_matrices(own, row + 16 * m * PITCH + k);
#pragma unroll
            for (int n = 0; n < side / 8; n++)
                if (BF16)
                    mma_bf16(sums[m][n], own, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                else
                    mma_f16(sums[m][n], own, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
        }
    }
}

// The block's sums to y, by way of shared memory, half of the rows at a time: those of two warps.
template <int SIDE, int SPLITS>
static __device__ __forceinline__ void finish_all(const nn_conv_args &a, const tile &t,
                                                  const float (*sums)[SIDE / 16][4], float *to)
{
    constexpr int some = SIDE / 2;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int first = 0; first < SIDE; first += some) {
        __syncthreads();
        if (warp / 2 * some == first) {
#pragma unroll
            for (int m = 0; m < SIDE / 32; m++)
#pragma unroll
                for (int n = 0; n < SIDE / 16; n++)
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        *(float2 *)(to + (16 * m + lane / 4 + 8 * h) * (SIDE + 4) + warp % 2 * some + 8 * n +
                                    lane % 4 * 2) = make_float2(sums[m][n][2 * h], sums[m][n][2 * h + 1]);
        }
        finish<SIDE, SPLITS, THREADS, some>(a, t, to, first);
    }
}

template <int SIDE>
static __device__ __forceinline__ rows_of_weights<SIDE> rows_of(const nn_conv_args &a, const tile &t)
{
    rows_of_weights<SIDE> rows;
#pragma unroll
    for (int j = 0; j < SIDE / 32; j++) {
        rows.at[j] = weights_of(a, t.row + threadIdx.x / 4 + 32 * j, &rows.n_taps[j]);
        rows.at[j] += t.group * a.next_group;
    }
    return rows;
}

template <int SIDE, int SPLITS> static __device__ __forceinline__ void conv_16(const nn_conv_args &a)
{
    extern __shared__ uint4 memory[];
    constexpr int stage = SIDE * PITCH;
    const nn_conv_product &p = a.product;
    unsigned short *const weights = (unsigned short *)memory, *const windows = weights + STAGES * stage;
    const tile t = tile_of<SIDE, SPLITS>(a);
    const int n_windows = (p.n_taps + p.chunk - 1) / p.chunk * ((a.inputs + CHANNELS - 1) / CHANNELS);
    const int end = n_windows * (t.split + 1) / SPLITS;
    float sums[SIDE / 32][SIDE / 16][4] = {};
    let_next_begin();
    wait_for_earlier();
    const rows_of_weights<SIDE> rows = rows_of<SIDE>(a, t);
    turn now, ahead; // `ahead` is STAGES - 1 taps in front, then of the next window
    begin_window(a, &now, n_windows * t.split / SPLITS);
    ahead = now;
    const int begin = now.window;
    if (begin < end) {
        const span s = span_of<SIDE>(a, t, now);
        for (int e = threadIdx.x; e < s.parts; e += THREADS) put(part_of(a, t, now, s, e), e, windows);
    }
    for (int i = 0; i < STAGES - 1; i++) {
        if (ahead.window < end) {
            bring_weights<SIDE>(a, rows, ahead, weights + i * stage);
            advance(a, &ahead);
        }
        copy_async_commit();
    }
    int slot = 0;
    while (now.window < end) {
        unsigned short *const x = windows + (now.window - begin) % 2 * p.window * PITCH;
        unsigned short *const other = windows + (now.window - begin + 1) % 2 * p.window * PITCH;
        const span own = span_of<SIDE>(a, t, now);
        turn next = now;
        begin_window(a, &next, now.window + 1);
        span after_this = own;
        if (next.window < end)
            after_this = span_of<SIDE>(a, t, next);
        else
            after_this.parts = 0;
        part held[HELD];
        for (; now.tap < now.n; now.tap++) {
            copy_async_wait<STAGES - 2>();
            __syncthreads(); // the tap's weights and its window are there, and those of the tap before were used by all
            if (ahead.window < end) {
                bring_weights<SIDE>(a, rows, ahead, weights + (slot + STAGES - 1) % STAGES * stage);
                advance(a, &ahead);
            }
            copy_async_commit();
            if (!now.tap) {
#pragma unroll
                for (int i = 0; i < HELD; i++) held[i] = part_of(a, t, next, after_this, threadIdx.x + i * THREADS);
            }
            multiply<SIDE>(a, own.place + now.tap * p.at_step, weights + slot * stage, x, sums);
            slot = (slot + 1) % STAGES;
        }
#pragma unroll
        for (int i = 0; i < HELD; i++)
            if (threadIdx.x + i * THREADS < after_this.parts) put(held[i], threadIdx.x + i * THREADS, other);
        for (int e = threadIdx.x + HELD * THREADS; e < after_this.parts; e += THREADS)
            put(part_of(a, t, next, after_this, e), e, other);
        now = next;
    }
    copy_async_wait<0>();
    finish_all<SIDE, SPLITS>(a, t, sums, (float *)memory);
}

#define KERNEL(side, splits, blocks)                                                                                   \
    extern "C" __global__ void CLUSTER_##splits __launch_bounds__(THREADS, blocks)                                     \
        nn_conv_16_##side##_##splits(const __grid_constant__ nn_conv_args a)                                           \
    {                                                                                                                  \
        conv_16<side, splits>(a);                                                                                      \
    }

KERNEL(128, 1, 2)
KERNEL(128, 2, 2)
KERNEL(64, 1, 3)
KERNEL(64, 4, 3)
