// saturation: y = c * (f(drive * x + bias) - f(bias)), computed at 4 or 2 times the rate against aliasing.
//
// One linear-phase prototype h of 31 * factor + 1 taps serves both ways, as `factor` branches of 32 taps at the rate
// itself: up[p][k] = factor * h[k factor + p], down[p][k] = h[k factor - p]. Together they delay by exactly
// SATURATION_LATENCY frames. c keeps a sine of -12 dB full scale at its level.
#ifndef WT_SATURATION_KERNEL_H
#define WT_SATURATION_KERNEL_H
#include "fastmath_kernel.h"

#define SATURATION_TAPS 32 // of a branch; also the history of every line
#define SATURATION_LATENCY 31
#define SATURATION_REFERENCE 0.25f
#define SATURATION_LINE (SATURATION_TAPS + WT_CHAIN_BLOCK)

enum { SATURATION_TANH, SATURATION_SOFT, SATURATION_HARD, SATURATION_ASYMMETRIC };
enum { SATURATION_DRIVE, SATURATION_BIAS, SATURATION_MIX, SATURATION_N_PARAMS };

typedef struct saturation_plan {
    int shape, factor;
    float up[4][SATURATION_TAPS], down[4][SATURATION_TAPS];
} saturation_plan;

typedef struct saturation_point {
    float drive, bias, offset, out, mix;
} saturation_point;

typedef struct saturation_coeffs {
    saturation_point at, slope; // at the start of the quantum, and the change a frame
} saturation_coeffs;

typedef struct saturation_state {
    float line[WT_MAX_CHANNELS][5][SATURATION_TAPS]; // input, then the shaped branches
} saturation_state;

// All have slope 1 at 0: tanh; a cubic that reaches its top smoothly; a clip at 1; tanh above and x / (1 - x) below 0.
WT_SHARED_FN float saturation_shape(int shape, float x)
{
    float clipped = wt_min(wt_max(x, -1.0f), 1.0f), cubic = wt_min(wt_max(x, -1.5f), 1.5f);
    if (shape == SATURATION_HARD) return clipped;
    if (shape == SATURATION_SOFT) return cubic - cubic * cubic * cubic * (4.0f / 27.0f);
    float bent = wt_tanh(x);
    if (shape == SATURATION_TANH) return bent;
    return x < 0.0f ? x / (1.0f - wt_min(x, 0.0f)) : bent;
}

WT_SHARED_FN void saturation_point_at(int shape, const float *v, saturation_point *p)
{
    p->drive = wt_exp2(v[SATURATION_DRIVE] * WT_OCTAVES_PER_DB);
    p->bias = v[SATURATION_BIAS];
    p->offset = saturation_shape(shape, p->bias);
    float push = p->drive * SATURATION_REFERENCE;
    float swing = saturation_shape(shape, p->bias + push) - saturation_shape(shape, p->bias - push);
    p->out = 2.0f * SATURATION_REFERENCE / swing;
    p->mix = v[SATURATION_MIX];
}

// v: drive_db, bias, mix
WT_SHARED_FN void saturation_design(const saturation_plan *p, const float *v0, const float *v1, saturation_coeffs *k)
{
    saturation_point end;
    saturation_point_at(p->shape, v0, &k->at);
    saturation_point_at(p->shape, v1, &end);
    k->slope.drive = (end.drive - k->at.drive) / WT_QUANTUM;
    k->slope.bias = (end.bias - k->at.bias) / WT_QUANTUM;
    k->slope.offset = (end.offset - k->at.offset) / WT_QUANTUM;
    k->slope.out = (end.out - k->at.out) / WT_QUANTUM;
    k->slope.mix = (end.mix - k->at.mix) / WT_QUANTUM;
}

// One shaped sample at frame t of the quantum.
WT_SHARED_FN float saturation_sample(int shape, const saturation_coeffs *k, float x, float t)
{
    float driven = (k->at.drive + k->slope.drive * t) * x + (k->at.bias + k->slope.bias * t);
    float bent = saturation_shape(shape, driven) - (k->at.offset + k->slope.offset * t);
    return bent * (k->at.out + k->slope.out * t);
}

WT_SHARED_FN float saturation_mix(const saturation_coeffs *k, float dry, float wet, float t)
{
    return dry + (k->at.mix + k->slope.mix * t) * (wet - dry);
}
#endif
