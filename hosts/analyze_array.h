/// What a feature makes: named arrays (analyze_array.c), and where they lie (analyze_spill.c).
#ifndef WT_ANALYZE_ARRAY_H
#define WT_ANALYZE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <warptone/normalize.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ANALYZE_MAX_ARRAYS = 160, ANALYZE_MAX_DIMS = 3 };

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
    ANALYZE_TENTHS,  ///< time steps of a tenth of a second, each at its end
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
    wt_normalize_result level; ///< what normalize did; zeros of everything else
} analyze_result;

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
    analyze_array stft, spectrogram, mel, mel_magnitude, mel_other, logmel, whisper, mfcc, mfcc_delta, mfcc_delta2,
        pcen, cqt, vqt, pseudo_cqt, hybrid_cqt, nsgt, chroma, chroma_cqt, chroma_cens,
        tonnetz, harmonic, percussive, yin, f0, voiced, voiced_prob, onset_strength, onsets, beats, tempogram, plp,
        centroid, bandwidth, rolloff, flatness, contrast, linear_contrast, poly, flux, rms, energy, zcr, trim, split,
        speech, vad, time_stretch, pitch_shift, pitches, pitch_magnitudes, salience, reassigned_frequencies,
        reassigned_times, reassigned_magnitudes, fourier_tempogram, tempo_ratios, tempos, components, activations,
        griffin_lim, mel_to_audio, mfcc_to_mel, magnitudes_of_mfcc, others_of_mfcc,
        mfcc_to_audio, resample, filter, fir,
        convolve, preemphasis, deemphasis, agc, denoise, echo_cancel, filtfilt, savgol, normalize, istft, icqt, insgt,
        power, phase, spectrogram_db, fft, autocorrelation, median, median_spectrogram, nn_filter, harmonic_mask,
        percussive_mask, residual, mel_to_stft, momentary, short_term;
} analyze_like;
/// That of a feature that is one array of its name; NULL = there is none.
const analyze_array *analyze_like_of(const char *name);

/// Add an array [n_rows][n_columns], [n_columns] when `rows` is none, or one number; its data is not initialised.
WT_CHECKED wt_status analyze_add(analyze_result *result, const analyze_array *like, int64_t n_rows, int64_t n_columns,
                                 void **data);
/// Turn [n_columns][n_rows] into an array.
WT_CHECKED wt_status analyze_add_turned(analyze_result *result, const analyze_array *like, const float *in,
                                        int64_t n_columns, int64_t n_rows);
/// [rows][columns] of items of `width` floats to [columns][rows], in tiles that stay in the cache.
void analyze_turn(const float *in, int64_t rows, int64_t columns, int width, float *out);
WT_CHECKED wt_status analyze_add_value(analyze_result *result, const char *name, const char *unit, double value);
void analyze_result_free(analyze_result *result);
size_t analyze_item_bytes(analyze_type type);
int64_t analyze_count(const analyze_array *array); ///< elements
int64_t analyze_n_rows(const analyze_array *array);    ///< all channels' rows
int64_t analyze_n_columns(const analyze_array *array); ///< 1 of a single number
/// Element k as a number; of a complex one its magnitude.
double analyze_number(const analyze_array *array, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
