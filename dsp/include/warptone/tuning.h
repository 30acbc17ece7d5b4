/// Pitches as peaks of spectra, and the deviation of a recording from A440.
#ifndef WARPTONE_TUNING_H
#define WARPTONE_TUNING_H

#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_piptrack_config {
    double rate_hz;          ///< 0 = 22050
    int n_fft;               ///< 0 = 2048
    double fmin_hz, fmax_hz; ///< 0 = 150 and 4000; fmax is cut to half the rate
    double threshold;        ///< share of the frame's largest value that a peak is above, 0 = 0.1
} wt_piptrack_config;

/// Frequency and height of every peak, by a parabola through three bins; 0 elsewhere.
///
///   spectrum      [n_frames][n_fft / 2 + 1] magnitudes (or powers)
///   hz, height    the same shape
///
/// Errors: WT_ERR_BAD_ARG.  Source: librosa 0.11.0 core/pitch.py, piptrack().
/// Judge: librosa in float64, 1e-6 of the peak, peaks identical.  [any]
WT_CHECKED wt_status wt_piptrack(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames, float *hz,
                                 float *height);

/// Deviation from A440 in bins of 1 / bins_per_octave, -0.5 .. 0.5 in steps of `resolution`: where most of the stronger
/// half of the peaks lie. 0 without peaks.
///
///   spectrum           [n_frames][n_fft / 2 + 1]
///   bins_per_octave    0 = 12
///   resolution         0 = 0.01
///
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  Source: librosa 0.11.0, estimate_tuning(), pitch_tuning().
/// Judge: librosa in float64, identical.  [worker]
WT_CHECKED wt_status wt_tuning_estimate(const wt_piptrack_config *config, const float *spectrum, int64_t n_frames,
                                        int bins_per_octave, double resolution, double *tuning);

#ifdef __cplusplus
}
#endif
#endif
