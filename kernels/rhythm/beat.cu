// Ellis's beat tracker, a block a signal (dsp/rhythm/beat.c has the idea). Sums and comparisons are the CPU's, in
// double and in its order, logarithms come from its table, and the exponential is one text for both: beats are
// identical, ties included. Compiled without contraction to fused multiply-adds.
//
// A frame's predecessors lie at least half a period back, so that many frames are linked at once, a thread each. What
// is a chain by nature (mean and deviation, the way back from the last beat) one thread walks: 60 s have 2584 frames.
// Bound by the latency of that thread; with a signal a block, hundreds of them hide each other's.
// Judge: the CPU (dsp/rhythm/beat.c): beats identical.
#include "tempo_kernel.h"

#define ALL     0xffffffffu
#define THREADS 128

struct beat_block {
    const float *envelope;
    double *bumps, *score, *sum, *scaled;
    int *link;
    long long n;
};

// ---- what all threads find together; each begins and ends with the block in step

static __device__ long long least_of(long long value, long long *shared)
{
    __syncthreads();
    for (int step = 16; step; step /= 2) {
        const long long other = __shfl_xor_sync(ALL, value, step);
        value = other < value ? other : value;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) value = shared[w] < value ? shared[w] : value;
    __syncthreads();
    return value;
}

// The first frame for which `is` holds, else n.
template <class Is> static __device__ long long first_of(long long n, long long *shared, const Is &is)
{
    long long at = n;
    for (long long i = threadIdx.x; i < n && at == n; i += THREADS)
        if (is(i)) at = i;
    return least_of(at, shared);
}

// The last one, else -1.
template <class Is> static __device__ long long last_of(long long n, long long *shared, const Is &is)
{
    return n - 1 - first_of(n, shared, [&](long long i) { return is(n - 1 - i); });
}

template <class Is> static __device__ long long count_of(long long n, int *shared, const Is &is)
{
    int count = 0;
    for (long long i = threadIdx.x; i < n; i += THREADS) count += is(i);
    count = __reduce_add_sync(ALL, count);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = count;
    __syncthreads();
    long long all = 0;
    for (int w = 0; w < THREADS / 32; w++) all += shared[w];
    __syncthreads();
    return all;
}

// ---- local score

static __device__ void scale_envelope(const beat_block &b, double *shared)
{
    if (threadIdx.x == 0) {
        double mean = 0, squares = 0;
        for (long long i = 0; i < b.n; i++) mean += b.envelope[i];
        mean /= (double)b.n;
        for (long long i = 0; i < b.n; i++) squares += (b.envelope[i] - mean) * (b.envelope[i] - mean);
        *shared = b.n > 1 ? sqrt(squares / (double)(b.n - 1)) + 2.2250738585072014e-308 : 1;
    }
    __syncthreads();
    for (long long i = threadIdx.x; i < b.n; i += THREADS) b.scaled[i] = b.envelope[i] / *shared;
    __syncthreads();
}

static __device__ void smooth(const beat_block &b, int period)
{
    for (int k = threadIdx.x; k <= period; k += THREADS) b.bumps[k] = wt__beat_bump(k, period);
    __syncthreads();
    for (long long i = threadIdx.x; i < b.n; i += THREADS) {
        double sum = 0;
        const long long end = i + period < b.n ? i + period : b.n - 1;
        for (long long at = end; at >= i - period && at > 0; at--)
            sum += b.bumps[at > i ? at - i : i - at] * b.scaled[at];
        b.score[i] = sum;
    }
    __syncthreads();
}

// ---- dynamic programming

// A NaN counts only as the first one, as the CPU's comparisons have it.
static __device__ double most_of(const beat_block &b, double *shared)
{
    double most = -__longlong_as_double(0x7ff0000000000000ll);
    for (long long i = threadIdx.x; i < b.n; i += THREADS) most = b.score[i] > most ? b.score[i] : most;
    for (int step = 16; step; step /= 2) most = fmax(most, __shfl_xor_sync(ALL, most, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) most = fmax(most, shared[w]);
    __syncthreads();
    return b.score[0] == b.score[0] ? most : b.score[0];
}

// `penalty` of a beat so many frames away.
template <class Penalty>
static __device__ void link_beats(const beat_block &b, int period, const Penalty &penalty, double *doubles,
                                  long long *longs)
{
    int nearest = (int)rint(period / 2.0), farthest = 2 * period;
    if (nearest < 1) nearest = 1;
    const double weak = 0.01 * most_of(b, doubles);
    const long long first = first_of(b.n, longs, [&](long long i) { return !(b.score[i] < weak); });
    const int step = nearest < THREADS ? nearest : THREADS;
    for (long long begin = 0; begin < b.n; begin += step) {
        const long long i = begin + threadIdx.x;
        if (threadIdx.x < step && i < b.n) {
            double best = -__longlong_as_double(0x7ff0000000000000ll);
            long long from = -1;
            const int end = i < farthest ? (int)i : farthest;
#pragma unroll 4
            for (int away = nearest; away <= end; away++) {
                const double here = b.sum[i - away] - penalty(away);
                if (here > best) best = here, from = i - away;
            }
            b.sum[i] = from >= 0 ? b.score[i] + best : b.score[i];
            b.link[i] = i < first ? -1 : (int)from;
        }
        __syncthreads();
    }
}

// Penalties from `table` [2 period + 1], in shared memory, where it has room for them.
static __device__ void link_beats(const wt_beat_args &a, const beat_block &b, int period, double *table,
                                  double *doubles, long long *longs)
{
    const auto penalty = [&](int away) {
        const double octaves = a.logs[away] - a.logs[period];
        return a.tightness * (octaves * octaves);
    };
    if (a.max_period > WT_BEAT_SHARED) {
        link_beats(b, period, penalty, doubles, longs);
        return;
    }
    for (int away = 1 + threadIdx.x; away <= 2 * period; away += THREADS) table[away] = penalty(away);
    __syncthreads();
    link_beats(
        b, period, [&](int away) { return table[away]; }, doubles, longs);
}

// ---- the way back

static __device__ bool is_peak(const double *x, long long i, long long n)
{
    return i > 0 && x[i] > x[i - 1] && (i + 1 == n || x[i] >= x[i + 1]);
}

// A double as an integer of the same order, and back.
static __device__ unsigned long long key_of(double x)
{
    const long long bits = __double_as_longlong(x);
    return (unsigned long long)bits ^ (bits < 0 ? ~0ull : 1ull << 63);
}

static __device__ double value_of(unsigned long long key)
{
    return __longlong_as_double((long long)(key >> 63 ? key ^ 1ull << 63 : ~key));
}

// The peak of rank k, by bisection of its bits.
static __device__ double ranked(const beat_block &b, long long k, int *shared)
{
    unsigned long long key = 0;
    for (unsigned long long bit = 1ull << 63; bit; bit >>= 1) {
        const unsigned long long trial = key | bit;
        if (count_of(b.n, shared, [&](long long i) { return is_peak(b.sum, i, b.n) && key_of(b.sum[i]) < trial; }) <= k)
            key = trial;
    }
    return value_of(key);
}

// The last peak of the sums not under half the median of all peaks.
static __device__ long long last_beat(const beat_block &b, int *ints, long long *longs)
{
    const long long count = count_of(b.n, ints, [&](long long i) { return is_peak(b.sum, i, b.n); });
    double least = 0; // half the median
    if (count) {
        const double low = ranked(b, (count - 1) / 2, ints);
        least = (low + (count % 2 ? low : ranked(b, count / 2, ints))) / 4;
    }
    const long long at = last_of(b.n, longs, [&](long long i) { return is_peak(b.sum, i, b.n) && b.sum[i] >= least; });
    return at >= 0 ? at : b.n - 1;
}

// Frames of the beats, ascending, into the row.
static __device__ long long walk_back(const beat_block &b, long long last, int *frames)
{
    long long count = 0;
    for (long long at = last; at >= 0; at = b.link[at]) frames[count++] = (int)at;
    for (long long i = 0, j = count - 1; i < j; i++, j--) {
        const int t = frames[i];
        frames[i] = frames[j];
        frames[j] = t;
    }
    return count;
}

// Half the root mean square of the beats' scores under a Hann window of five, of which three are not zero. As librosa
// cuts its convolution: from the first beat's middle on, two behind the last, and not more than there are frames.
static __device__ double trim_level(const beat_block &b, const int *frames, long long count)
{
    double sum = 0;
    const long long n_sums = count + 2 < b.n ? count + 2 : b.n;
    for (long long k = 0; k < n_sums; k++) {
        double y = 0;
        for (long long j = k - 1; j <= k + 1; j++)
            if (j >= 0 && j < count) y += (j == k ? 1 : 0.5) * b.score[frames[j]];
        sum += y * y;
    }
    return 0.5 * sqrt(sum / (double)n_sums);
}

// Leave out the beats before the first frame above the level, and behind the last. By one thread.
static __device__ long long trim(int *frames, long long count, long long begin, long long end)
{
    long long first = 0;
    while (first < count && frames[first] < begin) first++;
    while (count > first && frames[count - 1] >= end) count--;
    for (long long k = first; first && k < count; k++) frames[k - first] = frames[k];
    return count - first;
}

extern "C" __global__ void __launch_bounds__(THREADS) beat_track(wt_beat_args a)
{
    extern __shared__ double penalty[]; // [2 max_period + 1], or none
    __shared__ double doubles[THREADS / 32];
    __shared__ long long longs[THREADS / 32];
    __shared__ int ints[THREADS / 32];
    __shared__ long long n_beats;
    __shared__ double level;
    const long long row = blockIdx.x * a.n_frames;
    const beat_block b = {a.envelope + row, a.bumps + blockIdx.x * (a.max_period + 1LL),
                          a.score + row,    a.sum + row,
                          a.scaled + row,   a.link + row,
                          a.n_frames};
    int *frames = a.frames + row;
    wt_beat_found *found = a.found + blockIdx.x;
    if (first_of(b.n, longs, [&](long long i) { return b.envelope[i] != 0; }) == b.n) {
        if (threadIdx.x == 0) found->bpm = 0, found->n_beats = 0;
        return;
    }
    const double bpm = a.bpm ? a.bpm[blockIdx.x] : a.known_bpm;
    int period = (int)rint(a.frames_per_minute / bpm);
    if (period > a.max_period) period = a.max_period;
    if (period < 1) period = 1;
    scale_envelope(b, doubles);
    smooth(b, period);
    link_beats(a, b, period, penalty, doubles, longs);
    const long long last = last_beat(b, ints, longs);
    if (threadIdx.x == 0) {
        n_beats = walk_back(b, last, frames);
        level = a.no_trim || !n_beats ? 0 : trim_level(b, frames, n_beats);
    }
    __syncthreads();
    const long long begin = first_of(b.n, longs, [&](long long i) { return !(b.score[i] <= level); });
    const long long end = last_of(b.n, longs, [&](long long i) { return !(b.score[i] <= level); }) + 1;
    if (threadIdx.x == 0) {
        found->n_beats = trim(frames, n_beats, begin, end);
        found->bpm = bpm;
    }
}
