#include "gain_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"gain_db", "dB", -120, 60, 0, 0, "level change; -120 is silence"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(gain_coeffs);
    return wt__plan_alloc(out, sizeof(gain_plan));
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    gain_design(plan, v0, v1, coeffs);
}

WT_CLONES static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan, (void)state;
    const gain_coeffs *k = coeffs;
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for (int c = 0; c < io->out_channels; c++) {
        const float *x = io->in[0] + c * io->stride;
        float *y = io->out + c * io->stride;
        if (k->slope == 0.0f)
            for (int n = 0; n < io->n_frames; n++) y[n] = x[n] * k->gain;
        else
            for (int n = 0; n < io->n_frames; n++) y[n] = x[n] * (k->gain + k->slope * (float)(phase + n));
    }
}

const wt_node_type wt__node_gain = {
    .name = "gain",
    .summary = "level change in decibels",
    .params = params,
    .n_params = 1,
    .plan = plan,
    .design = design,
    .process = process,
};
