// Overlapped addition of a block's frames, in order of time: sums lie in a ring of shared memory as long as what the
// frames of one round touch, and leave it hop by hop. So a block may walk along as many frames as it likes.
//
// Where frames lie a quarter of one apart, a thread keeps the sums of its own samples, as many threads apart, in
// registers: the last pass leaves it those samples of both frames, and nothing passes through the ring.
//
// Blocks begin at even frames, and every frame's partner in its transform is the same in all of them: the result never
// depends on where blocks begin.
#ifndef WT_SPECTRUM_OVERLAP_CUH
#define WT_SPECTRUM_OVERLAP_CUH
#include "spectrum.cuh"

enum { SPECTRUM_PAIR_FRAMES = 2 * SPECTRUM_SEQUENCES }; // of one round

/// Both frames' bin k, and its mirror, as the inverse wants them: one complex signal, parts exchanged.
__device__ __forceinline__ void spectrum_put_pair(float2 *points, int k, float2 x, float2 y)
{
    if (k == 0 || 2 * k == SPECTRUM_N) x.y = y.y = 0;
    points[spectrum_at(k)] = make_float2(x.y + y.x, x.x - y.y);
    if (k && 2 * k != SPECTRUM_N) points[spectrum_at(SPECTRUM_N - k)] = make_float2(y.x - x.y, x.x + y.y);
}

/// The same of a PAIRED transform's bin that spectrum_give gives thread t as its i-th, i < SPECTRUM_LAST.
__device__ __forceinline__ void spectrum_put_given(float2 *points, int t, int i, float2 x, float2 y)
{
    constexpr int S = SPECTRUM_N / SPECTRUM_LAST;
    const int up = i % 2 && !t ? S / 2 : t, down = i % 2 && !t ? S / 2 : S - t; // the one, its mirror
    if (i == 0 && t == 0) x.y = y.y = 0;
    points[spectrum_along<S, 1>(i % 2 ? down : up, i / 2)] = make_float2(x.y + y.x, x.x - y.y);
    if (i || t)
        points[spectrum_along<S, 1>(i % 2 ? up : down, SPECTRUM_LAST - 1 - i / 2)] = make_float2(y.x - x.y, x.x + y.y);
}

// Sample i of both frames, windowed.
__device__ __forceinline__ void spectrum_leave(float2 *points, const float *window, int i, float2 v)
{
    const float w = __ldg(window + i) * (1.0f / SPECTRUM_N);
    points[spectrum_at(i)] = make_float2(v.y * w, v.x * w);
}

/// What spectrum_put_pair left becomes two windowed frames, the first in x, the second in y. All threads together.
__device__ __forceinline__ void spectrum_back(int thread, float2 *points, const float *window, const float *twiddles)
{
    spectrum_transform(
        thread, points, twiddles, [&](int i) { return points[spectrum_at(i)]; },
        [&](int i, float2 v) { spectrum_leave(points, window, i, v); });
}

// Add the frames that lie in `points`, all sequences', to the ring of `size` sums whose first is at `start`; what no
// later frame touches goes to give(i, sum), i samples behind the first frame's begin.
template <class Give>
__device__ __forceinline__ void spectrum_overlap(const float2 *points, float *ring, int size, int start, int hop,
                                                 Give give)
{
    for (int i = threadIdx.x; i < size; i += SPECTRUM_BLOCK) {
        const int at = start + i < size ? start + i : start + i - size;
        float value = ring[at];
        const int before = i < SPECTRUM_N ? 0 : (i - SPECTRUM_N) / hop + 1, last = i / hop; // frames that touch it
        for (int f = before; f <= last && f < SPECTRUM_PAIR_FRAMES; f++) {
            const float2 point = points[f / 2 * SPECTRUM_POINTS + spectrum_at(i - f * hop)];
            value += f % 2 ? point.y : point.x;
        }
        if (i < SPECTRUM_PAIR_FRAMES * hop) give(i, value), value = 0;
        ring[at] = value;
    }
}

enum {
    SPECTRUM_SAMPLES = SPECTRUM_N / SPECTRUM_THREADS, // of a thread
    SPECTRUM_KEEPS = wt__spectrum_keeps(SPECTRUM_N)
};

/// Points of the first pass, from where spectrum_put_pair left them.
__device__ __forceinline__ void spectrum_take(const float2 *points, int b, float2 (&v)[SPECTRUM_RADIX])
{
#pragma unroll
    for (int k = 0; k < SPECTRUM_RADIX; k++) v[k] = points[spectrum_along<SPECTRUM_STEP, SPECTRUM_RADIX>(b, k)];
}

// sample(m) and window(m) of both frames as a thread has them, that many threads apart, parts exchanged: to the sums it
// keeps; those of the first two hops are done.
template <class Sample, class Window>
__device__ __forceinline__ void spectrum_keep(Sample sample, Window window, float (&kept)[SPECTRUM_SAMPLES * 3 / 4],
                                              float (&done)[SPECTRUM_SAMPLES / 2])
{
    constexpr int HOP = SPECTRUM_SAMPLES / 4;
    float sums[5 * HOP];
#pragma unroll
    for (int m = 0; m < 5 * HOP; m++) sums[m] = m < 3 * HOP ? kept[m] : 0;
#pragma unroll
    for (int frame = 0; frame < 2; frame++)
#pragma unroll
        for (int m = 0; m < SPECTRUM_SAMPLES; m++) {
            const float2 point = sample(m);
            sums[m + frame * HOP] += (frame ? point.x : point.y) * window(m);
        }
#pragma unroll
    for (int m = 0; m < 2 * HOP; m++) done[m] = sums[m] * (1.0f / SPECTRUM_N);
#pragma unroll
    for (int m = 0; m < 3 * HOP; m++) kept[m] = sums[m + 2 * HOP];
}

// The frames of a block: of its line, hops begin .. end - 1 are the block's, and frames from `first` on touch them.
struct spectrum_way {
    long long line;
    int first, begin, end;
    __device__ __forceinline__ explicit spectrum_way(const wt_spectrum_walk &w)
    {
        const long long n_hops = (w.length + w.margin + w.hop - 1) / w.hop;
        const int blocks = (int)((n_hops + w.hops - 1) / w.hops);
        line = blockIdx.x / blocks;
        begin = (int)(blockIdx.x % blocks) * w.hops;
        end = begin + w.hops < n_hops ? begin + w.hops : (int)n_hops;
        first = begin > w.lead ? begin - w.lead : 0;
    }
    // Is sample `at` of the padded signal the block's, and of the signal?
    __device__ __forceinline__ bool owns(const wt_spectrum_walk &w, long long at) const
    {
        const long long to = at - w.margin;
        return at >= (long long)begin * w.hop && at < (long long)end * w.hop && to >= 0 && to < w.length;
    }
};

/// spectrum_walk where threads keep sums, along `way`. make(t, leave) calls leave(sample, window) with what
/// spectrum_keep takes of frames t and t + 1. give_all(from, sums): sums[m] is the overlapped sum at sample from +
/// thread + m THREADS of the padded signal, all of them the block's and of the signal; else give(from, i, sum) for each
/// from + i that is.
template <class Make, class GiveAll, class Give>
__device__ __forceinline__ void spectrum_walk_kept(const wt_spectrum_walk &w, const spectrum_way &way, Make make,
                                                   GiveAll give_all, Give give)
{
    float kept[SPECTRUM_SAMPLES * 3 / 4] = {};
    for (int t = way.first; t < way.end; t += 2) {
        const long long from = (long long)t * w.hop;
        const bool inside =
            t >= way.begin && t + 2 <= way.end && from >= w.margin && from + 2 * w.hop - w.margin <= w.length;
        make(t, [&](auto sample, auto window) {
            float sums[SPECTRUM_SAMPLES / 2];
            spectrum_keep(sample, window, kept, sums);
            if (inside) return give_all(from, sums);
#pragma unroll 1
            for (int m = 0; m < SPECTRUM_SAMPLES / 2; m++) {
                const int i = threadIdx.x + m * SPECTRUM_THREADS;
                if (way.owns(w, from + i)) give(from, i, sums[m]);
            }
        });
    }
}

/// A block's way along its line, `shared` its transforms' points and the ring. prepare(line, t, thread, points) is
/// called for frames t and t + 1 of the line, then fill(line, t, b, points, v) for the points b, b + STEP .. of the
/// first pass: what spectrum_put_pair would leave there. give(line, from, i, phase, sum): the overlapped sum at sample
/// from + i of the padded signal, i < 2 SEQUENCES hop, phase its place within a hop; give_all: of spectrum_walk_kept.
template <class Prepare, class Fill, class Give, class GiveAll>
__device__ __forceinline__ void spectrum_walk(const wt_spectrum_walk &w, float2 *shared, Prepare prepare, Fill fill,
                                              Give give, GiveAll give_all)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    float2 *points = shared + sequence * SPECTRUM_POINTS;
    const spectrum_way way(w);
    if constexpr (SPECTRUM_KEEPS)
        if (4 * w.hop == SPECTRUM_N)
            return spectrum_walk_kept(
                w, way,
                [&](int t, auto leave) {
                    constexpr int EACH = SPECTRUM_SAMPLES / SPECTRUM_LAST;
                    prepare(way.line, t, thread, points);
                    spectrum_pass<1, SPECTRUM_KEPT>(
                        thread, points, (const float2 *)w.twiddles,
                        [&](int b, float2(&v)[SPECTRUM_RADIX]) { fill(way.line, t, b, points, v); },
                        [&](const auto &v) {
                            leave([&](int m) { return v[m % EACH][m / EACH]; },
                                  [&](int m) { return __ldg(w.window + thread + m * SPECTRUM_THREADS); });
                        });
                },
                [&](long long from, const float(&sums)[SPECTRUM_SAMPLES / 2]) { give_all(way.line, from, sums); },
                [&](long long from, int i, float sum) { give(way.line, from, i, i % w.hop, sum); });
    float *ring = (float *)(shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS);
    for (int i = threadIdx.x; i < w.ring; i += SPECTRUM_BLOCK) ring[i] = 0;
    __syncthreads();
    int start = 0;
    for (int t = way.first; t < way.end; t += SPECTRUM_PAIR_FRAMES) {
        const int first = t + 2 * sequence;
        const long long from = (long long)t * w.hop;
        prepare(way.line, first, thread, points);
        spectrum_pass<1, SPECTRUM_POINT>(
            thread, points, (const float2 *)w.twiddles,
            [&](int b, float2(&v)[SPECTRUM_RADIX]) { fill(way.line, first, b, points, v); },
            [&](int i, float2 v) { spectrum_leave(points, w.window, i, v); });
        spectrum_overlap(shared, ring, w.ring, start, w.hop, [&](int i, float sum) {
            if (way.owns(w, from + i)) give(way.line, from, i, i % w.hop, sum);
        });
        start = (start + SPECTRUM_PAIR_FRAMES * w.hop) % w.ring;
        __syncthreads();
    }
}

/// The same where all sums are given one by one.
template <class Prepare, class Fill, class Give>
__device__ __forceinline__ void spectrum_walk(const wt_spectrum_walk &w, float2 *shared, Prepare prepare, Fill fill,
                                              Give give)
{
    spectrum_walk(w, shared, prepare, fill, give,
                  [&](long long line, long long from, const float(&sums)[SPECTRUM_SAMPLES / 2]) {
#pragma unroll
                      for (int m = 0; m < SPECTRUM_SAMPLES / 2; m++) {
                          const int i = threadIdx.x + m * SPECTRUM_THREADS;
                          give(line, from, i, i % w.hop, sums[m]);
                      }
                  });
}
#endif
