// Automatic gain control: from the power of a step to its gain. dsp/level/agc.c, kernels/level/agc.cu and the agc node
// run the same text. The level is the power of the last 50 ms or so (one pole), looked at every AGC_STEP frames. The
// gain then moves towards target - level by at most its rates, along a straight line over the next step: no clicks, and
// nothing depends on the caller's blocks.
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

// A channel's step has ended.
WT_SHARED_FN void agc_hear(const agc_rules *r, agc_ear *e)
{
    if (e->sum <= 1e300) e->power = r->keep * e->power + (1 - r->keep) * e->sum / AGC_STEP; // finite
    if (e->power < 1e-30) e->power = 0;
    e->sum = 0;
}

#define AGC_STILL 1e9 // in place of a gain: it stands still

// The gain that the loudest channel's power asks for.
WT_SHARED_FN double agc_wanted(const agc_rules *r, double loudest)
{
    if (!(loudest > r->gate_power)) return AGC_STILL;
    return fmin(fmax(r->target_db - 10 * log10(loudest), r->min_gain_db), r->max_gain_db);
}

WT_SHARED_FN double agc_move(const agc_rules *r, double gain_db, double wanted)
{
    if (wanted == AGC_STILL) return gain_db;
    return gain_db + fmin(fmax(wanted - gain_db, -r->fall_db), r->rise_db);
}

// The next step's line, to `gain_db` from exactly where the last was to end.
WT_SHARED_FN void agc_lead(agc_line *l, double gain_db)
{
    const double now = pow(10.0, l->gain_db / 20);
    l->above = now - 1;
    l->change = (pow(10.0, gain_db / 20) - now) / AGC_STEP;
    l->gain_db = gain_db;
}

// A step has ended; returns the loudest channel's power.
WT_SHARED_FN double agc_end_step(const agc_rules *r, agc_line *l, agc_ear *ears, int channels)
{
    double loudest = 0;
    for (int c = 0; c < channels; c++) {
        agc_hear(r, &ears[c]);
        if (ears[c].power > loudest) loudest = ears[c].power;
    }
    agc_lead(l, agc_move(r, l->gain_db, agc_wanted(r, loudest)));
    return loudest;
}
#endif
