/// Private to dsp/: logarithms and limits of spectra, in vectors.
#ifndef WT_DB_INTERNAL_H
#define WT_DB_INTERNAL_H

#include "spectrum_kernel.h"

#include <warptone/db.h>

/// Fill in the defaults and check; `op` names the caller in the sentence, `amin` is its default.
WT_CHECKED wt_status wt__db_resolve(const char *op, double amin, wt_db_config *config);
/// out = scale log2(max(in, amin)) + offset; `out` is `in` or apart from it.
void wt__db_log(const float *in, int64_t count, float amin, float scale, float offset, float *out);
/// Largest value, NaN apart; -HUGE_VALF when there is none.
float wt__db_peak(const float *x, int64_t count);
/// x = max(x, floor) * gain + offset, in place; a NaN stays.
void wt__db_limit(float *x, int64_t count, float floor, float gain, float offset);

#endif
