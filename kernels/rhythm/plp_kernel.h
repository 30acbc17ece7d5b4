/// Arguments of the predominant local pulse's kernels, and what both compilers must agree on.
#ifndef WT_PLP_KERNEL_H
#define WT_PLP_KERNEL_H

#ifdef __CUDACC__
#    define WT_PLP_FN static __device__ inline
#else
#    define WT_PLP_FN static inline
#endif

#define WT_PLP_TIE  1e-12 ///< of the largest power: what is as near is as strong
#define WT_PLP_ZERO 1e-24 ///< of a bin's power: a real part whose square is less is 0

/// What is kept of one row of the Fourier tempogram.
typedef struct wt_plp_wave {
    double re, im; ///< of the first of the strongest bins
    double power;  ///< 0: nothing is kept
    double scale;  ///< of a row above zero 1 over its size, else 1
    int bin;
    int n_kept; ///< of more than one, those as strong stand in the row
    int below;  ///< none of them is above zero
    int unused;
} wt_plp_wave;

typedef struct wt_plp_args {
    const float *envelope; ///< [n_signals][n_frames]
    const double *window;  ///< [length]
    const double *turn;    ///< [length][2] cosine and sine of one turn
    const double *squares; ///< [length + 1] of the window, summed up to there
    double *in;            ///< [count][pitch][2]
    const double *out;     ///< the same behind the transform, which may be `in`
    wt_plp_wave *waves;    ///< [count]
    double *sums;          ///< [n_signals][2][n_frames] of waves of rows above zero, and below
    unsigned long long *facts; ///< [n_signals][2] is any row below zero; bits of the largest pulse
    float *pulse;              ///< [n_signals][n_frames]
    long long n_frames, n_rows;
    long long first; ///< row: row first % n_rows of signal first / n_rows, and those behind it
    int count;       ///< rows of the tile
    int pitch, length, first_bin, last_bin, unused;
} wt_plp_args;

/// In numpy's order of complex numbers.
WT_PLP_FN int wt__plp_is_above(double re, double im, double power)
{
    return re * re > WT_PLP_ZERO * power ? re > 0 : im > 0;
}

#endif
