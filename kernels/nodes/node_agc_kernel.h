// agc: the gain control of dsp/level/agc.c as a node.
#ifndef WT_NODE_AGC_KERNEL_H
#define WT_NODE_AGC_KERNEL_H
#include "agc_kernel.h"

enum { AGC_TARGET, AGC_MAX_GAIN, AGC_MIN_GAIN, AGC_GATE, AGC_RISE, AGC_FALL, AGC_N_PARAMS };
enum { AGC_GAIN_DB, AGC_LEVEL_DB, AGC_N_READINGS };

typedef struct node_agc_plan {
    double step_s, keep;
} node_agc_plan;

typedef struct node_agc_state {
    agc_line line;
    double unused;
    agc_ear ears[WT_MAX_CHANNELS];
} node_agc_state;

WT_SHARED_FN void node_agc_design(const node_agc_plan *p, const float *v0, const float *v1, agc_rules *r)
{
    (void)v0;
    r->target_db = v1[AGC_TARGET];
    r->max_gain_db = v1[AGC_MAX_GAIN], r->min_gain_db = v1[AGC_MIN_GAIN];
    r->gate_power = pow(10.0, (double)v1[AGC_GATE] / 10);
    r->rise_db = v1[AGC_RISE] * p->step_s, r->fall_db = v1[AGC_FALL] * p->step_s;
    r->keep = p->keep;
}

WT_SHARED_FN void node_agc_end_step(const agc_rules *r, node_agc_state *s, int channels, float *readings)
{
    const double power = agc_end_step(r, &s->line, s->ears, channels);
    readings[AGC_GAIN_DB] = (float)s->line.gain_db;
    readings[AGC_LEVEL_DB] = power > 1e-12 ? (float)(10 * log10(power)) : -120.0f;
}
#endif
