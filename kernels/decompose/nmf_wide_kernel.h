/// Arguments of the factorisation's kernels for more components than a block holds, one signal at a time.
#ifndef WT_NMF_WIDE_KERNEL_H
#define WT_NMF_WIDE_KERNEL_H
#include "nmf_kernel.h"

#define WT_NMF_SQUARE 16 ///< a block makes so many rows and columns of a product

/// out [rows][columns] = left [rows][depth] times right [depth][columns].
typedef struct wt_nmf_multiply_args {
    const double *left, *right;
    const double *over; ///< NULL, or [rows][columns] what is divided by the product
    double *out;
    long long left_row, left_step, right_step, right_column; ///< numbers from one to the next
    int rows, depth, columns, unused;
} wt_nmf_multiply_args;

/// The update of a [m][k], with v's rows times b.
typedef struct wt_nmf_update_args {
    double *a;
    const double *product; ///< [m][k]
    const double *by;      ///< descent: b^T b [k][k]; else what a's numbers are divided by, [m][k] or, `shared`, [k]
    long long m;
    int k, shared, clip, unused;
} wt_nmf_update_args;

#endif
