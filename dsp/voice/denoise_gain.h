/// Private to denoise: from the power of one spectrum to the gain of its bins.
#ifndef WT_DENOISE_GAIN_H
#define WT_DENOISE_GAIN_H

#include "denoise_kernel.h"

#include <warptone/denoise.h>

/// The rules of a configuration without defaults (dsp/voice/denoise.c).  [any]
denoise_rules wt__denoise_rules(const wt_denoise_config *config, int frame, int hop);
/// Those of a configured one.  [any]
const denoise_rules *wt__denoise_rules_of(const wt_denoise *denoise);
/// The noise of its first channel, [n_bins].  [any but rt]
const float *wt__denoise_noise_of(const wt_denoise *denoise);
/// Is a channel's stretch of noise long enough, finite and within 1e9?  [any]
WT_CHECKED wt_status wt__denoise_check_noise(const float *noise, int n_frames, int least);
/// Value k of the analysis window [frame] and of the synthesis window [2 hop].  [any]
double wt__denoise_analysis(int frame, int hop, int k);
double wt__denoise_synthesis(int frame, int hop, int k);

/// Track the noise with the present power and set the gains.  [rt, running]
WT_RT void wt__denoise_gains(const denoise_rules *rules, denoise_bins *bins);

/// exp(E1(v) / 2), the factor of MMSE-LSA upon Wiener's gain.  [any]
float wt__denoise_lsa_factor(float v);

#endif
