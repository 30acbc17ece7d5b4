// Local autocorrelation of onset envelopes, compiled for one SPECTRUM_N, at least twice the window; windows of more
// than 4096 frames go by memory (kernels/rhythm/tempo_wide.cu).
//
//   tempogram      a row a transform: power, and back, which for an even spectrum is the same transform
//   tempo_power    a block adds up a tile's power spectra, each over its row's energy
//   tempo_choose   a block a signal: the mean spectrum's lags, then the best of them
//
// tempogram transforms SPECTRUM_SEQUENCES rows at once, each alone: two rows in one complex transform would leave the
// louder one's rounding in the other. tempo_power gives rows one energy first, then takes two at a time: |Z(k)|^2 +
// |Z(N - k)|^2 is twice the sum of their powers, and no more is asked. Energies are summed as the CPU does it; sums of
// spectra run in double in a fixed order, so a signal's tempo does not depend on its batch.
// Judge: the CPU (dsp/rhythm/tempogram.c, dsp/rhythm/tempo.c), 2e-6 of the peak; lags identical.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 720
#endif
#include "spectrum.cuh"
#include "tempo.cuh"

#define ALL 0xffffffffu

enum {
    TEMPO_POINTS_A_THREAD = (SPECTRUM_N + SPECTRUM_BLOCK - 1) / SPECTRUM_BLOCK,
    TEMPO_SAMPLES = WT_TEMPO_SAMPLES(SPECTRUM_N),
    TEMPO_RESIDENT = SPECTRUM_BLOCK < 512 ? 512 / SPECTRUM_BLOCK : 1, // blocks an SM is to hold
};

extern __shared__ float2 tempo_shared[];

// Of rows 0 .. count - 1 of the tile with samples `xs`, what makes their energies 1, as a product of two factors that
// floats hold; 0 for the rest. A warp a row where the block has whole warps.
static __device__ __forceinline__ void scale_rows(const wt_tempogram_args &a, const float *xs, int count,
                                                  float2 *scales)
{
    constexpr int LANES = SPECTRUM_BLOCK % 32 == 0 ? 32 : 1;
    const int lane = threadIdx.x % LANES;
    for (int f = threadIdx.x / LANES; f < WT_TEMPO_TILE; f += SPECTRUM_BLOCK / LANES) {
        double energy = 0;
        for (int i = lane; f < count && i < a.length; i += LANES) {
            const double value = __ldg(a.window + i) * xs[f + i];
            energy += value * value;
        }
#pragma unroll
        for (int step = LANES / 2; step; step /= 2) energy += __shfl_xor_sync(ALL, energy, step);
        const double scale = energy > 2.2250738585072014e-308 ? 1 / sqrt(energy) : 1;
        const float part = (float)sqrt(scale);
        if (lane == 0) scales[f] = f < count ? make_float2(part, (float)(scale / part)) : make_float2(0.0f, 0.0f);
    }
}

static __device__ __forceinline__ float power_at(const float2 *points, int k)
{
    const float2 z = points[spectrum_at(k)];
    return z.x * z.x + z.y * z.y;
}

// Windowed row `t` of the signal into this sequence's points; nothing where `active` is false.
static __device__ __forceinline__ void transform_row(const wt_tempogram_args &a, const float *x, float2 *points,
                                                     long long t, bool active)
{
    spectrum_transform(
        threadIdx.x % SPECTRUM_THREADS, points, a.twiddles,
        [&](int i) { return make_float2(active ? windowed(a, x, t - a.begin, i) : 0.0f, 0.0f); },
        [&](int k, float2 v) { points[spectrum_at(k)] = v; });
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) tempogram(wt_tempogram_args a)
{
    __shared__ int peaks[SPECTRUM_SEQUENCES];
    const long long blocks = (a.n_rows + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long signal = blockIdx.x / blocks;
    const int sequence = threadIdx.x / SPECTRUM_THREADS, thread = threadIdx.x % SPECTRUM_THREADS;
    const long long t = blockIdx.x % blocks * SPECTRUM_SEQUENCES + sequence;
    float2 *points = tempo_shared + sequence * SPECTRUM_POINTS;
    if (thread == 0) peaks[sequence] = 0;
    transform_row(a, a.envelope + signal * a.n_frames, points, t, t < a.n_rows);
    spectrum_transform(
        thread, points, a.twiddles, [&](int i) { return make_float2(power_at(points, i), 0.0f); },
        [&](int k, float2 v) { points[spectrum_at(k)] = v; });
    float most = 0;
    for (int k = thread; k < a.length; k += SPECTRUM_THREADS)
        most = fmaxf(most, fabsf(points[spectrum_at(k)].x / SPECTRUM_N));
    atomicMax(peaks + sequence, __float_as_int(most)); // not negative: bits have their order
    __syncthreads();
    if (t >= a.n_rows) return;
    const float peak = __int_as_float(peaks[sequence]);
    const bool norm = !a.no_norm && peak > 1.17549435e-38f;
    float *out = a.out + (signal * a.n_rows + t) * a.length;
    for (int k = thread; k < a.length; k += SPECTRUM_THREADS) {
        const float value = points[spectrum_at(k)].x / SPECTRUM_N;
        out[k] = norm ? value / peak : value;
    }
}

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK, TEMPO_RESIDENT) tempo_power(wt_tempogram_args a)
{
    __shared__ float2 scales[WT_TEMPO_TILE];
    float *xs = (float *)(tempo_shared + SPECTRUM_SEQUENCES * SPECTRUM_POINTS); // [TEMPO_SAMPLES] of the tile
    const long long tiles = (a.n_rows + WT_TEMPO_TILE - 1) / WT_TEMPO_TILE, signal = blockIdx.x / tiles;
    const long long first = blockIdx.x % tiles * WT_TEMPO_TILE;
    const int sequence = threadIdx.x / SPECTRUM_THREADS, thread = threadIdx.x % SPECTRUM_THREADS;
    const int count = a.n_rows - first < WT_TEMPO_TILE ? (int)(a.n_rows - first) : WT_TEMPO_TILE;
    const float *x = a.envelope + signal * a.n_frames;
    for (int i = threadIdx.x; i < TEMPO_SAMPLES; i += SPECTRUM_BLOCK)
        xs[i] = i < count + a.length ? ramped(x, a.n_frames, first - a.begin + i, a.length / 2) : 0.0f;
    __syncthreads();
    scale_rows(a, xs, count, scales);
    __syncthreads();
    double sums[TEMPO_POINTS_A_THREAD] = {};
    for (int f = 0; f < count; f += 2 * SPECTRUM_SEQUENCES) {
        const int row = f + 2 * sequence;
        const bool active = row < count; // behind the last row's partner is one of scale 0, or none
        const float2 p = active ? scales[row] : make_float2(0.0f, 0.0f);
        const float2 q = row + 1 < count ? scales[row + 1] : make_float2(0.0f, 0.0f);
        float2 *points = tempo_shared + sequence * SPECTRUM_POINTS;
        spectrum_transform(
            thread, points, a.twiddles,
            [&](int i) {
                if (!active || i >= a.length) return make_float2(0.0f, 0.0f);
                const float w = __ldg(a.window + i);
                return make_float2(w * xs[row + i] * p.x * p.y, w * xs[row + 1 + i] * q.x * q.y);
            },
            [&](int k, float2 v) { points[spectrum_at(k)] = v; });
#pragma unroll
        for (int i = 0; i < TEMPO_POINTS_A_THREAD; i++) {
            const int k = threadIdx.x + i * SPECTRUM_BLOCK;
            float power = 0;
            for (int s = 0; s < SPECTRUM_SEQUENCES && k < SPECTRUM_N; s++)
                power += power_at(tempo_shared + s * SPECTRUM_POINTS, k);
            sums[i] += power;
        }
    }
    __syncthreads();
    double *whole = (double *)tempo_shared; // [n_fft]
#pragma unroll
    for (int i = 0; i < TEMPO_POINTS_A_THREAD; i++) {
        const int k = threadIdx.x + i * SPECTRUM_BLOCK;
        if (k < SPECTRUM_N) whole[k] = sums[i];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < SPECTRUM_BINS; k += SPECTRUM_BLOCK)
        a.sums[(long long)blockIdx.x * SPECTRUM_BINS + k] = 0.5 * (whole[k] + whole[k ? SPECTRUM_N - k : 0]);
}

// ---- choice

// Lag k of a power spectrum: the real inverse transform, in double.
static __device__ float lag_of(const float *mean, const double *cosines, int k)
{
    double sum = 0.5 * mean[0];
    for (int bin = 1, turn = k % SPECTRUM_N; bin < SPECTRUM_BINS; bin++) {
        sum += (2 * bin == SPECTRUM_N ? 0.5 : 1.0) * mean[bin] * cosines[turn];
        turn += k;
        if (turn >= SPECTRUM_N) turn -= SPECTRUM_N;
    }
    return (float)(2 * sum / SPECTRUM_N);
}

static __device__ __forceinline__ bool is_open(const wt_tempo_choice &c, const float *lags, int k, double sure)
{
    return k && k < c.length && wt__tempo_most(&c, wt__tempo_worth(&c, lags[k], k), lags[k], k) >= sure;
}

// Of few lags: a warp takes every eighth row. The sum of lag k, on all threads.
static __device__ double sum_rows(const wt_tempo_args &a, const float *x, int k, double *sums)
{
    const double part = tempo_sum_again(a.rows, x, threadIdx.x / 32, a.n_rows, 8, k);
    double sum = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = part;
    __syncthreads();
    for (int w = 0; w < 8; w++) sum += sums[w];
    return sum;
}

// Of many, as where nearly all is silence: row after row, a thread a lag. To `again` [length]; `row` [length] is work.
static __device__ void sum_lags(const wt_tempo_args &a, const float *x, double *again, double *row, double *sums)
{
    const wt_tempogram_args &g = a.rows;
    for (int k = threadIdx.x; k < g.length; k += 256) again[k] = 0;
    for (long long t = 0; t < a.n_rows; t++) {
        double energy = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < g.length; i += 256) {
            row[i] = (double)__ldg(g.window + i) * ramped(x, g.n_frames, t - g.begin + i, g.length / 2);
            energy += row[i] * row[i];
        }
        if (!__syncthreads_or(energy != 0)) continue;
        for (int step = 16; step; step /= 2) energy += __shfl_xor_sync(ALL, energy, step);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = energy;
        __syncthreads();
        energy = 0;
        for (int w = 0; w < 8; w++) energy += sums[w];
        const double scale = energy > 2.2250738585072014e-308 ? 1 / energy : 1;
        for (int k = threadIdx.x; k < g.length; k += 256) {
            double product = 0;
            for (int i = 0; i + k < g.length; i++) product += row[i] * row[i + k];
            again[k] += scale * product;
        }
    }
    __syncthreads();
}

// The best of the lags that may be it but for WT_TEMPO_SLACK, by sums in double; `work` [2 length].
static __device__ int choose_again(const wt_tempo_args &a, const float *lags, int best, double *sums, double *work)
{
    enum { FEW = 8 };
    const wt_tempo_choice &c = a.choice;
    const double sure = wt__tempo_sure(&c, lags[best], best);
    const float *x = a.rows.envelope + blockIdx.x * a.rows.n_frames;
    double value = -__longlong_as_double(0x7ff0000000000000ll);
    int n_open = 0;
    for (int begin = 0; begin < c.length; begin += 256)
        n_open += __syncthreads_count(is_open(c, lags, begin + threadIdx.x, sure));
    if (n_open > FEW) sum_lags(a, x, work, work + c.length, sums);
    for (int k = 1; k < c.length && n_open > 1; k++) {
        if (!is_open(c, lags, k, sure)) continue;
        const double sum = n_open > FEW ? work[k] : sum_rows(a, x, k, sums);
        const double here = wt__tempo_worth(&c, sum / (double)a.n_rows, k);
        if (here > value) value = here, best = k;
    }
    return best;
}

extern "C" __global__ void __launch_bounds__(256) tempo_choose(wt_tempo_args a)
{
    __shared__ double values[8];
    __shared__ int places[8];
    double *cosines = (double *)tempo_shared;      // [n_fft]
    float *mean = (float *)(cosines + SPECTRUM_N); // [bins]
    float *lags = mean + SPECTRUM_BINS;            // [length]
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    const double *sums = a.sums + (long long)blockIdx.x * a.tiles * SPECTRUM_BINS;
    for (int i = threadIdx.x; i < SPECTRUM_N; i += 256) cosines[i] = a.cosines[i];
    for (int k = threadIdx.x; k < SPECTRUM_BINS; k += 256) {
        double sum = 0;
        for (int tile = 0; tile < a.tiles; tile++) sum += sums[(long long)tile * SPECTRUM_BINS + k];
        mean[k] = (float)(sum / (double)a.n_rows);
    }
    __syncthreads();
    double value = -infinity;
    int best = 0;
    for (int k = threadIdx.x; k < a.choice.length; k += 256) {
        lags[k] = lag_of(mean, cosines, k);
        const double here = k ? log1p(1e6 * lags[k]) + a.choice.prior[k] : -infinity;
        if (here > value) value = here, best = k;
    }
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(ALL, value, step);
        const int at = __shfl_xor_sync(ALL, best, step);
        if (other > value || (other == value && at < best)) value = other, best = at;
    }
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value, places[threadIdx.x / 32] = best;
    __syncthreads();
    for (int w = 0; w < 8; w++)
        if (values[w] > value || (values[w] == value && places[w] < best)) value = values[w], best = places[w];
    if (best && lags[0] != 0) best = choose_again(a, lags, best, values, cosines); // not of silence
    if (threadIdx.x) return;
    if (!best) best = a.choice.length - 1; // nothing but not-a-number
    a.bpm[blockIdx.x] = wt__tempo_bpm(&a.choice, a.choice.fine ? wt__tempo_refine(&a.choice, lags, best) : best);
}
