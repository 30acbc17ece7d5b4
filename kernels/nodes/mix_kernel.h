// mix: y = sum over inputs of g_i * x_i; an input with one channel goes to all channels.
#ifndef WT_MIX_KERNEL_H
#define WT_MIX_KERNEL_H
#include "gain_kernel.h"

typedef struct mix_plan {
    int n_inputs;
} mix_plan;

typedef struct mix_coeffs {
    float gain[WT_MAX_NODE_INPUTS], slope[WT_MAX_NODE_INPUTS];
} mix_coeffs;

// v: gain1_db .. gain8_db
WT_SHARED_FN void mix_design(const mix_plan *plan, const float *v0, const float *v1, mix_coeffs *k)
{
    for (int i = 0; i < plan->n_inputs; i++) {
        k->gain[i] = wt_db_to_gain(v0[i]);
        k->slope[i] = (wt_db_to_gain(v1[i]) - k->gain[i]) / WT_QUANTUM;
    }
}
#endif
