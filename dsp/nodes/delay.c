#include "delay_kernel.h"
#include "node_types.h"

static const wt_param_info params[] = {
    {"time_ms", "ms", 0.05f, 10000, 300, 1, "delay; at least 3 frames, at most max_ms"},
    {"feedback", "", -0.98f, 0.98f, 0, 0, "part of the delayed signal that goes round again"},
    {"mix", "", 0, 1, 0.5f, 0, "0 dry, 1 only the delayed signal"},
};

static const wt_option_info options[] = {
    {"max_ms", NULL, "2000", "longest time the line can hold, up to 10000"},
    {"sync", "none|1/1|1/2|1/2.|1/2t|1/4|1/4.|1/4t|1/8|1/8.|1/8t|1/16|1/16.|1/16t", "none",
     "a note (. dotted, t of a triplet): while the host of `live` tells a tempo, time_ms is as long, at most max_ms"},
};

// Echoes until -120 dB.
static double tail_frames(double feedback, double delay)
{
    double rounds = fabs(feedback) < 1e-6 ? 1 : ceil(-120 / (20 * log10(fabs(feedback)))) + 1;
    return fmin(rounds * delay, 1e9);
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double max_ms;
    wt_status status = wt_setup_number(setup, "max_ms", 1, 10000, &max_ms);
    if (!status && wt_setup_param(setup, "time_ms") > (float)max_ms)
        status = wt_fail(WT_ERR_BAD_ARG, "time_ms is %g, want at most max_ms, which is %g",
                         (double)wt_setup_param(setup, "time_ms"), max_ms);
    if (!status) status = wt__plan_alloc(out, sizeof(delay_plan));
    if (status) return status;
    delay_plan *p = out->plan;
    double rate = wt_setup_rate_hz(setup);
    p->frames_per_ms = (float)(rate * 1e-3);
    p->max_frames = (float)(max_ms * rate * 1e-3 + 1);
    p->mask = wt_ring_size((double)p->max_frames) - 1;
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(delay_coeffs);
    out->state_bytes = sizeof(delay_state) + sizeof(float) * (size_t)(p->mask + 1) * (size_t)out->out_channels;
    out->tail_frames = (int)tail_frames((double)wt_setup_param(setup, "feedback"),
                                        (double)delay_frames(p, wt_setup_param(setup, "time_ms")));
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    delay_design(plan, v0, v1, coeffs);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const delay_plan *p = plan;
    for (int c = 0; c < io->out_channels; c++) {
        float *ring = ((delay_state *)state)->ring + (size_t)c * (size_t)(p->mask + 1);
        for (int n = 0; n < io->n_frames; n++)
            io->out[c * io->stride + n] = delay_frame(p, coeffs, ring, io->position + n, io->in[0][c * io->stride + n]);
    }
}

const wt_node_type wt__node_delay = {
    .name = "delay",
    .summary = "delay line with feedback; its time may be a fraction of a frame and glides when turned",
    .params = params,
    .n_params = 3,
    .options = options,
    .n_options = 2,
    .plan = plan,
    .design = design,
    .process = process,
};
