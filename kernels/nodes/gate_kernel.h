// gate: closes below a threshold, with hysteresis and hold; see dynamics_kernel.h.
#ifndef WT_GATE_KERNEL_H
#define WT_GATE_KERNEL_H
#include "dynamics_kernel.h"

enum { GATE_THRESHOLD, GATE_HYSTERESIS, GATE_ATTACK, GATE_HOLD, GATE_RELEASE, GATE_RANGE, GATE_N_PARAMS };

WT_SHARED_FN void gate_design(const dynamics_plan *p, const float *v0, const float *v1, dynamics_coeffs *k)
{
    float octaves = p->rms ? 2.0f * WT_OCTAVES_PER_DB : WT_OCTAVES_PER_DB; // of power, or of amplitude
    dynamics_times(p, k, v0[GATE_ATTACK], v0[GATE_RELEASE]);
    dynamics_range(k, v0[GATE_RANGE], v1[GATE_RANGE]);
    k->open = wt_exp2(v0[GATE_THRESHOLD] * octaves);
    k->close = wt_exp2((v0[GATE_THRESHOLD] - v0[GATE_HYSTERESIS]) * octaves);
    k->v_most = 1.0f;
    k->hold_frames = (int)(v0[GATE_HOLD] * 0.001f * p->rate_hz + 0.5f);
}
#endif
