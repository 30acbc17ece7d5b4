/// Private to dsp/: features of spectrograms on a GPU.
#ifndef WT_SPECTRAL_CUDA_H
#define WT_SPECTRAL_CUDA_H

#include "op.h"
#include "spectral_kernel.h"

#include <warptone/spectral.h>

typedef struct wt__spectral_cuda wt__spectral_cuda;

/// Tables of the host: `bands` [rows] for contrast, `basis` [rows][bins] and [rows][rows] for a polynomial, else NULL.
WT_CHECKED wt_status wt__spectral_cuda_create(wt_device *device, const wt_spectral_args *args,
                                              const wt_spectral_band *bands, const double *basis,
                                              wt__spectral_cuda **cuda);
void wt__spectral_cuda_destroy(wt__spectral_cuda *cuda);
WT_CHECKED wt_status wt__spectral_cuda_enqueue(const wt__spectral_cuda *cuda, wt_stream *stream, const float *in,
                                               float *out);

#endif
