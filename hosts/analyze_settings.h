/// Settings of ops as the command line has them.
#ifndef WT_ANALYZE_SETTINGS_H
#define WT_ANALYZE_SETTINGS_H

#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/db.h>
#include <warptone/delta.h>
#include <warptone/griffin_lim.h>
#include <warptone/loudness.h>
#include <warptone/onset.h>
#include <warptone/pcen.h>
#include <warptone/pitch.h>
#include <warptone/reassigned.h>
#include <warptone/spectral.h>
#include <warptone/stretch.h>
#include <warptone/tempo.h>
#include <warptone/vad.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ANALYZE_MAX_LIST = 64 };

typedef enum analyze_aggregate {
    ANALYZE_AGGREGATE_OWN, ///< mean, for beats median
    ANALYZE_AGGREGATE_MEAN,
    ANALYZE_AGGREGATE_MEDIAN,
} analyze_aggregate;

/// Of the ops' own structs what a signal or another option decides is not looked at. 0 is each op's default.
typedef struct analyze_settings {
    double mel_power; ///< of the magnitudes in mel bands
    wt_db_config db;  ///< of a value or of the largest
    bool no_dct_norm; ///< of mfcc
    wt_delta_config delta;
    wt_pcen_config pcen;               ///< wt_pcen_defaults, and what was said
    wt_griffin_lim_config phases;
    wt_reassigned_config reassigned;
    double margin_percussive; ///< 0 = that of the harmonic part
    int slice;                ///< of nsgt
    // constant Q
    wt_cqt_config cqt;
    bool has_gamma;                     ///< else vqt's is as hearing has it
    double intervals[ANALYZE_MAX_LIST]; ///< of vqt, [n_intervals]
    int n_intervals;
    bool tuned; ///< cqt.tuning is known; else chroma's is estimated
    // chroma
    wt_chroma_config chroma;
    bool has_norm; ///< else each feature has its own
    double threshold; ///< of peaks, and of chroma_cqt
    int n_octaves, smooth;
    bool by_hybrid;
    double resolution; ///< of tuning and of pyin
    // salience
    double harmonics[ANALYZE_MAX_LIST], weights[ANALYZE_MAX_LIST]; ///< weights also of fir's bands
    int n_harmonics, n_weights;
    bool all_bins;
    double fill;
    // pitch, onsets, beats
    wt_yin_config yin;
    wt_pyin_config pyin;
    wt_onset_config onset;
    analyze_aggregate aggregate; ///< of onset strength
    wt_peak_config peaks; ///< below 0 = librosa's
    bool no_normalize;
    wt_tempo_config tempo;
    wt_beat_config beat;
    wt_plp_config plp;
    int tempogram_length;
    // shape of spectra, level
    wt_spectral_config shape;
    bool no_norm; ///< of bandwidth and tempogram
    bool no_scale; ///< of constant-Q and of fir by a window
    wt_vad_config vad;
    wt_loudness_config loudness;
    wt_pitch_shift_config shift;
} analyze_settings;

#ifdef __cplusplus
}
#endif
#endif
