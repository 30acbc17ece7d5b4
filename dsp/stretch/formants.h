/// Private to dsp/stretch/pitch_shift.c: move signals' spectral envelopes and leave their pitch.
#ifndef WT_FORMANTS_H
#define WT_FORMANTS_H

#include "op.h"

#include <stdint.h>
#include <warptone/status.h>

typedef struct wt__formants_config {
    int n_fft; ///< 0 = 2048; hops are a quarter of it
    double rate_hz;
    int order;    ///< peaks lie rate / (2 order) apart, 0 = the pitch
    double ratio; ///< frequencies of the envelope are divided by it
    int64_t n_samples;
    int n_signals;      ///< on a GPU; elsewhere one
    int frames_at_once; ///< on a GPU, 0 = as many as fit
} wt__formants_config;

typedef struct wt__formants wt__formants;

WT_CHECKED wt_status wt__formants_create(const wt__formants_config *config, wt__formants **formants);
void wt__formants_destroy(wt__formants *formants); ///< NULL is allowed.
/// One signal of n_samples.  [rt]
WT_RT void wt__formants_run(wt__formants *formants, const float *pcm, float *out);

/// All signals on a GPU.
typedef struct wt__formants_cuda wt__formants_cuda;
WT_CHECKED wt_status wt__formants_cuda_create(wt_device *device, const wt__formants_config *config,
                                              wt__formants_cuda **formants);
void wt__formants_cuda_destroy(wt__formants_cuda *formants); ///< NULL is allowed.
WT_CHECKED wt_status wt__formants_cuda_enqueue(const wt__formants_cuda *formants, wt_stream *stream, const float *pcm,
                                               wt_buffer *out);

#endif
