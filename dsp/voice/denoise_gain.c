// Noise: each bin's power goes into the noise as far as speech is improbable there (Gerkmann and Hendriks 2012). The
// probability compares the present power with the noise under a fixed a-priori SNR of 15 dB for speech, so nothing has
// to be tuned to the SNR; a bin that has been speech for long is held below 0.99, or it could never come back.
#include "denoise_gain.h"

#include <warptone/simd.h>

float wt__denoise_lsa_factor(float v) { return denoise_lsa_factor(v); }

// Each of all bins; what they hold does not overlap, nor the rules, which are copied so that the compiler knows.
WT_CLONES static void start(const denoise_rules *rules, const denoise_bins *bins, float part)
{
    const denoise_rules r = *rules;
    const denoise_bins b = *bins;
#pragma GCC ivdep
    for (int k = 0; k < r.n_bins; k++) denoise_start(&r, &b, part, k);
}

WT_CLONES static void track(const denoise_rules *rules, const denoise_bins *bins)
{
    const denoise_rules r = *rules;
    const denoise_bins b = *bins;
#pragma GCC ivdep
    for (int k = 0; k < r.n_bins; k++) denoise_track(&r, &b, k);
}

WT_INLINE void weigh_as(denoise_rules r, denoise_bins b, int mode)
{
    r.mode = mode; // so that only its own gain is computed
#pragma GCC ivdep
    for (int k = 0; k < r.n_bins; k++) denoise_weigh(&r, &b, k);
}

WT_CLONES static void weigh(const denoise_rules *r, const denoise_bins *b)
{
    if (r->mode == DENOISE_LSA)
        weigh_as(*r, *b, DENOISE_LSA);
    else
        weigh_as(*r, *b, DENOISE_WIENER);
}

WT_CLONES static void gate(const denoise_rules *rules, const denoise_bins *bins)
{
    const denoise_rules r = *rules;
    const denoise_bins b = *bins;
    denoise_gate(&r, &b, 0);
#pragma GCC ivdep
    for (int k = 1; k < r.n_bins - 1; k++) denoise_gate_of(&r, &b, k - 1, k, k + 1);
    denoise_gate(&r, &b, r.n_bins - 1);
}

WT_RT void wt__denoise_gains(const denoise_rules *r, denoise_bins *b)
{
    if (r->tracked && b->n_heard < r->n_start) {
        start(r, b, 1 / (float)++b->n_heard);
        return;
    }
    if (r->tracked) track(r, b);
    if (r->mode == DENOISE_GATE)
        gate(r, b);
    else
        weigh(r, b);
    for (int k = 0; k < r->n_low; k++) b->gain[k] = r->min_gain;
}
