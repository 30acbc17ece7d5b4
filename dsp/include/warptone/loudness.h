/// Loudness and peaks of a programme: ITU-R BS.1770-4, EBU R 128, Tech 3341 and Tech 3342.
///
/// A meter takes planar float blocks of any size and keeps a fixed amount of memory (about 290 KB) however long the
/// programme is. What it reports does not depend, to the last bit, on how the signal was cut into blocks.
#ifndef WARPTONE_LOUDNESS_H
#define WARPTONE_LOUDNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_LOUDNESS_MAX_CHANNELS 64

typedef struct wt_loudness wt_loudness;

typedef struct wt_loudness_config {
    int rate_hz;          ///< 4000 .. 1536000; 0 = 48000
    int channels;         ///< 1 .. 64; 0 = 2
    const float *weights; ///< [channels] power of each channel in the sum; copied. NULL = by the channel count:
                          ///< 4 = L R Ls Rs, 5 = L R C Ls Rs, 6 = L R C LFE Ls Rs, 8 = L R C LFE Lb Rb Ls Rs with
                          ///< 1.41 for side surrounds and 0 for LFE; every other count 1 for each channel
    bool dual_mono;       ///< one channel that will be heard from two loudspeakers: counted twice (+3.01 LU)
    bool no_true_peak;    ///< leave out oversampling; the true peak then reports the sample peak
} wt_loudness_config;

/// All in LUFS, LU or dB; -INFINITY where nothing has been heard above the gate.
typedef struct wt_loudness_values {
    double momentary_lufs;      ///< the last 400 ms, renewed every 10 ms
    double short_term_lufs;     ///< the last 3 s, renewed every 10 ms
    double max_momentary_lufs;  ///< since reset
    double max_short_term_lufs; ///< since reset
    double integrated_lufs;     ///< gated at -70 LUFS and at -10 LU, blocks of 400 ms every 100 ms
    double range_lu;            ///< Tech 3342: 95th less 10th percentile of 3 s values taken every second; 0 if none
    double sample_peak_db;      ///< dB full scale, highest channel
    double true_peak_db;        ///< dBTP, highest channel; 4x oversampled up to 96 kHz, 2x up to 192 kHz, else 1x
    int64_t n_frames;           ///< metered since reset, merged meters included
    int64_t n_bad;              ///< samples that were NaN or infinite; each was counted as 0
} wt_loudness_values;

/// Errors: WT_ERR_BAD_ARG (rate, channels, a weight that is negative or not finite, dual_mono with channels != 1),
/// WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_loudness_create(const wt_loudness_config *config, wt_loudness **meter);
void wt_loudness_destroy(wt_loudness *meter); ///< NULL is allowed.  [any but rt]

/// Forget everything heard.  [rt, running]
WT_RT void wt_loudness_reset(wt_loudness *meter);

/// Meter one block.
///
///   in   [channels][n_frames]   full scale 1.0; borrowed for the call
///
/// Source: ITU-R BS.1770-4 Annex 1 and 2; EBU Tech 3341, 3342.
/// Judge:  the signals and tolerances of Tech 3341 and 3342, and libebur128 1.2.6 within 0.01 LU.  [rt, running]
WT_RT void wt_loudness_process(wt_loudness *meter, const float *const *in, int n_frames);

/// What has been heard so far. Integrated loudness and range read the histograms (some 20 us); the rest is at hand.
/// Not while another thread is in wt_loudness_process of the same meter.  [rt, running]
WT_RT void wt_loudness_query(const wt_loudness *meter, wt_loudness_values *values);

/// Peaks of each channel, linear; either array may be NULL.  [rt, running]
///
///   sample_peaks, true_peaks   [channels]   caller's
WT_RT void wt_loudness_peaks(const wt_loudness *meter, float *sample_peaks, float *true_peaks);

/// Add what `from` has heard to `into`, as if the programmes had been one album: integrated loudness, range, peaks,
/// maxima and counts. Channel counts and rates may differ; momentary and short-term values of `into` stay.
/// Peaks of channels that `into` lacks go to its last channel.  [any but rt]
void wt_loudness_merge(wt_loudness *into, const wt_loudness *from);

/// Gain in dB that brings a programme to `target_lufs` without its true peak passing `ceiling_dbtp`; 0 for silence.
/// [any]
double wt_loudness_gain_db(const wt_loudness_values *values, double target_lufs, double ceiling_dbtp);

// ---- many whole programmes

typedef struct wt_loudness_batch_config {
    wt_loudness_config meter;
    int64_t n_frames; ///< of one programme, 1 or more
    int n_signals;    ///< programmes, 0 = 1
} wt_loudness_batch_config;

/// Meters, or on a GPU 800 bytes for each second of a channel; one call at a time uses it.
typedef struct wt_loudness_batch wt_loudness_batch;

/// `device`: NULL = immediate calls only, else borrowed until the batch is destroyed.
/// Errors: those of wt_loudness_create, on a GPU the compiler's.  [worker]
WT_CHECKED wt_status wt_loudness_batch_create(wt_device *device, const wt_loudness_batch_config *config,
                                              wt_loudness_batch **batch);
void wt_loudness_batch_destroy(wt_loudness_batch *batch); ///< NULL is allowed.  [worker]

/// Meter each programme from its beginning to its end, on the calling thread.
///
///   pcm      [n_signals][channels][n_frames]
///   values   [n_signals]   what wt_loudness_query would say at the end
///
/// Judge: the meter, the same bits.  [rt, running]
WT_RT void wt_loudness_batch_run(wt_loudness_batch *batch, const float *pcm, wt_loudness_values *values);
/// Queue it; offsets in bytes, values' a multiple of 8. Errors: WT_ERR_BAD_ARG.
/// Judge: CUDA: the meter, 1e-6 LU and dB; where nothing but zeros follow a sound it may give -INFINITY as soon as the
/// filters have rung down by 480 dB.  [worker]
WT_CHECKED wt_status wt_loudness_batch_enqueue(wt_loudness_batch *batch, wt_stream *stream, const wt_buffer *pcm,
                                               size_t pcm_offset, wt_buffer *values, size_t values_offset);

// ---- many programmes that go on from block to block

/// A meter a programme, or on a GPU 272 KB each, with its state there.
typedef struct wt_loudness_plan wt_loudness_plan;

/// `n_signals` programmes of the config's channels, all in step. `device` is borrowed until the plan is destroyed.
/// Errors: those of wt_loudness_create, WT_ERR_BAD_ARG (no device, n_signals), those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_loudness_plan_create(wt_device *device, const wt_loudness_config *config, int n_signals,
                                             wt_loudness_plan **plan);
void wt_loudness_plan_destroy(wt_loudness_plan *plan); ///< NULL is allowed.  [worker]
/// Queue wt_loudness_reset of all programmes. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.
/// [worker]
WT_CHECKED wt_status wt_loudness_plan_reset(wt_loudness_plan *plan, wt_stream *stream);
/// Queue the next block: every cut gives the same bits, as every number of programmes does. Offset in bytes.
///
///   in   [n_signals][channels][n_frames]
///
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit.  Judge: wt_loudness_process, on a GPU 1e-6 LU and dB.
/// [worker]
WT_CHECKED wt_status wt_loudness_plan_enqueue(wt_loudness_plan *plan, wt_stream *stream, const wt_buffer *in,
                                              size_t in_offset, int n_frames);
/// Queue wt_loudness_query of all programmes: values [n_signals], at a multiple of 8 bytes. Errors: WT_ERR_BAD_ARG.
/// [worker]
WT_CHECKED wt_status wt_loudness_plan_query(wt_loudness_plan *plan, wt_stream *stream, wt_buffer *values,
                                            size_t values_offset);

#ifdef __cplusplus
}
#endif
#endif
