// Griffin and Lim's iteration for batches of magnitudes, compiled for one SPECTRUM_N:
//
//   griffin_lim_begin   magnitudes and random phases to signals
//   griffin_lim_step    signals to signals: transform, phases, and back. Of spectra only R goes to memory
//
// Blocks go along lines by spectrum_walk: transform in shared memory, each bin brought to its magnitude in place,
// transform back. Frames before a block's own are its neighbour's too, which alone writes their R, so R is read from
// one buffer and written to another; with the magnitudes it is asked for before a transform and is there behind it.
// Judge: the CPU's, 5e-6 of the peak after two iterations; more of them magnify rounding.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "griffin_lim_kernel.h"
#include "mma.cuh"

extern __shared__ float2 all_shared[];

// What a bin is to be multiplied by, also where its square is a denormal number or 0.
static __device__ __noinline__ float faint(float magnitude, float square)
{
    return magnitude / (sqrtf(square) + 1.17549435e-38f);
}

// R, at `at` of the spectra, to A; keeps R when the frame is the block's own.
static __device__ __forceinline__ float2 turn(const wt_griffin_lim_args &a, float2 r, long long at, float2 before,
                                              float magnitude, bool own)
{
    const float2 x = make_float2(r.x - a.momentum * before.x, r.y - a.momentum * before.y);
    if (a.after && own) ((float2 *)a.after)[at] = r;
    const float square = x.x * x.x + x.y * x.y;
    return fft_scale(x, square > 1e-30f ? magnitude * rsqrtf(square) : faint(magnitude, square));
}

// Where a pair of frames lies: rows of R and of magnitudes, and which of both frames there are.
struct pair_place {
    long long row, magnitudes;
    bool there[2];
};

static __device__ __forceinline__ pair_place place_of(const wt_griffin_lim_args &a, long long line, int t)
{
    return {(line * a.frames.n_frames + t) * SPECTRUM_BINS,
            (line * a.stored_frames + t) * SPECTRUM_BINS,
            {t < a.frames.n_frames, t + 1 < a.frames.n_frames}};
}

// Asked for before the transform and there after it: what belongs to the bins that spectrum_give gives this thread, in
// their order. Only the thread that asked reads it.
struct staged {
    float2 before[SPECTRUM_LAST][2][SPECTRUM_THREADS];
    float magnitude[SPECTRUM_LAST][2][SPECTRUM_THREADS];
};
enum { STAGED = wt__griffin_lim_staged(SPECTRUM_N) > 0 };
static_assert(!STAGED || sizeof(staged) == wt__griffin_lim_staged(SPECTRUM_N), "what the host asks for");

static __device__ __forceinline__ void ask(const wt_griffin_lim_args &a, const pair_place &p, int thread, staged &s)
{
    constexpr int S = SPECTRUM_N / SPECTRUM_LAST;
#pragma unroll
    for (int i = 0; i < SPECTRUM_LAST; i++)
#pragma unroll
        for (int f = 0; f < 2; f++) {
            const int k = (i % 2 ? thread ? S - thread : S / 2 : thread) + i / 2 * S + f * SPECTRUM_BINS;
            if (p.there[f] && a.before)
                copy_async_8(&s.before[i][f][thread], (const float2 *)a.before + p.row + k, true);
            if (p.there[f]) copy_async_4(&s.magnitude[i][f][thread], a.magnitude + p.magnitudes + k, true);
        }
    copy_async_commit();
}

// Bin k of one of both frames, the thread's i-th.
static __device__ __forceinline__ float2 turn_bin(const wt_griffin_lim_args &a, const pair_place &p, const staged &s,
                                                  int i, int f, int k, float2 r, bool own)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, at = k + f * SPECTRUM_BINS;
    float2 before = make_float2(0, 0);
    if (!p.there[f]) return before;
    if (STAGED && i < SPECTRUM_LAST) {
        if (a.before) before = s.before[i][f][thread];
        return turn(a, r, p.row + at, before, s.magnitude[i][f][thread], own);
    }
    if (a.before) before = __ldg((const float2 *)a.before + p.row + at);
    return turn(a, r, p.row + at, before, __ldg(a.magnitude + p.magnitudes + at), own);
}

static __device__ __forceinline__ float2 first_phase(const wt_griffin_lim_args &a, int t, int k, float magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    float re = 1, im = 0;
    if (!a.zero_phase) sincosf((float)angle, &im, &re);
    return make_float2(magnitude * re, magnitude * im);
}

static __device__ __forceinline__ void give(const wt_griffin_lim_args &a, long long line, long long from, int i,
                                            float sum)
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
    // Behind the points and the ring, of which there is one where sums are not kept: an even number of floats.
    staged &s = *(staged *)((float *)(all_shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS) + (a.walk.ring + 1) / 2 * 2);
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, bool own, int thread, float2 *points) {
            const pair_place p = place_of(a, line, t);
            if (STAGED) ask(a, p, thread, s);
            int i = 0;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              if (STAGED && !i) copy_async_wait<0>();
                              x = turn_bin(a, p, s, i, 0, k, x, own);
                              y = turn_bin(a, p, s, i, 1, k, y, own);
                              spectrum_put_pair(points, k, x, y);
                              i++;
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum); });
}
