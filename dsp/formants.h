/// Private to dsp/pitch_shift.c: move a signal's spectral envelope and leave its pitch.
#ifndef WT_FORMANTS_H
#define WT_FORMANTS_H

#include <stdint.h>
#include <warptone/status.h>

typedef struct wt__formants wt__formants;

/// Frequencies of the envelope are divided by `ratio`; `order` 0 = rate_hz / 300; n_fft 0 = 2048.
WT_CHECKED wt_status wt__formants_create(int n_fft, double rate_hz, int order, double ratio, int64_t n_samples,
                                         wt__formants **formants);
void wt__formants_destroy(wt__formants *formants); ///< NULL is allowed.
/// One signal of n_samples.  [rt]
WT_RT void wt__formants_run(wt__formants *formants, const float *pcm, float *out);

#endif
