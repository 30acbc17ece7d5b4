/// Short-time transforms of a running signal: blocks of any size in, spectra out, and back.
///
/// Frame t ends at sample (t + 1) hop of the stream, begins n_fft before, and is given as soon as it is whole. The way back gives
/// every sample once no later frame can touch it: forward and back delay a signal by exactly
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

#ifdef __cplusplus
}
#endif
#endif
