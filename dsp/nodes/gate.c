#include "gate_kernel.h"
#include "dynamics.h"

static const wt_param_info params[GATE_N_PARAMS] = {
    {"threshold_db", "dB", -100, 20, -45, 0, "level where it opens"},
    {"hysteresis_db", "dB", 0, 40, 4, 0, "it closes this far below the threshold"},
    {"attack_ms", "ms", 0, 500, 1, 0, "time constant of opening"},
    {"hold_ms", "ms", 0, 5000, 50, 0, "stays open this long after the level fell"},
    {"release_ms", "ms", 0, 5000, 100, 0, "time constant of closing, in dB"},
    {"range_db", "dB", 1, 120, 80, 0, "reduction when closed"},
};

static const wt_option_info options[] = {DYNAMICS_OPTIONS};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out) { return wt__dynamics_plan(setup, out, 1); }

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    gate_design(plan, v0, v1, coeffs);
}

const wt_node_type wt__node_gate = {
    .name = "gate",
    .summary = "gate with hysteresis, hold, side chain and look-ahead",
    .params = params,
    .n_params = GATE_N_PARAMS,
    .options = options,
    .n_options = DYNAMICS_N_OPTIONS,
    .readings = wt__dynamics_readings,
    .n_readings = 1,
    .flags = WT_NODE_SIDE_CHAIN,
    .plan = plan,
    .design = design,
    .process = wt__dynamics_process,
};
