// Polyphase resampling of [n_lines][n_in] to [n_lines][n_out]. blockIdx.y is the line.
//
// resample_tile: phases that come again after a few hundred outputs. A warp makes one block of RESAMPLE_PHASES
// neighbouring outputs of 32 RESAMPLE_REPEAT periods: its taps are the same for all lanes, one 16-byte read for four,
// and each input frame, from shared memory, is multiplied by all of them. Lanes lie a period apart, rows of an odd
// pitch: no two meet in a bank. Outputs pass through shared memory, so that they are written in runs.
//
// resample_exact: every phase has its own taps, where a tile does not fit. A thread makes WT_RESAMPLE_REPEAT outputs
// `stride` apart, which share their phase: one tap is read for eight products. Neighbouring threads make neighbouring
// outputs, so taps (laid out in the outputs' order) and inputs are read side by side; both come from the L1 cache,
// where a block's inputs stay while k runs. resample_blend: any ratio; one output a thread, each tap a cubic of four
// columns.
//
// _wide has taps and sums in double (150 dB needs them), the others in float.
// Judge: resample_ref.c, 140 dB wide, 110 dB else (float sums in another order).
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

template <typename T> static __device__ void blend(const wt_resample_args &a)
{
    const long long n = (long long)blockIdx.x * WT_RESAMPLE_THREADS + threadIdx.x;
    if (n >= a.n_out) return;

    const float *in = a.in + (long long)blockIdx.y * a.n_in;
    const long long time = n * a.numerator, first = time / a.denominator - a.before;
    const double at = (double)(time % a.denominator) / (double)a.denominator * a.n_phases;
    const int row = (int)at;
    const double w = at - row;
    const T w0 = (T)(-w * (w - 1) * (w - 2) / 6), w1 = (T)((w + 1) * (w - 1) * (w - 2) / 2);
    const T w2 = (T)(-(w + 1) * w * (w - 2) / 2), w3 = (T)((w + 1) * w * (w - 1) / 6);
    T sum = 0;
    for (int k = 0; k < a.n_taps; k++) {
        if (first + k < 0 || first + k >= a.n_in) continue;
        const T *t = (const T *)a.taps + (long long)k * a.n_columns + row;
        sum += (w0 * t[0] + w1 * t[1] + w2 * t[2] + w3 * t[3]) * (T)__ldg(in + first + k);
    }
    a.out[(long long)blockIdx.y * a.n_out + n] = (float)sum;
}

// ---- tiles

#ifndef RESAMPLE_PHASES
#    define RESAMPLE_PHASES 8
#endif
#ifndef RESAMPLE_REPEAT
#    define RESAMPLE_REPEAT 4
#endif

extern __shared__ float tile_shared[];

enum { TILE_PERIODS = 32 * RESAMPLE_REPEAT, TILE_COLUMNS = WT_RESAMPLE_COLUMNS, TILE_PITCH = RESAMPLE_PHASES | 1 };

static __device__ __forceinline__ void read_columns(const float *taps, float *column)
{
    const float4 a = __ldg((const float4 *)taps), b = __ldg((const float4 *)taps + 1);
    column[0] = a.x, column[1] = a.y, column[2] = a.z, column[3] = a.w;
    column[4] = b.x, column[5] = b.y, column[6] = b.z, column[7] = b.w;
}

static __device__ __forceinline__ void read_columns(const double *taps, double *column)
{
#pragma unroll
    for (int p = 0; p < TILE_COLUMNS; p += 2) {
        const double2 a = __ldg((const double2 *)taps + p / 2);
        column[p] = a.x, column[p + 1] = a.y;
    }
}

// The sums of one lane: window frames from `x` on, those of the next repeats 32 rows further.
template <typename T>
static __device__ __forceinline__ void tile_sums(const wt_resample_tile_args &a, const float *x, const T *taps,
                                                 int pitch, int column, T (&sum)[RESAMPLE_REPEAT][RESAMPLE_PHASES])
{
    for (int done = 0; done < a.window; column = 0, x += pitch) {
        const int run = a.step - column < a.window - done ? a.step - column : a.window - done;
        const float *from = x + column;
#pragma unroll 4
        for (int i = 0; i < run; i++, taps += TILE_COLUMNS) {
            T tap[TILE_COLUMNS];
            read_columns(taps, tap);
#pragma unroll
            for (int r = 0; r < RESAMPLE_REPEAT; r++) {
                const T value = (T)from[r * 32 * pitch + i];
#pragma unroll
                for (int p = 0; p < RESAMPLE_PHASES; p++) sum[r][p] += tap[p] * value;
            }
        }
        done += run;
    }
}

template <typename T> static __device__ __forceinline__ void tile(const wt_resample_tile_args &a)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32, pitch = a.step | 1;
    const int periods = a.groups * TILE_PERIODS, rows = wt__resample_tile_rows(periods, a.step, a.window);
    const long long first = (long long)blockIdx.x * periods, begin = first * a.step - a.before;
    const float *in = a.in + (long long)blockIdx.y * a.n_in;
    float *out = a.out + (long long)blockIdx.y * a.n_out, *own = tile_shared + rows * pitch + warp * 32 * TILE_PITCH;
    for (int row = warp; row < rows; row += n_warps)
        for (int c = lane; c < a.step; c += 32) {
            const long long at = begin + (long long)row * a.step + c;
            tile_shared[row * pitch + c] = at >= 0 && at < a.n_in ? __ldg(in + at) : 0;
        }
    __syncthreads();
    for (int w = warp; w < a.units * a.groups; w += n_warps) {
        const int u = w % a.units, from = w / a.units * TILE_PERIODS;
        T sum[RESAMPLE_REPEAT][RESAMPLE_PHASES] = {};
        tile_sums(a, tile_shared + (from + lane) * pitch, (const T *)a.taps + (long long)u * a.window * TILE_COLUMNS,
                  pitch, wt__resample_tile_begin(a.numerator, a.denominator, RESAMPLE_PHASES, u), sum);
#pragma unroll
        for (int r = 0; r < RESAMPLE_REPEAT; r++) {
#pragma unroll
            for (int p = 0; p < RESAMPLE_PHASES; p++) own[lane * TILE_PITCH + p] = (float)sum[r][p];
            __syncwarp();
            for (int i = lane; i < 32 * RESAMPLE_PHASES; i += 32) {
                const int period = i / RESAMPLE_PHASES, p = i % RESAMPLE_PHASES;
                const long long n = ((first + from + r * 32 + period) * a.units + u) * RESAMPLE_PHASES + p;
                if (n < a.n_out) out[n] = own[period * TILE_PITCH + p];
            }
            __syncwarp();
        }
    }
}

extern "C" __global__ void resample_exact(wt_resample_args a) { exact<float>(a); }
extern "C" __global__ void resample_exact_wide(wt_resample_args a) { exact<double>(a); }
extern "C" __global__ void resample_blend(wt_resample_args a) { blend<float>(a); }
extern "C" __global__ void resample_blend_wide(wt_resample_args a) { blend<double>(a); }
extern "C" __global__ void __launch_bounds__(320) resample_tile(wt_resample_tile_args a) { tile<float>(a); }
extern "C" __global__ void __launch_bounds__(320) resample_tile_wide(wt_resample_tile_args a) { tile<double>(a); }
