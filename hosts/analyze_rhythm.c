#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>

// ---- pitch

// C2 to C7, the range of most voices and instruments, as librosa's pages use it.
static const double c2_hz = 65.40639132514966, c7_hz = 2093.004522404789;

static wt_pitch_frames pitch_frames(const analyze_signal *s)
{
    const analyze_options *o = s->options;
    return (wt_pitch_frames){.rate_hz = s->rate_hz, .fmin_hz = o->fmin_hz > 0 ? o->fmin_hz : c2_hz,
                             .fmax_hz = o->fmax_hz > 0 ? o->fmax_hz : c7_hz, .frame_length = analyze_n_fft(o),
                             .hop = analyze_hop(o), .n_samples = s->n, .pad = o->padding, .no_center = o->no_center};
}

wt_yin_config analyze_yin_config(const analyze_signal *s)
{
    wt_yin_config config = s->options->ops.yin;
    config.frames = pitch_frames(s);
    return config;
}

wt_pyin_config analyze_pyin_config(const analyze_signal *s)
{
    wt_pyin_config config = s->options->ops.pyin;
    config.frames = pitch_frames(s);
    config.resolution = s->options->ops.resolution, config.calibrated = s->options->calibrated;
    return config;
}

wt_status analyze_yin(const analyze_signal *s, analyze_result *r)
{
    wt_yin *yin;
    void *data;
    const wt_yin_config config = analyze_yin_config(s);
    wt_status status = wt_yin_create(NULL, &config, &yin);
    if (status) return status;
    status = analyze_add(r, &analyze_like.yin, 1, wt_yin_n_frames(yin), &data);
    if (!status) wt_yin_run(yin, s->pcm, data);
    wt_yin_destroy(yin);
    return status;
}

wt_status analyze_add_pyin(analyze_result *r, const float *f0, const float *voiced, const float *probability, int64_t n)
{
    void *hz, *flags, *shares;
    wt_status status = analyze_add(r, &analyze_like.f0, 1, n, &hz);
    if (!status) status = analyze_add(r, &analyze_like.voiced, 1, n, &flags);
    if (!status) status = analyze_add(r, &analyze_like.voiced_prob, 1, n, &shares);
    if (status) return status;
    memcpy(hz, f0, sizeof *f0 * (size_t)n);
    memcpy(shares, probability, sizeof *probability * (size_t)n);
    for (int64_t t = 0; t < n; t++) ((unsigned char *)flags)[t] = voiced[t] > 0;
    return WT_OK;
}

wt_status analyze_pyin_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    wt_pyin *pyin;
    wt_pyin_config config = analyze_pyin_config(s);
    config.frames.n_samples = n;
    wt_status status = wt_pyin_create(NULL, &config, &pyin);
    if (status) return status;
    const int64_t n_frames = wt_pyin_n_frames(pyin);
    float *out = malloc(sizeof(float) * 3 * (size_t)n_frames);
    if (!out) status = wt_fail(WT_ERR_NO_MEMORY, "pyin: %lld frames", (long long)n_frames);
    if (!status) wt_pyin_run(pyin, pcm, out);
    wt_pyin_destroy(pyin);
    if (!status) status = analyze_add_pyin(r, out, out + n_frames, out + 2 * n_frames, n_frames);
    free(out);
    return status;
}

wt_status analyze_pyin(const analyze_signal *s, analyze_result *r) { return analyze_pyin_of(s, s->pcm, s->n, r); }

// ---- onsets and beats

/// Onset strength, as onsets (mean of the bands) or as beats and pulse want it (median).
wt_onset_config analyze_onset_config(const analyze_signal *s, bool median)
{
    const analyze_options *o = s->options;
    wt_onset_config config = o->ops.onset;
    config.rate_hz = s->rate_hz, config.n_fft = analyze_n_fft(o), config.hop = analyze_hop(o);
    config.n_mels = o->n_mels, config.precise = true, config.no_center = o->no_center, config.n_samples = s->n;
    config.median = o->ops.aggregate ? o->ops.aggregate == ANALYZE_AGGREGATE_MEDIAN : median;
    return config;
}

/// What a frame is compared with; and without its slow part, which its filter forgets by 0.99 a frame, 1e-9 after
/// these.
int64_t analyze_onset_reach(const analyze_signal *s)
{
    const wt_onset_config *onset = &s->options->ops.onset;
    return (int64_t)(onset->lag + (onset->detrend ? 2048 : 0)) * analyze_hop(s->options);
}

double analyze_onset_floor(float peak) { return 10 * log10(peak > 1e-10f ? peak : 1e-10f) - 80; }

/// Caller frees *envelope.
static wt_status strength(const analyze_signal *s, bool median, float **envelope, int64_t *n)
{
    wt_onset *onset;
    wt_onset_config config = analyze_onset_config(s, median);
    if (s->whole) config.has_floor = true, config.floor_db = analyze_onset_floor(s->whole->onset_peak);
    *envelope = NULL;
    wt_status status = wt_onset_create(NULL, &config, &onset);
    if (status) return status;
    *n = wt_onset_n_frames(onset);
    *envelope = malloc(sizeof(float) * (size_t)*n);
    if (*envelope) wt_onset_run(onset, s->pcm, *envelope);
    else status = wt_fail(WT_ERR_NO_MEMORY, "onset: %lld frames", (long long)*n);
    wt_onset_destroy(onset);
    return status;
}

static wt_status add_strength(const analyze_signal *s, bool median, analyze_result *r)
{
    float *envelope;
    int64_t n;
    void *data;
    wt_status status = strength(s, median, &envelope, &n);
    if (!status) status = analyze_add(r, &analyze_like.onset_strength, 1, n, &data);
    if (!status) memcpy(data, envelope, sizeof *envelope * (size_t)n);
    free(envelope);
    return status;
}

wt_status analyze_onset_strength(const analyze_signal *s, analyze_result *r) { return add_strength(s, false, r); }

wt_status analyze_beat_strength(const analyze_signal *s, analyze_result *r) { return add_strength(s, true, r); }

typedef wt_status (*finish_function)(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r);

static wt_status of_strength(const analyze_signal *s, bool median, finish_function finish, analyze_result *r)
{
    float *envelope;
    int64_t n;
    wt_status status = strength(s, median, &envelope, &n);
    if (!status) status = finish(s, envelope, n, r);
    free(envelope);
    return status;
}

wt_status analyze_add_events(analyze_result *r, const analyze_array *like, const int *frames, int64_t count)
{
    void *data;
    wt_status status = analyze_add(r, like, 1, count, &data);
    if (!status) memcpy(data, frames, sizeof *frames * (size_t)count);
    return status;
}

wt_peak_config analyze_peak_config(const analyze_signal *s)
{
    const wt_peak_config *own = &s->options->ops.peaks;
    wt_peak_config config = wt_onset_peaks(s->rate_hz, analyze_hop(s->options));
    if (own->pre_max >= 0) config.pre_max = own->pre_max;
    if (own->post_max >= 0) config.post_max = own->post_max;
    if (own->pre_avg >= 0) config.pre_avg = own->pre_avg;
    if (own->post_avg >= 0) config.post_avg = own->post_avg;
    if (own->wait >= 0) config.wait = own->wait;
    if (own->delta >= 0) config.delta = own->delta;
    return config;
}

wt_status analyze_onsets_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    const wt_peak_config peaks = analyze_peak_config(s);
    int *frames = malloc(sizeof(int) * (size_t)n);
    if (!frames) return wt_fail(WT_ERR_NO_MEMORY, "onsets");
    const int64_t count = s->options->ops.no_normalize ? wt_peak_pick(&peaks, envelope, n, frames)
                                                       : wt_onset_detect(&peaks, envelope, n, frames);
    if (s->options->backtrack) wt_onset_backtrack(envelope, n, frames, count, frames);
    wt_status status = analyze_add_events(r, &analyze_like.onsets, frames, count);
    free(frames);
    return status;
}

wt_status analyze_onsets(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, false, analyze_onsets_of, r);
}

wt_tempo_config analyze_tempo_config(const analyze_signal *s)
{
    wt_tempo_config config = s->options->ops.tempo;
    config.rate_hz = s->rate_hz, config.hop = analyze_hop(s->options), config.fine = s->options->fine;
    return config;
}

wt_beat_config analyze_beat_config(const analyze_signal *s)
{
    wt_beat_config config = s->options->ops.beat;
    config.tempo = analyze_tempo_config(s), config.bpm = s->options->bpm;
    return config;
}

wt_plp_config analyze_plp_config(const analyze_signal *s)
{
    wt_plp_config config = s->options->ops.plp;
    config.rate_hz = s->rate_hz, config.hop = analyze_hop(s->options);
    config.win_length = s->options->ops.tempogram_length;
    return config;
}

wt_status analyze_tempo_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    wt_tempo *tempo = NULL;
    const wt_tempo_config config = analyze_tempo_config(s);
    wt_status status = wt_tempo_create(NULL, &config, &tempo);
    if (!status) status = analyze_add_value(r, "tempo", "BPM", wt_tempo_run(tempo, envelope, n));
    wt_tempo_destroy(tempo);
    return status;
}

wt_status analyze_tempo(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, false, analyze_tempo_of, r);
}

static wt_status tempos_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    wt_tempo *tempo = NULL;
    void *bpm;
    const wt_tempo_config config = analyze_tempo_config(s);
    wt_status status = wt_tempo_create(NULL, &config, &tempo);
    if (!status) status = analyze_add(r, &analyze_like.tempos, 1, n, &bpm);
    if (!status) wt_tempo_run_frames(tempo, envelope, n, bpm);
    wt_tempo_destroy(tempo);
    return status;
}

wt_status analyze_tempos(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, false, tempos_of, r);
}

/// Half of the window that lags are looked for in, with a frame's rounding.
int64_t analyze_tempos_reach(const analyze_signal *s)
{
    const double ac_size_s = s->options->ops.tempo.ac_size_s;
    return (int64_t)((ac_size_s > 0 ? ac_size_s : 8) / 2 * s->rate_hz) + 2 * analyze_hop(s->options) +
           analyze_onset_reach(s);
}

wt_status analyze_beats_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    double bpm;
    wt_beat *beat = NULL;
    wt_beat_config config = analyze_beat_config(s);
    config.max_frames = n;
    int *frames = malloc(sizeof(int) * (size_t)n);
    wt_status status = frames ? wt_beat_create(NULL, &config, &beat) : wt_fail(WT_ERR_NO_MEMORY, "beats");
    if (!status)
        status = analyze_add_events(r, &analyze_like.beats, frames, wt_beat_run(beat, envelope, n, frames, &bpm));
    if (!status) status = analyze_add_value(r, "beat_tempo", "BPM", bpm);
    wt_beat_destroy(beat);
    free(frames);
    return status;
}

wt_status analyze_beats(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, true, analyze_beats_of, r);
}

wt_tempogram_config analyze_tempogram_config(const analyze_options *o)
{
    return (wt_tempogram_config){.win_length = o->ops.tempogram_length ? o->ops.tempogram_length : 384,
                                 .no_norm = o->ops.no_norm};
}

int64_t analyze_tempogram_reach(const analyze_signal *s)
{
    const int lags = analyze_tempogram_config(s->options).win_length;
    return (int64_t)(lags / 2 + 8) * analyze_hop(s->options) + analyze_onset_reach(s);
}

/// [n_rows][lags]; caller frees, also after an error.
static wt_status tempogram_of(const wt_tempogram_config *config, const float *envelope, int64_t n, float **rows,
                              int64_t *n_rows)
{
    wt_tempogram *plan;
    *rows = NULL;
    wt_status status = wt_tempogram_create(NULL, config, &plan);
    if (status) return status;
    *n_rows = wt_tempogram_rows(plan, n);
    if (!(*rows = malloc(sizeof(float) * (size_t)(config->win_length * *n_rows))))
        status = wt_fail(WT_ERR_NO_MEMORY, "tempogram: %lld frames", (long long)*n_rows);
    if (!status) wt_tempogram_run(plan, envelope, n, *rows);
    wt_tempogram_destroy(plan);
    return status;
}

wt_status analyze_tempogram(const analyze_signal *s, analyze_result *r)
{
    const wt_tempogram_config config = analyze_tempogram_config(s->options);
    float *envelope, *rows = NULL;
    int64_t n, n_rows;
    wt_status status = strength(s, false, &envelope, &n);
    if (!status) status = tempogram_of(&config, envelope, n, &rows, &n_rows);
    if (!status) status = analyze_add_turned(r, &analyze_like.tempogram, rows, n_rows, config.win_length);
    free(envelope), free(rows);
    return status;
}

/// librosa's fourier_tempogram: a short-time transform of the envelope, frame by frame.
static wt_status fourier_tempogram_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    wt_stft *stft;
    const int lags = analyze_tempogram_config(s->options).win_length;
    wt_status status = wt_stft_create(&(wt_stft_config){.n_fft = lags, .hop = 1}, &stft);
    if (status) return status;
    const int64_t n_rows = wt_stft_frames(stft, n), bins = wt_stft_bins(stft);
    float *rows = malloc(sizeof(float) * 2 * (size_t)(n_rows * bins));
    if (!rows) status = wt_fail(WT_ERR_NO_MEMORY, "fourier_tempogram: %lld frames", (long long)n_rows);
    if (!status) status = wt_stft_forward(stft, envelope, n, rows);
    if (!status) status = analyze_add_turned(r, &analyze_like.fourier_tempogram, rows, n_rows, bins);
    wt_stft_destroy(stft);
    free(rows);
    return status;
}

wt_status analyze_fourier_tempogram(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, false, fourier_tempogram_of, r);
}

/// Of each frame's own tempo, as librosa's tempogram_ratio has it.
static wt_status tempo_ratios_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    wt_tempo *tempo = NULL;
    const wt_tempogram_config lags = analyze_tempogram_config(s->options);
    wt_tempo_config config = analyze_tempo_config(s);
    float *rows, *ratios = malloc(sizeof *ratios * WT_TEMPO_RATIOS * (size_t)n);
    double *bpm = malloc(sizeof *bpm * (size_t)n);
    int64_t n_rows;
    // the tempogram's lags, whichever way it rounds
    config.ac_size_s = (lags.win_length + 0.5) * config.hop / config.rate_hz;
    wt_status status = tempogram_of(&lags, envelope, n, &rows, &n_rows);
    if (!status && (!ratios || !bpm)) status = wt_fail(WT_ERR_NO_MEMORY, "tempo_ratios: %lld frames", (long long)n);
    if (!status) status = wt_tempo_create(NULL, &config, &tempo);
    if (!status) wt_tempo_run_frames(tempo, envelope, n, bpm);
    for (int64_t t = 0; t < n && !status; t++)
        wt_tempogram_ratio(s->rate_hz, config.hop, rows + t * lags.win_length, lags.win_length, bpm[t],
                           ratios + t * WT_TEMPO_RATIOS);
    if (!status) status = analyze_add_turned(r, &analyze_like.tempo_ratios, ratios, n, WT_TEMPO_RATIOS);
    wt_tempo_destroy(tempo);
    free(rows), free(ratios), free(bpm);
    return status;
}

wt_status analyze_tempo_ratios(const analyze_signal *s, analyze_result *r)
{
    return of_strength(s, false, tempo_ratios_of, r);
}

wt_status analyze_plp_of(const analyze_signal *s, const float *envelope, int64_t n, analyze_result *r)
{
    void *data;
    wt_plp *plp = NULL;
    wt_plp_config config = analyze_plp_config(s);
    config.max_frames = n;
    wt_status status = wt_plp_create(NULL, &config, &plp);
    if (!status) status = analyze_add(r, &analyze_like.plp, 1, n, &data);
    if (!status) wt_plp_run(plp, envelope, n, data);
    wt_plp_destroy(plp);
    return status;
}

wt_status analyze_plp(const analyze_signal *s, analyze_result *r) { return of_strength(s, true, analyze_plp_of, r); }

// ---- loudness

/// A meter of a file, all channels at its own rate.
typedef struct metering {
    wt_audio_reader *reader;
    wt_loudness *meter;
    wt_audio_info info;
    float *block; // [channels][room]
    int room;
} metering;

static void metering_end(metering *m)
{
    wt_loudness_destroy(m->meter);
    free(m->block);
    wt_audio_reader_close(m->reader);
}

wt_loudness_config analyze_loudness_config(const analyze_options *o, int rate_hz, int channels)
{
    wt_loudness_config config = o->ops.loudness;
    config.rate_hz = rate_hz, config.channels = channels;
    return config;
}

/// In blocks of up to `room` frames, 0 = a tenth of a second. End it also after an error.
static wt_status metering_begin(const analyze_options *o, const char *path, int room, metering *m)
{
    *m = (metering){.reader = NULL};
    wt_status status = wt_audio_reader_open(path, NULL, &m->reader);
    if (status) return status;
    m->info = wt_audio_reader_get_info(m->reader);
    m->room = room ? room : m->info.rate_hz / 10 + 1;
    m->block = malloc(sizeof(float) * (size_t)m->room * (size_t)m->info.channels);
    if (!m->block) return wt_fail(WT_ERR_NO_MEMORY, "loudness: block");
    const wt_loudness_config config = analyze_loudness_config(o, m->info.rate_hz, m->info.channels);
    return wt_loudness_create(&config, &m->meter);
}

static wt_status meter_block(metering *m, int n, int *n_got)
{
    const float *in[WT_AUDIO_MAX_CHANNELS];
    for (int c = 0; c < m->info.channels; c++) in[c] = m->block + (size_t)c * (size_t)m->room;
    wt_status status = wt_audio_reader_read(m->reader, m->block, n, (size_t)m->room, n_got);
    if (!status && *n_got) wt_loudness_process(m->meter, in, *n_got);
    return status;
}

static wt_status meter_file(const analyze_options *o, const char *path, wt_loudness_values *values)
{
    enum { BLOCK = 4096 };
    metering m;
    wt_status status = metering_begin(o, path, BLOCK, &m);
    for (int n = BLOCK; !status && n == BLOCK;) status = meter_block(&m, BLOCK, &n);
    if (!status) wt_loudness_query(m.meter, values);
    metering_end(&m);
    return status;
}

typedef struct curve {
    float (*pairs)[2]; // momentary, short-term
    int64_t n, room;
} curve;

static wt_status curve_add(curve *c, const wt_loudness_values *v)
{
    if (c->n == c->room) {
        const int64_t room = 1000 + 2 * c->room;
        float(*pairs)[2] = realloc(c->pairs, sizeof *pairs * (size_t)room);
        if (!pairs) return wt_fail(WT_ERR_NO_MEMORY, "loudness_curve: %lld steps", (long long)room);
        c->pairs = pairs, c->room = room;
    }
    c->pairs[c->n][0] = (float)v->momentary_lufs, c->pairs[c->n++][1] = (float)v->short_term_lufs;
    return WT_OK;
}

/// Step k ends at frame (k + 1) rate / 10, rounded down; what is left behind the last has none.
wt_status analyze_loudness_curve(const analyze_signal *s, analyze_result *r)
{
    metering m;
    curve c = {.n = 0};
    void *rows[2];
    wt_status status = metering_begin(s->options, s->path, 0, &m);
    for (int64_t at = 0; !status;) {
        wt_loudness_values values;
        const int n = (int)((c.n + 1) * m.info.rate_hz / 10 - at);
        int n_got;
        status = meter_block(&m, n, &n_got);
        if (status || n_got < n) break;
        at += n;
        wt_loudness_query(m.meter, &values);
        status = curve_add(&c, &values);
    }
    if (!status) status = analyze_add(r, &analyze_like.momentary, 1, c.n, &rows[0]);
    if (!status) status = analyze_add(r, &analyze_like.short_term, 1, c.n, &rows[1]);
    for (int64_t k = 0; k < 2 * c.n && !status; k++) ((float *)rows[k % 2])[k / 2] = c.pairs[k / 2][k % 2];
    free(c.pairs);
    metering_end(&m);
    return status;
}

wt_status analyze_add_loudness(analyze_result *r, const wt_loudness_values *v)
{
    wt_status status = analyze_add_value(r, "integrated_lufs", "LUFS", v->integrated_lufs);
    if (!status) status = analyze_add_value(r, "range_lu", "LU", v->range_lu);
    if (!status) status = analyze_add_value(r, "max_momentary_lufs", "LUFS", v->max_momentary_lufs);
    if (!status) status = analyze_add_value(r, "max_short_term_lufs", "LUFS", v->max_short_term_lufs);
    if (!status) status = analyze_add_value(r, "sample_peak_db", "dB", v->sample_peak_db);
    if (!status) status = analyze_add_value(r, "true_peak_db", "dBTP", v->true_peak_db);
    return status;
}

wt_status analyze_loudness(const analyze_signal *s, analyze_result *r)
{
    wt_loudness_values values;
    wt_status status = meter_file(s->options, s->path, &values);
    return status ? status : analyze_add_loudness(r, &values);
}
