/// Signals brought to a level: all channels of one by one gain.
#ifndef WARPTONE_NORMALIZE_H
#define WARPTONE_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_normalize_kind {
    WT_NORMALIZE_LOUDNESS, ///< integrated loudness of BS.1770-4, LUFS; the ceiling is for the true peak
    WT_NORMALIZE_RMS,      ///< root mean square of all samples, dB full scale; the ceiling is for the largest
    WT_NORMALIZE_PEAK,     ///< the largest sample, dB full scale
} wt_normalize_kind;

typedef struct wt_normalize_config {
    wt_normalize_kind kind; ///< 0 = loudness
    double target_db;       ///< 0 = -23 LUFS, -20 dB, or as peak full scale
    double ceiling_db;      ///< that no peak passes, -100 .. 100; the gain is less then; 0 = full scale
    int rate_hz;            ///< of loudness; 0 = 48000
    int channels;           ///< of a signal; 0 = 1
    int64_t n_frames;       ///< of a channel, 1 or more
    int n_signals;          ///< 0 = 1
    bool dual_mono;         ///< by loudness: one channel that two loudspeakers will play, counted twice
    bool no_true_peak;      ///< by loudness: the ceiling is for the largest sample
} wt_normalize_config;

/// What becomes of a signal.
typedef struct wt_normalize_result {
    double level_db;  ///< as it came, by the kind's measure; -INFINITY or NaN where nothing can be measured
    double gain_db;   ///< of all its samples; 0 where nothing can be measured
    double missed_db; ///< how far below the target the ceiling keeps it; 0 = it is there
} wt_normalize_result;

/// The gain of a signal of this level by the kind's measure and this largest peak, in dB. Of the config only kind,
/// target and ceiling are looked at.  [any]
WT_RT wt_normalize_result wt_normalize_find(const wt_normalize_config *config, double level_db, double peak_db);

/// One call at a time uses it.
typedef struct wt_normalize wt_normalize;

/// `device`: NULL = wt_normalize_run alone, else borrowed until the plan is destroyed.
/// Errors: WT_ERR_BAD_ARG naming the field, those of wt_loudness_batch_create, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_normalize_create(wt_device *device, const wt_normalize_config *config, wt_normalize **plan);
void wt_normalize_destroy(wt_normalize *plan); ///< NULL is allowed.  [worker]

/// Bring each signal to its level on the calling thread. Silence stays as it is; samples that are not finite are
/// multiplied and not measured.
///
///   in, out   [n_signals][channels][n_frames]   may be the same
///
/// Source: EBU R 128 for loudness.  Judge: the definition; wt_loudness_gain_db.  [rt, running]
WT_RT void wt_normalize_run(wt_normalize *plan, const float *in, float *out);
/// What the last wt_normalize_run did: results [n_signals].  [rt, running]
WT_RT void wt_normalize_query(const wt_normalize *plan, wt_normalize_result *results);
/// Queue it; offsets in bytes. Errors: WT_ERR_BAD_ARG.  Judge: CUDA: the CPU, 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_normalize_enqueue(wt_normalize *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                          wt_buffer *out, size_t out_offset);
/// Wait for what was queued last on this stream, and tell what it did: results [n_signals].
/// Errors: those of wt_stream_download and wt_stream_synchronize.  [worker]
WT_CHECKED wt_status wt_normalize_fetch(wt_normalize *plan, wt_stream *stream, wt_normalize_result *results);

#ifdef __cplusplus
}
#endif
#endif
