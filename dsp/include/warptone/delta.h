/// Local estimates of the derivative of features along time.
#ifndef WARPTONE_DELTA_H
#define WARPTONE_DELTA_H

#include <stdint.h>
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
/// Errors: WT_ERR_BAD_ARG (width, order, mode; with interp fewer frames than the width).
/// Source: librosa 0.11.0 feature/utils.py, delta(); scipy.signal.savgol_filter.  Judge: librosa in float64, 1e-6 of
/// the peak.  [worker]
WT_CHECKED wt_status wt_delta_run(const wt_delta_config *config, const float *in, int64_t n_rows, int64_t n_frames,
                                  float *out);

#ifdef __cplusplus
}
#endif
#endif
