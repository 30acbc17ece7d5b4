// Loudness of many programmes that go on from block to block, all in step; their state stays on the device.
//
//   loudness_stream_peaks    a thread a frame: the sample and the points behind it; the last samples of the block
//   before
//                            lead
//   loudness_stream_power    a thread a channel: K-weighted energy of each step of 10 ms that ends here, sample after
//                            sample as the meter does, so that no cut shows; samples come through shared memory
//   loudness_stream_windows  a block a programme, a thread a step: momentary and short-term power. Gating blocks go to
//                            their histogram by one thread, those of the range by another: in order
//   loudness_stream_query    a block a programme: the figures
//
// The second is bound by the filter's recursion, some 2 us a millisecond of audio however many channels there are.
// Judge: the meter (dsp/level/loudness.c), 1e-6 LU; peaks 2e-6; the same bits for every cut.
#include "loudness.cuh"
#include "loudness_stream_kernel.h"

enum { PEAK_BLOCK = 256, PEAK_FRAMES = 2048, BEFORE = LOUDNESS_TAPS - 1 };

static __device__ __forceinline__ const float *line_of(const loudness_stream_args &a, long long line)
{
    return a.pcm + line * a.stride;
}

// ---- peaks

extern "C" __global__ void __launch_bounds__(PEAK_BLOCK) loudness_stream_peaks(loudness_stream_args a)
{
    __shared__ float samples[PEAK_FRAMES + BEFORE]; // from 11 before the first
    const int tiles = (a.count + PEAK_FRAMES - 1) / PEAK_FRAMES, first = blockIdx.x % tiles * PEAK_FRAMES;
    const long long line = blockIdx.x / tiles;
    const float *pcm = line_of(a, line);
    int n_bad = 0, sample = 0, peak = 0; // magnitudes as integers
    for (int i = threadIdx.x; i < PEAK_FRAMES + BEFORE; i += PEAK_BLOCK) {
        const int at = first + i - BEFORE;
        const float x = at >= a.count ? 0.0f : at >= 0 ? __ldg(pcm + at) : a.lines[line].history[LOUDNESS_TAPS + at];
        samples[i] = good(x);
        n_bad += i >= BEFORE && samples[i] != x; // also when x is not a number
    }
    __syncthreads();
    for (int i = threadIdx.x; i < PEAK_FRAMES && first + i < a.count; i += PEAK_BLOCK) {
        sample = max(sample, __float_as_int(samples[i + BEFORE]) & 0x7fffffff);
        if (a.oversampling > 1) peak = max(peak, between<1>(samples + i));
        if (a.oversampling > 2) peak = max(peak, max(between<0>(samples + i), between<2>(samples + i)));
    }
    sample = __reduce_max_sync(ALL, sample), peak = __reduce_max_sync(ALL, peak);
    n_bad = __reduce_add_sync(ALL, n_bad);
    if (threadIdx.x % 32) return;
    loudness_facts *facts = &a.programmes[line / a.channels].facts;
    atomicMax(&facts->sample_peak, sample);
    atomicMax(&facts->true_peak, max(peak, sample));
    if (n_bad) atomicAdd(&facts->n_bad, (unsigned long long)n_bad);
}

// ---- energy

// The last samples, for the next block's peaks.
static __device__ void keep_last(const loudness_stream_args &a, const float *pcm, float *history)
{
    for (int i = 0; i < LOUDNESS_TAPS; i++) {
        const int at = a.count - LOUDNESS_TAPS + i;
        history[i] = at >= 0 ? good(pcm[at]) : history[i + a.count];
    }
}

extern "C" __global__ void __launch_bounds__(32) loudness_stream_power(loudness_stream_args a)
{
    __shared__ float tile[32][TILE + 1];
    const int lane = threadIdx.x;
    const long long lines = (long long)a.n_signals * a.channels, line = (long long)blockIdx.x * 32 + lane;
    const long long mine = line < lines ? line : lines - 1; // who has none does the last one's again, and keeps nothing
    loudness_line_state state = a.lines[mine];
    weighting_state f;
#pragma unroll
    for (int i = 0; i < 4; i++) f.s[i / 2][i % 2] = state.filter[i / 2][i % 2];
    double power = state.power;
    float ahead[32]; // of the tile after this one: on its way while this one is filtered
    const auto fetch = [&](int base) {
#pragma unroll
        for (int row = 0; row < 32; row++) {
            const long long there = min((long long)blockIdx.x * 32 + row, lines - 1);
            ahead[row] = base + lane < a.count ? good(__ldg(line_of(a, there) + base + lane)) : 0.0f;
        }
    };
    fetch(0);
    int step = 0, left = (int)(loudness_end_of_step(a.rate_hz, a.step + 1) - a.frame);
    for (int base = 0; base < a.count; base += TILE) { // the same for all lanes
        const int rest = a.count - base, n = rest < TILE ? rest : TILE;
#pragma unroll
        for (int row = 0; row < 32; row++) tile[row][lane] = ahead[row];
        __syncwarp();
        fetch(base + TILE);
        if (n == TILE && left > TILE) {
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                const double y = weighted(a.weighting, f, tile[lane][k]);
                power = fma(y, y, power);
            }
            left -= TILE;
        } else {
#pragma unroll 1
            for (int k = 0; k < n; k++) {
                const double y = weighted(a.weighting, f, tile[lane][k]);
                power = fma(y, y, power);
                if (--left) continue;
                if (line < lines) a.steps[line * LOUDNESS_STREAM_STEPS + step] = power;
                const long long end = a.step + ++step;
                left = (int)(loudness_end_of_step(a.rate_hz, end + 1) - loudness_end_of_step(a.rate_hz, end));
                power = 0;
                flush(f);
            }
        }
        __syncwarp();
    }
    if (line >= lines) return;
#pragma unroll
    for (int i = 0; i < 4; i++) state.filter[i / 2][i % 2] = f.s[i / 2][i % 2];
    state.power = power;
    keep_last(a, line_of(a, line), state.history);
    a.lines[line] = state;
}

// ---- windows

static __device__ void count_block(loudness_sum *bins, double power)
{
    const int bin = loudness_bin(loudness_lufs(power));
    if (bin >= 0) bins[bin].power += power, bins[bin].count++;
}

extern "C" __global__ void __launch_bounds__(LOUDNESS_STREAM_STEPS) loudness_stream_windows(loudness_stream_args a)
{
    __shared__ double powers[LOUDNESS_SHORT_TERM + LOUDNESS_STREAM_STEPS]; // of the steps from a.step - SHORT_TERM
    __shared__ double windows[2][LOUDNESS_STREAM_STEPS];
    loudness_programme_state *state = a.programmes + blockIdx.x;
    const double *steps = a.steps + (long long)blockIdx.x * a.channels * LOUDNESS_STREAM_STEPS;
    for (int i = threadIdx.x; i < LOUDNESS_SHORT_TERM + a.n_steps; i += LOUDNESS_STREAM_STEPS) {
        const long long at = a.step - LOUDNESS_SHORT_TERM + i;
        double sum = at >= 0 && at < a.step ? state->ring[at % LOUDNESS_SHORT_TERM] : 0;
        for (int c = 0; c < a.channels && at >= a.step; c++)
            sum += a.weights[c] * steps[c * LOUDNESS_STREAM_STEPS + (at - a.step)];
        powers[i] = sum;
    }
    __syncthreads();
    const int t = threadIdx.x;
    const long long step = a.step + t + 1; // that many have ended
    if (t < a.n_steps) {
        const double *mine = powers + LOUDNESS_SHORT_TERM + t + 1;
        windows[0][t] = window(a.rate_hz, mine, step, LOUDNESS_MOMENTARY);
        windows[1][t] = window(a.rate_hz, mine, step, LOUDNESS_SHORT_TERM);
        state->ring[(step - 1) % LOUDNESS_SHORT_TERM] = mine[-1]; // fewer than SHORT_TERM steps: each its own place
        atomicMax(&state->facts.max_momentary, (unsigned long long)__double_as_longlong(windows[0][t]));
        atomicMax(&state->facts.max_short_term, (unsigned long long)__double_as_longlong(windows[1][t]));
        if (t == a.n_steps - 1) state->facts.momentary = windows[0][t], state->facts.short_term = windows[1][t];
    }
    __syncthreads();
    if (t % 32 || t > 32) return; // threads 0 and 32
    loudness_sum *bins = a.bins + (2 * (long long)blockIdx.x + t / 32) * LOUDNESS_N_BINS;
    const int apart = t ? 100 : 10, least = t ? LOUDNESS_SHORT_TERM : LOUDNESS_MOMENTARY;
    for (int k = 0; k < a.n_steps; k++)
        if (a.step + k + 1 >= least && (a.step + k + 1) % apart == 0) count_block(bins, windows[t / 32][k]);
}

// ---- figures

extern "C" __global__ void __launch_bounds__(FINISH_BLOCK) loudness_stream_query(loudness_stream_args a)
{
    const loudness_histogram blocks = {a.bins + 2 * (long long)blockIdx.x * LOUDNESS_N_BINS},
                             ranges = {blocks.bins + LOUDNESS_N_BINS};
    give_values(a.programmes[blockIdx.x].facts, blocks, ranges, a.frame, a.values + blockIdx.x);
}
