// limiter: the true peak never passes the ceiling.
//
//   need[m]   octaves of reduction for the highest true peak of all channels between frames m and m + 1, from four
//             points a frame and parabolas through them (true_peak_kernel.h)
//   highest   of need over `window` frames: the reduction is known before its peak, and stays until it has passed
//   release   y = max(highest, r y + (1 - r) highest)
//   smooth    two box filters (together a trapezoid) over the attenuation 1 - 2^-y, which is rounded up to 2^-30 and
//             summed in integers: exact, whatever the blocks, on both backends
//   out       x delayed by the latency, times 1 - attenuation
//
// In short blocks on a device a gain is one sum over the attenuations, weighted with the trapezoid: the same integers,
// and the running sums follow when the block is answered.
//
// With boxes of b1 and b2 frames a gain averages b1 + b2 - 1 values; window = b1 + b2 - 1 + 2 * LIMITER_MARGIN makes
// every one of them see the peak, and LIMITER_MARGIN frames either side of it, because what lies between two samples
// hangs on the gains around it. Latency = b1 + b2 - 2 + LIMITER_MARGIN + LIMITER_AHEAD.
#ifndef WT_LIMITER_KERNEL_H
#define WT_LIMITER_KERNEL_H
#include "dynamics_kernel.h"

#define LIMITER_MARGIN 3
#define LIMITER_AHEAD 12 // frames the interpolator looks ahead
#define LIMITER_MAX_LATENCY 4096
#define LIMITER_ONE 1073741824.0f // 2^30
#define LIMITER_WEIGHTS 128       // of the longest trapezoid that is summed at once
#define LIMITER_POINT_TAPS 48     // of a row of the interpolator, with four zeros before it and 20 behind

enum { LIMITER_CEILING, LIMITER_RELEASE, LIMITER_N_PARAMS };

typedef struct limiter_plan {
    float rate_hz;
    int latency, window, box1, box2;
    int ring_frames;             // of every ring: a power of two
    float scale;                 // 1 / (box1 * box2 * 2^30)
    unsigned int sums1, sums2, attenuation, audio; // byte offsets of the rings in the state; `need` is at its own
    int n_weights;                                 // 0: a longer trapezoid
    WT_ALIGNED(16) float points[3][LIMITER_POINT_TAPS]; // true_peak_interpolator, newest sample's tap first
    WT_ALIGNED(16) unsigned int weights[LIMITER_WEIGHTS + 72]; // from the fifth on, zeros around them
} limiter_plan;

typedef struct limiter_coeffs {
    float ceiling_octaves, release;
} limiter_coeffs;

typedef struct limiter_state {
    float y;
    int due; // frames before the position whose attenuations are not yet in the sums
    int unused[2];
    unsigned long long sum1, sum2; // running sums modulo 2^64
    float need[8];                 // [ring_frames]; then sums1, sums2, attenuation [ring_frames], audio [channels][..]
} limiter_state;

// v: ceiling_db, release_ms
WT_SHARED_FN void limiter_design(const limiter_plan *p, const float *v0, const float *v1, limiter_coeffs *k)
{
    (void)v1;
    k->ceiling_octaves = v0[LIMITER_CEILING] * WT_OCTAVES_PER_DB;
    k->release = dynamics_pole(v0[LIMITER_RELEASE], p->rate_hz);
}

// Octaves of reduction that a peak needs.
WT_SHARED_FN float limiter_need(const limiter_coeffs *k, float peak)
{
    return wt_max(wt_log2(wt_max(peak, DYNAMICS_FLOOR)) - k->ceiling_octaves, 0.0f);
}

// Attenuation 1 - 2^-y in units of 2^-30, rounded up; exactly 0 for none.
WT_SHARED_FN unsigned int limiter_attenuation(float y)
{
    float exact = (1.0f - wt_exp2(-y)) * LIMITER_ONE;
    return (unsigned int)(int)(exact > 0.0f ? exact + 1.0f : 0.0f);
}
#endif
