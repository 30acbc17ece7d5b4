/// Private to dsp/: Savitzky-Golay along rows on a GPU, for wt_savgol_rows and wt_delta.
#ifndef WT_SAVGOL_INTERNAL_H
#define WT_SAVGOL_INTERNAL_H

#include "op.h"
#include "rows_kernel.h"

#include <warptone/fir_design.h>

typedef struct wt__savgol_cuda {
    wt_module *module;
    wt_kernel *kernel; ///< NULL before wt__savgol_cuda_open
    wt_buffer *taps;
    wt_savgol_args args; ///< all but in, out, constant and mode
    wt_launch launch;
} wt__savgol_cuda;

/// Rows [n_rows][n_frames]. `ends`: the taps of every position in the window, not of the middle alone. A caller whose
/// call fails releases too.
WT_CHECKED wt_status wt__savgol_cuda_open(wt_device *device, const wt_savgol_config *config, bool ends, int64_t n_rows,
                                          int64_t n_frames, wt__savgol_cuda *cuda);
void wt__savgol_cuda_release(wt__savgol_cuda *cuda);
WT_CHECKED wt_status wt__savgol_cuda_launch(const wt__savgol_cuda *cuda, wt_stream *stream, const wt_savgol_args *args);

#endif
