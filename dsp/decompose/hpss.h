/// The GPU side of wt_hpss.
#ifndef WT_DSP_HPSS_H
#define WT_DSP_HPSS_H

#include <warptone/hpss.h>

typedef struct wt__hpss_cuda wt__hpss_cuda;

/// `config` is resolved: no zeros that mean a default.
WT_CHECKED wt_status wt__hpss_cuda_create(wt_device *device, const wt_hpss_config *config, wt__hpss_cuda **cuda);
void wt__hpss_cuda_destroy(wt__hpss_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__hpss_cuda_enqueue(const wt__hpss_cuda *cuda, wt_stream *stream, const wt_hpss_config *config,
                                           const float *in, int64_t n_frames, float *harmonic, float *percussive);

#endif
