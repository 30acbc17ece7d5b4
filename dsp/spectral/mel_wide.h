/// Private to dsp/spectral/mel_cuda.c: a mel plan on a GPU whose frames no block's shared memory holds.
#ifndef WT_MEL_WIDE_H
#define WT_MEL_WIDE_H

#include "mel_plan.h"

typedef struct wt__mel_wide wt__mel_wide;

/// wt__mel_cuda_create for any n_fft and any number of bands.
WT_CHECKED wt_status wt__mel_wide_create(const wt_mel *mel, const float *matrix, int n_out, wt__mel_wide **wide);
void wt__mel_wide_destroy(wt__mel_wide *wide); ///< NULL is allowed.
WT_CHECKED wt_status wt__mel_wide_enqueue(const wt__mel_wide *wide, wt_stream *stream, uintptr_t pcm, uintptr_t bands,
                                          uintptr_t product);

#endif
