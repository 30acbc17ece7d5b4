// Griffin and Lim's iteration for batches of magnitudes, compiled for one SPECTRUM_N:
//
//   griffin_lim_begin   magnitudes and random phases to signals
//   griffin_lim_step    signals to signals: transform, phases, and back. No spectrum goes to memory
//
// The transform is linear, so R - c R_before is that of the signals' difference: y - c y_before is what a step reads
// and the next one's is what it writes, beside y itself. Blocks go along lines by spectrum_walk: transform in shared
// memory, each bin brought to its magnitude in place, transform back. Magnitudes are asked for before a transform and
// are there behind it. Judge: the CPU's, 5e-6 of the peak after two iterations; more of them magnify rounding.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "spectrum_overlap.cuh"
#include "griffin_lim_kernel.h"
#include "mma.cuh"

extern __shared__ float2 all_shared[];

// A bin brought to its magnitude, or below where its square would be a denormal number.
static __device__ __forceinline__ float2 turn(float2 x, float magnitude)
{
    const float square = fmaxf(x.x * x.x + x.y * x.y, 1.17549435e-38f);
    float by;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(square));
    return fft_scale(x, magnitude * by);
}

// Asked for before the transform and there after it: magnitudes of the bins that spectrum_give gives this thread, in
// their order; zeros of frames that there are not. Only the thread that asked reads it.
struct staged {
    float magnitude[SPECTRUM_LAST][2][SPECTRUM_THREADS];
};
enum { STAGED = wt__griffin_lim_staged(SPECTRUM_N) > 0, APART = SPECTRUM_N / SPECTRUM_LAST };
static_assert(!STAGED || sizeof(staged) == wt__griffin_lim_staged(SPECTRUM_N), "what the host asks for");

// A thread's bins go up from `thread` and from its mirror, APART from one to the next.
static __device__ __forceinline__ void ask(const wt_griffin_lim_args &a, const float *row, int t, int thread, staged &s)
{
    const float *at[2] = {row + thread, row + (thread ? APART - thread : APART / 2)};
    asm("" : "+l"(at[0]), "+l"(at[1])); // else each bin gets a 64-bit sum of its own in place of a constant offset
#pragma unroll
    for (int i = 0; i < SPECTRUM_LAST; i++)
#pragma unroll
        for (int f = 0; f < 2; f++)
            copy_async_4(&s.magnitude[i][f][thread], at[i % 2] + i / 2 * APART + f * SPECTRUM_BINS,
                         t + f < a.frames.n_frames);
    copy_async_commit();
}

static __device__ __forceinline__ float2 first_phase(const wt_griffin_lim_args &a, int t, int k, float magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    float re = 1, im = 0;
    if (!a.zero_phase) sincosf((float)angle, &im, &re);
    return make_float2(magnitude * re, magnitude * im);
}

// Sample from + i of the padded signal is done: y, and y - c y_before for the next step.
static __device__ __forceinline__ void give(const wt_griffin_lim_args &a, long long line, long long from, int i,
                                            float sum, float momentum)
{
    const long long at = line * a.walk.length + from - a.walk.margin + i;
    const float y = sum * __ldg(a.squares + from + i);
    if (a.next) a.next[at] = momentum != 0 ? y - momentum * a.out[at] : y;
    a.out[at] = y;
}

// The same of samples SPECTRUM_THREADS apart: all are read before one is written.
static __device__ __forceinline__ void give_all(const wt_griffin_lim_args &a, long long line, long long from,
                                                const float (&sums)[SPECTRUM_SAMPLES / 2])
{
    constexpr int SUMS = SPECTRUM_SAMPLES / 2;
    const long long at = line * a.walk.length + from - a.walk.margin;
    const float *squares = a.squares + from;
    float *out = a.out + at, y[SUMS], before[SUMS];
#pragma unroll
    for (int m = 0; m < SUMS; m++)
        y[m] = __ldg(squares + m * SPECTRUM_THREADS), before[m] = out[m * SPECTRUM_THREADS];
#pragma unroll
    for (int m = 0; m < SUMS; m++) out[m * SPECTRUM_THREADS] = y[m] *= sums[m];
    if (!a.next) return;
    float *next = a.next + at;
#pragma unroll
    for (int m = 0; m < SUMS; m++) next[m * SPECTRUM_THREADS] = y[m] - a.momentum * before[m];
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) griffin_lim_begin(wt_griffin_lim_args a)
{
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
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
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum, 0); });
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, wt__griffin_lim_resident(SPECTRUM_N))
    griffin_lim_step(wt_griffin_lim_args a)
{
    // Behind the points and the ring, of which there is one where sums are not kept: an even number of floats.
    staged &s = *(staged *)((float *)(all_shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS) + (a.walk.ring + 1) / 2 * 2);
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
            const float *row = a.magnitude + (line * a.stored_frames + t) * SPECTRUM_BINS;
            if (STAGED) ask(a, row, t, thread, s);
            int i = 0;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              if (STAGED && !i) copy_async_wait<0>();
                              const bool asked = STAGED && i < SPECTRUM_LAST;
                              const auto magnitude = [&](int f) {
                                  if (asked) return s.magnitude[i][f][thread];
                                  return t + f < a.frames.n_frames ? __ldg(row + k + f * SPECTRUM_BINS) : 0;
                              };
                              x = turn(x, magnitude(0)), y = turn(y, magnitude(1));
                              if (asked)
                                  spectrum_put_given(points, thread, i, x, y);
                              else
                                  spectrum_put_pair(points, k, x, y);
                              i++;
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum, a.momentum); },
        [&](long long line, long long from, const float(&sums)[SPECTRUM_SAMPLES / 2]) {
            give_all(a, line, from + threadIdx.x, sums);
        });
}
