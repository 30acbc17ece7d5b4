#include "mix_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[WT_MAX_NODE_INPUTS] = {
    {"gain1_db", "dB", -120, 60, 0, 0, "level of input 1"}, {"gain2_db", "dB", -120, 60, 0, 0, "level of input 2"},
    {"gain3_db", "dB", -120, 60, 0, 0, "level of input 3"}, {"gain4_db", "dB", -120, 60, 0, 0, "level of input 4"},
    {"gain5_db", "dB", -120, 60, 0, 0, "level of input 5"}, {"gain6_db", "dB", -120, 60, 0, 0, "level of input 6"},
    {"gain7_db", "dB", -120, 60, 0, 0, "level of input 7"}, {"gain8_db", "dB", -120, 60, 0, 0, "level of input 8"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int channels = 1, n_inputs = wt_setup_n_inputs(setup);
    for (int i = 0; i < n_inputs; i++)
        if (wt_setup_channels(setup, i) > channels) channels = wt_setup_channels(setup, i);
    for (int i = 0; i < n_inputs; i++)
        if (wt_setup_channels(setup, i) != 1 && wt_setup_channels(setup, i) != channels)
            return wt_fail(WT_ERR_BAD_ARG, "input %d has %d channels, want 1 or %d", i + 1,
                           wt_setup_channels(setup, i), channels);
    out->out_channels = channels;
    out->coeffs_bytes = sizeof(mix_coeffs);
    wt_status status = wt__plan_alloc(out, sizeof(mix_plan));
    if (!status) ((mix_plan *)out->plan)->n_inputs = n_inputs;
    return status;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    mix_design(plan, v0, v1, coeffs);
}

WT_CLONES static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan, (void)state;
    const mix_coeffs *k = coeffs;
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for (int c = io->out_channels - 1; c >= 0; c--) { // downwards: `out` may be a one-channel in[0]
        float sum[WT_CHAIN_BLOCK] = {0};
        for (int i = 0; i < io->n_inputs; i++) {
            const float *x = io->in[i] + (io->channels[i] == 1 ? 0 : c * io->stride);
            for (int n = 0; n < io->n_frames; n++) sum[n] += x[n] * (k->gain[i] + k->slope[i] * (float)(phase + n));
        }
        for (int n = 0; n < io->n_frames; n++) io->out[c * io->stride + n] = sum[n];
    }
}

const wt_node_type wt__node_mix = {
    .name = "mix",
    .summary = "weighted sum of up to eight inputs",
    .params = params,
    .n_params = WT_MAX_NODE_INPUTS,
    .flags = WT_NODE_MANY_INPUTS,
    .plan = plan,
    .design = design,
    .process = process,
};
