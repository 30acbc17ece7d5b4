/// Arguments of the factorisation's kernels. All matrices by rows, in double; signals one after the other.
#ifndef WT_NMF_KERNEL_H
#define WT_NMF_KERNEL_H

#define WT_NMF_MOST 256 ///< components of a block
#define WT_NMF_TILE 256 ///< columns of v at a time, and threads of a block

/// One side: a [m][k] so that v [m][n] comes nearer to a b^T, b [n][k].
typedef struct wt_nmf_side_args {
    const double *v, *b;
    double *a;
    double *gram;        ///< [k][k] b^T b; divergence: [k] the sums of b's columns
    int m, n, k, solver; ///< wt_nmf_solver
    int clip;            ///< what is left below the double's epsilon becomes 0
    int first;           ///< signal of the grid's first blocks
} wt_nmf_side_args;

/// From and to the caller's floats.
typedef struct wt_nmf_turn_args {
    const float *v;                          ///< [rows][columns]
    float *w, *h;                            ///< [rows][k], [k][columns]
    double *wide, *turned, *wide_w, *wide_h; ///< v; [columns][rows]; [rows][k]; [columns][k]
    int rows, columns, k, first;
} wt_nmf_turn_args;

#endif
