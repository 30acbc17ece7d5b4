/// Private to dsp/: mel bands as a GPU sums them (wt_spectrum_slopes).
#ifndef WT_MEL_SLOPES_H
#define WT_MEL_SLOPES_H

#include "mel_plan.h"

/// From a plan's begins, lengths and weights, for transforms of n_fft, to the plan's device. `table` holds what
/// `slopes` points to. No groups where slopes do not pay, and where bins count in more than two bands. Errors:
/// WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__mel_slopes_upload(const wt_mel *mel, int n_fft, wt_buffer **table, wt_spectrum_slopes *slopes);
#endif
