/// Private to dsp/formants*.c.
#ifndef WT_FORMANTS_PLAN_H
#define WT_FORMANTS_PLAN_H

#include "formants.h"

#include "formants_kernel.h"

/// Sizes of the search in frames of n_fft samples; spectra, cepstra, tables and rows are left empty.
wt_formants_args wt__formants_plan(const wt__formants_config *config, int n_fft, int64_t n_frames);

#endif
