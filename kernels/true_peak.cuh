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

// Limiter: highest top of the parabolas around them.
static __device__ __forceinline__ float true_peak_top_of(const float *x)
{
    const float here = x[TRUE_PEAK_TAPS / 2], next = x[TRUE_PEAK_TAPS / 2 + 1];
    float before = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[2], x);
    float p0 = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[0], x + 1);
    float p1 = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[1], x + 1);
    float p2 = true_peak_point<TRUE_PEAK_TAPS>(true_peak_interpolator[2], x + 1);
    return wt_max(wt_max(true_peak_top(before, here, p0), true_peak_top(here, p0, p1)),
                  wt_max(true_peak_top(p0, p1, p2), true_peak_top(p1, p2, next)));
}
