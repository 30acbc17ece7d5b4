/// Private to dsp/spectral/stft_plan.c: short-time transforms on a GPU whose length no block holds.
#ifndef WT_STFT_WIDE_H
#define WT_STFT_WIDE_H

#include "stft_internal.h"

typedef struct wt__stft_wide wt__stft_wide;

/// Of n_lines signals by the plan's settings; `length` samples come back. Errors: those of wt_module_create and
/// wt_buffer_create.
WT_CHECKED wt_status wt__stft_wide_create(wt_device *device, const wt_stft *stft, wt_stft_output output,
                                          int64_t n_lines, int64_t n_samples, int64_t n_frames, int64_t length,
                                          wt__stft_wide **wide);
void wt__stft_wide_destroy(wt__stft_wide *wide); ///< NULL is allowed.
/// Both ways as wt_stft_plan_forward and _inverse.
WT_CHECKED wt_status wt__stft_wide_forward(wt__stft_wide *wide, wt_stream *stream, const float *pcm, float *out);
WT_CHECKED wt_status wt__stft_wide_inverse(wt__stft_wide *wide, wt_stream *stream, const float *in, float *pcm);

#endif
