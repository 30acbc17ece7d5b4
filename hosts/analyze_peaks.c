// Where the energy of spectra lies: peaks as pitches, harmonics of each frequency, reassigned bins.

#include "analyze.h"

#include <stdlib.h>
#include <warptone/reassigned.h>
#include <warptone/salience.h>

wt_status analyze_piptrack(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    float *hz = NULL;
    const analyze_options *o = s->options;
    const wt_piptrack_config config = {
        .rate_hz = s->rate_hz, .n_fft = analyze_n_fft(o), .fmin_hz = o->fmin_hz, .fmax_hz = o->fmax_hz};
    wt_status status = analyze_spectra_make(s, &x);
    const size_t count = (size_t)x.n_frames * (size_t)x.bins;
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status && !(hz = malloc(2 * count * sizeof *hz)))
        status = wt_fail(WT_ERR_NO_MEMORY, "piptrack: %lld frames", (long long)x.n_frames);
    if (!status) status = wt_piptrack(&config, x.values, x.n_frames, hz, hz + count);
    if (!status) status = analyze_add_turned(r, &analyze_like.pitches, hz, x.n_frames, x.bins);
    if (!status) status = analyze_add_turned(r, &analyze_like.pitch_magnitudes, hz + count, x.n_frames, x.bins);
    analyze_spectra_free(&x);
    free(hz);
    return status;
}

/// The first four multiples of each bin's frequency; 0 where that is no peak.
static wt_status make_salience(const analyze_signal *s, int bins, wt_salience **plan)
{
    static const double harmonics[] = {1, 2, 3, 4}, weights[] = {1, 0.45, 0.33, 0.25};
    double *hz = malloc(sizeof *hz * (size_t)bins);
    if (!hz) return wt_fail(WT_ERR_NO_MEMORY, "salience: %d bins", bins);
    for (int k = 0; k < bins; k++) hz[k] = (double)k * s->rate_hz / analyze_n_fft(s->options);
    const wt_salience_config config = {
        .n_bins = bins, .frequencies = hz, .n_harmonics = 4, .harmonics = harmonics, .weights = weights};
    wt_status status = wt_salience_create(NULL, &config, plan);
    free(hz);
    return status;
}

wt_status analyze_salience(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    wt_salience *plan = NULL;
    float *out = NULL;
    wt_status status = analyze_spectra_make(s, &x);
    if (!status) analyze_spectra_to_real(&x, false);
    if (!status) status = make_salience(s, x.bins, &plan);
    if (!status && !(out = malloc(sizeof *out * (size_t)x.n_frames * (size_t)x.bins)))
        status = wt_fail(WT_ERR_NO_MEMORY, "salience: %lld frames", (long long)x.n_frames);
    if (!status) wt_salience_run(plan, x.values, x.n_frames, out);
    if (!status) status = analyze_add_turned(r, &analyze_like.salience, out, x.n_frames, x.bins);
    wt_salience_destroy(plan);
    analyze_spectra_free(&x);
    free(out);
    return status;
}

wt_status analyze_reassigned(const analyze_signal *s, analyze_result *r)
{
    const analyze_array *const likes[] = {&analyze_like.reassigned_frequencies, &analyze_like.reassigned_times,
                                          &analyze_like.reassigned_magnitudes};
    wt_reassigned *plan;
    const wt_reassigned_config config = {
        .stft = analyze_stft_config(s->options), .rate_hz = s->rate_hz, .n_samples = s->n};
    wt_status status = wt_reassigned_create(NULL, &config, &plan);
    if (status) return status;
    const int64_t n_frames = wt_reassigned_frames(plan), bins = wt_reassigned_bins(plan);
    float *out = malloc(3 * sizeof *out * (size_t)(n_frames * bins));
    if (out)
        wt_reassigned_run(plan, s->pcm, out);
    else
        status = wt_fail(WT_ERR_NO_MEMORY, "reassigned: %lld frames", (long long)n_frames);
    for (int k = 0; k < 3 && !status; k++)
        status = analyze_add_turned(r, likes[k], out + k * n_frames * bins, n_frames, bins);
    wt_reassigned_destroy(plan);
    free(out);
    return status;
}
