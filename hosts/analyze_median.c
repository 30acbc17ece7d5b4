// Medians of samples and of magnitudes, and magnitudes as those of their nearest neighbours; on the calling thread, and
// on a GPU.

#include "analyze_features.h"

#include <limits.h>
#include <stdlib.h>
#include <warptone/median.h>

// ---- medians

static int kernel_of(const analyze_signal *s, int otherwise)
{
    return s->options->kernel ? s->options->kernel : otherwise;
}

/// Of samples, one image [1][n] a signal.
static wt_status samples_config(const analyze_signal *s, int n_signals, wt_median_config *config)
{
    if (s->n > INT_MAX)
        return wt_fail(WT_ERR_LENGTH, "median: %lld samples, want at most %d", (long long)s->n, INT_MAX);
    *config = (wt_median_config){
        .rows = 1, .columns = (int)s->n, .kernel_columns = kernel_of(s, 5), .lines = n_signals};
    return WT_OK;
}

/// Of magnitudes, [n_frames][bins] a signal.
static wt_status magnitudes_config(const analyze_signal *s, int64_t n_frames, int n_signals, wt_median_config *config)
{
    if (n_frames > INT_MAX)
        return wt_fail(WT_ERR_LENGTH, "median_spectrogram: %lld frames, want at most %d", (long long)n_frames,
                       INT_MAX);
    *config = (wt_median_config){.rows = (int)n_frames,
                                 .columns = analyze_n_fft(s->options) / 2 + 1,
                                 .kernel_rows = kernel_of(s, 31),
                                 .kernel_columns = s->options->kernel_bins,
                                 .lines = n_signals};
    return WT_OK;
}

int64_t analyze_median_reach(const analyze_signal *s) { return kernel_of(s, 5); }

int64_t analyze_median_spectrogram_reach(const analyze_signal *s)
{
    return (int64_t)kernel_of(s, 31) * analyze_hop(s->options);
}

wt_status analyze_median(const analyze_signal *s, analyze_result *r)
{
    wt_median_config config;
    wt_median *median = NULL;
    void *out;
    wt_status status = samples_config(s, 1, &config);
    if (!status) status = wt_median_create(&config, &median);
    if (!status) status = analyze_add(r, &analyze_like.median, 1, s->n, &out);
    if (!status) wt_median_run(median, s->pcm, out);
    wt_median_destroy(median);
    return status;
}

wt_status analyze_median_spectrogram(const analyze_signal *s, analyze_result *r)
{
    wt_median_config config;
    wt_median *median = NULL;
    analyze_spectra x;
    float *out = NULL;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, false, &x);
    if (!status) status = magnitudes_config(s, x.n_frames, 1, &config);
    if (!status) status = wt_median_create(&config, &median);
    if (!status && !(out = malloc(sizeof *out * (size_t)(x.n_frames * x.bins))))
        status = wt_fail(WT_ERR_NO_MEMORY, "median_spectrogram: %lld frames", (long long)x.n_frames);
    if (!status) wt_median_run(median, x.values, out);
    if (!status) status = analyze_add_turned(r, &analyze_like.median_spectrogram, out, x.n_frames, x.bins);
    wt_median_destroy(median);
    analyze_spectra_free(&x);
    free(out);
    return status;
}

// ---- neighbours

static wt_nn_filter_config neighbours_config(const analyze_signal *s, int64_t n_frames)
{
    wt_nn_filter_config config = s->options->neighbours;
    config.rows = analyze_n_fft(s->options) / 2 + 1;
    config.columns = n_frames < INT_MAX ? (int)n_frames : INT_MAX; // either is refused
    return config;
}

/// From precise spectra: of neighbours that are nearly as near both backends take the same.
wt_status analyze_nn_filter(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *rows = NULL;
    void *out;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, true, &x);
    if (!status && !(rows = malloc(sizeof *rows * (size_t)(x.n_frames * x.bins))))
        status = wt_fail(WT_ERR_NO_MEMORY, "nn_filter: %lld frames", (long long)x.n_frames);
    if (!status) status = analyze_add(r, &analyze_like.nn_filter, x.bins, x.n_frames, &out);
    if (!status) {
        const wt_nn_filter_config config = neighbours_config(s, x.n_frames);
        analyze_hush(x.values, x.n_frames * x.bins);
        analyze_turn(x.values, x.n_frames, x.bins, 1, rows);
        status = wt_nn_filter(&config, rows, out);
    }
    analyze_spectra_free(&x);
    free(rows);
    return status;
}

// ---- on a GPU

enum { ROOM_OUT = 1, ROOM_ROWS }; // behind the spectra's

static wt_status make_median(const analyze_batch *b, int variant, void **plan)
{
    wt_median_config config;
    (void)variant;
    wt_status status = samples_config(&b->signal, b->n_signals, &config);
    return status ? status : wt_median_plan_create(b->signal.place->device, &config, (wt_median_plan **)plan);
}

static wt_status make_median_of_frames(const analyze_batch *b, int variant, void **plan)
{
    wt_median_config config;
    (void)variant;
    wt_status status =
        magnitudes_config(&b->signal, analyze_frames(b->signal.options, b->signal.n), b->n_signals, &config);
    return status ? status : wt_median_plan_create(b->signal.place->device, &config, (wt_median_plan **)plan);
}

static void destroy_median(void *plan) { wt_median_plan_destroy(plan); }

static void destroy_median_of_frames(void *plan) { wt_median_plan_destroy(plan); }

wt_status analyze_gpu_median(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_median, destroy_median}, 0, &plan);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_median_plan_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.median, data, 1, b->signal.n, false);
}

static size_t spectra_bytes(const analyze_batch *b, int64_t n_frames)
{
    return sizeof(float) * (size_t)b->n_signals * (size_t)n_frames * ((size_t)analyze_n_fft(b->signal.options) / 2 + 1);
}

wt_status analyze_gpu_median_spectrogram(const analyze_batch *b, analyze_result *parts)
{
    const int64_t bins = analyze_n_fft(b->signal.options) / 2 + 1;
    const analyze_maker maker = {make_median_of_frames, destroy_median_of_frames};
    wt_buffer *spectra, *out = NULL;
    int64_t n_frames = 0;
    void *plan;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, false, &spectra, &n_frames);
    const size_t bytes = spectra_bytes(b, n_frames);
    if (!status) status = analyze_kept_plan(b, &maker, 0, &plan);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_median_plan_enqueue(plan, b->signal.place->stream, spectra, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.median_spectrogram, data, bins, n_frames, true);
}

static wt_status make_neighbours(const analyze_batch *b, int variant, void **plan)
{
    const wt_nn_filter_config config =
        neighbours_config(&b->signal, analyze_frames(b->signal.options, b->signal.n));
    (void)variant;
    return wt_nn_filter_plan_create(b->signal.place->device, &config, b->n_signals, (wt_nn_filter_plan **)plan);
}

static void destroy_neighbours(void *plan) { wt_nn_filter_plan_destroy(plan); }

wt_status analyze_gpu_nn_filter(const analyze_batch *b, analyze_result *parts)
{
    const int64_t bins = analyze_n_fft(b->signal.options) / 2 + 1;
    wt_buffer *spectra, *rows = NULL, *out = NULL;
    int64_t n_frames = 0;
    void *plan;
    const void *data;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_neighbours, destroy_neighbours}, 0, &plan);
    if (!status) status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, true, &spectra, &n_frames);
    const size_t bytes = spectra_bytes(b, n_frames);
    if (!status) status = analyze_room(b, ROOM_ROWS, bytes, &rows);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = analyze_turn_on_host(b, "nn_filter", spectra, n_frames, bins, analyze_hush, rows);
    if (!status) status = wt_nn_filter_plan_enqueue(plan, b->signal.place->stream, rows, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.nn_filter, data, bins, n_frames, false);
}
