/// Level and sign changes of a signal frame by frame, and where it is not silent.
///
/// All are librosa 0.11.0's (feature/spectral.py, effects.py).
#ifndef WARPTONE_SILENCE_H
#define WARPTONE_SILENCE_H

#include <stddef.h>
#include <warptone/stft.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_level_config {
    int frame_length; ///< 0 = 2048
    int hop;          ///< 0 = 512
    bool no_center;   ///< frame t begins at t hop, instead of being centred there
    wt_stft_pad pad;  ///< of rms; zero crossings are padded with the end samples
} wt_level_config;

/// Frames of n samples; 0 when there is none.  [any]
int64_t wt_level_frames(const wt_level_config *config, int64_t n);

/// Root mean square of each frame: pcm [n], out [n_frames].
/// Errors: WT_ERR_BAD_ARG (frame_length or hop below 1), WT_ERR_LENGTH (no frame).
/// Judge: librosa, 1e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_level_rms(const wt_level_config *config, const float *pcm, int64_t n, float *out);
/// Mean square of each frame: its energy over its length. Likewise.  [worker]
WT_CHECKED wt_status wt_level_energy(const wt_level_config *config, const float *pcm, int64_t n, float *out);
/// Changes of sign over samples, values up to 1e-10 counting as 0: out [n_frames]. Likewise.  [worker]
WT_CHECKED wt_status wt_level_zero_crossings(const wt_level_config *config, const float *pcm, int64_t n, float *out);

typedef struct wt_span {
    int64_t begin, end; ///< samples
} wt_span;

/// The part from the first to the last frame less than top_db (0 = 60) below the loudest; empty when there is none.
/// Channels [channels][n] count together.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_LENGTH (no frame), WT_ERR_NO_MEMORY.  Judge: librosa, identical.  [worker]
WT_CHECKED wt_status wt_silence_trim(const wt_level_config *config, double top_db, const float *pcm, int channels,
                                     int64_t n, wt_span *span);
/// All such parts: at most `room` of them are written to spans, their number to n_spans. Likewise.  [worker]
WT_CHECKED wt_status wt_silence_split(const wt_level_config *config, double top_db, const float *pcm, int channels,
                                      int64_t n, wt_span *spans, int64_t room, int64_t *n_spans);

/// wt_silence_split from the RMS of all frames, [wt_level_frames(n)], as wt_level_rms gives it. Likewise.  [worker]
WT_CHECKED wt_status wt_silence_split_rms(const wt_level_config *config, double top_db, const float *rms, int64_t n,
                                          wt_span *spans, int64_t room, int64_t *n_spans);

// ---- many signals on a stream

typedef enum wt_level_kind {
    WT_LEVEL_RMS,
    WT_LEVEL_ENERGY,
    WT_LEVEL_ZERO_CROSSINGS,
} wt_level_kind;

typedef struct wt_level_plan_config {
    wt_level_kind kind;
    wt_level_config level;
    int64_t n_samples; ///< of one signal, 1 or more
    int n_signals;     ///< 0 = 1
} wt_level_plan_config;

typedef struct wt_level_plan wt_level_plan;

/// `device` is borrowed until the plan is destroyed.
/// Errors: those of the function of that name, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_level_plan_create(wt_device *device, const wt_level_plan_config *config, wt_level_plan **plan);
void wt_level_plan_destroy(wt_level_plan *plan); ///< NULL is allowed.  [worker]

/// Queue it: pcm [n_signals][n_samples], out [n_signals][n_frames]; offsets in bytes. Errors: WT_ERR_BAD_ARG.
/// Judge: CUDA: the CPU, 2e-6 of the peak, zero crossings identical.  [worker]
WT_CHECKED wt_status wt_level_plan_enqueue(wt_level_plan *plan, wt_stream *stream, const wt_buffer *pcm,
                                           size_t pcm_offset, wt_buffer *out, size_t out_offset);

typedef struct wt_silence_config {
    wt_level_config level;
    double top_db;     ///< 0 = 60
    bool trim;         ///< one span a signal, from the first loud frame to the last, as wt_silence_trim
    int channels;      ///< of one signal, which count together; 0 = 1
    int64_t n_samples; ///< of a channel, 1 or more
    int n_signals;     ///< 0 = 1
    int64_t room;      ///< spans of a signal; 0 = as many as there can be, 1 with `trim`
} wt_silence_config;

typedef struct wt_silence wt_silence;

/// `device` is borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_silence_create(wt_device *device, const wt_silence_config *config, wt_silence **plan);
void wt_silence_destroy(wt_silence *plan);         ///< NULL is allowed.  [worker]
int64_t wt_silence_room(const wt_silence *plan); ///< spans of a signal.  [any]

/// Queue wt_silence_split or wt_silence_trim of every signal; offsets in bytes, spans' a multiple of 8.
///
///   pcm      float [n_signals][channels][n_samples]
///   spans    wt_span [n_signals][room]   each row begins with its spans, the rest is not written
///   counts   int [n_signals]   of all spans, also those for which there was no room
///
/// Errors: WT_ERR_BAD_ARG.  Judge: wt_silence_split and wt_silence_trim, identical.  [worker]
WT_CHECKED wt_status wt_silence_enqueue(wt_silence *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                        wt_buffer *spans, size_t spans_offset, wt_buffer *counts,
                                        size_t counts_offset);

#ifdef __cplusplus
}
#endif
#endif
