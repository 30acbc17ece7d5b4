// Around transforms in double that lie in memory, a thread a number each:
//
//   wide_level  a warp a frame: the power of two above its largest sample
//   wide_fill   windowed frames of padded signals, taken by their levels where they have some
//   wide_add    windowed frames added to what tiles before made of the signals, in order of time
//
// Bound by memory. Judge: the CPU's ops, 2e-6 of the peak.
#include "padded.cuh"
#include "wide.cuh"

static __device__ __forceinline__ double sample_of(const wt_wide_fill_args &a, long long line, long long t, int i)
{
    const long long at = t * a.hop - a.margin + i;
    return a.pcm ? (double)padded_sample(a.pcm + line * a.n_samples, a.n_samples, at, a.margin, a.pad)
                 : padded_sample(a.samples + line * a.apart, a.n_samples, at, a.margin, a.pad);
}

// As the CPU's level_frames (dsp/spectral/stft.c): 0 for silence, NaN for a frame that is not finite.
extern "C" __global__ void __launch_bounds__(256) wide_level(wt_wide_fill_args a)
{
    const wide_place p = wide_here(a.pairs, 64);
    if (!p.there) return; // the whole warp
    const int f = p.i / 32, lane = p.i % 32;
    double peak = 0;
    for (int i = lane; i < a.pairs.n_fft && (f == 0 || p.second); i += 32) {
        const double size = fabs(sample_of(a, p.line, p.t + f, i));
        if (size > peak || size != size) peak = size;
    }
    for (int d = 16; d; d /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, peak, d);
        if (other > peak || other != other) peak = other;
    }
    int exponent;
    frexp(peak, &exponent);
    const double level = isfinite(peak) ? ldexp(1.0, exponent) : peak - peak;
    if (lane == 0) a.pairs.levels[(p.in - (double2 *)a.pairs.in) / a.pairs.pitch * 2 + f] = peak == 0 ? 0 : level;
}

extern "C" __global__ void __launch_bounds__(256) wide_fill(wt_wide_fill_args a)
{
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft);
    if (!p.there) return;
    const double w = a.window[p.i];
    const auto windowed = [&](int f) {
        const double level = wide_level_of(a.pairs, p, f);
        return level > 0 ? w / level * sample_of(a, p.line, p.t + f, p.i) : 0;
    };
    p.in[p.i] = make_double2(windowed(0), p.second ? windowed(1) : 0);
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
