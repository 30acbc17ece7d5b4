// deesser: turns down a band while it is loud.  y = x + (g - 1) * band(x): without reduction the input, to the bit.
// With a high band that is a dynamic high shelf, with a bell a dynamic peak filter.
#ifndef WT_DEESSER_KERNEL_H
#define WT_DEESSER_KERNEL_H
#include "biquad_kernel.h"
#include "dynamics_kernel.h"

enum { DEESSER_FREQUENCY, DEESSER_Q, DEESSER_THRESHOLD, DEESSER_RATIO, DEESSER_ATTACK, DEESSER_RELEASE, DEESSER_RANGE,
       DEESSER_N_PARAMS };
#define DEESSER_KNEE_DB 4.0f

typedef struct deesser_plan {
    dynamics_plan dynamics;
    int shape; // of the band: BIQUAD_HIGHPASS or BIQUAD_BANDPASS
} deesser_plan;

typedef struct deesser_coeffs {
    biquad_coeffs band;
    dynamics_coeffs dynamics;
} deesser_coeffs;

typedef struct deesser_state {
    dynamics_state dynamics;
    float band[WT_MAX_CHANNELS][2];
} deesser_state;

WT_SHARED_FN void deesser_design(const deesser_plan *p, const float *v0, const float *v1, deesser_coeffs *k)
{
    dynamics_coeffs *d = &k->dynamics;
    (void)v1;
    biquad_section(p->shape, p->dynamics.rate_hz, v0[DEESSER_FREQUENCY], v0[DEESSER_Q], 0.0f, &k->band);
    dynamics_knee(d, v0[DEESSER_THRESHOLD], DEESSER_KNEE_DB, 1.0f);
    dynamics_times(&p->dynamics, d, v0[DEESSER_ATTACK], v0[DEESSER_RELEASE]);
    d->v_slope = 1.0f - 1.0f / v0[DEESSER_RATIO];
    d->v_most = v0[DEESSER_RANGE];
    d->span_db = -1.0f;
}
#endif
