/// Arguments of the inversion of mel bands.
#ifndef WT_MEL_INVERSE_KERNEL_H
#define WT_MEL_INVERSE_KERNEL_H

typedef struct wt_mel_inverse_args {
    const float *mel;     ///< [n_lines][n_mels][n_frames]
    float *out;           ///< [n_lines][bins][n_frames]
    double *x;            ///< [n_lines][bins][n_frames] work
    const double *sums;   ///< [n_mels] of a band's weights
    const double *sizes;  ///< [bins] norms of the bank's columns, and
    const double *parts;  ///< [bins] 1 / their squares
    const double *values; ///< the columns' weights, one column after the other, and
    const double *shares; ///< the same, divided by the sum of the column
    const int *begins;    ///< [bins] a column's first band
    const int *offsets;   ///< [bins + 1] where its weights begin
    long long n_frames;
    int bins, n_mels, n_sweeps;
    double power, enough; ///< a sweep that moves less than this of the largest band is the last
} wt_mel_inverse_args;

#endif
