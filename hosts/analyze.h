/// Features of audio files, as arrays, tables and pictures.
///
/// analyze_features.c   which features there are, by name;   analyze_features.h  what the table names
/// analyze_spectral.c   spectra, mel bands;   analyze_tonal.c  constant-Q, chroma, tuning
/// analyze_rhythm.c     pitch, onsets, beats, loudness
/// analyze_level.c      shape of spectra, level, silence
/// analyze_peaks.c      where energy lies: pitches, salience, reassigned spectrograms
/// analyze_effects.c    time stretch, pitch shift, other rates;   analyze_effect.h  what other signals are made
/// analyze_delta.c      slopes of other features
/// analyze_invert.c     magnitudes taken apart, and made into signals again
/// analyze_nsgt.c       the constant-Q transform that has an inverse
/// analyze_fourier.c    spectra in other forms, of whole signals too, and autocorrelation
/// analyze_median.c     medians and nearest neighbours
/// analyze_separate.c   harmonic and percussive parts
/// analyze_gpu.c        batches of signals on a GPU; analyze_gpu_spectral.c, _rhythm.c, _level.c  the same features
///                      there
/// analyze_array.c      what a feature makes: named arrays
/// analyze_numpy.c      arrays as NPY and NPZ;   analyze_text.c  as CSV and JSON;   analyze_plot.c  as PNG
/// analyze_options.c    the command line;   analyze_choices.c  what its words mean;   analyze_settings.h  what it hands
///                      on to ops
/// analyze_job.c        files: load, compute, write, many at once
/// analyze_batch.c      which files go to a GPU together; analyze_work.c  the steps of such a batch; analyze_line.c
///                      who takes which step
/// analyze_tiles.h      files too long to be loaded;   analyze_spill.c  what of them is held all the same
#ifndef WT_ANALYZE_H
#define WT_ANALYZE_H

#include "analyze_array.h"
#include "analyze_effect.h"
#include "analyze_settings.h"
#include <warptone/decompose.h>
#include <warptone/device.h>
#include <warptone/mel.h>
#include <warptone/stretch.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANALYZE_C1_HZ 32.703195662574829 ///< 440 Hz, 45 semitones down

enum { ANALYZE_MAX_FEATURES = 128 };

typedef enum analyze_format {
    ANALYZE_NPY,
    ANALYZE_NPZ,
    ANALYZE_CSV,
    ANALYZE_JSON,
    ANALYZE_PNG,
    ANALYZE_AUDIO, ///< signals: the two parts of hpss, a stretched or shifted one
} analyze_format;

typedef struct analyze_feature analyze_feature;

/// 0 is the default of each op.
typedef struct analyze_options {
    const analyze_feature *features[ANALYZE_MAX_FEATURES];
    analyze_feature *slopes[ANALYZE_MAX_FEATURES]; ///< those of them that are made for the call
    int n_features, n_slopes;
    int rate_hz; ///< 0 = the file's
    bool keep_channels;
    int n_fft, hop, win_length, n_mels, n_mfcc, n_bins, bins_per_octave, n_chroma;
    double fmin_hz, fmax_hz, margin, bpm, top_db;
    bool htk, backtrack, no_center;
    double speed, steps; ///< of time_stretch and pitch_shift
    wt_stretch_mode vocoder;
    bool keep_formants;
    int n_components, n_iter, seed; ///< of nmf; and of griffin_lim and mel_to_audio
    int kernel, kernel_bins, max_lags; ///< of medians, along time and along frequency; of autocorrelation
    double mask_power;
    bool hard_masks;
    wt_window_config window; ///< of spectra
    float *own_window;       ///< the samples of a custom one
    wt_stft_pad padding;     ///< likewise
    wt_mel_norm mel_norm;
    int dct_type;  ///< of mfcc
    double lifter; ///< likewise
    bool calibrated, fine; ///< pyin; tempi
    wt_nmf_solver solver;
    wt_nn_filter_config neighbours; ///< rows and columns are not looked at
    analyze_settings ops;
    analyze_effect_options effect;
    analyze_format format;
    const char *extension; ///< of audio
    int n_jobs, width, height, tile;
    wt_backend backend;
} analyze_options;

typedef struct analyze_place analyze_place;
typedef struct analyze_batch analyze_batch;

/// What a tile wants to know of its whole signal before columns can be made.
typedef enum analyze_need {
    ANALYZE_NEED_BAND = 1,      ///< its largest mel band
    ANALYZE_NEED_ONSET = 2,     ///< the same, of the bands that onset strength has
    ANALYZE_NEED_CONTRAST = 4,  ///< contrast's largest peak and valley
    ANALYZE_NEED_TUNING = 8,    ///< its tuning, by semitones,
    ANALYZE_NEED_CHROMA = 16,   ///< by the steps of chroma, from powers,
    ANALYZE_NEED_STEPS = 32,    ///< and by those of the constant-Q transform that is folded
    ANALYZE_NEED_LEVEL = 64,    ///< the gain that normalizes it
    ANALYZE_NEED_BIN = 128,     ///< its largest bin
} analyze_need;

enum { ANALYZE_TUNING, ANALYZE_TUNING_OF_CHROMA, ANALYZE_TUNING_OF_STEPS, ANALYZE_TUNINGS };

/// A channel of a signal that is worked on in tiles.
typedef struct analyze_whole {
    float band_db, bin_db, onset_peak, contrast_db[2]; ///< onset_peak is a power
    double tuning[ANALYZE_TUNINGS];
    double *smooth;      ///< pcen: [n_mels], from tile to tile
    bool smoothed;
    void *voice;         ///< vad: its state, from tile to tile
    int64_t n_speech;    ///< steps of vad so far
    wt_normalize_result level; ///< what normalize does,
    float gain;                ///< as a factor
    analyze_flow *flows[ANALYZE_FLOWS]; ///< of the first channel: all channels', from tile to tile
    int64_t begin, n;    ///< the tile's first sample, of the signal's; the signal's samples
    int64_t from, count; ///< the tile's own columns; count -1 = all from there
} analyze_whole;

/// A signal at work: one channel.
typedef struct analyze_signal {
    const analyze_options *options;
    const char *path; ///< for what needs the file as it is
    const float *pcm;
    int64_t n;
    int64_t stride; ///< samples from channel to channel; 0 = n
    int rate_hz;
    analyze_place *place; ///< NULL = the calling thread
    struct analyze_whole *whole; ///< [channels] of the signal that this is a tile of; NULL = no tile
    bool maps;                   ///< what is as long as the signal lies in files
} analyze_signal;

/// Whether a feature's columns can be made a tile at a time.
typedef enum analyze_tiles {
    ANALYZE_TILES,    ///< each from its own frame and `context` frames beside it
    ANALYZE_GATHERED, ///< no, but it is made of a row of numbers that can
    ANALYZE_OF_FILE,  ///< it looks at the file itself, all channels at its own rate, in order
} analyze_tiles;

enum { ANALYZE_CONTEXT = 4 };

/// The rows that features are gathered from, a number a frame.
typedef enum analyze_base {
    ANALYZE_BASE_NONE,
    ANALYZE_BASE_ONSET,
    ANALYZE_BASE_BEAT, ///< onset strength by the median
    ANALYZE_BASE_RMS,
    ANALYZE_BASE_SPEECH,  ///< a number a step of vad, of which a tile gives its own alone
    ANALYZE_BASE_SAMPLES, ///< the signal itself, in a file that is mapped
    ANALYZE_BASES,
} analyze_base;

/// A feature of one channel on the calling thread; of channels or files in place->pcm on a GPU; from a row of numbers
/// [n] of the whole signal; and how many samples beside its own it needs.
typedef wt_status analyze_here(const analyze_signal *signal, analyze_result *result);
typedef wt_status analyze_there(const analyze_batch *batch, analyze_result *parts);
typedef wt_status analyze_of_row(const analyze_signal *signal, const float *row, int64_t n, analyze_result *result);
typedef int64_t analyze_reach(const analyze_signal *signal);

struct analyze_feature {
    const char *name, *help;
    analyze_tiles tiles;
    analyze_here *compute; ///< NULL = on_gpu does that too: a file's channels together, at signal.pcm, when the place
                           ///< is NULL
    analyze_there *on_gpu; ///< parts [n_used]; NULL = not there
    analyze_flow_id flow;  ///< in place of both: the op that its signals go through
    int n_arrays;    ///< of one that goes in tiles, 0 = 1
    bool audio;      ///< it makes signals: audio formats hold it
    bool any_length; ///< on a GPU silence may follow: the frames behind the signal's are left out
    unsigned needs;  ///< analyze_need of a tile
    int context;     ///< frames, 0 = ANALYZE_CONTEXT
    analyze_reach *reach; ///< samples that it needs beside its own; NULL = those of a frame
    bool in_order;   ///< of a tile its own columns alone are the signal's
    bool above_zero; ///< a lowest frequency of 0 has no meaning for it
    analyze_base base;
    analyze_of_row *finish; ///< of a gathered feature: from its row [n]; NULL of samples: compute
    const analyze_feature *of; ///< it is the slope of that one,
    int order;                 ///< or that slope's, and so on
};

// ---- analyze_features.c

int analyze_n_features(void);
const analyze_feature *analyze_feature_at(int k);
/// "mel,chroma" into options->features. Errors: WT_ERR_BAD_ARG with the nearest name.
WT_CHECKED wt_status analyze_features_parse(const char *text, analyze_options *options);
/// All features of all channels; caller frees with analyze_result_free, also after an error.
///
///   pcm   [channels][n]
///
/// Errors: WT_ERR_BAD_ARG (lists of several channels), WT_ERR_NO_MEMORY, those of the ops.  [worker]
WT_CHECKED wt_status analyze_compute(const analyze_signal *signal, int channels, analyze_result *result);

/// How many of the features are of a kind.
int analyze_features_of(const analyze_options *options, analyze_tiles tiles);
/// Mel bands in decibels without a limit.
const analyze_feature *analyze_bands_of_peak(void);
const analyze_feature *analyze_precise_bands(void); ///< and those that onset strength has
/// Magnitudes, or powers, frame by frame: [frames][bins].
const analyze_feature *analyze_frames_of_spectra(bool squares);
const analyze_feature *analyze_bins_of_peak(void); ///< Bins in decibels, however deep.
/// Contrast's peaks, and its valleys behind them, in decibels likewise.
const analyze_feature *analyze_parts_of_contrast(void);
/// Both ways of onset strength, RMS, and speech: what rows are gathered by; NULL of samples.
const analyze_feature *analyze_feature_of_base(analyze_base base);

/// Put a feature's parts, one a channel, behind what the result holds; data is taken. Errors: WT_ERR_BAD_ARG (lists of
/// several channels), WT_ERR_NO_MEMORY.
WT_CHECKED wt_status analyze_join(const analyze_feature *feature, analyze_result *parts, int channels,
                                  analyze_result *result);

/// What a feature that is not of single channels makes of a batch, on its place: its flow's, else on_gpu's. Errors:
/// WT_ERR_UNSUPPORTED when it has neither.
WT_CHECKED wt_status analyze_compute_batch(const analyze_feature *feature, const analyze_batch *batch,
                                           analyze_result *parts);

// ---- analyze_delta.c

/// "chroma_delta", "chroma_delta2" ...: the feature whose name stands before, differentiated. Free with
/// analyze_slopes_free. Errors: WT_ERR_BAD_ARG: it is not one array of real numbers a frame.
WT_CHECKED wt_status analyze_slope_of(const char *name, const analyze_feature *of, int order, analyze_options *options);
void analyze_slopes_free(analyze_options *options);
/// May slopes be made in tiles? Errors: WT_ERR_UNSUPPORTED where they see a signal's other end.
WT_CHECKED wt_status analyze_check_wrap(const analyze_options *options);
/// In place of the arrays from `first` on.
WT_CHECKED wt_status analyze_differentiate(const analyze_options *options, const analyze_feature *slope,
                                           analyze_result *result, int first);
wt_delta_config analyze_delta_config(const analyze_options *options, int order);

/// Frequency at the middle of row k; NaN where rows are no frequencies.
double analyze_row_hz(const analyze_options *options, int rate_hz, const analyze_array *array, int64_t k);
int analyze_n_fft(const analyze_options *options);
int analyze_hop(const analyze_options *options);
int64_t analyze_frames(const analyze_options *options, int64_t n); ///< of `n` samples
/// Those of onset strength and of constant-Q transforms, which are centred always.
int64_t analyze_centred_frames(const analyze_options *options, int64_t n);
wt_mel_bank_config analyze_bank(const analyze_options *options, int rate_hz);

#ifdef __cplusplus
}
#endif
#endif
