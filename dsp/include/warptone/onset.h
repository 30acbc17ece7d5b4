/// Where notes begin: onset strength from mel spectra, peaks of it, and the way back to the quiet before them, with
/// librosa 0.11's rules.
#ifndef WARPTONE_ONSET_H
#define WARPTONE_ONSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_onset_config {
    int rate_hz;       ///< 0 = 22050
    int n_fft;         ///< 0 = 2048
    int hop;           ///< 0 = 512
    int n_mels;        ///< 0 = 128, from 0 to half the rate
    int lag;           ///< frames between the spectra compared, 0 = 1
    int max_size;      ///< bands of the maximum filter over the earlier spectrum, 0 = 1: none
    bool median;       ///< over the bands, as for beats; false = mean
    bool detrend;      ///< remove the slow part
    bool no_center;    ///< do not make up for the length of frames (these are centred all the same)
    bool precise;      ///< spectra and decibels in double (stft.h); with max_size above 1 they always are
    bool has_floor;    ///< of a tile: bands lie at `floor_db` or above, not 80 dB below their own largest
    double floor_db;
    int64_t n_samples; ///< of one signal, 1 or more
    int n_signals;     ///< 0 = 1
} wt_onset_config;

/// Tables, and the mel spectra of all signals; one call at a time uses it.
typedef struct wt_onset wt_onset;

/// `device`: NULL = immediate calls only, else borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY; on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_onset_create(wt_device *device, const wt_onset_config *config, wt_onset **plan);
void wt_onset_destroy(wt_onset *plan); ///< NULL is allowed.  [worker]
int64_t wt_onset_n_frames(const wt_onset *plan); ///< values of one envelope.  [any]

/// Onset strength, on the calling thread.
///
///   pcm        [n_signals][n_samples]
///   envelope   [n_signals][n_frames]   dB of increase, 0 or more unless detrended
///
/// Source: S. Boeck and G. Widmer, SuperFlux, 2013; librosa 0.11.0 onset.py, onset_strength().
/// Judge:  librosa in float64, 1e-6 of the peak; CUDA: the CPU, 2e-6.  [rt, running]
WT_RT void wt_onset_run(wt_onset *plan, const float *pcm, float *envelope);
/// Queue it on a stream of the plan's device; offsets in bytes. Errors: WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_onset_enqueue(wt_onset *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                      wt_buffer *envelope, size_t envelope_offset);

// ---- peaks of an envelope

typedef struct wt_peak_config {
    int pre_max, post_max; ///< a peak is the largest of x[n - pre_max] .. x[n + post_max - 1]; post_max 1 or more
    int pre_avg, post_avg; ///< and not less than the mean of x[n - pre_avg] .. x[n + post_avg - 1], plus delta
    int wait;              ///< frames skipped after a peak
    double delta;
} wt_peak_config;

/// Peaks of x.
///
///   x       [n]
///   peaks   [n] at most; how many is returned, 0 when the settings are out of range
///
/// Source: librosa 0.11.0 util/utils.py, peak_pick().  [rt, running]
WT_RT int64_t wt_peak_pick(const wt_peak_config *config, const float *x, int64_t n, int *peaks);

/// librosa's settings for onsets at a rate and hop: 30 ms around, 100 ms of mean, 30 ms of wait, 0.07.  [any]
wt_peak_config wt_onset_peaks(double rate_hz, int hop);

/// Onsets of an envelope, which is shifted and scaled to 0 .. 1 first. None when it is constant or not finite.
///
///   frames   [n] at most, ascending; how many is returned
///
/// Source: librosa 0.11.0 onset.py, onset_detect().  Judge: librosa, identical.  [rt, running]
WT_RT int64_t wt_onset_detect(const wt_peak_config *config, const float *envelope, int64_t n, int *frames);

/// Move each event back to the last local minimum of `energy` at or before it, or to frame 0.
///
///   events    [n_events] ascending, below n; `moved` may be the same
///   energy    [n]
///
/// Source: librosa 0.11.0 onset.py, onset_backtrack().  Judge: librosa, identical.  [rt, running]
WT_RT void wt_onset_backtrack(const float *energy, int64_t n, const int *events, int64_t n_events, int *moved);

// ---- onsets of many envelopes, on a stream

typedef struct wt_onsets_config {
    wt_peak_config peaks;
    int64_t n_frames; ///< of one envelope, 1 or more
    int n_signals;    ///< 0 = 1
    bool backtrack;   ///< then move each back over the envelope
    bool plain;       ///< wt_peak_pick of the values as they are, in place of wt_onset_detect
} wt_onsets_config;

typedef struct wt_onsets wt_onsets;

/// `device` is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_onsets_create(wt_device *device, const wt_onsets_config *config, wt_onsets **plan);
void wt_onsets_destroy(wt_onsets *plan); ///< NULL is allowed.  [worker]

/// Queue wt_onset_detect, or wt_peak_pick, of every signal; offsets in bytes.
///
///   envelope   float [n_signals][n_frames]
///   frames     int [n_signals][n_frames]   each row as the function gives it; what follows is not written
///   counts     int [n_signals]
///
/// Errors: WT_ERR_BAD_ARG.  Judge: wt_onset_detect, wt_peak_pick and wt_onset_backtrack, identical.  [worker]
WT_CHECKED wt_status wt_onsets_enqueue(wt_onsets *plan, wt_stream *stream, const wt_buffer *envelope,
                                       size_t envelope_offset, wt_buffer *frames, size_t frames_offset,
                                       wt_buffer *counts, size_t counts_offset);

#ifdef __cplusplus
}
#endif
#endif
