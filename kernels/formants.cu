// A voice's spectral envelope moved (dsp/formants.c), compiled for one SPECTRUM_N:
//
//   formants_cepstra   logarithms of a pair of frames, even and real both, are one complex signal, and so are their
//                      cepstra; only what may be a period is kept
//   formants_move      a warp a frame: the period, then peak after peak, each the largest bin of a search that starts
//                      behind the one before, then all bins
//   formants_back      a pair of frames there and back in one, its windowed samples in place of its bins
//   formants_add       a thread a sample
//
// In double, from spectra in float that are the CPU's: peaks are the CPU's to the bin, and so are, but for ties, the
// samples: a vocoder behind this makes 1e-5 and more of the rounding of a way back in float.
// Judge: the CPU's, 2e-6 of the peak.
#ifndef SPECTRUM_N
#    define SPECTRUM_N 2048
#endif
#include "formants_kernel.h"
#include "spectrum.cuh"

extern __shared__ double2 all_shared[];

// ---- cepstra

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) formants_cepstra(wt_formants_args a)
{
    __shared__ unsigned long long most[SPECTRUM_SEQUENCES][2]; // as bits: positive numbers keep their order
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const int pairs = (a.n_frames + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long line = blockIdx.x / blocks,
                    t = 2 * ((long long)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + sequence);
    const float *rows[2];
    for (int f = 0; f < 2; f++) { // a frame that does not exist is another one again
        const long long at = t + f < a.n_frames ? t + f : a.n_frames - 1;
        rows[f] = a.spectra + (line * a.n_frames + at) * SPECTRUM_BINS * 2;
    }
    for (int f = thread; f < 2; f += SPECTRUM_THREADS) most[sequence][f] = 0;
    __syncthreads();
    for (int f = 0; f < 2; f++) {
        double largest = 0;
        for (int k = thread; k < SPECTRUM_BINS; k += SPECTRUM_THREADS) {
            const double power = wt__formants_power(rows[f] + 2 * k);
            if (power > largest) largest = power;
        }
        atomicMax(&most[sequence][f], (unsigned long long)__double_as_longlong(largest));
    }
    __syncthreads();
    const double first = __longlong_as_double((long long)most[sequence][0]),
                 second = __longlong_as_double((long long)most[sequence][1]);
    const int width = a.last - a.first + 3;
    double *out = a.cepstra + (line * a.n_frames + t) * width;
    spectrum_transform(
        thread, all_shared + sequence * SPECTRUM_POINTS, a.twiddles,
        [&](int i) {
            const int k = 2 * (i <= SPECTRUM_N / 2 ? i : SPECTRUM_N - i);
            return make_double2(wt__formants_log(wt__formants_power(rows[0] + k), first),
                                wt__formants_log(wt__formants_power(rows[1] + k), second));
        },
        [&](int q, double2 v) {
            const int at = q - a.first + 1;
            if (at < 0 || at >= width) return;
            if (t < a.n_frames) out[at] = v.x / SPECTRUM_N;
            if (t + 1 < a.n_frames) out[width + at] = v.y / SPECTRUM_N;
        });
}

// ---- moving

static __device__ __forceinline__ double largest_of_warp(double x)
{
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, x, d);
        if (other > x) x = other;
    }
    return x;
}

// dsp/formants.c, spacing_of()
static __device__ double spacing_of(const wt_formants_args &a, const double *cepstrum, int lane)
{
    const double *c = cepstrum + 1; // of quefrency `first`
    const int n = a.last - a.first + 1;
    if (a.spacing > 0) return a.spacing;
    double most = 0;
    for (int q = lane; q < n; q += 32)
        if (c[q] > most) most = c[q];
    most = largest_of_warp(most);
    if (!(most >= WT_FORMANTS_VOICED)) return a.unvoiced;
    for (int begin = 0; begin < n; begin += 32) {
        const int q = begin + lane;
        const bool peak = q < n && c[q] >= WT_FORMANTS_SHARE * most && c[q] >= c[q - 1] && c[q] >= c[q + 1];
        const unsigned found = __ballot_sync(0xffffffff, peak);
        if (!found) continue;
        const int at = begin + __ffs(found) - 1;
        return a.n_fft / (a.first + at + wt__formants_peak(c[at - 1], c[at], c[at + 1]));
    }
    return a.unvoiced;
}

// The largest bin of begin .. end, the first of equal ones.
static __device__ int largest_bin(const float *x, int begin, int end, int lane)
{
    double most = -1;
    int at = begin;
    for (int k = begin + lane; k <= end; k += 32) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power, at = k;
    }
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, most, d);
        const int there = __shfl_xor_sync(0xffffffff, at, d);
        if (other > most || (other == most && there < at)) most = other, at = there;
    }
    return at;
}

// The last knot at or before x, but for the end's.
static __device__ __forceinline__ int knot_before(const wt_formants_knots &knots, double x)
{
    int low = 0, high = knots.n - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (knots.x[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(128) formants_move(wt_formants_args a)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, room = wt__formants_room(SPECTRUM_N);
    const long long row = (long long)blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= a.n_rows) return;
    float *x = a.spectra + row * SPECTRUM_BINS * 2;
    double most = 0;
    for (int k = lane; k < SPECTRUM_BINS; k += 32) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power;
    }
    most = largest_of_warp(most);
    if (!(most > 0)) return;
    const double spacing = spacing_of(a, a.cepstra + row * (a.last - a.first + 3), lane);
    double *shared = (double *)all_shared + warp * 3 * room;
    wt_formants_knots knots = {shared, shared + room, shared + 2 * room, 1};
    for (int at = 0; wt__formants_end(at, spacing) < SPECTRUM_BINS - 1;) { // every lane keeps count, the first writes
        at = largest_bin(x, wt__formants_begin(at, spacing), wt__formants_end(at, spacing), lane);
        if (lane == 0)
            wt__formants_add(&knots, x, at, most);
        else
            knots.n++;
    }
    if (knots.n == 1) return;
    __syncwarp();
    if (lane == 0) {
        knots.x[0] = 0, knots.y[0] = knots.y[1];
        knots.x[knots.n] = SPECTRUM_BINS - 1, knots.y[knots.n] = knots.y[knots.n - 1];
    }
    knots.n++;
    __syncwarp();
    for (int i = lane; i < knots.n; i += 32) knots.slope[i] = wt__formants_slope(&knots, i);
    __syncwarp();
    for (int k = lane; k < SPECTRUM_BINS; k += 32) {
        const double from = wt__formants_from(&a, k);
        const float gain = wt__formants_gain(wt__formants_at(&knots, knot_before(knots, from), from) -
                                             wt__formants_at(&knots, knot_before(knots, k), k));
        x[2 * k] *= gain, x[2 * k + 1] *= gain;
    }
}

// ---- back

extern "C" __global__ void __launch_bounds__(SPECTRUM_BLOCK) formants_back(wt_formants_args a)
{
    const int thread = threadIdx.x % SPECTRUM_THREADS, sequence = threadIdx.x / SPECTRUM_THREADS;
    const int pairs = (a.n_frames + 1) / 2, blocks = (pairs + SPECTRUM_SEQUENCES - 1) / SPECTRUM_SEQUENCES;
    const long long line = blockIdx.x / blocks,
                    t = 2 * ((long long)(blockIdx.x % blocks) * SPECTRUM_SEQUENCES + sequence);
    float *rows[2]; // a frame that does not exist is not there
    for (int f = 0; f < 2; f++)
        rows[f] = t + f < a.n_frames ? a.spectra + (line * a.n_frames + t + f) * SPECTRUM_BINS * 2 : nullptr;
    const auto bin = [&](const float *row, int i) { // of a real signal's spectrum
        const int k = i <= SPECTRUM_N / 2 ? i : SPECTRUM_N - i;
        if (!row) return make_double2(0, 0);
        return make_double2(row[2 * k], 2 * k % SPECTRUM_N == 0 ? 0 : i == k ? row[2 * k + 1] : -row[2 * k + 1]);
    };
    spectrum_transform( // parts exchanged at both ends: the inverse
        thread, all_shared + sequence * SPECTRUM_POINTS, a.twiddles,
        [&](int i) {
            const double2 x = bin(rows[0], i), y = bin(rows[1], i);
            return make_double2(x.y + y.x, x.x - y.y);
        },
        [&](int i, double2 v) {
            const double by = a.window[i] / SPECTRUM_N;
            if (rows[0]) rows[0][i] = (float)(v.y * by);
            if (rows[1]) rows[1][i] = (float)(v.x * by);
        });
}

extern "C" __global__ void __launch_bounds__(256) formants_add(wt_formants_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, line = at / a.n_samples;
    if (at >= a.n_rows / a.n_frames * a.n_samples) return;
    a.out[at] = wt__formants_sample(&a, a.spectra + line * a.n_frames * SPECTRUM_BINS * 2, at % a.n_samples);
}
