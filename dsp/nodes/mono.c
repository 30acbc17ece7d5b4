#include "mono_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_option_info options[] = {
    {"channels", "one|same", "one", "of the output: one, or the mean on as many as came in"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    int channels = wt_setup_channels(setup, 0);
    wt_status status = wt__plan_alloc(out, sizeof(mono_plan));
    if (status) return status;
    ((mono_plan *)out->plan)->weight = 1.0f / (float)channels;
    out->out_channels = wt_setup_choice(setup, "channels") == 0 ? 1 : channels;
    return WT_OK;
}

WT_CLONES static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)coeffs, (void)state;
    float weight = ((const mono_plan *)plan)->weight, sum[WT_CHAIN_BLOCK] = {0};
    for (int c = 0; c < io->channels[0]; c++)
        for (int n = 0; n < io->n_frames; n++) sum[n] += io->in[0][c * io->stride + n];
    for (int c = 0; c < io->out_channels; c++)
        for (int n = 0; n < io->n_frames; n++) io->out[c * io->stride + n] = sum[n] * weight;
}

const wt_node_type wt__node_mono = {
    .name = "mono",
    .summary = "mean of all channels",
    .options = options,
    .n_options = 1,
    .plan = plan,
    .process = process,
};
