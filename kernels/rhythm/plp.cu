// Predominant local pulse, around transforms in double that lie in memory. Of a tile of rows of the Fourier tempogram:
//
//   plp_fill     a thread a number of a windowed row
//   plp_keep     a warp a row: its strongest bin, and how many are as strong
//   plp_add      a thread a frame of the tile's signals: the waves of the tile's rows over it, row after row
//
// and of all signals:
//
//   plp_pulse    a thread a frame: the sums that count over the windows' squares, and the signal's largest
//   plp_scale    over that
//
// A wave is one bin, so that a row's inverse transform is one cosine. A signal's sums do not depend on how tiles are
// cut. Judge: the CPU (dsp/rhythm/plp.c), 2e-6 of the peak.
#include "plp_kernel.h"

#define ALL     0xffffffffu
#define THREADS 256

static __device__ __forceinline__ long long here() { return (long long)blockIdx.x * THREADS + threadIdx.x; }

extern "C" __global__ void __launch_bounds__(THREADS) plp_fill(wt_plp_args a)
{
    const long long row = here() / a.length, all = a.first + row;
    if (row >= a.count) return;
    const int i = (int)(here() % a.length);
    const long long at = all % a.n_rows + i - a.length / 2;
    const float *x = a.envelope + all / a.n_rows * a.n_frames;
    ((double2 *)a.in)[row * a.pitch + i] = make_double2(at >= 0 && at < a.n_frames ? a.window[i] * x[at] : 0, 0);
}

static __device__ __forceinline__ double power_of(double2 z) { return z.x * z.x + z.y * z.y; }

extern "C" __global__ void __launch_bounds__(THREADS) plp_keep(wt_plp_args a)
{
    const int row = (int)(here() / 32), lane = threadIdx.x % 32;
    if (row >= a.count) return; // the whole warp
    const double2 *points = (const double2 *)a.out + (long long)row * a.pitch;
    double power = 0;
    for (int k = a.first_bin + lane; k <= a.last_bin; k += 32) {
        const double one = power_of(points[k]);
        power = one > power ? one : power;
    }
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(ALL, power, step);
        power = other > power ? other : power;
    }
    int n_kept = 0, above = 0, bin = a.last_bin;
    for (int k = a.first_bin + lane; k <= a.last_bin; k += 32) {
        const double2 z = points[k];
        if (!(power_of(z) >= power * (1 - WT_PLP_TIE))) continue;
        n_kept++, above |= wt__plp_is_above(z.x, z.y, power);
        if (k < bin) bin = k;
    }
    n_kept = __reduce_add_sync(ALL, n_kept), above = __any_sync(ALL, above), bin = __reduce_min_sync(ALL, bin);
    if (lane) return;
    wt_plp_wave wave = {0, 0, 0, 0, 0, 0, 0, 0};
    if (power > 0)
        wave = wt_plp_wave{points[bin].x, points[bin].y, power, above ? 1 / sqrt(power) : 1, bin, n_kept, !above, 0};
    a.waves[row] = wave;
    if (power > 0 && !above) atomicOr(a.facts + 2 * ((a.first + row) / a.n_rows), 1ull);
}

// Sample i of a bin's wave under the window.
static __device__ __forceinline__ double sample_of(const wt_plp_args &a, int k, double re, double im, int i)
{
    const double2 turn = __ldg((const double2 *)a.turn + (int)((long long)k * i % a.length));
    const bool end = k == 0 || 2 * k == a.length; // has no mirror, and no imaginary part
    return __ldg(a.window + i) * (end ? re * turn.x : 2 * (re * turn.x - im * turn.y));
}

extern "C" __global__ void __launch_bounds__(THREADS) plp_add(wt_plp_args a)
{
    const long long signal = a.first / a.n_rows + here() / a.n_frames, t = here() % a.n_frames;
    const long long before = signal * a.n_rows - a.first; // rows of the tile before the signal's, or less than none
    long long row = t + a.length / 2 - (a.length - 1), end = t + a.length / 2 + 1;
    if (row < 0) row = 0;
    if (row < -before) row = -before;
    if (end > a.n_rows) end = a.n_rows;
    if (end > a.count - before) end = a.count - before;
    if (row >= end) return; // and where there is no such signal
    double *sums = a.sums + signal * 2 * a.n_frames + t, above = sums[0], below = sums[a.n_frames];
    for (; row < end; row++) {
        const wt_plp_wave w = a.waves[before + row];
        const int i = (int)(t + a.length / 2 - row);
        if (w.power == 0) continue;
        double sum = sample_of(a, w.bin, w.re * w.scale, w.im * w.scale, i);
        const double2 *points = (const double2 *)a.out + (before + row) * a.pitch;
        for (int k = w.bin + 1; k <= a.last_bin && w.n_kept > 1; k++)
            if (power_of(points[k]) >= w.power * (1 - WT_PLP_TIE))
                sum += sample_of(a, k, points[k].x * w.scale, points[k].y * w.scale, i);
        if (w.below)
            below += sum;
        else
            above += sum;
    }
    sums[0] = above, sums[a.n_frames] = below;
}

// The signal's pulse at frame t, not yet over its largest.
static __device__ __forceinline__ double pulse_at(const wt_plp_args &a, long long signal, long long t)
{
    const long long last = t + a.length / 2, first = last - (a.n_rows - 1); // of the windows: places over t
    const double squares =
        a.squares[last < a.length ? last + 1 : a.length] - a.squares[first < 0 ? 0 : first];
    const double sum = a.sums[(2 * signal + (a.facts[2 * signal] != 0)) * a.n_frames + t];
    const double value = squares > 1.1754943508222875e-38 ? sum / squares : 0;
    return value > 0 ? value : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) plp_pulse(wt_plp_args a)
{
    __shared__ unsigned long long peak;
    const long long blocks = (a.n_frames + THREADS - 1) / THREADS, signal = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * THREADS + threadIdx.x;
    if (threadIdx.x == 0) peak = 0;
    __syncthreads();
    if (t < a.n_frames) atomicMax(&peak, (unsigned long long)__double_as_longlong(pulse_at(a, signal, t)));
    __syncthreads(); // not negative: bits have their order
    if (threadIdx.x == 0) atomicMax(a.facts + 2 * signal + 1, peak);
}

extern "C" __global__ void __launch_bounds__(THREADS) plp_scale(wt_plp_args a)
{
    const long long blocks = (a.n_frames + THREADS - 1) / THREADS, signal = blockIdx.x / blocks;
    const long long t = blockIdx.x % blocks * THREADS + threadIdx.x;
    const double peak = __longlong_as_double((long long)a.facts[2 * signal + 1]);
    if (t >= a.n_frames) return;
    const double value = pulse_at(a, signal, t);
    a.pulse[signal * a.n_frames + t] = (float)(peak > 2.2250738585072014e-308 ? value / peak : value);
}
