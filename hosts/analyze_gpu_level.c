// Shape of spectra, level, silence and loudness on a GPU.

#include "analyze_features.h"

#include <string.h>
#include <warptone/pcm.h>
#include <warptone/spectral.h>

static wt_status make_shape(const analyze_batch *b, int kind, void **plan)
{
    wt_spectral_config config = analyze_shape_config(&b->signal, (wt_spectral_kind)kind,
                                                     analyze_frames(b->signal.options, b->signal.n));
    config.n_signals = b->n_signals;
    return wt_spectral_create(b->signal.place->device, &config, (wt_spectral **)plan);
}

static void destroy_shape(void *plan) { wt_spectral_destroy(plan); }

/// All but those that add up magnitudes.
static bool is_precise(wt_spectral_kind kind) { return kind != WT_SPECTRAL_POLYNOMIAL && kind != WT_SPECTRAL_FLUX; }

static wt_status add_shape(const analyze_batch *b, analyze_result *parts, const analyze_array *like,
                           wt_spectral_kind kind)
{
    void *plan;
    const void *data;
    wt_buffer *spectra, *out = NULL;
    int64_t n_frames;
    int n_rows = 0;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_shape, destroy_shape}, (int)kind, &plan);
    if (!status) n_rows = wt_spectral_rows(plan);
    if (!status) status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, is_precise(kind), &spectra, &n_frames);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)n_rows * (size_t)(status ? 0 : n_frames);
    if (!status) status = analyze_room(b, 1, bytes, &out);
    if (!status) status = wt_spectral_enqueue(plan, b->signal.place->stream, spectra, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, like, data, n_rows, n_frames, false);
}

wt_status analyze_gpu_centroid(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.centroid, WT_SPECTRAL_CENTROID);
}

wt_status analyze_gpu_bandwidth(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.bandwidth, WT_SPECTRAL_BANDWIDTH);
}

wt_status analyze_gpu_rolloff(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.rolloff, WT_SPECTRAL_ROLLOFF);
}

wt_status analyze_gpu_flatness(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.flatness, WT_SPECTRAL_FLATNESS);
}

wt_status analyze_gpu_contrast_parts(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.contrast, WT_SPECTRAL_CONTRAST_PARTS);
}

wt_status analyze_gpu_contrast(const analyze_batch *b, analyze_result *parts)
{
    const bool linear = b->signal.options->ops.shape.contrast.linear;
    const analyze_array *like = linear ? &analyze_like.linear_contrast : &analyze_like.contrast;
    if (!b->whole || linear) return add_shape(b, parts, like, WT_SPECTRAL_CONTRAST);
    wt_status status = analyze_gpu_contrast_parts(b, parts);
    for (int k = 0; k < b->n_used && !status; k++) analyze_contrast_of_parts(&parts[k], b->whole + k);
    return status;
}

wt_status analyze_gpu_poly(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.poly, WT_SPECTRAL_POLYNOMIAL);
}

wt_status analyze_gpu_flux(const analyze_batch *b, analyze_result *parts)
{
    return add_shape(b, parts, &analyze_like.flux, WT_SPECTRAL_FLUX);
}

// ---- samples

enum { CENTRED = 8 }; // beside a wt_level_kind

static wt_status make_level(const analyze_batch *b, int kind, void **plan)
{
    const wt_level_plan_config config = {.kind = (wt_level_kind)(kind & ~CENTRED),
                                         .level = analyze_level_config(&b->signal, kind & CENTRED),
                                         .n_samples = b->signal.n,
                                         .n_signals = b->n_signals};
    return wt_level_plan_create(b->signal.place->device, &config, (wt_level_plan **)plan);
}

static void destroy_level(void *plan) { wt_level_plan_destroy(plan); }

static wt_status add_level(const analyze_batch *b, analyze_result *parts, const analyze_array *like, int kind)
{
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    const wt_level_config config = analyze_level_config(&b->signal, kind & CENTRED);
    const int64_t n = wt_level_frames(&config, b->signal.n);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)n;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_level, destroy_level}, kind, &plan);
    if (!status) status = analyze_room(b, 0, bytes, &out);
    if (!status) status = wt_level_plan_enqueue(plan, b->signal.place->stream, b->signal.place->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, like, data, 1, n, false);
}

wt_status analyze_gpu_rms(const analyze_batch *b, analyze_result *parts)
{
    return add_level(b, parts, &analyze_like.rms, WT_LEVEL_RMS);
}

wt_status analyze_gpu_centred_rms(const analyze_batch *b, analyze_result *parts)
{
    return add_level(b, parts, &analyze_like.rms, WT_LEVEL_RMS | CENTRED);
}

wt_status analyze_gpu_energy(const analyze_batch *b, analyze_result *parts)
{
    return add_level(b, parts, &analyze_like.energy, WT_LEVEL_ENERGY);
}

wt_status analyze_gpu_zcr(const analyze_batch *b, analyze_result *parts)
{
    return add_level(b, parts, &analyze_like.zcr, WT_LEVEL_ZERO_CROSSINGS);
}

static wt_status make_silence(const analyze_batch *b, int trim, void **plan)
{
    const wt_silence_config config = {.level = analyze_level_config(&b->signal, true),
                                      .top_db = b->signal.options->top_db,
                                      .trim = trim,
                                      .n_samples = b->signal.n,
                                      .n_signals = b->n_signals};
    return wt_silence_create(b->signal.place->device, &config, (wt_silence **)plan);
}

static void destroy_silence(void *plan) { wt_silence_destroy(plan); }

static wt_status add_silence(const analyze_batch *b, analyze_result *parts, const analyze_array *like, bool trim)
{
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    const analyze_place *p = b->signal.place;
    const size_t n = (size_t)b->n_signals;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_silence, destroy_silence}, trim, &plan);
    const size_t room = status ? 0 : (size_t)wt_silence_room(plan), spans = sizeof(wt_span) * n * room;
    if (!status) status = analyze_room(b, 0, spans + sizeof(int) * n, &out);
    if (!status) status = wt_stream_fill(p->stream, out, 0, 0, spans); // what trim says of silence
    if (!status) status = wt_silence_enqueue(plan, p->stream, p->pcm, 0, out, 0, out, spans);
    if (!status) status = analyze_fetch(b, out, spans + sizeof(int) * n, &data);
    for (int k = 0; k < b->n_used && !status; k++) {
        const wt_span *own = (const wt_span *)data + (size_t)k * room;
        const int *counts = (const int *)((const char *)data + spans);
        status = analyze_add_spans(&parts[k], like, own, trim ? 1 : counts[k]);
    }
    return status;
}

wt_status analyze_gpu_trim(const analyze_batch *b, analyze_result *parts)
{
    return add_silence(b, parts, &analyze_like.trim, true);
}

wt_status analyze_gpu_split(const analyze_batch *b, analyze_result *parts)
{
    return add_silence(b, parts, &analyze_like.split, false);
}

// ---- voice activity

static wt_status make_vad(const analyze_batch *b, int variant, void **plan)
{
    wt_vad_plan_config config = analyze_vad_config(&b->signal);
    (void)variant;
    config.n_lines = b->n_signals;
    return wt_vad_plan_create(b->signal.place->device, &config, (wt_vad_plan **)plan);
}

static void destroy_vad(void *plan) { wt_vad_plan_destroy(plan); }

/// The state that is left behind is fetched once the steps are given, so that a tile can be begun again.
wt_status analyze_gpu_speech(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *plan;
    wt_vad_part part = {.from = 0};
    wt_buffer *speech = NULL, *state = NULL;
    const void *data;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_vad, destroy_vad}, 0, &plan);
    if (status) return status;
    const size_t of_line = wt_vad_plan_state_bytes(plan) / (size_t)b->n_signals;
    status = analyze_speech_part(&b->signal, b->whole, plan, &part);
    const size_t line = sizeof(int) * (size_t)part.n_windows;
    if (!status) status = analyze_room(b, 0, line * (size_t)b->n_signals + 1, &speech);
    if (!status) status = analyze_room(b, 1, of_line * (size_t)b->n_signals, &state);
    for (int k = 0; b->whole && k < b->n_used && !status; k++) {
        wt_vad_part same;
        status = analyze_speech_part(&b->signal, b->whole + k, plan, &same);
        if (!status && part.continued)
            status = wt_stream_upload(p->stream, state, (size_t)k * of_line, b->whole[k].voice, of_line);
    }
    if (!status) status = wt_vad_plan_enqueue(plan, p->stream, p->pcm, 0, &part, state, 0, speech, 0);
    if (!status) status = analyze_fetch(b, speech, line * (size_t)b->n_signals, &data);
    for (int k = 0; k < b->n_used && !status; k++)
        status = analyze_add_speech(&parts[k], (const int *)data + k * part.n_windows, part.n_windows);
    if (status || !b->whole) return status;
    status = analyze_fetch(b, state, of_line * (size_t)b->n_used, &data);
    for (int k = 0; k < b->n_used && !status; k++)
        memcpy(b->whole[k].voice, (const char *)data + (size_t)k * of_line, of_line);
    return status;
}

wt_status analyze_gpu_vad(const analyze_batch *b, analyze_result *parts)
{
    wt_status status = analyze_gpu_speech(b, parts);
    for (int k = 0; k < b->n_used && !status; k++) status = analyze_vad_of_speech(&b->signal, &parts[k]);
    return status;
}

// ---- loudness, of all channels at the files' own rate

static wt_status make_loudness(const analyze_batch *b, int n_files, void **plan)
{
    const analyze_packed *f = &b->packed;
    const wt_loudness_batch_config config = {analyze_loudness_config(b->signal.options, f->rate_hz, f->channels), f->n,
                                             n_files};
    return wt_loudness_batch_create(b->signal.place->device, &config, (wt_loudness_batch **)plan);
}

static void destroy_loudness(void *plan) { wt_loudness_batch_destroy(plan); }

wt_status analyze_gpu_loudness(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const analyze_packed *f = &b->packed;
    const int n_files = b->n_signals / b->channels;
    void *planar, *loudness;
    const void *data;
    wt_buffer *pcm = NULL, *out = NULL;
    if (!f->channels) return WT_ERR_UNSUPPORTED; // a file by itself is metered block by block
    wt_status status = analyze_kept_plan(b, &analyze_pcm_maker, false, &planar);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_loudness, destroy_loudness}, n_files, &loudness);
    if (!status)
        status = analyze_room(b, 0, sizeof(float) * (size_t)n_files * (size_t)f->channels * (size_t)f->n, &pcm);
    if (!status) status = analyze_room(b, 1, sizeof(wt_loudness_values) * (size_t)n_files, &out);
    if (!status) status = wt_pcm_plan_enqueue(planar, p->stream, p->packed, 0, pcm, 0);
    if (!status) status = wt_loudness_batch_enqueue(loudness, p->stream, pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, sizeof(wt_loudness_values) * (size_t)n_files, &data);
    for (int k = 0; k < b->n_used && !status; k += b->channels)
        status = analyze_add_loudness(&parts[k], (const wt_loudness_values *)data + k / b->channels);
    return status;
}
