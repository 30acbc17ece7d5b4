/// Arguments of the predominant local pulse's rows that no block holds.
#ifndef WT_PLP_WIDE_KERNEL_H
#define WT_PLP_WIDE_KERNEL_H
#include "plp_kernel.h"

typedef struct wt_plp_wide_args {
    wt_plp_args plp;
    double *in;        ///< [n_rows][pitch][2]
    const double *out; ///< the same behind the transform
    long long first;   ///< row: row first % plp.n_rows of signal first / plp.n_rows, and those behind it
    int n_rows, pitch, length, unused;
} wt_plp_wide_args;

#endif
