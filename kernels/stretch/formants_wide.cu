// The transforms of formants.cu for frames that no block's shared memory holds, a thread a number each:
//
//   formants_wide_most     a warp a frame: its largest power
//   formants_wide_fill     logarithms of a pair of frames, even and real both
//   formants_wide_give     what of their cepstra may be a period
//   formants_wide_put      bins for the way back
//   formants_wide_leave    windowed samples in place of bins
//
// Judge: the CPU's, 2e-6 of the peak.
#include "formants_wide_kernel.h"
#include "wide.cuh"

extern "C" __global__ void __launch_bounds__(256) formants_wide_most(wt_formants_wide_args a)
{
    const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= a.formants.n_rows) return;
    const float *x = a.formants.spectra + row * a.bins * 2;
    double most = 0;
    for (int k = threadIdx.x % 32; k < a.bins; k += 32) {
        const double power = wt__formants_power(x + 2 * k);
        if (power > most) most = power;
    }
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, most, d);
        if (other > most) most = other;
    }
    if (threadIdx.x % 32 == 0) a.most[row] = most;
}

// Frame t + f of the place, NULL where there is none.
static __device__ __forceinline__ float *row_of(const wt_formants_wide_args &a, const wide_place &p, int f)
{
    return f && !p.second ? nullptr : a.formants.spectra + (p.line * a.pairs.n_frames + p.t + f) * a.bins * 2;
}

extern "C" __global__ void __launch_bounds__(256) formants_wide_fill(wt_formants_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    if (!p.there) return;
    const int k = 2 * (p.i <= a.pairs.n_fft / 2 ? p.i : a.pairs.n_fft - p.i);
    const double *most = a.most + p.line * a.pairs.n_frames + p.t;
    p.in[p.i] = make_double2(wt__formants_log(wt__formants_power(row_of(a, p, 0) + k), most[0]),
                             p.second ? wt__formants_log(wt__formants_power(row_of(a, p, 1) + k), most[1]) : 0);
}

extern "C" __global__ void __launch_bounds__(256) formants_wide_give(wt_formants_wide_args a)
{
    const int width = a.formants.last - a.formants.first + 3;
    const wide_place p = wide_here(a.pairs, width);
    if (!p.there) return;
    const int q = p.i + a.formants.first - 1;
    const double2 v = q < a.pairs.n_fft ? p.out[q] : make_double2(0, 0);
    double *out = a.formants.cepstra + (p.line * a.pairs.n_frames + p.t) * width + p.i;
    out[0] = v.x / a.pairs.n_fft;
    if (p.second) out[width] = v.y / a.pairs.n_fft;
}

extern "C" __global__ void __launch_bounds__(256) formants_wide_put(wt_formants_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    double2 x[2];
    for (int f = 0; f < 2; f++) {
        const float *row = row_of(a, p, f);
        x[f] = row ? make_double2(row[2 * p.i], row[2 * p.i + 1]) : make_double2(0, 0);
    }
    wide_put_bins(a.pairs, p, x[0], x[1]);
}

extern "C" __global__ void __launch_bounds__(256) formants_wide_leave(wt_formants_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    if (!p.there) return;
    const double by = a.formants.window[p.i] / a.pairs.n_fft;
    const double2 v = p.out[p.i];
    row_of(a, p, 0)[p.i] = (float)(v.y * by);
    if (p.second) row_of(a, p, 1)[p.i] = (float)(v.x * by);
}
