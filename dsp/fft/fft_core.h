// What a plan of complex transforms of one length is: made in fft_core.c, run in fft_core_run.c.
#ifndef WARPTONE_FFT_CORE_H
#define WARPTONE_FFT_CORE_H

#include "fft_internal.h"

struct wt__fft_core {
    int n, n_passes;
    bool tiled; // transforms side by side
    const wt__fft_kernels *kernels;
    float *tables;
    wt__fft_pass passes[WT__FFT_MAX_PASSES];
    // Bluestein: X[k] = c[k] sum over j of (x[j] c[j]) conj(c)[k - j] with c[k] = exp(-i pi k^2 / n)
    wt__fft_core *inner;
    wt__fft_core *few;       // tiled: the same passes for one transform at a time, or NULL
    wt__fft_core *pairs;     // passes on pairs, or NULL
    wt__fft_rows_fn rows[2]; // of these: in one call, or NULL
    int inner_n;
    const float *chirp_re, *chirp_im;   // [n] c
    const float *filter_re, *filter_im; // [inner_n] transform of conj(c), over inner_n
};

#endif
