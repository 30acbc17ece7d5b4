/// Noise reduction for voice in a short-time spectrum: MMSE-LSA, Wiener, or a spectral gate, on a noise spectrum that
/// is tracked or learnt from a stretch of noise.
#ifndef WARPTONE_DENOISE_H
#define WARPTONE_DENOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/device.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_denoise wt_denoise;

typedef enum wt_denoise_mode {
    WT_DENOISE_LSA,    ///< minimum mean-square error of the log amplitude; the smoothest rest of noise
    WT_DENOISE_WIENER, ///< minimum mean-square error of the spectrum
    WT_DENOISE_GATE,   ///< lets through the bins that rise above the noise
} wt_denoise_mode;

typedef struct wt_denoise_config {
    int rate_hz;          ///< 8000 .. 384000; 0 = 48000
    int channels;         ///< 1 .. 64, each for itself; 0 = 2
    wt_denoise_mode mode; ///< 0 = LSA
    bool stationary;      ///< the noise is what wt_denoise_learn heard last, and not tracked
    double latency_ms;    ///< length of the synthesis window, 2 .. 100; 0 = 10
    double frame_ms;      ///< length of the analysis window, latency_ms .. 200; 0 = twice latency_ms
    double max_cut_db;    ///< most a bin is turned down, 1 .. 100; 0 = 30
    double gate_db;       ///< gate: where a bin is half open, above the noise, up to 40; 0 = 6
    double low_cut_hz;    ///< bins below are turned down by max_cut_db always; 0 = 100, below 0 = none
} wt_denoise_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_denoise_create(const wt_denoise_config *config, wt_denoise **denoise);
void wt_denoise_destroy(wt_denoise *denoise); ///< NULL is allowed.  [any but rt]

int wt_denoise_latency_frames(const wt_denoise *denoise); ///< latency_ms, rounded to two frames; exact.  [any]
int wt_denoise_window_frames(const wt_denoise *denoise);  ///< Of the analysis, as used.  [any]

WT_RT void wt_denoise_reset(wt_denoise *denoise); ///< Nothing heard yet; keeps strength and profile.  [rt, running]

/// 0 = the input, delayed, .. 1 = all of the reduction, as at first. Glides over one window.  [rt, running]
WT_RT void wt_denoise_set_strength(wt_denoise *denoise, double strength);

/// Take the mean spectrum of a stretch of noise as the noise, in place of the last. A tracked noise starts from it;
/// a stationary one lets everything through before the first call. Must not run beside wt_denoise_process.
///
///   noise     [channels][n_frames]   one analysis window or more; borrowed for the call
///
/// Errors: WT_ERR_LENGTH (too short), WT_ERR_BAD_ARG (not finite); the profile is then as before.  [any but rt]
WT_CHECKED wt_status wt_denoise_learn(wt_denoise *denoise, const float *const *noise, int n_frames);

/// One block. Silence gives silence. Every cut into blocks gives the same bits. Samples that are not finite or beyond
/// 1e9 count as 0. A tracked noise takes the first 100 ms of sound for noise, unless it has learnt better.
///
///   in, out   [channels][n_frames]   may be the same; borrowed for the call
///
/// Source: Y. Ephraim and D. Malah, IEEE Trans. ASSP 33(2), 1985, eq. 20 and 1984, eq. 51 (decision-directed);
///         T. Gerkmann and R. Hendriks, IEEE Trans. ASLP 20(4), 2012 (noise);
///         D. Mauler and R. Martin, EUSIPCO 2007 (short synthesis windows).
/// Judge:  gain in SI-SDR on a real recording at 0 dB (docs/voice.md); strength 0 rebuilds to 120 dB.  [rt, running]
WT_RT void wt_denoise_process(wt_denoise *denoise, const float *const *in, float *const *out, int n_frames);

// ---- many signals, on a stream

typedef struct wt_denoise_plan wt_denoise_plan;

typedef struct wt_denoise_plan_config {
    wt_denoise_config denoise; ///< `channels`: those of one signal
    int n_signals;             ///< 0 = 1
    int max_frames;            ///< that one call takes, 1 or more: whole signals, or blocks of them
} wt_denoise_plan_config;

/// All channels of all signals, in step. `device` is borrowed until the plan is destroyed. A GPU takes up to 1 GiB of
/// work space for spectra, more when those of one hop do not fit.
/// Errors: those of wt_denoise_create, WT_ERR_BAD_ARG (no device, n_signals, max_frames), those of wt_module_create.
/// [worker]
WT_CHECKED wt_status wt_denoise_plan_create(wt_device *device, const wt_denoise_plan_config *config,
                                            wt_denoise_plan **plan);
void wt_denoise_plan_destroy(wt_denoise_plan *plan); ///< NULL is allowed.  [worker]

int wt_denoise_plan_latency_frames(const wt_denoise_plan *plan); ///< As wt_denoise_latency_frames.  [any]
int wt_denoise_plan_window_frames(const wt_denoise_plan *plan);  ///< As wt_denoise_window_frames.  [any]

/// As wt_denoise_set_strength, for the blocks queued from now on.  [worker]
void wt_denoise_plan_set_strength(wt_denoise_plan *plan, double strength);
/// Queue wt_denoise_reset. Errors: WT_ERR_BAD_ARG (a stream of another device), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_denoise_plan_reset(wt_denoise_plan *plan, wt_stream *stream);
/// Wait for the stream, then wt_denoise_learn of every channel, on the calling thread, whatever the device.
///
///   noise     [n_signals][channels][n_frames]   in host memory; borrowed for the call
///
/// Errors: those of wt_denoise_learn; WT_ERR_BAD_ARG (a stream of another device), those of wt_stream_synchronize.
/// [worker]
WT_CHECKED wt_status wt_denoise_plan_learn(wt_denoise_plan *plan, wt_stream *stream, const float *noise, int n_frames);
/// Queue the next block; offsets in bytes. All calls of a plan go to one stream of its device. Every cut into blocks
/// gives the same bits, as every number of signals does.
///
///   in, out   [n_signals][channels][n_frames]   may be the same
///
/// Errors: WT_ERR_BAD_ARG (n_frames outside 1 .. max_frames, a range that does not fit).
/// Judge:  wt_denoise_process, on a GPU 2e-6 of the peak.  [worker]
WT_CHECKED wt_status wt_denoise_plan_enqueue(wt_denoise_plan *plan, wt_stream *stream, const wt_buffer *in,
                                             size_t in_offset, int n_frames, wt_buffer *out, size_t out_offset);

#ifdef __cplusplus
}
#endif
#endif
