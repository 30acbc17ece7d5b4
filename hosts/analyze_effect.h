/// What the features that make signals of signals are told, and how those with a state run.
///
/// analyze_design.c     sections and taps by the options; forward and backward, Savitzky-Golay
/// analyze_flow.c       signals through an op with a state, from block to block; analyze_flow_kinds.c  those ops
/// analyze_normalize.c  one gain for a whole signal
/// analyze_back.c       transforms and back;   analyze_effects.c  stretched, shifted, at another rate
#ifndef WT_ANALYZE_EFFECT_H
#define WT_ANALYZE_EFFECT_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/denoise.h>
#include <warptone/filter.h>
#include <warptone/fir_design.h>
#include <warptone/normalize.h>
#include <warptone/resample.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum analyze_fir_design {
    ANALYZE_FIR_WINDOW, ///< by a Hamming window
    ANALYZE_FIR_LEAST_SQUARES,
    ANALYZE_FIR_EQUIRIPPLE,
} analyze_fir_design;

/// 0 is the default of each op.
typedef struct analyze_effect_options {
    wt_filter_family family;
    wt_filter_band band;
    double edges_hz[2];
    int n_edges, order;
    double ripple_db, attenuation_db;
    analyze_fir_design design;
    double transition_hz, spacing;      ///< spacing: of savgol
    wt_fir_window_kind fir_window;
    int n_taps, polynomial, derivative; ///< of fir and savgol
    double coefficient;                 ///< of both emphases
    const char *impulse, *playback;     ///< files of convolve and echo_cancel
    double tail_ms;
    wt_normalize_kind by;
    double target_db, ceiling_db, max_gain_db; ///< of normalize and agc
    wt_denoise_mode denoiser;
    double noise_s[2], max_cut_db; ///< the noise's begin and end; end 0 = none is known
    wt_resample_quality quality;
} analyze_effect_options;

struct analyze_signal;

// ---- analyze_design.c

/// The sections that the options want. Errors: WT_ERR_BAD_ARG naming the option.
WT_CHECKED wt_status analyze_sections(const struct analyze_signal *s, double sos[WT_SOS_MAX_SECTIONS][6], int *n);
/// The taps of fir. Caller frees. Errors: WT_ERR_BAD_ARG naming the option, WT_ERR_NO_MEMORY.
WT_CHECKED wt_status analyze_fir_taps(const struct analyze_signal *s, float **taps, int *n_taps);

// ---- analyze_flow.c

typedef enum analyze_flow_id {
    ANALYZE_FLOW_NONE,
    ANALYZE_FLOW_FILTER,
    ANALYZE_FLOW_FIR,
    ANALYZE_FLOW_CONVOLVE,
    ANALYZE_FLOW_PREEMPHASIS,
    ANALYZE_FLOW_DEEMPHASIS,
    ANALYZE_FLOW_AGC,
    ANALYZE_FLOW_DENOISE,
    ANALYZE_FLOW_ECHO_CANCEL,
    ANALYZE_FLOWS,
} analyze_flow_id;

/// Lines that go through an op in step, with what it keeps from block to block.
typedef struct analyze_flow analyze_flow;
void analyze_flow_destroy(analyze_flow *flow); ///< NULL is allowed.  [worker]

#ifdef __cplusplus
}
#endif
#endif
