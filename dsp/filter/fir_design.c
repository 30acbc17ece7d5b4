#include "fir_design_internal.h"

#include <math.h>
#include <stdlib.h>

static double sinc(double x)
{
    return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
}

// ---- window

// By its series; all terms are positive.
double wt__bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > 1e-17 * sum; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

static double window_at(wt_fir_window_kind kind, double beta, int n, int n_taps)
{
    if (n_taps == 1) return 1;
    const double turn = 2 * M_PI * n / (n_taps - 1), away = 2.0 * n / (n_taps - 1) - 1;
    switch (kind) {
    case WT_FIR_HAMMING:
        return 0.54 - 0.46 * cos(turn);
    case WT_FIR_HANN:
        return 0.5 - 0.5 * cos(turn);
    case WT_FIR_BLACKMAN:
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn);
    case WT_FIR_KAISER:
        return wt__bessel_i0(beta * sqrt(fmax(0, 1 - away * away))) / wt__bessel_i0(beta);
    case WT_FIR_RECTANGULAR:
        break;
    }
    return 1;
}

static wt_status check_window(const wt_fir_window_config *c, bool pass_nyquist)
{
    if (c->n_taps < 1 || c->n_taps > WT_FIR_DESIGN_MAX_TAPS)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d taps, want 1..%d", c->n_taps, WT_FIR_DESIGN_MAX_TAPS);
    if (c->n_cutoffs < 1 || c->n_cutoffs > WT_FIR_DESIGN_MAX_BANDS)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d cutoffs, want 1..%d", c->n_cutoffs, WT_FIR_DESIGN_MAX_BANDS);
    for (int k = 0; k < c->n_cutoffs; k++)
        if (!(c->cutoffs[k] > (k ? c->cutoffs[k - 1] : 0) && c->cutoffs[k] < 1))
            return wt_fail(WT_ERR_BAD_ARG, "fir design: cutoff %d is %g, want above %g and below 1", k, c->cutoffs[k],
                           k ? c->cutoffs[k - 1] : 0.0);
    if (pass_nyquist && c->n_taps % 2 == 0)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d taps with a pass band at the Nyquist frequency, want odd",
                       c->n_taps);
    if (c->window < WT_FIR_HAMMING || c->window > WT_FIR_RECTANGULAR || !(c->kaiser_beta >= 0 && c->kaiser_beta <= 500))
        return wt_fail(WT_ERR_BAD_ARG, "fir design: window %d with beta %g, want 0..4 with 0..500", (int)c->window,
                       c->kaiser_beta);
    return WT_OK;
}

wt_status wt_fir_design_window(const wt_fir_window_config *config, double *taps)
{
    const bool pass_nyquist = config->stop_zero == (config->n_cutoffs % 2 == 1);
    wt_status status = check_window(config, pass_nyquist);
    if (status) return status;

    // edges[2 k], edges[2 k + 1]: pass band k
    double edges[WT_FIR_DESIGN_MAX_BANDS + 2];
    int n_edges = 0;
    if (!config->stop_zero) edges[n_edges++] = 0;
    for (int k = 0; k < config->n_cutoffs; k++) edges[n_edges++] = config->cutoffs[k];
    if (pass_nyquist) edges[n_edges++] = 1;

    const double middle = 0.5 * (config->n_taps - 1);
    const double reference = edges[0] == 0 ? 0 : edges[1] == 1 ? 1 : 0.5 * (edges[0] + edges[1]);
    double response = 0;
    for (int n = 0; n < config->n_taps; n++) {
        const double at = n - middle;
        double tap = 0;
        for (int k = 0; k < n_edges; k += 2)
            tap += edges[k + 1] * sinc(edges[k + 1] * at) - edges[k] * sinc(edges[k] * at);
        taps[n] = tap * window_at(config->window, config->kaiser_beta, n, config->n_taps);
        response += taps[n] * cos(M_PI * at * reference);
    }
    for (int n = 0; n < config->n_taps && !config->no_scale; n++) taps[n] /= response;
    return WT_OK;
}

// ---- least squares

wt_status wt__fir_check_bands(const wt_fir_bands_config *c, int min_taps)
{
    if (c->n_taps < min_taps || c->n_taps > 2047)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d taps, want %d..2047", c->n_taps, min_taps);
    if (c->n_bands < 1 || c->n_bands > WT_FIR_DESIGN_MAX_BANDS)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d bands, want 1..%d", c->n_bands, WT_FIR_DESIGN_MAX_BANDS);
    for (int k = 0; k < 2 * c->n_bands; k++)
        if (!(c->edges[k] >= 0 && c->edges[k] <= 1) || (k && !(c->edges[k] > c->edges[k - 1])))
            return wt_fail(WT_ERR_BAD_ARG, "fir design: edge %d is %g, want ascending edges in 0..1", k, c->edges[k]);
    for (int k = 0; c->weights && k < c->n_bands; k++)
        if (!(c->weights[k] > 0)) return wt_fail(WT_ERR_BAD_ARG, "fir design: weight %g, want above 0", c->weights[k]);
    return WT_OK;
}

static double weight_of(const wt_fir_bands_config *c, int band)
{
    return c->weights ? c->weights[band] : 1;
}

// Integral of weight * cos(pi n f) over the bands.
static double cosine_integral(const wt_fir_bands_config *c, int n)
{
    double sum = 0;
    for (int k = 0; k < c->n_bands; k++) {
        const double low = c->edges[2 * k], high = c->edges[2 * k + 1];
        sum += weight_of(c, k) * (high * sinc(high * n) - low * sinc(low * n));
    }
    return sum;
}

// Integral of weight * desired * cos(pi n f), desired = slope f + offset in each band.
static double desired_integral(const wt_fir_bands_config *c, int n)
{
    double sum = 0;
    for (int k = 0; k < c->n_bands; k++) {
        const double *edge = c->edges + 2 * k, *desired = c->desired + 2 * k;
        const double slope = (desired[1] - desired[0]) / (edge[1] - edge[0]), offset = desired[0] - edge[0] * slope;
        double value[2];
        for (int i = 0; i < 2; i++) {
            value[i] = edge[i] * (slope * edge[i] + offset) * sinc(edge[i] * n);
            value[i] += n ? slope * cos(M_PI * n * edge[i]) / (M_PI * M_PI * n * n) : -slope * edge[i] * edge[i] / 2;
        }
        sum += weight_of(c, k) * (value[1] - value[0]);
    }
    return sum;
}

// Solve the symmetric positive system a x = b in place (Cholesky); false when a is not safely positive.
static bool solve_positive(double *a, double *b, int n)
{
    for (int j = 0; j < n; j++) {
        double *row = a + (size_t)j * (size_t)n, diagonal = row[j];
        for (int k = 0; k < j; k++) diagonal -= row[k] * row[k];
        if (!(diagonal > 1e-15 * row[j])) return false;
        row[j] = sqrt(diagonal);
        for (int i = j + 1; i < n; i++) {
            double *other = a + (size_t)i * (size_t)n;
            for (int k = 0; k < j; k++) other[j] -= other[k] * row[k];
            other[j] /= row[j];
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) b[i] -= a[(size_t)i * (size_t)n + (size_t)k] * b[k];
        b[i] /= a[(size_t)i * (size_t)n + (size_t)i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) b[i] -= a[(size_t)k * (size_t)n + (size_t)i] * b[k];
        b[i] /= a[(size_t)i * (size_t)n + (size_t)i];
    }
    return true;
}

wt_status wt_fir_design_least_squares(const wt_fir_bands_config *config, double *taps)
{
    wt_status status = wt__fir_check_bands(config, 1);
    if (status) return status;
    if (config->n_taps % 2 == 0)
        return wt_fail(WT_ERR_BAD_ARG, "fir design: %d taps for least squares, want an odd number", config->n_taps);
    const int half = config->n_taps / 2, n = half + 1;
    double *matrix = malloc(sizeof *matrix * (size_t)n * (size_t)n),
           *integrals = malloc(sizeof *integrals * (size_t)(2 * n)), *right = malloc(sizeof *right * (size_t)n);
    if (!matrix || !integrals || !right) {
        status = wt_fail(WT_ERR_NO_MEMORY, "fir design: %d taps", config->n_taps);
    } else {
        for (int k = 0; k < 2 * n - 1; k++) integrals[k] = cosine_integral(config, k);
        for (int i = 0; i < n; i++) {
            right[i] = desired_integral(config, i);
            for (int j = 0; j < n; j++)
                matrix[(size_t)i * (size_t)n + (size_t)j] = integrals[abs(i - j)] + integrals[i + j];
        }
        if (!solve_positive(matrix, right, n))
            status =
                wt_fail(WT_ERR_BAD_ARG, "fir design: the bands leave %d taps undetermined, want fewer", config->n_taps);
    }
    for (int k = 0; !status && k < n; k++) {
        taps[half - k] = taps[half + k] = right[k];
        if (k == 0) taps[half] *= 2;
    }
    free(matrix);
    free(integrals);
    free(right);
    return status;
}
