/// Acoustic echo cancellation: takes what the loudspeaker plays out of what the microphones hear.
#ifndef WARPTONE_ECHO_H
#define WARPTONE_ECHO_H

#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_echo wt_echo;

typedef struct wt_echo_config {
    int rate_hz;       ///< 8000 .. 192000; 0 = 48000
    int channels;      ///< microphones, 1 .. 64, each with a filter of its own; 0 = 1
    double tail_ms;    ///< longest echo, from playback to microphone, device delays included, 10 .. 2000; 0 = 256
    double latency_ms; ///< length of a block of the filter, 2 .. 100; 0 = 10
} wt_echo_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_echo_create(const wt_echo_config *config, wt_echo **echo);
void wt_echo_destroy(wt_echo *echo); ///< NULL is allowed.  [any but rt]

int wt_echo_latency_frames(const wt_echo *echo); ///< latency_ms in frames; exact.  [any]

WT_RT void wt_echo_reset(wt_echo *echo); ///< Forget the room.  [rt, running]

/// One block. The filter adapts all the time and slows down by itself while somebody speaks at the near end. A silent
/// playback leaves the microphones as they are, delayed. Every cut into blocks gives the same bits. Samples that are
/// not finite or beyond 1e9 count as 0.
///
///   mic, out    [channels][n_frames]   may be the same; borrowed for the call
///   playback    [n_frames]             mono, as sent to the loudspeaker at the same frames; not one of `out`
///
/// Source: G. Enzner and P. Vary, Signal Processing 86(6), 2006; F. Kuech, E. Mabande and G. Enzner, ICASSP 2014
///         (partitioned blocks), with the gradient constraint.
/// Judge:  echo return loss in made-up rooms and near-end speech kept in double talk, docs/voice.md.  [rt, running]
WT_RT void wt_echo_process(wt_echo *echo, const float *const *mic, const float *playback, float *const *out,
                           int n_frames);

// ---- many signals, on a stream

typedef struct wt_echo_plan wt_echo_plan;

typedef struct wt_echo_plan_config {
    wt_echo_config echo; ///< `channels`: microphones of one signal, which share its playback
    int n_signals;       ///< 0 = 1
    int max_frames;      ///< that one call takes, 1 or more: whole signals, or blocks of them
} wt_echo_plan_config;

/// All signals in step. `device` is borrowed until the plan is destroyed. On a GPU a filter takes 12 bytes a bin and
/// part, and 28 where a block has a prime factor above 13 or more than 4096 frames; what is made of the playback takes
/// up to 256 MiB.
/// Errors: those of wt_echo_create, WT_ERR_BAD_ARG (no device, n_signals, max_frames), those of wt_module_create.
/// [worker]
WT_CHECKED wt_status wt_echo_plan_create(wt_device *device, const wt_echo_plan_config *config, wt_echo_plan **plan);
void wt_echo_plan_destroy(wt_echo_plan *plan); ///< NULL is allowed.  [worker]
/// Queue wt_echo_reset of all signals. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_echo_plan_reset(wt_echo_plan *plan, wt_stream *stream);
/// Queue the next block; offsets in bytes. All calls of a plan go to one stream of its device. Every cut into blocks
/// gives the same bits, as every number of signals does.
///
///   mic, out    [n_signals][channels][n_frames]   may be the same
///   playback    [n_signals][n_frames]             not a part of `out`
///
/// Errors: WT_ERR_BAD_ARG (n_frames outside 1 .. max_frames, a range that does not fit).
/// Judge:  wt_echo_process, on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_echo_plan_enqueue(wt_echo_plan *plan, wt_stream *stream, const wt_buffer *mic,
                                          size_t mic_offset, const wt_buffer *playback, size_t playback_offset,
                                          int n_frames, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
