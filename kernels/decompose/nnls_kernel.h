/// Arguments of non-negative least squares, and of the inversion of mel bands, which is one with a start of its own.
#ifndef WT_NNLS_KERNEL_H
#define WT_NNLS_KERNEL_H

enum { NNLS_FROM_ZERO, NNLS_FROM_X, NNLS_FROM_BANDS };

typedef struct wt_nnls_args {
    const float *b;       ///< [n_lines][n_rows][n]
    float *out;           ///< [n_lines][n_columns][n]
    double *x;            ///< [n_lines][n_columns][n] work
    double *residuals;    ///< [n_lines][n_rows][n] work; NULL = shared memory holds them
    const double *sums;   ///< [n_rows] from bands: of a band's weights
    const double *sizes;  ///< [n_columns] norms of the columns, and
    const double *parts;  ///< [n_columns] 1 / their squares
    const double *values; ///< the columns from their first number that is not 0 to the last, one after the other, and
    const double *shares; ///< from bands: the same, divided by the sum of the column
    const int *begins;    ///< [n_columns] a column's first row
    const int *offsets;   ///< [n_columns + 1] where its numbers begin
    long long n;          ///< right sides
    int n_columns, n_rows, n_sweeps, start;
    double power, enough; ///< a sweep that moves less than this of the largest |b| is the last
} wt_nnls_args;

#endif
