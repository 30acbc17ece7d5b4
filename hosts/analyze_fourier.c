// Spectra in other forms than stft has them, the spectrum of a whole signal, and its autocorrelation; on the calling
// thread, and on a GPU.

#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/autocorrelate.h>
#include <warptone/db.h>
#include <warptone/fft.h>

// ---- of frames

/// Angles of complex numbers [count], in place of them or elsewhere. What rounding decides would differ from backend to
/// backend: bins below 1e-10 are 0, and real ones have pi, not -pi. `in` may be `out`.
static void angles_of(const float *in, int64_t count, float *out)
{
    for (int64_t k = 0; k < count; k++) {
        const float re = in[2 * k], im = in[2 * k + 1], angle = atan2f(im, re);
        out[k] = re * re + im * im < 1e-20f ? 0 : angle <= -(float)M_PI ? (float)M_PI : angle;
    }
}

/// Of precise spectra: a quiet bin's phase is one too.
wt_status analyze_phase(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_status status = analyze_spectra_make(s, WT_STFT_COMPLEX, true, &x);
    if (!status) angles_of(x.values, x.n_frames * x.bins, x.values);
    if (!status) status = analyze_add_turned(r, &analyze_like.phase, x.values, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    return status;
}

static wt_status add_decibels(const analyze_signal *s, analyze_result *r, bool limited)
{
    analyze_spectra x;
    wt_status status = analyze_spectra_make(s, WT_STFT_POWER, true, &x);
    const wt_db_config config = analyze_db_config(s->options, limited);
    if (!status) status = wt_db_from_power(&config, x.values, x.n_frames * x.bins, x.values);
    if (!status) status = analyze_add_turned(r, &analyze_like.spectrogram_db, x.values, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    return status;
}

wt_status analyze_bins_db(const analyze_signal *s, analyze_result *r) { return add_decibels(s, r, false); }

/// Below the loudest they are differences, as a tile has them: logarithms of quotients would round elsewhere.
wt_status analyze_spectrogram_db(const analyze_signal *s, analyze_result *r)
{
    const bool later = s->whole || s->options->ops.db.reference == WT_DB_REF_MAX;
    wt_status status = add_decibels(s, r, !later);
    if (!status && later) analyze_limit(s->options, r, s->whole ? &s->whole->bin_db : NULL);
    return status;
}

// ---- of whole signals

static wt_status check_length(const char *name, int64_t n, int most)
{
    return n <= most ? WT_OK
                     : wt_fail(WT_ERR_LENGTH, "%s is of the whole signal: %lld samples, want at most %d", name,
                               (long long)n, most);
}

static wt_status create_fft(wt_device *device, int64_t n, int n_signals, wt_fft **plan)
{
    wt_status status = check_length("fft", n, WT_FFT_MAX_N);
    return status ? status
                  : wt_fft_create(device,
                                  &(wt_fft_config){.n = (int)n, .batch = n_signals, .kind = WT_FFT_REAL_TO_COMPLEX},
                                  plan);
}

wt_status analyze_fft(const analyze_signal *s, analyze_result *r)
{
    wt_fft *plan;
    void *out;
    wt_status status = create_fft(NULL, s->n, 1, &plan);
    if (status) return status;
    status = analyze_add(r, &analyze_like.fft, 1, s->n / 2 + 1, &out);
    if (!status) status = wt_fft_run(plan, s->pcm, out);
    wt_fft_destroy(plan);
    return status;
}

static wt_status create_autocorrelate(wt_device *device, const analyze_signal *s, int n_signals,
                                      wt_autocorrelate **plan)
{
    wt_status status = check_length("autocorrelation", s->n, WT_FFT_MAX_N / 2);
    const wt_autocorrelate_config config = {
        .n = (int)s->n, .max_lags = s->options->max_lags, .n_signals = n_signals};
    return status ? status : wt_autocorrelate_create(device, &config, plan);
}

wt_status analyze_autocorrelation(const analyze_signal *s, analyze_result *r)
{
    wt_autocorrelate *plan;
    void *out;
    wt_status status = create_autocorrelate(NULL, s, 1, &plan);
    if (status) return status;
    status = analyze_add(r, &analyze_like.autocorrelation, 1, wt_autocorrelate_lags(plan), &out);
    if (!status) wt_autocorrelate_run(plan, s->pcm, out);
    wt_autocorrelate_destroy(plan);
    return status;
}

// ---- on a GPU

enum { ROOM_OUT = 1 }; // behind the spectra's

static int64_t bins_of(const analyze_batch *b) { return analyze_n_fft(b->signal.options) / 2 + 1; }

wt_status analyze_gpu_phase(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *spectra;
    int64_t n_frames;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_COMPLEX, true, &spectra, &n_frames);
    const int64_t count = status ? 0 : b->n_used * n_frames * bins_of(b);
    if (!status) status = analyze_fetch(b, spectra, 2 * sizeof(float) * (size_t)count, &data);
    if (status) return status;
    float *angles = malloc(sizeof *angles * (size_t)count);
    if (!angles) return wt_fail(WT_ERR_NO_MEMORY, "phase: %d signals", b->n_used);
    angles_of(data, count, angles);
    status = analyze_give(b, parts, &analyze_like.phase, angles, bins_of(b), n_frames, true);
    free(angles);
    return status;
}

static wt_status make_db(const analyze_batch *b, int no_top, void **plan)
{
    const wt_db_config config = analyze_db_config(b->signal.options, !no_top);
    return wt_db_create(b->signal.place->device, &config, false, b->n_signals,
                        analyze_frames(b->signal.options, b->signal.n) * bins_of(b), (wt_db **)plan);
}

static void destroy_db(void *plan) { wt_db_destroy(plan); }

static wt_status decibels_on_gpu(const analyze_batch *b, analyze_result *parts, bool limited)
{
    wt_buffer *spectra;
    int64_t n_frames;
    void *plan;
    const void *data;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_POWER, true, &spectra, &n_frames);
    const size_t bytes = status ? 0 : sizeof(float) * (size_t)b->n_signals * (size_t)(n_frames * bins_of(b));
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_db, destroy_db}, !limited, &plan);
    if (!status) status = wt_db_enqueue(plan, b->signal.place->stream, spectra, 0, spectra, 0);
    if (!status) status = analyze_fetch(b, spectra, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.spectrogram_db, data, bins_of(b), n_frames, true);
}

wt_status analyze_gpu_bins_db(const analyze_batch *b, analyze_result *parts)
{
    return decibels_on_gpu(b, parts, false);
}

wt_status analyze_gpu_spectrogram_db(const analyze_batch *b, analyze_result *parts)
{
    const bool later = analyze_limits_later(b);
    wt_status status = decibels_on_gpu(b, parts, !later);
    for (int k = 0; k < b->n_used && later && !status; k++)
        analyze_limit(b->signal.options, &parts[k], b->whole ? &b->whole[k].bin_db : NULL);
    return status;
}

static wt_status make_fft(const analyze_batch *b, int variant, void **plan)
{
    (void)variant;
    return create_fft(b->signal.place->device, b->signal.n, b->n_signals, (wt_fft **)plan);
}

static void destroy_fft(void *plan) { wt_fft_destroy(plan); }

wt_status analyze_gpu_fft(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const int64_t bins = b->signal.n / 2 + 1;
    const size_t bytes = 2 * sizeof(float) * (size_t)b->n_signals * (size_t)bins;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_fft, destroy_fft}, 0, &plan);
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_fft_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.fft, data, 1, bins, false);
}

static wt_status make_autocorrelate(const analyze_batch *b, int variant, void **plan)
{
    (void)variant;
    return create_autocorrelate(b->signal.place->device, &b->signal, b->n_signals, (wt_autocorrelate **)plan);
}

static void destroy_autocorrelate(void *plan) { wt_autocorrelate_destroy(plan); }

wt_status analyze_gpu_autocorrelation(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    void *plan;
    const void *data;
    wt_buffer *out = NULL;
    wt_status status =
        analyze_kept_plan(b, &(analyze_maker){make_autocorrelate, destroy_autocorrelate}, 0, &plan);
    const int64_t lags = status ? 0 : wt_autocorrelate_lags(plan);
    const size_t bytes = sizeof(float) * (size_t)b->n_signals * (size_t)lags;
    if (!status) status = analyze_room(b, ROOM_OUT, bytes, &out);
    if (!status) status = wt_autocorrelate_enqueue(plan, p->stream, p->pcm, 0, out, 0);
    if (!status) status = analyze_fetch(b, out, bytes, &data);
    return status ? status : analyze_give(b, parts, &analyze_like.autocorrelation, data, 1, lags, false);
}
