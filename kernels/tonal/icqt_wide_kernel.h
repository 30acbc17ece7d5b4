/// Arguments of the inverse constant-Q transform's octaves whose frames no block transforms.
#ifndef WT_ICQT_WIDE_KERNEL_H
#define WT_ICQT_WIDE_KERNEL_H
#include "icqt_kernel.h"
#include "wide_kernel.h"

typedef struct wt_icqt_wide_args {
    wt_wide_pairs pairs;
    wt_icqt_octave_args octave; ///< of its walk: length, hop and margin
    const double *sums;         ///< [n_lines][margin + octave.n] of the overlapped frames
    long long n_lines;
} wt_icqt_wide_args;

#endif
