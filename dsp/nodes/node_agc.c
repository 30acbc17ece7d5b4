#include "node_agc_kernel.h"
#include "node_types.h"

#include <math.h>
#include <warptone/simd.h>

static const wt_param_info params[AGC_N_PARAMS] = {
    {"target_db", "dB", -60, 0, -20, 0, "level to reach: RMS of the loudest channel"},
    {"max_gain_db", "dB", 0, 60, 24, 0, "most it lifts"},
    {"min_gain_db", "dB", -60, 0, -24, 0, "most it lowers"},
    {"gate_db", "dB", -120, 0, -50, 0, "below this level the gain stands still"},
    {"rise_db_s", "dB/s", 0.1f, 1000, 6, 1, "fastest rise of the gain"},
    {"fall_db_s", "dB/s", 0.1f, 1000, 24, 1, "fastest fall"},
};

static const char *const readings[AGC_N_READINGS] = {"gain_db", "level_db"};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(node_agc_plan));
    if (status) return status;
    node_agc_plan *p = out->plan;
    p->step_s = AGC_STEP / wt_setup_rate_hz(setup);
    p->keep = exp(-p->step_s / 0.05);
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(agc_rules);
    out->state_bytes = sizeof(node_agc_state);
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    node_agc_design(plan, v0, v1, coeffs);
}

WT_CLONES static void turn(const agc_line *l, const float *in, float *out, int at, int n)
{
    for (int k = 0; k < n; k++) out[k] = agc_turn(l, in[k], at + k);
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    (void)plan;
    node_agc_state *s = state;
    for (int done = 0, n; done < io->n_frames; done += n) {
        const int at = (int)((io->position + done) & (AGC_STEP - 1));
        n = io->n_frames - done < AGC_STEP - at ? io->n_frames - done : AGC_STEP - at;
        for (int c = 0; c < io->out_channels; c++) {
            const float *in = io->in[0] + c * io->stride + done;
            for (int k = 0; k < n; k++) s->ears[c].sum += (double)in[k] * in[k];
            turn(&s->line, in, io->out + c * io->stride + done, at, n);
        }
        if (at + n == AGC_STEP) node_agc_end_step(coeffs, s, io->out_channels, io->readings);
    }
}

const wt_node_type wt__node_agc = {
    .name = "agc",
    .summary = "brings speech of any level slowly to a target and leaves pauses alone; no delay",
    .params = params,
    .n_params = AGC_N_PARAMS,
    .readings = readings,
    .n_readings = AGC_N_READINGS,
    .plan = plan,
    .design = design,
    .process = process,
    .kernel = "node_agc",
};
