// crossover: one band of a Linkwitz-Riley crossover of fourth order (each slope two Butterworth sections; S. Linkwitz,
// "Active crossover networks for noncoincident drivers", JAES 24, 1976). Band b of splits f1 < f2 < f3:
//   high-pass at every split below it, low-pass at its upper split, all-pass at every split above that,
// so that the bands of one set add up to an all-pass: flat in magnitude, equal in phase.
#ifndef WT_CROSSOVER_KERNEL_H
#define WT_CROSSOVER_KERNEL_H
#include "biquad_kernel.h"

#define CROSSOVER_MAX_SPLITS 3
#define CROSSOVER_MAX_SECTIONS (2 * CROSSOVER_MAX_SPLITS)

typedef struct crossover_plan {
    float rate_hz;
    int n_splits, band; // band 0 .. n_splits
    int n_sections;
} crossover_plan;

typedef struct crossover_coeffs {
    biquad_coeffs section[CROSSOVER_MAX_SECTIONS];
} crossover_coeffs;

typedef struct crossover_state {
    biquad_state section[CROSSOVER_MAX_SECTIONS];
} crossover_state;

// v: split1_hz, split2_hz, split3_hz
WT_SHARED_FN void crossover_design(const crossover_plan *plan, const float *v0, const float *v1, crossover_coeffs *k)
{
    (void)v1;
    biquad_coeffs *section = k->section;
    for (int s = 0; s < plan->n_splits; s++) {
        int shape = s < plan->band ? BIQUAD_HIGHPASS : s == plan->band ? BIQUAD_LOWPASS : BIQUAD_ALLPASS;
        biquad_section(shape, plan->rate_hz, v0[s], 0.70710678f, 0, section++);
        if (shape == BIQUAD_ALLPASS) continue;
        biquad_section(shape, plan->rate_hz, v0[s], 0.70710678f, 0, section++);
    }
}
#endif
