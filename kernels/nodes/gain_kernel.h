// gain: y = g * x, g in decibels; -120 dB and below is silence.
#ifndef WT_GAIN_KERNEL_H
#define WT_GAIN_KERNEL_H
#include "chain_kernel.h"

#define GAIN_SILENCE_DB (-120.0f)

typedef struct gain_plan {
    int unused;
} gain_plan;

typedef struct gain_coeffs {
    float gain, slope; // at the start of the quantum, and its change a frame
} gain_coeffs;

WT_SHARED_FN float wt_db_to_gain(float db) { return db <= GAIN_SILENCE_DB ? 0.0f : expf(db * 0.11512925464970229f); }

// v: gain_db
WT_SHARED_FN void gain_design(const gain_plan *plan, const float *v0, const float *v1, gain_coeffs *k)
{
    (void)plan;
    k->gain = wt_db_to_gain(v0[0]);
    k->slope = (wt_db_to_gain(v1[0]) - k->gain) / WT_QUANTUM;
}
#endif
