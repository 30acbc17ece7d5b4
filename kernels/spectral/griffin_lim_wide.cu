// Griffin and Lim's iteration in double, of any n_fft: spectra and signals lie in memory (wide.cu transforms between
// them), a thread a number each:
//
//   griffin_lim_wide_begin    magnitudes and random phases, ready for the way back
//   griffin_lim_wide_turn     bins brought to their magnitudes, likewise
//   griffin_lim_wide_finish   sums over the windows' squares: the signal, at last the output
//
// Bound by memory. Judge: the CPU's precise form, 2e-6 of the peak after 32 iterations.
#include "griffin_lim_wide_kernel.h"
#include "wide.cuh"

static __device__ double2 first_phase(const wt_griffin_lim_wide_args &a, long long t, int k, double magnitude)
{
    const unsigned long long seed = a.seeds[k] * a.jumps[2 * t] + a.jumps[2 * t + 1];
    const double angle = 3.14159265358979323846 * ((double)(float)(int)(seed >> 32) * 0x1p-31 + 1);
    double re = 1, im = 0;
    if (!a.zero_phase) sincos(angle, &im, &re);
    return make_double2(magnitude * re, magnitude * im);
}

extern "C" __global__ void __launch_bounds__(256) griffin_lim_wide_begin(wt_griffin_lim_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    const float *magnitude = a.magnitude + (p.line * a.stored_frames + p.t) * a.bins + p.i;
    wide_put_bins(a.pairs, p, first_phase(a, p.t, p.i, magnitude[0]),
                  p.second ? first_phase(a, p.t + 1, p.i, magnitude[a.bins]) : make_double2(0, 0));
}

extern "C" __global__ void __launch_bounds__(256) griffin_lim_wide_turn(wt_griffin_lim_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    const float *magnitude = a.magnitude + (p.line * a.stored_frames + p.t) * a.bins + p.i;
    double2 *before = (double2 *)a.before + (p.line * a.pairs.n_frames + p.t) * a.bins + p.i, x[2];
    wide_bins(a.pairs, p, x);
    for (int f = 0; f < 2; f++, before += a.bins, magnitude += a.bins) {
        if (f && !p.second) {
            x[f] = make_double2(0, 0);
            continue;
        }
        const double2 old = a.first ? make_double2(0, 0) : *before;
        *before = x[f];
        const double re = x[f].x - a.momentum * old.x, im = x[f].y - a.momentum * old.y;
        const double by = *magnitude / (sqrt(re * re + im * im) + 2.2250738585072014e-308);
        x[f] = make_double2(re * by, im * by);
    }
    wide_put_bins(a.pairs, p, x[0], x[1]);
}

extern "C" __global__ void __launch_bounds__(256) griffin_lim_wide_finish(wt_griffin_lim_wide_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x, line = at / a.length;
    if (line >= a.n_lines) return;
    const long long place = at % a.length + a.margin;
    double *sum = a.sums + line * a.n_padded + place;
    *sum *= a.squares[place];
    if (a.out) a.out[at] = (float)*sum;
}
