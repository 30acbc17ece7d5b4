#include "analyze_features.h"

#include <stdlib.h>
#include <warptone/spectral.h>
#include <warptone/vad.h>

wt_spectral_config analyze_shape_config(const analyze_signal *s, wt_spectral_kind kind, int64_t n_frames)
{
    const analyze_options *o = s->options;
    wt_spectral_config config = o->ops.shape;
    config.kind = kind, config.shape = (wt_spectral_shape){s->rate_hz, analyze_n_fft(o), n_frames};
    config.no_norm = o->ops.no_norm, config.power = o->ops.mel_power, config.amin = o->ops.db.amin;
    config.order = config.order < 0 ? 1 : config.order, config.contrast.fmin_hz = o->fmin_hz;
    return config;
}

typedef struct magnitudes {
    wt_spectral_config config; // its shape
    float *values; // [n_frames][n_fft / 2 + 1]
} magnitudes;

/// A magnitude spectrogram, frame by frame; caller frees x->values.
static wt_status magnitudes_make(const analyze_signal *s, bool precise, magnitudes *x)
{
    analyze_spectra spectra;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, precise, &spectra);
    *x = (magnitudes){.config = analyze_shape_config(s, WT_SPECTRAL_CENTROID, spectra.n_frames)};
    if (!status) x->values = spectra.values, spectra.values = NULL;
    analyze_spectra_free(&spectra);
    return status;
}

typedef wt_status (*shape_function)(const wt_spectral_config *config, const float *magnitude, float *out);

/// Those that look at quiet bins, or divide by what a weak frame has, want spectra that are precise.
static wt_status add_shape(const analyze_signal *s, analyze_result *r, const analyze_array *like, int64_t n_rows,
                           bool precise, shape_function run)
{
    magnitudes x;
    void *data;
    wt_status status = magnitudes_make(s, precise, &x);
    if (!status) status = analyze_add(r, like, n_rows, x.config.shape.n_frames, &data);
    if (!status) status = run(&x.config, x.values, data);
    free(x.values);
    return status;
}

static wt_status centroid(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_centroid(&c->shape, magnitude, out);
}

wt_status analyze_centroid(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.centroid, 1, true, centroid);
}

static wt_status bandwidth(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_bandwidth(&c->shape, magnitude, c->p, c->no_norm, out);
}

wt_status analyze_bandwidth(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.bandwidth, 1, true, bandwidth);
}

static wt_status rolloff(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_rolloff(&c->shape, magnitude, c->percent, out);
}

wt_status analyze_rolloff(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.rolloff, 1, true, rolloff);
}

static wt_status flatness(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_flatness(&c->shape, magnitude, c->power, c->amin, out);
}

wt_status analyze_flatness(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.flatness, 1, true, flatness);
}

static wt_status contrast(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_contrast(&c->shape, magnitude, &c->contrast, out);
}

/// The lowest one too.
static int n_bands_of(const wt_spectral_contrast_config *c) { return (c->n_bands ? c->n_bands : 6) + 1; }

static wt_status contrast_parts(const wt_spectral_config *c, const float *magnitude, float *out)
{
    const wt_db_config unlimited = {.no_top = true};
    const int64_t count = n_bands_of(&c->contrast) * c->shape.n_frames;
    wt_status status = wt_spectral_contrast_parts(&c->shape, magnitude, &c->contrast, out, out + count);
    return status ? status : wt_db_from_power(&unlimited, out, 2 * count, out);
}

wt_status analyze_contrast_parts(const analyze_signal *s, analyze_result *r)
{
    const int n_bands = n_bands_of(&s->options->ops.shape.contrast);
    return add_shape(s, r, &analyze_like.contrast, 2 * n_bands, true, contrast_parts);
}

void analyze_contrast_of_parts(analyze_result *r, const analyze_whole *whole)
{
    analyze_array *parts = &r->arrays[r->n_arrays - 1];
    const int64_t count = analyze_count(parts) / 2;
    float *out = parts->data, *low = out + count;
    const float least[2] = {whole->contrast_db[0] - 80, whole->contrast_db[1] - 80};
    for (int64_t k = 0; k < count; k++)
        out[k] = (out[k] < least[0] ? least[0] : out[k]) - (low[k] < least[1] ? least[1] : low[k]);
    parts->shape[0] /= 2;
}

wt_status analyze_contrast(const analyze_signal *s, analyze_result *r)
{
    const wt_spectral_contrast_config *config = &s->options->ops.shape.contrast;
    const analyze_array *like = config->linear ? &analyze_like.linear_contrast : &analyze_like.contrast;
    if (!s->whole || config->linear) return add_shape(s, r, like, n_bands_of(config), true, contrast);
    wt_status status = analyze_contrast_parts(s, r);
    if (!status) analyze_contrast_of_parts(r, s->whole);
    return status;
}

static wt_status line(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_polynomial(&c->shape, magnitude, c->order, out);
}

wt_status analyze_poly(const analyze_signal *s, analyze_result *r)
{
    const int order = analyze_shape_config(s, WT_SPECTRAL_POLYNOMIAL, 0).order;
    return add_shape(s, r, &analyze_like.poly, order + 1, false, line);
}

static wt_status flux(const wt_spectral_config *c, const float *magnitude, float *out)
{
    return wt_spectral_flux(&c->shape, magnitude, out);
}

wt_status analyze_flux(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.flux, 1, false, flux);
}

// ---- samples

wt_level_config analyze_level_config(const analyze_signal *s, bool centred)
{
    return (wt_level_config){.frame_length = analyze_n_fft(s->options),
                             .hop = analyze_hop(s->options),
                             .no_center = s->options->no_center && !centred,
                             .pad = centred ? WT_STFT_PAD_ZERO : s->options->padding};
}

typedef wt_status (*level_function)(const wt_level_config *config, const float *pcm, int64_t n, float *out);

static wt_status add_level(const analyze_signal *s, analyze_result *r, const analyze_array *like, bool centred,
                           level_function run)
{
    void *data;
    const wt_level_config config = analyze_level_config(s, centred);
    const int64_t n = wt_level_frames(&config, s->n);
    if (n < 1)
        return wt_fail(WT_ERR_LENGTH, "%s: %lld samples have no frame of %d", like->name, (long long)s->n,
                       config.frame_length);
    wt_status status = analyze_add(r, like, 1, n, &data);
    return status ? status : run(&config, s->pcm, s->n, data);
}

wt_status analyze_rms(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.rms, false, wt_level_rms);
}

wt_status analyze_centred_rms(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.rms, true, wt_level_rms);
}

wt_status analyze_energy(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.energy, false, wt_level_energy);
}

wt_status analyze_zcr(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.zcr, false, wt_level_zero_crossings);
}

wt_status analyze_add_spans(analyze_result *r, const analyze_array *like, const wt_span *spans, int64_t count)
{
    void *data;
    wt_status status = analyze_add(r, like, count, 2, &data);
    for (int64_t k = 0; k < count && !status; k++) {
        ((int64_t *)data)[2 * k] = spans[k].begin;
        ((int64_t *)data)[2 * k + 1] = spans[k].end;
    }
    return status;
}

typedef wt_status (*finish_function)(const analyze_signal *s, const float *rms, int64_t n, analyze_result *r);

static wt_status of_rms(const analyze_signal *s, finish_function finish, analyze_result *r)
{
    const wt_level_config config = analyze_level_config(s, true);
    const int64_t n = wt_level_frames(&config, s->n);
    float *rms = malloc(sizeof *rms * (size_t)n);
    if (!rms) return wt_fail(WT_ERR_NO_MEMORY, "rms: %lld frames", (long long)n);
    wt_status status = wt_level_rms(&config, s->pcm, s->n, rms);
    if (!status) status = finish(s, rms, n, r);
    free(rms);
    return status;
}

/// Silent frames stand between two parts. Caller frees.
static wt_status spans_of(const analyze_signal *s, const float *rms, int64_t n, wt_span **spans, int64_t *count)
{
    const wt_level_config config = analyze_level_config(s, true);
    *spans = calloc((size_t)n / 2 + 1, sizeof **spans);
    if (!*spans) return wt_fail(WT_ERR_NO_MEMORY, "split: %lld frames", (long long)n);
    return wt_silence_split_rms(&config, s->options->top_db, rms, s->n, *spans, n / 2 + 1, count);
}

wt_status analyze_split_of(const analyze_signal *s, const float *rms, int64_t n, analyze_result *r)
{
    wt_span *spans;
    int64_t count;
    wt_status status = spans_of(s, rms, n, &spans, &count);
    if (!status) status = analyze_add_spans(r, &analyze_like.split, spans, count);
    free(spans);
    return status;
}

wt_status analyze_split(const analyze_signal *s, analyze_result *r) { return of_rms(s, analyze_split_of, r); }

wt_status analyze_trim_of(const analyze_signal *s, const float *rms, int64_t n, analyze_result *r)
{
    wt_span *spans;
    int64_t count;
    wt_status status = spans_of(s, rms, n, &spans, &count);
    if (!status && count > 1) spans[0].end = spans[count - 1].end;
    if (!status) status = analyze_add_spans(r, &analyze_like.trim, spans, 1);
    free(spans);
    return status;
}

wt_status analyze_trim(const analyze_signal *s, analyze_result *r) { return of_rms(s, analyze_trim_of, r); }

/// Runs of steps that hold speech; a step is 10 ms, n of them.
wt_status analyze_vad_of(const analyze_signal *s, const float *speech, int64_t n, analyze_result *r)
{
    const int64_t step = analyze_speech_step(s->rate_hz);
    int64_t count = 0;
    wt_span *spans = malloc(sizeof *spans * (size_t)(n / 2 + 1));
    if (!spans) return wt_fail(WT_ERR_NO_MEMORY, "vad: %lld steps", (long long)n);
    for (int64_t t = 0; t < n; t++) {
        if (speech[t] == 0) continue;
        if (t == 0 || speech[t - 1] == 0) spans[count++].begin = t * step;
        spans[count - 1].end = (t + 1) * step;
    }
    wt_status status = analyze_add_spans(r, &analyze_like.vad, spans, count);
    free(spans);
    return status;
}

int64_t analyze_speech_step(int rate_hz) { return (rate_hz + 50) / 100; }

wt_vad_plan_config analyze_vad_config(const analyze_signal *s)
{
    wt_vad_config vad = s->options->ops.vad;
    vad.rate_hz = s->rate_hz;
    return (wt_vad_plan_config){.vad = vad, .n_samples = s->n};
}

/// A tile's are those that end in it and that no tile before has decided.
wt_status analyze_speech_part(const analyze_signal *s, analyze_whole *whole, const wt_vad_plan *plan, wt_vad_part *part)
{
    const int64_t step = analyze_speech_step(s->rate_hz), hop = analyze_hop(s->options);
    *part = (wt_vad_part){.n_windows = wt_vad_plan_windows(plan)};
    if (!whole) return WT_OK;
    const int64_t end = whole->count < 0 ? s->n : (whole->from + whole->count) * hop;
    part->from = whole->n_speech * step - whole->begin;
    part->n_windows = (int)((end - part->from) / step);
    part->continued = whole->n_speech > 0;
    if (!whole->voice && !(whole->voice = malloc(wt_vad_plan_state_bytes(plan))))
        return wt_fail(WT_ERR_NO_MEMORY, "vad: state");
    return WT_OK;
}

wt_status analyze_add_speech(analyze_result *r, const int *speech, int64_t n)
{
    void *data;
    wt_status status = analyze_add(r, &analyze_like.speech, 1, n, &data);
    for (int64_t t = 0; t < n && !status; t++) ((float *)data)[t] = (float)speech[t];
    return status;
}

wt_status analyze_speech(const analyze_signal *s, analyze_result *r)
{
    wt_vad_plan *plan;
    wt_vad_part part;
    const wt_vad_plan_config config = analyze_vad_config(s);
    wt_status status = wt_vad_plan_create(NULL, &config, &plan);
    if (status) return status;
    status = analyze_speech_part(s, s->whole, plan, &part);
    int *speech = status ? NULL : malloc(sizeof *speech * (size_t)(part.n_windows + 1));
    if (!status && !speech) status = wt_fail(WT_ERR_NO_MEMORY, "vad: %d steps", part.n_windows);
    if (!status) wt_vad_plan_run(plan, s->pcm, &part, s->whole ? s->whole->voice : NULL, speech);
    if (!status) status = analyze_add_speech(r, speech, part.n_windows);
    free(speech);
    wt_vad_plan_destroy(plan);
    return status;
}

wt_status analyze_vad_of_speech(const analyze_signal *s, analyze_result *r)
{
    const analyze_array speech = r->arrays[--r->n_arrays];
    wt_status status = analyze_vad_of(s, speech.data, analyze_n_columns(&speech), r);
    analyze_let_go(speech.data, speech.mapped);
    return status;
}

wt_status analyze_vad(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_speech(s, r);
    return status ? status : analyze_vad_of_speech(s, r);
}
