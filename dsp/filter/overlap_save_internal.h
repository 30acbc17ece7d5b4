/// Private to dsp/: what convolutions by overlap-save share.
#ifndef WT_OVERLAP_SAVE_INTERNAL_H
#define WT_OVERLAP_SAVE_INTERNAL_H

#include "op.h"
#include "overlap_save_kernel.h"
#include "spectrum_cuda.h"

#include <stdint.h>
#include <warptone/overlap_save.h>

enum { WT__OVERLAP_SAVE_MAX_CHANNELS = 1024 };

/// Check, fill in the default, and choose the points of the CPU's transform, on which the latency depends.
WT_CHECKED wt_status wt__overlap_save_resolve(const wt_overlap_save_config *config, int *channels, int *n);

/// in [n_in] to out [n_in + n_taps - 1], from a filter of one channel that has been reset.
void wt__overlap_save_row(wt_overlap_save *filter, const float *in, int64_t n_in, float *out);

/// What a GPU needs of taps: transforms of n points.
typedef struct wt__overlap_save_cuda {
    wt__spectrum_cuda spectrum; // and kernels/filter/overlap_save.cu
    wt_buffer *response;
    wt_overlap_save_taps taps;
    int teams;        // of a thread block
    wt_launch launch; // of pairs of runs, but for the grid
} wt__overlap_save_cuda;
WT_CHECKED wt_status wt__overlap_save_load(wt_device *device, const float *taps, int n_taps, int n,
                                           wt__overlap_save_cuda *cuda);
void wt__overlap_save_release(wt__overlap_save_cuda *cuda);
#endif
