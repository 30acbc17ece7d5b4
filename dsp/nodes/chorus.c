#include "chorus_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"rate_hz", "Hz", 0.01f, 20, 0.8f, 0, "turns of the swing a second"},
    {"depth_ms", "ms", 0, 20, 2, 0, "how far the delay swings to either side; at most delay_ms"},
    {"delay_ms", "ms", 0.5f, 50, 12, 0, "middle of the swing"},
    {"mix", "", 0, 1, 0.5f, 0, "0 dry, 1 only the voices"},
};

static const wt_option_info options[] = {
    {"voices", "1|2|3|4", "2", "delays, spread over the turn"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(chorus_plan));
    if (status) return status;
    chorus_plan *p = out->plan;
    double longest_ms = (double)params[1].max + (double)params[2].max;
    p->rate_hz = (float)wt_setup_rate_hz(setup);
    p->voices = 1 + wt_setup_choice(setup, "voices");
    p->scale = (float)(1 / sqrt(p->voices));
    p->mask = wt_ring_size(longest_ms * 1e-3 * wt_setup_rate_hz(setup)) - 1;
    out->out_channels = wt_setup_channels(setup, 0);
    p->voice_step = (unsigned)(LFO_TURN / p->voices - 1);
    p->channel_step = (unsigned)(LFO_TURN / p->voices / (out->out_channels < 2 ? 2 : out->out_channels));
    out->coeffs_bytes = sizeof(chorus_coeffs);
    out->state_bytes = sizeof(chorus_state) + sizeof(float) * (size_t)(p->mask + 1) * (size_t)out->out_channels;
    out->tail_frames = (int)(longest_ms * 1e-3 * wt_setup_rate_hz(setup)) + LAGRANGE_TAPS;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    chorus_design(plan, v0, v1, coeffs);
}

WT_CLONES __attribute__((flatten)) static void process(const wt_node_io *io, const void *plan, const void *coeffs,
                                                       void *state)
{
    const chorus_plan *p = plan;
    const chorus_coeffs k = *(const chorus_coeffs *)coeffs;
    chorus_state *s = state;
    for (int c = 0; c < io->out_channels; c++) {
        const float *x = io->in[0] + c * io->stride;
        float *ring = s->ring + (size_t)c * (size_t)(p->mask + 1), sum[WT_CHAIN_BLOCK] = {0};
        for (int n = 0; n < io->n_frames; n++) ring[(io->position + n) & p->mask] = x[n];
        for (int v = 0; v < p->voices; v++) {
            unsigned phase = s->phase + (unsigned)c * p->channel_step + (unsigned)v * p->voice_step;
            for (int n = 0; n < io->n_frames; n++) sum[n] += chorus_voice(p, &k.delay, ring, io->position, phase, n);
        }
        for (int n = 0; n < io->n_frames; n++)
            io->out[c * io->stride + n] = chorus_blend(p, &k, io->position, n, x[n], sum[n]);
    }
    s->phase += (unsigned)io->n_frames * k.delay.increment;
}

const wt_node_type wt__node_chorus = {
    .name = "chorus",
    .summary = "one to four swinging copies of the sound, different on each channel",
    .params = params,
    .n_params = 4,
    .options = options,
    .n_options = 1,
    .plan = plan,
    .design = design,
    .process = process,
};
