// Each harmonic of each bin lies between two bins: the plan holds the lower one, and both weights.

#include <warptone/salience.h>

#include <stdlib.h>

typedef struct tap {
    int lower;
    float at_lower, at_upper;
} tap;

struct wt_salience {
    int n_bins, n_harmonics;
    bool all_bins;
    float fill;
    tap *taps; // [n_bins][n_harmonics]
};

static wt_status check(const wt_salience_config *c)
{
    if (c->n_bins < 2 || c->n_harmonics < 1)
        return wt_fail(WT_ERR_BAD_ARG, "salience: %d bins, %d harmonics, want 2 and 1 or more", c->n_bins,
                       c->n_harmonics);
    for (int k = 1; k < c->n_bins; k++)
        if (!(c->frequencies[k] > c->frequencies[k - 1]))
            return wt_fail(WT_ERR_BAD_ARG, "salience: frequency %d is %g, want more than %g", k, c->frequencies[k],
                           c->frequencies[k - 1]);
    return WT_OK;
}

static tap between(const wt_salience_config *c, double frequency, double weight)
{
    const double *f = c->frequencies;
    if (!(frequency >= f[0]) || frequency > f[c->n_bins - 1]) return (tap){0, 0, 0};
    int low = 0, high = c->n_bins - 1; // f[low] <= frequency <= f[high]
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (f[middle] <= frequency)
            low = middle;
        else
            high = middle;
    }
    const double part = (frequency - f[low]) / (f[high] - f[low]);
    return (tap){low, (float)(weight * (1 - part)), (float)(weight * part)};
}

wt_status wt_salience_create(const wt_salience_config *config, wt_salience **plan)
{
    *plan = NULL;
    wt_status status = check(config);
    if (status) return status;
    double sum = 0;
    for (int h = 0; h < config->n_harmonics; h++) sum += config->weights ? config->weights[h] : 1;
    if (sum == 0) return wt_fail(WT_ERR_BAD_ARG, "salience: weights add up to 0");
    wt_salience *p = calloc(1, sizeof *p);
    tap *taps = p ? malloc((size_t)config->n_bins * (size_t)config->n_harmonics * sizeof *taps) : NULL;
    if (!taps) {
        free(p);
        return wt_fail(WT_ERR_NO_MEMORY, "salience: %d bins", config->n_bins);
    }
    *p = (wt_salience){config->n_bins, config->n_harmonics, config->all_bins, config->fill, taps};
    for (int k = 0; k < config->n_bins; k++)
        for (int h = 0; h < config->n_harmonics; h++)
            *taps++ = between(config, config->frequencies[k] * config->harmonics[h],
                              (config->weights ? config->weights[h] : 1) / sum);
    *plan = p;
    return WT_OK;
}

void wt_salience_destroy(wt_salience *plan)
{
    if (!plan) return;
    free(plan->taps);
    free(plan);
}

WT_RT void wt_salience_run(const wt_salience *p, const float *in, int64_t n_frames, float *out)
{
    for (int64_t t = 0; t < n_frames; t++, in += p->n_bins, out += p->n_bins)
        for (int k = 0; k < p->n_bins; k++) {
            const bool peak = k > 0 && k + 1 < p->n_bins && in[k] > in[k - 1] && in[k] > in[k + 1];
            float sum = 0;
            for (const tap *a = p->taps + k * p->n_harmonics, *end = a + p->n_harmonics; a < end; a++)
                sum += a->at_lower * in[a->lower] + a->at_upper * in[a->lower + 1];
            out[k] = peak || p->all_bins ? sum : p->fill;
        }
}
