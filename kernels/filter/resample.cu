// Polyphase resampling of [n_lines][n_in] to [n_lines][n_out]. blockIdx.y is the line, or 32 of them.
//
// resample_tile: phases that come again after a few hundred outputs. A warp makes one block of RESAMPLE_PHASES
// neighbouring outputs of 32 RESAMPLE_REPEAT periods: its taps are the same for all lanes, one 16-byte read for four,
// and each input frame, from shared memory, is multiplied by all of them. Lanes lie a period apart, rows of an odd
// pitch: no two meet in a bank. Outputs pass through shared memory, so that they are written in runs. Blocks go from
// tile to tile; where there is room they keep all taps in shared memory, else a warp's next 512 bytes of them are on
// their way while it works on those before.
//
// resample_exact: every phase has its own taps, where a tile does not fit. A thread makes WT_RESAMPLE_REPEAT outputs
// `stride` apart, which share their phase: one tap is read for eight products. Neighbouring threads make neighbouring
// outputs, so taps (laid out in the outputs' order) and inputs are read side by side; both come from the L1 cache,
// where a block's inputs stay while k runs.
//
// resample_blend: any ratio; each tap is a polynomial of four columns. A warp makes a few neighbouring outputs of 32
// lines: it blends their taps for 32 input frames, a lane a frame, then every lane multiplies them with its own line's
// frames.
//
// resample_ends, behind one of them: the first outputs, which have taps of their own, and silent ones at the end. A
// warp makes an output.
//
// _wide has taps and sums in double (150 dB needs them), the others in float.
// Judge: resample_ref.c, 140 dB wide, 110 dB else (float sums in another order).
#include "mma.cuh"
#include "resample_kernel.h"

template <typename T> static __device__ void exact(const wt_resample_args &a)
{
    const T *taps = (const T *)a.taps;
    const long long tiles = (a.stride + WT_RESAMPLE_THREADS - 1) / WT_RESAMPLE_THREADS;
    const long long column = blockIdx.x % tiles * WT_RESAMPLE_THREADS + threadIdx.x;
    const long long n = blockIdx.x / tiles * a.stride * WT_RESAMPLE_REPEAT + column;
    if (column >= a.stride || n >= a.n_out) return;

    const float *in = a.in + (long long)blockIdx.y * a.n_in;
    float *out = a.out + (long long)blockIdx.y * a.n_out;
    const long long first = n * a.numerator / a.denominator - a.before;
    const long long hop = a.stride / a.denominator * a.numerator;
    const int phase = (int)(n % a.denominator);
    T sum[WT_RESAMPLE_REPEAT] = {};
    if (first >= 0 && first + (WT_RESAMPLE_REPEAT - 1) * hop + a.n_taps <= a.n_in) {
        for (int k = 0; k < a.n_taps; k++) {
            const T tap = taps[(long long)k * a.n_columns + phase];
#pragma unroll
            for (int r = 0; r < WT_RESAMPLE_REPEAT; r++) sum[r] += tap * (T)__ldg(in + first + r * hop + k);
        }
    } else { // near an end of the line
        for (int k = 0; k < a.n_taps; k++) {
            const T tap = taps[(long long)k * a.n_columns + phase];
#pragma unroll
            for (int r = 0; r < WT_RESAMPLE_REPEAT; r++) {
                const long long at = first + r * hop + k;
                if (at >= 0 && at < a.n_in) sum[r] += tap * (T)__ldg(in + at);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < WT_RESAMPLE_REPEAT; r++)
        if (n + r * a.stride < a.n_out) out[n + r * a.stride] = (float)sum[r];
}

// ---- any ratio

enum {
    BLEND_OUTPUTS = WT_RESAMPLE_BLEND / WT_RESAMPLE_BLEND_WARPS, // of a warp
    BLEND_FRAMES = 32,                                           // input frames at once
    BLEND_PITCH = 36,                                            // of taps: a multiple of 16 bytes, room for outputs
};

template <typename T> struct blend_warp {
    T taps[BLEND_OUTPUTS][BLEND_PITCH];
    T weights[BLEND_OUTPUTS][4];    // of the columns from `column` on
    long long first[BLEND_OUTPUTS]; // input frame of the first tap
    int column[BLEND_OUTPUTS];
};

template <typename T> struct alignas(16) blend_taps {
    T v[16 / sizeof(T)];
};

// The weights at the time of output n.
template <typename T>
static __device__ __forceinline__ void blend_place(const wt_resample_args &a, long long n, int p, blend_warp<T> &own)
{
    const long long time = n * a.numerator;
    const double at = (double)(time % a.denominator) / (double)a.denominator * a.n_phases;
    const int row = (int)at;
    double weights[4];
    wt__resample_weights(a.order, at - row, weights);
    own.first[p] = time / a.denominator - a.before;
    own.column[p] = row;
#pragma unroll
    for (int i = 0; i < 4; i++) own.weights[p][i] = (T)weights[i];
}

// The warp's taps for input frames f .. f + 31, a lane a frame.
template <typename T>
static __device__ __forceinline__ void blend_columns(const wt_resample_args &a, long long f, blend_warp<T> &own)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < BLEND_OUTPUTS; p++) {
        const long long k = f + lane - own.first[p];
        const T *t = (const T *)a.taps + (long long)own.column[p] * a.n_taps + k, *w = own.weights[p];
        T tap = 0;
        if (k >= 0 && k < a.n_taps)
            tap = w[0] * __ldg(t) + w[1] * __ldg(t + a.n_taps) + w[2] * __ldg(t + 2 * a.n_taps) +
                  w[3] * __ldg(t + 3 * a.n_taps);
        own.taps[p][lane] = tap;
    }
}

template <typename T> static __device__ __forceinline__ void blend(const wt_resample_args &a)
{
    __shared__ blend_warp<T> all[WT_RESAMPLE_BLEND_WARPS];
    __shared__ float frames[BLEND_FRAMES][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = blockIdx.y * 32;
    const long long n = (long long)blockIdx.x * WT_RESAMPLE_BLEND, from = n + warp * BLEND_OUTPUTS;
    const long long begin = n * a.numerator / a.denominator - a.before;
    const long long end = (n + WT_RESAMPLE_BLEND - 1) * a.numerator / a.denominator - a.before + a.n_taps;
    blend_warp<T> &own = all[warp];
    T sum[BLEND_OUTPUTS] = {};
    if (lane < BLEND_OUTPUTS) blend_place(a, from + lane, lane, own);
    for (long long f = begin; f < end; f += BLEND_FRAMES) {
        const bool there = f + lane >= 0 && f + lane < a.n_in;
        __syncthreads();
        for (int l = warp; l < 32; l += WT_RESAMPLE_BLEND_WARPS)
            frames[lane][l] =
                there && line + l < a.n_lines ? __ldg(a.in + (line + l) * (long long)a.n_in + f + lane) : 0;
        __syncthreads();
        if (f + BLEND_FRAMES <= own.first[0] || f >= own.first[BLEND_OUTPUTS - 1] + a.n_taps) continue;
        blend_columns(a, f, own);
        __syncwarp();
#pragma unroll 4
        for (int i = 0; i < BLEND_FRAMES; i += 16 / sizeof(T)) {
            blend_taps<T> x;
#pragma unroll
            for (int k = 0; k < (int)(16 / sizeof(T)); k++) x.v[k] = (T)frames[i + k][lane];
#pragma unroll
            for (int p = 0; p < BLEND_OUTPUTS; p++) {
                const blend_taps<T> taps = *(const blend_taps<T> *)&own.taps[p][i];
#pragma unroll
                for (int k = 0; k < (int)(16 / sizeof(T)); k++) sum[p] += taps.v[k] * x.v[k];
            }
        }
        __syncwarp();
    }
    float *outputs = (float *)own.taps; // [32][OUTPUTS + 1]
    __syncwarp();
#pragma unroll
    for (int p = 0; p < BLEND_OUTPUTS; p++) outputs[lane * (BLEND_OUTPUTS + 1) + p] = (float)sum[p];
    __syncwarp();
    for (int i = lane; i < 32 * BLEND_OUTPUTS; i += 32) {
        const int l = i / BLEND_OUTPUTS, p = i % BLEND_OUTPUTS;
        if (line + l < a.n_lines && from + p < a.n_out)
            a.out[(line + l) * (long long)a.n_out + from + p] = outputs[l * (BLEND_OUTPUTS + 1) + p];
    }
}

// ---- tiles

#ifndef RESAMPLE_PHASES
#    define RESAMPLE_PHASES 8
#endif
#ifndef RESAMPLE_REPEAT
#    define RESAMPLE_REPEAT 4
#endif
#ifndef RESAMPLE_WARPS // of a block
#    define RESAMPLE_WARPS 10
#endif
#ifndef RESAMPLE_RESIDENT // blocks an SM is to hold
#    define RESAMPLE_RESIDENT 1
#endif
#ifndef RESAMPLE_KEPT // 1: a block keeps all taps in shared memory
#    define RESAMPLE_KEPT 0
#endif

extern __shared__ float tile_shared[];

enum {
    TILE_LOADS = 5,
    TILE_PERIODS = 32 * RESAMPLE_REPEAT,
    TILE_COLUMNS = WT_RESAMPLE_COLUMNS,
    TILE_PITCH = RESAMPLE_PHASES | 1
};

static __device__ __forceinline__ void read_columns(const float *taps, float *column)
{
    const float4 a = ((const float4 *)taps)[0], b = ((const float4 *)taps)[1];
    column[0] = a.x, column[1] = a.y, column[2] = a.z, column[3] = a.w;
    column[4] = b.x, column[5] = b.y, column[6] = b.z, column[7] = b.w;
}

static __device__ __forceinline__ void read_columns(const double *taps, double *column)
{
#pragma unroll
    for (int p = 0; p < TILE_COLUMNS; p += 2) {
        const double2 a = ((const double2 *)taps)[p / 2];
        column[p] = a.x, column[p + 1] = a.y;
    }
}

// A warp's way along the taps of one unit, 32 reads of 16 bytes at a time through `stage`; kept taps are read in place.
template <typename T> struct tile_taps {
    enum { STEPS = 32 * 16 / (TILE_COLUMNS * sizeof(T)) };
    const T *at;
    float4 *stage;
    const float4 *next, *end;
    float4 coming;
    int step;

    __device__ __forceinline__ void begin(const T *taps, int window, float *own)
    {
        at = taps, stage = (float4 *)own, step = 0;
        next = (const float4 *)taps + threadIdx.x % 32, end = (const float4 *)(taps + window * TILE_COLUMNS);
        if (!RESAMPLE_KEPT) fetch();
    }
    __device__ __forceinline__ void fetch()
    {
        if (next < end) coming = __ldg(next);
        next += 32;
    }
    __device__ __forceinline__ void read(T *column)
    {
        if (!RESAMPLE_KEPT && step == 0) {
            __syncwarp();
            stage[threadIdx.x % 32] = coming;
            __syncwarp();
            fetch();
        }
        read_columns(RESAMPLE_KEPT ? at : (const T *)stage + step * TILE_COLUMNS, column);
        at += TILE_COLUMNS;
        step = step + 1 == STEPS ? 0 : step + 1;
    }
};

// The sums of one lane: window frames from `x` on, those of the next repeats 32 rows further.
template <typename T>
static __device__ __forceinline__ void tile_sums(const wt_resample_tile_args &a, const float *x, tile_taps<T> taps,
                                                 int pitch, int column, T (&sum)[RESAMPLE_REPEAT][RESAMPLE_PHASES])
{
    for (int done = 0; done < a.window; column = 0, x += pitch) {
        const int run = a.step - column < a.window - done ? a.step - column : a.window - done;
        const float *from = x + column;
#pragma unroll 4
        for (int i = 0; i < run; i++) {
            T tap[TILE_COLUMNS];
            taps.read(tap);
#pragma unroll
            for (int r = 0; r < RESAMPLE_REPEAT; r++) {
                const T value = (T)from[r * 32 * pitch + i];
#pragma unroll
                for (int p = 0; p < RESAMPLE_PHASES; p++) sum[r][p] += tap[p] * value;
            }
        }
        done += run;
    }
    __syncwarp();
}

template <typename T>
static __device__ __forceinline__ void tile_write(const wt_resample_tile_args &a, const T *sum, float *own, float *out,
                                                  long long period, int u)
{
    constexpr int P = RESAMPLE_PHASES, ACROSS = 32 % P ? 1 : 32 / P; // periods that a warp writes at once
    const int lane = threadIdx.x % 32, row = a.units * P;
    const long long first = (period * a.units + u) * P;
    const bool whole = first + 31 * row + P <= a.n_out;
    float *const end = out + a.n_out;
    out += first;
#pragma unroll
    for (int p = 0; p < P; p++) own[lane * TILE_PITCH + p] = (float)sum[p];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < P; k++) {
        const int i = lane + 32 * k, later = 32 % P ? i / P : lane / P + k * ACROSS, p = 32 % P ? i % P : lane % P;
        const float value = own[later * TILE_PITCH + p];
        float *const to = out + later * row + p;
        if (whole)
            *to = value;
        else if (to < end)
            *to = value;
    }
    __syncwarp();
}

// Rows of input frames from `begin` on, on their way to shared memory.
static __device__ __forceinline__ void fetch_rows(const wt_resample_tile_args &a, long long line, long long begin,
                                                  int rows, int pitch, float *frames)
{
    const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
    const float *in = a.in + line * a.n_in + begin;
    const auto fetch = [&](auto there) {
        for (int row = threadIdx.x / 32; row < rows; row += n_warps) {
            const float *from = in + row * a.step + lane;
            float *to = frames + row * pitch + lane;
            for (int c = 0; c < a.step - lane; c += 32 * TILE_LOADS)
#pragma unroll
                for (int i = 0; i < TILE_LOADS; i++) {
                    const int at = c + 32 * i;
                    if (at < a.step - lane) copy_async_4(to + at, from + at, there(begin + row * a.step + lane + at));
                }
        }
    };
    if (begin >= 0 && begin + (long long)rows * a.step <= a.n_in)
        fetch([](long long) { return true; });
    else
        fetch([&](long long at) { return at >= 0 && at < a.n_in; });
    copy_async_commit();
}

// The same rows to the second-level cache, while the ones before are worked on.
static __device__ __forceinline__ void announce_rows(const wt_resample_tile_args &a, long long line, long long begin,
                                                     int rows)
{
    const float *in = a.in + line * a.n_in + begin;
    for (int i = threadIdx.x * 32; i < rows * a.step; i += blockDim.x * 32)
        if (begin + i >= 0 && begin + i < a.n_in) prefetch_global(in + i);
}

// Shared memory: the taps where they are kept, rows of input frames, and each warp's outputs, before them its stage.
template <typename T> static __device__ __forceinline__ void tile(const wt_resample_tile_args &a)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32, pitch = a.step | 1;
    const int periods = a.groups * TILE_PERIODS, rows = wt__resample_tile_rows(periods, a.step, a.window);
    const int of_unit = a.window * TILE_COLUMNS, n_kept = RESAMPLE_KEPT ? a.units * of_unit : 0;
    const T *taps = RESAMPLE_KEPT ? (const T *)tile_shared : (const T *)a.taps;
    float *frames = tile_shared + n_kept * (int)(sizeof(T) / sizeof(float));
    float *own = frames + wt__resample_tile_floats(rows, a.step) + warp * 32 * TILE_PITCH;
    for (int i = threadIdx.x; i < n_kept; i += blockDim.x) ((T *)tile_shared)[i] = ((const T *)a.taps)[i];
    for (int w = blockIdx.x; w < a.n_tiles * a.n_lines; w += gridDim.x) {
        const int next = w + gridDim.x;
        const long long line = w / a.n_tiles, first = w % a.n_tiles * (long long)periods,
                        begin = first * a.step - a.before;
        fetch_rows(a, line, begin, rows, pitch, frames);
        copy_async_wait<0>();
        __syncthreads();
        if (next < a.n_tiles * a.n_lines)
            announce_rows(a, next / a.n_tiles, next % a.n_tiles * (long long)periods * a.step - a.before, rows);
        for (int share = warp; share < a.units * a.groups; share += n_warps) {
            const int u = share % a.units, from = share / a.units * TILE_PERIODS;
            T sum[RESAMPLE_REPEAT][RESAMPLE_PHASES] = {};
            tile_taps<T> way;
            way.begin(taps + u * of_unit, a.window, own);
            tile_sums(a, frames + (from + lane) * pitch, way, pitch,
                      wt__resample_tile_begin(a.numerator, a.denominator, RESAMPLE_PHASES, u), sum);
#pragma unroll
            for (int r = 0; r < RESAMPLE_REPEAT; r++)
                tile_write(a, sum[r], own, a.out + line * a.n_out, first + from + r * 32, u);
        }
        __syncthreads();
    }
}

// ---- ends

// blockIdx.x: WT_RESAMPLE_END_WARPS outputs, first those of the start, then those behind n_heard.
extern "C" __global__ void __launch_bounds__(WT_RESAMPLE_END_WARPS * 32) resample_ends(wt_resample_args a)
{
    const int lane = threadIdx.x % 32, i = blockIdx.x * WT_RESAMPLE_END_WARPS + threadIdx.x / 32;
    const int n = i < a.n_start ? i : a.n_heard + i - a.n_start;
    if (n >= a.n_out) return;
    const float *in = a.in + (long long)blockIdx.y * a.n_in;
    const long long first = n * a.numerator / a.denominator - a.before;
    float sum = 0;
    for (int k = lane; n < a.n_heard && k < a.n_taps; k += 32) {
        const long long at = first + k;
        if (at >= 0 && at < a.n_in) sum += a.start[(long long)n * a.n_taps + k] * __ldg(in + at);
    }
    for (int way = 16; way; way /= 2) sum += __shfl_xor_sync(~0u, sum, way);
    if (lane == 0) a.out[(long long)blockIdx.y * a.n_out + n] = sum;
}

extern "C" __global__ void __launch_bounds__(WT_RESAMPLE_THREADS) resample_exact(wt_resample_args a) { exact<float>(a); }
extern "C" __global__ void __launch_bounds__(WT_RESAMPLE_THREADS) resample_exact_wide(wt_resample_args a) { exact<double>(a); }
extern "C" __global__ void __launch_bounds__(WT_RESAMPLE_BLEND_WARPS * 32) resample_blend(wt_resample_args a)
{
    blend<float>(a);
}
extern "C" __global__ void __launch_bounds__(WT_RESAMPLE_BLEND_WARPS * 32) resample_blend_wide(wt_resample_args a)
{
    blend<double>(a);
}
extern "C" __global__ void __launch_bounds__(32 * RESAMPLE_WARPS, RESAMPLE_RESIDENT)
    resample_tile(wt_resample_tile_args a)
{
    tile<float>(a);
}
extern "C" __global__ void __launch_bounds__(32 * RESAMPLE_WARPS, RESAMPLE_RESIDENT)
    resample_tile_wide(wt_resample_tile_args a)
{
    tile<double>(a);
}
