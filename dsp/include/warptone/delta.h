/// Local estimates of the derivative of features along time.
#ifndef WARPTONE_DELTA_H
#define WARPTONE_DELTA_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_delta_mode {
    WT_DELTA_INTERP,   ///< the end windows' polynomials
    WT_DELTA_NEAREST,  ///< a a | a b c | c c
    WT_DELTA_MIRROR,   ///< c b | a b c | b a
    WT_DELTA_CONSTANT, ///< `constant` outside
    WT_DELTA_WRAP,     ///< b c | a b c | a b
} wt_delta_mode;

typedef struct wt_delta_config {
    int width;          ///< odd, 3 .. 1023; 0 = 9
    int order;          ///< of the derivative and of the polynomial; 0 = 1
    wt_delta_mode mode; ///< 0 = interp
    double constant;
} wt_delta_config;

/// Differentiate rows. `config` NULL = defaults.
///
///   in, out   [n_rows][n_frames]   different arrays
///
/// Errors: WT_ERR_BAD_ARG (width, order, mode), WT_ERR_LENGTH (no frame; with interp fewer than the width).
/// Source: librosa 0.11.0 feature/utils.py, delta(); scipy.signal.savgol_filter.  Judge: librosa in float64, 1e-6 of
/// the peak.  [worker]
WT_CHECKED wt_status wt_delta_run(const wt_delta_config *config, const float *in, int64_t n_rows, int64_t n_frames,
                                  float *out);

// ---- on a stream

typedef struct wt_delta wt_delta;

/// Rows of all signals; `config` NULL = defaults; `device` is borrowed until the plan is destroyed.
/// Errors: those of wt_delta_run, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_delta_create(wt_device *device, const wt_delta_config *config, int64_t n_rows,
                                     int64_t n_frames, wt_delta **plan);
void wt_delta_destroy(wt_delta *plan); ///< NULL is allowed.  [worker]
/// Queue it; in and out are different, offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the
/// peak.  [worker]
WT_CHECKED wt_status wt_delta_enqueue(wt_delta *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                      wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
