// What loudness of whole programmes and of streams share: the weighting, the true peak, windows of steps, and the
// figures.
#pragma once
#include "loudness_batch_kernel.h"

#define ALL 0xffffffffu

enum { TILE = 32, FINISH_BLOCK = 256 };

static __device__ __forceinline__ float good(float x) { return fabsf(x) <= 3.402823466e38f ? x : 0.0f; }

struct weighting_state {
    double s[2][2]; // [section][delay], transposed direct form II
};

// Written out, so that all loops round alike.
static __device__ __forceinline__ double weighted(const loudness_weighting &w, weighting_state &f, double x)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const double y = fma(w.b[i][0], x, f.s[i][0]);
        f.s[i][0] = fma(-w.a[i][1], y, fma(w.b[i][1], x, f.s[i][1])); // from y to the next y two steps, not three
        f.s[i][1] = fma(-w.a[i][2], y, w.b[i][2] * x);
        x = y;
    }
    return x;
}

// As the meter does at the end of a step.
static __device__ __forceinline__ void flush(weighting_state &f)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (fabs(f.s[i / 2][i % 2]) < 1e-30) f.s[i / 2][i % 2] = 0;
}

// Magnitude of the point ROW / 4 behind x[5], as an integer: of the same order.
template <int ROW> static __device__ __forceinline__ int between(const float *x)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < LOUDNESS_TAPS; k++) sum += loudness_interpolator[ROW][k] * x[k];
    return __float_as_int(sum) & 0x7fffffff;
}

// Mean power of the n steps before `step`; before the start there was silence. `powers` ends with that of step - 1.
static __device__ double window(int rate_hz, const double *powers, long long step, int n)
{
    const long long first = step < n ? 0 : step - n;
    double sum = 0;
    for (long long k = first; k < step; k++) sum += powers[k - step];
    return sum / (double)(loudness_end_of_step(rate_hz, first + n) - loudness_end_of_step(rate_hz, first));
}

// ---- figures

// All blocks as they came, in time.
struct loudness_list {
    const loudness_block *blocks;
    long long n;
    __device__ long long begin(int) const { return 0; }
    __device__ long long end(int) const { return n; }
    __device__ void add(long long i, int first, int last, loudness_sum &s) const
    {
        if (blocks[i].bin >= first && blocks[i].bin <= last) s.power += blocks[i].power, s.count++;
    }
};

// How many there were in each bin.
struct loudness_histogram {
    const loudness_sum *bins; // [LOUDNESS_N_BINS]
    __device__ long long begin(int first) const { return first; }
    __device__ long long end(int last) const { return last < LOUDNESS_N_BINS ? last + 1 : LOUDNESS_N_BINS; }
    __device__ void add(long long i, int, int, loudness_sum &s) const
    {
        s.power += bins[i].power, s.count += bins[i].count;
    }
};

// Of the blocks whose bin is first .. last; all threads of the block get it.
template <class Blocks> static __device__ loudness_sum sum_of(const Blocks &blocks, int first, int last)
{
    __shared__ loudness_sum sums[FINISH_BLOCK / 32];
    loudness_sum s = {0, 0};
    for (long long i = blocks.begin(first) + threadIdx.x; i < blocks.end(last); i += FINISH_BLOCK)
        blocks.add(i, first, last, s);
    for (int step = 16; step; step /= 2) {
        s.power += __shfl_xor_sync(ALL, s.power, step);
        s.count += __shfl_xor_sync(ALL, s.count, step);
    }
    __syncthreads(); // the last call's sums have been read
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
    s = sums[0];
    for (int w = 1; w < FINISH_BLOCK / 32; w++) s.power += sums[w].power, s.count += sums[w].count;
    return s;
}

static __device__ double mean_of(const loudness_sum &s) { return s.count ? s.power / (double)s.count : 0; }

// First bin above a gate `below_lu` under the mean; the bin that holds the gate counts when its own mean is above.
template <class Blocks> static __device__ int gated_bin(const Blocks &blocks, double below_lu)
{
    const double threshold = loudness_lufs(mean_of(sum_of(blocks, 0, LOUDNESS_N_BINS))) - below_lu;
    const int k = loudness_bin(threshold);
    if (k < 0) return 0;
    const loudness_sum own = sum_of(blocks, k, k);
    return own.count && loudness_lufs(mean_of(own)) >= threshold ? k : k + 1;
}

// Level of the block of rank `rank` (0 = quietest) among those from bin `first` up: the mean of its bin.
template <class Blocks> static __device__ double level_of_rank(const Blocks &blocks, int first, long long rank)
{
    int low = first, high = LOUDNESS_N_BINS - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sum_of(blocks, first, middle).count > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return loudness_lufs(mean_of(sum_of(blocks, low, low)));
}

template <class Blocks> static __device__ double range_of(const Blocks &blocks)
{
    const int first = gated_bin(blocks, 20);
    const long long count = sum_of(blocks, first, LOUDNESS_N_BINS).count;
    if (!count) return 0;
    const double last = (double)(count - 1);
    const double high = level_of_rank(blocks, first, (long long)(last * 0.95 + 0.5));
    return high - level_of_rank(blocks, first, (long long)(last * 0.10 + 0.5));
}

template <class Blocks>
static __device__ void give_values(const loudness_facts &facts, const Blocks &blocks, const Blocks &ranges,
                                   long long n_frames, loudness_values *values)
{
    const int gate = gated_bin(blocks, 10);
    const double integrated = mean_of(sum_of(blocks, gate, LOUDNESS_N_BINS)), range = range_of(ranges);
    if (threadIdx.x) return;
    loudness_values v;
    v.momentary_lufs = loudness_lufs(facts.momentary);
    v.short_term_lufs = loudness_lufs(facts.short_term);
    v.max_momentary_lufs = loudness_lufs(__longlong_as_double((long long)facts.max_momentary));
    v.max_short_term_lufs = loudness_lufs(__longlong_as_double((long long)facts.max_short_term));
    v.integrated_lufs = loudness_lufs(integrated);
    v.range_lu = range;
    v.sample_peak_db = loudness_decibels(__int_as_float(facts.sample_peak));
    v.true_peak_db = loudness_decibels(__int_as_float(facts.true_peak));
    v.n_frames = n_frames, v.n_bad = (long long)facts.n_bad;
    *values = v;
}
