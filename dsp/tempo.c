// Tempo: the best lag of the mean tempogram under a log-normal prior. Rows are normalised by their lag 0, which is
// their energy, so the mean of the rows is one inverse transform of the mean of their normalised power spectra.

#include "tempogram_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct wt_tempo {
    wt_tempo_config config;
    int length;
    wt_tempogram *tempogram;
    double *prior;             // [length] logarithm, -inf where the tempo is too high
    float *power, *mean, *lags; // [bins], [bins], [length]
    double *sum;               // [bins]
    double *window;            // [length] the window's autocorrelation
};

static wt_status resolve(wt_tempo_config *c)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->hop) c->hop = 512;
    if (c->start_bpm == 0) c->start_bpm = 120;
    if (c->std_bpm == 0) c->std_bpm = 1;
    if (c->ac_size_s == 0) c->ac_size_s = 8;
    if (c->max_bpm == 0) c->max_bpm = 320;
    if (!(c->rate_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "tempo: rate %g Hz, want above 0", c->rate_hz);
    if (c->hop < 1) return wt_fail(WT_ERR_BAD_ARG, "tempo: hop %d, want 1 or more", c->hop);
    if (!(c->start_bpm > 0) || !(c->std_bpm > 0) || !(c->max_bpm > 0))
        return wt_fail(WT_ERR_BAD_ARG, "tempo: start_bpm %g, std_bpm %g, max_bpm %g, want above 0", c->start_bpm,
                       c->std_bpm, c->max_bpm);
    const double length = floor(floor(c->ac_size_s * c->rate_hz) / c->hop);
    if (!(length >= 2) || length > 1 << 20)
        return wt_fail(WT_ERR_BAD_ARG, "tempo: a window of %g s is %.0f frames, want 2 or more", c->ac_size_s, length);
    return WT_OK;
}

static double bpm_of(const wt_tempo *p, double lag)
{
    return 60.0 * p->config.rate_hz / (p->config.hop * lag);
}

// Of the Hann window that a tempogram has by default, in closed form.
static void fill_window(wt_tempo *p)
{
    for (int k = 0; k < p->length; k++) {
        const double x = (double)k / p->length, turn = 2 * 3.14159265358979323846 * x;
        p->window[k] = (1 - x) * (2 + cos(turn)) / 3 + sin(turn) / (2 * 3.14159265358979323846) + DBL_MIN;
    }
}

wt_status wt_tempo_create(const wt_tempo_config *config, wt_tempo **plan)
{
    *plan = NULL;
    wt_tempo *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "tempo: plan");
    p->config = *config;
    wt_status status = resolve(&p->config);
    if (status) goto fail;
    p->length = (int)floor(floor(p->config.ac_size_s * p->config.rate_hz) / p->config.hop);
    status = wt_tempogram_create(&(wt_tempogram_config){.win_length = p->length}, &p->tempogram);
    if (status) goto fail;
    const size_t bins = (size_t)wt__tempogram_bins(p->tempogram);
    p->prior = malloc((size_t)p->length * sizeof(double));
    p->power = malloc(bins * sizeof(float));
    p->mean = malloc(bins * sizeof(float));
    p->sum = malloc(bins * sizeof(double));
    p->lags = malloc((size_t)p->length * sizeof(float));
    p->window = malloc((size_t)p->length * sizeof(double));
    if (!p->window || !p->prior || !p->power || !p->mean || !p->sum || !p->lags) {
        status = wt_fail(WT_ERR_NO_MEMORY, "tempo: window of %d frames", p->length);
        goto fail;
    }
    fill_window(p);
    p->prior[0] = -INFINITY;
    for (int k = 1; k < p->length; k++) {
        const double octaves = (log2(bpm_of(p, k)) - log2(p->config.start_bpm)) / p->config.std_bpm;
        p->prior[k] = bpm_of(p, k) < p->config.max_bpm || bpm_of(p, p->length - 1) >= p->config.max_bpm
                          ? -0.5 * octaves * octaves
                          : -INFINITY;
    }
    *plan = p;
    return WT_OK;

fail:
    wt_tempo_destroy(p);
    return status;
}

void wt_tempo_destroy(wt_tempo *plan)
{
    if (!plan) return;
    wt_tempogram_destroy(plan->tempogram);
    free(plan->prior);
    free(plan->power);
    free(plan->mean);
    free(plan->sum);
    free(plan->window);
    free(plan->lags);
    free(plan);
}

// The lag between the lags: by a parabola through the peak of two, four, eight ... beats, as far as the window goes;
// the same error in frames is that part of a beat. The window's own autocorrelation, which tilts the peaks, is
// divided out.
static double refine(const wt_tempo *p, const float *lags, int lag)
{
    double best = lag;
    for (int beats = 1; best * beats + 3 < 0.75 * p->length; beats *= 2) {
        int at = (int)lrint(best * beats);
        if (at < 3) return best;
        for (int k = at - 2, middle = at; k <= middle + 2; k++)
            if (lags[k] / p->window[k] > lags[at] / p->window[at]) at = k;
        const double before = lags[at - 1] / p->window[at - 1], here = lags[at] / p->window[at];
        const double after = lags[at + 1] / p->window[at + 1], a = before + after - 2 * here, b = (after - before) / 2;
        if (!(fabs(b) < fabs(a))) break; // no peak there
        best = (at - b / a) / beats;
    }
    return best;
}

static double choose(const wt_tempo *p, const float *lags)
{
    int best = 0;
    double value = -INFINITY;
    for (int k = 1; k < p->length; k++) {
        const double here = log1p(1e6 * lags[k]) + p->prior[k];
        if (here > value) value = here, best = k;
    }
    if (!best) best = p->length - 1; // nothing but not-a-number
    return bpm_of(p, p->config.fine ? refine(p, lags, best) : best);
}

WT_RT double wt_tempo_run(wt_tempo *p, const float *envelope, int64_t n)
{
    const int bins = wt__tempogram_bins(p->tempogram);
    const int64_t rows = wt_tempogram_rows(p->tempogram, n);
    memset(p->sum, 0, (size_t)bins * sizeof *p->sum);
    for (int64_t t = 0; t < rows; t++) {
        const double energy = wt__tempogram_power(p->tempogram, envelope, n, t, p->power);
        const double scale = energy > DBL_MIN ? 1 / energy : 1;
        for (int k = 0; k < bins; k++) p->sum[k] += scale * p->power[k];
    }
    for (int k = 0; k < bins; k++) p->mean[k] = (float)(p->sum[k] / (double)(rows > 0 ? rows : 1));
    wt__tempogram_lags(p->tempogram, p->mean, p->lags);
    return choose(p, p->lags);
}

WT_RT void wt_tempo_run_frames(wt_tempo *p, const float *envelope, int64_t n, double *bpm)
{
    for (int64_t t = 0; t < n; t++) {
        const double energy = wt__tempogram_power(p->tempogram, envelope, n, t, p->power);
        const float scale = energy > FLT_MIN ? (float)(1 / energy) : 1;
        for (int k = 0; k < wt__tempogram_bins(p->tempogram); k++) p->power[k] *= scale;
        wt__tempogram_lags(p->tempogram, p->power, p->lags);
        bpm[t] = choose(p, p->lags);
    }
}
