/// Features of audio files, as arrays, tables and pictures.
///
/// analyze_features.c   which features there are, by name
/// analyze_spectral.c   spectra, mel bands, constant-Q, chroma, separation
/// analyze_rhythm.c     pitch, onsets, beats, loudness
/// analyze_level.c      shape of spectra, level, silence
/// analyze_peaks.c      where energy lies: pitches, salience, reassigned spectrograms
/// analyze_effects.c    time stretch, pitch shift, other rates;   analyze_effect.h  what other signals are made
/// analyze_delta.c      slopes of other features
/// analyze_invert.c     magnitudes taken apart, and made into signals again
/// analyze_nsgt.c       the constant-Q transform that has an inverse
/// analyze_fourier.c    spectra in other forms, of whole signals too, and autocorrelation
/// analyze_median.c     medians and nearest neighbours
/// analyze_separate.c   harmonic and percussive parts;   analyze_features.h  what the table names of these three
/// analyze_gpu.c        batches of signals on a GPU; analyze_gpu_spectral.c, _rhythm.c, _level.c  the same features there
/// analyze_array.c      what a feature makes: named arrays
/// analyze_numpy.c      arrays as NPY and NPZ;   analyze_text.c  as CSV and JSON;   analyze_plot.c  as PNG
/// analyze_options.c    the command line
/// analyze_job.c        files: load, compute, write, many at once
/// analyze_batch.c      which files go to a GPU together; analyze_work.c  the steps of such a batch; analyze_line.c  who
///                      takes which step
/// analyze_tiles.h      files too long to be loaded;   analyze_spill.c  what of them is held all the same
#ifndef WT_ANALYZE_H
#define WT_ANALYZE_H

#include "analyze_effect.h"
#include "process.h"

#include <stdio.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/decompose.h>
#include <warptone/device.h>
#include <warptone/loudness.h>
#include <warptone/mel.h>
#include <warptone/mfcc.h>
#include <warptone/nsgt.h>
#include <warptone/onset.h>
#include <warptone/pcen.h>
#include <warptone/pitch.h>
#include <warptone/silence.h>
#include <warptone/stretch.h>
#include <warptone/tempo.h>
#include <warptone/tuning.h>
#include <warptone/vad.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANALYZE_C1_HZ 32.703195662574829 ///< 440 Hz, 45 semitones down

enum { ANALYZE_MAX_FEATURES = 128, ANALYZE_MAX_ARRAYS = 160, ANALYZE_MAX_DIMS = 3 };

/// What the last dimension of an array counts.
typedef enum analyze_layout {
    ANALYZE_FRAMES,  ///< time steps of a hop
    ANALYZE_SAMPLES, ///< a signal
    ANALYZE_EVENTS,  ///< the array holds the frames at which something happens
    ANALYZE_SPANS,   ///< [n][2]: first sample of a stretch, and the first behind it
    ANALYZE_VALUE,   ///< a single number
    ANALYZE_PARTS,   ///< components of a spectrogram
    ANALYZE_BINS,    ///< frequencies of the whole signal
    ANALYZE_LAGS,    ///< samples between what is compared
} analyze_layout;

typedef enum analyze_type {
    ANALYZE_F32,
    ANALYZE_F64,
    ANALYZE_C64,
    ANALYZE_I32,
    ANALYZE_I64,
    ANALYZE_BOOL,
} analyze_type;

/// What the rows of a matrix are.
typedef enum analyze_rows {
    ANALYZE_ROWS_NONE,
    ANALYZE_ROWS_INDEX,  ///< a coefficient
    ANALYZE_ROWS_LINEAR, ///< frequency, k rate / n_fft
    ANALYZE_ROWS_MEL,
    ANALYZE_ROWS_CQT,
    ANALYZE_ROWS_CHROMA,
    ANALYZE_ROWS_LAG,   ///< frames between beats
    ANALYZE_ROWS_TEMPO, ///< tempo, k periods in 2 (rows - 1) frames
} analyze_rows;

typedef struct analyze_array {
    const char *name, *unit; ///< unit "" = none
    analyze_type type;
    analyze_layout layout;
    analyze_rows rows;
    int n_dims;       ///< 0 .. 3: [channels if more than one][rows][columns]
    int64_t shape[ANALYZE_MAX_DIMS]; ///< [n_dims]
    void *data;       ///< in C order
    size_t mapped;    ///< bytes of the mapping that data is; 0 = of malloc
} analyze_array;

typedef struct analyze_result {
    analyze_array arrays[ANALYZE_MAX_ARRAYS];
    int n_arrays;
    bool maps; ///< what is large lies in files
} analyze_result;

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
    bool htk, backtrack;
    double speed, steps; ///< of time_stretch and pitch_shift
    wt_stretch_mode vocoder;
    bool keep_formants;
    int n_components, n_iter, seed; ///< of nmf; and of griffin_lim and mel_to_audio
    int kernel, kernel_bins, max_lags; ///< of medians, along time and along frequency; of autocorrelation
    double mask_power;
    bool hard_masks;
    wt_window_config window; ///< of spectra
    wt_stft_pad padding;     ///< likewise
    wt_mel_norm mel_norm;
    int dct_type;  ///< of mfcc
    double lifter; ///< likewise
    bool calibrated, fine; ///< pyin; tempi
    wt_nmf_solver solver;
    wt_nn_filter_config neighbours; ///< rows and columns are not looked at
    analyze_effect_options effect;
    analyze_format format;
    const char *extension; ///< of audio
    int n_jobs, width, height, tile;
    wt_backend backend;
} analyze_options;

/// What a worker's time goes to.
typedef enum analyze_stage {
    ANALYZE_IDLE,    ///< others were at work on what this one waits for
    ANALYZE_LOOK,    ///< at the heads of files
    ANALYZE_OPEN,    ///< the device
    ANALYZE_READ,    ///< files: opened, decoded
    ANALYZE_MEMORY,  ///< taken of the device, and page-locked
    ANALYZE_PLANS,   ///< made for a GPU
    ANALYZE_COMPUTE, ///< by the worker itself, or given to a GPU
    ANALYZE_WAIT,    ///< for a GPU
    ANALYZE_GIVE,    ///< a GPU's results, to each file its own
    ANALYZE_WRITE,
    ANALYZE_STAGES,
} analyze_stage;
const char *analyze_stage_name(analyze_stage stage);

/// Nanoseconds of all workers.
typedef struct analyze_times {
    atomic_llong ns[ANALYZE_STAGES];
} analyze_times;

/// A worker's own.
typedef struct analyze_clock {
    analyze_stage stage; // since then
    int64_t since_ns, spent_ns[ANALYZE_STAGES];
} analyze_clock;

enum { ANALYZE_MAX_KEPT = 64, ANALYZE_ROOMS = 6 };

/// Files of one kind as they are in memory: [n_files][n][channels].
typedef struct analyze_packed {
    bool integers; ///< int16, else float
    int rate_hz, channels;
    int64_t n;
} analyze_packed;

/// A place on a GPU; device NULL = none. Plans and memory stay from batch to batch.
typedef struct analyze_place {
    analyze_clock *clock; // of the worker that is there
    wt_device *device;
    wt_stream *stream;
    wt_buffer *packed, *pcm, *rooms[ANALYZE_ROOMS]; // on the device
    wt_buffer *read, *fetched;                      // page-locked
    bool maps;                                      // what is fetched is large: in `mapped`, of so many bytes
    void *mapped;
    size_t mapped_bytes;
    struct analyze_kept {
        void *plan;
        void (*destroy)(void *plan);
        int variant, rate_hz, n_signals;
        int64_t n;
        analyze_packed packed;
    } kept[ANALYZE_MAX_KEPT]; // the last used last
    int n_kept;
} analyze_place;

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
    float gain;          ///< of normalize
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
} analyze_signal;

/// Whether a feature's columns can be made a tile at a time.
typedef enum analyze_tiles {
    ANALYZE_TILES,    ///< each from its own frame and `context` frames beside it
    ANALYZE_GATHERED, ///< no, but it is made of a row of numbers that can
    ANALYZE_OF_FILE,  ///< it looks at the file itself, all channels at its own rate, in order
} analyze_tiles;

enum {
    ANALYZE_CONTEXT = 4,
    ANALYZE_CONTEXT_OF_CQT = -1, ///< as far as its longest filter and its halvings reach
};

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

/// Signals of one length on a worker's GPU: files of one kind, or the channels of one.
typedef struct analyze_batch {
    analyze_signal signal;     ///< each: options, place, rate and n; the rest is not looked at
    int n_used, n_signals;     ///< signals, and signals of the plans: silence behind those that there are
    int channels;              ///< of a file that are signals of their own
    const int64_t *lengths;    ///< [n_used] what is not silence of them; NULL = all
    analyze_whole *whole;      ///< [n_used] as a signal's; NULL = no tiles
    const char *const *paths;  ///< [n_used / channels]
    analyze_packed packed;     ///< the files in place->packed; channels 0 = they are not there
    float *host;               ///< the signals for the calling thread, once one has asked for them
} analyze_batch;

struct analyze_feature {
    const char *name, *help;
    analyze_tiles tiles;
    wt_status (*compute)(const analyze_signal *signal, analyze_result *result); ///< NULL = on_gpu does that too: a
                                                    ///< file's channels together, at signal.pcm, when the place is NULL
    wt_status (*on_gpu)(const analyze_batch *batch, analyze_result *parts); ///< parts [n_used]; NULL = not there
    int n_arrays;    ///< of one that goes in tiles, 0 = 1
    bool audio;      ///< it makes signals: audio formats hold it
    bool any_length; ///< on a GPU silence may follow: the frames behind the signal's are left out
    unsigned needs;  ///< analyze_need of a tile
    int context;     ///< frames, 0 = ANALYZE_CONTEXT
    int64_t (*reach)(const analyze_signal *signal); ///< samples that it needs beside its own; NULL = those of a frame
    bool in_order;   ///< of a tile its own columns alone are the signal's
    bool above_zero; ///< a lowest frequency of 0 has no meaning for it
    analyze_base base;
    /// Of a gathered feature: from its row [n]. NULL of samples: compute.
    wt_status (*finish)(const analyze_signal *signal, const float *row, int64_t n, analyze_result *result);
    const analyze_feature *of; ///< it is the slope of that one,
    int order;                 ///< or that slope's
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

/// One feature of a signal's channels on the calling thread, behind what the result holds.
WT_CHECKED wt_status analyze_compute_feature(const analyze_feature *feature, const analyze_signal *signal, int channels,
                                             analyze_result *result);

// ---- analyze_delta.c

/// "chroma_delta", "chroma_delta2": the feature whose name stands before, differentiated. Free with
/// analyze_slopes_free. Errors: WT_ERR_BAD_ARG: it is not one array of real numbers a frame.
WT_CHECKED wt_status analyze_slope_of(const char *name, const analyze_feature *of, int order, analyze_options *options);
void analyze_slopes_free(analyze_options *options);
/// In place of the arrays from `first` on.
WT_CHECKED wt_status analyze_differentiate(const analyze_feature *slope, analyze_result *result, int first);

// ---- analyze_gpu.c

/// The worker's time is another stage's from now on; returns the one before.  [worker]
analyze_stage analyze_enter(analyze_clock *clock, analyze_stage stage);
analyze_clock analyze_clock_start(void); ///< Idle.
void analyze_clock_stop(analyze_clock *clock, analyze_times *times); ///< Its time goes to all workers'.
/// A place on the first GPU; the CPU leaves it empty. Errors: those of wt_device_open.  [worker]
WT_CHECKED wt_status analyze_place_open(wt_backend backend, analyze_place *place);
void analyze_place_close(analyze_place *place); ///< An empty one is allowed.  [worker]
/// A buffer of at least so many bytes; what lay in a smaller one is lost.
WT_CHECKED wt_status analyze_grow(analyze_place *place, wt_memory memory, size_t bytes, wt_buffer **buffer);
/// A length that many signals share, up to an eighth more than `n`; and whether all features allow it.
int64_t analyze_shared_length(int64_t n);
bool analyze_any_length(const analyze_options *options);

/// All features of the signals in place->pcm; what a GPU refuses the calling thread does.
///
///   results   [n_used / channels]   empty; caller frees, also after an error
WT_CHECKED wt_status analyze_batch_compute(analyze_batch *batch, analyze_result *results);
/// analyze_compute on the signal's place: its channels as a batch.
WT_CHECKED wt_status analyze_compute_on_gpu(const analyze_signal *signal, int channels, analyze_result *result);

/// One feature of one channel on the signal's place. Errors: also WT_ERR_UNSUPPORTED and WT_ERR_NO_MEMORY, after which
/// the calling thread may do it; the result is then empty.
WT_CHECKED wt_status analyze_feature_on_gpu(const analyze_signal *signal, const analyze_feature *feature,
                                            analyze_result *result);

/// How to make a plan for a batch; each variant of it has its own.
typedef struct analyze_maker {
    wt_status (*create)(const analyze_batch *batch, int variant, void **plan);
    void (*destroy)(void *plan);
} analyze_maker;
/// The place's plan of this kind, made when it is not there yet; the place keeps it.
WT_CHECKED wt_status analyze_kept_plan(const analyze_batch *batch, const analyze_maker *maker, int variant,
                                       void **plan);
/// Samples of the files in place->packed to planar float; variant 1: to the mean of their channels.
extern const analyze_maker analyze_pcm_maker;
/// Memory `k` of the place's on the device, whatever lay in it.
WT_CHECKED wt_status analyze_room(const analyze_batch *batch, int k, size_t bytes, wt_buffer **room);
/// Copy to the host and wait; `data` is borrowed until the next call.
WT_CHECKED wt_status analyze_fetch(const analyze_batch *batch, const wt_buffer *from, size_t bytes, const void **data);
/// Each signal's own columns of [n_signals][n_rows][n_made], or, turned, of [n_signals][n_made][n_rows].
WT_CHECKED wt_status analyze_give(const analyze_batch *batch, analyze_result *parts, const analyze_array *like,
                                  const void *data, int64_t n_rows, int64_t n_made, bool turned);
/// The place's plan of spectra, and of the way back to signals as long as the batch's.
WT_CHECKED wt_status analyze_stft_on_gpu(const analyze_batch *batch, wt_stft_output output, bool precise,
                                         wt_stft_plan **plan);
/// Magnitudes or whatever output of all signals' spectra, frame by frame, in room 0; `precise`: by transforms in double.
WT_CHECKED wt_status analyze_spectra_on_gpu(const analyze_batch *batch, wt_stft_output output, bool precise,
                                            wt_buffer **spectra, int64_t *n_frames);

// ---- analyze_spill.c

/// A file without a name, in $TMPDIR or /var/tmp, that is gone when it is closed.
WT_CHECKED wt_status analyze_spill_open(FILE **file);
/// Zeros in such a file; caller frees with munmap or analyze_let_go. Errors: WT_ERR_FILE naming what it was for.
WT_CHECKED wt_status analyze_map(size_t bytes, const char *name, void **memory);
/// Memory for `name`, where it is large and `maps` in a file; caller frees with analyze_let_go.
WT_CHECKED wt_status analyze_take(bool maps, size_t bytes, const char *name, void **data, size_t *mapped);
void analyze_let_go(void *data, size_t mapped); ///< NULL is allowed.

// ---- analyze_array.c

/// What the features' arrays are like.
extern const struct analyze_likes {
    analyze_array stft, spectrogram, mel, logmel, whisper, mfcc, mfcc_delta, mfcc_delta2, pcen, cqt, vqt, pseudo_cqt,
        hybrid_cqt, nsgt, chroma, chroma_cqt, chroma_cens,
        tonnetz, harmonic, percussive, yin, f0, voiced, voiced_prob, onset_strength, onsets, beats, tempogram, plp,
        centroid, bandwidth, rolloff, flatness, contrast, poly, flux, rms, energy, zcr, trim, split, speech, vad, time_stretch,
        pitch_shift, pitches, pitch_magnitudes, salience, reassigned_frequencies, reassigned_times,
        reassigned_magnitudes, fourier_tempogram, tempo_ratios, tempos, components, activations, griffin_lim, mel_to_audio, resample, filter, fir,
        convolve, preemphasis, deemphasis, agc, denoise, echo_cancel, filtfilt, savgol, normalize, istft, icqt, insgt,
        power, phase, spectrogram_db, fft, autocorrelation, median, median_spectrogram, nn_filter, harmonic_mask,
        percussive_mask, residual;
} analyze_like;
/// That of a feature that is one array of its name; NULL = there is none.
const analyze_array *analyze_like_of(const char *name);

/// Add an array [n_rows][n_columns], [n_columns] when `rows` is none, or one number; its data is not initialised.
WT_CHECKED wt_status analyze_add(analyze_result *result, const analyze_array *like, int64_t n_rows, int64_t n_columns,
                                 void **data);
/// Turn [n_columns][n_rows] into an array.
WT_CHECKED wt_status analyze_add_turned(analyze_result *result, const analyze_array *like, const float *in,
                                        int64_t n_columns, int64_t n_rows);
WT_CHECKED wt_status analyze_add_value(analyze_result *result, const char *name, const char *unit, double value);
void analyze_result_free(analyze_result *result);
size_t analyze_item_bytes(analyze_type type);
int64_t analyze_count(const analyze_array *array); ///< elements
int64_t analyze_n_rows(const analyze_array *array);    ///< all channels' rows
int64_t analyze_n_columns(const analyze_array *array); ///< 1 of a single number
/// Element k as a number; of a complex one its magnitude.
double analyze_number(const analyze_array *array, int64_t k);
/// Frequency at the middle of row k; NaN where rows are no frequencies.
double analyze_row_hz(const analyze_options *options, int rate_hz, const analyze_array *array, int64_t k);

// ---- analyze_spectral.c, analyze_rhythm.c, analyze_level.c: the features, as the table names them

wt_status analyze_stft(const analyze_signal *s, analyze_result *r);
wt_status analyze_spectrogram(const analyze_signal *s, analyze_result *r);
wt_status analyze_mel(const analyze_signal *s, analyze_result *r);
wt_status analyze_logmel(const analyze_signal *s, analyze_result *r);
wt_status analyze_whisper(const analyze_signal *s, analyze_result *r);
wt_status analyze_bands(const analyze_signal *s, analyze_result *r);
wt_status analyze_mfcc(const analyze_signal *s, analyze_result *r);
wt_status analyze_mfcc_delta(const analyze_signal *s, analyze_result *r);
wt_status analyze_mfcc_delta2(const analyze_signal *s, analyze_result *r);
wt_status analyze_pcen(const analyze_signal *s, analyze_result *r);
wt_status analyze_cqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_vqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_pseudo_cqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_hybrid_cqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_nsgt(const analyze_signal *s, analyze_result *r);
wt_status analyze_chroma(const analyze_signal *s, analyze_result *r);
wt_status analyze_chroma_cqt(const analyze_signal *s, analyze_result *r);
wt_status analyze_chroma_cens(const analyze_signal *s, analyze_result *r);
wt_status analyze_tonnetz(const analyze_signal *s, analyze_result *r);
wt_status analyze_tuning(const analyze_signal *s, analyze_result *r);
wt_status analyze_yin(const analyze_signal *s, analyze_result *r);
wt_status analyze_pyin(const analyze_signal *s, analyze_result *r);
wt_status analyze_onset_strength(const analyze_signal *s, analyze_result *r);
wt_status analyze_onsets(const analyze_signal *s, analyze_result *r);
wt_status analyze_tempo(const analyze_signal *s, analyze_result *r);
wt_status analyze_tempos(const analyze_signal *s, analyze_result *r);
int64_t analyze_tempos_reach(const analyze_signal *s);
wt_status analyze_beats(const analyze_signal *s, analyze_result *r);
wt_status analyze_tempogram(const analyze_signal *s, analyze_result *r);
wt_status analyze_plp(const analyze_signal *s, analyze_result *r);
wt_status analyze_loudness(const analyze_signal *s, analyze_result *r);
wt_status analyze_time_stretch(const analyze_signal *s, analyze_result *r);
wt_status analyze_pitch_shift(const analyze_signal *s, analyze_result *r);
wt_status analyze_piptrack(const analyze_signal *s, analyze_result *r);
wt_status analyze_salience(const analyze_signal *s, analyze_result *r);
wt_status analyze_reassigned(const analyze_signal *s, analyze_result *r);
wt_status analyze_fourier_tempogram(const analyze_signal *s, analyze_result *r);
wt_status analyze_tempo_ratios(const analyze_signal *s, analyze_result *r);
wt_status analyze_nmf(const analyze_signal *s, analyze_result *r);
wt_status analyze_griffin_lim(const analyze_signal *s, analyze_result *r);
wt_status analyze_mel_to_audio(const analyze_signal *s, analyze_result *r);
wt_status analyze_beat_strength(const analyze_signal *s, analyze_result *r);
wt_status analyze_precise_mel(const analyze_signal *s, analyze_result *r);
wt_status analyze_contrast_parts(const analyze_signal *s, analyze_result *r);
wt_status analyze_frames_of_magnitudes(const analyze_signal *s, analyze_result *r);
wt_status analyze_frames_of_powers(const analyze_signal *s, analyze_result *r);
wt_status analyze_speech(const analyze_signal *s, analyze_result *r); ///< A number a step of vad, 1 = speech

// From rows; analyze_tuning_known takes none.
wt_status analyze_pyin_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_whisper_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_time_stretch_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_pitch_shift_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r);
wt_status analyze_onsets_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r);
wt_status analyze_tempo_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r);
wt_status analyze_beats_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r);
wt_status analyze_plp_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r);
wt_status analyze_trim_of(const analyze_signal *s, const float *rms, int64_t n, analyze_result *r);
wt_status analyze_split_of(const analyze_signal *s, const float *rms, int64_t n, analyze_result *r);
wt_status analyze_vad_of(const analyze_signal *s, const float *speech, int64_t n, analyze_result *r);
wt_status analyze_tuning_known(const analyze_signal *s, const float *row, int64_t n, analyze_result *r);

// ---- analyze_gpu_spectral.c, analyze_gpu_rhythm.c, analyze_gpu_level.c: the same on a GPU

wt_status analyze_gpu_stft(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_spectrogram(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_frames_of_magnitudes(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_frames_of_powers(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_mel(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_bands(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_precise_mel(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_logmel(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_whisper(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_mfcc(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_mfcc_delta(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_mfcc_delta2(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_pcen(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_cqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_vqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_pseudo_cqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_hybrid_cqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_chroma(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_chroma_cqt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_chroma_cens(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tonnetz(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tuning(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_yin(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_pyin(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_onset_strength(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_beat_strength(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_onsets(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tempo(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tempos(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_beats(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tempogram(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_plp(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_loudness(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_time_stretch(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_pitch_shift(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_centroid(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_bandwidth(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_rolloff(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_flatness(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_contrast(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_contrast_parts(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_poly(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_flux(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_rms(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_energy(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_zcr(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_trim(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_split(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_speech(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_nsgt(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_nmf(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_griffin_lim(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_mel_to_audio(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_piptrack(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_salience(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_reassigned(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_fourier_tempogram(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_tempo_ratios(const analyze_batch *b, analyze_result *parts);
wt_status analyze_gpu_vad(const analyze_batch *b, analyze_result *parts);

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
wt_mel_config analyze_mel_config(const analyze_signal *s, analyze_mel_kind kind);
wt_mfcc_config analyze_mfcc_config(const analyze_signal *s);
/// Keep the last array's decibels within 80 of the whole signal's largest; NULL = of its own.
void analyze_limit(analyze_result *r, const float *largest_db);
/// On a GPU frames behind a signal's own reach into it, and may be louder than those: then its peak is looked for later.
bool analyze_limits_later(const analyze_batch *batch);
/// In place of the last array, of decibels and of coefficients.
wt_status analyze_mfcc_of_bands(const analyze_signal *s, analyze_result *r);
wt_status analyze_delta_of_mfcc(analyze_result *r, int order);
wt_pcen_config analyze_pcen_config(const analyze_signal *s);
wt_cqt_config analyze_cqt_config(const analyze_signal *s, wt_cqt_kind kind);
/// librosa's chroma_cqt: 7 octaves in steps of a third of a semitone, and how they are folded.
wt_cqt_config analyze_folded_cqt(const analyze_signal *s);
wt_chroma_cqt_config analyze_folding(const analyze_signal *s, wt_chroma_norm norm);
wt_chroma_config analyze_chroma_config(const analyze_signal *s);
wt_tuning_config analyze_tuning_config(const analyze_signal *s, int64_t n_frames, int bins_per_octave);
wt_nsgt_config analyze_nsgt_config(const analyze_signal *s, int n_slices, int n_signals);
wt_pitch_frames analyze_pitch_frames(const analyze_signal *s);
wt_onset_config analyze_onset_config(const analyze_signal *s, bool median);
double analyze_onset_floor(float peak); ///< 80 dB below it
wt_tempo_config analyze_tempo_config(const analyze_signal *s);
wt_status analyze_add_pyin(analyze_result *r, const float *f0, const float *voiced, const float *probability, int64_t n);
wt_status analyze_add_events(analyze_result *r, const analyze_array *like, const int *frames, int64_t count);
wt_status analyze_add_loudness(analyze_result *r, const wt_loudness_values *values);
wt_status analyze_add_spans(analyze_result *r, const analyze_array *like, const wt_span *spans, int64_t count);
wt_level_config analyze_level_config(const analyze_signal *s);
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
/// [rows][columns] of items of `width` floats to [columns][rows], in tiles that stay in the cache.
void analyze_turn(const float *in, int64_t rows, int64_t columns, int width, float *out);

wt_status analyze_centroid(const analyze_signal *s, analyze_result *r);
wt_status analyze_bandwidth(const analyze_signal *s, analyze_result *r);
wt_status analyze_rolloff(const analyze_signal *s, analyze_result *r);
wt_status analyze_flatness(const analyze_signal *s, analyze_result *r);
wt_status analyze_contrast(const analyze_signal *s, analyze_result *r);
wt_status analyze_poly(const analyze_signal *s, analyze_result *r);
wt_status analyze_flux(const analyze_signal *s, analyze_result *r);
wt_status analyze_rms(const analyze_signal *s, analyze_result *r);
wt_status analyze_energy(const analyze_signal *s, analyze_result *r);
wt_status analyze_zcr(const analyze_signal *s, analyze_result *r);
wt_status analyze_trim(const analyze_signal *s, analyze_result *r);
wt_status analyze_split(const analyze_signal *s, analyze_result *r);
wt_status analyze_vad(const analyze_signal *s, analyze_result *r);

/// Spectra of a signal, frame by frame: [n_frames][bins][2], or sizes [n_frames][bins].
typedef struct analyze_spectra {
    wt_stft *stft;
    int64_t n_frames;
    int bins;
    float *values;
} analyze_spectra;

/// Complex ones, magnitudes or powers; `precise`: by transforms in double (stft.h). Free with analyze_spectra_free, also
/// after an error.
WT_CHECKED wt_status analyze_spectra_make(const analyze_signal *s, wt_stft_output output, bool precise,
                                          analyze_spectra *x);
void analyze_spectra_free(analyze_spectra *x);

int analyze_n_fft(const analyze_options *options);
int analyze_hop(const analyze_options *options);
int64_t analyze_frames(const analyze_options *options, int64_t n); ///< of `n` samples, centred
wt_mel_bank_config analyze_bank(const analyze_options *options, int rate_hz);

// ---- what is written

/// What the writers are told: the arrays, and what they were made of (one channel's signal for pictures).
typedef struct analyze_report {
    const analyze_options *options;
    const analyze_result *result;
    const char *input;
    const float *pcm; ///< [channels][n]
    int64_t n;
    int rate_hz, channels;
} analyze_report;

/// Each writes to an open file; a failed write shows in ferror(out). Errors: WT_ERR_BAD_ARG when the format cannot hold
/// what there is.  [worker]
WT_CHECKED wt_status analyze_write_npy(const analyze_report *report, FILE *out);
WT_CHECKED wt_status analyze_write_npz(const analyze_report *report, FILE *out);
WT_CHECKED wt_status analyze_write_csv(const analyze_report *report, FILE *out);
/// One table holds arrays of one layout and length. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status analyze_csv_check(const analyze_result *result);
/// A table in parts: its head, and `count` rows from column `from` of `tile` on, which begin at frame `first`.
WT_CHECKED wt_status analyze_csv_head(const analyze_report *report, FILE *out);
void analyze_csv_rows(const analyze_report *report, const analyze_result *tile, int64_t first, int64_t from,
                      int64_t count, FILE *out);
WT_CHECKED wt_status analyze_write_json(const analyze_report *report, FILE *out);

/// NPY or NPZ in parts, in any order, on a file that can be read: where each array's data stands.
typedef struct analyze_numpy {
    struct analyze_member {
        char name[64];
        uint32_t crc;
        uint64_t size, offset;
    } members[ANALYZE_MAX_ARRAYS];
    int64_t data[ANALYZE_MAX_ARRAYS];
    bool zip, wide; ///< wide: with sizes in 64 bits, as 4 GiB and more want them
} analyze_numpy;

/// From the report's arrays, whose data is not read; the file's `wide` may be set before.
WT_CHECKED wt_status analyze_numpy_lay(const analyze_report *report, analyze_numpy *file);
/// Columns of a tile; of signals `hop` samples a column.
typedef struct analyze_part {
    int64_t first, from, count; ///< of the tile's arrays from `from` on, as the whole's from `first` on; -1 = all
    int hop;
} analyze_part;
/// Array k of the tile is array places[k] of the whole.
WT_CHECKED wt_status analyze_numpy_put(const analyze_numpy *file, int fd, const analyze_result *whole,
                                       const analyze_result *tile, const int *places, const analyze_part *part);
/// Array k of the whole, whose data is there.
WT_CHECKED wt_status analyze_numpy_put_whole(const analyze_numpy *file, int fd, const analyze_result *whole, int k);
/// Write the headers, which have check sums of what was put.
WT_CHECKED wt_status analyze_numpy_finish(analyze_numpy *file, int fd, const analyze_result *whole);

/// Errors: WT_ERR_BAD_ARG (nothing to draw), WT_ERR_NO_MEMORY, WT_ERR_FILE.  [worker]
WT_CHECKED wt_status analyze_plot(const analyze_report *report, const char *path);

// ---- analyze_job.c

/// The format of an extension, without its dot, and whether there is one. For audio options->extension is set.
WT_CHECKED wt_status analyze_format_of(const char *path, const char *extension, analyze_options *options);
/// The mean of rows `stride` apart, into the first.
void analyze_fold(float *rows, int channels, int64_t n, int64_t stride);
/// One file by itself: what became of it stands in the item.  [worker]
void analyze_do_item(const analyze_options *options, analyze_place *place, process_item *item);
/// The features to a file, or - for standard output. Errors: WT_ERR_FILE, those of the format.  [worker]
WT_CHECKED wt_status analyze_write_result(const analyze_report *report, const char *output);
/// One of the parts of hpss, beside `output`. Errors: those of wt_audio_writer_open.  [worker]
WT_CHECKED wt_status analyze_part_open(const analyze_report *report, const analyze_array *part, const char *output,
                                       wt_audio_writer **writer);
/// This thread's last error into the item: sentences of the ops do not know the file.  [worker]
void analyze_note_error(process_item *item, wt_status status);
void analyze_item_done(process_run *run, process_item *item); ///< Count it.  [worker]
/// Do all items on options->n_jobs threads; errors of single files stand in their items. `times` begins at 0.
/// Errors: only what ends the whole run.  [main]
WT_CHECKED wt_status analyze_run(const analyze_options *options, process_run *run, void (*tick)(void *user),
                                 void *user, analyze_times *times);

// ---- analyze_batch.c

/// The run's files in batches for a GPU.
typedef struct analyze_batches analyze_batches;
/// Look at all files, on options->n_jobs threads; what cannot be read, or is too long, will be done by itself. Free
/// with analyze_batches_free, also after an error.  [main]
WT_CHECKED wt_status analyze_batches_make(const analyze_options *options, process_run *run, void (*tick)(void *user),
                                          void *user, analyze_times *times, analyze_batches **batches);
void analyze_batches_free(analyze_batches *batches); ///< NULL is allowed.  [main]

// ---- analyze_line.c

int analyze_line_width(const analyze_options *options); ///< batches that are under way at once
/// Do all batches on options->n_jobs threads. Errors: only what ends the whole run.  [main]
WT_CHECKED wt_status analyze_line_run(const analyze_batches *batches, void (*tick)(void *user), void *user,
                                      analyze_times *times);

#ifdef __cplusplus
}
#endif
#endif
