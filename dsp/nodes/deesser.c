#include "deesser_kernel.h"
#include "dynamics.h"

#include <warptone/simd.h>

static const wt_param_info params[DEESSER_N_PARAMS] = {
    {"frequency_hz", "Hz", 1000, 20000, 6000, 1, "corner of the high band, or centre of the bell"},
    {"q", "", 0.3f, 10, 0.70710678f, 1, "steepness of the corner, or narrowness of the bell"},
    {"threshold_db", "dB", -80, 20, -30, 0, "level of the band where reduction begins"},
    {"ratio", "", 1, 100, 4, 1, "dB of input for one dB of output above the threshold"},
    {"attack_ms", "ms", 0, 100, 1, 0, "time constant of rising reduction"},
    {"release_ms", "ms", 0, 1000, 50, 0, "time constant of falling reduction"},
    {"range_db", "dB", 0, 60, 12, 0, "largest reduction of the band"},
};

static const wt_option_info options[] = {
    {"band", "high|bell", "high", "what is turned down"},
    DYNAMICS_DETECTOR,
};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__dynamics_fill(setup, out, sizeof(deesser_plan), 0, 0);
    if (status) return status;
    ((deesser_plan *)out->plan)->shape = wt_setup_choice(setup, "band") ? BIQUAD_BANDPASS : BIQUAD_HIGHPASS;
    out->coeffs_bytes = sizeof(deesser_coeffs);
    out->state_bytes = sizeof(deesser_state);
    out->scratch_floats += out->out_channels * WT_CHAIN_BLOCK;
    out->tail_frames = (int)(wt_setup_rate_hz(setup) * 0.005);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    deesser_design(plan, v0, v1, coeffs);
}

WT_CLONES static void apply(const float *x, const float *band, const float *gain, float *y, int n_frames)
{
    for (int n = 0; n < n_frames; n++) y[n] = x[n] + (gain[n] - 1.0f) * band[n];
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const deesser_plan *p = plan;
    const deesser_coeffs *k = coeffs;
    deesser_state *s = state;
    float *band = io->scratch, *gains = band + io->out_channels * WT_CHAIN_BLOCK;
    wt__biquad_run(io->in[0], band, io->stride, io->out_channels, io->n_frames, &k->band, s->band);
    wt__dynamics_gains(io, &p->dynamics, &k->dynamics, &s->dynamics, band, io->out_channels, gains);
    for (int c = 0; c < io->out_channels; c++)
        apply(io->in[0] + c * io->stride, band + c * io->stride,
              gains + (p->dynamics.n_groups > 1 ? c : 0) * WT_CHAIN_BLOCK, io->out + c * io->stride, io->n_frames);
}

const wt_node_type wt__node_deesser = {
    .name = "deesser",
    .summary = "turns down sibilants: a band that is reduced while it is loud",
    .params = params,
    .n_params = DEESSER_N_PARAMS,
    .options = options,
    .n_options = 3,
    .readings = wt__dynamics_readings,
    .n_readings = 1,
    .plan = plan,
    .design = design,
    .process = process,
};
