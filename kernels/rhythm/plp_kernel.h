/// Arguments of the predominant local pulse's kernels.
#ifndef WT_PLP_KERNEL_H
#define WT_PLP_KERNEL_H

/// What is kept of one row of the Fourier tempogram.
typedef struct wt_plp_wave {
    float re, im;
    int bin; ///< -1: nothing
} wt_plp_wave;

typedef struct wt_plp_args {
    const float *envelope; ///< [n_signals][n_frames]
    const float *window;   ///< [length]
    const float *twiddles;
    const float *turn;  ///< [length][2] cosine and sine of one turn
    wt_plp_wave *waves; ///< [n_signals][n_rows]
    int *facts;         ///< [n_signals][2] is any wave below zero; bits of the largest pulse
    float *pulse;       ///< [n_signals][n_frames]
    long long n_frames, n_rows;
    int first, last; ///< bins within the range of tempi
} wt_plp_args;

#endif
