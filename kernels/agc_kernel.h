// Automatic gain control: from the power of a step to its gain. dsp/agc.c and the agc node run the same text. The level
// is the power of the last 50 ms or so (one pole), looked at every AGC_STEP frames. The gain then moves towards
// target - level by at most its rates, along a straight line over the next step: no clicks, and nothing depends on the
// caller's blocks.
#ifndef WT_AGC_KERNEL_H
#define WT_AGC_KERNEL_H
#include "chain_kernel.h"

#define AGC_STEP 64

typedef struct agc_rules {
    double target_db, max_gain_db, min_gain_db, gate_power;
    double rise_db, fall_db; // a step
    double keep;             // part of the power that a step leaves
} agc_rules;

// A channel: its power, smoothed, and the sum of squares in the present step.
typedef struct agc_ear {
    double power, sum;
} agc_ear;

// The gain less 1 at the step's first frame, and its change a frame.
typedef struct agc_line {
    double gain_db, above, change;
} agc_line;

WT_SHARED_FN float agc_turn(const agc_line *l, float x, int at)
{
    return (float)((double)x * (1.0 + l->above + l->change * at));
}

// A step has ended; returns the loudest channel's power.
WT_SHARED_FN double agc_end_step(const agc_rules *r, agc_line *l, agc_ear *ears, int channels)
{
    double loudest = 0;
    for (int c = 0; c < channels; c++) {
        agc_ear *e = &ears[c];
        if (e->sum <= 1e300) e->power = r->keep * e->power + (1 - r->keep) * e->sum / AGC_STEP; // finite
        if (e->power < 1e-30) e->power = 0;
        if (e->power > loudest) loudest = e->power;
        e->sum = 0;
    }
    const double now = pow(10.0, l->gain_db / 20);
    if (loudest > r->gate_power) {
        const double wanted = fmin(fmax(r->target_db - 10 * log10(loudest), r->min_gain_db), r->max_gain_db);
        l->gain_db += fmin(fmax(wanted - l->gain_db, -r->fall_db), r->rise_db);
    }
    l->above = now - 1; // exactly where the last line was to end
    l->change = (pow(10.0, l->gain_db / 20) - now) / AGC_STEP;
    return loudest;
}
#endif
