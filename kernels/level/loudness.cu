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
#include "loudness.cuh"

enum { POWER_WARPS = 4, PEAK_BLOCK = 256, PEAK_FRAMES = 2048, WINDOW_BLOCK = 256 };

// ---- energy

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
                power = fma(y, y, power);
            }
            __syncwarp();
            continue;
        }
        for (int k = 0; k < TILE && base + k < a.rate_hz; k++) {
            const double y = weighted(a.weighting, f, tile[lane][k]);
            power = fma(y, y, power);
            if (base + k + 1 < end) continue;
            const long long at = second * LOUDNESS_STEPS_PER_S + step;
            if (item < items && at < a.n_steps) a.steps[line * a.n_steps + at] = power;
            end = (int)loudness_end_of_step(a.rate_hz, ++step + 1);
            power = 0;
            flush(f);
        }
        __syncwarp();
    }
}

// ---- peaks

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
    const double momentary = window(a.rate_hz, mine, step, LOUDNESS_MOMENTARY);
    const double short_term = window(a.rate_hz, mine, step, LOUDNESS_SHORT_TERM);
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

extern "C" __global__ void __launch_bounds__(FINISH_BLOCK) loudness_finish(loudness_args a)
{
    const loudness_list blocks = {a.blocks + blockIdx.x * a.n_blocks, a.n_blocks};
    const loudness_list ranges = {a.ranges + blockIdx.x * a.n_ranges, a.n_ranges};
    give_values(a.facts[blockIdx.x], blocks, ranges, a.n_frames, a.values + blockIdx.x);
}
