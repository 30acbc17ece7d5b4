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
#endif
