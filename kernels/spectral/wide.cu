// Around transforms in double that lie in memory, a thread a number each:
//
//   wide_fill   windowed frames of padded signals
//   wide_add    windowed frames added to what tiles before made of the signals, in order of time
//
// Bound by memory. Judge: the CPU's ops, 2e-6 of the peak.
#include "padded.cuh"
#include "wide.cuh"

extern "C" __global__ void __launch_bounds__(256) wide_fill(wt_wide_fill_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    if (!p.there) return;
    const double w = a.window[p.i];
    const auto sample = [&](long long t) -> double {
        const long long at = t * a.hop - a.margin + p.i;
        return a.pcm ? (double)padded_sample(a.pcm + p.line * a.n_samples, a.n_samples, at, a.margin, a.pad)
                     : padded_sample(a.samples + p.line * a.apart, a.n_samples, at, a.margin, a.pad);
    };
    p.in[p.i] = make_double2(w * sample(p.t), p.second ? w * sample(p.t + 1) : 0);
}

extern "C" __global__ void __launch_bounds__(256) wide_add(wt_wide_add_args a)
{
    const long long number = (long long)blockIdx.x * blockDim.x + threadIdx.x, line = a.line + number / a.count;
    if (number >= a.n_lines * a.count) return;
    const long long place = a.begin + number % a.count, first = a.pairs.first - line * a.pairs.pairs;
    const long long end = 2 * (first + a.pairs.n_pairs) < a.used ? 2 * (first + a.pairs.n_pairs) : a.used;
    long long t = place < a.pairs.n_fft ? 0 : (place - a.pairs.n_fft) / a.hop + 1;
    if (t < 2 * first) t = 2 * first;
    double sum = a.sums[line * a.n_sums + place];
    for (; t < end && t * a.hop <= place; t++) {
        const int i = (int)(place - t * a.hop);
        const double2 both = ((const double2 *)a.pairs.out)[(t / 2 - first) * a.pairs.pitch + i];
        sum += a.window[i] / a.pairs.n_fft * (t % 2 ? both.x : both.y);
    }
    a.sums[line * a.n_sums + place] = sum;
}
