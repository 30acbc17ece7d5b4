// Mel bands of any n_fft, from spectra that lie in memory, a thread a number each:
//
//   mel_wide_powers   bins to powers of their size, rounded once
//   mel_wide_bands    powers to bands, linear or logarithmic, and each signal's largest
//   mel_wide_finish   what follows when that is known: limit and gain, and a matrix (the cosine transform of MFCC)
//
// Bound by memory. Judge: the CPU's ops, 2e-6 of the peak.
#include "mel_wide_kernel.h"
#include "wide.cuh"

extern "C" __global__ void __launch_bounds__(256) mel_wide_powers(wt_mel_wide_args a)
{
    const wide_place p = wide_here(a.pairs, a.bins);
    if (!p.there) return;
    double2 x[2];
    wide_bins(a.pairs, p, x);
    float *out = a.powers + (p.in - (double2 *)a.pairs.in) / a.pairs.pitch * 2 * a.bins + p.i;
    for (int f = 0; f < 2; f++, out += a.bins) {
        const float square = (float)(x[f].x * x[f].x + x[f].y * x[f].y);
        *out = a.mel.power == 2 ? square : a.mel.power == 1 ? sqrtf(square) : powf(square, 0.5f * a.mel.power);
    }
}

// Neighbours have neighbouring frames of one band.
extern "C" __global__ void __launch_bounds__(256) mel_wide_bands(wt_mel_wide_args a)
{
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x;
    const int frames = 2 * a.pairs.n_pairs, frame = (int)(at % frames), n_mels = a.mel.n_mels;
    const long long m = at / frames, pair = a.pairs.first + frame / 2, line = pair / a.pairs.pairs,
                    t = 2 * (pair % a.pairs.pairs) + frame % 2;
    if (m >= n_mels || t >= a.pairs.n_frames) return;
    const float *power = a.powers + (long long)frame * a.bins + a.mel.begins[m], *weight = a.mel.weights + m;
    double wide = 0;
    for (int k = 0; k < a.mel.lengths[m]; k++, weight += n_mels) wide += (double)__ldg(weight) * power[k];
    float sum = (float)wide;
    if (a.mel.logarithm) sum = wt__spectrum_log(sum, a.mel.amin, a.mel.scale, a.mel.offset);
    a.mel.out[a.mel.frames_first ? (line * a.pairs.n_frames + t) * n_mels + m
                                 : (line * n_mels + m) * a.pairs.n_frames + t] = sum;
    if (!a.mel.peaks || sum != sum) return;
    int *peak = a.mel.peaks + line / a.mel.channels;
    const int order = wt__spectrum_order(__float_as_int(sum));
    if (order > *(volatile int *)peak) atomicMax(peak, order);
}

extern "C" __global__ void __launch_bounds__(256) mel_wide_finish(wt_mel_finish_args a)
{
    const wt_spectrum_finish_args &f = a.finish;
    const long long at = (long long)blockIdx.x * 256 + threadIdx.x;
    if (at >= a.count) return;
    const long long rows = f.n_out ? f.n_out : f.n_mels, line = at / (rows * f.n_frames), t = at % f.n_frames;
    const float peak = __int_as_float(wt__spectrum_order(f.peaks[line / f.channels])), floor = peak - f.range;
    const auto limited = [&](float x) { return (x < floor ? floor : x) * f.gain + (f.offset - f.relative * peak); };
    if (!f.n_out) {
        f.mel[at] = limited(f.mel[at]);
        return;
    }
    const float *mel = f.mel + line * f.n_mels * f.n_frames + t, *column = f.matrix + at / f.n_frames % f.n_out;
    double sum = 0;
    for (int m = 0; m < f.n_mels; m++, mel += f.n_frames, column += f.n_out) sum += (double)limited(*mel) * *column;
    f.out[at] = (float)sum;
}
