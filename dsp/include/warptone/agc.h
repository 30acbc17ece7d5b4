/// Automatic gain control: brings speech of any level slowly to a target, and leaves pauses alone.
#ifndef WARPTONE_AGC_H
#define WARPTONE_AGC_H

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

#ifdef __cplusplus
}
#endif
#endif
