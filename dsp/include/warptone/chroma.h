/// Chroma from power spectra and from constant-Q transforms, energy statistics (CENS), tonal centroids.
/// Everything is frame by frame: [n_frames][n_chroma].
#ifndef WARPTONE_CHROMA_H
#define WARPTONE_CHROMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_CHROMA_MAX 1024

typedef enum wt_chroma_norm {
    WT_CHROMA_NORM_MAX,
    WT_CHROMA_NORM_1,
    WT_CHROMA_NORM_2,
    WT_CHROMA_NORM_NONE,
} wt_chroma_norm;

typedef struct wt_chroma_config {
    double rate_hz;           ///< 0 = 22050
    int n_fft;                ///< of the spectra, 0 = 2048
    int n_chroma;             ///< 0 = 12
    double tuning;            ///< in bins, from A440: wt_tuning_estimate tells
    double centre_octave;     ///< of the weights, 0 = 5
    double octave_width;      ///< 0 = 2; negative = no weights
    wt_chroma_norm bank_norm; ///< of each bin's weights; 0 = maximum: librosa's default is WT_CHROMA_NORM_2
    bool begin_at_a;          ///< row 0 is A instead of C
    wt_chroma_norm norm;      ///< of each frame, 0 = maximum
    int channels;             ///< 0 = 1
} wt_chroma_config;

typedef struct wt_chroma wt_chroma;

/// `device`: NULL = immediate calls only, else borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_chroma_create(wt_device *device, const wt_chroma_config *config, wt_chroma **chroma);
void wt_chroma_destroy(wt_chroma *chroma); ///< NULL is allowed.  [worker]

/// The weights, [n_chroma][n_fft / 2 + 1]; lives as long as the plan.
/// Source: librosa 0.11.0 filters.py, chroma().  Judge: librosa, 1e-6.  [any]
const float *wt_chroma_bank(const wt_chroma *chroma);

/// Chroma of power spectra.
///
///   power   [channels][n_frames][n_fft / 2 + 1]
///   out     [channels][n_frames][n_chroma]
///
/// Returns WT_ERR_BAD_ARG when n_frames is below 0.
/// Source: librosa 0.11.0 feature/spectral.py, chroma_stft().  Judge: librosa in float64, 1.1e-6.  [rt, running]
WT_RT wt_status wt_chroma_run(wt_chroma *chroma, const float *power, int64_t n_frames, float *out);
/// Queue it on a stream; offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6.  [worker]
WT_CHECKED wt_status wt_chroma_enqueue(wt_chroma *chroma, wt_stream *stream, const wt_buffer *power,
                                       size_t power_offset, int64_t n_frames, wt_buffer *out, size_t out_offset);

typedef struct wt_chroma_cqt_config {
    double fmin_hz;      ///< of bin 0, 0 = C1
    int n_bins;          ///< 0 = 252
    int bins_per_octave; ///< 0 = 36; a multiple of n_chroma
    int n_chroma;        ///< 0 = 12
    float threshold;     ///< what is under it becomes 0 before normalising
    wt_chroma_norm norm; ///< 0 = maximum
} wt_chroma_cqt_config;

/// Chroma of constant-Q magnitudes: octaves folded, neighbouring bins merged.
///
///   magnitude   [n_frames][n_bins]
///   out         [n_frames][n_chroma]
///
/// Errors: WT_ERR_BAD_ARG.  Source: librosa 0.11.0, chroma_cqt(), filters.cq_to_chroma().
/// Judge: librosa in float64, 1e-6.  [any]
WT_CHECKED wt_status wt_chroma_fold(const wt_chroma_cqt_config *config, const float *magnitude, int64_t n_frames,
                                    float *out);

/// Energy statistics: each frame's shares counted in four steps, smoothed by a Hann window, normalised.
///
///   chroma   [n_frames][n_chroma] not normalised
///   smooth   frames of the window, 0 = 41, negative = none
///   out      [n_frames][n_chroma], not the same
///
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  Source: librosa 0.11.0, chroma_cens(); M. Mueller, S. Ewert, ISMIR 2011.
/// Judge: librosa in float64, 1e-6.  [worker]
WT_CHECKED wt_status wt_chroma_cens(const float *chroma, int64_t n_frames, int n_chroma, int smooth,
                                    wt_chroma_norm norm, float *out);

/// Tonal centroids: fifths, minor and major thirds, two coordinates each.
///
///   chroma   [n_frames][n_chroma]
///   out      [n_frames][6]
///
/// Errors: WT_ERR_BAD_ARG.  Source: librosa 0.11.0, tonnetz(); C. Harte, M. Sandler, M. Gasser, 2006.
/// Judge: librosa in float64, 1e-6.  [any]
WT_CHECKED wt_status wt_tonnetz(const float *chroma, int64_t n_frames, int n_chroma, float *out);

// ---- the last three for many signals, on a stream

typedef enum wt_tonal_kind { WT_TONAL_FOLD, WT_TONAL_CENS, WT_TONAL_TONNETZ } wt_tonal_kind;

typedef struct wt_tonal_config {
    wt_tonal_kind kind;
    wt_chroma_cqt_config fold; ///< of WT_TONAL_FOLD
    int n_chroma;              ///< of the others, 0 = 12
    int smooth;                ///< CENS
    wt_chroma_norm norm;       ///< CENS
    int64_t n_frames;          ///< of one signal, 1 or more
    int n_signals;             ///< 0 = 1
} wt_tonal_config;

typedef struct wt_tonal wt_tonal;

/// `device` is borrowed until the plan is destroyed. Errors: those of the functions, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_tonal_create(wt_device *device, const wt_tonal_config *config, wt_tonal **plan);
void wt_tonal_destroy(wt_tonal *plan); ///< NULL is allowed.  [worker]

/// Queue it: in and out [n_signals] times what the function takes and gives; offsets in bytes.
/// Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_tonal_enqueue(wt_tonal *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                      wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
