// Short-time transforms of lengths that no block holds, a thread a number each: wide.cu makes the frames and adds them
// up again, fft_double.cu transforms them, and these kernels are what is around:
//
//   stft_wide_give     bins, or their magnitudes, powers or phases
//   stft_wide_put      bins for the way back
//   stft_wide_finish   sums over the windows' squares
//
// Bound by memory. Judge: the CPU (dsp/spectral/stft.c), 2e-6 of the peak.
#include "stft_wide_kernel.h"
#include "wide.cuh"

enum { COMPLEX, MAGNITUDE, POWER, PHASE }; // wt_stft_output

extern "C" __global__ void __launch_bounds__(256) stft_wide_give(wt_stft_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    const long long at = (p.line * a.pairs.n_frames + p.t) * a.bins + p.i;
    double2 x[2];
    wide_bins(a.pairs, p, x);
    for (int f = 0; f < 1 + p.second; f++) {
        const float re = (float)x[f].x, im = (float)x[f].y;
        const double power = x[f].x * x[f].x + x[f].y * x[f].y;
        if (a.kind == COMPLEX)
            ((float2 *)a.out)[at + f * a.bins] = make_float2(re, im);
        else
            a.out[at + f * a.bins] = a.kind == PHASE ? atan2f(im, re) : (float)(a.kind == POWER ? power : sqrt(power));
    }
}

extern "C" __global__ void __launch_bounds__(256) stft_wide_put(wt_stft_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    const float2 *in = (const float2 *)a.in + (p.line * a.pairs.n_frames + p.t) * a.bins + p.i;
    const float2 first = in[0], second = p.second ? in[a.bins] : make_float2(0, 0);
    wide_put_bins(a.pairs, p, make_double2(first.x, first.y), make_double2(second.x, second.y));
}

extern "C" __global__ void __launch_bounds__(256) stft_wide_finish(wt_stft_wide_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, line = at / a.length;
    if (line >= a.n_lines) return;
    const long long place = at % a.length + a.margin, n_fft = a.pairs.n_fft;
    double squares = 0;
    for (long long t = place < n_fft ? 0 : (place - n_fft) / a.hop + 1; t < a.used && t * a.hop <= place; t++) {
        const double w = a.window[place - t * a.hop];
        squares += w * w;
    }
    const double sum = a.sums[line * (a.margin + a.length) + place];
    a.out[at] = (float)(squares > 1.1754943508222875e-38 ? sum / squares : sum);
}
