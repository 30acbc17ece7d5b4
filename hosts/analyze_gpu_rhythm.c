// Pitch, onsets and beats on a GPU. Onset strength stays there for what is made of it.

#include "analyze_features.h"

#include <string.h>

enum { ROOM_ENVELOPE, ROOM_OUT, ROOM_TEMPI, ROOM_RATIOS };

// ---- pitch

static wt_status make_yin(const analyze_batch *b, int variant, void **plan)
{
    wt_yin_config config = analyze_yin_config(&b->signal);
    (void)variant;
    config.frames.n_signals = b->n_signals;
    return wt_yin_create(b->signal.place->device, &config, (wt_yin **)plan);
}

static void destroy_yin(void *plan) { wt_yin_destroy(plan); }

wt_status analyze_gpu_yin(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *yin;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_yin, destroy_yin}, 0, &yin);
    const int64_t n = status ? 0 : wt_yin_n_frames(yin);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)n;
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_yin_enqueue(yin, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.yin, data, 1, n, false);
}

static wt_status make_pyin(const analyze_batch *b, int variant, void **plan)
{
    wt_pyin_config config = analyze_pyin_config(&b->signal);
    (void)variant;
    config.frames.n_signals = b->n_signals;
    return wt_pyin_create(b->signal.place->device, &config, (wt_pyin **)plan);
}

static void destroy_pyin(void *plan) { wt_pyin_destroy(plan); }

wt_status analyze_gpu_pyin(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *pyin;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_pyin, destroy_pyin}, 0, &pyin);
    const int64_t n = status ? 0 : wt_pyin_n_frames(pyin);
    const size_t bytes = 3 * sizeof(float) * (size_t)b->n_signals * (size_t)n;
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_pyin_enqueue(pyin, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        const float *f0 = (const float *)data + k * n, *voiced = f0 + b->n_signals * n;
        status = analyze_add_pyin(&parts[k], f0, voiced, voiced + b->n_signals * n, n);
    }
    return status;
}

// ---- onsets and beats

/// A tile's plan has its signal's floor, which is the variant: the bits of the signal's largest power.
static wt_status create_onset(const analyze_batch *b, bool median, int peak_bits, void **plan)
{
    float peak;
    memcpy(&peak, &peak_bits, sizeof peak);
    wt_onset_config config = analyze_onset_config(&b->signal, median);
    config.n_signals = b->n_signals, config.has_floor = b->whole != NULL;
    config.floor_db = analyze_onset_floor(peak);
    return wt_onset_create(b->signal.place->device, &config, (wt_onset **)plan);
}

static wt_status make_mean(const analyze_batch *b, int peak_bits, void **plan)
{
    return create_onset(b, false, peak_bits, plan);
}

static wt_status make_median(const analyze_batch *b, int peak_bits, void **plan)
{
    return create_onset(b, true, peak_bits, plan);
}

static void destroy_mean(void *plan) { wt_onset_destroy(plan); }
static void destroy_median(void *plan) { wt_onset_destroy(plan); }
static const analyze_maker onset_makers[] = {{make_mean, destroy_mean}, {make_median, destroy_median}};

/// Onset strength of all signals: [n_signals][n]. Of tiles one after the other, each with a floor of its own.
static wt_status strength(const analyze_batch *b, bool median, wt_buffer **envelope, int64_t *n)
{
    const analyze_place *p = b->signal.place;
    analyze_batch at_once = *b;
    wt_status status = WT_OK;
    if (b->whole) at_once.n_signals = 1;
    for (int k = 0; k < (b->whole ? b->n_used : 1) && !status; k++) {
        void *onset;
        int peak_bits = 0;
        if (b->whole) memcpy(&peak_bits, &b->whole[k].onset_peak, sizeof peak_bits);
        status = analyze_kept_plan(&at_once, &onset_makers[median], peak_bits, &onset);
        if (status) break;
        *n = wt_onset_n_frames(onset);
        status = analyze_room(b, ROOM_ENVELOPE, sizeof(float) * (size_t)b->n_signals * (size_t)*n, envelope);
        if (!status)
            status = wt_onset_enqueue(onset, p->stream, p->pcm, sizeof(float) * (size_t)(k * b->signal.n), *envelope,
                                      sizeof(float) * (size_t)(k * *n));
    }
    return status;
}

static wt_status add_strength(const analyze_batch *b, bool median, analyze_result *parts)
{
    wt_buffer *envelope;
    int64_t n = 0;
    const void *data;
    wt_status status = strength(b, median, &envelope, &n);
    if (!status) status = analyze_fetch(b, envelope, sizeof(float) * (size_t)b->n_signals * (size_t)n, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.onset_strength, data, 1, n, false);
}

wt_status analyze_gpu_onset_strength(const analyze_batch *b, analyze_result *parts)
{
    return add_strength(b, false, parts);
}

wt_status analyze_gpu_beat_strength(const analyze_batch *b, analyze_result *parts)
{
    return add_strength(b, true, parts);
}

static wt_status make_onsets(const analyze_batch *b, int variant, void **plan)
{
    const wt_onsets_config config = {.peaks = analyze_peak_config(&b->signal),
                                     .n_frames = analyze_centred_frames(b->signal.options, b->signal.n),
                                     .n_signals = b->n_signals,
                                     .backtrack = b->signal.options->backtrack,
                                     .plain = b->signal.options->ops.no_normalize};
    (void)variant;
    return wt_onsets_create(b->signal.place->device, &config, (wt_onsets **)plan);
}

static void destroy_onsets(void *plan) { wt_onsets_destroy(plan); }

wt_status analyze_gpu_onsets(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    wt_buffer *envelope, *out = NULL;
    int64_t n = 0;
    void *onsets;
    const void *data;
    wt_status status = strength(b, false, &envelope, &n);
    const size_t frames = sizeof(int) * (size_t)b->n_signals * (size_t)n,
                 bytes = frames + sizeof(int) * (size_t)b->n_signals;
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_onsets, destroy_onsets}, 0, &onsets);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_onsets_enqueue(onsets, p->stream, envelope, 0, out, 0, out, frames);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        const int *own = (const int *)data + k * n, *counts = (const int *)((const char *)data + frames);
        status = analyze_add_events(&parts[k], &analyze_like.onsets, own, counts[k]);
    }
    return status;
}

static wt_status make_tempo(const analyze_batch *b, int variant, void **plan)
{
    wt_tempo_config config = analyze_tempo_config(&b->signal);
    (void)variant;
    config.n_frames = analyze_centred_frames(b->signal.options, b->signal.n), config.n_signals = b->n_signals;
    return wt_tempo_create(b->signal.place->device, &config, (wt_tempo **)plan);
}

static void destroy_tempo(void *plan) { wt_tempo_destroy(plan); }

wt_status analyze_gpu_tempo(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *envelope, *out = NULL;
    int64_t n = 0;
    void *tempo;
    const void *data;
    const size_t bytes = sizeof(double) * (size_t)b->n_signals;
    wt_status status = strength(b, false, &envelope, &n);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_tempo, destroy_tempo}, 0, &tempo);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_tempo_enqueue(tempo, b->signal.place->stream, envelope, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++)
        status = analyze_add_value(&parts[k], "tempo", "BPM", ((const double *)data)[k]);
    return status;
}

static wt_status make_beat(const analyze_batch *b, int variant, void **plan)
{
    wt_beat_config config = analyze_beat_config(&b->signal);
    (void)variant;
    config.max_frames = analyze_centred_frames(b->signal.options, b->signal.n), config.n_signals = b->n_signals;
    return wt_beat_create(b->signal.place->device, &config, (wt_beat **)plan);
}

static void destroy_beat(void *plan) { wt_beat_destroy(plan); }

wt_status analyze_gpu_beats(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    wt_buffer *envelope, *out = NULL;
    int64_t n = 0;
    void *beat;
    const void *data;
    wt_status status = strength(b, true, &envelope, &n);
    const size_t found = sizeof(wt_beats) * (size_t)b->n_signals; // before the frames: it wants to be aligned
    const size_t bytes = found + sizeof(int) * (size_t)b->n_signals * (size_t)n;
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_beat, destroy_beat}, 0, &beat);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_beat_enqueue(beat, p->stream, envelope, 0, out, found, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        const wt_beats *beats = (const wt_beats *)data + k;
        const int *frames = (const int *)((const char *)data + found) + k * n;
        status = analyze_add_events(&parts[k], &analyze_like.beats, frames, beats->n_beats);
        if (!status) status = analyze_add_value(&parts[k], "beat_tempo", "BPM", beats->bpm);
    }
    return status;
}

static int lags_of(const analyze_batch *b) { return analyze_tempogram_config(b->signal.options).win_length; }

static wt_status make_tempogram(const analyze_batch *b, int variant, void **plan)
{
    wt_tempogram_config config = analyze_tempogram_config(b->signal.options);
    (void)variant;
    config.n_frames = analyze_centred_frames(b->signal.options, b->signal.n), config.n_signals = b->n_signals;
    return wt_tempogram_create(b->signal.place->device, &config, (wt_tempogram **)plan);
}

static void destroy_tempogram(void *plan) { wt_tempogram_destroy(plan); }

/// The tempograms of onset strength that is in place: [n_signals][n_rows][lags].
static wt_status tempograms(const analyze_batch *b, const wt_buffer *envelope, int64_t n, wt_buffer **rows,
                            int64_t *n_rows)
{
    void *tempogram;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_tempogram, destroy_tempogram}, 0, &tempogram);
    if (status) return status;
    *n_rows = wt_tempogram_rows(tempogram, n);
    const size_t bytes = sizeof(float) * (size_t)lags_of(b) * (size_t)b->n_signals * (size_t)*n_rows;
    status = analyze_room(b, ROOM_OUT, bytes, rows);
    return status ? status : wt_tempogram_enqueue(tempogram, b->signal.place->stream, envelope, 0, *rows, 0);
}

wt_status analyze_gpu_tempogram(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *envelope, *rows = NULL;
    int64_t n = 0, n_rows = 0;
    const void *data;
    wt_status status = strength(b, false, &envelope, &n);
    if (!status) status = tempograms(b, envelope, n, &rows, &n_rows);
    if (!status)
        status = analyze_fetch(b, rows, sizeof(float) * (size_t)lags_of(b) * (size_t)b->n_signals * (size_t)n_rows,
                               &data);
    return status ? status : analyze_give(b, parts, &analyze_like.tempogram, data, lags_of(b), n_rows, true);
}

static wt_status make_fourier(const analyze_batch *b, int variant, void **plan)
{
    const wt_stft_plan_config config = {.stft = {.n_fft = lags_of(b), .hop = 1},
                                        .n_samples = analyze_centred_frames(b->signal.options, b->signal.n),
                                        .n_signals = b->n_signals};
    (void)variant;
    return wt_stft_plan_create(b->signal.place->device, &config, (wt_stft_plan **)plan);
}

static void destroy_fourier(void *plan) { wt_stft_plan_destroy(plan); }

wt_status analyze_gpu_fourier_tempogram(const analyze_batch *b, analyze_result *parts)
{
    const int bins = lags_of(b) / 2 + 1;
    wt_buffer *envelope, *rows = NULL;
    int64_t n = 0;
    void *fourier;
    const void *data;
    wt_status status = strength(b, false, &envelope, &n);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_fourier, destroy_fourier}, 0, &fourier);
    const int64_t n_rows = status ? 0 : wt_stft_plan_frames(fourier);
    const size_t bytes = 2 * sizeof(float) * (size_t)bins * (size_t)b->n_signals * (size_t)n_rows;
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &rows);
    if (!status) status = wt_stft_plan_forward(fourier, b->signal.place->stream, envelope, 0, rows, 0);
    if (!status) status = analyze_fetch(b, rows, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.fourier_tempogram, data, bins, n_rows, true);
}

/// A tempo a frame, `as_tempogram`: of as many lags.
static wt_status make_tempi(const analyze_batch *b, int as_tempogram, void **plan)
{
    wt_tempo_config config = analyze_tempo_config(&b->signal);
    if (as_tempogram) config.ac_size_s = (lags_of(b) + 0.5) * config.hop / config.rate_hz; // whichever way it rounds
    config.frames = true;
    config.n_frames = analyze_centred_frames(b->signal.options, b->signal.n), config.n_signals = b->n_signals;
    return wt_tempo_create(b->signal.place->device, &config, (wt_tempo **)plan);
}

static void destroy_tempi(void *plan) { wt_tempo_destroy(plan); }

wt_status analyze_gpu_tempos(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *envelope, *tempi = NULL;
    int64_t n = 0;
    void *tempo;
    const void *data;
    wt_status status = strength(b, false, &envelope, &n);
    const size_t bytes = sizeof(double) * (size_t)b->n_signals * (size_t)n;
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_tempi, destroy_tempi}, false, &tempo);
    if (!status) status = analyze_room(b, ROOM_TEMPI, bytes, &tempi);
    if (!status) status = wt_tempo_enqueue_frames(tempo, b->signal.place->stream, envelope, 0, tempi, 0);
    if (!status) status = analyze_fetch(b, tempi, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.tempos, data, 1, n, false);
}

static wt_status make_ratios(const analyze_batch *b, int variant, void **plan)
{
    const wt_tempo_ratios_config config = {.rate_hz = b->signal.rate_hz,
                                           .hop = analyze_hop(b->signal.options),
                                           .win_length = lags_of(b),
                                           .n_rows =
                                               b->n_signals * analyze_centred_frames(b->signal.options, b->signal.n)};
    (void)variant;
    return wt_tempo_ratios_create(b->signal.place->device, &config, (wt_tempo_ratios **)plan);
}

static void destroy_ratios(void *plan) { wt_tempo_ratios_destroy(plan); }

wt_status analyze_gpu_tempo_ratios(const analyze_batch *b, analyze_result *parts)
{
    wt_stream *stream = b->signal.place->stream;
    wt_buffer *envelope, *rows = NULL, *tempi = NULL, *out = NULL;
    int64_t n = 0, n_rows;
    void *tempo, *ratios;
    const void *data;
    wt_status status = strength(b, false, &envelope, &n);
    const size_t frames = (size_t)b->n_signals * (size_t)n, bytes = sizeof(float) * WT_TEMPO_RATIOS * frames;
    if (!status) status = tempograms(b, envelope, n, &rows, &n_rows);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_tempi, destroy_tempi}, true, &tempo);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_ratios, destroy_ratios}, 0, &ratios);
    if (!status) status = analyze_room(b, ROOM_TEMPI, sizeof(double) * frames, &tempi);
    if (!status) status = analyze_room(b, ROOM_RATIOS, bytes, &out);
    if (!status) status = wt_tempo_enqueue_frames(tempo, stream, envelope, 0, tempi, 0);
    if (!status) status = wt_tempo_ratios_enqueue(ratios, stream, rows, 0, tempi, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.tempo_ratios, data, WT_TEMPO_RATIOS, n, true);
}

static wt_status make_plp(const analyze_batch *b, int variant, void **plan)
{
    wt_plp_config config = analyze_plp_config(&b->signal);
    (void)variant;
    config.max_frames = analyze_centred_frames(b->signal.options, b->signal.n), config.n_signals = b->n_signals;
    return wt_plp_create(b->signal.place->device, &config, (wt_plp **)plan);
}

static void destroy_plp(void *plan) { wt_plp_destroy(plan); }

wt_status analyze_gpu_plp(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *envelope, *out = NULL;
    int64_t n = 0;
    void *plp;
    const void *data;
    wt_status status = strength(b, true, &envelope, &n);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)n;
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_plp, destroy_plp}, 0, &plp);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_plp_enqueue(plp, b->signal.place->stream, envelope, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.plp, data, 1, n, false);
}
