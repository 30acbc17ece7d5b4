/// Private to dsp/loudness*.c.
#ifndef WT_LOUDNESS_INTERNAL_H
#define WT_LOUDNESS_INTERNAL_H

#include "loudness_batch_kernel.h"

#include <warptone/loudness.h>

/// Rate, channels, their weights, the filter and the oversampling of a meter.
void wt__loudness_describe(const wt_loudness *meter, loudness_args *args);

#endif
