#include "analyze.h"

#include <math.h>
#include <string.h>
#include <warptone/mel.h>

// clang-format off
const struct analyze_likes analyze_like = {
    .stft           = {.name = "stft", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_LINEAR},
    .spectrogram    = {.name = "spectrogram", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .mel            = {.name = "mel", .unit = "power", .rows = ANALYZE_ROWS_MEL},
    .mel_magnitude  = {.name = "mel", .unit = "magnitude", .rows = ANALYZE_ROWS_MEL},
    .mel_other      = {.name = "mel", .unit = "magnitude^p", .rows = ANALYZE_ROWS_MEL},
    .logmel         = {.name = "logmel", .unit = "dB", .rows = ANALYZE_ROWS_MEL},
    .whisper        = {.name = "whisper", .unit = "", .rows = ANALYZE_ROWS_MEL},
    .mfcc           = {.name = "mfcc", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .mfcc_to_mel    = {.name = "mfcc_to_mel", .unit = "power", .rows = ANALYZE_ROWS_MEL},
    .magnitudes_of_mfcc = {.name = "mfcc_to_mel", .unit = "magnitude", .rows = ANALYZE_ROWS_MEL},
    .others_of_mfcc = {.name = "mfcc_to_mel", .unit = "magnitude^p", .rows = ANALYZE_ROWS_MEL},
    .mfcc_delta     = {.name = "mfcc_delta", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .mfcc_delta2    = {.name = "mfcc_delta2", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .pcen           = {.name = "pcen", .unit = "", .rows = ANALYZE_ROWS_MEL},
    .cqt            = {.name = "cqt", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_CQT},
    .vqt            = {.name = "vqt", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_CQT},
    .pseudo_cqt     = {.name = "pseudo_cqt", .unit = "magnitude", .rows = ANALYZE_ROWS_CQT},
    .hybrid_cqt     = {.name = "hybrid_cqt", .unit = "magnitude", .rows = ANALYZE_ROWS_CQT},
    .nsgt           = {.name = "nsgt", .unit = "magnitude", .rows = ANALYZE_ROWS_CQT},
    .chroma         = {.name = "chroma", .unit = "", .rows = ANALYZE_ROWS_CHROMA},
    .chroma_cqt     = {.name = "chroma_cqt", .unit = "", .rows = ANALYZE_ROWS_CHROMA},
    .chroma_cens    = {.name = "chroma_cens", .unit = "", .rows = ANALYZE_ROWS_CHROMA},
    .tonnetz        = {.name = "tonnetz", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .harmonic       = {.name = "harmonic", .unit = "", .layout = ANALYZE_SAMPLES},
    .percussive     = {.name = "percussive", .unit = "", .layout = ANALYZE_SAMPLES},
    .time_stretch   = {.name = "time_stretch", .unit = "", .layout = ANALYZE_SAMPLES},
    .pitch_shift    = {.name = "pitch_shift", .unit = "", .layout = ANALYZE_SAMPLES},
    .griffin_lim    = {.name = "griffin_lim", .unit = "", .layout = ANALYZE_SAMPLES},
    .mel_to_audio   = {.name = "mel_to_audio", .unit = "", .layout = ANALYZE_SAMPLES},
    .mfcc_to_audio  = {.name = "mfcc_to_audio", .unit = "", .layout = ANALYZE_SAMPLES},
    .resample       = {.name = "resample", .unit = "", .layout = ANALYZE_SAMPLES},
    .filter         = {.name = "filter", .unit = "", .layout = ANALYZE_SAMPLES},
    .fir            = {.name = "fir", .unit = "", .layout = ANALYZE_SAMPLES},
    .convolve       = {.name = "convolve", .unit = "", .layout = ANALYZE_SAMPLES},
    .preemphasis    = {.name = "preemphasis", .unit = "", .layout = ANALYZE_SAMPLES},
    .deemphasis     = {.name = "deemphasis", .unit = "", .layout = ANALYZE_SAMPLES},
    .agc            = {.name = "agc", .unit = "", .layout = ANALYZE_SAMPLES},
    .denoise        = {.name = "denoise", .unit = "", .layout = ANALYZE_SAMPLES},
    .echo_cancel    = {.name = "echo_cancel", .unit = "", .layout = ANALYZE_SAMPLES},
    .filtfilt       = {.name = "filtfilt", .unit = "", .layout = ANALYZE_SAMPLES},
    .savgol         = {.name = "savgol", .unit = "", .layout = ANALYZE_SAMPLES},
    .normalize      = {.name = "normalize", .unit = "", .layout = ANALYZE_SAMPLES},
    .istft          = {.name = "istft", .unit = "", .layout = ANALYZE_SAMPLES},
    .icqt           = {.name = "icqt", .unit = "", .layout = ANALYZE_SAMPLES},
    .insgt          = {.name = "insgt", .unit = "", .layout = ANALYZE_SAMPLES},
    .components     = {.name = "components", .unit = "magnitude", .layout = ANALYZE_PARTS, .rows = ANALYZE_ROWS_LINEAR},
    .activations    = {.name = "activations", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .pitches        = {.name = "pitches", .unit = "Hz", .rows = ANALYZE_ROWS_LINEAR},
    .pitch_magnitudes = {.name = "pitch_magnitudes", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .salience       = {.name = "salience", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .reassigned_frequencies = {.name = "reassigned_frequencies", .unit = "Hz", .rows = ANALYZE_ROWS_LINEAR},
    .reassigned_times = {.name = "reassigned_times", .unit = "s", .rows = ANALYZE_ROWS_LINEAR},
    .reassigned_magnitudes = {.name = "reassigned_magnitudes", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .yin            = {.name = "yin", .unit = "Hz"},
    .f0             = {.name = "f0", .unit = "Hz"},
    .voiced         = {.name = "voiced", .unit = "", .type = ANALYZE_BOOL},
    .voiced_prob    = {.name = "voiced_prob", .unit = "share"},
    .onset_strength = {.name = "onset_strength", .unit = "dB"},
    .onsets         = {.name = "onsets", .unit = "frame", .type = ANALYZE_I32, .layout = ANALYZE_EVENTS},
    .beats          = {.name = "beats", .unit = "frame", .type = ANALYZE_I32, .layout = ANALYZE_EVENTS},
    .tempogram      = {.name = "tempogram", .unit = "", .rows = ANALYZE_ROWS_LAG},
    .fourier_tempogram = {.name = "fourier_tempogram", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_TEMPO},
    .tempo_ratios   = {.name = "tempo_ratios", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .plp            = {.name = "plp", .unit = ""},
    .centroid       = {.name = "centroid", .unit = "Hz"},
    .bandwidth      = {.name = "bandwidth", .unit = "Hz"},
    .rolloff        = {.name = "rolloff", .unit = "Hz"},
    .flatness       = {.name = "flatness", .unit = ""},
    .contrast       = {.name = "contrast", .unit = "dB", .rows = ANALYZE_ROWS_INDEX},
    .linear_contrast = {.name = "contrast", .unit = "magnitude", .rows = ANALYZE_ROWS_INDEX},
    .poly           = {.name = "poly", .unit = "", .rows = ANALYZE_ROWS_INDEX},
    .flux           = {.name = "flux", .unit = "magnitude"},
    .rms            = {.name = "rms", .unit = ""},
    .energy         = {.name = "energy", .unit = ""},
    .zcr            = {.name = "zcr", .unit = "share"},
    .trim           = {.name = "trim", .unit = "sample", .type = ANALYZE_I64, .layout = ANALYZE_SPANS},
    .split          = {.name = "split", .unit = "sample", .type = ANALYZE_I64, .layout = ANALYZE_SPANS},
    .tempos         = {.name = "tempos", .unit = "BPM", .type = ANALYZE_F64},
    .power          = {.name = "power", .unit = "power", .rows = ANALYZE_ROWS_LINEAR},
    .phase          = {.name = "phase", .unit = "rad", .rows = ANALYZE_ROWS_LINEAR},
    .spectrogram_db = {.name = "spectrogram_db", .unit = "dB", .rows = ANALYZE_ROWS_LINEAR},
    .fft            = {.name = "fft", .unit = "", .type = ANALYZE_C64, .layout = ANALYZE_BINS},
    .autocorrelation = {.name = "autocorrelation", .unit = "", .layout = ANALYZE_LAGS},
    .median         = {.name = "median", .unit = "", .layout = ANALYZE_SAMPLES},
    .median_spectrogram = {.name = "median_spectrogram", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .nn_filter      = {.name = "nn_filter", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .harmonic_mask  = {.name = "harmonic_mask", .unit = "share", .rows = ANALYZE_ROWS_LINEAR},
    .percussive_mask = {.name = "percussive_mask", .unit = "share", .rows = ANALYZE_ROWS_LINEAR},
    .residual       = {.name = "residual", .unit = "", .layout = ANALYZE_SAMPLES},
    .mel_to_stft    = {.name = "mel_to_stft", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR},
    .momentary      = {.name = "momentary_lufs", .unit = "LUFS", .layout = ANALYZE_TENTHS},
    .short_term     = {.name = "short_term_lufs", .unit = "LUFS", .layout = ANALYZE_TENTHS},
    .speech         = {.name = "speech", .unit = ""},
    .vad            = {.name = "vad", .unit = "sample", .type = ANALYZE_I64, .layout = ANALYZE_SPANS},
};
// clang-format on

const analyze_array *analyze_like_of(const char *name)
{
    const analyze_array *all = (const analyze_array *)&analyze_like;
    for (size_t k = 0; k < sizeof analyze_like / sizeof *all; k++)
        if (!strcmp(all[k].name, name)) return &all[k];
    return NULL;
}

size_t analyze_item_bytes(analyze_type type)
{
    static const size_t bytes[] = {[ANALYZE_F32] = 4, [ANALYZE_F64] = 8, [ANALYZE_C64] = 8, [ANALYZE_I32] = 4,
                                   [ANALYZE_I64] = 8, [ANALYZE_BOOL] = 1};
    return bytes[type];
}

wt_status analyze_add(analyze_result *result, const analyze_array *like, int64_t n_rows, int64_t n_columns, void **data)
{
    if (result->n_arrays == ANALYZE_MAX_ARRAYS)
        return wt_fail(WT_ERR_BAD_ARG, "analyze: more than %d arrays", ANALYZE_MAX_ARRAYS);
    analyze_array *a = &result->arrays[result->n_arrays];
    *a = *like;
    a->n_dims = a->layout == ANALYZE_VALUE ? 0 : a->rows || a->layout == ANALYZE_SPANS ? 2 : 1;
    if (a->n_dims == 2) a->shape[0] = n_rows;
    if (a->n_dims) a->shape[a->n_dims - 1] = n_columns;
    const size_t bytes = (size_t)analyze_count(a) * analyze_item_bytes(a->type);
    wt_status status = analyze_take(result->maps, bytes, a->name, &a->data, &a->mapped);
    if (status) return status;
    result->n_arrays++;
    *data = a->data;
    return WT_OK;
}

void analyze_turn(const float *in, int64_t rows, int64_t columns, int width, float *out)
{
    enum { TILE = 32 };
    for (int64_t r0 = 0; r0 < rows; r0 += TILE)
        for (int64_t c0 = 0; c0 < columns; c0 += TILE)
            for (int64_t c = c0; c < c0 + TILE && c < columns; c++)
                for (int64_t r = r0; r < r0 + TILE && r < rows; r++)
                    for (int w = 0; w < width; w++)
                        out[(c * rows + r) * width + w] = in[(r * columns + c) * width + w];
}

wt_status analyze_add_turned(analyze_result *result, const analyze_array *like, const float *in, int64_t n_columns,
                             int64_t n_rows)
{
    void *data;
    wt_status status = analyze_add(result, like, n_rows, n_columns, &data);
    if (!status) analyze_turn(in, n_columns, n_rows, like->type == ANALYZE_C64 ? 2 : 1, data);
    return status;
}

wt_status analyze_add_value(analyze_result *result, const char *name, const char *unit, double value)
{
    void *data;
    const analyze_array like = {.name = name, .unit = unit, .type = ANALYZE_F64, .layout = ANALYZE_VALUE};
    wt_status status = analyze_add(result, &like, 1, 1, &data);
    if (!status) *(double *)data = value;
    return status;
}

void analyze_result_free(analyze_result *result)
{
    for (int k = 0; k < result->n_arrays; k++) analyze_let_go(result->arrays[k].data, result->arrays[k].mapped);
    result->n_arrays = 0;
}

int64_t analyze_count(const analyze_array *array)
{
    int64_t count = 1;
    for (int d = 0; d < array->n_dims; d++) count *= array->shape[d];
    return count;
}

int64_t analyze_n_columns(const analyze_array *array) { return array->n_dims ? array->shape[array->n_dims - 1] : 1; }

int64_t analyze_n_rows(const analyze_array *array)
{
    int64_t count = 1;
    for (int d = 0; d < array->n_dims - 1; d++) count *= array->shape[d];
    return count;
}

double analyze_number(const analyze_array *array, int64_t k)
{
    const float *f = array->data;
    switch (array->type) {
    case ANALYZE_F32:
        return f[k];
    case ANALYZE_F64:
        return ((const double *)array->data)[k];
    case ANALYZE_C64:
        return hypot(f[2 * k], f[2 * k + 1]);
    case ANALYZE_I32:
        return ((const int *)array->data)[k];
    case ANALYZE_I64:
        return (double)((const int64_t *)array->data)[k];
    default:
        return ((const unsigned char *)array->data)[k];
    }
}

// Slaney's scale, Auditory Toolbox 1998: linear to 1 kHz (15 mels), then a 27th of ln 6.4 a mel; or HTK's.
static double to_mel(double hz, bool htk)
{
    if (htk) return 2595 * log10(1 + hz / 700);
    return hz < 1000 ? hz * 3 / 200 : 15 + 27 * log(hz / 1000) / log(6.4);
}

static double of_mel(double mel, bool htk)
{
    if (htk) return 700 * (pow(10, mel / 2595) - 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

/// Of nsgt without a tuning, of vqt by its intervals.
static double row_of_cqt(const analyze_options *o, const analyze_array *array, double fmin, int64_t k)
{
    const int n = strcmp(array->name, "vqt") ? 0 : o->ops.n_intervals;
    const int steps = n ? n : o->bins_per_octave ? o->bins_per_octave : 12;
    const double tuned = strcmp(array->name, "nsgt") ? fmin * exp2(o->ops.cqt.tuning / steps) : fmin;
    return n ? tuned * ldexp(o->ops.intervals[k % n], (int)(k / n)) : tuned * exp2((double)k / steps);
}

double analyze_row_hz(const analyze_options *options, int rate_hz, const analyze_array *array, int64_t k)
{
    const wt_mel_bank_config bank = analyze_bank(options, rate_hz);
    const double top = bank.fmax_hz > 0 ? bank.fmax_hz : rate_hz / 2.0;
    const double low = to_mel(bank.fmin_hz, bank.htk), high = to_mel(top, bank.htk);
    const double fmin = options->fmin_hz > 0 ? options->fmin_hz : ANALYZE_C1_HZ;
    const double n = (double)array->shape[array->n_dims - 2];
    switch (array->rows) {
    case ANALYZE_ROWS_LINEAR:
        return (double)k * rate_hz / analyze_n_fft(options);
    case ANALYZE_ROWS_MEL:
        return of_mel(low + (high - low) * (double)(k + 1) / (n + 1), bank.htk);
    case ANALYZE_ROWS_CQT:
        return row_of_cqt(options, array, fmin, k);
    default:
        return NAN;
    }
}
