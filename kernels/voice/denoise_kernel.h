// Noise reduction in a short-time spectrum: from the power of one bin to its gain. dsp/voice/denoise_gain.c and the
// denoise node run the same text; what it does and after whom is told in dsp/voice/denoise_gain.c.
#ifndef WT_DENOISE_KERNEL_H
#define WT_DENOISE_KERNEL_H
#include "fastmath_kernel.h"

enum { DENOISE_LSA, DENOISE_WIENER, DENOISE_GATE }; // as wt_denoise_mode

#define DENOISE_SPEECH_SNR 31.622777f    // 15 dB, theirs
#define DENOISE_MIN_PRIOR  0.0031622777f // -25 dB: O. Cappe 1994, keeps the rest of noise from ringing
#define DENOISE_MIN_POWER  1e-20f
#define DENOISE_LOUDEST    1e9f // samples beyond count as 0

// What does not change while running; the times are already counted in hops.
typedef struct denoise_rules {
    int mode, tracked;
    int n_bins, n_low;    // n_low: bins below the low cut
    int n_start;          // spectra taken for noise at the start
    float min_gain, gate; // gate: power ratio
    float noise_keep, presence_keep, prior_keep, mask_keep;
} denoise_rules;

// One channel's memory, all [n_bins].
typedef struct denoise_bins {
    float *power;    // of the present spectrum; in
    float *noise;    // power of the noise
    float *presence; // probability of speech, smoothed
    float *clean;    // squared amplitude of the last output; gate: the last mask
    float *gain;     // out
    int n_heard;     // spectra since reset, counted up to n_start
} denoise_bins;

// exp(E1(v) / 2). E1: M. Abramowitz and I. Stegun 5.1.53 (error 2e-7) and 5.1.56 (2e-8 of x e^x E1).
WT_SHARED_FN float denoise_lsa_factor(float v)
{
    const float low = wt_smaller(wt_larger(v, 1e-10f), 1), x = wt_smaller(wt_larger(v, 1), 80);
    const float smooth =
        -0.57721566f +
        low * (0.99999193f + low * (-0.24991055f + low * (0.05519968f + low * (-0.00976004f + low * 0.00107857f))));
    const float above = 0.2677737343f + x * (8.6347608925f + x * (18.0590169730f + x * (8.5733287401f + x)));
    const float below = 3.9584969228f + x * (21.0996530827f + x * (25.6329561486f + x * (9.5733223454f + x)));
    const float rest = wt_exp(-x) * above / (x * below);
    return wt_exp(0.5f * (v < 1 ? smooth : rest)) / sqrtf(low);
}

// At the start: the mean so far; nothing is speech yet. `part`: 1 / spectra so far, this one among them.
WT_SHARED_FN void denoise_start(const denoise_rules *r, const denoise_bins *b, float part, int k)
{
    b->noise[k] += part * (b->power[k] - b->noise[k]);
    b->gain[k] = r->min_gain;
}

WT_SHARED_FN void denoise_track(const denoise_rules *r, const denoise_bins *b, int k)
{
    const float ratio = wt_smaller(b->power[k] / wt_larger(b->noise[k], DENOISE_MIN_POWER), 200);
    float speech = 1 / (1 + (1 + DENOISE_SPEECH_SNR) * wt_exp(-ratio * DENOISE_SPEECH_SNR / (1 + DENOISE_SPEECH_SNR)));
    b->presence[k] = r->presence_keep * b->presence[k] + (1 - r->presence_keep) * speech;
    speech = wt_smaller(speech, b->presence[k] > 0.99f ? 0.99f : 1);
    const float heard = speech * b->noise[k] + (1 - speech) * b->power[k];
    b->noise[k] = r->noise_keep * b->noise[k] + (1 - r->noise_keep) * heard;
}

// Ephraim and Malah: the a-priori SNR is the last output's and what the present power has above the noise, mixed.
WT_SHARED_FN void denoise_weigh(const denoise_rules *r, const denoise_bins *b, int k)
{
    const float noise = wt_larger(b->noise[k], DENOISE_MIN_POWER), after = wt_smaller(b->power[k] / noise, 1e6f);
    const float prior =
        wt_larger(r->prior_keep * wt_smaller(b->clean[k] / noise, 1e6f) + (1 - r->prior_keep) * wt_larger(after - 1, 0),
              DENOISE_MIN_PRIOR);
    float gain = prior / (1 + prior);
    if (r->mode == DENOISE_LSA) gain *= denoise_lsa_factor(gain * after);
    b->gain[k] = wt_smaller(wt_larger(gain, r->min_gain), 1);
    b->clean[k] = b->gain[k] * b->gain[k] * b->power[k];
}

// A bin and its neighbours against the noise: half open at the threshold, 10 dB wide; opens at once, closes slowly.
WT_SHARED_FN void denoise_gate_of(const denoise_rules *r, const denoise_bins *b, int below, int k, int above)
{
    const float power = b->power[below] + b->power[k] + b->power[above];
    const float noise = wt_larger(b->noise[below] + b->noise[k] + b->noise[above], DENOISE_MIN_POWER) * r->gate;
    const float ratio = wt_smaller(power / noise, 1e6f), square = ratio * ratio;
    b->clean[k] = wt_larger(square / (1 + square), r->mask_keep * b->clean[k]);
    b->gain[k] = r->min_gain + (1 - r->min_gain) * b->clean[k];
}

WT_SHARED_FN void denoise_gate(const denoise_rules *r, const denoise_bins *b, int k)
{
    denoise_gate_of(r, b, k > 0 ? k - 1 : k, k, k < r->n_bins - 1 ? k + 1 : k);
}
#endif
