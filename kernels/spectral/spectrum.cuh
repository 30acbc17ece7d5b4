// Complex transforms of SPECTRUM_N points by SPECTRUM_THREADS threads for short-time spectra: Stockham's passes as in
// fft.cuh, but of sixteen points a thread, so that 2048 points meet shared memory twice on their way (16 * 16 * 8).
//
// Two real frames a and b travel as a + i b: no twiddle factors to part them, any length, and whatever follows works on
// both at once. Points lie in shared memory as float2, one of padding in sixteen: a pass that writes 16 apart then
// meets every bank once.
#ifndef WT_SPECTRUM_CUH
#define WT_SPECTRUM_CUH
#include "fft.cuh"
#include "padded.cuh"
#include "spectrum_kernel.h"

enum {
    SPECTRUM_THREADS = wt__spectrum_threads(SPECTRUM_N),
    SPECTRUM_SEQUENCES = wt__spectrum_sequences(SPECTRUM_N),
    SPECTRUM_ROUNDS = wt__spectrum_rounds(SPECTRUM_N),
    SPECTRUM_FRAMES = wt__spectrum_frames(SPECTRUM_N),
    SPECTRUM_PAD = wt__spectrum_pad(SPECTRUM_N),
    SPECTRUM_POINTS = wt__spectrum_points(SPECTRUM_N),
    SPECTRUM_BLOCK = SPECTRUM_THREADS * SPECTRUM_SEQUENCES,
    SPECTRUM_BINS = SPECTRUM_N / 2 + 1,
    SPECTRUM_RADIX = wt__spectrum_radix(SPECTRUM_N), // of the first pass, whose points lie SPECTRUM_STEP apart
    SPECTRUM_STEP = SPECTRUM_N / SPECTRUM_RADIX,
    SPECTRUM_BINS_EACH = (SPECTRUM_BINS + SPECTRUM_THREADS - 1) / SPECTRUM_THREADS,
    // Blocks an SM is to hold: 768 threads leave each 80 registers; without a bound the loads of a frame take 160.
    // Of forty points a thread has more registers: 480 threads leave each 128.
    SPECTRUM_EACH = (SPECTRUM_N + SPECTRUM_THREADS - 1) / SPECTRUM_THREADS,
    SPECTRUM_AT_ONCE = SPECTRUM_EACH <= 16   ? 768
                       : SPECTRUM_EACH <= 40 ? 480
                                             : 384,
    SPECTRUM_RESIDENT = SPECTRUM_BLOCK < SPECTRUM_AT_ONCE ? SPECTRUM_AT_ONCE / SPECTRUM_BLOCK : 1,
    SPECTRUM_RESIDENT_WIDE = wt__spectrum_resident(SPECTRUM_N)
};

__device__ __forceinline__ int spectrum_at(int i) { return i + i / SPECTRUM_PAD; }

// spectrum_at(first + k STEP) for k < COUNT, where first / STEP is a multiple of COUNT, or STEP one of PAD:
// the padding then grows evenly, and of a butterfly's places one is computed, the others are a constant further.
template <int STEP, int COUNT> __device__ __forceinline__ int spectrum_along(int first, int k)
{
    constexpr int PAD = SPECTRUM_PAD;
    if constexpr (STEP % PAD == 0 || (PAD % STEP == 0 && (STEP * COUNT % PAD == 0 || PAD % (STEP * COUNT) == 0)))
        return spectrum_at(first) + (k * STEP + k * STEP / PAD);
    else
        return spectrum_at(first + k * STEP);
}

// The last pass makes points S apart. Where it is two butterflies a thread, those of q and S - q, a thread has each of
// its bins beside the mirror, and what follows needs no way through shared memory.
enum { SPECTRUM_LAST = wt__spectrum_last(SPECTRUM_N), SPECTRUM_PAIRED = wt__spectrum_paired(SPECTRUM_N) };

// v[j] w^j, twiddle(j) = w^j. Powers to 15 and more are products of two that are read, of 1, 2, 3, 4, 8, 12: reading
// them all takes longer.
template <int R, class V, class Twiddle> __device__ __forceinline__ void spectrum_turn(V *v, Twiddle twiddle)
{
    if constexpr (R >= 16) {
        V low[4];
#pragma unroll
        for (int i = 1; i < 4; i++) low[i] = twiddle(i), v[i] = fft_mul(v[i], low[i]);
#pragma unroll
        for (int j = 4; j < R; j += 4) {
            const V high = twiddle(j);
            v[j] = fft_mul(v[j], high);
#pragma unroll
            for (int i = 1; i < 4; i++) v[j + i] = fft_mul(v[j + i], fft_mul(high, low[i]));
        }
    } else {
#pragma unroll
        for (int j = 1; j < R; j++) v[j] = fft_mul(v[j], twiddle(j));
    }
}

// In place: a transform of three passes, the first of sixteen points, where every thread has whole butterflies. With
// n = STEP n1 + r, r = LAST n2 + n3, and k = k1 + 16 k2 + (N / LAST) k3, the passes go along n1, n2 and n3; each writes
// k1, k2 where it has read n1, n2, so that between two passes there is one barrier. Rows of k1, of r places each, an
// odd PITCH apart: neither rows' nor columns' neighbours meet in a bank.
enum {
    SPECTRUM_SECOND = wt__spectrum_radix(SPECTRUM_STEP), // points of a butterfly of the second pass
    SPECTRUM_IN_PLACE = wt__spectrum_in_place(SPECTRUM_N),
    SPECTRUM_PITCH = SPECTRUM_STEP + 1
};

// Butterfly b of pass 1, 2 or 3: where its first point lies, and how far the next.
template <int PASS> struct spectrum_row {
    static constexpr int POINTS = PASS == 1 ? SPECTRUM_RADIX : PASS == 2 ? SPECTRUM_SECOND : SPECTRUM_LAST;
    static constexpr int APART = PASS == 1 ? SPECTRUM_PITCH : PASS == 2 ? SPECTRUM_LAST : 1;
    static constexpr int EACH = (SPECTRUM_N + POINTS * SPECTRUM_THREADS - 1) / (POINTS * SPECTRUM_THREADS);
    static __device__ __forceinline__ int at(int b)
    {
        if (PASS == 1) return b;
        return b % SPECTRUM_RADIX * SPECTRUM_PITCH + b / SPECTRUM_RADIX * (PASS == 2 ? 1 : SPECTRUM_LAST);
    }
    template <class V> static __device__ __forceinline__ void read(const V *points, int b, V *v)
    {
#pragma unroll
        for (int k = 0; k < POINTS; k++) v[k] = points[at(b) + k * APART];
    }
    template <class V> static __device__ __forceinline__ void write(V *points, int b, const V *v)
    {
#pragma unroll
        for (int k = 0; k < POINTS; k++) points[at(b) + k * APART] = v[k];
    }
    // After the butterfly of the way there, or before the one of the way back.
    template <class V> static __device__ __forceinline__ void turn(const V *twiddles, int b, V *v)
    {
        twiddles += PASS == 1 ? b : (SPECTRUM_RADIX - 1) * SPECTRUM_STEP + b / SPECTRUM_RADIX;
        spectrum_turn<POINTS>(v,
                              [&](int j) { return twiddles[(j - 1) * (PASS == 1 ? SPECTRUM_STEP : SPECTRUM_LAST)]; });
    }
};

// What the last pass gives: each point, store(k, v); all of a thread's butterflies at once, store(v), v[e][j] being
// point t + e THREADS + S j; or those that mirror each other, store(v), of a PAIRED transform.
enum spectrum_end { SPECTRUM_POINT, SPECTRUM_KEPT, SPECTRUM_MIRRORED };

template <spectrum_end END, class V, class Fill, class Store>
__device__ __forceinline__ void spectrum_in_place(int t, V *points, const V *twiddles, Fill fill, Store store)
{
    using first = spectrum_row<1>;
    using second = spectrum_row<2>;
    using third = spectrum_row<3>;
    constexpr int T = SPECTRUM_THREADS, B = SPECTRUM_N / SPECTRUM_LAST;
    V v[first::EACH][first::POINTS], w[second::EACH][second::POINTS], x[third::EACH][third::POINTS];
#pragma unroll
    for (int e = 0; e < first::EACH; e++) fill(t + e * T, v[e]);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < first::EACH; e++) {
        fft_butterfly<first::POINTS>(v[e]);
        first::turn(twiddles, t + e * T, v[e]);
        first::write(points, t + e * T, v[e]);
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < second::EACH; e++) {
        second::read(points, t + e * T, w[e]);
        fft_butterfly<second::POINTS>(w[e]);
        second::turn(twiddles, t + e * T, w[e]);
        second::write(points, t + e * T, w[e]);
    }
    __syncthreads();
    const int mirror = t ? B - t : B / 2;
#pragma unroll
    for (int e = 0; e < third::EACH; e++) third::read(points, END == SPECTRUM_MIRRORED && e ? mirror : t + e * T, x[e]);
    __syncthreads(); // points may be written to
#pragma unroll
    for (int e = 0; e < third::EACH; e++) fft_butterfly<third::POINTS>(x[e]);
    if constexpr (END == SPECTRUM_POINT) {
#pragma unroll
        for (int e = 0; e < third::EACH; e++)
#pragma unroll
            for (int j = 0; j < third::POINTS; j++) store(t + e * T + B * j, x[e][j]);
        __syncthreads();
    } else {
        store(x);
    }
}

template <int S, spectrum_end END, class V, class Fill, class Store>
__device__ __forceinline__ void spectrum_pass(int t, V *points, const V *twiddles, Fill fill, Store store)
{
    if constexpr (S == 1 && SPECTRUM_IN_PLACE) return spectrum_in_place<END>(t, points, twiddles, fill, store);
    constexpr int R = wt__spectrum_radix(SPECTRUM_N / S), B = SPECTRUM_N / R, M = B / S;
    constexpr int E = (B + SPECTRUM_THREADS - 1) / SPECTRUM_THREADS;
    constexpr bool LAST = END != SPECTRUM_POINT && M == 1, WHOLE = B == E * SPECTRUM_THREADS; // all have butterflies
    const auto butterfly = [&](int e) {
        return LAST && END == SPECTRUM_MIRRORED && e ? t ? B - t : B / 2 : t + e * SPECTRUM_THREADS;
    };
    V v[E][R];
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int b = butterfly(e);
        if (!WHOLE && b >= B) continue;
        if constexpr (S == 1) {
            fill(b, v[e]);
        } else {
#pragma unroll
            for (int k = 0; k < R; k++) v[e][k] = points[spectrum_along<B, R>(b, k)];
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int b = butterfly(e), p = b / S, q = b % S;
        if (!WHOLE && b >= B) continue;
        fft_butterfly<R>(v[e]);
        if constexpr (M > 1) spectrum_turn<R>(v[e], [&](int j) { return twiddles[(j - 1) * M + p]; });
#pragma unroll
        for (int j = 0; j < R && !LAST; j++) {
            if constexpr (M > 1)
                points[spectrum_along<S, R>(q + S * R * p, j)] = v[e][j];
            else if constexpr (!LAST)
                store(q + S * (R * p + j), v[e][j]);
        }
    }
    if constexpr (LAST) {
        store(v);
    } else {
        __syncthreads();
        if constexpr (M > 1) spectrum_pass<S * R, END>(t, points, twiddles + (R - 1) * M, fill, store);
    }
}

/// All threads of the block together; `points` are this sequence's. Reads through load(i), leaves the result through
/// store(k, v), which may write to `points`; ends with the block in step. V: float2, or double2 with its own twiddles.
template <class V, class Load, class Store>
__device__ __forceinline__ void spectrum_transform(int t, V *points, const void *twiddles, Load load, Store store)
{
    spectrum_pass<1, SPECTRUM_POINT>(
        t, points, (const V *)twiddles,
        [&](int b, V(&v)[SPECTRUM_RADIX]) {
#pragma unroll
            for (int k = 0; k < SPECTRUM_RADIX; k++) v[k] = load(b + k * SPECTRUM_STEP);
        },
        store);
}

// Points of two frames APART points of a butterfly from each other, which share the others' samples.
template <int APART, class Window>
__device__ __forceinline__ void spectrum_fill_apart(Window window, const float *x, float2 (&v)[SPECTRUM_RADIX])
{
    float samples[SPECTRUM_RADIX + APART];
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX + APART; k++) samples[k] = __ldg(x + k * SPECTRUM_STEP);
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX; k++) {
        const float w = window(k);
        v[k] = make_float2(w * samples[k], w * samples[k + APART]);
    }
}

// Points b + k STEP of the windowed frames that begin at `begin` and a hop later, of a line that has them whole. All
// loads are on their way before one is used. A quarter, or two fifths, of a frame apart, frames share samples.
__device__ __forceinline__ void spectrum_fill(const wt_spectrum_frames &f, const float *begin, int b,
                                              float2 (&v)[SPECTRUM_RADIX])
{
    constexpr int R = SPECTRUM_RADIX;
    const float *window = f.window + b, *x = begin + b;
    asm("" : "+l"(window), "+l"(x)); // else every load gets 64-bit sums of its own in place of a constant offset
    const auto windowed = [&](int k) { return __ldg(window + k * SPECTRUM_STEP); };
    if (R % 4 == 0 && 4 * f.hop == SPECTRUM_N) return spectrum_fill_apart<R / 4>(windowed, x, v);
    if (R % 5 == 0 && 5 * f.hop == 2 * SPECTRUM_N) return spectrum_fill_apart<2 * R / 5>(windowed, x, v);
#pragma unroll
    for (int k = 0; k < R; k++) v[k] = make_float2(__ldg(x + k * SPECTRUM_STEP), __ldg(x + f.hop + k * SPECTRUM_STEP));
#pragma unroll
    for (int k = 0; k < R; k++) v[k] = fft_scale(v[k], windowed(k));
}

// Both frames' bin from its point and the mirror's, or twice as much.
template <bool TWICE = false, class V> __device__ __forceinline__ void spectrum_split(V z, V m, V &a, V &b)
{
    if constexpr (TWICE) {
        a = V{z.x + m.x, z.y - m.y};
        b = V{z.y + m.y, m.x - z.x};
        return;
    }
    const decltype(V::x) half = 0.5, x = half * m.x, y = half * m.y; // exact: one rounding each
    a = V{half * z.x + x, half * z.y - y};
    b = V{half * z.y + y, x - half * z.x};
}

/// Bin k of both frames.
template <class V> __device__ __forceinline__ void spectrum_part(const V *points, int k, V &a, V &b)
{
    spectrum_split(points[spectrum_at(k)], points[spectrum_at(k ? SPECTRUM_N - k : 0)], a, b);
}

// give(k, x, y): bin k of both frames, or TWICE as much, from the last pass's butterflies of thread t.
template <bool TWICE = false, class V, class Give>
__device__ __forceinline__ void spectrum_give(int t, const V (&v)[2][SPECTRUM_LAST], Give give)
{
    constexpr int R = SPECTRUM_LAST, S = SPECTRUM_N / R;
    V x, y;
#pragma unroll
    for (int j = 0; j < R / 2; j++) {
        spectrum_split<TWICE>(v[0][j], t ? v[1][R - 1 - j] : v[0][j ? R - j : 0], x, y);
        give(t + S * j, x, y);
        spectrum_split<TWICE>(v[1][j], t ? v[0][R - 1 - j] : v[1][R - 1 - j], x, y);
        give((t ? S - t : S / 2) + S * j, x, y);
    }
    if (t) return;
    spectrum_split<TWICE>(v[0][R / 2], v[0][R / 2], x, y);
    give(SPECTRUM_N / 2, x, y);
}

/// Transform two frames as one complex signal, fill(b, v) its points b + k STEP, and give(k, x, y) each bin of both
/// once, on any thread. What is given at k may be written to points k and N - k: no other thread asks for them; of a
/// PAIRED transform to any. All threads of the block together; a barrier must follow before the points are read. V:
/// float2, or double2 with its own twiddles.
template <class V, class Fill, class Give>
__device__ __forceinline__ void spectrum_pair(int thread, V *points, const V *twiddles, Fill fill, Give give)
{
    if constexpr (SPECTRUM_PAIRED) {
        spectrum_pass<1, SPECTRUM_MIRRORED>(thread, points, twiddles, fill,
                                            [&](const auto &v) { spectrum_give(thread, v, give); });
    } else {
        spectrum_pass<1, SPECTRUM_POINT>(thread, points, twiddles, fill,
                                         [&](int k, V v) { points[spectrum_at(k)] = v; });
#pragma unroll 3
        for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
            V x, y;
            spectrum_part(points, k, x, y);
            give(k, x, y);
        }
    }
}

/// Points b + k STEP of the windowed frames t and t + 1 of one line, frames that do not exist as zeros. inside(begin,
/// v) makes those of a line that has both frames whole.
template <class Inside>
__device__ __forceinline__ void spectrum_fill_frames(const wt_spectrum_frames &f, const float *pcm, int t, int b,
                                                     float2 (&v)[SPECTRUM_RADIX], Inside inside)
{
    const long long begin = (long long)t * f.hop - f.margin;
    if (begin >= 0 && begin + f.hop + SPECTRUM_N <= f.n_samples && t + 1 < f.n_frames) return inside(pcm + begin, v);
    float2 some[SPECTRUM_RADIX]; // in a loop, or half the kernel's text would be this
#pragma unroll 1
    for (int k = 0; k < SPECTRUM_RADIX; k++) {
        const int i = b + k * SPECTRUM_STEP;
        const float w = __ldg(f.window + i);
        some[k] = make_float2(0, 0);
        if (t < f.n_frames) some[k].x = w * padded_sample(pcm, f.n_samples, begin + i, f.margin, f.pad);
        if (t + 1 < f.n_frames) some[k].y = w * padded_sample(pcm, f.n_samples, begin + f.hop + i, f.margin, f.pad);
    }
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX; k++) v[k] = some[k];
}

/// spectrum_pair of those frames.
template <class Give>
__device__ __forceinline__ void spectrum_bins(const wt_spectrum_frames &f, int thread, float2 *points, const float *pcm,
                                              int t, Give give)
{
    spectrum_pair(
        thread, points, (const float2 *)f.twiddles,
        [&](int b, float2(&v)[SPECTRUM_RADIX]) {
            spectrum_fill_frames(f, pcm, t, b, v, [&](const float *begin, float2(&v)[SPECTRUM_RADIX]) {
                spectrum_fill(f, begin, b, v);
            });
        },
        give);
}
#endif
