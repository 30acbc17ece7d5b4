// delay: a delay line with feedback, read between samples, so that its time glides like a tape's.
//   d(n) = line(n - D(n)),  line(n) = x(n) + feedback d(n),  y(n) = dry x(n) + wet d(n)
#ifndef WT_DELAY_KERNEL_H
#define WT_DELAY_KERNEL_H
#include "interpolate_kernel.h"

typedef struct delay_plan {
    float frames_per_ms, max_frames;
    int mask; // ring size - 1
} delay_plan;

typedef struct delay_coeffs {
    float delay, delay_slope; // frames, and their change a frame
    float feedback, feedback_slope, mix, mix_slope;
    float shortest; // within the quantum: as many frames can be run at once
} delay_coeffs;

typedef struct delay_state {
    float unused[4];
    float ring[1]; // [channels][mask + 1]
} delay_state;

WT_SHARED_FN float delay_frames(const delay_plan *p, float time_ms)
{
    return fminf(fmaxf(time_ms * p->frames_per_ms, LAGRANGE_BEFORE + 1), p->max_frames);
}

// v: time_ms, feedback, mix
WT_SHARED_FN void delay_design(const delay_plan *p, const float *v0, const float *v1, delay_coeffs *k)
{
    float end = delay_frames(p, v1[0]);
    k->delay = delay_frames(p, v0[0]);
    k->delay_slope = (end - k->delay) / WT_QUANTUM;
    k->shortest = fminf(k->delay, end);
    k->feedback = v0[1], k->feedback_slope = (v1[1] - v0[1]) / WT_QUANTUM;
    k->mix = v0[2], k->mix_slope = (v1[2] - v0[2]) / WT_QUANTUM;
}

// One frame of one channel; its input stands in the ring after it.
WT_SHARED_FN float delay_frame(const delay_plan *p, const delay_coeffs *k, float *ring, long long position, float x)
{
    float at = (float)((int)position & (WT_QUANTUM - 1));
    // while a parameter moves a block ends with its quantum; at rest the slopes are zero
    float d = wt_ring_read(ring, p->mask, position, k->delay + k->delay_slope * at);
    float mix = k->mix + k->mix_slope * at;
    ring[position & p->mask] = x + (k->feedback + k->feedback_slope * at) * d;
    return x + mix * (d - x);
}
#endif
