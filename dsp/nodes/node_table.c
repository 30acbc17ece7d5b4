#include "node_types.h"

#include <stdlib.h>
#include <string.h>

const wt_node_type *const wt_node_types[] = {
    &wt__node_agc,
    &wt__node_biquad,
    &wt__node_chorus,
    &wt__node_compressor,
    &wt__node_convolution,
    &wt__node_cqt,
    &wt__node_crossover,
    &wt__node_cuda,
    &wt__node_dc_block,
    &wt__node_deesser,
    &wt__node_delay,
    &wt__node_denoise,
    &wt__node_echo_cancel,
    &wt__node_expander,
    &wt__node_fir,
    &wt__node_flanger,
    &wt__node_gain,
    &wt__node_gate,
    &wt__node_hpss,
    &wt__node_leveler,
    &wt__node_limiter,
    &wt__node_meter,
    &wt__node_mix,
    &wt__node_mono,
    &wt__node_pan,
    &wt__node_pitch,
    &wt__node_pitch_shift,
    &wt__node_reverb,
    &wt__node_saturation,
    &wt__node_spectrum,
    &wt__node_vad,
    // internal
    &wt__node_align,
};
const int wt_n_node_types = sizeof wt_node_types / sizeof *wt_node_types;

const wt_node_type *wt_node_type_find(const char *name)
{
    for (int t = 0; t < wt_n_node_types; t++)
        if (strcmp(wt_node_types[t]->name, name) == 0) return wt_node_types[t];
    return NULL;
}

static const wt_param_info bypass = {
    .name = "bypass", .unit = "", .max = 1, .help = "1: its first input instead of the node"};

int wt_node_type_n_params(const wt_node_type *type) { return type->n_params + 1; }

const wt_param_info *wt_node_type_param(const wt_node_type *type, int param)
{
    if (param < 0 || param > type->n_params) return NULL;
    return param < type->n_params ? &type->params[param] : &bypass;
}

wt_status wt__plan_alloc(wt_node_plan *plan, size_t bytes)
{
    plan->plan = calloc(1, bytes);
    plan->plan_bytes = bytes;
    return plan->plan ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "no memory for a plan of %zu bytes", bytes);
}
