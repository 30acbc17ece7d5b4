/// Private to dsp/: non-negative least squares of one matrix.
#ifndef WT_NNLS_INTERNAL_H
#define WT_NNLS_INTERNAL_H

#include <stdint.h>
#include <warptone/status.h>

enum { WT__NNLS_LANES = 8 };
#define WT__NNLS_ENOUGH 1e-12 ///< of the largest right side: a sweep that moves no more is the last

typedef struct wt__nnls_problem {
    const double *a; ///< [n_columns][n_rows]: turned
    int n_rows, n_columns;
    const int *begins, *ends; ///< [n_columns] rows that are not zero
    const double *squares;    ///< [n_columns]
    double *x, *residual; ///< [n_columns][WT__NNLS_LANES], [n_rows][WT__NNLS_LANES] of the tile that is being solved
    double *work;         ///< all of them
    int *ranges;
} wt__nnls_problem;

/// a: [n_rows][n_columns]. Errors: WT_ERR_NO_MEMORY; dismiss it then too.
WT_CHECKED wt_status wt__nnls_pose(const double *a, int n_rows, int n_columns, wt__nnls_problem *problem);
void wt__nnls_dismiss(wt__nnls_problem *problem);
/// b: [n_rows][n], x: [n_columns][n], which begins as it is.
void wt__nnls_solve(const wt__nnls_problem *problem, const float *b, int64_t n, int n_sweeps, float *x);

#endif
