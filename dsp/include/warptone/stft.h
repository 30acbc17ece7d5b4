/// Short-time Fourier transform and its inverse, with librosa 0.11's rules.
#ifndef WARPTONE_STFT_H
#define WARPTONE_STFT_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>
#include <warptone/window.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_STFT_MAX_HOP (1 << 24)

typedef enum wt_stft_pad {
    WT_STFT_PAD_ZERO,      ///< librosa "constant"
    WT_STFT_PAD_REFLECT,   ///< c b | a b c | b a
    WT_STFT_PAD_SYMMETRIC, ///< b a | a b c | c b
    WT_STFT_PAD_EDGE,      ///< a a | a b c | c c
    WT_STFT_PAD_RAMP,      ///< from 0 to a | a b c | from c to 0: numpy "linear_ramp"
} wt_stft_pad;

typedef struct wt_stft_config {
    int n_fft;               ///< 0 = 2048; any length up to WT_FFT_MAX_N
    int win_length;          ///< 0 = n_fft; shorter windows get zeros on both sides
    int hop;                 ///< 0 = win_length / 4; at most WT_STFT_MAX_HOP
    int channels;            ///< 0 = 1
    wt_window_config window; ///< 0 = periodic Hann; `n` is set from win_length; custom samples are copied
    wt_stft_pad pad;         ///< what lies before and behind the signal; 0 = zeros
    bool no_center;          ///< frame t begins at t hop, instead of being centred there
    bool precise;            ///< windows and transforms in double, both ways; a quiet bin then has its own 7 digits
                             ///< beside a loud one, as logarithms of it want. On the CPU three times slower; on a GPU
                             ///< by memory, as lengths are that no block holds
} wt_stft_config;

/// Tables, and scratch that one call at a time uses.
typedef struct wt_stft wt_stft;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_stft_create(const wt_stft_config *config, wt_stft **stft);
void wt_stft_destroy(wt_stft *stft); ///< NULL is allowed.  [worker]

int wt_stft_bins(const wt_stft *stft); ///< n_fft / 2 + 1.  [any]
/// Frames of a signal of n samples; 0 when it is too short to have one.  [any]
int64_t wt_stft_frames(const wt_stft *stft, int64_t n);
/// Samples that wt_stft_inverse gives for so many frames when no length is asked for.  [any]
int64_t wt_stft_samples(const wt_stft *stft, int64_t n_frames);

/// Analyse whole signals.
///
///   pcm   [channels][n]                  borrowed for the call
///   out   [channels][n_frames][bins][2]  unscaled spectra, frame by frame (librosa's memory order)
///
/// Returns WT_ERR_LENGTH when there is no frame: an empty signal, or without centring one shorter than n_fft.
/// Source: librosa 0.11.0 core/spectrum.py, stft().  Judge: librosa in float64, 2e-7 of the peak.  [rt, running]
WT_RT wt_status wt_stft_forward(wt_stft *stft, const float *pcm, int64_t n, float *out);

/// The spectra's magnitudes, or `powers`: [channels][n_frames][bins]; of precise ones rounded once. Returns and judge
/// likewise.  [rt, running]
WT_RT wt_status wt_stft_forward_real(wt_stft *stft, const float *pcm, int64_t n, bool powers, float *out);

/// Give the signals back by overlapped addition, divided by the windows' squares where these are not zero.
///
///   in       [channels][n_frames][bins][2]
///   length   samples wanted, 0 = wt_stft_samples(); more than the frames hold is filled with zeros
///   out      [channels][length]
///
/// Returns WT_ERR_BAD_ARG when n_frames is below 1 or `length` negative.
/// Source: librosa 0.11.0 core/spectrum.py, istft().  Judge: librosa in float64, 5e-7 of the peak where frames
/// cover the ends; the way there and back 130 dB.  [rt, running]
WT_RT wt_status wt_stft_inverse(wt_stft *stft, const float *in, int64_t n_frames, int64_t length, float *out);

// ---- batches on a device

typedef enum wt_stft_output {
    WT_STFT_COMPLEX, ///< [bins][2]
    WT_STFT_MAGNITUDE,
    WT_STFT_POWER,
    WT_STFT_PHASE, ///< radians, -pi .. pi
} wt_stft_output;

typedef struct wt_stft_plan_config {
    wt_stft_config stft;   ///< `channels`: those of one signal
    int64_t n_samples;     ///< of a channel
    int n_signals;         ///< 0 = 1
    int64_t length;        ///< inverse: samples wanted, 0 = wt_stft_samples()
    int64_t n_frames;      ///< inverse: frames given, 0 = those of n_samples
    wt_stft_output output; ///< forward: 0 = complex
} wt_stft_plan_config;

/// Tables and scratch for one shape.
typedef struct wt_stft_plan wt_stft_plan;

/// Plan. The device is borrowed until the plan is destroyed; a CPU device shares the frames among its threads.
/// On a GPU n_fft of 2 to 8192 without a prime factor above 13 take one kernel each way; other lengths, hops with which
/// the inverse does not fit shared memory, and precise transforms go by memory, in double, some frames at a time.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_LENGTH (signals without a frame), WT_ERR_NO_MEMORY, and those of
/// wt_module_create.  [worker, not armed]
WT_CHECKED wt_status wt_stft_plan_create(wt_device *device, const wt_stft_plan_config *config, wt_stft_plan **plan);
void wt_stft_plan_destroy(wt_stft_plan *plan); ///< NULL is allowed.  [worker, not armed]

int64_t wt_stft_plan_frames(const wt_stft_plan *plan); ///< of a channel.  [any]
int64_t wt_stft_plan_length(const wt_stft_plan *plan); ///< samples of a channel that the inverse gives.  [any]

/// Queue the analysis of [n_signals][channels][n_samples] to [n_signals][channels][n_frames][bins] of the plan's
/// output; offsets in bytes. Until the stream has passed it, no other call may use the plan but on the same stream.
/// Errors: WT_ERR_BAD_ARG (a stream of another device, a range that does not fit), WT_ERR_CUDA.
/// Judge: wt_stft_forward; on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_stft_plan_forward(wt_stft_plan *plan, wt_stream *stream, const wt_buffer *pcm,
                                          size_t pcm_offset, wt_buffer *out, size_t out_offset);
/// Queue the way back, from complex spectra [n_signals][channels][n_frames][bins][2] to [..][length]; likewise.
/// Judge: wt_stft_inverse; on a GPU 2e-6 of the peak where the windows' squares add up to 0.1 or more, below that more
/// by the root of 0.1 over their sum.  [worker]
WT_CHECKED wt_status wt_stft_plan_inverse(wt_stft_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                          wt_buffer *pcm, size_t pcm_offset);

#ifdef __cplusplus
}
#endif
#endif
