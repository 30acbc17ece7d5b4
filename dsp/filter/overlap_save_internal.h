/// Private to dsp/: whole rows through an overlap-save filter of one channel.
#ifndef WT_OVERLAP_SAVE_INTERNAL_H
#define WT_OVERLAP_SAVE_INTERNAL_H

#include <stdint.h>
#include <warptone/overlap_save.h>

/// in [n_in] to out [n_in + n_taps - 1], from a filter that has been reset.
void wt__overlap_save_row(wt_overlap_save *filter, const float *in, int64_t n_in, float *out);
#endif
