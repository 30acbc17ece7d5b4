/// Acoustic echo cancellation: takes what the loudspeaker plays out of what the microphones hear.
#ifndef WARPTONE_ECHO_H
#define WARPTONE_ECHO_H

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

#ifdef __cplusplus
}
#endif
#endif
