/// Private to dsp/: what the kernels of mel bands are told of a plan, whichever transform makes the powers.
#ifndef WT_MEL_TABLES_H
#define WT_MEL_TABLES_H

#include "mel_plan.h"

/// Begins [n_mels], lengths [n_mels], weights [longest][n_mels] and at the next 16 bytes `matrix` [n_matrix], to the
/// plan's device; `args` and `finish` are pointed to them. Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__mel_tables_upload(const wt_mel *mel, const float *matrix, size_t n_matrix, wt_buffer **tables,
                                           wt_spectrum_mel_args *args, wt_spectrum_finish_args *finish);

/// What else is the same in each call but samples, frames and results; `peaks`: an integer each signal, on the device.
void wt__mel_tables_fill(const wt_mel *mel, int n_out, int *peaks, wt_spectrum_mel_args *args,
                         wt_spectrum_finish_args *finish);
#endif
