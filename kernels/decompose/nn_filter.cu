// Filtering by nearest neighbours.
//
//   nn_distances   a thread a pair of frames; neighbours read side by side
//   nn_link        a block a frame: the key of the last one near enough, byte by byte from the top by counting, then
//                  one walk in time that drops those within `width` and keeps the first k
//   nn_gather      a block a frame: its neighbours in the block's array, a thread a row; medians by bisection of
//                  their keys
//
// Compiled without fused multiply-adds: distances have the CPU's bits, so that neighbours are the same.
// Judge: the CPU (dsp/decompose/nn_filter.c): the same neighbours, 2e-6 of the peak.
#include "median.cuh"
#include "nn_filter_kernel.h"
#include "places.cuh"

enum { THREADS = WT_NN_FILTER_THREADS, WARPS = THREADS / 32 };

extern "C" __global__ void __launch_bounds__(THREADS) nn_distances(wt_nn_filter_args a)
{
    const int across = (a.columns + THREADS - 1) / THREADS, i = blockIdx.x / across;
    const int j = blockIdx.x % across * THREADS + threadIdx.x;
    if (j >= a.columns) return;
    const float *from = a.in + a.first + i, *to = a.in + j;
    double square = 0, dot = 0, of_a = 0, of_b = 0;
    for (int r = 0; r < a.rows; r++, from += a.columns, to += a.columns) {
        const double x = __ldg(from), y = __ldg(to);
        if (a.cosine)
            dot += x * y, of_a += x * x, of_b += y * y;
        else
            square += (x - y) * (x - y);
    }
    if (a.cosine) square = 1 - (of_a > 0 && of_b > 0 ? dot / sqrt(of_a * of_b) : 0);
    a.distances[(long long)i * a.columns + j] = square;
}

// An integer of the same order.
static __device__ __forceinline__ unsigned long long key_of(double x)
{
    const long long bits = __double_as_longlong(x);
    return (unsigned long long)(bits ^ (bits >> 63 & 0x7fffffffffffffffll)) ^ 0x8000000000000000ull;
}

// How many of the block's threads before this one say yes, and in all. Ends with the block in step.
static __device__ int yes_before(bool yes, int *warps, int &all)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned votes = __ballot_sync(0xffffffffu, yes);
    if (!lane) warps[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1));
    all = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
    __syncthreads();
    return before;
}

// The key of the n-th nearest frame, `ties` of whose equals are among the n. All threads together.
static __device__ unsigned long long last_key(const double *distances, int columns, int t, int n, int *counts,
                                              int &ties)
{
    __shared__ unsigned long long found;
    __shared__ int left;
    if (!threadIdx.x) found = 0, left = n;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += THREADS) counts[i] = 0;
        __syncthreads();
        const unsigned long long above = shift == 56 ? 0 : ~0ull << (shift + 8), prefix = found;
        for (int j = threadIdx.x; j < columns; j += THREADS) {
            const unsigned long long key = key_of(distances[j]);
            if (j != t && (key & above) == prefix) atomicAdd(counts + (int)(key >> shift & 255), 1);
        }
        __syncthreads();
        if (!threadIdx.x) {
            int digit = 0;
            while (digit < 255 && counts[digit] < left) left -= counts[digit++];
            found |= (unsigned long long)digit << shift;
        }
        __syncthreads();
    }
    ties = left;
    return found;
}

extern "C" __global__ void __launch_bounds__(THREADS) nn_link(wt_nn_filter_args a)
{
    __shared__ int counts[256], warps[WARPS];
    const int t = a.first + blockIdx.x;
    const double *distances = a.distances + (long long)blockIdx.x * a.columns;
    unsigned char *linked = a.linked + (long long)t * a.columns;
    const int all_near = a.k + 2 * a.width, n = all_near < a.columns - 1 ? all_near : a.columns - 1;
    int ties, kept = 0, tied = 0, more;
    const unsigned long long last = last_key(distances, a.columns, t, n, counts, ties);
    for (int begin = 0; begin < a.columns; begin += THREADS) {
        const int j = begin + threadIdx.x;
        const bool other = j < a.columns && j != t;
        const unsigned long long key = other ? key_of(distances[j]) : ~0ull;
        const bool tie = other && key == last;
        const bool in_time = tied + yes_before(tie, warps, more) < ties;
        tied += more;
        const bool near = other && (key < last || (tie && in_time)) && (j < t ? t - j : j - t) >= a.width;
        const bool among = kept + yes_before(near, warps, more) < a.k;
        kept += more;
        if (j < a.columns) linked[j] = near && among;
    }
}

static __device__ __forceinline__ int value_key(const float *row, int j)
{
    return median_turn(__float_as_int(__ldg(row + j)));
}

// Of n values, the middle one or the mean of the middle two.
static __device__ float middle(const float *row, const int *list, int n)
{
    unsigned found = 0;
    int below = 0;
    for (int bit = 31; bit >= 0; bit--) {
        const unsigned trial = found | 1u << bit;
        int smaller = 0;
        for (int i = 0; i < n; i++) smaller += ((unsigned)value_key(row, list[i]) ^ 0x80000000u) < trial;
        if (smaller <= n / 2) found = trial, below = smaller;
    }
    const int key = (int)(found ^ 0x80000000u);
    const float upper = __int_as_float(median_turn(key));
    if (n % 2) return upper;
    if (below < n / 2) return upper; // both are equal
    int lower = (int)0x80000000;
    for (int i = 0; i < n; i++) {
        const int other = value_key(row, list[i]);
        if (other < key && other > lower) lower = other;
    }
    return 0.5f * (__int_as_float(median_turn(lower)) + upper);
}

// Frame t, its neighbours in `list` [columns].
static __device__ __forceinline__ void gather(const wt_nn_filter_args &a, int *list, int t)
{
    __shared__ int warps[WARPS];
    int n = 0, more;
    for (int begin = 0; begin < a.columns; begin += THREADS) {
        const int j = begin + threadIdx.x;
        const bool there = j < a.columns && a.linked[(long long)t * a.columns + j] &&
                           (!a.symmetric || a.linked[(long long)j * a.columns + t]);
        const int at = n + yes_before(there, warps, more);
        if (there) list[at] = j;
        n += more;
    }
    __syncthreads();
    for (int r = threadIdx.x; r < a.rows; r += THREADS) {
        const float *row = a.in + (long long)r * a.columns;
        double sum = 0;
        for (int i = 0; i < n && !a.median; i++) sum += __ldg(row + list[i]);
        a.out[(long long)r * a.columns + t] = !n ? row[t] : a.median ? middle(row, list, n) : (float)(sum / n);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) nn_gather(wt_nn_filter_args a)
{
    for_tiles<int>(a.places, [&](int *list, long long t, int) { gather(a, list, (int)t); });
}
