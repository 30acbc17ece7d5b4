/// Pitches as peaks of spectra, and the deviation of a recording from A440.
#ifndef WARPTONE_TUNING_H
#define WARPTONE_TUNING_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
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

// ---- spectra in parts: three times the same, in any pieces

enum { WT_TUNING_PASSES = 3 };

typedef struct wt_tuning_walk wt_tuning_walk;

/// wt_tuning_estimate with memory that does not grow with the signal. Errors: as there.  [worker]
WT_CHECKED wt_status wt_tuning_walk_create(const wt_piptrack_config *config, int bins_per_octave, double resolution,
                                           wt_tuning_walk **walk);
void wt_tuning_walk_destroy(wt_tuning_walk *walk); ///< NULL is allowed.  [worker]
/// The next frames, [n_frames][n_fft / 2 + 1].  [worker]
void wt_tuning_walk_add(wt_tuning_walk *walk, const float *spectrum, int64_t n_frames);
/// All frames were added: begin the next pass. After WT_TUNING_PASSES of them the tuning is known; 0 before.  [worker]
double wt_tuning_walk_end_pass(wt_tuning_walk *walk);

// ---- spectra of many signals, on a stream

typedef struct wt_tuning_config {
    wt_piptrack_config peaks;
    int64_t n_frames;    ///< of one signal, 1 or more
    int n_signals;       ///< 0 = 1
    int bins_per_octave; ///< 0 = 12
    double resolution;   ///< 0 = 0.01
} wt_tuning_config;

/// Peaks of up to 1 GB of signals, or of one; more go one after the other.
typedef struct wt_tuning wt_tuning;

/// `device` is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_tuning_create(wt_device *device, const wt_tuning_config *config, wt_tuning **plan);
void wt_tuning_destroy(wt_tuning *plan); ///< NULL is allowed.  [worker]

/// Queue wt_tuning_estimate of every signal; offsets in bytes, tuning's a multiple of 8.
///
///   spectrum   float [n_signals][n_frames][n_fft / 2 + 1]
///   tuning     double [n_signals]
///
/// Errors: WT_ERR_BAD_ARG.  Judge: wt_tuning_estimate, identical.  [worker]
WT_CHECKED wt_status wt_tuning_enqueue(wt_tuning *plan, wt_stream *stream, const wt_buffer *spectrum,
                                       size_t spectrum_offset, wt_buffer *tuning, size_t tuning_offset);
/// Queue wt_piptrack of every signal: hz and height as spectrum. Errors: WT_ERR_BAD_ARG.
/// Judge: wt_piptrack, identical.  [worker]
WT_CHECKED wt_status wt_tuning_enqueue_peaks(wt_tuning *plan, wt_stream *stream, const wt_buffer *spectrum,
                                             size_t spectrum_offset, wt_buffer *hz, size_t hz_offset,
                                             wt_buffer *height, size_t height_offset);

#ifdef __cplusplus
}
#endif
#endif
