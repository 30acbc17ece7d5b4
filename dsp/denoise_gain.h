/// Private to denoise: from the power of one spectrum to the gain of its bins.
#ifndef WT_DENOISE_GAIN_H
#define WT_DENOISE_GAIN_H

#include <warptone/denoise.h>

/// What does not change while running; the times are already counted in hops.
typedef struct denoise_rules {
    wt_denoise_mode mode;
    bool tracked;
    int n_bins, n_low;    ///< n_low: bins below the low cut
    int n_start;          ///< spectra taken for noise at the start
    float min_gain, gate; ///< gate: power ratio
    float noise_keep, presence_keep, prior_keep, mask_keep;
} denoise_rules;

/// One channel's memory, all [n_bins].
typedef struct denoise_bins {
    float *power;    ///< of the present spectrum; in
    float *noise;    ///< power of the noise
    float *presence; ///< probability of speech, smoothed
    float *clean;    ///< squared amplitude of the last output; gate: the last mask
    float *gain;     ///< out
    int n_heard;     ///< spectra since reset, counted up to n_start
} denoise_bins;

/// Track the noise with the present power and set the gains.  [rt, running]
WT_RT void wt__denoise_gains(const denoise_rules *rules, denoise_bins *bins);

/// exp(E1(v) / 2), the factor of MMSE-LSA upon Wiener's gain.  [any]
float wt__denoise_lsa_factor(float v);

#endif
