/// One number a frame from a magnitude spectrogram: where its energy lies, and how it is spread.
///
/// Spectrograms are frame by frame, [n_frames][n_fft / 2 + 1], as wt_stft_plan_forward gives magnitudes; sums run in
/// double. All are librosa 0.11.0's (feature/spectral.py), judged by librosa in float64, 1e-6 of the peak (flatness
/// 1.6e-6 of precise spectra: it counts the logarithm of every bin). A frame of silence gives 0 (flatness 1); a NaN
/// makes its frame NaN.
#ifndef WARPTONE_SPECTRAL_H
#define WARPTONE_SPECTRAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_spectral_shape {
    int rate_hz; ///< 0 = 22050
    int n_fft;   ///< 0 = 2048
    int64_t n_frames;
} wt_spectral_shape;

/// Mean frequency, Hz: out [n_frames].  Errors: WT_ERR_BAD_ARG (the shape).  [worker]
WT_CHECKED wt_status wt_spectral_centroid(const wt_spectral_shape *shape, const float *magnitude, float *out);

/// (sum of m |f - centroid|^p)^(1 / p), of magnitudes that sum to 1 unless `no_norm`; p 0 = 2. out [n_frames].
/// Errors: also WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_spectral_bandwidth(const wt_spectral_shape *shape, const float *magnitude, double p,
                                           bool no_norm, float *out);

/// Lowest frequency below which lies the share `percent` (0 = 0.85) of the sum: out [n_frames], Hz.
/// Errors: WT_ERR_BAD_ARG (the shape, percent).  [worker]
WT_CHECKED wt_status wt_spectral_rolloff(const wt_spectral_shape *shape, const float *magnitude, double percent,
                                         float *out);

/// Geometric over arithmetic mean of max(amin, m^power); power 0 = 2, amin 0 = 1e-10. out [n_frames].
/// Errors: WT_ERR_BAD_ARG (the shape, power, amin).  [worker]
WT_CHECKED wt_status wt_spectral_flatness(const wt_spectral_shape *shape, const float *magnitude, double power,
                                          double amin, float *out);

typedef struct wt_spectral_contrast_config {
    double fmin_hz;  ///< upper end of the lowest band; 0 = 200
    int n_bands;     ///< octaves above it; 0 = 6
    double quantile; ///< share of a band's bins that make its peak and its valley; 0 = 0.02
    bool linear;     ///< difference; false = of decibels
} wt_spectral_contrast_config;

/// Peak less valley of each octave: out [n_bands + 1][n_frames]. `config` NULL = defaults.
/// Errors: also a band above half the rate, or without a bin; WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_spectral_contrast(const wt_spectral_shape *shape, const float *magnitude,
                                          const wt_spectral_contrast_config *config, float *out);

/// Polynomial of degree `order` (0 .. 10) in Hz through each frame: out [order + 1][n_frames], the highest power
/// first.  Errors: also WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_spectral_polynomial(const wt_spectral_shape *shape, const float *magnitude, int order,
                                            float *out);

/// Sum of what each bin gained since the frame before, 0 for the first: out [n_frames].
/// Errors: WT_ERR_BAD_ARG (the shape).
/// Source: S. Dixon, Onset Detection Revisited, 2006, eq. 2.2 without squares.  Judge: the definition.  [worker]
WT_CHECKED wt_status wt_spectral_flux(const wt_spectral_shape *shape, const float *magnitude, float *out);

/// Root mean square of the frames' samples by Parseval, of rectangular windows: out [n_frames].
/// Errors: WT_ERR_BAD_ARG (the shape).  [worker]
WT_CHECKED wt_status wt_spectral_rms(const wt_spectral_shape *shape, const float *magnitude, float *out);

/// What contrast compares: the peaks and valleys of the bands, each [n_bands + 1][n_frames], not in decibels.
/// Errors: as of wt_spectral_contrast.  [worker]
WT_CHECKED wt_status wt_spectral_contrast_parts(const wt_spectral_shape *shape, const float *magnitude,
                                                const wt_spectral_contrast_config *config, float *peaks,
                                                float *valleys);

// ---- spectrograms of many signals, on a stream

typedef enum wt_spectral_kind {
    WT_SPECTRAL_CENTROID,
    WT_SPECTRAL_BANDWIDTH,
    WT_SPECTRAL_ROLLOFF,
    WT_SPECTRAL_FLATNESS,
    WT_SPECTRAL_FLUX,
    WT_SPECTRAL_RMS,
    WT_SPECTRAL_POLYNOMIAL,
    WT_SPECTRAL_CONTRAST,
    WT_SPECTRAL_CONTRAST_PARTS, ///< its peaks and then its valleys, in decibels without a limit unless linear
} wt_spectral_kind;

typedef struct wt_spectral_config {
    wt_spectral_kind kind;
    wt_spectral_shape shape; ///< of one signal, n_frames 1 or more
    int n_signals;           ///< 0 = 1
    double p;                ///< bandwidth
    bool no_norm;            ///< bandwidth
    double percent;          ///< roll-off
    double power, amin;      ///< flatness
    int order;               ///< polynomial, 0 .. 10
    wt_spectral_contrast_config contrast;
} wt_spectral_config;

typedef struct wt_spectral wt_spectral;

/// `device` is borrowed until the plan is destroyed.
/// Errors: those of the function of that name, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_spectral_create(wt_device *device, const wt_spectral_config *config, wt_spectral **plan);
void wt_spectral_destroy(wt_spectral *plan); ///< NULL is allowed.  [worker]
/// Values a frame: n_bands + 1 of contrast, twice that of its parts, order + 1 of a polynomial, else 1.  [any]
int wt_spectral_rows(const wt_spectral *plan);

/// Queue it; offsets in bytes.
///
///   magnitude   [n_signals][n_frames][n_fft / 2 + 1]
///   out         [n_signals][rows][n_frames]
///
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the peak, roll-off identical.  [worker]
WT_CHECKED wt_status wt_spectral_enqueue(wt_spectral *plan, wt_stream *stream, const wt_buffer *magnitude,
                                         size_t magnitude_offset, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
