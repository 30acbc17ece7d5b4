// Magnitudes taken apart into components, and made into signals again.

#include "analyze.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
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

/// `v` is the spectrogram [rows][columns].
static wt_status factor(const analyze_options *o, const analyze_array *v, analyze_result *r)
{
    const int64_t rows = v->shape[0], columns = v->shape[1];
    const int n = o->n_components ? o->n_components : 8;
    uint64_t state = (uint64_t)o->seed;
    wt_nmf *nmf;
    void *w, *h;
    if (columns > INT_MAX) return wt_fail(WT_ERR_BAD_ARG, "nmf: %lld frames, want fewer", (long long)columns);
    const wt_nmf_config config = {(int)rows, (int)columns, n, o->n_iter, .n_signals = 1};
    wt_status status = wt_nmf_create(NULL, &config, &nmf);
    if (status) return status;
    status = analyze_add(r, &analyze_like.components, rows, n, &w);
    if (!status) status = analyze_add(r, &analyze_like.activations, n, columns, &h);
    if (!status) {
        const double mean = start_of(v->data, rows * columns, n);
        fill_random(&state, mean, w, rows * n);
        fill_random(&state, mean, h, n * columns);
        wt_nmf_run(nmf, v->data, w, h);
    }
    wt_nmf_destroy(nmf);
    return status;
}

wt_status analyze_nmf(const analyze_signal *s, analyze_result *r)
{
    analyze_result spectrogram = {.n_arrays = 0};
    wt_status status = analyze_spectrogram(s, &spectrogram);
    if (!status) status = factor(s->options, &spectrogram.arrays[0], r);
    analyze_result_free(&spectrogram);
    return status;
}

// ---- signals

/// As long as the signal whose magnitudes [n_frames][bins] are.
static wt_status add_signal(const analyze_signal *s, const float *magnitudes, int64_t n_frames,
                            const analyze_array *like, analyze_result *r)
{
    const analyze_options *o = s->options;
    const wt_griffin_lim_config config = {.stft = analyze_stft_config(o),
                                          .n_frames = n_frames,
                                          .length = s->n,
                                          .n_iter = o->n_iter,
                                          .seed = (uint64_t)o->seed};
    wt_griffin_lim *plan;
    void *data;
    wt_status status = wt_griffin_lim_create(NULL, &config, &plan);
    if (status) return status;
    status = analyze_add(r, like, 1, s->n, &data);
    if (!status) wt_griffin_lim_run(plan, magnitudes, data);
    wt_griffin_lim_destroy(plan);
    return status;
}

wt_status analyze_griffin_lim(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status) status = add_signal(s, x.values, x.n_frames, &analyze_like.griffin_lim, r);
    analyze_spectra_free(&x);
    return status;
}

/// Magnitudes [n_frames][bins] that have these mel bands; caller frees, also after an error.
static wt_status spectra_of_mel(const analyze_signal *s, const analyze_array *mel, float **magnitudes)
{
    const int64_t n_frames = mel->shape[1], bins = analyze_n_fft(s->options) / 2 + 1;
    const size_t bytes = sizeof(float) * (size_t)(n_frames * bins);
    const wt_mel_inverse_config config = {.bank = analyze_bank(s->options, s->rate_hz), .n_frames = n_frames};
    wt_mel_inverse *plan = NULL;
    float *rows = malloc(bytes);
    *magnitudes = malloc(bytes);
    wt_status status = rows && *magnitudes
                           ? wt_mel_inverse_create(NULL, &config, &plan)
                           : wt_fail(WT_ERR_NO_MEMORY, "mel_to_audio: %lld frames", (long long)n_frames);
    if (!status) {
        wt_mel_inverse_run(plan, mel->data, rows);
        analyze_turn(rows, bins, n_frames, 1, *magnitudes);
    }
    wt_mel_inverse_destroy(plan);
    free(rows);
    return status;
}

wt_status analyze_mel_to_audio(const analyze_signal *s, analyze_result *r)
{
    analyze_result mel = {.n_arrays = 0};
    float *magnitudes = NULL;
    wt_status status = analyze_mel(s, &mel);
    if (!status) status = spectra_of_mel(s, &mel.arrays[0], &magnitudes);
    if (!status) status = add_signal(s, magnitudes, analyze_n_columns(&mel.arrays[0]), &analyze_like.mel_to_audio, r);
    free(magnitudes);
    analyze_result_free(&mel);
    return status;
}
