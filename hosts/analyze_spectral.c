#include "analyze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chroma.h>
#include <warptone/cqt.h>
#include <warptone/delta.h>
#include <warptone/hpss.h>
#include <warptone/mfcc.h>
#include <warptone/pcen.h>
#include <warptone/tuning.h>

int analyze_n_fft(const analyze_options *options) { return options->n_fft ? options->n_fft : 2048; }

int analyze_hop(const analyze_options *options) { return options->hop ? options->hop : 512; }

wt_mel_bank_config analyze_bank(const analyze_options *options, int rate_hz)
{
    return (wt_mel_bank_config){.rate_hz = rate_hz, .n_fft = analyze_n_fft(options), .n_mels = options->n_mels,
                                .fmin_hz = options->fmin_hz, .fmax_hz = options->fmax_hz, .htk = options->htk};
}

static wt_stft_config stft_config(const analyze_options *o)
{
    return (wt_stft_config){.n_fft = analyze_n_fft(o), .win_length = o->win_length, .hop = analyze_hop(o)};
}

/// [rows][columns] of items of `width` floats to [columns][rows], in tiles that stay in the cache.
static void turn(const float *in, int64_t rows, int64_t columns, int width, float *out)
{
    enum { TILE = 32 };
    for (int64_t r0 = 0; r0 < rows; r0 += TILE)
        for (int64_t c0 = 0; c0 < columns; c0 += TILE)
            for (int64_t c = c0; c < c0 + TILE && c < columns; c++)
                for (int64_t r = r0; r < r0 + TILE && r < rows; r++)
                    for (int w = 0; w < width; w++)
                        out[(c * rows + r) * width + w] = in[(r * columns + c) * width + w];
}

/// Turn [n_frames][n_rows] into an array of the result.
static wt_status add_turned(analyze_result *r, const analyze_array *like, const float *in, int64_t n_frames,
                            int64_t n_rows)
{
    void *data;
    wt_status status = analyze_add(r, like, n_rows, n_frames, &data);
    if (!status) turn(in, n_frames, n_rows, like->type == ANALYZE_C64 ? 2 : 1, data);
    return status;
}

// ---- Fourier

void analyze_spectra_free(analyze_spectra *x)
{
    wt_stft_destroy(x->stft);
    free(x->values);
}

static wt_status enqueue_stft(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_stft_plan_forward(op, stream, in, 0, out, 0);
}

static wt_status make_stft(const analyze_signal *s, int variant, int64_t n, void **plan)
{
    (void)variant;
    const wt_stft_plan_config config = {.stft = stft_config(s->options), .n_samples = n};
    return wt_stft_plan_create(analyze_gpu(s), &config, (wt_stft_plan **)plan);
}

static void destroy_stft(void *plan) { wt_stft_plan_destroy(plan); }

static wt_status spectra_on_gpu(const analyze_signal *s, analyze_spectra *x)
{
    void *plan;
    const int64_t n = analyze_shared_length(s->n);
    wt_status status = analyze_kept_plan(s, &(analyze_maker){make_stft, destroy_stft}, 0, n, &plan);
    if (status) return status;
    const size_t row = (size_t)x->bins * 2;
    const analyze_flow flow = {s->pcm, (size_t)s->n, (size_t)n, x->values, (size_t)x->n_frames * row,
                               (size_t)wt_stft_plan_frames(plan) * row};
    return analyze_run_flow(s, enqueue_stft, plan, &flow);
}

wt_status analyze_spectra_make(const analyze_signal *s, analyze_spectra *x)
{
    const wt_stft_config config = stft_config(s->options);
    *x = (analyze_spectra){0};
    wt_status status = wt_stft_create(&config, &x->stft);
    if (status) return status;
    x->bins = wt_stft_bins(x->stft);
    x->n_frames = wt_stft_frames(x->stft, s->n);
    x->values = malloc((size_t)x->n_frames * (size_t)x->bins * 2 * sizeof(float));
    if (!x->values) return wt_fail(WT_ERR_NO_MEMORY, "stft: %lld frames", (long long)x->n_frames);
    if (analyze_gpu(s)) {
        status = spectra_on_gpu(s, x);
        if (!analyze_left_to_cpu(s, status)) return status;
    }
    status = wt_stft_forward(x->stft, s->pcm, s->n, x->values);
    return status ? wt_fail(status, "stft: %lld samples have no frame", (long long)s->n) : WT_OK;
}

void analyze_spectra_to_real(analyze_spectra *x, bool squares)
{
    float *v = x->values;
    for (int64_t k = 0; k < x->n_frames * x->bins; k++) {
        const float power = v[2 * k] * v[2 * k] + v[2 * k + 1] * v[2 * k + 1];
        v[k] = squares ? power : sqrtf(power);
    }
}

wt_status analyze_stft(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    const analyze_array like = {.name = "stft", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_LINEAR};
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) status = add_turned(r, &like, x.values, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    return status;
}

wt_status analyze_spectrogram(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    const analyze_array like = {.name = "spectrogram", .unit = "magnitude", .rows = ANALYZE_ROWS_LINEAR};
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status) status = add_turned(r, &like, x.values, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    return status;
}

// ---- mel

static wt_mel_config mel_config(const analyze_signal *s, wt_mel_scale scale)
{
    return (wt_mel_config){.n_samples = s->n, .stft = stft_config(s->options),
                           .bank = analyze_bank(s->options, s->rate_hz), .scale = scale};
}

static wt_status enqueue_mel(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_mel_enqueue(op, stream, in, 0, out, 0);
}

/// What an op for `n` samples made of the signal, [n_rows][n_made], without the frames that the signal has not.
static wt_status add_shared(const analyze_signal *s, analyze_result *r, const analyze_array *like,
                            analyze_enqueue enqueue, void *op, int64_t n, int64_t n_rows, int64_t n_made)
{
    const int64_t n_fft = analyze_n_fft(s->options), n_frames = 1 + (s->n + n_fft / 2 * 2 - n_fft) / analyze_hop(s->options);
    const size_t count = (size_t)(n_rows * n_made);
    float *made = malloc(count * sizeof *made);
    void *data;
    if (!made) return wt_fail(WT_ERR_NO_MEMORY, "%s: %lld frames", like->name, (long long)n_made);
    const analyze_flow flow = {s->pcm, (size_t)s->n, (size_t)n, made, count, count};
    wt_status status = analyze_run_flow(s, enqueue, op, &flow);
    if (!status) status = analyze_add(r, like, n_rows, n_frames, &data);
    for (int64_t row = 0; row < n_rows && !status; row++)
        memcpy((float *)data + row * n_frames, made + row * n_made, sizeof *made * (size_t)n_frames);
    free(made);
    return status;
}

typedef enum mel_kind { MEL_POWER, MEL_MAGNITUDE, MEL_DB, MEL_DB_UNLIMITED } mel_kind;

static wt_mel_config mel_config_of(const analyze_signal *s, mel_kind kind)
{
    wt_mel_config config = mel_config(s, kind < MEL_DB ? WT_MEL_LINEAR : WT_MEL_DB);
    if (kind == MEL_MAGNITUDE) config.power = 1;
    config.db.no_top = kind == MEL_DB_UNLIMITED;
    return config;
}

static wt_status make_mel(const analyze_signal *s, int variant, int64_t n, void **plan)
{
    wt_mel_config config = mel_config_of(s, (mel_kind)variant);
    config.n_samples = n;
    return wt_mel_create(analyze_gpu(s), &config, (wt_mel **)plan);
}

static void destroy_mel(void *plan) { wt_mel_destroy(plan); }

static wt_status add_mel(const analyze_signal *s, analyze_result *r, mel_kind kind, const analyze_array *like)
{
    wt_mel *mel = NULL;
    void *data;
    if (analyze_gpu(s)) {
        const int64_t n = analyze_shared_length(s->n);
        wt_status status = analyze_kept_plan(s, &(analyze_maker){make_mel, destroy_mel}, (int)kind, n, &data);
        if (!status) return add_shared(s, r, like, enqueue_mel, data, n, wt_mel_bands(data), wt_mel_frames(data));
        if (!analyze_left_to_cpu(s, status)) return status;
    }
    const wt_mel_config config = mel_config_of(s, kind);
    wt_status status = wt_mel_create(NULL, &config, &mel);
    if (!status) status = analyze_add(r, like, wt_mel_bands(mel), wt_mel_frames(mel), &data);
    if (!status) wt_mel_run(mel, s->pcm, data);
    wt_mel_destroy(mel);
    return status;
}

wt_status analyze_mel(const analyze_signal *s, analyze_result *r)
{
    const analyze_array like = {.name = "mel", .unit = "power", .rows = ANALYZE_ROWS_MEL};
    return add_mel(s, r, MEL_POWER, &like);
}

static const analyze_array decibels = {.name = "logmel", .unit = "dB", .rows = ANALYZE_ROWS_MEL};

wt_status analyze_bands(const analyze_signal *s, analyze_result *r)
{
    return add_mel(s, r, MEL_DB_UNLIMITED, &decibels);
}

/// Of a tile: the limit lies below the whole signal's peak.
static wt_status bands_of_tile(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_bands(s, r);
    if (status) return status;
    const analyze_array *bands = &r->arrays[r->n_arrays - 1];
    float *x = bands->data, floor = *s->peak_db - 80;
    for (int64_t k = 0; k < analyze_count(bands); k++) x[k] = x[k] < floor ? floor : x[k];
    return WT_OK;
}

wt_status analyze_logmel(const analyze_signal *s, analyze_result *r)
{
    return s->peak_db ? bands_of_tile(s, r) : add_mel(s, r, MEL_DB, &decibels);
}

static wt_status mfcc_of_tile(const analyze_signal *s, analyze_result *r, const wt_mfcc_config *config,
                              const analyze_array *like)
{
    analyze_result of = {.n_arrays = 0};
    void *data;
    wt_status status = bands_of_tile(s, &of);
    const int64_t n_frames = status ? 0 : of.arrays[0].shape[1];
    if (!status) status = analyze_add(r, like, config->n_mfcc ? config->n_mfcc : 20, n_frames, &data);
    if (!status) status = wt_mfcc_of_db(config, of.arrays[0].data, n_frames, data);
    analyze_result_free(&of);
    return status;
}

static wt_status enqueue_mfcc(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_mfcc_enqueue(op, stream, in, 0, out, 0);
}

static wt_mfcc_config mfcc_config(const analyze_signal *s)
{
    return (wt_mfcc_config){.mel = mel_config(s, WT_MEL_LINEAR), .n_mfcc = s->options->n_mfcc};
}

static wt_status make_mfcc(const analyze_signal *s, int variant, int64_t n, void **plan)
{
    (void)variant;
    wt_mfcc_config config = mfcc_config(s);
    config.mel.n_samples = n;
    return wt_mfcc_create(analyze_gpu(s), &config, (wt_mfcc **)plan);
}

static void destroy_mfcc(void *plan) { wt_mfcc_destroy(plan); }

wt_status analyze_mfcc(const analyze_signal *s, analyze_result *r)
{
    wt_mfcc *mfcc = NULL;
    void *data;
    const wt_mfcc_config config = mfcc_config(s);
    const analyze_array like = {.name = "mfcc", .unit = "", .rows = ANALYZE_ROWS_INDEX};
    if (s->peak_db) return mfcc_of_tile(s, r, &config, &like);
    if (analyze_gpu(s)) {
        const int64_t n = analyze_shared_length(s->n);
        wt_status status = analyze_kept_plan(s, &(analyze_maker){make_mfcc, destroy_mfcc}, 0, n, &data);
        if (!status)
            return add_shared(s, r, &like, enqueue_mfcc, data, n, wt_mfcc_coefficients(data), wt_mfcc_frames(data));
        if (!analyze_left_to_cpu(s, status)) return status;
    }
    wt_status status = wt_mfcc_create(NULL, &config, &mfcc);
    if (!status) status = analyze_add(r, &like, wt_mfcc_coefficients(mfcc), wt_mfcc_frames(mfcc), &data);
    if (!status) wt_mfcc_run(mfcc, s->pcm, data);
    wt_mfcc_destroy(mfcc);
    return status;
}

/// The slope of each coefficient over nine frames, or how it changes.
static wt_status add_delta(const analyze_signal *s, analyze_result *r, const char *name, int order)
{
    analyze_result of = {.n_arrays = 0};
    void *data;
    wt_status status = analyze_mfcc(s, &of);
    const analyze_array *mfcc = &of.arrays[0];
    const analyze_array like = {.name = name, .unit = "", .rows = ANALYZE_ROWS_INDEX};
    if (!status) status = analyze_add(r, &like, mfcc->shape[0], mfcc->shape[1], &data);
    if (!status)
        status = wt_delta_run(&(wt_delta_config){.order = order}, mfcc->data, mfcc->shape[0], mfcc->shape[1], data);
    analyze_result_free(&of);
    return status;
}

wt_status analyze_mfcc_delta(const analyze_signal *s, analyze_result *r) { return add_delta(s, r, "mfcc_delta", 1); }

wt_status analyze_mfcc_delta2(const analyze_signal *s, analyze_result *r) { return add_delta(s, r, "mfcc_delta2", 2); }

/// Of mel magnitudes of 32-bit samples, as librosa's page on pcen() has it.
wt_status analyze_pcen(const analyze_signal *s, analyze_result *r)
{
    wt_pcen_config pcen = wt_pcen_defaults();
    const analyze_array like = {.name = "pcen", .unit = "", .rows = ANALYZE_ROWS_MEL};
    pcen.rate_hz = s->rate_hz, pcen.hop = analyze_hop(s->options);
    wt_status status = add_mel(s, r, MEL_MAGNITUDE, &like);
    if (status) return status;
    const analyze_array *mel = &r->arrays[r->n_arrays - 1];
    float *data = mel->data;
    for (int64_t k = 0; k < analyze_count(mel); k++) data[k] *= 0x1p31f;
    return wt_pcen_run(&pcen, data, mel->shape[0], mel->shape[1], NULL, false, data);
}

// ---- constant Q

typedef struct constant_q {
    wt_cqt *cqt;
    int64_t n_frames;
    int bins;
    float *values; // [n_frames][bins], complex [..][2]
} constant_q;

static void constant_q_free(constant_q *x)
{
    wt_cqt_destroy(x->cqt);
    free(x->values);
}

typedef struct cqt_call {
    wt_cqt *cqt;
    int64_t n;
} cqt_call;

static wt_status enqueue_cqt(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    const cqt_call *c = op;
    return wt_cqt_enqueue(c->cqt, stream, in, 0, c->n, out, 0);
}

static wt_status constant_q_make(const analyze_signal *s, const wt_cqt_config *config, constant_q *x)
{
    *x = (constant_q){0};
    wt_device *gpu = analyze_gpu(s);
    wt_status status = wt_cqt_create(gpu, config, s->n, &x->cqt);
    if (analyze_left_to_cpu(s, status)) status = wt_cqt_create(gpu = NULL, config, s->n, &x->cqt);
    if (status) return status;
    x->bins = wt_cqt_bins(x->cqt);
    x->n_frames = wt_cqt_frames(x->cqt, s->n);
    const size_t items = (size_t)x->n_frames * (size_t)x->bins * (config->magnitude ? 1 : 2);
    x->values = malloc(items * sizeof(float));
    if (!x->values) return wt_fail(WT_ERR_NO_MEMORY, "cqt: %lld frames", (long long)x->n_frames);
    if (gpu)
        return analyze_queue(s, enqueue_cqt, &(cqt_call){x->cqt, s->n}, s->pcm, (size_t)s->n, x->values, items);
    status = wt_cqt_run(x->cqt, s->pcm, s->n, x->values);
    return status ? wt_fail(status, "cqt: %lld samples", (long long)s->n) : WT_OK;
}

wt_status analyze_cqt(const analyze_signal *s, analyze_result *r)
{
    constant_q x;
    const analyze_options *o = s->options;
    const wt_cqt_config config = {.rate_hz = s->rate_hz, .hop = analyze_hop(o), .fmin_hz = o->fmin_hz,
                                  .n_bins = o->n_bins, .bins_per_octave = o->bins_per_octave};
    const analyze_array like = {.name = "cqt", .unit = "", .type = ANALYZE_C64, .rows = ANALYZE_ROWS_CQT};
    wt_status status = constant_q_make(s, &config, &x);
    if (!status) status = add_turned(r, &like, x.values, x.n_frames, x.bins);
    constant_q_free(&x);
    return status;
}

// ---- chroma

static wt_status enqueue_tuning(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_tuning_enqueue(op, stream, in, 0, out, 0);
}

static wt_status tuning_of(const analyze_signal *s, const analyze_spectra *x, int bins_per_octave, double *tuning)
{
    wt_tuning *plan = NULL;
    const wt_tuning_config config = {.peaks = {.rate_hz = s->rate_hz, .n_fft = analyze_n_fft(s->options)},
                                     .n_frames = x->n_frames, .bins_per_octave = bins_per_octave};
    wt_status status = analyze_gpu(s) ? wt_tuning_create(analyze_gpu(s), &config, &plan) : WT_OK;
    if (analyze_left_to_cpu(s, status)) status = WT_OK;
    if (!status && plan) // a double is two floats
        status = analyze_queue(s, enqueue_tuning, plan, x->values, (size_t)(x->n_frames * x->bins), (float *)tuning, 2);
    else if (!status)
        status = wt_tuning_estimate(&config.peaks, x->values, x->n_frames, bins_per_octave, 0, tuning);
    wt_tuning_destroy(plan);
    return status;
}

wt_status analyze_tuning(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    double tuning = 0;
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status) status = tuning_of(s, &x, 12, &tuning);
    analyze_spectra_free(&x);
    return status ? status : analyze_add_value(r, "tuning", "semitones", tuning);
}

static int n_chroma(const analyze_options *o) { return o->n_chroma ? o->n_chroma : 12; }

wt_status analyze_chroma(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_chroma *chroma = NULL;
    float *out = NULL;
    wt_chroma_config config = {.rate_hz = s->rate_hz, .n_fft = analyze_n_fft(s->options),
                               .n_chroma = n_chroma(s->options), .bank_norm = WT_CHROMA_NORM_2};
    const analyze_array like = {.name = "chroma", .unit = "", .rows = ANALYZE_ROWS_CHROMA};
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, true);
    if (!status) status = tuning_of(s, &x, config.n_chroma, &config.tuning);
    if (!status) status = wt_chroma_create(NULL, &config, &chroma);
    if (!status && !(out = malloc(sizeof(float) * (size_t)config.n_chroma * (size_t)x.n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)x.n_frames);
    if (!status) status = wt_chroma_run(chroma, x.values, x.n_frames, out);
    if (!status) status = add_turned(r, &like, out, x.n_frames, config.n_chroma);
    wt_chroma_destroy(chroma);
    free(out);
    analyze_spectra_free(&x);
    return status;
}

/// librosa's chroma_cqt before its end: magnitudes of 7 octaves in steps of a third of a semitone, tuned, and folded.
static wt_status fold(const analyze_signal *s, wt_chroma_norm norm, float **out, int64_t *n_frames)
{
    enum { OCTAVES = 7, STEPS = 36 };
    analyze_spectra x;
    constant_q q = {0};
    const wt_chroma_cqt_config folding = {.fmin_hz = s->options->fmin_hz, .n_bins = OCTAVES * STEPS,
                                          .bins_per_octave = STEPS, .n_chroma = n_chroma(s->options), .norm = norm};
    wt_cqt_config config = {.rate_hz = s->rate_hz, .hop = analyze_hop(s->options), .fmin_hz = s->options->fmin_hz,
                            .n_bins = OCTAVES * STEPS, .bins_per_octave = STEPS, .magnitude = true};
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status) status = tuning_of(s, &x, STEPS, &config.tuning);
    analyze_spectra_free(&x);
    if (!status) status = constant_q_make(s, &config, &q);
    *n_frames = q.n_frames;
    *out = status ? NULL : malloc(sizeof(float) * (size_t)folding.n_chroma * (size_t)q.n_frames);
    if (!status && !*out) status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)q.n_frames);
    if (!status) status = wt_chroma_fold(&folding, q.values, q.n_frames, *out);
    constant_q_free(&q);
    return status;
}

wt_status analyze_chroma_cqt(const analyze_signal *s, analyze_result *r)
{
    float *chroma;
    int64_t n_frames;
    const analyze_array like = {.name = "chroma_cqt", .unit = "", .rows = ANALYZE_ROWS_CHROMA};
    wt_status status = fold(s, WT_CHROMA_NORM_MAX, &chroma, &n_frames);
    if (!status) status = add_turned(r, &like, chroma, n_frames, n_chroma(s->options));
    free(chroma);
    return status;
}

wt_status analyze_chroma_cens(const analyze_signal *s, analyze_result *r)
{
    float *chroma, *cens = NULL;
    int64_t n_frames;
    const int n = n_chroma(s->options);
    const analyze_array like = {.name = "chroma_cens", .unit = "", .rows = ANALYZE_ROWS_CHROMA};
    wt_status status = fold(s, WT_CHROMA_NORM_NONE, &chroma, &n_frames);
    if (!status && !(cens = malloc(sizeof(float) * (size_t)n * (size_t)n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "chroma: %lld frames", (long long)n_frames);
    if (!status) status = wt_chroma_cens(chroma, n_frames, n, 0, WT_CHROMA_NORM_2, cens);
    if (!status) status = add_turned(r, &like, cens, n_frames, n);
    free(chroma), free(cens);
    return status;
}

wt_status analyze_tonnetz(const analyze_signal *s, analyze_result *r)
{
    float *chroma, *out = NULL;
    int64_t n_frames;
    const analyze_array like = {.name = "tonnetz", .unit = "", .rows = ANALYZE_ROWS_INDEX};
    wt_status status = fold(s, WT_CHROMA_NORM_MAX, &chroma, &n_frames);
    if (!status && !(out = malloc(sizeof(float) * 6 * (size_t)n_frames)))
        status = wt_fail(WT_ERR_NO_MEMORY, "tonnetz: %lld frames", (long long)n_frames);
    if (!status) status = wt_tonnetz(chroma, n_frames, n_chroma(s->options), out);
    if (!status) status = add_turned(r, &like, out, n_frames, 6);
    free(chroma), free(out);
    return status;
}

// ---- separation

typedef struct hpss_call {
    wt_hpss *hpss;
    int64_t n_frames;
    size_t bytes; // of a part
} hpss_call;

static wt_status enqueue_hpss(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    const hpss_call *c = op;
    return wt_hpss_enqueue(c->hpss, stream, in, 0, c->n_frames, out, 0, out, c->bytes);
}

/// Both parts of the spectra, one behind the other.
static wt_status separate(const analyze_signal *s, const analyze_spectra *x, const wt_hpss_config *config, float *parts)
{
    wt_hpss *hpss;
    wt_device *gpu = analyze_gpu(s);
    const size_t floats = (size_t)x->n_frames * (size_t)x->bins * 2;
    wt_status status = wt_hpss_create(gpu, config, &hpss);
    if (analyze_left_to_cpu(s, status)) status = wt_hpss_create(gpu = NULL, config, &hpss);
    if (status) return status;
    status = gpu ? analyze_queue(s, enqueue_hpss, &(hpss_call){hpss, x->n_frames, floats * sizeof(float)}, x->values, floats, parts, 2 * floats)
                 : wt_hpss_run(hpss, x->values, x->n_frames, parts, parts + floats);
    wt_hpss_destroy(hpss);
    return status;
}

wt_status analyze_hpss(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *parts = NULL;
    const float margin = (float)s->options->margin;
    wt_status status = analyze_spectra_make(s, &x);
    const wt_hpss_config config = {.bins = x.bins, .margin_harmonic = margin, .margin_percussive = margin,
                                   .complex_in = true};
    const size_t floats = (size_t)x.n_frames * (size_t)x.bins * 2;
    if (!status && !(parts = malloc(2 * floats * sizeof *parts)))
        status = wt_fail(WT_ERR_NO_MEMORY, "hpss: %zu numbers", 2 * floats);
    if (!status) status = separate(s, &x, &config, parts);
    for (int k = 0; k < 2 && !status; k++) {
        void *data;
        const analyze_array like = {.name = k ? "percussive" : "harmonic", .unit = "", .layout = ANALYZE_SAMPLES};
        status = analyze_add(r, &like, 1, s->n, &data);
        if (!status) status = wt_stft_inverse(x.stft, parts + (size_t)k * floats, x.n_frames, s->n, data);
    }
    free(parts);
    analyze_spectra_free(&x);
    return status;
}
