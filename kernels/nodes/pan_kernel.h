// pan: equal power. A mono input is placed between two channels, -3 dB each in the middle; a stereo input is balanced
// with the same law, unity in the middle.
#ifndef WT_PAN_KERNEL_H
#define WT_PAN_KERNEL_H
#include "chain_kernel.h"

typedef struct pan_plan {
    float scale; // 1 for mono, sqrt(2) for stereo
} pan_plan;

typedef struct pan_coeffs {
    float gain[2], slope[2]; // left, right
} pan_coeffs;

// v: pan, -1 left .. 1 right
WT_SHARED_FN void pan_design(const pan_plan *plan, const float *v0, const float *v1, pan_coeffs *k)
{
    const float quarter = (float)(WT_PI / 4);
    k->gain[0] = plan->scale * cosf(quarter * (v0[0] + 1));
    k->gain[1] = plan->scale * sinf(quarter * (v0[0] + 1));
    k->slope[0] = (plan->scale * cosf(quarter * (v1[0] + 1)) - k->gain[0]) / WT_QUANTUM;
    k->slope[1] = (plan->scale * sinf(quarter * (v1[0] + 1)) - k->gain[1]) / WT_QUANTUM;
}
#endif
