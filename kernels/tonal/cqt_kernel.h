/// Arguments of the constant-Q transform's kernels.
#ifndef WT_CQT_KERNEL_H
#define WT_CQT_KERNEL_H

#define WT_CQT_HALVE_N    4096 ///< input samples of a block of cqt_halve
#define WT_CQT_HALVE_EDGE 200  ///< the filter's reach on each side
#define WT_CQT_HALVE_SUMS 256  ///< outputs of a block of cqt_halve_double
#define WT_CQT_HALVE_OUT  ((WT_CQT_HALVE_N - 2 * WT_CQT_HALVE_EDGE) / 2) ///< outputs of a block

typedef struct wt_cqt_halve_args {
    const float *in;           ///< [lines][n_in], silent around
    float *out;                ///< [lines][n_out]
    const float *twiddles;     ///< of 2048 points, and
    const float *back;         ///< of 1024
    const float *roots;        ///< [2049][2] w_4096^k
    const float *filter;       ///< [2049] the filter's spectrum / 4096
    const double *taps;        ///< of cqt_halve_double: [WT_CQT_HALVE_EDGE + 1] from the middle one on
    long long n_in, n_out;
    long long n_sounding;      ///< outputs behind are zeros
    int phase;                 ///< outputs of cqt_halve's first block that lie before the signal
} wt_cqt_halve_args;

typedef struct wt_cqt_octave_args {
    const float *in;       ///< [lines][n]
    float *out;            ///< [lines][n_frames][n_bins][2], magnitudes without [2]
    const float *twiddles; ///< of n_fft / 2 points
    const float *roots;    ///< [n_fft / 2 + 1][2] w_n_fft^k
    const float *window;   ///< [n_fft], pseudo only
    const float *value;    ///< filters: pairs, pseudo single numbers
    const int *begin;      ///< [n_rows + 1]
    const int *bin;
    long long n, n_frames;
    int first_frame, end_frame; ///< of those made; wide ones are all made
    int hop, first, n_rows, n_bins, magnitude;
} wt_cqt_octave_args;

#endif
