/// Private to dsp/: tempograms on a GPU by windows that no block transforms.
#ifndef WT_TEMPO_WIDE_H
#define WT_TEMPO_WIDE_H

#include "op.h"
#include "tempo_kernel.h"

typedef struct wt__tempo_wide wt__tempo_wide;

/// Rows as `rows` says, by transforms of n_fft points, even and at least twice the window `window` [rows.length], which
/// is copied. `op` is borrowed until destroyed.
WT_CHECKED wt_status wt__tempo_wide_create(const char *op, wt_device *device, const wt_tempogram_args *rows, int n_fft,
                                           const float *window, int n_signals, wt__tempo_wide **wide);
const wt_tempogram_args *wt__tempo_wide_rows_args(const wt__tempo_wide *wide); ///< with the window on the device
void wt__tempo_wide_destroy(wt__tempo_wide *wide); ///< NULL is allowed
/// The tempogram [n_signals][n_rows][length].
WT_CHECKED wt_status wt__tempo_wide_rows(const wt__tempo_wide *wide, wt_stream *stream, const float *envelope,
                                         float *out);
/// A plan that does this has room for the signals' sums: take it first.
WT_CHECKED wt_status wt__tempo_wide_take_sums(wt__tempo_wide *wide, wt_device *device);
/// The lags of each signal's mean row, rows of one energy [n_signals][length].
WT_CHECKED wt_status wt__tempo_wide_lags(const wt__tempo_wide *wide, wt_stream *stream, const float *envelope,
                                         float *lags);

#endif
