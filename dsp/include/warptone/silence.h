/// Level and sign changes of a signal frame by frame, and where it is not silent.
///
/// All are librosa 0.11.0's (feature/spectral.py, effects.py).
#ifndef WARPTONE_SILENCE_H
#define WARPTONE_SILENCE_H

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
/// Errors: WT_ERR_BAD_ARG (frame_length or hop below 1, no frame).  Judge: librosa, 1e-6 of the peak.  [worker]
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
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  Judge: librosa, identical.  [worker]
WT_CHECKED wt_status wt_silence_trim(const wt_level_config *config, double top_db, const float *pcm, int channels,
                                     int64_t n, wt_span *span);
/// All such parts: at most `room` of them are written to spans, their number to n_spans.  [worker]
WT_CHECKED wt_status wt_silence_split(const wt_level_config *config, double top_db, const float *pcm, int channels,
                                      int64_t n, wt_span *spans, int64_t room, int64_t *n_spans);

#ifdef __cplusplus
}
#endif
#endif
