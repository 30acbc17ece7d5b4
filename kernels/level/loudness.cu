// Loudness of whole programmes, ITU-R BS.1770-4 and EBU R 128, many at a time.
//
//   loudness_power     a thread a channel and second: K-weighted energy of each step of 10 ms. The filter begins a
//                      quarter of a second before, from silence. Samples come through shared memory, a row a thread.
//   loudness_peaks     a thread a frame: the sample and the points behind it
//   loudness_windows   a thread a step: momentary and short-term power, the gating blocks, the values of the range
//   loudness_finish    a block a programme: gates and percentiles. In place of the meter's histograms sums run over the
//                      blocks whose bin counts, in an order that is always the same.
//
// Filters and powers are double, as the meter's. Judge: the meter (dsp/level/loudness.c), 1e-6 LU; peaks 2e-6.
#include "loudness_batch_kernel.h"

#define ALL 0xffffffffu

enum { POWER_WARPS = 4, TILE = 32, PEAK_BLOCK = 256, PEAK_FRAMES = 2048, WINDOW_BLOCK = 256, FINISH_BLOCK = 256 };

static __device__ __forceinline__ float good(float x) { return fabsf(x) <= 3.402823466e38f ? x : 0.0f; }

// ---- energy

struct weighting_state {
    double s[2][2]; // [section][delay], transposed direct form II
};

static __device__ __forceinline__ double weighted(const loudness_weighting &w, weighting_state &f, double x)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const double y = w.b[i][0] * x + f.s[i][0];
        f.s[i][0] = (w.b[i][1] * x + f.s[i][1]) - w.a[i][1] * y; // from y to the next y two steps, not three
        f.s[i][1] = w.b[i][2] * x - w.a[i][2] * y;
        x = y;
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(32 * POWER_WARPS) loudness_power(loudness_args a)
{
    __shared__ float tiles[POWER_WARPS][32][TILE + 1];
    const int lane = threadIdx.x % 32;
    float(*tile)[TILE + 1] = tiles[threadIdx.x / 32];
    const long long seconds = (a.n_steps + LOUDNESS_STEPS_PER_S - 1) / LOUDNESS_STEPS_PER_S;
    const long long items = a.n_signals * a.channels * seconds;
    const long long item = (long long)blockIdx.x * 32 * POWER_WARPS + threadIdx.x;
    if (item - lane >= items) return; // the whole warp
    const long long line = item < items ? item / seconds : 0, second = item < items ? item % seconds : 0;
    const long long begin = line * a.n_frames, first = second * a.rate_hz; // of the line; in the line
    const int warm = (a.rate_hz * LOUDNESS_WARM_STEPS / LOUDNESS_STEPS_PER_S + TILE - 1) / TILE * TILE;
    weighting_state f = {};
    double power = 0;
    float ahead[32]; // of the tile after this one: on its way while this one is filtered
    const auto fetch = [&](int base) {
#pragma unroll
        for (int row = 0; row < 32; row++) {
            const long long at = __shfl_sync(ALL, first, row) + base + lane, from = __shfl_sync(ALL, begin, row);
            ahead[row] = at >= 0 && at < a.n_frames ? good(__ldg(a.pcm + from + at)) : 0.0f;
        }
    };
    fetch(-warm);
    int step = 0, end = (int)loudness_end_of_step(a.rate_hz, 1);
    for (int base = -warm; base < a.rate_hz; base += TILE) { // the same for all lanes
#pragma unroll
        for (int row = 0; row < 32; row++) tile[row][lane] = ahead[row];
        __syncwarp();
        fetch(base + TILE);
        if (base == 0) power = 0;
        if (base + TILE < end) {
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                const double y = weighted(a.weighting, f, tile[lane][k]);
                power += y * y;
            }
            __syncwarp();
            continue;
        }
        for (int k = 0; k < TILE && base + k < a.rate_hz; k++) {
            const double y = weighted(a.weighting, f, tile[lane][k]);
            power += y * y;
            if (base + k + 1 < end) continue;
            const long long at = second * LOUDNESS_STEPS_PER_S + step;
            if (item < items && at < a.n_steps) a.steps[line * a.n_steps + at] = power;
            end = (int)loudness_end_of_step(a.rate_hz, ++step + 1);
            power = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) // as the meter does
                if (fabs(f.s[i / 2][i % 2]) < 1e-30) f.s[i / 2][i % 2] = 0;
        }
        __syncwarp();
    }
}

// ---- peaks

// Magnitude of the point ROW / 4 behind x[5], as an integer: of the same order.
template <int ROW> static __device__ __forceinline__ int between(const float *x)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < LOUDNESS_TAPS; k++) sum += loudness_interpolator[ROW][k] * x[k];
    return __float_as_int(sum) & 0x7fffffff;
}

extern "C" __global__ void __launch_bounds__(PEAK_BLOCK) loudness_peaks(loudness_args a)
{
    __shared__ float samples[PEAK_FRAMES + LOUDNESS_TAPS - 1]; // from 11 before the first
    const long long tiles = (a.n_frames + PEAK_FRAMES - 1) / PEAK_FRAMES, line = blockIdx.x / tiles;
    const long long first = blockIdx.x % tiles * PEAK_FRAMES, signal = line / a.channels;
    int n_bad = 0, sample = 0, peak = 0; // magnitudes as integers
    for (int i = threadIdx.x; i < PEAK_FRAMES + LOUDNESS_TAPS - 1; i += PEAK_BLOCK) {
        const long long at = first + i - (LOUDNESS_TAPS - 1);
        const float x = at >= 0 && at < a.n_frames ? __ldg(a.pcm + line * a.n_frames + at) : 0.0f;
        samples[i] = good(x);
        n_bad += i >= LOUDNESS_TAPS - 1 && samples[i] != x; // also when x is not a number
    }
    __syncthreads();
    for (int i = threadIdx.x; i < PEAK_FRAMES && first + i < a.n_frames; i += PEAK_BLOCK) {
        const int here = __float_as_int(samples[i + LOUDNESS_TAPS - 1]) & 0x7fffffff;
        sample = max(sample, here);
        if (a.oversampling > 1) peak = max(peak, between<1>(samples + i));
        if (a.oversampling > 2) peak = max(peak, max(between<0>(samples + i), between<2>(samples + i)));
    }
    sample = __reduce_max_sync(ALL, sample), peak = __reduce_max_sync(ALL, peak);
    n_bad = __reduce_add_sync(ALL, n_bad);
    if (threadIdx.x % 32) return;
    loudness_facts *facts = a.facts + signal;
    atomicMax(&facts->sample_peak, sample);
    atomicMax(&facts->true_peak, max(peak, sample));
    if (n_bad) atomicAdd(&facts->n_bad, (unsigned long long)n_bad);
}

// ---- windows

// Mean power of the n steps before `step`; before the start there was silence. `powers` ends with that of step - 1.
static __device__ double window(const loudness_args &a, const double *powers, long long step, int n)
{
    const long long first = step < n ? 0 : step - n;
    double sum = 0;
    for (long long k = first; k < step; k++) sum += powers[k - step];
    return sum / (double)(loudness_end_of_step(a.rate_hz, first + n) - loudness_end_of_step(a.rate_hz, first));
}

extern "C" __global__ void __launch_bounds__(WINDOW_BLOCK) loudness_windows(loudness_args a)
{
    __shared__ double powers[LOUDNESS_SHORT_TERM + WINDOW_BLOCK]; // of the steps from first - SHORT_TERM
    const long long tiles = (a.n_steps + WINDOW_BLOCK - 1) / WINDOW_BLOCK, signal = blockIdx.x / tiles;
    const long long first = blockIdx.x % tiles * WINDOW_BLOCK;
    const double *steps = a.steps + signal * a.channels * a.n_steps;
    for (int i = threadIdx.x; i < LOUDNESS_SHORT_TERM + WINDOW_BLOCK; i += WINDOW_BLOCK) {
        const long long at = first - LOUDNESS_SHORT_TERM + i;
        double sum = 0;
        for (int c = 0; c < a.channels && at >= 0 && at < a.n_steps; c++)
            sum += a.weights[c] * steps[c * a.n_steps + at];
        powers[i] = sum;
    }
    __syncthreads();
    const long long step = first + threadIdx.x + 1; // that many have ended
    if (step > a.n_steps) return;
    const double *mine = powers + LOUDNESS_SHORT_TERM + threadIdx.x + 1;
    const double momentary = window(a, mine, step, LOUDNESS_MOMENTARY);
    const double short_term = window(a, mine, step, LOUDNESS_SHORT_TERM);
    loudness_facts *facts = a.facts + signal;
    atomicMax(&facts->max_momentary,
              (unsigned long long)__double_as_longlong(momentary)); // not negative: bits in order
    atomicMax(&facts->max_short_term, (unsigned long long)__double_as_longlong(short_term));
    if (step == a.n_steps) facts->momentary = momentary, facts->short_term = short_term;
    if (step >= LOUDNESS_MOMENTARY && step % 10 == 0)
        a.blocks[signal * a.n_blocks + (step - LOUDNESS_MOMENTARY) / 10] = {momentary,
                                                                            loudness_bin(loudness_lufs(momentary))};
    if (step >= LOUDNESS_SHORT_TERM && step % 100 == 0)
        a.ranges[signal * a.n_ranges + (step - LOUDNESS_SHORT_TERM) / 100] = {short_term,
                                                                              loudness_bin(loudness_lufs(short_term))};
}

// ---- figures

struct loudness_sum {
    double power;
    long long count;
};

// Of the blocks whose bin is first .. last; all threads of the block get it.
static __device__ loudness_sum sum_of(const loudness_block *blocks, long long n, int first, int last)
{
    __shared__ loudness_sum sums[FINISH_BLOCK / 32];
    loudness_sum s = {0, 0};
    for (long long i = threadIdx.x; i < n; i += FINISH_BLOCK)
        if (blocks[i].bin >= first && blocks[i].bin <= last) s.power += blocks[i].power, s.count++;
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
static __device__ int gated_bin(const loudness_block *blocks, long long n, double below_lu)
{
    const double threshold = loudness_lufs(mean_of(sum_of(blocks, n, 0, LOUDNESS_N_BINS))) - below_lu;
    const int k = loudness_bin(threshold);
    if (k < 0) return 0;
    const loudness_sum own = sum_of(blocks, n, k, k);
    return own.count && loudness_lufs(mean_of(own)) >= threshold ? k : k + 1;
}

// Level of the block of rank `rank` (0 = quietest) among those from bin `first` up: the mean of its bin.
static __device__ double level_of_rank(const loudness_block *blocks, long long n, int first, long long rank)
{
    int low = first, high = LOUDNESS_N_BINS - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sum_of(blocks, n, first, middle).count > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return loudness_lufs(mean_of(sum_of(blocks, n, low, low)));
}

static __device__ double range_of(const loudness_block *blocks, long long n)
{
    const int first = gated_bin(blocks, n, 20);
    const long long count = sum_of(blocks, n, first, LOUDNESS_N_BINS).count;
    if (!count) return 0;
    const double last = (double)(count - 1);
    const double high = level_of_rank(blocks, n, first, (long long)(last * 0.95 + 0.5));
    return high - level_of_rank(blocks, n, first, (long long)(last * 0.10 + 0.5));
}

extern "C" __global__ void __launch_bounds__(FINISH_BLOCK) loudness_finish(loudness_args a)
{
    const loudness_block *blocks = a.blocks + blockIdx.x * a.n_blocks;
    const loudness_facts facts = a.facts[blockIdx.x];
    const int gate = gated_bin(blocks, a.n_blocks, 10);
    const double integrated = mean_of(sum_of(blocks, a.n_blocks, gate, LOUDNESS_N_BINS));
    const double range = range_of(a.ranges + blockIdx.x * a.n_ranges, a.n_ranges);
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
    v.n_frames = a.n_frames, v.n_bad = (long long)facts.n_bad;
    a.values[blockIdx.x] = v;
}
