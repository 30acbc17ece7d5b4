// denoise: the noise reduction of dsp/voice/denoise.c as a node, with transforms of a power of two.
#ifndef WT_NODE_DENOISE_KERNEL_H
#define WT_NODE_DENOISE_KERNEL_H
#include "denoise_kernel.h"
#include "spectral_node_kernel.h"

enum { DENOISE_STRENGTH, DENOISE_MAX_CUT_DB, DENOISE_N_PARAMS };

// A channel's own floats: n_heard as a float, then noise, presence, clean, gain, [row] each.
typedef struct node_denoise_plan {
    spectral_plan base;
    denoise_rules rules; // min_gain comes from the coefficients
    int row;
} node_denoise_plan;

typedef struct node_denoise_coeffs {
    float strength, min_gain;
} node_denoise_coeffs;

WT_SHARED_FN void node_denoise_design(const node_denoise_plan *p, const float *v0, const float *v1,
                                      node_denoise_coeffs *k)
{
    (void)p, (void)v0;
    k->strength = v1[DENOISE_STRENGTH];
    k->min_gain = wt_exp2(-v1[DENOISE_MAX_CUT_DB] * WT_OCTAVES_PER_DB);
}

// State of all zero is the reset state, so the probability is kept as its distance from where it begins.
#define DENOISE_FIRST_PRESENCE 0.5f

WT_SHARED_FN void node_denoise_gain(const denoise_rules *r, const denoise_bins *b, int starting, float part, int k)
{
    if (starting) {
        denoise_start(r, b, part, k);
        return;
    }
    b->presence[k] += DENOISE_FIRST_PRESENCE;
    denoise_track(r, b, k);
    b->presence[k] -= DENOISE_FIRST_PRESENCE;
}

// One channel's bins; `spare` holds their power.
WT_SHARED_FN void node_denoise_frame(spectral_team team, const node_denoise_plan *p, const node_denoise_coeffs *k,
                                     float *own, float *re, float *im, float *spare, float *partials)
{
    (void)team;
    denoise_rules r = p->rules;
    r.min_gain = k->min_gain;
    float *noise = own + 16;
    const denoise_bins b = {spare, noise, noise + p->row, noise + 2 * p->row, noise + 3 * p->row, 0};
    float sum = 0.0f;
    SPECTRAL_EACH(i, r.n_bins)
    {
        b.power[i] = re[i] * re[i] + im[i] * im[i];
        sum += b.power[i];
    }
    if (!(spectral_sum(team, sum, partials) > 1e-20f)) return; // silence, or not a number
    const int starting = own[0] < (float)r.n_start;
    const float part = 1.0f / (own[0] + 1.0f);
    SPECTRAL_EACH(i, r.n_bins) node_denoise_gain(&r, &b, starting, part, i);
    SPECTRAL_SYNC();
    SPECTRAL_EACH(i, 1) own[0] += (float)starting;
    SPECTRAL_EACH(i, r.n_bins)
    {
        if (!starting && r.mode == DENOISE_GATE) denoise_gate(&r, &b, i);
        if (!starting && r.mode != DENOISE_GATE) denoise_weigh(&r, &b, i);
        if (i < r.n_low) b.gain[i] = r.min_gain;
        const float gain = 1 - k->strength * (1 - b.gain[i]);
        re[i] *= gain, im[i] *= gain;
    }
}
#endif
