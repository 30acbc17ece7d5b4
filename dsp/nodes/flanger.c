#include "flanger_kernel.h"
#include "node_types.h"

#include <warptone/simd.h>

static const wt_param_info params[] = {
    {"rate_hz", "Hz", 0.01f, 20, 0.3f, 0, "turns of the swing a second"},
    {"depth_ms", "ms", 0, 10, 3, 0, "how far the delay swings above delay_ms"},
    {"delay_ms", "ms", 0.1f, 10, 0.5f, 0, "shortest delay; at least 3 frames"},
    {"feedback", "", -0.97f, 0.97f, 0.5f, 0, "part of the delayed signal that goes round again"},
    {"mix", "", 0, 1, 0.5f, 0, "0 dry, 1 only the delayed signal"},
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(flanger_plan));
    if (status) return status;
    flanger_plan *p = out->plan;
    double rate = wt_setup_rate_hz(setup), longest = (double)(params[1].max + params[2].max) * 1e-3 * rate;
    double feedback = fabs((double)wt_setup_param(setup, "feedback"));
    p->rate_hz = (float)rate;
    p->mask = wt_ring_size(longest) - 1;
    out->out_channels = wt_setup_channels(setup, 0);
    p->channel_step = (unsigned)(LFO_TURN / (2 * out->out_channels));
    out->coeffs_bytes = sizeof(flanger_coeffs);
    out->state_bytes = sizeof(flanger_state) + sizeof(float) * (size_t)(p->mask + 1) * (size_t)out->out_channels;
    out->tail_frames = (int)(longest * (feedback < 1e-6 ? 1 : ceil(-120 / (20 * log10(feedback))) + 1));
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    flanger_design(plan, v0, v1, coeffs);
}

WT_CLONES __attribute__((flatten)) static void process(const wt_node_io *io, const void *plan, const void *coeffs,
                                                       void *state)
{
    const flanger_plan *p = plan;
    const flanger_coeffs k = *(const flanger_coeffs *)coeffs;
    flanger_state *s = state;
    for (int c = 0; c < io->out_channels; c++) {
        float *ring = s->ring + (size_t)c * (size_t)(p->mask + 1);
        unsigned phase = s->phase + (unsigned)c * p->channel_step;
        for (int n = 0; n < io->n_frames; n++)
            io->out[c * io->stride + n] =
                flanger_frame(p, &k, ring, io->position, phase, n, io->in[0][c * io->stride + n]);
    }
    s->phase += (unsigned)io->n_frames * k.delay.increment;
}

const wt_node_type wt__node_flanger = {
    .name = "flanger",
    .summary = "a short swinging delay with feedback",
    .params = params,
    .n_params = 5,
    .plan = plan,
    .design = design,
    .process = process,
};
