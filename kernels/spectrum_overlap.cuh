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

// A thread's samples of both frames, `samples` threads apart, to the sums it keeps; the first two hops leave as
// leave(m, sum).
template <class V, class Leave>
__device__ __forceinline__ void spectrum_keep(const V &v, const float *window, int thread,
                                              float (&kept)[SPECTRUM_SAMPLES * 3 / 4], Leave leave)
{
    constexpr int HOP = SPECTRUM_SAMPLES / 4, EACH = SPECTRUM_SAMPLES / SPECTRUM_LAST;
    float sums[5 * HOP];
#pragma unroll
    for (int m = 0; m < 5 * HOP; m++) sums[m] = m < 3 * HOP ? kept[m] : 0;
#pragma unroll
    for (int frame = 0; frame < 2; frame++)
#pragma unroll
        for (int m = 0; m < SPECTRUM_SAMPLES; m++) {
            const float2 point = v[m % EACH][m / EACH];
            sums[m + frame * HOP] += (frame ? point.x : point.y) * __ldg(window + thread + m * SPECTRUM_THREADS);
        }
#pragma unroll
    for (int m = 0; m < 2 * HOP; m++) leave(m, sums[m] * (1.0f / SPECTRUM_N));
#pragma unroll
    for (int m = 0; m < 3 * HOP; m++) kept[m] = sums[m + 2 * HOP];
}

/// A block's way along its line, `shared` its transforms' points and the ring. prepare(line, t, own, thread, points) is
/// called for frames t and t + 1 of the line, then fill(line, t, b, points, v) for the points b, b + STEP .. of the
/// first pass: what spectrum_put_pair would leave there. `own`: no other block makes them but for their neighbours'
/// sake. give(line, from, i, phase, sum): the overlapped sum at sample from + i of the padded signal, i < 2 SEQUENCES
/// hop, phase its place within a hop.
template <class Prepare, class Fill, class Give>
__device__ __forceinline__ void spectrum_walk(const wt_spectrum_walk &w, float2 *shared, Prepare prepare, Fill fill,
                                              Give give)
{
    const int hop = w.hop, thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const long long n_hops = (w.length + w.margin + hop - 1) / hop;
    const int blocks = (int)((n_hops + w.hops - 1) / w.hops);
    const long long line = blockIdx.x / blocks;
    const int begin = (int)(blockIdx.x % blocks) * w.hops;
    const int end = begin + w.hops < n_hops ? begin + w.hops : (int)n_hops;
    const bool keeps = SPECTRUM_KEEPS && 4 * hop == SPECTRUM_N;
    float2 *points = shared + sequence * SPECTRUM_POINTS;
    float *ring = (float *)(shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS);
    float kept[SPECTRUM_KEEPS ? SPECTRUM_SAMPLES * 3 / 4 : 1] = {};
    for (int i = threadIdx.x; i < w.ring && !keeps; i += SPECTRUM_BLOCK) ring[i] = 0;
    __syncthreads();
    int start = 0;
    for (int t = begin > w.lead ? begin - w.lead : 0; t < end; t += SPECTRUM_PAIR_FRAMES) {
        const int first = t + 2 * sequence;
        const long long from = (long long)t * hop;
        const auto give_own = [&](int i, float sum) {
            const long long at = from + i, to = at - w.margin;
            if (at >= (long long)begin * hop && at < (long long)end * hop && to >= 0 && to < w.length)
                give(line, from, i, i % hop, sum);
        };
        const auto take = [&](int b, float2(&v)[SPECTRUM_RADIX]) { fill(line, first, b, points, v); };
        prepare(line, first, first >= begin && first < end, thread, points);
        if constexpr (SPECTRUM_KEEPS)
            if (keeps) {
                const bool inside =
                    t >= begin && t + 2 <= end && from >= w.margin && from + 2 * hop - w.margin <= w.length;
                spectrum_pass<1, SPECTRUM_KEPT>(thread, points, (const float2 *)w.twiddles, take, [&](const auto &v) {
                    float sums[SPECTRUM_SAMPLES / 2];
                    spectrum_keep(v, w.window, thread, kept, [&](int m, float sum) {
                        const int i = thread + m * SPECTRUM_THREADS;
                        if (inside)
                            give(line, from, i, thread + m % (SPECTRUM_SAMPLES / 4) * SPECTRUM_THREADS, sum);
                        else
                            sums[m] = sum;
                    });
#pragma unroll 1
                    for (int m = 0; m < SPECTRUM_SAMPLES / 2 && !inside; m++)
                        give_own(thread + m * SPECTRUM_THREADS, sums[m]);
                });
                continue;
            }
        spectrum_pass<1, SPECTRUM_POINT>(thread, points, (const float2 *)w.twiddles, take,
                                         [&](int i, float2 v) { spectrum_leave(points, w.window, i, v); });
        spectrum_overlap(shared, ring, w.ring, start, hop, give_own);
        start = (start + SPECTRUM_PAIR_FRAMES * hop) % w.ring;
        __syncthreads();
    }
}
#endif
