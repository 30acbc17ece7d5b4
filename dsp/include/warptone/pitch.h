/// Fundamental frequency of one voice: YIN, and pYIN with its hidden Markov model, with librosa 0.11's rules.
///
/// All sums are in double, so results follow librosa's float64 ones; both backends make the same decisions.
#ifndef WARPTONE_PITCH_H
#define WARPTONE_PITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>
#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_PITCH_MAX_FRAME (1 << 20)

/// What YIN and pYIN share: the signals, their frames and the range of the search.
typedef struct wt_pitch_frames {
    double rate_hz;          ///< 0 = 22050
    double fmin_hz, fmax_hz; ///< 0 < fmin < fmax <= rate / 2, and rate / fmin < frame_length - 1
    int frame_length;        ///< samples, 0 = 2048; at most WT_PITCH_MAX_FRAME
    int hop;                 ///< samples, 0 = frame_length / 4
    int64_t n_samples;       ///< of one signal, 1 or more
    int n_signals;           ///< 0 = 1
    wt_stft_pad pad;         ///< what lies before and behind a signal; 0 = zeros
    bool no_center;          ///< frame t begins at t hop, instead of being centred there
} wt_pitch_frames;

// ---- YIN

typedef struct wt_yin_config {
    wt_pitch_frames frames;
    double trough_threshold; ///< 0 = 0.1
} wt_yin_config;

/// Tables, and scratch that one call at a time uses.
typedef struct wt_yin wt_yin;

/// Plan YIN. `device` NULL = the CPU, immediate calls only; else it is borrowed until the plan is destroyed.
/// Frames too long for a GPU's shared memory are worked on in its memory: 1 GB, or one block of 16 frames.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_LENGTH (not centred, and shorter than a frame), WT_ERR_NO_MEMORY,
/// and those of wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_yin_create(wt_device *device, const wt_yin_config *config, wt_yin **plan);
void wt_yin_destroy(wt_yin *plan); ///< NULL is allowed.  [worker, not armed]

int64_t wt_yin_n_frames(const wt_yin *plan); ///< frames of one signal.  [any]

/// Fundamental frequencies on the calling thread, whatever the plan's device.
///
///   pcm   [n_signals][n_samples]
///   f0    [n_signals][n_frames]   Hz; of silence rate / floor(rate / fmax), librosa's answer to a flat function;
///                                 NaN where a sample of the frame is not finite (librosa refuses the signal)
///
/// Source: A. de Cheveigne and H. Kawahara, YIN, JASA 111, 2002; librosa 0.11.0 core/pitch.py, yin().
/// Judge:  librosa in float64, 1e-6 of the peak.  [rt, running]
WT_RT void wt_yin_run(wt_yin *plan, const float *pcm, float *f0);

/// Queue the same on a stream of the plan's device; offsets in bytes, multiples of four.
/// Errors: WT_ERR_BAD_ARG (no device, a stream of another, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, wt_yin_run, 1e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_yin_enqueue(wt_yin *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                    wt_buffer *f0, size_t f0_offset);

// ---- pYIN

typedef struct wt_pyin_config {
    wt_pitch_frames frames;
    int n_thresholds;           ///< 0 = 100
    double beta_a, beta_b;      ///< prior of the thresholds, 0 = 2 and 18
    double boltzmann;           ///< prior of the troughs, 0 = 2
    double resolution;          ///< of a pitch bin in semitones, 0 = 0.1
    double max_transition_rate; ///< octaves a second, 0 = 35.92
    double switch_prob;         ///< of voiced to unvoiced and back, 0 = 0.01
    double no_trough_prob;      ///< left to the lowest trough when none is below the threshold, 0 = 0.01
    bool keep_unvoiced;         ///< f0 of unvoiced frames: the model's, not NaN (librosa's fill_na=None)
    bool calibrated;            ///< voiced only where the frame's centre is, see wt_pyin_run
} wt_pyin_config;

typedef struct wt_pyin wt_pyin;

/// Plan pYIN. Memory of a signal at work: about 64 MB on the CPU; on a GPU 4 GB, or one signal.
/// Errors: as wt_yin_create; WT_ERR_BAD_ARG when transitions reach over more bins than there are.  [worker, not armed]
WT_CHECKED wt_status wt_pyin_create(wt_device *device, const wt_pyin_config *config, wt_pyin **plan);
void wt_pyin_destroy(wt_pyin *plan); ///< NULL is allowed.  [worker, not armed]

int64_t wt_pyin_n_frames(const wt_pyin *plan); ///< frames of one signal.  [any]
int wt_pyin_n_bins(const wt_pyin *plan);       ///< pitch bins.  [any]

/// The likeliest pitch track, on the calling thread, whatever the plan's device.
///
///   pcm   [n_signals][n_samples]
///   out   [3][n_signals][n_frames]   f0 in Hz, NaN where unvoiced; 1 voiced, 0 not; probability of voicing.
///                                    A frame with a sample that is not finite counts as one without candidates.
///
/// `calibrated`: of the frames that the model calls voiced those stay whose centre repeats after a period (normalised
/// correlation 0.4 or more) no more than 37 dB below the signal's surely voiced ones. False alarms: under 0.05 in
/// pauses, noise and decays (tests).
///
/// Source: M. Mauch and S. Dixon, pYIN, ICASSP 2014; librosa 0.11.0 core/pitch.py, pyin(), and sequence.py, viterbi().
/// Judge:  librosa in float64: bins and flags identical, probabilities 1e-6.  [rt, running]
WT_RT void wt_pyin_run(wt_pyin *plan, const float *pcm, float *out);

/// Queue the same on a stream of the plan's device; offsets in bytes, multiples of four.
/// Errors: WT_ERR_BAD_ARG (no device, a stream of another, a range that does not fit its buffer), WT_ERR_CUDA.
/// Judge:  on a GPU, wt_pyin_run: bins and flags identical.  [worker]
WT_CHECKED wt_status wt_pyin_enqueue(wt_pyin *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                     wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
