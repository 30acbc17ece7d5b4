/// Private to dsp/decompose/median.c: medians of more values than forgetful selection is worth.
#ifndef WT_MEDIAN_LONG_H
#define WT_MEDIAN_LONG_H

#include <warptone/median.h>

typedef struct wt__median_long wt__median_long;

/// Of one image. Errors: WT_ERR_NO_MEMORY, WT_ERR_BAD_ARG (more than 2^31 values under a strip of windows).
WT_CHECKED wt_status wt__median_long_create(const wt_median_config *config, wt__median_long **median);
void wt__median_long_destroy(wt__median_long *median); ///< NULL is allowed.
WT_RT void wt__median_long_run(wt__median_long *median, const float *in, float *out);

#endif
