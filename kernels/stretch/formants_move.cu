// A voice's spectral envelope moved (dsp/stretch/formants.c), for any n_fft; the transforms before and behind are
// formants.cu's or formants_wide.cu's:
//
//   formants_move   a warp a frame: the period, then peak after peak, each the largest bin of a search that starts
//                   behind the one before, then all bins
//   formants_add    a thread a sample
//
// In double, from spectra in float that are the CPU's: peaks are the CPU's to the bin, and so are, but for ties, the
// samples: a vocoder behind this makes 1e-5 and more of the rounding of a way back in float.
// Judge: the CPU's, 2e-6 of the peak.
#include "formants_kernel.h"

extern __shared__ double all_shared[];

static __device__ __forceinline__ double largest_of_warp(double x)
{
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, x, d);
        if (other > x) x = other;
    }
    return x;
}

// dsp/stretch/formants.c, spacing_of()
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
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, room = wt__formants_room(a.n_fft),
              bins = a.n_fft / 2 + 1;
    const long long row = (long long)blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= a.n_rows) return;
    float *x = a.spectra + row * bins * 2;
    double most = 0;
    for (int k = lane; k < bins; k += 32) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power;
    }
    most = largest_of_warp(most);
    if (!(most > 0)) return;
    const double spacing = spacing_of(a, a.cepstra + row * (a.last - a.first + 3), lane);
    double *own = a.knots ? a.knots + row * 3 * room : all_shared + warp * 3 * room;
    wt_formants_knots knots = {own, own + room, own + 2 * room, 1};
    for (int at = 0; wt__formants_end(at, spacing) < bins - 1;) { // every lane keeps count, the first writes
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
        knots.x[knots.n] = bins - 1, knots.y[knots.n] = knots.y[knots.n - 1];
    }
    knots.n++;
    __syncwarp();
    for (int i = lane; i < knots.n; i += 32) knots.slope[i] = wt__formants_slope(&knots, i);
    __syncwarp();
    for (int k = lane; k < bins; k += 32) {
        const double from = wt__formants_from(&a, k);
        const float gain = wt__formants_gain(wt__formants_at(&knots, knot_before(knots, from), from) -
                                             wt__formants_at(&knots, knot_before(knots, k), k));
        x[2 * k] *= gain, x[2 * k + 1] *= gain;
    }
}

extern "C" __global__ void __launch_bounds__(256) formants_add(wt_formants_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, line = at / a.count, n = a.from + at % a.count;
    if (at >= a.n_rows / a.n_held * a.count) return;
    a.out[line * a.n_samples + n] = wt__formants_sample(&a, a.spectra + line * a.n_held * (a.n_fft / 2 + 1) * 2, n);
}
