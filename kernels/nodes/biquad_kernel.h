// biquad: one second-order section, transfer functions of R. Bristow-Johnson, "Cookbook formulae for audio EQ biquad
// filter coefficients", realised as a trapezoidal state-variable filter (A. Simper, "Solving the continuous SVF
// equations using trapezoidal integration and equivalent currents", 2013), whose states stay well scaled in float at
// low frequencies and under modulation:
//   s' = s + A s + B x,   y = C s + D x.
// A is the step's distance from the identity, so that a corner of 20 Hz, where it is some 1e-3, keeps all its digits.
#ifndef WT_BIQUAD_KERNEL_H
#define WT_BIQUAD_KERNEL_H
#include "chain_kernel.h"

enum { BIQUAD_LOWPASS, BIQUAD_HIGHPASS, BIQUAD_BANDPASS, BIQUAD_NOTCH, BIQUAD_PEAK, BIQUAD_LOWSHELF, BIQUAD_HIGHSHELF,
       BIQUAD_ALLPASS };
#define BIQUAD_POWERS 8 // (I + A)^1, ^2, ^4 ... ^128, less I: the steps of a scan over up to 256 frames

typedef struct biquad_plan {
    float rate_hz;
    int shape;
} biquad_plan;

typedef struct biquad_coeffs {
    WT_ALIGNED(16) float a[4]; // row major
    float b[2], c[2], d, unused[3];
    float power[BIQUAD_POWERS][4];
} biquad_coeffs;

typedef struct biquad_state {
    float s[WT_MAX_CHANNELS][2];
} biquad_state;

// The section m0 + m1 * s / (s^2 + damping s + 1) + m2 / (s^2 + damping s + 1), its corner at g = tan(pi f / rate).
WT_SHARED_FN void biquad_realise(float g, float damping, float m0, float m1, float m2, biquad_coeffs *k)
{
    float a1 = 1.0f / (1.0f + g * (g + damping)), a2 = g * a1, a3 = g * a2;
    k->a[0] = -2 * g * (g + damping) * a1, k->a[1] = -2 * a2, k->a[2] = 2 * a2, k->a[3] = -2 * a3;
    k->b[0] = 2 * a2, k->b[1] = 2 * a3;
    k->c[0] = m1 * a1 + m2 * a2, k->c[1] = m2 * (1 - a3) - m1 * a2;
    k->d = m0 + m1 * a2 + m2 * a3;
    for (int i = 0; i < 4; i++) k->power[0][i] = k->a[i];
    for (int p = 1; p < BIQUAD_POWERS; p++) {
        const float *m = k->power[p - 1];
        k->power[p][0] = 2 * m[0] + m[0] * m[0] + m[1] * m[2], k->power[p][1] = m[1] * (2 + m[0] + m[3]);
        k->power[p][2] = m[2] * (2 + m[0] + m[3]), k->power[p][3] = 2 * m[3] + m[3] * m[3] + m[1] * m[2];
    }
}

// The section of one shape at one place. Shared by crossover, de-esser and meters.
WT_SHARED_FN void biquad_section(int shape, float rate_hz, float frequency_hz, float q, float gain_db, biquad_coeffs *k)
{
    float limit = 0.49f * rate_hz;
    float g = tanf((float)WT_PI * fminf(frequency_hz, limit) / rate_hz);
    float amplitude = expf(gain_db * 0.05756462732485115f); // 10^(gain / 40)
    float damping = 1.0f / q, m0 = 1, m1 = 0, m2 = 0;
    switch (shape) {
    case BIQUAD_LOWPASS: m0 = 0, m2 = 1; break;
    case BIQUAD_HIGHPASS: m1 = -damping, m2 = -1; break;
    case BIQUAD_BANDPASS: m0 = 0, m1 = damping; break;
    case BIQUAD_NOTCH: m1 = -damping; break;
    case BIQUAD_ALLPASS: m1 = -2 * damping; break;
    case BIQUAD_PEAK:
        damping /= amplitude;
        m1 = damping * (amplitude * amplitude - 1);
        break;
    case BIQUAD_LOWSHELF:
        g /= sqrtf(amplitude);
        m1 = damping * (amplitude - 1), m2 = amplitude * amplitude - 1;
        break;
    case BIQUAD_HIGHSHELF:
        g *= sqrtf(amplitude);
        m0 = amplitude * amplitude, m1 = damping * (1 - amplitude) * amplitude, m2 = 1 - amplitude * amplitude;
        break;
    }
    biquad_realise(g, damping, m0, m1, m2, k);
}

// v: frequency_hz, q, gain_db
WT_SHARED_FN void biquad_design(const biquad_plan *plan, const float *v0, const float *v1, biquad_coeffs *k)
{
    (void)v1;
    biquad_section(plan->shape, plan->rate_hz, v0[0], v0[1], v0[2], k);
}

#ifndef __CUDACC__
// The judge (biquad_ref.c): one channel from rest.
void biquad_ref(int shape, double rate_hz, double frequency_hz, double q, double gain_db, const float *x, float *y,
                int n_frames);
#endif
#endif
