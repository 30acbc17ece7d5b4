#include "compressor_kernel.h"
#include "dynamics.h"

static const wt_param_info params[COMPRESSOR_N_PARAMS] = {
    {"threshold_db", "dB", -80, 20, -20, 0, "level where reduction begins"},
    {"ratio", "", 1, 100, 3, 1, "dB of input for one dB of output above the threshold"},
    {"knee_db", "dB", 0, 40, 6, 0, "width of the bend around the threshold"},
    {"attack_ms", "ms", 0, 500, 5, 0, "time constant of rising reduction"},
    {"release_ms", "ms", 0, 5000, 100, 0, "time constant of falling reduction"},
    {"makeup_db", "dB", -30, 60, 0, 0, "gain behind the reduction"},
    {"mix", "", 0, 1, 1, 0, "0 = input, 1 = compressed"},
};

static const wt_option_info options[] = {DYNAMICS_OPTIONS};

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out) { return wt__dynamics_plan(setup, out, 0); }

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    compressor_design(plan, v0, v1, coeffs);
}

const wt_node_type wt__node_compressor = {
    .name = "compressor",
    .summary = "soft-knee compressor with side chain and look-ahead",
    .params = params,
    .n_params = COMPRESSOR_N_PARAMS,
    .options = options,
    .n_options = DYNAMICS_N_OPTIONS,
    .readings = wt__dynamics_readings,
    .n_readings = 1,
    .flags = WT_NODE_SIDE_CHAIN | WT_NODE_CUDA_QUICK,
    .plan = plan,
    .design = design,
    .process = wt__dynamics_process,
};
