// Tables of pYIN's model, as librosa 0.11 builds them.

#include "pyin_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// ---- the beta distribution

// Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method.
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
    double value = d;
    for (int m = 1; m < 1000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int part = 0; part < 2; part++) {
            const double term = part ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
            c = fabs(c) < DBL_MIN ? DBL_MIN : c;
            value *= c * d;
        }
        if (fabs(c * d - 1) < 1e-16) break;
    }
    return value;
}

static double beta_cdf(double a, double b, double x)
{
    if (x <= 0 || x >= 1) return x > 0;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// ---- checks

static wt_status resolve(wt_pyin_config *c)
{
    if (!c->n_thresholds) c->n_thresholds = 100;
    if (c->beta_a == 0) c->beta_a = 2;
    if (c->beta_b == 0) c->beta_b = 18;
    if (c->boltzmann == 0) c->boltzmann = 2;
    if (c->resolution == 0) c->resolution = 0.1;
    if (c->max_transition_rate == 0) c->max_transition_rate = 35.92;
    if (c->switch_prob == 0) c->switch_prob = 0.01;
    if (c->no_trough_prob == 0) c->no_trough_prob = 0.01;
    if (c->n_thresholds < 1 || c->n_thresholds > 10000)
        return wt_fail(WT_ERR_BAD_ARG, "pyin: %d thresholds, want 1..10000", c->n_thresholds);
    if (!(c->beta_a > 0) || !(c->beta_b > 0) || !(c->boltzmann > 0))
        return wt_fail(WT_ERR_BAD_ARG, "pyin: beta %g, %g and boltzmann %g, want above 0", c->beta_a, c->beta_b,
                       c->boltzmann);
    if (!(c->resolution > 0) || c->resolution >= 1)
        return wt_fail(WT_ERR_BAD_ARG, "pyin: resolution %g semitones, want within 0..1", c->resolution);
    if (!(c->max_transition_rate > 0))
        return wt_fail(WT_ERR_BAD_ARG, "pyin: max_transition_rate %g, want above 0", c->max_transition_rate);
    if (!(c->switch_prob > 0) || c->switch_prob > 1 || !(c->no_trough_prob > 0) || c->no_trough_prob > 1)
        return wt_fail(WT_ERR_BAD_ARG, "pyin: switch_prob %g, no_trough_prob %g, want within 0..1", c->switch_prob,
                       c->no_trough_prob);
    return WT_OK;
}

static wt_status lay_bins(const wt_pyin_config *c, const wt_yin_args *a, wt_pyin_model *m)
{
    const double per_semitone = ceil(1 / c->resolution);
    const double bins = floor(12 * per_semitone * log2(c->frames.fmax_hz / c->frames.fmin_hz)) + 1;
    const double width = rint(c->max_transition_rate * 12 * a->hop / a->rate_hz) * per_semitone + 1;
    if (bins > 32767) return wt_fail(WT_ERR_BAD_ARG, "pyin: %.0f pitch bins, want at most 32767", bins);
    if (width > bins)
        return wt_fail(WT_ERR_BAD_ARG, "pyin: transitions over %.0f bins, want at most the %.0f pitch bins", width,
                       bins);
    m->n_bins = (int)bins;
    m->width = (int)width;
    // scipy's window lies in the middle of the row, which is rolled by n / 2 + i + 1 (librosa's transition_local)
    m->first = (m->n_bins - m->width) / 2 + m->n_bins / 2 + 1 - m->n_bins;
    m->bins_per_octave = (int)(12 * per_semitone);
    m->n_thresholds = c->n_thresholds;
    m->max_troughs = (a->max_period - a->min_period + 1) / 2 + 1;
    return WT_OK;
}

// ---- tables

// scipy.signal.windows.triang: whole numbers over one, so that sums are exact and no order of adding breaks a tie. librosa
// adds rounded quotients, and its rows differ among themselves in the last bit.
static int height(int d, int width)
{
    const int mirrored = d < width - 1 - d ? d : width - 1 - d;
    return width % 2 ? mirrored + 1 : 2 * mirrored + 1;
}

static double share_of(int64_t heights, int width)
{
    return width % 2 ? 2.0 * (double)heights / (width + 1) : (double)heights / width;
}

static int64_t row_sum(const wt_pyin_model *m, int from)
{
    int64_t sum = 0;
    for (int d = 0; d < m->width; d++)
        if (from + m->first + d >= 0 && from + m->first + d < m->n_bins) sum += height(d, m->width);
    return sum;
}

static void fill_transitions(const wt_pyin_model *m, double switch_prob, double *stay, double *leave, double *norm)
{
    int64_t whole = 0;
    for (int d = 0; d < m->width; d++) whole += height(d, m->width);
    for (int d = 0; d < m->width; d++) {
        const double p = share_of(height(d, m->width), m->width) / share_of(whole, m->width);
        stay[d] = log((1 - switch_prob) * p + DBL_MIN);
        leave[d] = log((1 - (1 - switch_prob)) * p + DBL_MIN);
    }
    for (int i = 0; i < m->n_bins; i++) norm[i] = log((double)whole / (double)row_sum(m, i));
}

static void fill_thresholds(const wt_pyin_config *c, double *thresholds, double *beta, double *beta_sum)
{
    const int n = c->n_thresholds;
    const double step = 1.0 / n;
    double before = 0;
    beta_sum[0] = 0;
    for (int k = 0; k < n; k++) {
        thresholds[k] = k + 1 < n ? (k + 1) * step : 1;
        const double cdf = beta_cdf(c->beta_a, c->beta_b, thresholds[k]);
        beta[k] = cdf - before;
        beta_sum[k + 1] = beta_sum[k] + beta[k];
        before = cdf;
    }
}

wt_pyin_model wt__pyin_model_at(const wt__pyin_tables *tables, const double *values)
{
    wt_pyin_model m = tables->model;
    m.thresholds = values;
    m.beta = m.thresholds + m.n_thresholds;
    m.beta_sum = m.beta + m.n_thresholds;
    m.share = m.beta_sum + m.n_thresholds + 1;
    m.log_stay = m.share + m.max_troughs + 1;
    m.log_leave = m.log_stay + m.width;
    m.log_norm = m.log_leave + m.width;
    return m;
}

wt_status wt__pyin_tables_create(const wt_pyin_config *config, const wt_yin_args *args, wt__pyin_tables *tables)
{
    wt_pyin_config c = *config;
    wt_pyin_model *m = &tables->model;
    *tables = (wt__pyin_tables){0};
    wt_status status = resolve(&c);
    if (!status) status = lay_bins(&c, args, m);
    if (status) return status;
    tables->count = 3 * (size_t)m->n_thresholds + 1 + (size_t)m->max_troughs + 1 + 2 * (size_t)m->width +
                    (size_t)m->n_bins;
    double *values = tables->values = calloc(tables->count, sizeof *values);
    if (!values) return wt_fail(WT_ERR_NO_MEMORY, "pyin: tables of %zu numbers", tables->count);
    m->decay = exp(-c.boltzmann);
    m->no_trough_prob = c.no_trough_prob;
    m->fmin_hz = c.frames.fmin_hz;
    m->log_tiny = log(DBL_MIN);
    m->log_init = log(1.0 / (2 * m->n_bins) + DBL_MIN);
    *m = wt__pyin_model_at(tables, values);
    fill_thresholds(&c, (double *)m->thresholds, (double *)m->beta, (double *)m->beta_sum);
    for (int n = 1; n <= m->max_troughs; n++)
        ((double *)m->share)[n] = (1 - m->decay) / (1 - exp(-c.boltzmann * n));
    fill_transitions(m, c.switch_prob, (double *)m->log_stay, (double *)m->log_leave, (double *)m->log_norm);
    return WT_OK;
}

void wt__pyin_tables_destroy(wt__pyin_tables *tables)
{
    free(tables->values);
    *tables = (wt__pyin_tables){0};
}
