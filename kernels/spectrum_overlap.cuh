// Overlapped addition of a block's frames, in order of time: sums lie in a ring of shared memory as long as what the
// frames of one round touch, and leave it hop by hop. So a block may walk along as many frames as it likes.
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

/// What spectrum_put_pair left becomes two windowed frames, the first in x, the second in y. All threads together.
__device__ __forceinline__ void spectrum_back(int thread, float2 *points, const float *window, const float *twiddles)
{
    spectrum_transform(
        thread, points, twiddles, [&](int i) { return points[spectrum_at(i)]; },
        [&](int i, float2 v) {
            const float w = __ldg(window + i) / SPECTRUM_N;
            points[spectrum_at(i)] = make_float2(v.y * w, v.x * w);
        });
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
        for (int s = 0; s < SPECTRUM_SEQUENCES; s++) {
            const int x = i - 2 * s * hop, y = x - hop;
            if (x >= 0 && x < SPECTRUM_N) value += points[s * SPECTRUM_POINTS + spectrum_at(x)].x;
            if (y >= 0 && y < SPECTRUM_N) value += points[s * SPECTRUM_POINTS + spectrum_at(y)].y;
        }
        if (i < SPECTRUM_PAIR_FRAMES * hop) give(i, value), value = 0;
        ring[at] = value;
    }
}

/// A block's way along its line, `shared` its transforms' points and the ring. pair(line, t, own, thread, points) has
/// spectrum_put_pair write frames t and t + 1 of the line; `own`: no other block makes them but for their neighbours'
/// sake. give(line, i, at, to, sum): the overlapped sum at sample `at` of the padded signal, `to` of the line; `i` is at
/// but for a multiple of the hop.
template <class Pair, class Give>
__device__ __forceinline__ void spectrum_walk(const wt_spectrum_walk &w, float2 *shared, Pair pair, Give give)
{
    const int hop = w.hop, thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const long long n_hops = (w.length + w.margin + hop - 1) / hop;
    const int blocks = (int)((n_hops + w.hops - 1) / w.hops);
    const long long line = blockIdx.x / blocks;
    const int begin = (int)(blockIdx.x % blocks) * w.hops;
    const int end = begin + w.hops < n_hops ? begin + w.hops : (int)n_hops;
    float2 *points = shared + sequence * SPECTRUM_POINTS;
    float *ring = (float *)(shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS);
    for (int i = threadIdx.x; i < w.ring; i += SPECTRUM_BLOCK) ring[i] = 0;
    __syncthreads();
    int start = 0;
    for (int t = begin > w.lead ? begin - w.lead : 0; t < end; t += SPECTRUM_PAIR_FRAMES) {
        const int first = t + 2 * sequence;
        pair(line, first, first >= begin && first < end, thread, points);
        __syncthreads();
        spectrum_back(thread, points, w.window, w.twiddles);
        const long long from = (long long)t * hop;
        spectrum_overlap(shared, ring, w.ring, start, hop, [&](int i, float sum) {
            const long long at = from + i, to = at - w.margin;
            if (at >= (long long)begin * hop && at < (long long)end * hop && to >= 0 && to < w.length)
                give(line, i, at, to, sum);
        });
        start = (start + SPECTRUM_PAIR_FRAMES * hop) % w.ring;
        __syncthreads();
    }
}
#endif
