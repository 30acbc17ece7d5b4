/// Arguments of the decibel kernels.
#ifndef WT_DB_KERNEL_H
#define WT_DB_KERNEL_H
#include "spectrum_kernel.h"

#define WT_DB_CHUNK 4096 ///< values of a block

/// The two values in the middle of a signal, of which the first digits are known.
typedef struct wt_db_middle {
    unsigned keys[2];   ///< in the order of the values; a NaN is the largest
    long long ranks[2]; ///< among the values that begin with these digits
} wt_db_middle;

typedef struct wt_db_args {
    const float *in;
    float *out;           ///< [n_signals][count], may be in
    int *peaks;           ///< [2][n_signals] ordered bits: of the input, of the decibels
    wt_db_middle *middle; ///< [n_signals]
    unsigned *counts;     ///< [n_signals][2][256] values whose next digit is so
    long long count;
    int n_signals;
    int of_peak, of_median;  ///< the reference is the signal's largest value, its median
    int digit;               ///< 0 .. 3 of a key, the highest first
    double ref, amin, scale; ///< scale log2(max(x, amin) / max(ref, amin))
    float range;
} wt_db_args;

#endif
