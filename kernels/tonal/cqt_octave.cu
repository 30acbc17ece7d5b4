// One octave of a constant-Q transform: frames' spectra, and sparse filters over them. Compiled for CQT_POINTS, half
// the frames' length, CQT_PSEUDO (windowed frames, magnitudes, real filters) and CQT_PAD, the signal around its ends.
//
// A block does wt__fft_sequences frames, one row of threads each: transform in shared memory, bins, then a thread a
// filter. The signal's overlapping frames meet in the caches; spectra never leave the block.
// Judge: the CPU's, 2e-6 of the peak.
#ifndef CQT_POINTS
#    define CQT_POINTS 128
#    define CQT_PSEUDO 0
#    define CQT_PAD    0
#endif
#include "fft.cuh"
#include "cqt_kernel.h"
#include "padded.cuh"

#define THREADS   wt__fft_threads(CQT_POINTS, 1024)
#define SEQUENCES wt__fft_sequences(CQT_POINTS)

extern "C" __global__ void __launch_bounds__(THREADS *SEQUENCES) cqt_octave(wt_cqt_octave_args a)
{
    extern __shared__ float all_shared[];
    float *shared = all_shared + threadIdx.y * wt__fft_shared_floats(CQT_POINTS);
    float2 *all_bins = (float2 *)(all_shared + SEQUENCES * wt__fft_shared_floats(CQT_POINTS));
    float2 *bins = all_bins + threadIdx.y * (CQT_POINTS + 1);
    const int t = a.first_frame + (int)(blockIdx.x * SEQUENCES + threadIdx.y);
    const bool active = t < a.end_frame;
    const float *in = a.in + blockIdx.y * a.n;
    const long long begin = (long long)t * a.hop - CQT_POINTS;
    const auto sample = [&](int i) {
        const long long at = begin + i;
        float x = 0;
        if (active && at >= 0 && at < a.n)
            x = __ldg(in + at);
        else if (active && CQT_PAD)
            x = padded_sample(in, a.n, at, CQT_POINTS, CQT_PAD);
        return CQT_PSEUDO ? x * __ldg(a.window + i) : x;
    };
    fft_block<CQT_POINTS, THREADS>(
        threadIdx.x, shared, a.twiddles, [&](int i) { return make_float2(sample(2 * i), sample(2 * i + 1)); },
        [&](int k, float2 v) { fft_shared_put<CQT_POINTS>(shared, k, v); });
    __syncthreads();
    for (int k = threadIdx.x; k <= CQT_POINTS; k += THREADS) {
        const float2 z = fft_shared_get<CQT_POINTS>(shared, k == CQT_POINTS ? 0 : k);
        const float2 mirror = fft_shared_get<CQT_POINTS>(shared, k == 0 ? 0 : CQT_POINTS - k);
        const float2 x = fft_real_bin(z, mirror, __ldg((const float2 *)a.roots + k));
        bins[k] = CQT_PSEUDO ? make_float2(sqrtf(x.x * x.x + x.y * x.y), 0) : x;
    }
    __syncthreads();
    if (!active) return;
    for (int r = threadIdx.x; r < a.n_rows; r += THREADS) {
        float2 sum = make_float2(0, 0);
        for (int i = __ldg(a.begin + r), end = __ldg(a.begin + r + 1); i < end; i++) {
            const float2 x = bins[__ldg(a.bin + i)];
#if CQT_PSEUDO
            sum.x += x.x * __ldg(a.value + i);
#else
            sum = fft_add(sum, fft_mul(x, __ldg((const float2 *)a.value + i)));
#endif
        }
        const long long at = (blockIdx.y * a.n_frames + t) * a.n_bins + a.first + r;
        if (a.magnitude)
            a.out[at] = sqrtf(sum.x * sum.x + sum.y * sum.y);
        else
            ((float2 *)a.out)[at] = sum;
    }
}
