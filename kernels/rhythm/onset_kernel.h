/// Arguments of the onset kernels.
#ifndef WT_ONSET_KERNEL_H
#define WT_ONSET_KERNEL_H
#include "places_kernel.h"

#define WT_ONSET_TILE 32 ///< frames of a block of onset_strength

typedef struct wt_onset_args {
    const float *mel; ///< [n_signals][n_bands][n_frames]
    float *out;       ///< [n_signals][n_frames]
    long long n_frames;
    int n_signals, n_bands, lag, max_size;
    int shift;        ///< frames by which the envelope is late, lag or more
    int median;       ///< over the bands, else the mean
    float floor;      ///< what is below counts as this
    wt_places places; ///< of tiles of all signals
} wt_onset_args;

typedef struct wt_onsets_args {
    const float *envelope; ///< [n_signals][n_frames]
    int *frames;           ///< [n_signals][n_frames]
    int *counts;           ///< [n_signals]
    long long n_frames;
    int pre_max, post_max, pre_avg, post_avg, wait, backtrack;
    int plain; ///< values as they are, else shifted and scaled to 0 .. 1
    double delta;
} wt_onsets_args;

#endif
