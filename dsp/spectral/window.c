#include <warptone/window.h>

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

static wt_status check(const wt_window_config *c)
{
    if ((unsigned)c->kind > WT_WINDOW_CUSTOM)
        return wt_fail(WT_ERR_BAD_ARG, "window: kind %d, want 0..%d", (int)c->kind, WT_WINDOW_CUSTOM);
    if (c->n < 1 || c->n > WT_WINDOW_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "window: %d samples, want 1..%d", c->n, WT_WINDOW_MAX_N);
    if (c->kind == WT_WINDOW_KAISER && !(c->parameter >= 0 && c->parameter <= 700))
        return wt_fail(WT_ERR_BAD_ARG, "window: Kaiser beta %g, want 0..700", c->parameter);
    if (c->kind == WT_WINDOW_GAUSSIAN && !(c->parameter > 0 && isfinite(c->parameter)))
        return wt_fail(WT_ERR_BAD_ARG, "window: Gaussian deviation %g, want more than 0", c->parameter);
    if (c->kind == WT_WINDOW_CUSTOM && !c->samples) return wt_fail(WT_ERR_BAD_ARG, "window: custom without samples");
    return WT_OK;
}

// Modified Bessel function of the first kind, order 0: the power series, all terms positive (Abramowitz and Stegun
// 9.6.12).
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > sum * 1e-17; k++) {
        double factor = x / (2 * k);
        term *= factor * factor;
        sum += term;
    }
    return sum;
}

static double cosine_sum(const double *terms, int n_terms, double angle)
{
    double sum = 0;
    for (int k = 0; k < n_terms; k++) sum += terms[k] * cos(k * angle);
    return sum;
}

// Sample i of a symmetric window of n points, n above 1.
static double value(const wt_window_config *c, int i, int n)
{
    static const double hann[] = {0.5, 0.5}, hamming[] = {0.54, 0.46}, blackman[] = {0.42, 0.50, 0.08};
    static const double harris[] = {0.35875, 0.48829, 0.14128, 0.01168};
    static const double flat_top[] = {0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368};
    const double middle = (n - 1) / 2.0, at = i - middle, angle = PI * at / middle;
    switch (c->kind) {
    case WT_WINDOW_HANN:
        return cosine_sum(hann, 2, angle);
    case WT_WINDOW_HAMMING:
        return cosine_sum(hamming, 2, angle);
    case WT_WINDOW_BLACKMAN:
        return cosine_sum(blackman, 3, angle);
    case WT_WINDOW_BLACKMAN_HARRIS:
        return cosine_sum(harris, 4, angle);
    case WT_WINDOW_FLAT_TOP:
        return cosine_sum(flat_top, 5, angle);
    case WT_WINDOW_GAUSSIAN:
        return exp(-at * at / (2 * c->parameter * c->parameter));
    case WT_WINDOW_KAISER: {
        double x = at / middle, inside = 1 - x * x;
        return bessel_i0(c->parameter * sqrt(inside > 0 ? inside : 0)) / bessel_i0(c->parameter);
    }
    default:
        return 1;
    }
}

static double sample(const wt_window_config *c, int i)
{
    if (c->kind == WT_WINDOW_CUSTOM) return c->samples[i];
    return c->n == 1 ? 1 : value(c, i, c->symmetric ? c->n : c->n + 1); // periodic: one more point, the last dropped
}

wt_status wt_window_fill(const wt_window_config *config, float *out)
{
    wt_status status = check(config);
    if (status) return status;
    for (int i = 0; i < config->n; i++) out[i] = (float)sample(config, i);
    return WT_OK;
}

wt_status wt_window_fill_double(const wt_window_config *config, double *out)
{
    wt_status status = check(config);
    if (status) return status;
    for (int i = 0; i < config->n; i++) out[i] = sample(config, i);
    return WT_OK;
}

// ---- overlapped sums

// sums [hop]: what a sample at each place of the hop adds up to over all frames that hold it.
static wt_status overlap(const wt_window_config *config, int hop, int power, double **sums)
{
    wt_status status = check(config);
    if (status) return status;
    if (hop < 1 || hop > config->n) return wt_fail(WT_ERR_BAD_ARG, "window: hop %d, want 1..%d", hop, config->n);
    *sums = calloc((size_t)hop, sizeof **sums);
    if (!*sums) return wt_fail(WT_ERR_NO_MEMORY, "window: %d sums", hop);
    const int whole = config->n / hop * hop, rest = config->n - whole;
    for (int i = 0; i < config->n; i++) {
        double x = sample(config, i);
        (*sums)[i < whole ? i % hop : i - config->n + rest] += power == 2 ? x * x : x;
    }
    return WT_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

wt_status wt_window_check_cola(const wt_window_config *config, int hop, double tolerance, bool *holds)
{
    double *sums;
    wt_status status = overlap(config, hop, 1, &sums);
    if (status) return status;
    qsort(sums, (size_t)hop, sizeof *sums, ascending);
    double median = (sums[(hop - 1) / 2] + sums[hop / 2]) / 2;
    double most = fmax(sums[hop - 1] - median, median - sums[0]);
    *holds = most < (tolerance > 0 ? tolerance : 1e-10);
    free(sums);
    return WT_OK;
}

wt_status wt_window_check_nola(const wt_window_config *config, int hop, double tolerance, bool *holds)
{
    double *sums;
    wt_status status = overlap(config, hop, 2, &sums);
    if (status) return status;
    double least = sums[0];
    for (int i = 1; i < hop; i++) least = fmin(least, sums[i]);
    *holds = least > (tolerance > 0 ? tolerance : 1e-10);
    free(sums);
    return WT_OK;
}
