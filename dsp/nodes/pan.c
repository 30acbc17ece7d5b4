#include "pan_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"pan", "", -1, 1, 0, 0, "-1 left, 0 middle, 1 right"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int channels = wt_setup_channels(setup, 0);
    if (channels > 2) return wt_fail(WT_ERR_BAD_ARG, "input has %d channels, want 1 or 2", channels);
    wt_status status = wt__plan_alloc(out, sizeof(pan_plan));
    if (status) return status;
    ((pan_plan *)out->plan)->scale = channels == 1 ? 1.0f : 1.41421356f;
    out->out_channels = 2;
    out->coeffs_bytes = sizeof(pan_coeffs);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    pan_design(plan, v0, v1, coeffs);
}

WT_CLONES static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan, (void)state;
    const pan_coeffs *k = coeffs;
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for (int c = 1; c >= 0; c--) { // right first: `out` may be a stereo in[0]
        const float *x = io->in[0] + (io->channels[0] == 2 ? c * io->stride : 0);
        float *y = io->out + c * io->stride;
        for (int n = 0; n < io->n_frames; n++) y[n] = x[n] * (k->gain[c] + k->slope[c] * (float)(phase + n));
    }
}

const wt_node_type wt__node_pan = {
    .name = "pan",
    .summary = "equal-power panorama of a mono input, balance of a stereo one",
    .params = params,
    .n_params = 1,
    .plan = plan,
    .design = design,
    .process = process,
};
