// flanger: a short delay that swings, with feedback; delay_ms is its shortest time, depth_ms how far it swings.
//   d(n) = line(n - D(n)),  line(n) = x(n) + feedback d(n),  y = x + mix (d - x)
#ifndef WT_FLANGER_KERNEL_H
#define WT_FLANGER_KERNEL_H
#include "lfo_kernel.h"

typedef struct flanger_plan {
    float rate_hz;
    int mask;
    unsigned int channel_step; // of the phase
} flanger_plan;

typedef struct flanger_coeffs {
    lfo_delay delay;
    float feedback, feedback_slope, mix, mix_slope;
    float slew; // most frames that the delay changes by in one frame
} flanger_coeffs;

typedef struct flanger_state {
    unsigned int phase; // at the next frame
    int unused[3];
    float ring[1]; // [channels][mask + 1]
} flanger_state;

// v: rate_hz, depth_ms, delay_ms, feedback, mix
WT_SHARED_FN void flanger_design(const flanger_plan *p, const float *v0, const float *v1, flanger_coeffs *k)
{
    const float frames = p->rate_hz * 1e-3f;
    const float depth[2] = {0.5f * v0[1] * frames, 0.5f * v1[1] * frames};
    const float centre[2] = {wt_fma(v0[2], frames, depth[0]), wt_fma(v1[2], frames, depth[1])};
    lfo_delay_design(centre, depth, lfo_increment(v1[0], p->rate_hz), &k->delay);
    k->feedback = v0[3], k->feedback_slope = (v1[3] - v0[3]) / WT_QUANTUM;
    k->mix = v0[4], k->mix_slope = (v1[4] - v0[4]) / WT_QUANTUM;
    k->slew = fmaxf(depth[0], depth[1]) * (float)(2 * WT_PI) * v1[0] / p->rate_hz +
              (fabsf(k->delay.centre_slope) + fabsf(k->delay.depth_slope)) / LFO_UNITS;
}

// Frame n of one channel; `phase` is that of the block's first frame.
WT_SHARED_FN float flanger_frame(const flanger_plan *p, const flanger_coeffs *k, float *ring, long long position,
                                 unsigned int phase, int n, float x)
{
    int at = ((int)position & (WT_QUANTUM - 1)) + n;
    float d = lfo_read(&k->delay, ring, p->mask, position + n, at, phase + (unsigned int)n * k->delay.increment);
    ring[(position + n) & p->mask] = x + (k->feedback + k->feedback_slope * (float)at) * d;
    return x + (k->mix + k->mix_slope * (float)at) * (d - x);
}
#endif
