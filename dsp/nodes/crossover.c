#include "crossover_kernel.h"
#include "node_types.h"

static const wt_param_info params[] = {
    {"split1_hz", "Hz", 10, 20000, 200, 1, "between band 1 and 2"},
    {"split2_hz", "Hz", 10, 20000, 2000, 1, "between band 2 and 3"},
    {"split3_hz", "Hz", 10, 20000, 8000, 1, "between band 3 and 4"},
};

static const wt_option_info options[] = {
    {"bands", NULL, "2", "of the whole set, 2 to 4"},
    {"band", NULL, NULL, "the one that this node lets through, 1 is the lowest"},
};

static wt_status check_splits(const wt_node_setup *setup, int n_splits)
{
    for (int s = 0; s + 1 < n_splits; s++)
        if (!(wt_setup_param(setup, params[s].name) < wt_setup_param(setup, params[s + 1].name)))
            return wt_fail(WT_ERR_BAD_ARG, "%s is %g and %s is %g, want rising splits", params[s].name,
                           (double)wt_setup_param(setup, params[s].name), params[s + 1].name,
                           (double)wt_setup_param(setup, params[s + 1].name));
    return WT_OK;
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    double bands, band;
    wt_status status = wt_setup_number(setup, "bands", 2, CROSSOVER_MAX_SPLITS + 1, &bands);
    if (!status) status = wt_setup_number(setup, "band", 1, (int)bands, &band);
    if (!status) status = check_splits(setup, (int)bands - 1);
    if (!status) status = wt__plan_alloc(out, sizeof(crossover_plan));
    if (status) return status;
    crossover_plan *p = out->plan;
    p->rate_hz = (float)wt_setup_rate_hz(setup);
    p->n_splits = (int)bands - 1;
    p->band = (int)band - 1;
    for (int s = 0; s < p->n_splits; s++) p->n_sections += s > p->band ? 1 : 2;
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(crossover_coeffs);
    out->state_bytes = sizeof(crossover_state);
    out->tail_frames = (int)(wt_setup_rate_hz(setup) * 0.1);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    crossover_design(plan, v0, v1, coeffs);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const crossover_plan *p = plan;
    const crossover_coeffs *k = coeffs;
    crossover_state *s = state;
    const float *x = io->in[0];
    for (int i = 0; i < p->n_sections; i++, x = io->out)
        wt__biquad_run(x, io->out, io->stride, io->out_channels, io->n_frames, &k->section[i], s->section[i].s);
}

const wt_node_type wt__node_crossover = {
    .name = "crossover",
    .summary = "one band of a Linkwitz-Riley crossover, 24 dB an octave; a set of bands adds up flat",
    .params = params,
    .n_params = CROSSOVER_MAX_SPLITS,
    .options = options,
    .n_options = 2,
    .plan = plan,
    .design = design,
    .process = process,
};
