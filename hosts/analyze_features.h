/// The features, as the table names them, on the calling thread and on a GPU, and the settings that both ways share;
/// those that make signals of signals are in analyze_sound.h.
#ifndef WT_ANALYZE_FEATURES_H
#define WT_ANALYZE_FEATURES_H

#include "analyze_gpu.h"

#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/loudness.h>
#include <warptone/mfcc.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/pcen.h>
#include <warptone/pitch.h>
#include <warptone/silence.h>
#include <warptone/spectral.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>
#include <warptone/vad.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- spectra: analyze_spectral.c, analyze_tonal.c, analyze_fourier.c; analyze_gpu_spectral.c

analyze_here analyze_stft, analyze_spectrogram, analyze_mel, analyze_logmel, analyze_whisper, analyze_bands,
    analyze_mfcc, analyze_mfcc_delta, analyze_mfcc_delta2, analyze_mfcc_to_mel, analyze_pcen, analyze_cqt, analyze_vqt,
    analyze_pseudo_cqt,
    analyze_hybrid_cqt, analyze_chroma, analyze_chroma_cqt, analyze_chroma_cens, analyze_tonnetz, analyze_tuning,
    analyze_precise_mel, analyze_frames_of_magnitudes, analyze_frames_of_powers, analyze_power, analyze_phase,
    analyze_spectrogram_db, analyze_bins_db, analyze_fft, analyze_autocorrelation;
analyze_of_row analyze_whisper_of, analyze_tuning_known;
analyze_reach analyze_delta_reach, analyze_cqt_reach, analyze_vqt_reach, analyze_folded_reach, analyze_cens_reach;
analyze_there analyze_gpu_power, analyze_gpu_phase, analyze_gpu_spectrogram_db, analyze_gpu_bins_db, analyze_gpu_fft,
    analyze_gpu_autocorrelation, analyze_gpu_stft, analyze_gpu_spectrogram, analyze_gpu_frames_of_magnitudes,
    analyze_gpu_frames_of_powers, analyze_gpu_mel, analyze_gpu_bands, analyze_gpu_precise_mel, analyze_gpu_logmel,
    analyze_gpu_whisper, analyze_gpu_mfcc, analyze_gpu_mfcc_delta, analyze_gpu_mfcc_delta2,
    analyze_gpu_mfcc_to_mel, analyze_gpu_pcen,
    analyze_gpu_cqt, analyze_gpu_vqt, analyze_gpu_pseudo_cqt, analyze_gpu_hybrid_cqt, analyze_gpu_chroma,
    analyze_gpu_chroma_cqt, analyze_gpu_chroma_cens, analyze_gpu_tonnetz, analyze_gpu_tuning;

// ---- where energy lies: analyze_peaks.c

analyze_here analyze_piptrack, analyze_salience, analyze_reassigned;
analyze_there analyze_gpu_piptrack, analyze_gpu_salience, analyze_gpu_reassigned;

// ---- medians, separation, factors: analyze_median.c, analyze_separate.c, analyze_invert.c

analyze_here analyze_nmf, analyze_griffin_lim, analyze_mel_to_audio, analyze_mfcc_to_audio, analyze_mel_to_stft,
    analyze_median, analyze_median_spectrogram, analyze_nn_filter, analyze_hpss, analyze_residual, analyze_hpss_masks;
analyze_there analyze_gpu_median, analyze_gpu_median_spectrogram, analyze_gpu_nn_filter, analyze_gpu_hpss,
    analyze_gpu_residual, analyze_gpu_hpss_masks, analyze_gpu_nmf, analyze_gpu_griffin_lim, analyze_gpu_mel_to_audio,
    analyze_gpu_mfcc_to_audio, analyze_gpu_mel_to_stft;
analyze_reach analyze_median_reach, analyze_median_spectrogram_reach, analyze_hpss_reach;

// ---- the constant-Q transform that has an inverse: analyze_nsgt.c

analyze_here analyze_nsgt;
analyze_there analyze_gpu_nsgt;

// ---- pitch, onsets, beats: analyze_rhythm.c; analyze_gpu_rhythm.c

analyze_here analyze_yin, analyze_pyin, analyze_onset_strength, analyze_onsets, analyze_tempo, analyze_tempos,
    analyze_beats, analyze_tempogram, analyze_plp, analyze_loudness, analyze_loudness_curve, analyze_fourier_tempogram,
    analyze_tempo_ratios,
    analyze_beat_strength;
analyze_of_row analyze_pyin_of, analyze_onsets_of, analyze_tempo_of, analyze_beats_of, analyze_plp_of;
analyze_there analyze_gpu_yin, analyze_gpu_pyin, analyze_gpu_onset_strength, analyze_gpu_beat_strength,
    analyze_gpu_onsets, analyze_gpu_tempo, analyze_gpu_tempos, analyze_gpu_beats, analyze_gpu_tempogram,
    analyze_gpu_plp, analyze_gpu_fourier_tempogram, analyze_gpu_tempo_ratios;
analyze_reach analyze_tempos_reach, analyze_tempogram_reach, analyze_onset_reach;

// ---- shape of spectra, level, silence: analyze_level.c; analyze_gpu_level.c

analyze_here analyze_contrast_parts, analyze_speech, analyze_centroid, analyze_bandwidth, analyze_rolloff,
    analyze_flatness, analyze_contrast, analyze_poly, analyze_flux, analyze_rms, analyze_centred_rms,
    analyze_energy, analyze_zcr,
    analyze_trim, analyze_split, analyze_vad;
analyze_of_row analyze_trim_of, analyze_split_of, analyze_vad_of;
analyze_there analyze_gpu_loudness, analyze_gpu_centroid, analyze_gpu_bandwidth, analyze_gpu_rolloff,
    analyze_gpu_flatness, analyze_gpu_contrast, analyze_gpu_contrast_parts, analyze_gpu_poly, analyze_gpu_flux,
    analyze_gpu_rms, analyze_gpu_centred_rms, analyze_gpu_energy, analyze_gpu_zcr, analyze_gpu_trim, analyze_gpu_split,
    analyze_gpu_speech,
    analyze_gpu_vad;

// ---- stretched, shifted: analyze_effects.c

analyze_here analyze_time_stretch, analyze_pitch_shift;
analyze_of_row analyze_time_stretch_of, analyze_pitch_shift_of;
analyze_there analyze_gpu_time_stretch, analyze_gpu_pitch_shift;

// analyze_speech is a number a step of vad, 1 = speech; analyze_tuning_known takes no row; analyze_bins_db is however
// deep.

// ---- what both ways share

wt_stft_config analyze_stft_config(const analyze_options *options);
typedef enum analyze_mel_kind {
    ANALYZE_MEL_POWER,
    ANALYZE_MEL_PCEN, ///< magnitudes, as pcen takes them
    ANALYZE_MEL_DB,
    ANALYZE_MEL_DB_UNLIMITED,
    ANALYZE_MEL_PRECISE, ///< powers of precise spectra
    ANALYZE_MEL_WHISPER,
} analyze_mel_kind;
/// Mel bands of all signals on a GPU, in room 1.
WT_CHECKED wt_status analyze_mel_on_gpu(const analyze_batch *batch, analyze_mel_kind kind, wt_buffer **bands,
                                        wt_mel **mel);
/// Errors: WT_ERR_BAD_ARG (another rate or other frames than Whisper's).
WT_CHECKED wt_status analyze_check_whisper(const analyze_signal *s);
const analyze_array *analyze_mel_like(const analyze_options *o, bool of_mfcc); ///< named by --power
wt_mel_config analyze_mel_config(const analyze_signal *s, analyze_mel_kind kind);
wt_mfcc_config analyze_mfcc_config(const analyze_signal *s);
/// Decibels as the options have them; without a limit those of a value.
wt_db_config analyze_db_config(const analyze_options *options, bool limited);
/// Keep the last array's decibels, which have no limit, within that of the whole signal's largest; NULL = of its own.
void analyze_limit(const analyze_options *options, analyze_result *r, const float *largest_db);
/// On a GPU frames behind a signal's own reach into it, and may be louder than those: then its peak is looked for later.
bool analyze_limits_later(const analyze_batch *batch);
/// In place of the last array: coefficients of decibels, powers of mel bands of coefficients, slopes of these.
wt_status analyze_mfcc_of_bands(const analyze_signal *s, analyze_result *r);
wt_status analyze_bands_of_mfcc(const analyze_signal *s, analyze_result *r);
wt_status analyze_delta_of_mfcc(const analyze_options *options, analyze_result *r, int order);
wt_pcen_config analyze_pcen_config(const analyze_signal *s);
wt_cqt_config analyze_cqt_config(const analyze_signal *s, wt_cqt_kind kind);
wt_cqt_config analyze_vqt_config(const analyze_signal *s);
/// Where a tile lies, and, `own`, its own frames alone; NULL = a whole signal.
wt_cqt_tile analyze_cqt_tile(const analyze_whole *whole, bool own);
/// librosa's chroma_cqt: 7 octaves in steps of a third of a semitone, and how they are folded.
wt_cqt_config analyze_folded_cqt(const analyze_signal *s);
/// `cens`: of which there is no threshold.
wt_chroma_cqt_config analyze_folding(const analyze_signal *s, wt_chroma_norm norm, bool cens);
wt_chroma_config analyze_chroma_config(const analyze_signal *s);
wt_chroma_norm analyze_chroma_norm(const analyze_options *options, wt_chroma_norm otherwise);
/// `bins_per_octave` 0: of the feature itself, by its options; else of what chromas are tuned by.
wt_tuning_config analyze_tuning_config(const analyze_signal *s, int64_t n_frames, int bins_per_octave);
int analyze_half_slice(const analyze_options *options); ///< of nsgt: slice s begins at (s - 1) of them
wt_nsgt_config analyze_nsgt_config(const analyze_signal *s, int n_slices, int n_signals);
extern const analyze_maker analyze_slices_maker; ///< of so many slices, the variant, on a GPU
wt_onset_config analyze_onset_config(const analyze_signal *s, bool median);
double analyze_onset_floor(float peak); ///< 80 dB below it
wt_tempo_config analyze_tempo_config(const analyze_signal *s);
wt_beat_config analyze_beat_config(const analyze_signal *s);
wt_plp_config analyze_plp_config(const analyze_signal *s);
wt_peak_config analyze_peak_config(const analyze_signal *s);
wt_yin_config analyze_yin_config(const analyze_signal *s);
wt_pyin_config analyze_pyin_config(const analyze_signal *s);
wt_tempogram_config analyze_tempogram_config(const analyze_options *options);
wt_loudness_config analyze_loudness_config(const analyze_options *options, int rate_hz, int channels);
wt_spectral_config analyze_shape_config(const analyze_signal *s, wt_spectral_kind kind, int64_t n_frames);
wt_status analyze_add_pyin(analyze_result *r, const float *f0, const float *voiced, const float *probability, int64_t n);
wt_status analyze_add_events(analyze_result *r, const analyze_array *like, const int *frames, int64_t count);
wt_status analyze_add_loudness(analyze_result *r, const wt_loudness_values *values);
wt_status analyze_add_spans(analyze_result *r, const analyze_array *like, const wt_span *spans, int64_t count);
/// `centred`: as those of trim and split are always, among zeros.
wt_level_config analyze_level_config(const analyze_signal *s, bool centred);
/// In place of the last array, of peaks and valleys, 80 dB deep of the whole signal's.
void analyze_contrast_of_parts(analyze_result *r, const analyze_whole *whole);
/// pcen's state, made when it is not there.
wt_status analyze_smooth(analyze_whole *whole, int64_t n_bands);
int64_t analyze_speech_step(int rate_hz); ///< Samples of a step of vad.
wt_vad_plan_config analyze_vad_config(const analyze_signal *s);
/// The steps that this signal decides: all, or a tile's, whose state is made when it is not there.
wt_status analyze_speech_part(const analyze_signal *s, analyze_whole *whole, const wt_vad_plan *plan, wt_vad_part *part);
wt_status analyze_add_speech(analyze_result *r, const int *speech, int64_t n);
wt_status analyze_vad_of_speech(const analyze_signal *s, analyze_result *r); ///< In place of the last array

/// Spectra of a signal, frame by frame: [n_frames][bins][2], or sizes [n_frames][bins].
typedef struct analyze_spectra {
    wt_stft *stft;
    int64_t n_frames;
    int bins;
    float *values;
    size_t mapped; ///< bytes of the mapping that they are; 0 = of malloc
} analyze_spectra;

/// Complex ones, magnitudes or powers; `precise`: by transforms in double (stft.h). Free with analyze_spectra_free, also
/// after an error.
WT_CHECKED wt_status analyze_spectra_make(const analyze_signal *s, wt_stft_output output, bool precise,
                                          analyze_spectra *x);
void analyze_spectra_free(analyze_spectra *x);
/// Magnitudes of precise spectra [count] below 1e-10 become 0: that is what rounding leaves of silence, by which
/// comparisons would differ from backend to backend.
void analyze_hush(float *magnitudes, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
