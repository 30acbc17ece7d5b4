// One octave of an inverse constant-Q transform whose frames no block transforms, around transforms in double that lie
// in memory (kernels/spectral/wide.cu):
//
//   icqt_wide_put      a thread a bin of a pair of frames: the sum of the filters that have it
//   icqt_wide_finish   a thread a sample: the sum of the frames over it by how many they are, to what lies below
//
// Judge: the CPU's, 2e-6 of the peak.
#include "icqt_wide_kernel.h"
#include "wide.cuh"

// Bin k of a frame whose coefficients in this octave begin at `in`.
static __device__ __forceinline__ double2 bin_of(const wt_icqt_octave_args &a, const float2 *in, int k)
{
    double2 sum = make_double2(0, 0);
    for (int i = __ldg(a.begin + k), end = __ldg(a.begin + k + 1); i < end; i++) {
        const double re = __ldg(a.value + 2 * i), im = __ldg(a.value + 2 * i + 1);
        const float2 x = in[__ldg(a.row + i)];
        sum.x += re * x.x - im * x.y;
        sum.y += re * x.y + im * x.x;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) icqt_wide_put(wt_icqt_wide_args a)
{
    const wt_icqt_octave_args &o = a.octave;
    const wide_place p = wide_here(a.pairs, a.pairs.n_fft / 2 + 1);
    if (!p.there) return;
    const float2 *in = (const float2 *)o.in + (p.line * o.stored_frames + p.t) * o.n_bins + o.first;
    wide_put_bins(a.pairs, p, bin_of(o, in, p.i), p.second ? bin_of(o, in + o.n_bins, p.i) : make_double2(0, 0));
}

// Frames over sample `at` of the padded signal.
static __device__ __forceinline__ long long frames_over(const wt_icqt_wide_args &a, long long at)
{
    const int hop = a.octave.walk.hop, n_fft = a.pairs.n_fft;
    long long first = at < n_fft ? 0 : (at - n_fft) / hop + 1, last = at / hop;
    if (last >= a.octave.n_frames) last = a.octave.n_frames - 1;
    return last - first + 1;
}

// One sample of the octave alone, for icqt_ends.
static __device__ __forceinline__ void keep(const wt_icqt_octave_args &a, long long line, long long at, float x)
{
    const long long back = at - (a.n - WT_ICQT_END_KEPT);
    float *kept = a.kept + line * 2 * WT_ICQT_END_KEPT;
    if (at < WT_ICQT_END_KEPT) kept[at] += x;
    if (back >= 0) kept[WT_ICQT_END_KEPT + back] += x;
}

extern "C" __global__ void __launch_bounds__(256) icqt_wide_finish(wt_icqt_wide_args a)
{
    const wt_icqt_octave_args &o = a.octave;
    const long long number = (long long)blockIdx.x * 256 + threadIdx.x, length = o.walk.length;
    const long long line = number / length, to = number % length;
    if (line >= a.n_lines) return;
    const long long under = line * (o.n + 2 * WT_ICQT_TAIL) + WT_ICQT_TAIL + to;
    const long long over = frames_over(a, to + o.walk.margin);
    float x = 0;
    if (to < o.n && over > 0) x = (float)(a.sums[line * (o.walk.margin + o.n) + o.walk.margin + to] / (double)over);
    if (o.kept && to < o.n) keep(o, line, to, x);
    if (to < o.n) x += o.under[under];
    o.out[o.last ? number : under] = x;
}
