// What each frame of a magnitude spectrogram is like: a warp a frame, lanes along its bins, sums in double.
//
//   spectral_shape      centroid, bandwidth, roll-off, flatness, flux, RMS, polynomial: one pass over the bins, or two
//   spectral_contrast   a warp a frame and band: the least and the greatest bins by bisection of their bits
//   spectral_finish     contrast in decibels, when a signal's largest peak and valley are known
//
// Bound by memory (a bin is read once; what is read again comes from the cache), flatness by its logarithms.
// Judge: the CPU (dsp/spectral/spectral.c), 2e-6 of the peak; roll-off's bins identical.
#include "spectral_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

enum { CENTROID, BANDWIDTH, ROLLOFF, FLATNESS, FLUX, RMS, POLYNOMIAL }; // wt_spectral_kind

static __device__ double sum_over_warp(double x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// Of term(k) over the bins; all lanes get it.
template <class Term> static __device__ double sum_of(const wt_spectral_args &a, const Term &term)
{
    double sum = 0;
    for (int k = threadIdx.x % 32; k < a.bins; k += 32) sum += term(k);
    return sum_over_warp(sum);
}

static __device__ double hz_of(const wt_spectral_args &a, int k) { return (double)k * a.rate_hz / a.n_fft; }

static __device__ double centroid_of(const wt_spectral_args &a, const float *m, double total)
{
    const double sum = sum_of(a, [&](int k) { return hz_of(a, k) * m[k]; });
    return total < 2.2250738585072014e-308 ? sum : sum / total;
}

static __device__ double bandwidth_of(const wt_spectral_args &a, const float *m)
{
    const double total = sum_of(a, [&](int k) { return (double)m[k]; }), middle = centroid_of(a, m, total);
    const double sum = sum_of(a, [&](int k) {
        const double off = fabs(hz_of(a, k) - middle);
        return m[k] * (a.p == 2 ? off * off : pow(off, a.p));
    });
    return pow(a.no_norm || total < 2.2250738585072014e-308 ? sum : sum / total, 1 / a.p);
}

// The first bin at which the running sum reaches the share.
static __device__ double rolloff_of(const wt_spectral_args &a, const float *m)
{
    const int lane = threadIdx.x % 32;
    const double threshold = a.percent * sum_of(a, [&](int k) { return (double)m[k]; });
    double before = 0;
    for (int first = 0; first < a.bins - 1; first += 32) {
        double sum = first + lane < a.bins ? m[first + lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            const double other = __shfl_up_sync(ALL, sum, step);
            if (lane >= step) sum += other;
        }
        const unsigned reached = __ballot_sync(ALL, first + lane < a.bins && !(before + sum < threshold));
        if (reached) return threshold == threshold ? hz_of(a, first + __ffs((int)reached) - 1) : threshold;
        before += __shfl_sync(ALL, sum, 31);
    }
    return threshold == threshold ? hz_of(a, a.bins - 1) : threshold;
}

static __device__ double flatness_of(const wt_spectral_args &a, const float *m)
{
    const auto limited = [&](int k) {
        const double x = a.power == 2 ? (double)m[k] * m[k] : pow((double)m[k], a.power);
        return x <= a.amin ? a.amin : x;
    };
    const double logs = sum_of(a, [&](int k) { return log(limited(k)); }), sum = sum_of(a, limited);
    return exp(logs / a.bins) / (sum / a.bins);
}

static __device__ double rms_of(const wt_spectral_args &a, const float *m)
{
    const double sum = sum_of(a, [&](int k) { return (k == 0 || 2 * k == a.n_fft ? 0.5 : 1.0) * m[k] * m[k]; });
    return sqrt(2 * sum) / a.n_fft;
}

static __device__ double flux_of(const wt_spectral_args &a, const float *m, long long t)
{
    if (t == 0) return 0;
    return sum_of(a, [&](int k) {
        const double more = (double)m[k] - m[k - a.bins];
        return more <= 0 ? 0 : more;
    });
}

// Coefficients, the highest power first, to out[0], out[n_frames] ...
static __device__ void polynomial(const wt_spectral_args &a, const float *m, float *out)
{
    const double *powers = a.basis + (long long)a.rows * a.bins;
    double coefficients[WT_SPECTRAL_MAX_ORDER + 1] = {};
    for (int p = 0; p < a.rows; p++) {
        const double *basis = a.basis + (long long)p * a.bins;
        const double dot = sum_of(a, [&](int k) { return basis[k] * m[k]; });
#pragma unroll
        for (int i = 0; i <= WT_SPECTRAL_MAX_ORDER; i++)
            if (i < a.rows) coefficients[i] += dot * powers[p * a.rows + i];
    }
    double scale = 1;
    const double per_hz = a.bins > 1 ? 1 / hz_of(a, a.bins - 1) : 0;
#pragma unroll
    for (int i = 0; i <= WT_SPECTRAL_MAX_ORDER; i++, scale *= per_hz)
        if (i < a.rows && threadIdx.x % 32 == 0) out[(a.rows - 1 - i) * a.n_frames] = (float)(coefficients[i] * scale);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) spectral_shape(wt_spectral_args a)
{
    const long long frame = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (frame >= a.n_signals * a.n_frames) return; // the whole warp
    const long long signal = frame / a.n_frames, t = frame % a.n_frames;
    const float *m = a.in + frame * a.bins;
    float *out = a.out + signal * a.rows * a.n_frames + t;
    if (a.kind == POLYNOMIAL) return polynomial(a, m, out);
    double value = 0;
    if (a.kind == CENTROID) value = centroid_of(a, m, sum_of(a, [&](int k) { return (double)m[k]; }));
    if (a.kind == BANDWIDTH) value = bandwidth_of(a, m);
    if (a.kind == ROLLOFF) value = rolloff_of(a, m);
    if (a.kind == FLATNESS) value = flatness_of(a, m);
    if (a.kind == FLUX) value = flux_of(a, m, t);
    if (a.kind == RMS) value = rms_of(a, m);
    if (threadIdx.x % 32 == 0) *out = (float)value;
}

// ---- contrast

// Mean of the `share` least of n values whose order is that of key(x).
template <class Key> static __device__ float least_mean(const float *x, int n, int share, const Key &key)
{
    const int lane = threadIdx.x % 32;
    unsigned found = 0; // the key of rank share - 1
    for (unsigned bit = 0x80000000u; bit; bit >>= 1) {
        int below = 0;
        for (int i = lane; i < n; i += 32) below += key(x[i]) < (found | bit);
        if (__reduce_add_sync(ALL, below) < share) found |= bit;
    }
    int below = 0;
    double sum = 0;
    float edge = 0;
    bool held = false;
    for (int i = lane; i < n; i += 32) {
        if (key(x[i]) < found) below++, sum += x[i];
        if (key(x[i]) == found) edge = x[i], held = true;
    }
    const unsigned holders = __ballot_sync(ALL, held);
    edge = __shfl_sync(ALL, edge, __ffs((int)holders) - 1);
    below = __reduce_add_sync(ALL, below);
    return (float)((sum_over_warp(sum) + (share - below) * (double)edge) / share);
}

static __device__ unsigned ascending(float x)
{
    const unsigned bits = (unsigned)__float_as_int(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) spectral_contrast(wt_spectral_args a)
{
    const long long item = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (item >= a.n_signals * a.n_frames * a.rows) return; // the whole warp
    const int row = (int)(item % a.rows);
    const long long frame = item / a.rows, signal = frame / a.n_frames;
    const wt_spectral_band band = a.bands[row];
    const float *x = a.in + frame * a.bins + band.first;
    float valley = least_mean(x, band.used, band.share, [](float v) { return ascending(v); });
    float peak = least_mean(x, band.used, band.share, [](float v) { return ~ascending(v); });
    if (threadIdx.x % 32) return;
    if (!a.linear) {
        const float scale = 3.0102999566398120f; // 10 log10(2)
        peak = wt__spectrum_log(peak, 1e-10f, scale, 0), valley = wt__spectrum_log(valley, 1e-10f, scale, 0);
    }
    const long long area = a.rows * a.n_frames, place = row * a.n_frames + frame % a.n_frames;
    if (a.parts) {
        a.out[2 * signal * area + place] = peak, a.out[(2 * signal + 1) * area + place] = valley;
        return;
    }
    if (!a.linear) {
        if (peak == peak) atomicMax(a.peaks + 2 * signal, wt__spectrum_order(__float_as_int(peak)));
        if (valley == valley) atomicMax(a.peaks + 2 * signal + 1, wt__spectrum_order(__float_as_int(valley)));
    }
    const long long at = signal * area + place;
    a.out[at] = a.linear ? peak - valley : peak;
    if (!a.linear) a.valleys[at] = valley;
}

// 80 dB under the largest at most, peaks and valleys each.
extern "C" __global__ void __launch_bounds__(32 * WARPS) spectral_finish(wt_spectral_args a)
{
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= a.n_signals * a.rows * a.n_frames) return;
    const int *peaks = a.peaks + 2 * (at / (a.rows * a.n_frames));
    const float high = __int_as_float(wt__spectrum_order(peaks[0])) - 80;
    const float low = __int_as_float(wt__spectrum_order(peaks[1])) - 80;
    const float peak = a.out[at], valley = a.valleys[at];
    a.out[at] = (peak < high ? high : peak) - (valley < low ? low : valley);
}
