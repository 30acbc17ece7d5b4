/// Automatic gain control: brings speech of any level slowly to a target, and leaves pauses alone.
#ifndef WARPTONE_AGC_H
#define WARPTONE_AGC_H

#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_agc wt_agc;

typedef struct wt_agc_config {
    int rate_hz;              ///< 8000 .. 384000; 0 = 48000
    int channels;             ///< 1 .. 64, one gain for all; 0 = 2
    double target_db;         ///< level to reach, RMS of the loudest channel, dB full scale; 0 = -20
    double max_gain_db;       ///< 0 .. 60; 0 = 24
    double min_gain_db;       ///< -60 .. 0; 0 = -24
    double gate_db;           ///< below this level the gain stands still; 0 = -50
    double rise_db_per_s;     ///< 0 = 6
    double fall_db_per_s;     ///< 0 = 24
} wt_agc_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_agc_create(const wt_agc_config *config, wt_agc **agc);
void wt_agc_destroy(wt_agc *agc); ///< NULL is allowed.  [any but rt]

WT_RT void wt_agc_reset(wt_agc *agc);           ///< Gain 0 dB, level silent.  [rt, running]
WT_RT double wt_agc_gain_db(const wt_agc *agc); ///< At the last frame processed.  [rt, running]

/// One block; `in` and `out` may be the same. No delay. Every cut into blocks gives the same bits. Peaks may pass full
/// scale where the level jumps: put a limiter behind it. Samples that are not finite pass and do not move the gain.
///
///   in, out   [channels][n_frames]   borrowed for the call  [rt, running]
WT_RT void wt_agc_process(wt_agc *agc, const float *const *in, float *const *out, int n_frames);

// ---- many signals, on a stream

typedef struct wt_agc_plan wt_agc_plan;

/// `n_signals` of the config's channels each, all in step; a signal has a gain of its own. `device` is borrowed until
/// the plan is destroyed.
/// Errors: those of wt_agc_create, WT_ERR_BAD_ARG (no device, n_signals), those of wt_module_create.  [worker]
WT_CHECKED wt_status wt_agc_plan_create(wt_device *device, const wt_agc_config *config, int n_signals,
                                        wt_agc_plan **plan);
void wt_agc_plan_destroy(wt_agc_plan *plan); ///< NULL is allowed.  [worker]
/// Queue wt_agc_reset of all signals. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_agc_plan_reset(wt_agc_plan *plan, wt_stream *stream);
/// Queue the next block, a whole signal or a part of one: every cut gives the same bits, as every number of signals
/// does. Offsets in bytes.
///
///   in, out   [n_signals][channels][n_frames]   may be the same
///
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit.  Judge: wt_agc_process, on a GPU 2e-6 of the peak.
/// [worker]
WT_CHECKED wt_status wt_agc_plan_enqueue(wt_agc_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                         int n_frames, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
