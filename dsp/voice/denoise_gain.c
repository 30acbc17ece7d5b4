// Noise: each bin's power goes into the noise as far as speech is improbable there (Gerkmann and Hendriks 2012). The
// probability compares the present power with the noise under a fixed a-priori SNR of 15 dB for speech, so nothing has
// to be tuned to the SNR; a bin that has been speech for long is held below 0.99, or it could never come back.
#include "denoise_gain.h"

float wt__denoise_lsa_factor(float v) { return denoise_lsa_factor(v); }

WT_RT void wt__denoise_gains(const denoise_rules *r, denoise_bins *b)
{
    const int n_bins = r->n_bins;
    if (r->tracked && b->n_heard < r->n_start) {
        const float part = 1 / (float)++b->n_heard;
        for (int k = 0; k < n_bins; k++) denoise_start(r, b, part, k);
        return;
    }
    for (int k = 0; r->tracked && k < n_bins; k++) denoise_track(r, b, k);
    if (r->mode == DENOISE_GATE)
        for (int k = 0; k < n_bins; k++) denoise_gate(r, b, k);
    else
        for (int k = 0; k < n_bins; k++) denoise_weigh(r, b, k);
    for (int k = 0; k < r->n_low; k++) b->gain[k] = r->min_gain;
}
