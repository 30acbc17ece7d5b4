#include "dc_block_kernel.h"
#include "node_types.h"

static const wt_param_info params[] = {
    {"frequency_hz", "Hz", 1, 100, 10, 1, "corner of the high-pass"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(dc_block_plan));
    if (status) return status;
    ((dc_block_plan *)out->plan)->rate_hz = (float)wt_setup_rate_hz(setup);
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(biquad_coeffs);
    out->state_bytes = sizeof(biquad_state);
    out->tail_frames = (int)(wt_setup_rate_hz(setup) * 0.2);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    dc_block_design(plan, v0, v1, coeffs);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan;
    wt__biquad_run(io->in[0], io->out, io->stride, io->out_channels, io->n_frames, coeffs, ((biquad_state *)state)->s);
}

const wt_node_type wt__node_dc_block = {
    .name = "dc_block",
    .summary = "removes a constant offset",
    .params = params,
    .n_params = 1,
    .plan = plan,
    .design = design,
    .process = process,
};
