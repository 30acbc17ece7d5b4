/// Arguments of the tempogram's rows that no block transforms.
#ifndef WT_TEMPO_WIDE_KERNEL_H
#define WT_TEMPO_WIDE_KERNEL_H
#include "tempo_kernel.h"

typedef struct wt_tempo_wide_args {
    wt_tempogram_args rows; ///< window [length]; `sums` [n_signals][bins]
    double *in;             ///< [count][pitch][2]
    const double *out;      ///< the same behind the transform, which may be `in`
    double *scales;         ///< [count] 1 / energy
    long long first;        ///< row: row first % n_rows of signal first / n_rows, and those behind it; or the signal
    int count, n_fft, pitch, unused;
} wt_tempo_wide_args;

#endif
