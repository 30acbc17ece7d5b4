// True peak of one frame, by one thread. x[0 .. TAPS] are samples, oldest first; the frame looked at is x[TAPS / 2].
#pragma once
#include "true_peak_kernel.h"

// `at(k)` is the sample k frames before the newest.
template <int TAPS, class At> static __device__ __forceinline__ void true_peak_load(At at, float *x)
{
#pragma unroll
    for (int k = 0; k <= TAPS; k++) x[k] = at(TAPS - k);
}

template <int TAPS> static __device__ __forceinline__ float true_peak_point(const float *row, const float *x)
{
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum += row[k] * x[k];
    return sum;
}

// Meter: highest of the frame's sample and the three points behind it.
static __device__ __forceinline__ float true_peak_highest(const float *x)
{
    float highest = fabsf(x[LOUDNESS_TAPS / 2]);
    for (int row = 0; row < 3; row++)
        highest = wt_max(fabsf(true_peak_point<LOUDNESS_TAPS>(loudness_interpolator[row], x + 1)), highest);
    return highest;
}

// Limiter: highest top of the parabolas around the sample here, the three points behind it, and their neighbours.
static __device__ __forceinline__ float true_peak_highest_top(float before, float here, const float *p, float next)
{
    return wt_max(wt_max(true_peak_top(before, here, p[0]), true_peak_top(here, p[0], p[1])),
                  wt_max(true_peak_top(p[0], p[1], p[2]), true_peak_top(p[1], p[2], next)));
}

static __device__ __forceinline__ float true_peak_top_of(const float *x)
{
    const float before = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[2], x);
    float p[3];
    for (int row = 0; row < 3; row++) p[row] = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[row], x + 1);
    return true_peak_highest_top(before, x[TRUE_PEAK_TAPS / 2], p, x[TRUE_PEAK_TAPS / 2 + 1]);
}
