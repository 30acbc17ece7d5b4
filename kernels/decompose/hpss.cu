// Separation of spectrograms by medians, fused: medians along frequency and along time, masks, parts. Compiled for one
// plan: HPSS_HARMONIC and HPSS_PERCUSSIVE values under the medians, HPSS_COMPLEX input and parts, HPSS_MASKS instead of
// parts, HPSS_SQUARE the power 2.
//
// A block makes 32 frames of 128 bins. Its columns with their margin lie in shared memory, turned, so that a warp's
// lanes are the frames: each thread makes 16 medians along frequency. Then lanes are bins: each thread makes 16 medians
// along time, straight from memory, where neighbouring blocks find each other's reads in the L2 cache. Sixteen
// neighbouring medians share their work (dsp/decompose/median_run.c): up to 63 values all kept ones stay in registers.
//
// Longer kernels find each median by bisection of its bits: 32 counts over the window.
// Judge: the CPU's, 2e-7 of the peak; medians identical.
#ifndef HPSS_HARMONIC
#    define HPSS_HARMONIC   31
#    define HPSS_PERCUSSIVE 31
#    define HPSS_COMPLEX    0
#    define HPSS_MASKS      0
#    define HPSS_SQUARE     1
#endif
#include "hpss_kernel.h"
#include "median.cuh"
#include "places.cuh"

#define PITCH (WT_HPSS_FRAMES + 1) // words between the rows of a tile in shared memory: no two lanes in one bank

// SIZE medians whose windows of K values begin at `at`, of which `s` has what they share.
template <int SIZE, int K, class Kept, class Get, class Put>
__device__ __forceinline__ void split_run(const Kept &s, const Get &get, const Put &put, int at)
{
    if constexpr (SIZE == 1) {
        put(at, s.key[0]);
    } else {
        split_run<SIZE / 2, K>(insert_all<SIZE / 2>(s, get, at + SIZE / 2 - 1), get, put, at);
        split_run<SIZE / 2, K>(insert_all<SIZE / 2>(s, get, at + K), get, put, at + SIZE / 2);
    }
}

// Median by bisection: the largest key with at most `rank` smaller ones.
template <int K, class Get> __device__ int bisect(const Get &get, int at)
{
    unsigned found = 0;
    for (int bit = 31; bit >= 0; bit--) {
        const unsigned trial = found | 1u << bit;
        int smaller = 0;
        for (int i = 0; i < K; i++) smaller += ((unsigned)get(at + i) ^ 0x80000000u) < trial;
        if (smaller <= K / 2) found = trial;
    }
    return (int)(found ^ 0x80000000u);
}

// Output j is the key of rank K / 2 of get(j) .. get(j + K - 1).
template <int K, class Get, class Put> __device__ __forceinline__ void median_run(const Get &get, const Put &put)
{
    if constexpr (K > 63) {
        for (int j = 0; j < WT_HPSS_RUN; j++) put(j, bisect<K>(get, j));
    } else {
        constexpr int group = K >= 16 ? 16 : K >= 8 ? 8 : K >= 4 ? 4 : K >= 2 ? 2 : 1;
#pragma unroll
        for (int j = 0; j < WT_HPSS_RUN; j += group) {
            const kept<0, K / 2, K> none = {};
            split_run<group, K>(insert_all<K - group + 1>(none, get, j + group - 1), get, put, j);
        }
    }
}

__device__ __forceinline__ int key_of(const wt_hpss_args &a, long long at)
{
#if HPSS_COMPLEX
    const float2 z = __ldg((const float2 *)a.in + at);
    return median_turn(__float_as_int(sqrtf(z.x * z.x + z.y * z.y)));
#else
    return median_turn(__float_as_int(__ldg(a.in + at)));
#endif
}

__device__ __forceinline__ float softmask(float x, float reference, float power, float silent)
{
    const float z = fmaxf(x, reference);
    if (!HPSS_SQUARE && isinf(power)) return x > reference ? 1.0f : 0.0f;
    if (z < 1.17549435e-38f) return silent;
    float a = x / z, b = reference / z;
    if (HPSS_SQUARE)
        a *= a, b *= b;
    else
        a = powf(a, power), b = powf(b, power);
    return a / (a + b);
}

__device__ __forceinline__ void give(const wt_hpss_args &a, long long at, float h, float p)
{
    const float harmonic = softmask(h, p * a.margin_harmonic, a.power, a.silent);
    const float percussive = softmask(p, h * a.margin_percussive, a.power, a.silent);
#if HPSS_MASKS
    a.harmonic[at] = harmonic, a.percussive[at] = percussive;
#elif HPSS_COMPLEX
    const float2 z = __ldg((const float2 *)a.in + at);
    ((float2 *)a.harmonic)[at] = make_float2(z.x * harmonic, z.y * harmonic);
    ((float2 *)a.percussive)[at] = make_float2(z.x * percussive, z.y * percussive);
#else
    const float x = __ldg(a.in + at);
    a.harmonic[at] = x * harmonic, a.percussive[at] = x * percussive;
#endif
}

// Tile number `number` of a line, in `tile` [WT_HPSS_BINS + HPSS_PERCUSSIVE - 1][PITCH], bins by frames.
static __device__ __forceinline__ void separate(const wt_hpss_args &a, int *tile, unsigned number, int of)
{
    const int across = (a.bins + WT_HPSS_BINS - 1) / WT_HPSS_BINS, width = WT_HPSS_BINS + HPSS_PERCUSSIVE - 1;
    const int bin0 = (int)(number % across) * WT_HPSS_BINS;
    const long long frame0 = (long long)(number / across) * WT_HPSS_FRAMES, line = of * a.n_frames;

    for (int f = threadIdx.x / 32; f < WT_HPSS_FRAMES; f += 8) {
        const long long row = (line + median_mirror(frame0 + f, a.n_frames)) * a.bins;
        for (int x = threadIdx.x % 32; x < width; x += 32)
            tile[x * PITCH + f] = key_of(a, row + median_mirror(bin0 + x - HPSS_PERCUSSIVE / 2, a.bins));
    }
    __syncthreads();

    int median[WT_HPSS_RUN];
    {
        const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * WT_HPSS_RUN;
        if (bin0 + first < a.bins)
            median_run<HPSS_PERCUSSIVE>([&](int i) { return tile[(first + i) * PITCH + lane]; },
                                        [&](int j, int key) { median[j] = key; });
        __syncthreads();
#pragma unroll
        for (int j = 0; j < WT_HPSS_RUN; j++) tile[(first + j) * PITCH + lane] = median[j];
    }
    __syncthreads();

    const int x = threadIdx.x % WT_HPSS_BINS, first = threadIdx.x / WT_HPSS_BINS * WT_HPSS_RUN;
    const long long begin = frame0 + first - HPSS_HARMONIC / 2;
    if (bin0 + x >= a.bins || frame0 + first >= a.n_frames) return;
    const auto put = [&](int j, int key) { median[j] = key; };
    if (begin >= 0 && begin + WT_HPSS_RUN + HPSS_HARMONIC - 1 <= a.n_frames) {
        const long long from = (line + begin) * a.bins + bin0 + x;
        median_run<HPSS_HARMONIC>([&](int i) { return key_of(a, from + (long long)i * a.bins); }, put);
    } else {
        median_run<HPSS_HARMONIC>(
            [&](int i) { return key_of(a, (line + median_mirror(begin + i, a.n_frames)) * a.bins + bin0 + x); }, put);
    }
#pragma unroll
    for (int j = 0; j < WT_HPSS_RUN; j++)
        if (frame0 + first + j < a.n_frames)
            give(a, (line + frame0 + first + j) * a.bins + bin0 + x, __int_as_float(median_turn(median[j])),
                 __int_as_float(median_turn(tile[x * PITCH + first + j])));
}

extern "C" __global__ void __launch_bounds__(256) hpss_tile(wt_hpss_args a)
{
#ifdef PLACES
    for_tiles<int>(a.places, [&](int *tile, long long number, int line) { separate(a, tile, (unsigned)number, line); });
#else // not by for_tiles: that takes ten registers more, and leaves an SM two blocks of three
    extern __shared__ int tile[];
    separate(a, tile, blockIdx.x, blockIdx.y);
#endif
}
