/// Private to dsp/mel_inverse.c: mel bands back to magnitudes on a GPU.
#ifndef WT_MEL_INVERSE_CUDA_H
#define WT_MEL_INVERSE_CUDA_H

#include "op.h"

#include <warptone/mel_inverse.h>

/// What the plan has made, borrowed for the call.
typedef struct wt__mel_inverse_shape {
    const double *bank, *shares;  ///< [n_mels][bins]
    const double *sums, *squares; ///< [n_mels] of bands, [bins] of columns
    const int *begins, *ends;     ///< [bins] bands that are not zero
    int n_mels, bins, n_signals, n_sweeps;
    int64_t n_frames;
    double power, enough;
} wt__mel_inverse_shape;

typedef struct wt__mel_inverse_cuda wt__mel_inverse_cuda;
WT_CHECKED wt_status wt__mel_inverse_cuda_create(wt_device *device, const wt__mel_inverse_shape *shape,
                                                 wt__mel_inverse_cuda **cuda);
void wt__mel_inverse_cuda_destroy(wt__mel_inverse_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__mel_inverse_cuda_enqueue(const wt__mel_inverse_cuda *cuda, wt_stream *stream, const float *mel,
                                                  float *out);

#endif
