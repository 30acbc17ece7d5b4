// compressor: reduces what is above a threshold; see dynamics_kernel.h.
#ifndef WT_COMPRESSOR_KERNEL_H
#define WT_COMPRESSOR_KERNEL_H
#include "dynamics_kernel.h"

enum { COMPRESSOR_THRESHOLD, COMPRESSOR_RATIO, COMPRESSOR_KNEE, COMPRESSOR_ATTACK, COMPRESSOR_RELEASE,
       COMPRESSOR_MAKEUP, COMPRESSOR_MIX, COMPRESSOR_N_PARAMS };

WT_SHARED_FN void compressor_design(const dynamics_plan *p, const float *v0, const float *v1, dynamics_coeffs *k)
{
    dynamics_knee(k, v0[COMPRESSOR_THRESHOLD], v0[COMPRESSOR_KNEE], 1.0f);
    dynamics_times(p, k, v0[COMPRESSOR_ATTACK], v0[COMPRESSOR_RELEASE]);
    k->v_base = 0.0f;
    k->v_slope = 1.0f - 1.0f / v0[COMPRESSOR_RATIO];
    k->v_most = 1000.0f;
    k->base_db = 0.0f, k->base_slope = 0.0f;
    k->span_db = -1.0f, k->span_slope = 0.0f;
    k->makeup_db = v0[COMPRESSOR_MAKEUP];
    k->makeup_slope = dynamics_slope(v0[COMPRESSOR_MAKEUP], v1[COMPRESSOR_MAKEUP]);
    k->mix = v0[COMPRESSOR_MIX];
    k->mix_slope = dynamics_slope(v0[COMPRESSOR_MIX], v1[COMPRESSOR_MIX]);
}
#endif
