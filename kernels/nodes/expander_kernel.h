// expander: turns down what is below a threshold; see dynamics_kernel.h.
#ifndef WT_EXPANDER_KERNEL_H
#define WT_EXPANDER_KERNEL_H
#include "dynamics_kernel.h"

enum { EXPANDER_THRESHOLD, EXPANDER_RATIO, EXPANDER_KNEE, EXPANDER_ATTACK, EXPANDER_RELEASE, EXPANDER_RANGE,
       EXPANDER_N_PARAMS };

WT_SHARED_FN void expander_design(const dynamics_plan *p, const float *v0, const float *v1, dynamics_coeffs *k)
{
    dynamics_knee(k, v0[EXPANDER_THRESHOLD], v0[EXPANDER_KNEE], -1.0f);
    dynamics_times(p, k, v0[EXPANDER_ATTACK], v0[EXPANDER_RELEASE]);
    dynamics_range(k, v0[EXPANDER_RANGE], v1[EXPANDER_RANGE]);
    k->v_base = 1.0f;
    k->v_most = 1.0f;
    k->v_slope = -(v0[EXPANDER_RATIO] - 1.0f) / v0[EXPANDER_RANGE];
}
#endif
