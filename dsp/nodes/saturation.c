#include "saturation_kernel.h"
#include "fir_across_level.h"
#include "node_types.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

static const wt_param_info params[SATURATION_N_PARAMS] = {
    {"drive_db", "dB", -20, 60, 12, 0, "level into the curve; a sine of -12 dB keeps its level behind it"},
    {"bias", "", -1, 1, 0, 0, "shifts the curve, which brings even harmonics"},
    {"mix", "", 0, 1, 1, 0, "0 = input, 1 = saturated"},
};

static const wt_option_info options[] = {
    {"shape", "tanh|soft|hard|asymmetric", "tanh", "the curve"},
    {"oversampling", "4|2|1", "4", "against aliasing; 4 and 2 delay by 31 frames, 1 by none"},
};

// Kaiser-windowed sinc, cut off at half the low rate. J. F. Kaiser, "Nonrecursive digital filter design using the
// I0-sinh window function", 1974; beta 8 holds the stop band below -80 dB.
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 40; k++) sum += term *= x / (2 * k) * (x / (2 * k));
    return sum;
}

static void design_branches(saturation_plan *p)
{
    const int n_taps = SATURATION_LATENCY * p->factor + 1;
    const double beta = 8, centre = 0.5 * (n_taps - 1), cutoff = 0.5 / p->factor;
    double h[SATURATION_TAPS * 4] = {0}, sum = 0;
    for (int k = 0; k < n_taps; k++) {
        double t = k - centre, at = t / centre;
        double sinc = t == 0 ? 2 * cutoff : sin(2 * M_PI * cutoff * t) / (M_PI * t);
        h[k] = sinc * bessel_i0(beta * sqrt(1 - at * at)) / bessel_i0(beta);
        sum += h[k];
    }
    for (int b = 0; b < p->factor; b++)
        for (int k = 0; k < SATURATION_TAPS; k++) {
            p->up[b][k] = (float)(p->factor * h[k * p->factor + b] / sum);
            p->down[b][k] = k * p->factor >= b ? (float)(h[k * p->factor - b] / sum) : 0;
        }
}

static wt_status plan(const wt_node_setup *setup, wt_node_plan *out)
{
    wt_status status = wt__plan_alloc(out, sizeof(saturation_plan));
    if (status) return status;
    saturation_plan *p = out->plan;
    p->shape = wt_setup_choice(setup, "shape");
    p->factor = 4 >> wt_setup_choice(setup, "oversampling");
    if (p->factor > 1) design_branches(p);
    out->out_channels = wt_setup_channels(setup, 0);
    out->coeffs_bytes = sizeof(saturation_coeffs);
    out->state_bytes = sizeof(saturation_state);
    out->scratch_floats = p->factor > 1 ? (1 + p->factor) * SATURATION_LINE : 0;
    out->latency_frames = p->factor > 1 ? SATURATION_LATENCY : 0;
    out->tail_frames = 2 * out->latency_frames;
    return WT_OK;
}

static void design(const void *plan, const float *v0, const float *v1, void *coeffs)
{
    saturation_design(plan, v0, v1, coeffs);
}

enum { LANES = 16, LINE = SATURATION_LINE + LANES };

// A loop a shape, so that each vectorises.
WT_INLINE void bend(int shape, const saturation_coeffs *k, float *x, int n_frames, int phase)
{
#define BEND(name)     \
    if (shape == name) \
        for (int n = 0; n < n_frames; n++) x[n] = saturation_sample(name, k, x[n], (float)(phase + n));
    BEND(SATURATION_TANH)
    BEND(SATURATION_SOFT)
    BEND(SATURATION_HARD)
    BEND(SATURATION_ASYMMETRIC)
#undef BEND
}

WT_CLONES static void run_channel(const saturation_plan *p, const saturation_coeffs *coeffs,
                                  float (*history)[SATURATION_TAPS], const float *x, float *y, int n_frames, int phase)
{
    const saturation_coeffs k = *coeffs;
    float dry[LINE], shaped[LINE], wet[WT_CHAIN_BLOCK + LANES];
    memset(wet, 0, sizeof *wet * (size_t)(n_frames + LANES));
    memcpy(dry, history[0], sizeof history[0]);
    memcpy(dry + SATURATION_TAPS, x, sizeof *x * (size_t)n_frames);
    memset(dry + SATURATION_TAPS + n_frames, 0, sizeof *x * LANES);
    for (int b = 0; b < p->factor; b++) {
        float *now = shaped + SATURATION_TAPS;
        memcpy(shaped, history[1 + b], sizeof history[0]);
        memset(now, 0, sizeof *now * (size_t)(n_frames + LANES));
        WT_LEVEL_CALL(fir_across, p->up[b], SATURATION_TAPS, dry + SATURATION_TAPS, -1, n_frames, now);
        bend(p->shape, &k, now, n_frames, phase);
        WT_LEVEL_CALL(fir_across, p->down[b], SATURATION_TAPS, now, -1, n_frames, wet);
        memcpy(history[1 + b], shaped + n_frames, sizeof history[0]);
    }
    memcpy(history[0], dry + n_frames, sizeof history[0]);
    for (int n = 0; n < n_frames; n++)
        y[n] = saturation_mix(&k, dry[SATURATION_TAPS - SATURATION_LATENCY + n], wet[n], (float)(phase + n));
}

WT_CLONES static void run_direct(int shape, const saturation_coeffs *coeffs, const float *x, float *y, int n_frames,
                                 int phase)
{
    const saturation_coeffs k = *coeffs;
    float wet[WT_CHAIN_BLOCK];
    memcpy(wet, x, sizeof *x * (size_t)n_frames);
    bend(shape, &k, wet, n_frames, phase);
    for (int n = 0; n < n_frames; n++) y[n] = saturation_mix(&k, x[n], wet[n], (float)(phase + n));
}

static void process(const wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const saturation_plan *p = plan;
    saturation_state *s = state;
    int phase = (int)(io->position & (WT_QUANTUM - 1));
    for (int c = 0; c < io->out_channels; c++) {
        const float *x = io->in[0] + c * io->stride;
        float *y = io->out + c * io->stride;
        if (p->factor > 1) run_channel(p, coeffs, s->line[c], x, y, io->n_frames, phase);
        else run_direct(p->shape, coeffs, x, y, io->n_frames, phase);
    }
}

const wt_node_type wt__node_saturation = {
    .name = "saturation",
    .summary = "waveshaper with oversampling: tanh, soft, hard, asymmetric",
    .params = params,
    .n_params = SATURATION_N_PARAMS,
    .options = options,
    .n_options = 2,
    .plan = plan,
    .design = design,
    .process = process,
};
