/// Arguments of the constant-Q transform's octaves whose frames no block transforms.
#ifndef WT_CQT_WIDE_KERNEL_H
#define WT_CQT_WIDE_KERNEL_H
#include "cqt_kernel.h"
#include "wide_kernel.h"

typedef struct wt_cqt_wide_args {
    wt_wide_pairs pairs; ///< behind the transform
    wt_cqt_octave_args octave;
    int pseudo, unused;
} wt_cqt_wide_args;

#endif
