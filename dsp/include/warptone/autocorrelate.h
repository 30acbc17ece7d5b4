/// Autocorrelation of whole signals.
#ifndef WARPTONE_AUTOCORRELATE_H
#define WARPTONE_AUTOCORRELATE_H

#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_autocorrelate_config {
    int n;         ///< samples of a signal, 1 .. 2^21
    int max_lags;  ///< lags wanted, from 0; 0 = n, and at most that
    int n_signals; ///< 0 = 1
} wt_autocorrelate_config;

/// Tables, and scratch that one call at a time uses.
typedef struct wt_autocorrelate wt_autocorrelate;

/// `device`: NULL = immediate calls only, else borrowed until the plan is destroyed. On a GPU signals go through 1 GB
/// of work space, as many at a time as fit.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_autocorrelate_create(wt_device *device, const wt_autocorrelate_config *config,
                                             wt_autocorrelate **plan);
void wt_autocorrelate_destroy(wt_autocorrelate *plan); ///< NULL is allowed.  [worker]
int wt_autocorrelate_lags(const wt_autocorrelate *plan); ///< lags of a result.  [any]

/// out(k) = sum over i of in(i) in(i + k).
///
///   in    [n_signals][n]
///   out   [n_signals][lags]
///
/// Source: librosa 0.11.0 core/audio.py, autocorrelate().  Judge: librosa in float64, 1e-6 of lag 0.  [rt, running]
WT_RT void wt_autocorrelate_run(wt_autocorrelate *plan, const float *in, float *out);
/// Queue it for every signal; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge:  CUDA: the CPU, 2e-6 of lag 0.  [worker]
WT_CHECKED wt_status wt_autocorrelate_enqueue(wt_autocorrelate *plan, wt_stream *stream, const wt_buffer *in,
                                              size_t in_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
