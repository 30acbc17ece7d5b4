/// Arguments of the kernels that go along the rows of a feature: [n_rows][n_frames].
#ifndef WT_ROWS_KERNEL_H
#define WT_ROWS_KERNEL_H

typedef struct wt_savgol_args {
    const float *in;
    float *out;
    const double *taps; ///< [width][width] by position in the window; not interp: the middle one alone is read
    long long n_rows, n_frames;
    double constant;
    int width, mode; ///< wt_delta_mode
} wt_savgol_args;

typedef struct wt_pcen_args {
    const float *in;
    float *out;
    double *state;                           ///< [n_rows] the smoothers between parts; NULL = none
    long long n_rows, pitch, from, n_frames; ///< rows of all signals; frames of a row, and those to work on
    int bands;                               ///< rows of a signal
    int max_size, continued, unused;
    double gain, bias, power, eps, b;
} wt_pcen_args;

#endif
