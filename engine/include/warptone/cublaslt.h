/// Products of matrices by cuBLASLt, where it is installed: y = x W^T, everything row-major and on a GPU.
///
/// A handle belongs to one partition and one stream at a time: it has its own workspace, and its algorithms are chosen
/// for the partition's number of SMs when it is made: after a resize make another. What was chosen for a form is kept,
/// so that the same form gives the same bits.
#ifndef WARPTONE_CUBLASLT_H
#define WARPTONE_CUBLASLT_H

#include <warptone/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_cublaslt wt_cublaslt;

typedef enum wt_cublaslt_type {
    WT_CUBLASLT_F32,
    WT_CUBLASLT_F16,
    WT_CUBLASLT_BF16,
    WT_CUBLASLT_F8_E4M3,
    WT_CUBLASLT_I8,
    WT_CUBLASLT_I32,
    WT_CUBLASLT_N_TYPES
} wt_cublaslt_type;

/// A kind of product. Addresses and rows are aligned to 16 bytes.
typedef struct wt_cublaslt_form {
    wt_cublaslt_type w, x, y;
    int rows, columns, m, n_batches;   ///< W [rows][columns], x [m][columns], y [m][rows]
    int64_t x_stride, y_stride;        ///< elements between rows; W is dense
    int64_t w_batch, x_batch, y_batch; ///< elements between batches
    bool add;                          ///< y +=
    bool tf32;                         ///< f32 inputs may be rounded to tf32
    bool scaled;                       ///< with the address of an f32 factor of W (fp8)
} wt_cublaslt_form;

/// For a partition, whose SMs and memory quota are used, or with NULL the whole device. Errors: WT_ERR_NO_LIBRARY
/// (cuBLASLt is not there), WT_ERR_UNSUPPORTED (the CPU), WT_ERR_QUOTA, WT_ERR_NO_MEMORY, WT_ERR_ARMED, WT_ERR_CUDA.
/// [worker]
WT_CHECKED wt_status wt_cublaslt_create(wt_device *device, wt_partition *partition, wt_cublaslt **cublaslt);
void wt_cublaslt_destroy(wt_cublaslt *cublaslt); ///< What it queued must have run. NULL is allowed.  [worker]

/// Choose an algorithm for a form, and run it once in the partition, on memory taken for the purpose, so that the
/// library has loaded what it needs. Nothing is done when that was done. Errors: WT_ERR_UNSUPPORTED (the library has
/// none), WT_ERR_ARMED, WT_ERR_NO_MEMORY, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_cublaslt_prepare(wt_cublaslt *cublaslt, const wt_cublaslt_form *form);

/// Queue a product of a prepared form; `scale` is the address of the factor, or 0.
/// Errors: WT_ERR_STATE (not prepared), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_cublaslt_enqueue(wt_cublaslt *cublaslt, wt_stream *stream, const wt_cublaslt_form *form,
                                         uintptr_t w, uintptr_t x, uintptr_t y, uintptr_t scale);

#ifdef __cplusplus
}
#endif
#endif
