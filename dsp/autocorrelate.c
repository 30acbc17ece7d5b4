// By a transform of at least 2 n - 1 points, so that nothing wraps around.

#include <warptone/autocorrelate.h>
#include "fft_internal.h"

#include <stdlib.h>
#include <string.h>

struct wt_autocorrelate {
    wt_autocorrelate_config config;
    int n_fft;
    wt_fft *forward, *inverse;
    float *signal, *re, *im; // [n_fft], [n_fft / 2 + 1] each
};

static wt_status prepare(wt_autocorrelate *p)
{
    const int bins = p->n_fft / 2 + 1;
    wt_status status =
        wt_fft_create(NULL, &(wt_fft_config){.n = p->n_fft, .kind = WT_FFT_REAL_TO_COMPLEX}, &p->forward);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = p->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL}, &p->inverse);
    if (status) return status;
    p->signal = malloc((size_t)p->n_fft * sizeof(float));
    p->re = malloc((size_t)bins * sizeof(float));
    p->im = malloc((size_t)bins * sizeof(float));
    return p->signal && p->re && p->im ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "autocorrelate: %d samples", p->config.n);
}

wt_status wt_autocorrelate_create(const wt_autocorrelate_config *config, wt_autocorrelate **plan)
{
    *plan = NULL;
    if (config->n < 1 || config->n > WT_FFT_MAX_N / 2)
        return wt_fail(WT_ERR_BAD_ARG, "autocorrelate: %d samples, want 1..%d", config->n, WT_FFT_MAX_N / 2);
    if (config->max_lags < 0 || config->n_signals < 0)
        return wt_fail(WT_ERR_BAD_ARG, "autocorrelate: %d lags, %d signals, want 0 or more", config->max_lags,
                       config->n_signals);
    wt_autocorrelate *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "autocorrelate: plan");
    p->config = *config;
    if (!p->config.n_signals) p->config.n_signals = 1;
    if (!p->config.max_lags || p->config.max_lags > config->n) p->config.max_lags = config->n;
    p->n_fft = wt_fft_good_size(2 * config->n);
    wt_status status = prepare(p);
    if (status)
        wt_autocorrelate_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_autocorrelate_destroy(wt_autocorrelate *plan)
{
    if (!plan) return;
    wt_fft_destroy(plan->forward);
    wt_fft_destroy(plan->inverse);
    free(plan->signal);
    free(plan->re);
    free(plan->im);
    free(plan);
}

int wt_autocorrelate_lags(const wt_autocorrelate *plan)
{
    return plan->config.max_lags;
}

WT_RT void wt_autocorrelate_run(wt_autocorrelate *p, const float *in, float *out)
{
    const int n = p->config.n, bins = p->n_fft / 2 + 1;
    for (int s = 0; s < p->config.n_signals; s++, in += n, out += p->config.max_lags) {
        memcpy(p->signal, in, (size_t)n * sizeof *in);
        memset(p->signal + n, 0, (size_t)(p->n_fft - n) * sizeof *in);
        wt__fft_real_forward(p->forward, p->signal, p->re, p->im);
        for (int k = 0; k < bins; k++) p->re[k] = p->re[k] * p->re[k] + p->im[k] * p->im[k];
        memset(p->im, 0, (size_t)bins * sizeof *p->im);
        wt__fft_real_inverse(p->inverse, p->re, p->im, p->signal);
        memcpy(out, p->signal, (size_t)p->config.max_lags * sizeof *out);
    }
}
