#include "analyze.h"

#include <stdlib.h>
#include <warptone/spectral.h>
#include <warptone/vad.h>

typedef struct magnitudes {
    wt_spectral_shape shape;
    float *values; // [n_frames][n_fft / 2 + 1]
} magnitudes;

/// A magnitude spectrogram, frame by frame; caller frees x->values.
static wt_status magnitudes_make(const analyze_signal *s, magnitudes *x)
{
    analyze_spectra spectra;
    wt_status status = analyze_spectra_make(s, &spectra);
    if (!status) analyze_spectra_to_real(&spectra, false);
    *x = (magnitudes){.shape = {s->rate_hz, analyze_n_fft(s->options), spectra.n_frames}};
    if (!status) x->values = spectra.values, spectra.values = NULL;
    analyze_spectra_free(&spectra);
    return status;
}

typedef wt_status (*shape_function)(const wt_spectral_shape *shape, const float *magnitude, float *out);

static wt_status add_shape(const analyze_signal *s, analyze_result *r, const analyze_array *like, int64_t n_rows,
                           shape_function run)
{
    magnitudes x;
    void *data;
    wt_status status = magnitudes_make(s, &x);
    if (!status) status = analyze_add(r, like, n_rows, x.shape.n_frames, &data);
    if (!status) status = run(&x.shape, x.values, data);
    free(x.values);
    return status;
}

wt_status analyze_centroid(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.centroid, 1, wt_spectral_centroid);
}

static wt_status bandwidth(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_bandwidth(shape, magnitude, 0, false, out);
}

wt_status analyze_bandwidth(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.bandwidth, 1, bandwidth);
}

static wt_status rolloff(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_rolloff(shape, magnitude, 0, out);
}

wt_status analyze_rolloff(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.rolloff, 1, rolloff);
}

static wt_status flatness(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_flatness(shape, magnitude, 0, 0, out);
}

wt_status analyze_flatness(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.flatness, 1, flatness);
}

static wt_status contrast(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_contrast(shape, magnitude, NULL, out);
}

enum { BANDS = 6 };

wt_status analyze_contrast_parts(const analyze_signal *s, analyze_result *r)
{
    magnitudes x;
    void *parts[2];
    const wt_db_config unlimited = {.no_top = true};
    wt_status status = magnitudes_make(s, &x);
    for (int k = 0; k < 2 && !status; k++)
        status = analyze_add(r, &analyze_like.contrast, BANDS + 1, x.shape.n_frames, &parts[k]);
    if (!status) status = wt_spectral_contrast_parts(&x.shape, x.values, NULL, parts[0], parts[1]);
    for (int k = 0; k < 2 && !status; k++)
        status = wt_db_from_power(&unlimited, parts[k], (BANDS + 1) * x.shape.n_frames, parts[k]);
    free(x.values);
    return status;
}

static wt_status contrast_of_tile(const analyze_signal *s, analyze_result *r)
{
    wt_status status = analyze_contrast_parts(s, r);
    if (status) return status;
    const analyze_array *peaks = &r->arrays[r->n_arrays - 2], *valleys = &r->arrays[r->n_arrays - 1];
    float *out = peaks->data, *low = valleys->data;
    const float least[2] = {s->whole->contrast_db[0] - 80, s->whole->contrast_db[1] - 80};
    for (int64_t k = 0; k < analyze_count(peaks); k++)
        out[k] = (out[k] < least[0] ? least[0] : out[k]) - (low[k] < least[1] ? least[1] : low[k]);
    free(low);
    r->n_arrays--;
    return WT_OK;
}

wt_status analyze_contrast(const analyze_signal *s, analyze_result *r)
{
    return s->whole ? contrast_of_tile(s, r) : add_shape(s, r, &analyze_like.contrast, BANDS + 1, contrast);
}

wt_status analyze_flux(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &analyze_like.flux, 1, wt_spectral_flux);
}

// ---- samples

wt_level_config analyze_level_config(const analyze_signal *s)
{
    return (wt_level_config){.frame_length = analyze_n_fft(s->options), .hop = analyze_hop(s->options)};
}

typedef wt_status (*level_function)(const wt_level_config *config, const float *pcm, int64_t n, float *out);

static wt_status add_level(const analyze_signal *s, analyze_result *r, const analyze_array *like, level_function run)
{
    void *data;
    const wt_level_config config = analyze_level_config(s);
    wt_status status = analyze_add(r, like, 1, wt_level_frames(&config, s->n), &data);
    return status ? status : run(&config, s->pcm, s->n, data);
}

wt_status analyze_rms(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.rms, wt_level_rms);
}

wt_status analyze_zcr(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, &analyze_like.zcr, wt_level_zero_crossings);
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
    const wt_level_config config = analyze_level_config(s);
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
    const wt_level_config config = analyze_level_config(s);
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
    const int64_t step = (s->rate_hz + 50) / 100;
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

wt_status analyze_vad(const analyze_signal *s, analyze_result *r)
{
    wt_vad *vad;
    wt_status status = wt_vad_create(&(wt_vad_config){.rate_hz = s->rate_hz, .channels = 1}, &vad);
    if (status) return status;
    const int step = wt_vad_window_frames(vad);
    const int64_t n = s->n / step;
    float *speech = malloc(sizeof *speech * (size_t)(n + 1));
    if (!speech) status = wt_fail(WT_ERR_NO_MEMORY, "vad: %lld steps", (long long)n);
    for (int64_t t = 0; t < n && !status; t++) {
        const float *in = s->pcm + t * step;
        bool found[2] = {false};
        const int made = wt_vad_process(vad, &in, step, found);
        speech[t] = made > 0 && found[0];
    }
    if (!status) status = analyze_vad_of(s, speech, n, r);
    free(speech);
    wt_vad_destroy(vad);
    return status;
}
