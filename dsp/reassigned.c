// Three transforms by the window h, its derivative dh and t h: a bin's frequency is moved by -Im(dh / h), its time by
// Re(th / h). In double: the quotients are of bins down to 1e-5 of the loudest.

#include "stft_internal.h"

#include <warptone/reassigned.h>

#include <math.h>
#include <stdlib.h>

enum { F = WT__FFT64_FRAMES };

typedef struct work {
    wt_reassigned_config config;
    wt_stft *stft[3]; // h, dh, th
    int bins;
    int64_t n, n_frames;
    float *frequencies, *times, *magnitudes;
} work;

static wt_status make_windows(work *w)
{
    const int n_fft = wt__stft_config(w->stft[0])->n_fft;
    const double *h = wt__stft_window64(w->stft[0]);
    double *other = malloc((size_t)n_fft * sizeof *other);
    if (!other) return wt_fail(WT_ERR_NO_MEMORY, "reassigned: window of %d", n_fft);
    for (int i = 0; i < n_fft; i++) other[i] = (h[(i + 1) % n_fft] - h[(i + n_fft - 1) % n_fft]) / 2;
    wt__stft_set_window64(w->stft[1], other);
    for (int i = 0; i < n_fft; i++) other[i] = h[i] * (i - n_fft / 2 + (n_fft % 2 ? 0 : 0.5));
    wt__stft_set_window64(w->stft[2], other);
    free(other);
    return WT_OK;
}

// One bin: h, dh, th are (re, im).
static void assign(const work *w, int64_t t, int k, const double *h, const double *dh, const double *th)
{
    const wt_stft_config *s = wt__stft_config(w->stft[0]);
    const double rate = w->config.rate_hz, power = h[0] * h[0] + h[1] * h[1];
    const double own_hz = k * rate / s->n_fft, own_s = (double)(t * s->hop + (s->no_center ? s->n_fft / 2 : 0)) / rate;
    double hz = own_hz - (dh[1] * h[0] - dh[0] * h[1]) / power * rate / (2 * 3.14159265358979323846);
    double at = own_s + (th[0] * h[0] + th[1] * h[1]) / power / rate;
    if (!w->config.keep_all && sqrt(power) < sqrt(w->config.ref_power)) hz = at = NAN;
    if (w->config.fill_nan && isnan(hz)) hz = own_hz;
    if (w->config.fill_nan && isnan(at)) at = own_s;
    if (!w->config.no_clip) {
        const double end = (double)w->n / rate;
        hz = hz < 0 ? 0 : hz > rate / 2 ? rate / 2 : hz;
        at = at < 0 ? 0 : at > end ? end : at;
    }
    const int64_t to = t * w->bins + k;
    w->frequencies[to] = (float)hz, w->times[to] = (float)at, w->magnitudes[to] = (float)sqrt(power);
}

static void run_tile(const work *w, const float *pcm, int64_t t)
{
    const int count = w->n_frames - t < F ? (int)(w->n_frames - t) : F;
    const double *re[3], *im[3];
    for (int i = 0; i < 3; i++) wt__stft_precise(w->stft[i], pcm, w->n, t, count, &re[i], &im[i]);
    for (int k = 0; k < w->bins; k++)
        for (int f = 0; f < count; f++) {
            double x[3][2];
            for (int i = 0; i < 3; i++) x[i][0] = re[i][k * F + f], x[i][1] = im[i][k * F + f];
            assign(w, t + f, k, x[0], x[1], x[2]);
        }
}

static wt_status prepare(work *w)
{
    wt_reassigned_config *c = &w->config;
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->ref_power) c->ref_power = 1e-6;
    c->stft.precise = true;
    if (c->rate_hz < 1 || !(c->ref_power > 0))
        return wt_fail(WT_ERR_BAD_ARG, "reassigned: rate %d Hz, ref_power %g, want 1 or more, above 0", c->rate_hz,
                       c->ref_power);
    wt_status status = WT_OK;
    for (int i = 0; i < 3 && !status; i++) status = wt_stft_create(&c->stft, &w->stft[i]);
    if (status) return status;
    w->bins = wt_stft_bins(w->stft[0]);
    w->n_frames = wt_stft_frames(w->stft[0], w->n);
    if (w->n_frames < 1)
        return wt_fail(WT_ERR_BAD_ARG, "reassigned: no frame of %d in %lld samples", wt__stft_config(w->stft[0])->n_fft,
                       (long long)w->n);
    return make_windows(w);
}

wt_status wt_reassigned_run(const wt_reassigned_config *config, const float *pcm, int64_t n, float *frequencies,
                            float *times, float *magnitudes)
{
    work w = {.config = *config, .n = n, .frequencies = frequencies, .times = times, .magnitudes = magnitudes};
    wt_status status = prepare(&w);
    for (int64_t t = 0; t < w.n_frames && !status; t += F) run_tile(&w, pcm, t);
    for (int i = 0; i < 3; i++) wt_stft_destroy(w.stft[i]);
    return status;
}
