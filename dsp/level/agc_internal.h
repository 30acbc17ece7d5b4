/// Private to dsp/agc*.c.
#ifndef WT_AGC_INTERNAL_H
#define WT_AGC_INTERNAL_H

#include "agc_batch_kernel.h"

#include <warptone/agc.h>

/// Check, and fill in the defaults.
WT_CHECKED wt_status wt__agc_resolve(const wt_agc_config *config, agc_rules *rules, int *channels);

#endif
