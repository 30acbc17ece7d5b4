/// Private to dsp/tuning*.c.
#ifndef WT_TUNING_INTERNAL_H
#define WT_TUNING_INTERNAL_H

#include "tuning_kernel.h"

#include <warptone/tuning.h>

WT_CHECKED wt_status wt__tuning_resolve(wt_tuning_config *config); ///< defaults
/// Peaks of a frame: hz and height [n_fft / 2 + 1], 0 where there is none.
void wt__tuning_track(const wt_piptrack_config *config, const float *spectrum, float *hz, float *height);

#endif
