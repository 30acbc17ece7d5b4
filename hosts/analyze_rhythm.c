#include "analyze.h"

#include <stdlib.h>
#include <warptone/onset.h>
#include <warptone/pitch.h>
#include <warptone/tempo.h>

// ---- pitch

// C2 to C7, the range of most voices and instruments, as librosa's pages use it.
static const double c2_hz = 65.40639132514966, c7_hz = 2093.004522404789;

static wt_pitch_frames pitch_frames(const analyze_signal *s)
{
    const analyze_options *o = s->options;
    return (wt_pitch_frames){.rate_hz = s->rate_hz, .fmin_hz = o->fmin_hz > 0 ? o->fmin_hz : c2_hz,
                             .fmax_hz = o->fmax_hz > 0 ? o->fmax_hz : c7_hz, .frame_length = analyze_n_fft(o),
                             .hop = analyze_hop(o), .n_samples = s->n};
}

static wt_status enqueue_yin(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_yin_enqueue(op, stream, in, 0, out, 0);
}

wt_status analyze_yin(const analyze_signal *s, analyze_result *r)
{
    wt_yin *yin;
    void *data;
    const wt_yin_config config = {.frames = pitch_frames(s)};
    const analyze_array like = {.name = "yin", .unit = "Hz"};
    wt_device *gpu = analyze_gpu(s);
    wt_status status = wt_yin_create(gpu, &config, &yin);
    if (analyze_left_to_cpu(s, status)) status = wt_yin_create(gpu = NULL, &config, &yin);
    if (status) return status;
    const int64_t n = wt_yin_n_frames(yin);
    status = analyze_add(r, &like, 1, n, &data);
    if (!status && gpu) status = analyze_queue(s, enqueue_yin, yin, s->pcm, (size_t)s->n, data, (size_t)n);
    else if (!status) wt_yin_run(yin, s->pcm, data);
    wt_yin_destroy(yin);
    return status;
}

static wt_status enqueue_pyin(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_pyin_enqueue(op, stream, in, 0, out, 0);
}

wt_status analyze_pyin(const analyze_signal *s, analyze_result *r)
{
    wt_pyin *pyin;
    void *f0, *voiced, *probability;
    const wt_pyin_config config = {.frames = pitch_frames(s)};
    wt_device *gpu = analyze_gpu(s);
    wt_status status = wt_pyin_create(gpu, &config, &pyin);
    if (analyze_left_to_cpu(s, status)) status = wt_pyin_create(gpu = NULL, &config, &pyin);
    if (status) return status;
    const int64_t n = wt_pyin_n_frames(pyin);
    float *out = malloc(sizeof(float) * 3 * (size_t)n);
    if (!out) status = wt_fail(WT_ERR_NO_MEMORY, "pyin: %lld frames", (long long)n);
    if (!status && gpu) status = analyze_queue(s, enqueue_pyin, pyin, s->pcm, (size_t)s->n, out, 3 * (size_t)n);
    else if (!status) wt_pyin_run(pyin, s->pcm, out);
    wt_pyin_destroy(pyin);
    if (!status) status = analyze_add(r, &(analyze_array){.name = "f0", .unit = "Hz"}, 1, n, &f0);
    if (!status)
        status = analyze_add(r, &(analyze_array){.name = "voiced", .unit = "", .type = ANALYZE_BOOL}, 1, n, &voiced);
    if (!status) status = analyze_add(r, &(analyze_array){.name = "voiced_prob", .unit = ""}, 1, n, &probability);
    for (int64_t t = 0; t < n && !status; t++) {
        ((float *)f0)[t] = out[t];
        ((unsigned char *)voiced)[t] = out[n + t] > 0;
        ((float *)probability)[t] = out[2 * n + t];
    }
    free(out);
    return status;
}

// ---- onsets and beats

static wt_status enqueue_onset(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_onset_enqueue(op, stream, in, 0, out, 0);
}

/// Onset strength, as onsets (mean of the bands) or as beats and pulse want it (median). Caller frees *envelope.
static wt_status strength(const analyze_signal *s, bool median, float **envelope, int64_t *n)
{
    wt_onset *onset;
    const wt_onset_config config = {.rate_hz = s->rate_hz, .n_fft = analyze_n_fft(s->options),
                                    .hop = analyze_hop(s->options), .n_mels = s->options->n_mels, .median = median,
                                    .n_samples = s->n};
    *envelope = NULL;
    wt_device *gpu = analyze_gpu(s);
    wt_status status = wt_onset_create(gpu, &config, &onset);
    if (analyze_left_to_cpu(s, status)) status = wt_onset_create(gpu = NULL, &config, &onset);
    if (status) return status;
    *n = wt_onset_n_frames(onset);
    *envelope = malloc(sizeof(float) * (size_t)*n);
    if (*envelope && gpu)
        status = analyze_queue(s, enqueue_onset, onset, s->pcm, (size_t)s->n, *envelope, (size_t)*n);
    else if (*envelope) wt_onset_run(onset, s->pcm, *envelope);
    else status = wt_fail(WT_ERR_NO_MEMORY, "onset: %lld frames", (long long)*n);
    wt_onset_destroy(onset);
    return status;
}

wt_status analyze_onset_strength(const analyze_signal *s, analyze_result *r)
{
    float *envelope;
    int64_t n;
    void *data;
    wt_status status = strength(s, false, &envelope, &n);
    if (!status) status = analyze_add(r, &(analyze_array){.name = "onset_strength", .unit = "dB"}, 1, n, &data);
    for (int64_t t = 0; t < n && !status; t++) ((float *)data)[t] = envelope[t];
    free(envelope);
    return status;
}

static wt_status add_events(analyze_result *r, const char *name, const int *frames, int64_t count)
{
    void *data;
    const analyze_array like = {.name = name, .unit = "frame", .type = ANALYZE_I32, .layout = ANALYZE_EVENTS};
    wt_status status = analyze_add(r, &like, 1, count, &data);
    for (int64_t k = 0; k < count && !status; k++) ((int *)data)[k] = frames[k];
    return status;
}

wt_status analyze_onsets(const analyze_signal *s, analyze_result *r)
{
    float *envelope;
    int64_t n, count = 0;
    int *frames = NULL;
    const wt_peak_config peaks = wt_onset_peaks(s->rate_hz, analyze_hop(s->options));
    wt_status status = strength(s, false, &envelope, &n);
    if (!status && !(frames = malloc(sizeof(int) * (size_t)n))) status = wt_fail(WT_ERR_NO_MEMORY, "onsets");
    if (!status) count = wt_onset_detect(&peaks, envelope, n, frames);
    if (!status && s->options->backtrack) wt_onset_backtrack(envelope, n, frames, count, frames);
    if (!status) status = add_events(r, "onsets", frames, count);
    free(envelope), free(frames);
    return status;
}

static wt_tempo_config tempo_config(const analyze_signal *s)
{
    return (wt_tempo_config){.rate_hz = s->rate_hz, .hop = analyze_hop(s->options)};
}

wt_status analyze_tempo(const analyze_signal *s, analyze_result *r)
{
    float *envelope;
    int64_t n;
    wt_tempo *tempo = NULL;
    const wt_tempo_config config = tempo_config(s);
    wt_status status = strength(s, false, &envelope, &n);
    if (!status) status = wt_tempo_create(NULL, &config, &tempo);
    if (!status) status = analyze_add_value(r, "tempo", "BPM", wt_tempo_run(tempo, envelope, n));
    wt_tempo_destroy(tempo);
    free(envelope);
    return status;
}

wt_status analyze_beats(const analyze_signal *s, analyze_result *r)
{
    float *envelope;
    int64_t n, count;
    int *frames = NULL;
    double bpm;
    wt_beat *beat = NULL;
    wt_status status = strength(s, true, &envelope, &n);
    const wt_beat_config config = {.tempo = tempo_config(s), .bpm = s->options->bpm, .max_frames = n};
    if (!status) status = wt_beat_create(NULL, &config, &beat);
    if (!status && !(frames = malloc(sizeof(int) * (size_t)n))) status = wt_fail(WT_ERR_NO_MEMORY, "beats");
    if (!status) {
        count = wt_beat_run(beat, envelope, n, frames, &bpm);
        status = add_events(r, "beats", frames, count);
        if (!status) status = analyze_add_value(r, "beat_tempo", "BPM", bpm);
    }
    wt_beat_destroy(beat);
    free(envelope), free(frames);
    return status;
}

wt_status analyze_tempogram(const analyze_signal *s, analyze_result *r)
{
    enum { LAGS = 384 };
    float *envelope, *rows = NULL;
    int64_t n, n_rows = 0;
    void *data;
    wt_tempogram *plan = NULL;
    const analyze_array like = {.name = "tempogram", .unit = "", .rows = ANALYZE_ROWS_LAG};
    wt_status status = strength(s, false, &envelope, &n);
    if (!status) status = wt_tempogram_create(NULL, &(wt_tempogram_config){.win_length = LAGS}, &plan);
    if (!status) n_rows = wt_tempogram_rows(plan, n);
    if (!status && !(rows = malloc(sizeof(float) * LAGS * (size_t)n_rows)))
        status = wt_fail(WT_ERR_NO_MEMORY, "tempogram: %lld frames", (long long)n_rows);
    if (!status) wt_tempogram_run(plan, envelope, n, rows);
    if (!status) status = analyze_add(r, &like, LAGS, n_rows, &data);
    for (int64_t t = 0; t < n_rows && !status; t++)
        for (int64_t k = 0; k < LAGS; k++) ((float *)data)[k * n_rows + t] = rows[t * LAGS + k];
    wt_tempogram_destroy(plan);
    free(envelope), free(rows);
    return status;
}

static wt_status enqueue_plp(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_plp_enqueue(op, stream, in, 0, out, 0);
}

wt_status analyze_plp(const analyze_signal *s, analyze_result *r)
{
    float *envelope;
    int64_t n;
    void *data;
    wt_plp *plp = NULL;
    wt_device *gpu = analyze_gpu(s);
    wt_status status = strength(s, true, &envelope, &n);
    const wt_plp_config config = {.rate_hz = s->rate_hz, .hop = analyze_hop(s->options), .max_frames = n};
    if (!status) {
        status = wt_plp_create(gpu, &config, &plp);
        if (analyze_left_to_cpu(s, status)) status = wt_plp_create(gpu = NULL, &config, &plp);
    }
    if (!status) status = analyze_add(r, &(analyze_array){.name = "plp", .unit = ""}, 1, n, &data);
    if (!status && gpu) status = analyze_queue(s, enqueue_plp, plp, envelope, (size_t)n, data, (size_t)n);
    else if (!status) wt_plp_run(plp, envelope, n, data);
    wt_plp_destroy(plp);
    free(envelope);
    return status;
}

// ---- loudness

/// Meter the file in blocks, all channels at its own rate.
static wt_status meter_file(const char *path, wt_loudness_values *values)
{
    enum { BLOCK = 4096 };
    wt_audio_reader *reader;
    wt_loudness *meter = NULL;
    wt_status status = wt_audio_reader_open(path, NULL, &reader);
    if (status) return status;
    const wt_audio_info info = wt_audio_reader_get_info(reader);
    const wt_loudness_config config = {.rate_hz = info.rate_hz, .channels = info.channels};
    float *block = malloc(sizeof(float) * BLOCK * (size_t)info.channels);
    if (!block) status = wt_fail(WT_ERR_NO_MEMORY, "loudness: block");
    if (!status) status = wt_loudness_create(&config, &meter);
    for (int n = BLOCK; !status && n == BLOCK;) {
        const float *in[WT_AUDIO_MAX_CHANNELS];
        for (int c = 0; c < info.channels; c++) in[c] = block + (size_t)c * BLOCK;
        status = wt_audio_reader_read(reader, block, BLOCK, BLOCK, &n);
        if (!status && n) wt_loudness_process(meter, in, n);
    }
    if (!status) wt_loudness_query(meter, values);
    wt_loudness_destroy(meter);
    free(block);
    wt_audio_reader_close(reader);
    return status;
}

static wt_status enqueue_loudness(void *op, wt_stream *stream, const wt_buffer *in, wt_buffer *out)
{
    return wt_loudness_batch_enqueue(op, stream, in, 0, out, 0);
}

/// The same on the signal's GPU, which takes the file whole.
static wt_status meter_on_gpu(const analyze_signal *s, wt_loudness_values *values)
{
    wt_audio audio;
    wt_loudness_batch *batch = NULL;
    wt_status status = wt_audio_load(s->path, 0, &audio);
    if (status) return status;
    const wt_loudness_batch_config config = {{.rate_hz = audio.rate_hz, .channels = audio.channels}, audio.n_frames, 1};
    status = wt_loudness_batch_create(analyze_gpu(s), &config, &batch);
    if (!status) // the values are numbers of 8 bytes
        status = analyze_queue(s, enqueue_loudness, batch, audio.samples,
                               (size_t)audio.channels * (size_t)audio.n_frames, (float *)values,
                               sizeof *values / sizeof(float));
    wt_loudness_batch_destroy(batch);
    wt_audio_free(&audio);
    return status;
}

wt_status analyze_loudness(const analyze_signal *s, analyze_result *r)
{
    wt_loudness_values v;
    const bool on_gpu = analyze_gpu(s) && s->n > 0;
    wt_status status = on_gpu ? meter_on_gpu(s, &v) : meter_file(s->path, &v);
    if (on_gpu && analyze_left_to_cpu(s, status)) status = meter_file(s->path, &v);
    if (!status) status = analyze_add_value(r, "integrated_lufs", "LUFS", v.integrated_lufs);
    if (!status) status = analyze_add_value(r, "range_lu", "LU", v.range_lu);
    if (!status) status = analyze_add_value(r, "max_momentary_lufs", "LUFS", v.max_momentary_lufs);
    if (!status) status = analyze_add_value(r, "max_short_term_lufs", "LUFS", v.max_short_term_lufs);
    if (!status) status = analyze_add_value(r, "sample_peak_db", "dB", v.sample_peak_db);
    if (!status) status = analyze_add_value(r, "true_peak_db", "dBTP", v.true_peak_db);
    return status;
}
