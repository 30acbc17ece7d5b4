/// Arguments of the decibel kernels.
#ifndef WT_DB_KERNEL_H
#define WT_DB_KERNEL_H
#include "spectrum_kernel.h"

#define WT_DB_CHUNK 4096 ///< values of a block

typedef struct wt_db_args {
    const float *in;
    float *out; ///< [n_signals][count], may be in
    int *peaks; ///< [2][n_signals] ordered bits: of the input, of the decibels
    long long count;
    int n_signals;
    int of_peak;             ///< the reference is the signal's largest value
    double ref, amin, scale; ///< scale log2(max(x, amin) / max(ref, amin))
    float range;
} wt_db_args;

#endif
