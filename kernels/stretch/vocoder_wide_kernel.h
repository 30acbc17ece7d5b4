/// Arguments of the phase vocoders' kernels for frames that no block's shared memory holds.
#ifndef WT_VOCODER_WIDE_KERNEL_H
#define WT_VOCODER_WIDE_KERNEL_H
#include "vocoder_kernel.h"
#include "wide_kernel.h"

typedef struct wt_vocoder_wide_args {
    wt_wide_pairs pairs;
    wt_vocoder_frames_args frames;
    int bins, unused;
} wt_vocoder_wide_args;

/// A pair is an attack's.
typedef struct wt_vocoder_rules_args {
    wt_wide_pairs pairs; ///< pairs: n_out, of a line
    wt_vocoder_attacks_args attacks;
    int bins, unused;
} wt_vocoder_rules_args;

typedef struct wt_vocoder_wide_lock_args {
    wt_vocoder_lock_args lock;
    double *before, *turns; ///< [n_lines][bins][2] the output's frame before, which stays; [n_lines][peaks][2]
    float *powers;          ///< [n_lines][bins]
    int *peaks, *begins;    ///< [n_lines][peaks]
    int bins, most_peaks;   ///< peaks lie three bins apart
} wt_vocoder_wide_lock_args;

#endif
