// dc_block: a second-order Butterworth high-pass far below hearing.
#ifndef WT_DC_BLOCK_KERNEL_H
#define WT_DC_BLOCK_KERNEL_H
#include "biquad_kernel.h"

typedef struct dc_block_plan {
    float rate_hz;
} dc_block_plan;

// v: frequency_hz
WT_SHARED_FN void dc_block_design(const dc_block_plan *plan, const float *v0, const float *v1, biquad_coeffs *k)
{
    (void)v1;
    biquad_section(BIQUAD_HIGHPASS, plan->rate_hz, v0[0], 0.70710678f, 0, k);
}
#endif
