// Complex transforms of SPECTRUM_N points by SPECTRUM_THREADS threads for short-time spectra: Stockham's passes as in
// fft.cuh, but of sixteen points a thread, so that 2048 points meet shared memory twice on their way (16 * 16 * 8).
//
// Two real frames a and b travel as a + i b: no twiddle factors to part them, any length, and whatever follows works on
// both at once. Points lie in shared memory as float2, one of padding in sixteen: a pass that writes 16 apart then
// meets every bank once.
#ifndef WT_SPECTRUM_CUH
#define WT_SPECTRUM_CUH
#include "fft.cuh"
#include "spectrum_kernel.h"

enum {
    SPECTRUM_THREADS = wt__spectrum_threads(SPECTRUM_N),
    SPECTRUM_SEQUENCES = wt__spectrum_sequences(SPECTRUM_N),
    SPECTRUM_ROUNDS = wt__spectrum_rounds(SPECTRUM_N),
    SPECTRUM_FRAMES = wt__spectrum_frames(SPECTRUM_N),
    SPECTRUM_POINTS = wt__spectrum_points(SPECTRUM_N),
    SPECTRUM_BLOCK = SPECTRUM_THREADS * SPECTRUM_SEQUENCES,
    SPECTRUM_BINS = SPECTRUM_N / 2 + 1,
    SPECTRUM_RADIX = wt__spectrum_radix(SPECTRUM_N), // of the first pass, whose points lie SPECTRUM_STEP apart
    SPECTRUM_STEP = SPECTRUM_N / SPECTRUM_RADIX,
    SPECTRUM_BINS_EACH = (SPECTRUM_BINS + SPECTRUM_THREADS - 1) / SPECTRUM_THREADS,
    // Blocks an SM is to hold: 768 threads leave each 80 registers; without a bound the loads of a frame take 160.
    SPECTRUM_RESIDENT = SPECTRUM_BLOCK < 768 ? 768 / SPECTRUM_BLOCK : 1,
    SPECTRUM_RESIDENT_WIDE = SPECTRUM_BLOCK < 640 ? 640 / SPECTRUM_BLOCK : 1 // 96 registers: there and back in one
};

__device__ __forceinline__ int spectrum_at(int i)
{
    return i + (i >> 4);
}

template <int S, class V, class Fill, class Store>
__device__ __forceinline__ void spectrum_pass(int t, V *points, const V *twiddles, Fill fill, Store store)
{
    constexpr int R = wt__spectrum_radix(SPECTRUM_N / S), B = SPECTRUM_N / R, M = B / S;
    constexpr int E = (B + SPECTRUM_THREADS - 1) / SPECTRUM_THREADS;
    V v[E][R];
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int b = t + e * SPECTRUM_THREADS;
        if (b >= B) continue;
        if constexpr (S == 1) {
            fill(b, v[e]);
        } else {
#pragma unroll
            for (int k = 0; k < R; k++) v[e][k] = points[spectrum_at(b + k * B)];
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int b = t + e * SPECTRUM_THREADS, p = b / S, q = b % S;
        if (b < B) {
            fft_butterfly<R>(v[e]);
#pragma unroll
            for (int j = 0; j < R; j++) {
                const int to = q + S * (R * p + j);
                if constexpr (M == 1)
                    store(to, v[e][j]);
                else
                    points[spectrum_at(to)] = j ? fft_mul(v[e][j], twiddles[(j - 1) * M + p]) : v[e][j];
            }
        }
    }
    __syncthreads();
    if constexpr (M > 1) spectrum_pass<S * R>(t, points, twiddles + (R - 1) * M, fill, store);
}

/// All threads of the block together; `points` are this sequence's. Reads through load(i), leaves the result through
/// store(k, v), which may write to `points`; ends with the block in step. V: float2, or double2 with its own twiddles.
template <class V, class Load, class Store>
__device__ __forceinline__ void spectrum_transform(int t, V *points, const void *twiddles, Load load, Store store)
{
    spectrum_pass<1>(
        t, points, (const V *)twiddles,
        [&](int b, V(&v)[SPECTRUM_RADIX]) {
#pragma unroll
            for (int k = 0; k < SPECTRUM_RADIX; k++) v[k] = load(b + k * SPECTRUM_STEP);
        },
        store);
}

// The sample at `at`, which may lie before or behind the signal (dsp/stft.c: wt__stft_padded).
__device__ inline float spectrum_padded(const float *pcm, long long n, long long at, int margin, int pad)
{
    if (at >= 0 && at < n) return pcm[at];
    if (pad == 0) return 0;
    const float edge = pcm[at < 0 ? 0 : n - 1];
    if (pad == 4) {
        const long long outside = at < 0 ? -at : at - n + 1;
        return outside < margin ? edge * (float)(margin - outside) / (float)margin : 0;
    }
    if (pad == 3 || n == 1) return edge;
    const int symmetric = pad == 2;
    while (at < 0 || at >= n) at = at < 0 ? -at - symmetric : 2 * (n - 1) - at + symmetric;
    return pcm[at];
}

// Points b + k STEP of the windowed frames that begin at `begin` and a hop later, of a line that has them whole. All
// loads are on their way before one is used. A quarter of a frame apart, the frames share three quarters of them.
__device__ __forceinline__ void spectrum_fill(const wt_spectrum_frames &f, const float *begin, int b,
                                              float2 (&v)[SPECTRUM_RADIX])
{
    constexpr int R = SPECTRUM_RADIX;
    const float *window = f.window + b, *x = begin + b;
    asm("" : "+l"(window), "+l"(x)); // else every load gets 64-bit sums of its own in place of a constant offset
    if (R % 4 == 0 && 4 * f.hop == SPECTRUM_N) {
        float samples[R + R / 4];
#pragma unroll
        for (int k = 0; k < R + R / 4; k++) samples[k] = __ldg(x + k * SPECTRUM_STEP);
#pragma unroll
        for (int k = 0; k < R; k++) {
            const float w = __ldg(window + k * SPECTRUM_STEP);
            v[k] = make_float2(w * samples[k], w * samples[k + R / 4]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < R; k++)
            v[k] = make_float2(__ldg(x + k * SPECTRUM_STEP), __ldg(x + f.hop + k * SPECTRUM_STEP));
#pragma unroll
        for (int k = 0; k < R; k++) v[k] = fft_scale(v[k], __ldg(window + k * SPECTRUM_STEP));
    }
}

/// Transform the windowed frames t and t + 1 of one line; frames that do not exist are zeros.
__device__ __forceinline__ void spectrum_frames(const wt_spectrum_frames &f, int thread, float2 *points,
                                                const float *pcm, int t)
{
    const long long begin = (long long)t * f.hop - f.margin;
    const bool inside = begin >= 0 && begin + f.hop + SPECTRUM_N <= f.n_samples && t + 1 < f.n_frames;
    spectrum_pass<1>(
        thread, points, (const float2 *)f.twiddles,
        [&](int b, float2(&v)[SPECTRUM_RADIX]) {
            if (inside) return spectrum_fill(f, pcm + begin, b, v);
#pragma unroll
            for (int k = 0; k < SPECTRUM_RADIX; k++) {
                const int i = b + k * SPECTRUM_STEP;
                const float w = __ldg(f.window + i);
                v[k] = make_float2(0, 0);
                if (t < f.n_frames) v[k].x = w * spectrum_padded(pcm, f.n_samples, begin + i, f.margin, f.pad);
                if (t + 1 < f.n_frames)
                    v[k].y = w * spectrum_padded(pcm, f.n_samples, begin + f.hop + i, f.margin, f.pad);
            }
        },
        [&](int k, float2 v) { points[spectrum_at(k)] = v; });
}

/// Bin k of both frames.
template <class V> __device__ __forceinline__ void spectrum_part(const V *points, int k, V &a, V &b)
{
    const decltype(V::x) half = 0.5;
    const V z = points[spectrum_at(k)], m = points[spectrum_at(k ? SPECTRUM_N - k : 0)];
    a = V{half * (z.x + m.x), half * (z.y - m.y)};
    b = V{half * (z.y + m.y), half * (m.x - z.x)};
}
#endif
