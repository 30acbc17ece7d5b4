/// Spectrograms as sums of few components, and filtering by nearest neighbours.
#ifndef WARPTONE_DECOMPOSE_H
#define WARPTONE_DECOMPOSE_H

#include <stdbool.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_nmf_solver {
    WT_NMF_CD,                   ///< coordinate descent on the squared distance
    WT_NMF_MULTIPLICATIVE,       ///< multiplicative updates on the squared distance
    WT_NMF_MULTIPLICATIVE_KL,    ///< multiplicative updates on the Kullback-Leibler divergence
} wt_nmf_solver;

typedef struct wt_nmf_config {
    int rows, columns;    ///< of the matrix: bins and frames
    int n_components;     ///< 1 or more
    int n_iter;           ///< 0 = 200
    wt_nmf_solver solver; ///< 0 = coordinate descent
    int n_signals;        ///< matrices of this shape, 0 = 1
} wt_nmf_config;

/// Scratch, in double: w, h, a few rows and on a GPU the matrices; one call at a time uses it.
typedef struct wt_nmf wt_nmf;

/// `device` NULL = immediate calls only; else it is borrowed until the plan is destroyed.
/// On a GPU more than 256 components go by memory, a matrix at a time.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_nmf_create(wt_device *device, const wt_nmf_config *config, wt_nmf **nmf);
void wt_nmf_destroy(wt_nmf *nmf); ///< NULL is allowed.  [worker]

/// v = w h, all of them 0 or more, from the given start, for each of n_signals.
///
///   v   [n_signals][rows][columns]           read twice an iteration: it may lie in a mapped file
///   w   [n_signals][rows][n_components]      in and out: spectra
///   h   [n_signals][n_components][columns]   in and out: activations, which are updated first
///
/// Source: scikit-learn decomposition/_nmf.py with tol = 0, as librosa.decompose.decompose() calls it; D. Lee,
/// H. Seung, 2001; A. Cichocki, A.-H. Phan, 2009.  Judge: scikit-learn in float64, three times its float32 error.
/// [rt, running]
WT_RT void wt_nmf_run(wt_nmf *nmf, const float *v, float *w, float *h);
/// Queue it on a stream of the plan's device; offsets in bytes. On a CPU device signals go one after the other.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_CUDA.  Judge: wt_nmf_run; on a GPU, in double too, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_nmf_enqueue(wt_nmf *nmf, wt_stream *stream, const wt_buffer *v, size_t v_offset, wt_buffer *w,
                                    size_t w_offset, wt_buffer *h, size_t h_offset);

typedef struct wt_nn_filter_config {
    int rows, columns; ///< bins, frames
    int k;             ///< neighbours a frame, 0 = 2 ceil(sqrt(columns - 2 width + 1))
    int width;         ///< frames nearer than this are no neighbours, 0 = 1
    bool cosine;       ///< distance by the angle instead of the difference
    bool symmetric;    ///< only neighbours of each other
    bool median;       ///< of the neighbours, instead of their mean
} wt_nn_filter_config;

/// Every frame becomes the mean or median of its nearest neighbours; one without any stays. As in librosa, the
/// k + 2 width nearest frames are found, those within `width` dropped, and of the rest the k first in time are kept.
///
///   in, out   [rows][columns], not the same
///
/// Errors: WT_ERR_BAD_ARG, WT_ERR_LENGTH (fewer than 2 width + 3 columns, or more than 32768), WT_ERR_NO_MEMORY.
/// Source: librosa 0.11.0 decompose.py, nn_filter(); segment.py,
/// recurrence_matrix().  Judge: librosa in float64, 1e-6.  [worker]
WT_CHECKED wt_status wt_nn_filter(const wt_nn_filter_config *config, const float *in, float *out);

typedef struct wt_nn_filter_plan wt_nn_filter_plan;

/// The same of n_signals for a stream of `device`, which is borrowed until the plan is destroyed. On a GPU a byte a
/// pair of frames lies on the device, and a quarter of a gigabyte at most of distances.
/// Errors: those of wt_nn_filter, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_nn_filter_plan_create(wt_device *device, const wt_nn_filter_config *config, int n_signals,
                                              wt_nn_filter_plan **plan);
void wt_nn_filter_plan_destroy(wt_nn_filter_plan *plan); ///< NULL is allowed.  [worker]
/// Queue it: [n_signals][rows][columns] to another place; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge: wt_nn_filter: on a GPU the same neighbours, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_nn_filter_plan_enqueue(wt_nn_filter_plan *plan, wt_stream *stream, const wt_buffer *in,
                                               size_t in_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
