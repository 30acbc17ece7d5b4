/// Short-time transforms of running signals: blocks of any size in, spectra out, and back.
///
/// Frame t ends at sample (t + 1) hop of the stream, begins n_fft before, and is given as soon as it is whole. The way
/// back gives every sample once no later frame can touch it: forward and back delay a signal by exactly
/// wt_stft_stream_latency_frames samples, and otherwise leave it as it was (130 dB) wherever windows overlap. Every cut
/// into blocks gives the same bits.
#ifndef WARPTONE_STFT_STREAM_H
#define WARPTONE_STFT_STREAM_H

#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Called for each finished frame: spectrum [channels][bins][2], which it may change before the way back.  [rt]
typedef void (*wt_stft_stream_frame)(void *user, int64_t t, float *spectrum);

typedef struct wt_stft_stream wt_stft_stream;

/// Of `config` pad and no_center do not count: before its beginning a stream is silent.
/// Errors: those of wt_stft_create, and WT_ERR_BAD_ARG when the hop is above n_fft (samples would be lost) or the
/// squared windows leave a sample uncovered.  [worker]
WT_CHECKED wt_status wt_stft_stream_create(const wt_stft_config *config, wt_stft_stream **stream);
void wt_stft_stream_destroy(wt_stft_stream *stream); ///< NULL is allowed.  [worker]

/// Samples by which wt_stft_stream_process delays a signal: n_fft.  [any]
int wt_stft_stream_latency_frames(const wt_stft_stream *stream);

/// Forget the past.  [rt, running]
WT_RT void wt_stft_stream_reset(wt_stft_stream *stream);

/// Take a block, call `frame` for every frame that it completes, and give as many samples of the changed signal.
///
///   in, out   [channels] pointers to n samples; the same or apart; out NULL: analysis alone
///   frame     may be NULL: nothing is changed
///
/// Source: Griffin and Lim, 1984, weighted overlap-add.  Judge: the delayed input, 130 dB; wt_stft_forward without
/// centring of the stream behind n_fft - hop zeros, 2e-7 of the peak.  [rt, running]
WT_RT void wt_stft_stream_process(wt_stft_stream *stream, const float *const *in, int n, float *const *out,
                                  wt_stft_stream_frame frame, void *user);

// ---- many streams on a device

/// The state of n_signals streams, on the device.
typedef struct wt_stft_stream_plan wt_stft_stream_plan;

typedef struct wt_stft_stream_plan_config {
    wt_stft_config stft; ///< `channels`: those of one signal
    int n_signals;       ///< 0 = 1
    int max_samples;     ///< that one call takes, 1 or more
} wt_stft_stream_plan_config;

/// The device is borrowed until the plan is destroyed.
/// Errors: those of wt_stft_stream_create, WT_ERR_BAD_ARG (no device, n_signals, max_samples), on a GPU those of
/// wt_module_create.  [worker]
WT_CHECKED wt_status wt_stft_stream_plan_create(wt_device *device, const wt_stft_stream_plan_config *config,
                                                wt_stft_stream_plan **plan);
void wt_stft_stream_plan_destroy(wt_stft_stream_plan *plan); ///< NULL is allowed.  [worker]
/// Frames that the next forward call completes when it takes n samples.  [worker]
int wt_stft_stream_plan_frames(const wt_stft_stream_plan *plan, int n);
/// Queue forgetting the past. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_stft_stream_plan_reset(wt_stft_stream_plan *plan, wt_stream *stream);

/// Queue a block of every stream; offsets in bytes. All calls of a plan go to one stream of its device.
///
///   pcm      [n_signals][channels][n]
///   frames   [n_signals][channels][wt_stft_stream_plan_frames][bins][2]
///
/// Errors: WT_ERR_BAD_ARG (n outside 1 .. max_samples, a range that does not fit), WT_ERR_CUDA.
/// Judge:  wt_stft_stream_process; on a GPU 2e-6 of the peak. Every cut into blocks gives the same bits.  [worker]
WT_CHECKED wt_status wt_stft_stream_plan_forward(wt_stft_stream_plan *plan, wt_stream *stream, const wt_buffer *pcm,
                                                 size_t pcm_offset, int n, wt_buffer *frames, size_t frames_offset);
/// Queue the way back of the block that was queued last, from its frames, changed or not: as many samples, n_fft late.
/// Errors: also WT_ERR_BAD_ARG when there is none, or its way back was queued before.
/// Judge: the delayed input, 130 dB.  [worker]
WT_CHECKED wt_status wt_stft_stream_plan_inverse(wt_stft_stream_plan *plan, wt_stream *stream, const wt_buffer *frames,
                                                 size_t frames_offset, wt_buffer *pcm, size_t pcm_offset);

#ifdef __cplusplus
}
#endif
#endif
