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

wt_status analyze_contrast(const analyze_signal *s, analyze_result *r)
{
    enum { BANDS = 6 };
    return add_shape(s, r, &analyze_like.contrast, BANDS + 1, contrast);
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

wt_status analyze_split(const analyze_signal *s, analyze_result *r)
{
    const wt_level_config config = analyze_level_config(s);
    const int64_t room = wt_level_frames(&config, s->n) / 2 + 1; // silent frames stand between two parts
    int64_t count = 0;
    wt_span *spans = calloc((size_t)room, sizeof *spans);
    if (!spans) return wt_fail(WT_ERR_NO_MEMORY, "split: %lld parts", (long long)room);
    wt_status status = wt_silence_split(&config, s->options->top_db, s->pcm, 1, s->n, spans, room, &count);
    if (!status) status = analyze_add_spans(r, &analyze_like.split, spans, count);
    free(spans);
    return status;
}

wt_status analyze_trim(const analyze_signal *s, analyze_result *r)
{
    const wt_level_config config = analyze_level_config(s);
    wt_span span;
    wt_status status = wt_silence_trim(&config, s->options->top_db, s->pcm, 1, s->n, &span);
    return status ? status : analyze_add_spans(r, &analyze_like.trim, &span, 1);
}

/// Runs of windows that hold speech, [n_windows / 2 + 1] of room; how many is returned.
static int64_t speech_spans(wt_vad *vad, const analyze_signal *s, wt_span *spans)
{
    const int window = wt_vad_window_frames(vad);
    int64_t count = 0;
    bool inside = false, speech[2];
    for (int64_t t = 0; t + window <= s->n; t += window) {
        const float *in = s->pcm + t;
        if (wt_vad_process(vad, &in, window, speech) < 1) continue;
        if (speech[0] && !inside) spans[count++].begin = t;
        if (speech[0]) spans[count - 1].end = t + window;
        inside = speech[0];
    }
    return count;
}

wt_status analyze_vad(const analyze_signal *s, analyze_result *r)
{
    wt_vad *vad;
    wt_status status = wt_vad_create(&(wt_vad_config){.rate_hz = s->rate_hz, .channels = 1}, &vad);
    if (status) return status;
    wt_span *spans = malloc(sizeof *spans * (size_t)(s->n / wt_vad_window_frames(vad) / 2 + 1));
    if (spans) status = analyze_add_spans(r, &analyze_like.vad, spans, speech_spans(vad, s, spans));
    else status = wt_fail(WT_ERR_NO_MEMORY, "vad: %lld samples", (long long)s->n);
    free(spans);
    wt_vad_destroy(vad);
    return status;
}
