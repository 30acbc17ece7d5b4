// One octave of an inverse constant-Q transform, compiled for one SPECTRUM_N: a pair of frames' spectra, each bin the
// sum of the filters that have it, back to samples, overlapped (spectrum_overlap.cuh), divided by how many frames lie
// over each, and added to what the octaves below have become at this rate. Spectra never leave the block. Judge: the
// CPU's, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 256
#endif
#include "icqt_kernel.h"
#include "spectrum_overlap.cuh"

extern __shared__ float2 all_shared[];

// Bin k of a frame whose coefficients in this octave begin at `in`.
static __device__ __forceinline__ float2 bin_of(const wt_icqt_octave_args &a, const float2 *in, int k)
{
    float2 sum = make_float2(0, 0);
    for (int i = __ldg(a.begin + k), end = __ldg(a.begin + k + 1); i < end; i++)
        sum = fft_add(sum, fft_mul(__ldg((const float2 *)a.value + i), __ldg(in + __ldg(a.row + i))));
    return sum;
}

// Frames over sample `at` of the padded signal.
static __device__ __forceinline__ int frames_over(const wt_icqt_octave_args &a, long long at)
{
    const int hop = a.walk.hop;
    long long first = at < SPECTRUM_N ? 0 : (at - SPECTRUM_N) / hop + 1, last = at / hop;
    if (last >= a.n_frames) last = a.n_frames - 1;
    return last >= first ? (int)(last - first) + 1 : 0;
}

// One sample of the octave alone, for icqt_ends.
static __device__ __forceinline__ void keep(const wt_icqt_octave_args &a, long long line, long long at, float x)
{
    const long long back = at - (a.n - WT_ICQT_END_KEPT);
    float *kept = a.kept + line * 2 * WT_ICQT_END_KEPT;
    if (at < WT_ICQT_END_KEPT) kept[at] += x;
    if (back >= 0) kept[WT_ICQT_END_KEPT + back] += x;
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, SPECTRUM_RESIDENT) icqt_octave(wt_icqt_octave_args a)
{
    spectrum_walk(
        a.walk, all_shared,
        [&](long long line, int t, int thread, float2 *points) {
            const float2 *in = (const float2 *)a.in + (line * a.stored_frames + t) * a.n_bins + a.first;
            const bool first = t < a.n_frames, second = t + 1 < a.n_frames;
            for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS)
                spectrum_put_pair(points, k, first ? bin_of(a, in, k) : make_float2(0, 0),
                                  second ? bin_of(a, in + a.n_bins, k) : make_float2(0, 0));
            __syncthreads();
        },
        [&](long long, int, int b, const float2 *points, float2(&v)[SPECTRUM_RADIX]) { spectrum_take(points, b, v); },
        [&](long long line, long long from, int i, int, float sum) {
            const long long at = from + i, to = at - a.walk.margin;
            const int over = frames_over(a, at);
            const long long under = line * (a.n + 2 * WT_ICQT_TAIL) + WT_ICQT_TAIL + to;
            float x = over && to < a.n ? sum / (float)over : 0;
            if (a.kept && to < a.n) keep(a, line, to, x);
            if (to < a.n) x += a.under[under];
            a.out[a.last ? line * a.walk.length + to : under] = x;
        });
}
