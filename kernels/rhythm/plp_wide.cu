// Rows of the Fourier tempogram by windows that no block transforms (kernels/rhythm/plp.cu):
//
//   plp_wide_fill        a thread a number of a windowed row
//   plp_wide_strongest   a warp a row: its strongest bin
//
// Judge: the CPU (dsp/rhythm/plp.c), 2e-6 of the peak.
#include "plp_wide_kernel.h"

extern "C" __global__ void __launch_bounds__(256) plp_wide_fill(wt_plp_wide_args a)
{
    const long long number = (long long)blockIdx.x * 256 + threadIdx.x, row = number / a.length, all = a.first + row;
    if (row >= a.n_rows) return;
    const int i = (int)(number % a.length);
    const long long signal = all / a.plp.n_rows, at = all % a.plp.n_rows + i - a.length / 2;
    const bool there = at >= 0 && at < a.plp.n_frames;
    const double x = there ? (double)a.plp.window[i] * a.plp.envelope[signal * a.plp.n_frames + at] : 0;
    ((double2 *)a.in)[row * a.pitch + i] = make_double2(x, 0);
}

extern "C" __global__ void __launch_bounds__(256) plp_wide_strongest(wt_plp_wide_args a)
{
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= a.n_rows) return;
    const double2 *points = (const double2 *)a.out + (long long)row * a.pitch;
    unsigned long long best = 0; // power, then the bin from the top: the lowest of equals wins
    for (int k = a.plp.first + lane; k <= a.plp.last; k += 32) {
        const float re = (float)points[k].x, im = (float)points[k].y, power = re * re + im * im;
        const unsigned long long here =
            (unsigned long long)(unsigned)__float_as_int(power) << 32 | (unsigned)(a.length - k);
        if (power > 0 && here > best) best = here; // not negative: bits have their order
    }
    for (int d = 16; d; d /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffff, best, d);
        if (other > best) best = other;
    }
    if (lane) return;
    wt_plp_wave wave = {0, 0, -1};
    if (best) {
        const int k = a.length - (int)(unsigned)best;
        wave = wt_plp_wave{(float)points[k].x, (float)points[k].y, k};
    }
    const long long all = a.first + row, signal = all / a.plp.n_rows;
    a.plp.waves[all] = wave;
    if (wave.re < 0 || (wave.re == 0 && wave.im < 0)) atomicOr(a.plp.facts + 2 * signal, 1); // numpy's order
}
