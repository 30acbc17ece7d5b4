/// Private to dsp/spectral/griffin_lim_cuda.c: the iteration in double on a GPU, of any n_fft.
#ifndef WT_GRIFFIN_LIM_WIDE_H
#define WT_GRIFFIN_LIM_WIDE_H

#include "griffin_lim_cuda.h"

typedef struct wt__griffin_lim_wide wt__griffin_lim_wide;

WT_CHECKED wt_status wt__griffin_lim_wide_create(wt_device *device, const wt__griffin_lim_shape *shape,
                                                 wt__griffin_lim_wide **wide);
void wt__griffin_lim_wide_destroy(wt__griffin_lim_wide *wide); ///< NULL is allowed.
WT_CHECKED wt_status wt__griffin_lim_wide_enqueue(const wt__griffin_lim_wide *wide, wt_stream *stream,
                                                  const float *magnitude, float *out);

#endif
