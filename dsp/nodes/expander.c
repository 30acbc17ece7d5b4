#include "expander_kernel.h"
#include "dynamics.h"

static const wt_param_info params[EXPANDER_N_PARAMS] = {
    {"threshold_db", "dB", -100, 20, -40, 0, "level where reduction begins"},
    {"ratio", "", 1, 20, 2, 1, "dB of output for one dB of input below the threshold"},
    {"knee_db", "dB", 0, 40, 6, 0, "width of the bend around the threshold"},
    {"attack_ms", "ms", 0, 500, 2, 0, "time constant of opening"},
    {"release_ms", "ms", 0, 5000, 150, 0, "time constant of closing"},
    {"range_db", "dB", 1, 120, 40, 0, "largest reduction"},
};

static const wt_option_info options[] = {DYNAMICS_OPTIONS};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out) { return wt__dynamics_plan(setup, out, 0); }

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    expander_design(plan, v0, v1, coeffs);
}

const wt_node_type wt__node_expander = {
    .name = "expander",
    .summary = "downward expander with side chain and look-ahead",
    .params = params,
    .n_params = EXPANDER_N_PARAMS,
    .options = options,
    .n_options = DYNAMICS_N_OPTIONS,
    .readings = wt__dynamics_readings,
    .n_readings = 1,
    .flags = WT_NODE_SIDE_CHAIN,
    .plan = plan,
    .design = design,
    .process = wt__dynamics_process,
};
