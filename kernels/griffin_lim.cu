// Griffin and Lim's iteration for batches of magnitudes, compiled for one SPECTRUM_N:
//
//   griffin_lim_begin   magnitudes and random phases to signals
//   griffin_lim_step    signals to signals: transform, phases, and back. Of spectra only R goes to memory
//
// Blocks go along lines by spectrum_walk: transform in shared memory, each bin brought to its magnitude in place,
// transform back. Frames before a block's own are its neighbour's too, which alone writes their R, so R is read from
// one buffer and written to another. Judge: the CPU's, 5e-6 of the peak after two iterations; more of them magnify
// rounding.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "griffin_lim_kernel.h"

extern __shared__ float2 all_shared[];

// What a bin is to be multiplied by, also where its square is a denormal number or 0.
static __device__ __noinline__ float faint(float magnitude, float square)
{
    return magnitude / (sqrtf(square) + 1.17549435e-38f);
}

// R, bin k of frame t at `at` of the spectra, to A; keeps R when the frame is the block's own.
static __device__ __forceinline__ float2 turn(const wt_griffin_lim_args &a, float2 r, long long at, float magnitude,
                                              bool own)
{
    float2 x = r;
    if (a.before) {
        const float2 before = __ldg((const float2 *)a.before + at);
        x = make_float2(r.x - a.momentum * before.x, r.y - a.momentum * before.y);
    }
    if (a.after && own) ((float2 *)a.after)[at] = r;
    const float square = x.x * x.x + x.y * x.y;
    return fft_scale(x, square > 1e-30f ? magnitude * rsqrtf(square) : faint(magnitude, square));
}

static __device__ __forceinline__ float2 first_phase(const wt_griffin_lim_args &a, int t, int k, float magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    float re = 1, im = 0;
    if (!a.zero_phase) sincosf((float)angle, &im, &re);
    return make_float2(magnitude * re, magnitude * im);
}

static __device__ __forceinline__ void give(const wt_griffin_lim_args &a, long long line, long long from, int i, float sum)
{
    a.out[line * a.walk.length + from - a.walk.margin + i] = sum * __ldg(a.squares + from + i);
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) griffin_lim_begin(wt_griffin_lim_args a)
{
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, bool, int thread, float2 *points) {
            const float *magnitude = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames;
            for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
                float2 x = make_float2(0, 0), y = x;
                if (first) x = first_phase(a, t, k, magnitude[k]);
                if (second) y = first_phase(a, t + 1, k, magnitude[SPECTRUM_BINS + k]);
                spectrum_put_pair(points, k, x, y);
            }
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum); });
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT_WIDE)
    griffin_lim_step(wt_griffin_lim_args a)
{
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, bool own, int thread, float2 *points) {
            const float *magnitude = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames;
            const long long row = (line * a.frames.n_frames + t) * SPECTRUM_BINS;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              const float *own_magnitude = magnitude + k;
                              x = first ? turn(a, x, row + k, __ldg(own_magnitude), own) : make_float2(0, 0);
                              y = second ? turn(a, y, row + SPECTRUM_BINS + k, __ldg(own_magnitude + SPECTRUM_BINS), own)
                                         : make_float2(0, 0);
                              spectrum_put_pair(points, k, x, y);
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum); });
}
