/// Arguments of the envelope's transforms for frames that no block's shared memory holds.
#ifndef WT_FORMANTS_WIDE_KERNEL_H
#define WT_FORMANTS_WIDE_KERNEL_H
#include "formants_kernel.h"
#include "wide_kernel.h"

typedef struct wt_formants_wide_args {
    wt_wide_pairs pairs;
    wt_formants_args formants;
    double *most; ///< [n_lines][n_held] the largest power
    int bins, unused;
} wt_formants_wide_args;

#endif
