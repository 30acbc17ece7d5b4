/// Private to dsp/: non-negative least squares on a GPU, for wt_nnls and mel bands back to magnitudes.
#ifndef WT_NNLS_CUDA_H
#define WT_NNLS_CUDA_H

#include "nnls_kernel.h"
#include "op.h"

/// What the plan has made, borrowed for the call.
typedef struct wt__nnls_shape {
    const double *a;          ///< [n_rows][n_columns]
    const double *squares;    ///< [n_columns] of columns
    const int *begins, *ends; ///< [n_columns] rows that are not zero
    const double *shares;     ///< from bands: [n_rows][n_columns]
    const double *sums;       ///< from bands: [n_rows]
    int n_rows, n_columns, n_signals, n_sweeps, start;
    int64_t n; ///< right sides of a signal
    double power, enough;
} wt__nnls_shape;

typedef struct wt__nnls_cuda wt__nnls_cuda;
/// `op` names the caller in sentences.
WT_CHECKED wt_status wt__nnls_cuda_create(const char *op, wt_device *device, const wt__nnls_shape *shape,
                                          wt__nnls_cuda **cuda);
void wt__nnls_cuda_destroy(wt__nnls_cuda *cuda); ///< NULL is allowed.
WT_CHECKED wt_status wt__nnls_cuda_enqueue(const wt__nnls_cuda *cuda, wt_stream *stream, const float *b, float *out);

#endif
