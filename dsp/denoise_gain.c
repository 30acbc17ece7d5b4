// Noise: each bin's power goes into the noise as far as speech is improbable there (Gerkmann and Hendriks 2012). The
// probability compares the present power with the noise under a fixed a-priori SNR of 15 dB for speech, so nothing has
// to be tuned to the SNR; a bin that has been speech for long is held below 0.99, or it could never come back.
#include "denoise_gain.h"

#include <math.h>
#include <string.h>

static const float SPEECH_SNR = 31.622777f;   // 15 dB, theirs
static const float MIN_PRIOR = 0.0031622777f; // -25 dB: O. Cappe 1994, keeps the rest of noise from ringing
static const float MIN_POWER = 1e-20f;

// E1: M. Abramowitz and I. Stegun 5.1.53 (error 2e-7) and 5.1.56 (2e-8 of x e^x E1).
float wt__denoise_lsa_factor(float v)
{
    if (v < 1) {
        const float x = fmaxf(v, 1e-10f);
        const float smooth =
            -0.57721566f +
            x * (0.99999193f + x * (-0.24991055f + x * (0.05519968f + x * (-0.00976004f + x * 0.00107857f))));
        return expf(0.5f * smooth) / sqrtf(x);
    }
    const float x = fminf(v, 80);
    const float above = 0.2677737343f + x * (8.6347608925f + x * (18.0590169730f + x * (8.5733287401f + x)));
    const float below = 3.9584969228f + x * (21.0996530827f + x * (25.6329561486f + x * (9.5733223454f + x)));
    return expf(0.5f * expf(-x) / x * above / below);
}

WT_RT static void track_noise(const denoise_rules *r, denoise_bins *b)
{
    for (int k = 0; k < r->n_bins; k++) {
        const float ratio = fminf(b->power[k] / fmaxf(b->noise[k], MIN_POWER), 200);
        float speech = 1 / (1 + (1 + SPEECH_SNR) * expf(-ratio * SPEECH_SNR / (1 + SPEECH_SNR)));
        b->presence[k] = r->presence_keep * b->presence[k] + (1 - r->presence_keep) * speech;
        if (b->presence[k] > 0.99f) speech = fminf(speech, 0.99f);
        const float heard = speech * b->noise[k] + (1 - speech) * b->power[k];
        b->noise[k] = r->noise_keep * b->noise[k] + (1 - r->noise_keep) * heard;
    }
}

// Ephraim and Malah: the a-priori SNR is the last output's and what the present power has above the noise, mixed.
WT_RT static void weigh(const denoise_rules *r, denoise_bins *b)
{
    for (int k = 0; k < r->n_bins; k++) {
        const float noise = fmaxf(b->noise[k], MIN_POWER), after = fminf(b->power[k] / noise, 1e6f);
        const float prior = fmaxf(
            r->prior_keep * fminf(b->clean[k] / noise, 1e6f) + (1 - r->prior_keep) * fmaxf(after - 1, 0), MIN_PRIOR);
        float gain = prior / (1 + prior);
        if (r->mode == WT_DENOISE_LSA) gain *= wt__denoise_lsa_factor(gain * after);
        b->gain[k] = fminf(fmaxf(gain, r->min_gain), 1);
        b->clean[k] = b->gain[k] * b->gain[k] * b->power[k];
    }
}

// A bin and its neighbours against the noise: half open at the threshold, 10 dB wide; opens at once, closes slowly.
WT_RT static void gate(const denoise_rules *r, denoise_bins *b)
{
    for (int k = 0; k < r->n_bins; k++) {
        const int below = k > 0 ? k - 1 : k, above = k < r->n_bins - 1 ? k + 1 : k;
        const float power = b->power[below] + b->power[k] + b->power[above];
        const float noise = fmaxf(b->noise[below] + b->noise[k] + b->noise[above], MIN_POWER) * r->gate;
        const float ratio = fminf(power / noise, 1e6f), square = ratio * ratio;
        b->clean[k] = fmaxf(square / (1 + square), r->mask_keep * b->clean[k]);
        b->gain[k] = r->min_gain + (1 - r->min_gain) * b->clean[k];
    }
}

WT_RT void wt__denoise_gains(const denoise_rules *r, denoise_bins *b)
{
    const int n_bins = r->n_bins;
    if (r->tracked && b->n_heard < r->n_start) { // the mean so far; nothing is speech yet
        const float part = 1 / (float)++b->n_heard;
        for (int k = 0; k < n_bins; k++) {
            b->noise[k] += part * (b->power[k] - b->noise[k]);
            b->gain[k] = r->min_gain;
        }
        return;
    }
    if (r->tracked) track_noise(r, b);
    if (r->mode == WT_DENOISE_GATE)
        gate(r, b);
    else
        weigh(r, b);
    for (int k = 0; k < r->n_low; k++) b->gain[k] = r->min_gain;
}
