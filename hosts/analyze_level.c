#include "analyze.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/silence.h>
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

static wt_status enqueue_shape(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_spectral_enqueue(op, stream, in, 0, out, 0);
}

/// One op of spectra: its kind on a GPU, its function on the calling thread.
static wt_status run_shape(const analyze_signal *s, const magnitudes *x, wt_spectral_kind kind, shape_function run,
                           float *out)
{
    wt_spectral *plan;
    const wt_spectral_config config = {.kind = kind, .shape = x->shape};
    wt_status status = analyze_gpu(s) ? wt_spectral_create(analyze_gpu(s), &config, &plan) : WT_ERR_UNSUPPORTED;
    if (!analyze_gpu(s) || analyze_left_to_cpu(s, status)) return run(&x->shape, x->values, out);
    if (status) return status;
    const size_t n = (size_t)x->shape.n_frames;
    status = analyze_queue(s, enqueue_shape, plan, x->values, n * (size_t)(x->shape.n_fft / 2 + 1), out,
                           n * (size_t)wt_spectral_rows(plan));
    wt_spectral_destroy(plan);
    return status;
}

static wt_status add_shape(const analyze_signal *s, analyze_result *r, const analyze_array *like, int64_t n_rows,
                           wt_spectral_kind kind, shape_function run)
{
    magnitudes x;
    void *data;
    wt_status status = magnitudes_make(s, &x);
    if (!status) status = analyze_add(r, like, n_rows, x.shape.n_frames, &data);
    if (!status) status = run_shape(s, &x, kind, run, data);
    free(x.values);
    return status;
}

wt_status analyze_centroid(const analyze_signal *s, analyze_result *r)
{
    const analyze_array like = {.name = "centroid", .unit = "Hz"};
    return add_shape(s, r, &like, 1, WT_SPECTRAL_CENTROID, wt_spectral_centroid);
}

static wt_status bandwidth(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_bandwidth(shape, magnitude, 0, false, out);
}

wt_status analyze_bandwidth(const analyze_signal *s, analyze_result *r)
{
    const analyze_array like = {.name = "bandwidth", .unit = "Hz"};
    return add_shape(s, r, &like, 1, WT_SPECTRAL_BANDWIDTH, bandwidth);
}

static wt_status rolloff(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_rolloff(shape, magnitude, 0, out);
}

wt_status analyze_rolloff(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &(analyze_array){.name = "rolloff", .unit = "Hz"}, 1, WT_SPECTRAL_ROLLOFF, rolloff);
}

static wt_status flatness(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_flatness(shape, magnitude, 0, 0, out);
}

wt_status analyze_flatness(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &(analyze_array){.name = "flatness", .unit = ""}, 1, WT_SPECTRAL_FLATNESS, flatness);
}

static wt_status contrast(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    return wt_spectral_contrast(shape, magnitude, NULL, out);
}

wt_status analyze_contrast(const analyze_signal *s, analyze_result *r)
{
    enum { BANDS = 6 };
    const analyze_array like = {.name = "contrast", .unit = "dB", .rows = ANALYZE_ROWS_INDEX};
    return add_shape(s, r, &like, BANDS + 1, WT_SPECTRAL_CONTRAST, contrast);
}

wt_status analyze_flux(const analyze_signal *s, analyze_result *r)
{
    return add_shape(s, r, &(analyze_array){.name = "flux", .unit = ""}, 1, WT_SPECTRAL_FLUX, wt_spectral_flux);
}

// ---- samples

static wt_level_config level_config(const analyze_signal *s)
{
    return (wt_level_config){.frame_length = analyze_n_fft(s->options), .hop = analyze_hop(s->options)};
}

typedef wt_status (*level_function)(const wt_level_config *config, const float *pcm, int64_t n, float *out);

static wt_status enqueue_level(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_level_plan_enqueue(op, stream, in, 0, out, 0);
}

static wt_status add_level(const analyze_signal *s, analyze_result *r, const char *name, wt_level_kind kind,
                           level_function run)
{
    void *data;
    wt_level_plan *plan;
    const wt_level_plan_config config = {.kind = kind, .level = level_config(s), .n_samples = s->n};
    const int64_t n = wt_level_frames(&config.level, s->n);
    wt_status status = analyze_add(r, &(analyze_array){.name = name, .unit = ""}, 1, n, &data);
    if (status) return status;
    if (!analyze_gpu(s)) return run(&config.level, s->pcm, s->n, data);
    status = wt_level_plan_create(analyze_gpu(s), &config, &plan);
    if (status) return status;
    status = analyze_queue(s, enqueue_level, plan, s->pcm, (size_t)s->n, data, (size_t)n);
    wt_level_plan_destroy(plan);
    return status;
}

wt_status analyze_rms(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, "rms", WT_LEVEL_RMS, wt_level_rms);
}

wt_status analyze_zcr(const analyze_signal *s, analyze_result *r)
{
    return add_level(s, r, "zcr", WT_LEVEL_ZERO_CROSSINGS, wt_level_zero_crossings);
}

static wt_status add_spans(analyze_result *r, const char *name, const wt_span *spans, int64_t count)
{
    void *data;
    const analyze_array like = {.name = name, .unit = "sample", .type = ANALYZE_I64, .layout = ANALYZE_SPANS};
    wt_status status = analyze_add(r, &like, count, 2, &data);
    for (int64_t k = 0; k < count && !status; k++) {
        ((int64_t *)data)[2 * k] = spans[k].begin;
        ((int64_t *)data)[2 * k + 1] = spans[k].end;
    }
    return status;
}

/// In one buffer: the spans, and behind them how many there are.
static wt_status enqueue_silence(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_silence_enqueue(op, stream, in, 0, out, 0, out, sizeof(wt_span) * (size_t)wt_silence_room(op));
}

/// The parts that are not silent, from the signal's GPU; `spans` has room for one more than there can be.
static wt_status find_on_gpu(const analyze_signal *s, wt_silence *plan, wt_span *spans, int64_t *count)
{
    const int64_t room = wt_silence_room(plan);
    const size_t floats = sizeof(wt_span) / sizeof(float) * (size_t)room + 1;
    int found = 0;
    wt_status status = analyze_queue(s, enqueue_silence, plan, s->pcm, (size_t)s->n, (float *)spans, floats);
    memcpy(&found, spans + room, sizeof found);
    *count = found;
    return status;
}

wt_status analyze_split(const analyze_signal *s, analyze_result *r)
{
    const wt_silence_config config = {.level = level_config(s), .top_db = s->options->top_db, .n_samples = s->n};
    const int64_t room = wt_level_frames(&config.level, s->n) / 2 + 1; // silent frames stand between two parts
    int64_t count = 0;
    wt_silence *plan = NULL;
    wt_span *spans = calloc((size_t)room + 1, sizeof *spans);
    if (!spans) return wt_fail(WT_ERR_NO_MEMORY, "split: %lld parts", (long long)room);
    wt_status status = analyze_gpu(s) ? wt_silence_create(analyze_gpu(s), &config, &plan) : WT_OK;
    if (plan) status = find_on_gpu(s, plan, spans, &count);
    else if (!status || analyze_left_to_cpu(s, status))
        status = wt_silence_split(&config.level, config.top_db, s->pcm, 1, s->n, spans, room, &count);
    if (!status) status = add_spans(r, "split", spans, count);
    wt_silence_destroy(plan);
    free(spans);
    return status;
}

wt_status analyze_trim(const analyze_signal *s, analyze_result *r)
{
    const wt_silence_config config = {
        .level = level_config(s), .top_db = s->options->top_db, .trim = true, .n_samples = s->n};
    int64_t count = 0;
    wt_silence *plan = NULL;
    wt_span spans[2] = {{0, 0}, {0, 0}};
    wt_status status = analyze_gpu(s) ? wt_silence_create(analyze_gpu(s), &config, &plan) : WT_OK;
    if (plan) status = find_on_gpu(s, plan, spans, &count);
    else if (!status || analyze_left_to_cpu(s, status))
        status = wt_silence_trim(&config.level, config.top_db, s->pcm, 1, s->n, spans);
    wt_silence_destroy(plan);
    return status ? status : add_spans(r, "trim", spans, 1);
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
    if (spans) status = add_spans(r, "vad", spans, speech_spans(vad, s, spans));
    else status = wt_fail(WT_ERR_NO_MEMORY, "vad: %lld samples", (long long)s->n);
    free(spans);
    wt_vad_destroy(vad);
    return status;
}
