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

// A bin brought to its magnitude, also where its square is a denormal number or 0.
static __device__ __noinline__ float2 faint(float2 x, float magnitude)
{
    return fft_scale(x, magnitude / (sqrtf(x.x * x.x + x.y * x.y) + 1.17549435e-38f));
}

static __device__ __forceinline__ float square(float2 x) { return x.x * x.x + x.y * x.y; }

static __device__ __forceinline__ float2 bright(float2 x, float magnitude, float square)
{
    float by;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(square)); // no denormal comes here
    return fft_scale(x, magnitude * by);
}

// R of both frames, less what was before, to A.
static __device__ __forceinline__ void turn(float momentum, float2 (&r)[2], const float2 (&before)[2],
                                            const float (&magnitude)[2])
{
    float squares[2];
#pragma unroll
    for (int f = 0; f < 2; f++) {
        r[f] = make_float2(r[f].x - momentum * before[f].x, r[f].y - momentum * before[f].y);
        squares[f] = square(r[f]);
    }
    const bool plain = squares[0] > 1e-30f && squares[1] > 1e-30f;
#pragma unroll
    for (int f = 0; f < 2; f++) r[f] = plain ? bright(r[f], magnitude[f], squares[f]) : faint(r[f], magnitude[f]);
}

// Where a pair of frames lies: rows of R and of magnitudes, which of both frames there are, and of which R is kept.
struct pair_place {
    long long row, magnitudes;
    bool there[2], kept[2];
};

static __device__ __forceinline__ pair_place place_of(const wt_griffin_lim_args &a, long long line, int t, bool own)
{
    const bool first = t < a.frames.n_frames, second = t + 1 < a.frames.n_frames, keeps = own && a.after;
    return {(line * a.frames.n_frames + t) * SPECTRUM_BINS,
            (line * a.stored_frames + t) * SPECTRUM_BINS,
            {first, second},
            {first && keeps, second && keeps}};
}

// Asked for before the transform and there after it: what belongs to the bins that spectrum_give gives this thread, in
// their order; zeros of frames that there are not. Only the thread that asked reads it.
struct staged {
    float2 before[SPECTRUM_LAST][2][SPECTRUM_THREADS];
    float magnitude[SPECTRUM_LAST][2][SPECTRUM_THREADS];
};
enum { STAGED = wt__griffin_lim_staged(SPECTRUM_N) > 0, APART = SPECTRUM_N / SPECTRUM_LAST };
static_assert(!STAGED || sizeof(staged) == wt__griffin_lim_staged(SPECTRUM_N), "what the host asks for");

// A thread's bins go up from `thread` and from its mirror, APART from one to the next: where these two begin in a row.
template <class T> struct two_ways {
    T *at[2];
    __device__ __forceinline__ two_ways(T *row, int thread)
        : at{row + thread, row + (thread ? APART - thread : APART / 2)}
    {
        asm("" : "+l"(at[0]), "+l"(at[1])); // else each bin gets a 64-bit sum of its own in place of a constant offset
    }
    __device__ __forceinline__ T *bin(int i, int frame) const
    {
        return at[i % 2] + i / 2 * APART + frame * SPECTRUM_BINS;
    }
};

static __device__ __forceinline__ void ask(const wt_griffin_lim_args &a, const pair_place &p, int thread, staged &s)
{
    const two_ways<const float> magnitude(a.magnitude + p.magnitudes, thread);
    const two_ways<const float2> before(a.before ? (const float2 *)a.before + p.row : (const float2 *)a.out, thread);
#pragma unroll
    for (int i = 0; i < SPECTRUM_LAST; i++)
#pragma unroll
        for (int f = 0; f < 2; f++) {
            copy_async_8(&s.before[i][f][thread], before.bin(i, f), p.there[f] && a.before);
            copy_async_4(&s.magnitude[i][f][thread], magnitude.bin(i, f), p.there[f]);
        }
    copy_async_commit();
}

// Both frames' i-th bin of the thread, which is staged.
static __device__ __forceinline__ void turn_staged(const wt_griffin_lim_args &a, const pair_place &p, const staged &s,
                                                   const two_ways<float2> &after, int i, float2 (&r)[2])
{
    const int thread = threadIdx.x % SPECTRUM_THREADS;
    const float2 before[2] = {s.before[i][0][thread], s.before[i][1][thread]};
    const float magnitude[2] = {s.magnitude[i][0][thread], s.magnitude[i][1][thread]};
#pragma unroll
    for (int f = 0; f < 2; f++)
        if (p.kept[f]) __stcs(after.bin(i, f), r[f]);
    turn(a.momentum, r, before, magnitude);
}

// Bin k of both frames.
static __device__ __forceinline__ void turn_bin(const wt_griffin_lim_args &a, const pair_place &p, int k,
                                                float2 (&r)[2])
{
    float2 before[2] = {};
    float magnitude[2] = {};
#pragma unroll
    for (int f = 0; f < 2; f++) {
        const int at = k + f * SPECTRUM_BINS;
        if (p.there[f]) magnitude[f] = __ldg(a.magnitude + p.magnitudes + at);
        if (p.there[f] && a.before) before[f] = __ldg((const float2 *)a.before + p.row + at);
        if (p.kept[f]) ((float2 *)a.after)[p.row + at] = r[f];
    }
    turn(a.momentum, r, before, magnitude);
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
            const pair_place p = place_of(a, line, t, own);
            if (STAGED) ask(a, p, thread, s);
            int i = 0;
            spectrum_bins(a.frames, thread, points, a.frames.pcm + line * a.frames.n_samples, t,
                          [&](int k, float2 x, float2 y) {
                              if (STAGED && !i) copy_async_wait<0>();
                              float2 r[2] = {x, y};
                              if (STAGED && i < SPECTRUM_LAST) {
                                  turn_staged(a, p, s, two_ways<float2>((float2 *)a.after + p.row, thread), i, r);
                                  spectrum_put_given(points, thread, i, r[0], r[1]);
                              } else {
                                  turn_bin(a, p, k, r);
                                  spectrum_put_pair(points, k, r[0], r[1]);
                              }
                              i++;
                          });
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) { give(a, line, from, i, sum); });
}
