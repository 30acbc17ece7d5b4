// Along the rows of a feature:
//
//   rows_savgol   a thread a value: the Savitzky-Golay taps of its place in the window
//   rows_pcen     a warp a row, 32 frames at a time: the smoother, a recursion of first order, as a scan over lanes in
//                 double, carried from one 32 to the next; then each lane compresses its own frame
//
// Both read and write side by side. rows_savgol is bound by memory, rows_pcen by five functions in double a value.
// Judge: the CPU (dsp/spectral/delta.c, dsp/filter/savgol.c, dsp/spectral/pcen.c), 2e-6 of the peak.
#include "rows_kernel.h"

#define ALL   0xffffffffu
#define WARPS 8

enum { INTERP, NEAREST, MIRROR, CONSTANT, WRAP }; // wt_delta_mode

static __device__ double outside(const wt_savgol_args &a, const float *x, long long at)
{
    const long long n = a.n_frames;
    if (at >= 0 && at < n) return x[at];
    if (a.mode == CONSTANT) return a.constant;
    if (a.mode == NEAREST || n == 1) return x[at < 0 ? 0 : n - 1];
    const long long period = a.mode == WRAP ? n : 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return x[at < n ? at : period - at];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) rows_savgol(wt_savgol_args a)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n_rows * a.n_frames) return;
    const long long t = i % a.n_frames, end = a.n_frames - a.width;
    const float *x = a.in + (i - t);
    long long begin = t - a.width / 2;
    if (a.mode == INTERP) begin = begin < 0 ? 0 : begin > end ? end : begin;
    const double *taps = a.taps + (t - begin) * a.width;
    double sum = 0;
    for (int k = 0; k < a.width; k++) sum += __ldg(taps + k) * outside(a, x, begin + k);
    a.out[i] = (float)sum;
}

// Largest of max_size rows around `row` of its signal; beyond the ends they are mirrored (d c b a | a b c d).
static __device__ double largest(const wt_pcen_args &a, long long row, long long t)
{
    const int own = (int)(row % a.bands);
    const float *x = a.in + (row - own) * a.pitch + a.from + t;
    double most = -__longlong_as_double(0x7ff0000000000000ll);
    for (int i = 0; i < a.max_size; i++) {
        long long at = ((long long)own + i - a.max_size / 2) % (2 * a.bands);
        if (at < 0) at += 2 * a.bands;
        if (at >= a.bands) at = 2 * a.bands - 1 - at;
        most = fmax(most, (double)x[at * a.pitch]);
    }
    return most;
}

static __device__ double compressed(const wt_pcen_args &a, double x, double smooth)
{
    const double level = x * exp(-a.gain * (log(a.eps) + log1p(smooth / a.eps)));
    if (a.power == 0) return log1p(level);
    if (a.bias == 0) return pow(level, a.power);
    return pow(a.bias, a.power) * expm1(a.power * log1p(level / a.bias));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) rows_pcen(wt_pcen_args a)
{
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= a.n_rows) return; // the whole warp
    const int lane = threadIdx.x % 32;
    const double keep = 1 - a.b;
    const float *in = a.in + row * a.pitch + a.from;
    float *out = a.out + row * a.pitch + a.from;
    double memory = a.continued ? a.state[row] : keep, decay = 1; // decay: keep to the power lane
    for (int i = 0; i < lane; i++) decay *= keep;
    for (long long first = 0; first < a.n_frames; first += 32) {
        const long long t = first + lane;
        const bool active = t < a.n_frames;
        double smooth = active ? a.b * largest(a, row, t) : 0, factor = keep;
        for (int step = 1; step < 32; step *= 2, factor *= factor) {
            const double before = __shfl_up_sync(ALL, smooth, step);
            if (lane >= step) smooth += factor * before;
        }
        smooth += decay * memory;
        memory = keep * __shfl_sync(ALL, smooth, (int)min(31ll, a.n_frames - 1 - first));
        if (active) out[t] = (float)compressed(a, in[t], smooth);
    }
    if (a.state && lane == 0) a.state[row] = memory;
}
