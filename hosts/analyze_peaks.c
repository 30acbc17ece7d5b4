// Where the energy of spectra lies: peaks as pitches, harmonics of each frequency, reassigned bins; on the calling
// thread, and on a GPU.

#include "analyze_features.h"

#include <stdlib.h>
#include <warptone/reassigned.h>
#include <warptone/salience.h>

static wt_piptrack_config piptrack_config(const analyze_signal *s)
{
    const analyze_options *o = s->options;
    return (wt_piptrack_config){
        .rate_hz = s->rate_hz, .n_fft = analyze_n_fft(o), .fmin_hz = o->fmin_hz, .fmax_hz = o->fmax_hz,
        .threshold = o->ops.threshold};
}

wt_status analyze_piptrack(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *hz = NULL;
    const wt_piptrack_config config = piptrack_config(s);
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, true, &x);
    const size_t count = (size_t)x.n_frames * (size_t)x.bins;
    if (!status && !(hz = malloc(2 * count * sizeof *hz)))
        status = wt_fail(WT_ERR_NO_MEMORY, "piptrack: %lld frames", (long long)x.n_frames);
    if (!status) status = wt_piptrack(&config, x.values, x.n_frames, hz, hz + count);
    if (!status) status = analyze_add_turned(r, &analyze_like.pitches, hz, x.n_frames, x.bins);
    if (!status) status = analyze_add_turned(r, &analyze_like.pitch_magnitudes, hz + count, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    free(hz);
    return status;
}

/// The first four multiples of each bin's frequency, if no others were said.
static wt_status make_salience(wt_device *device, const analyze_signal *s, int bins, wt_salience **plan)
{
    static const double harmonics[] = {1, 2, 3, 4}, weights[] = {1, 0.45, 0.33, 0.25};
    double *hz = malloc(sizeof *hz * (size_t)bins);
    if (!hz) return wt_fail(WT_ERR_NO_MEMORY, "salience: %d bins", bins);
    for (int k = 0; k < bins; k++) hz[k] = (double)k * s->rate_hz / analyze_n_fft(s->options);
    const analyze_settings *t = &s->options->ops;
    const wt_salience_config config = {.n_bins = bins,
                                       .frequencies = hz,
                                       .n_harmonics = t->n_harmonics ? t->n_harmonics : 4,
                                       .harmonics = t->n_harmonics ? t->harmonics : harmonics,
                                       .weights = t->n_weights ? t->weights : t->n_harmonics ? NULL : weights,
                                       .all_bins = t->all_bins,
                                       .fill = (float)t->fill};
    wt_status status = wt_salience_create(device, &config, plan);
    free(hz);
    return status;
}

wt_status analyze_salience(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_salience *plan = NULL;
    float *out = NULL;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, true, &x);
    if (!status) status = make_salience(NULL, s, x.bins, &plan);
    if (!status && !(out = malloc(sizeof *out * (size_t)x.n_frames * (size_t)x.bins)))
        status = wt_fail(WT_ERR_NO_MEMORY, "salience: %lld frames", (long long)x.n_frames);
    if (!status) wt_salience_run(plan, x.values, x.n_frames, out);
    if (!status) status = analyze_add_turned(r, &analyze_like.salience, out, x.n_frames, x.bins);
    wt_salience_destroy(plan);
    analyze_spectra_free(&x);
    free(out);
    return status;
}

static const analyze_array *const reassigned_likes[] = {
    &analyze_like.reassigned_frequencies, &analyze_like.reassigned_times, &analyze_like.reassigned_magnitudes};

static wt_reassigned_config reassigned_config(const analyze_signal *s, int n_signals)
{
    wt_reassigned_config config = s->options->ops.reassigned;
    config.stft = analyze_stft_config(s->options), config.rate_hz = s->rate_hz;
    config.n_samples = s->n, config.n_signals = n_signals;
    return config;
}

/// Of n samples: a tile's place in its signal. A plan that is kept may have been at another.
static void place(wt_reassigned *plan, const analyze_whole *whole, int64_t n)
{
    wt_reassigned_place(plan, whole ? whole->begin : 0, whole ? whole->n : n);
}

/// From its three parts, behind each other.
static wt_status add_reassigned(const float *in, int64_t n_frames, int64_t bins, analyze_result *r)
{
    wt_status status = WT_OK;
    for (int k = 0; k < 3 && !status; k++)
        status = analyze_add_turned(r, reassigned_likes[k], in + k * n_frames * bins, n_frames, bins);
    return status;
}

wt_status analyze_reassigned(const analyze_signal *s, analyze_result *r)
{
    wt_reassigned *plan;
    const wt_reassigned_config config = reassigned_config(s, 1);
    wt_status status = wt_reassigned_create(NULL, &config, &plan);
    if (status) return status;
    const int64_t n_frames = wt_reassigned_frames(plan), bins = wt_reassigned_bins(plan);
    float *out = malloc(3 * sizeof *out * (size_t)(n_frames * bins));
    place(plan, s->whole, s->n);
    if (out)
        wt_reassigned_run(plan, s->pcm, out);
    else
        status = wt_fail(WT_ERR_NO_MEMORY, "reassigned: %lld frames", (long long)n_frames);
    if (!status) status = add_reassigned(out, n_frames, bins, r);
    wt_reassigned_destroy(plan);
    free(out);
    return status;
}

// ---- on a GPU

enum { ROOM_OUT = 1 }; // behind the spectra's

static size_t floats_of(const analyze_batch *b, int64_t n_frames)
{
    return (size_t)b->n_signals * (size_t)n_frames * ((size_t)analyze_n_fft(b->signal.options) / 2 + 1);
}

static wt_status make_piptrack(const analyze_batch *b, int variant, void **plan)
{
    const wt_tuning_config config = {.peaks = piptrack_config(&b->signal),
                                     .n_frames = analyze_frames(b->signal.options, b->signal.n),
                                     .n_signals = b->n_signals};
    (void)variant;
    return wt_tuning_create(b->signal.place->device, &config, (wt_tuning **)plan);
}

static void destroy_piptrack(void *plan) { wt_tuning_destroy(plan); }

wt_status analyze_gpu_piptrack(const analyze_batch *b, analyze_result *parts)
{
    const int64_t bins = analyze_n_fft(b->signal.options) / 2 + 1;
    wt_buffer *spectra, *out = NULL;
    int64_t n_frames = 0;
    void *plan;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, true, &spectra, &n_frames);
    const size_t count = floats_of(b, n_frames), bytes = sizeof(float) * count;
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_piptrack, destroy_piptrack}, 0, &plan);
    if (!status) status = analyze_room(b, ROOM_OUT, 2 * bytes, &out);
    if (!status) status = wt_tuning_enqueue_peaks(plan, b->signal.place->stream, spectra, 0, out, 0, out, bytes);
    if (!status) status = analyze_fetch(b, out, 2 * bytes, &data);
    if (!status) status = analyze_give(b, parts, &analyze_like.pitches, data, bins, n_frames, true);
    if (status) return status;
    return analyze_give(b, parts, &analyze_like.pitch_magnitudes, (const float *)data + count, bins, n_frames, true);
}

static wt_status make_salience_plan(const analyze_batch *b, int bins, void **plan)
{
    return make_salience(b->signal.place->device, &b->signal, bins, (wt_salience **)plan);
}

static void destroy_salience(void *plan) { wt_salience_destroy(plan); }

wt_status analyze_gpu_salience(const analyze_batch *b, analyze_result *parts)
{
    const int bins = analyze_n_fft(b->signal.options) / 2 + 1;
    wt_buffer *spectra, *out = NULL;
    int64_t n_frames = 0;
    void *plan;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, true, &spectra, &n_frames);
    const size_t bytes = sizeof(float) * floats_of(b, n_frames);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_salience_plan, destroy_salience}, bins, &plan);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status)
        status = wt_salience_enqueue(plan, b->signal.place->stream, spectra, 0, b->n_signals * n_frames, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.salience, data, bins, n_frames, true);
}

static wt_status make_reassigned(const analyze_batch *b, int variant, void **plan)
{
    const wt_reassigned_config config = reassigned_config(&b->signal, b->n_signals);
    (void)variant;
    return wt_reassigned_create(b->signal.place->device, &config, (wt_reassigned **)plan);
}

static void destroy_reassigned(void *plan) { wt_reassigned_destroy(plan); }

wt_status analyze_gpu_reassigned(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_reassigned, destroy_reassigned}, 0, &plan);
    const int64_t n_frames = status ? 0 : wt_reassigned_frames(plan), bins = status ? 0 : wt_reassigned_bins(plan);
    const size_t bytes = 3 * sizeof(float) * floats_of(b, n_frames);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) place(plan, b->whole, b->signal.n);
    if (!status) status = wt_reassigned_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    for (int k = 0; k < b->n_used && !status; k++)
        status = add_reassigned((const float *)data + 3 * k * n_frames * bins, n_frames, bins, &parts[k]);
    return status;
}
