// Magnitudes taken apart into components, and made into signals again; on the calling thread, and on a GPU.

#include "analyze_features.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/decompose.h>
#include <warptone/griffin_lim.h>
#include <warptone/mel_inverse.h>

// ---- components

/// Evenly spread from 0 to twice `mean`, by Knuth's MMIX generator.
static void fill_random(uint64_t *state, double mean, float *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        x[k] = (float)(2 * mean * (double)(*state >> 11) * 0x1p-53);
    }
}

/// What the product of two such matrices of `n` components is to equal: the mean of v.
static double start_of(const float *v, int64_t count, int n)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += v[k];
    return sqrt(sum / (double)count / n);
}

static int n_components(const analyze_options *o) { return o->n_components ? o->n_components : 8; }

/// Matrices [rows][n] and [n][columns] to begin with, for the spectrogram v [rows][columns].
static void begin_factors(const analyze_options *o, const float *v, int64_t rows, int64_t columns, float *w, float *h)
{
    const int n = n_components(o);
    uint64_t state = (uint64_t)o->seed;
    const double mean = start_of(v, rows * columns, n);
    fill_random(&state, mean, w, rows * n);
    fill_random(&state, mean, h, n * columns);
}

static wt_status make_nmf(wt_device *device, const analyze_options *o, int64_t columns, int n_signals, wt_nmf **plan)
{
    if (columns > INT_MAX) return wt_fail(WT_ERR_LENGTH, "nmf: %lld frames, want fewer", (long long)columns);
    const wt_nmf_config config = {.rows = analyze_n_fft(o) / 2 + 1,
                                  .columns = (int)columns,
                                  .n_components = n_components(o),
                                  .n_iter = o->n_iter,
                                  .solver = o->solver,
                                  .n_signals = n_signals};
    return wt_nmf_create(device, &config, plan);
}

/// `v` is the spectrogram [rows][columns].
static wt_status factor(const analyze_options *o, const analyze_array *v, analyze_result *r)
{
    const int64_t rows = v->shape[0], columns = v->shape[1];
    wt_nmf *nmf;
    void *w, *h;
    wt_status status = make_nmf(NULL, o, columns, 1, &nmf);
    if (status) return status;
    status = analyze_add(r, &analyze_like.components, rows, n_components(o), &w);
    if (!status) status = analyze_add(r, &analyze_like.activations, n_components(o), columns, &h);
    if (!status) {
        begin_factors(o, v->data, rows, columns, w, h);
        wt_nmf_run(nmf, v->data, w, h);
    }
    wt_nmf_destroy(nmf);
    return status;
}

wt_status analyze_nmf(const analyze_signal *s, analyze_result *r)
{
    analyze_result spectrogram = {.maps = s->maps};
    wt_status status = analyze_spectrogram(s, &spectrogram);
    if (!status) status = factor(s->options, &spectrogram.arrays[0], r);
    analyze_result_free(&spectrogram);
    return status;
}

// ---- signals

/// Whether a signal's phases are found in double. Every iteration magnifies rounding, so that in float the backends are
/// 1e-4 apart after 32; in double all spectra lie in memory, 32 bytes a bin.
static bool is_short(const analyze_signal *s)
{
    const int64_t most = 1 << 22; // bins: 95 s by default
    return analyze_frames(s->options, s->n) * (analyze_n_fft(s->options) / 2 + 1) <= most;
}

static wt_griffin_lim_config phases_config(const analyze_signal *s, int64_t n_frames, int n_signals)
{
    const analyze_options *o = s->options;
    wt_griffin_lim_config config = o->ops.phases;
    config.stft = analyze_stft_config(o), config.n_frames = n_frames, config.length = s->n;
    config.n_signals = n_signals, config.n_iter = o->n_iter, config.seed = (uint64_t)o->seed;
    config.in_float = !is_short(s);
    return config;
}

static wt_mel_inverse_config inverse_config(const analyze_signal *s, int64_t n_frames, int n_signals)
{
    return (wt_mel_inverse_config){
        .bank = analyze_bank(s->options, s->rate_hz),
        .power = s->options->ops.mel_power,
        .n_frames = n_frames,
        .n_signals = n_signals,
    };
}

/// As long as the signal whose magnitudes [n_frames][bins] are.
static wt_status add_signal(const analyze_signal *s, const float *magnitudes, int64_t n_frames,
                            const analyze_array *like, analyze_result *r)
{
    wt_griffin_lim_config config = phases_config(s, n_frames, 1);
    wt_griffin_lim *plan = NULL;
    size_t mapped = 0;
    void *data, *work = NULL;
    wt_status status = WT_OK;
    if (config.in_float) status = analyze_take(s->maps, sizeof(float) * (size_t)s->n, like->name, &work, &mapped);
    config.work = work;
    if (!status) status = wt_griffin_lim_create(NULL, &config, &plan);
    if (!status) status = analyze_add(r, like, 1, s->n, &data);
    if (!status) wt_griffin_lim_run(plan, magnitudes, data);
    wt_griffin_lim_destroy(plan);
    analyze_let_go(work, mapped);
    return status;
}

wt_status analyze_griffin_lim(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_status status = analyze_spectra_make(s, WT_STFT_MAGNITUDE, is_short(s), &x);
    if (!status) status = add_signal(s, x.values, x.n_frames, &analyze_like.griffin_lim, r);
    analyze_spectra_free(&x);
    return status;
}

/// Magnitudes [bins][n_frames] that have these mel bands.
static wt_status rows_of_mel(const analyze_signal *s, const analyze_array *mel, float *rows)
{
    const wt_mel_inverse_config config = inverse_config(s, mel->shape[1], 1);
    wt_mel_inverse *plan;
    wt_status status = wt_mel_inverse_create(NULL, &config, &plan);
    if (!status) wt_mel_inverse_run(plan, mel->data, rows);
    wt_mel_inverse_destroy(plan);
    return status;
}

static wt_status bands_of(const analyze_signal *s, analyze_result *mel)
{
    return is_short(s) ? analyze_precise_mel(s, mel) : analyze_mel(s, mel);
}

wt_status analyze_mel_to_stft(const analyze_signal *s, analyze_result *r)
{
    analyze_result mel = {.maps = s->maps};
    void *rows;
    wt_status status = bands_of(s, &mel);
    if (!status)
        status = analyze_add(r, &analyze_like.mel_to_stft, analyze_n_fft(s->options) / 2 + 1, mel.arrays[0].shape[1],
                             &rows);
    if (!status) status = rows_of_mel(s, &mel.arrays[0], rows);
    analyze_result_free(&mel);
    return status;
}

/// The same frame by frame; caller frees with analyze_let_go.
static wt_status spectra_of_mel(const analyze_signal *s, const analyze_array *mel, void **magnitudes, size_t *mapped)
{
    const int64_t n_frames = mel->shape[1], bins = analyze_n_fft(s->options) / 2 + 1;
    const size_t bytes = sizeof(float) * (size_t)(n_frames * bins);
    size_t rows_mapped;
    void *rows;
    *magnitudes = NULL;
    wt_status status = analyze_take(s->maps, bytes, "mel_to_audio", &rows, &rows_mapped);
    if (status) return status;
    status = rows_of_mel(s, mel, rows);
    if (!status) status = analyze_take(s->maps, bytes, "mel_to_audio", magnitudes, mapped);
    if (!status) analyze_turn(rows, bins, n_frames, 1, *magnitudes);
    analyze_let_go(rows, rows_mapped);
    return status;
}

static wt_status add_signal_of_mel(const analyze_signal *s, analyze_here *bands, const analyze_array *like,
                                   analyze_result *r)
{
    analyze_result mel = {.maps = s->maps};
    size_t mapped = 0;
    void *magnitudes = NULL;
    wt_status status = bands(s, &mel);
    if (!status) status = spectra_of_mel(s, &mel.arrays[0], &magnitudes, &mapped);
    if (!status) status = add_signal(s, magnitudes, analyze_n_columns(&mel.arrays[0]), like, r);
    analyze_let_go(magnitudes, mapped);
    analyze_result_free(&mel);
    return status;
}

wt_status analyze_mel_to_audio(const analyze_signal *s, analyze_result *r)
{
    return add_signal_of_mel(s, bands_of, &analyze_like.mel_to_audio, r);
}

wt_status analyze_mfcc_to_audio(const analyze_signal *s, analyze_result *r)
{
    return add_signal_of_mel(s, analyze_mfcc_to_mel, &analyze_like.mfcc_to_audio, r);
}

// ---- on a GPU

enum { ROOM_BANDS = 1, ROOM_NUMBERS, ROOM_SIGNALS }; // behind that of spectra

static int64_t bins_of(const analyze_batch *b) { return analyze_n_fft(b->signal.options) / 2 + 1; }

static int64_t frames_of(const analyze_batch *b) { return analyze_frames(b->signal.options, b->signal.n); }

static wt_status make_factors(const analyze_batch *b, int variant, void **plan)
{
    (void)variant;
    return make_nmf(b->signal.place->device, b->signal.options, frames_of(b), b->n_signals, (wt_nmf **)plan);
}

static void destroy_factors(void *plan) { wt_nmf_destroy(plan); }

/// What the factors of all signals begin with, [n_signals][rows][n] and [n_signals][n][columns], and behind them the
/// spectrograms, row by row.
static wt_status begin_on_gpu(const analyze_batch *b, const wt_buffer *spectra, wt_buffer *numbers)
{
    const int64_t rows = bins_of(b), columns = frames_of(b), n = n_components(b->signal.options);
    const int64_t w = 0, h = w + b->n_signals * rows * n, v = h + b->n_signals * n * columns;
    const int64_t area = rows * columns, count = b->n_signals * area;
    const size_t bytes = sizeof(float) * (size_t)(v + count);
    const void *data;
    size_t mapped;
    void *memory;
    wt_status status = analyze_take(b->signal.maps, bytes, "nmf", &memory, &mapped);
    if (status) return status;
    float *x = memory;
    status = analyze_fetch(b, spectra, sizeof *x * (size_t)count, &data);
    for (int64_t k = 0; k < b->n_signals && !status; k++) {
        analyze_turn((const float *)data + k * area, columns, rows, 1, x + v + k * area);
        begin_factors(b->signal.options, x + v + k * area, rows, columns, x + w + k * rows * n,
                      x + h + k * n * columns);
    }
    if (!status) status = wt_stream_upload(b->signal.place->stream, numbers, 0, x, bytes);
    if (!status) status = wt_stream_synchronize(b->signal.place->stream);
    analyze_let_go(memory, mapped);
    return status;
}

wt_status analyze_gpu_nmf(const analyze_batch *b, analyze_result *parts)
{
    const int64_t rows = bins_of(b), columns = frames_of(b), n = n_components(b->signal.options);
    const size_t w = sizeof(float) * (size_t)(b->n_signals * rows * n), // bytes
        h = sizeof(float) * (size_t)(b->n_signals * n * columns),
                 v = sizeof(float) * (size_t)(b->n_signals * rows * columns);
    wt_buffer *spectra, *numbers = NULL;
    int64_t n_frames;
    void *nmf;
    const void *data;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_factors, destroy_factors}, 0, &nmf);
    if (!status) status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, false, &spectra, &n_frames);
    if (!status) status = analyze_room(b, ROOM_NUMBERS, w + h + v, &numbers);
    if (!status) status = begin_on_gpu(b, spectra, numbers);
    if (!status) status = wt_nmf_enqueue(nmf, b->signal.place->stream, numbers, w + h, numbers, 0, numbers, w);
    if (!status) status = analyze_fetch(b, numbers, w + h, &data);
    if (!status) status = analyze_give(b, parts, &analyze_like.components, data, rows, n, false);
    if (status) return status;
    return analyze_give(b, parts, &analyze_like.activations, (const char *)data + w, n, columns, false);
}

static wt_status make_phases(const analyze_batch *b, int variant, void **plan)
{
    const wt_griffin_lim_config config = phases_config(&b->signal, frames_of(b), b->n_signals);
    (void)variant;
    return wt_griffin_lim_create(b->signal.place->device, &config, (wt_griffin_lim **)plan);
}

static void destroy_phases(void *plan) { wt_griffin_lim_destroy(plan); }

/// The signals of magnitudes [n_signals][frames][bins].
static wt_status give_signals(const analyze_batch *b, const wt_buffer *magnitudes, const analyze_array *like,
                              analyze_result *parts)
{
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
    wt_buffer *out = NULL;
    void *phases;
    const void *data;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_phases, destroy_phases}, 0, &phases);
    if (!status) status = analyze_room(b, ROOM_SIGNALS, bytes, &out);
    if (!status) status = wt_griffin_lim_enqueue(phases, b->signal.place->stream, magnitudes, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, like, data, 1, b->signal.n, false);
}

wt_status analyze_gpu_griffin_lim(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *spectra;
    int64_t n_frames;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_MAGNITUDE, is_short(&b->signal), &spectra, &n_frames);
    return status ? status : give_signals(b, spectra, &analyze_like.griffin_lim, parts);
}

static wt_status make_inverse(const analyze_batch *b, int variant, void **plan)
{
    const wt_mel_inverse_config config = inverse_config(&b->signal, frames_of(b), b->n_signals);
    (void)variant;
    return wt_mel_inverse_create(b->signal.place->device, &config, (wt_mel_inverse **)plan);
}

static void destroy_inverse(void *plan) { wt_mel_inverse_destroy(plan); }

typedef wt_status bands_there(const analyze_batch *b, wt_buffer **bands);

static wt_status bands_of_signals(const analyze_batch *b, wt_buffer **bands)
{
    wt_mel *mel;
    return analyze_mel_on_gpu(b, is_short(&b->signal) ? ANALYZE_MEL_PRECISE : ANALYZE_MEL_POWER, bands, &mel);
}

/// Those of all signals, [n_signals][n_mels][frames], zeros behind the ones that there are.
static wt_status send_bands(const analyze_batch *b, const analyze_result *parts, wt_buffer **bands)
{
    const size_t count = (size_t)analyze_count(&parts[0].arrays[0]), bytes = sizeof(float) * count;
    size_t mapped;
    void *memory;
    wt_status status = analyze_take(b->signal.maps, bytes * (size_t)b->n_signals, "mfcc_to_audio", &memory, &mapped);
    if (status) return status;
    memset(memory, 0, bytes * (size_t)b->n_signals);
    for (int k = 0; k < b->n_used; k++) memcpy((float *)memory + (size_t)k * count, parts[k].arrays[0].data, bytes);
    status = analyze_room(b, ROOM_BANDS, bytes * (size_t)b->n_signals, bands);
    if (!status)
        status = wt_stream_upload(b->signal.place->stream, *bands, 0, memory, bytes * (size_t)b->n_signals);
    if (!status) status = wt_stream_synchronize(b->signal.place->stream);
    analyze_let_go(memory, mapped);
    return status;
}

/// In place of the last array, mel bands' powers, those that have its coefficients.
static wt_status keep_mfcc(const analyze_signal *s, analyze_result *r)
{
    const wt_db_config db = analyze_db_config(s->options, false);
    const analyze_array *mel = &r->arrays[r->n_arrays - 1];
    wt_status status = wt_db_from_power(&db, mel->data, analyze_count(mel), mel->data);
    if (!status) analyze_limit(s->options, r, NULL);
    if (!status) status = analyze_mfcc_of_bands(s, r);
    return status ? status : analyze_bands_of_mfcc(s, r);
}

/// The powers come from there, the rest is done as on the CPU, and goes back: the inversion makes some 1e-5 of the
/// signal's peak of a coefficient's last digit.
static wt_status bands_of_mfcc(const analyze_batch *b, wt_buffer **bands)
{
    analyze_result *parts = calloc((size_t)b->n_used, sizeof *parts);
    if (!parts) return wt_fail(WT_ERR_NO_MEMORY, "mfcc_to_audio: %d signals", b->n_used);
    for (int k = 0; k < b->n_used; k++) parts[k].maps = b->signal.maps;
    wt_status status = analyze_gpu_precise_mel(b, parts);
    for (int k = 0; k < b->n_used && !status; k++) status = keep_mfcc(&b->signal, &parts[k]);
    if (!status) status = send_bands(b, parts, bands);
    for (int k = 0; k < b->n_used; k++) analyze_result_free(&parts[k]);
    free(parts);
    return status;
}

/// Magnitudes that have those mel bands, [n_signals][bins][frames].
static wt_status rows_on_gpu(const analyze_batch *b, bands_there *find, wt_buffer **rows)
{
    const size_t bytes = sizeof(float) * (size_t)(b->n_signals * bins_of(b) * frames_of(b));
    wt_buffer *bands;
    void *inverse;
    wt_status status = find(b, &bands);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_inverse, destroy_inverse}, 0, &inverse);
    if (!status) status = analyze_room(b, ROOM_NUMBERS, bytes, rows);
    return status ? status : wt_mel_inverse_enqueue(inverse, b->signal.place->stream, bands, 0, *rows, 0);
}

wt_status analyze_gpu_mel_to_stft(const analyze_batch *b, analyze_result *parts)
{
    const size_t bytes = sizeof(float) * (size_t)(b->n_signals * bins_of(b) * frames_of(b));
    wt_buffer *rows;
    const void *data;
    wt_status status = rows_on_gpu(b, bands_of_signals, &rows);
    if (!status) status = analyze_fetch(b, rows, bytes, &data);
    return status ? status
                  : analyze_give(b, parts, &analyze_like.mel_to_stft, data, bins_of(b), frames_of(b), false);
}

static wt_status give_signals_of_mel(const analyze_batch *b, bands_there *find, const analyze_array *like,
                                     analyze_result *parts)
{
    wt_buffer *magnitudes;
    wt_status status = rows_on_gpu(b, find, &magnitudes);
    if (!status)
        status = analyze_turn_on_host(b, like->name, magnitudes, bins_of(b), frames_of(b), NULL, magnitudes);
    return status ? status : give_signals(b, magnitudes, like, parts);
}

wt_status analyze_gpu_mel_to_audio(const analyze_batch *b, analyze_result *parts)
{
    return give_signals_of_mel(b, bands_of_signals, &analyze_like.mel_to_audio, parts);
}

wt_status analyze_gpu_mfcc_to_audio(const analyze_batch *b, analyze_result *parts)
{
    return give_signals_of_mel(b, bands_of_mfcc, &analyze_like.mfcc_to_audio, parts);
}
