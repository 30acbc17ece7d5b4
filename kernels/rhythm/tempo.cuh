// Windowed rows of an onset envelope, for kernels/rhythm/tempo.cu and kernels/rhythm/tempo_wide.cu.
#ifndef WT_TEMPO_CUH
#define WT_TEMPO_CUH
#include "tempo_kernel.h"

// The envelope with ramps of half a window to 0 at both ends (numpy's linear_ramp).
static __device__ __forceinline__ float ramped(const float *x, long long n, long long at, int half)
{
    if (at >= 0 && at < n) return __ldg(x + at);
    const long long away = at < 0 ? -at : at - (n - 1);
    return (float)((double)x[at < 0 ? 0 : n - 1] * (double)(half - away) / half);
}

// Sample i of the windowed row that begins at `begin`.
static __device__ __forceinline__ float windowed(const wt_tempogram_args &a, const float *x, long long begin, int i)
{
    return i < a.length ? __ldg(a.window + i) * ramped(x, a.n_frames, begin + i, a.length / 2) : 0.0f;
}

// Lag k of rows first, first + step .. before end of signal x, each over its energy, summed in double by the calling
// warp.
static __device__ double tempo_sum_again(const wt_tempogram_args &a, const float *x, long long first, long long end,
                                         int step, int k)
{
    const int lane = threadIdx.x % 32;
    double sum = 0;
    for (long long t = first; t < end; t += step) {
        double energy = 0, product = 0;
        for (int i = lane; i < a.length; i += 32) {
            const double here = (double)__ldg(a.window + i) * ramped(x, a.n_frames, t - a.begin + i, a.length / 2);
            energy += here * here;
            if (i + k < a.length)
                product += here * __ldg(a.window + i + k) * ramped(x, a.n_frames, t - a.begin + i + k, a.length / 2);
        }
        for (int d = 16; d; d /= 2) {
            energy += __shfl_xor_sync(0xffffffff, energy, d);
            product += __shfl_xor_sync(0xffffffff, product, d);
        }
        sum += energy > 2.2250738585072014e-308 ? product / energy : product;
    }
    return sum;
}
#endif
