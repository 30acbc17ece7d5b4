// Complex transforms in double whose rows lie in memory: of any length, and where a partner's rounding must not show.
//
//   fft_double_pass      one of Stockham's passes (fft.cuh has the formula), a thread a butterfly of FFT_RADIX points
//   fft_double_product   a row times another: Bluestein's chirp and filter
//
// Bound by memory: a pass reads and writes all points. Judge: dsp/fft/fft_double.c, 1e-14 of the peak.
#ifndef FFT_RADIX
#    define FFT_RADIX 16
#endif
#include "fft.cuh"
#include "fft_double_kernel.h"

static __device__ __forceinline__ long long here() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void __launch_bounds__(256) fft_double_pass(wt_fft_double_args a)
{
    const int each = a.points / FFT_RADIX, left = each / a.done; // butterflies of a row; of those that share no factor
    const long long row = here() / each;
    if (row >= a.rows) return;
    const int b = (int)(here() % each), p = b / a.done, q = b % a.done;
    const double2 *from = (const double2 *)a.from + row * a.points + b, *roots = (const double2 *)a.roots;
    double2 *to = (double2 *)a.to + row * a.points + q + a.done * FFT_RADIX * p;
    double2 v[FFT_RADIX];
#pragma unroll
    for (int k = 0; k < FFT_RADIX; k++) v[k] = from[k * each];
    fft_butterfly<FFT_RADIX>(v);
#pragma unroll
    for (int j = 0; j < FFT_RADIX; j++)
        to[j * a.done] = j && left > 1 ? fft_mul(v[j], __ldg(roots + j * p * a.done)) : v[j];
}

extern "C" __global__ void __launch_bounds__(256) fft_double_product(wt_fft_double_args a)
{
    const long long at = here();
    if (at >= a.rows * a.points) return;
    const int i = (int)(at % a.points);
    const double2 x =
        i < a.n ? fft_mul(((const double2 *)a.from)[at], ((const double2 *)a.roots)[i]) : make_double2(0, 0);
    ((double2 *)a.to)[at] = a.swap ? fft_swap(x) : x;
}
