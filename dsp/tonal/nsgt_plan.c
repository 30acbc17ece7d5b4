// Rows, their bumps and duals. The painless case: a row has at least as many points as its bump has bins, so the frame
// operator is a multiplication by the sum of the squared bumps, and the dual a division by it.

#include "nsgt_plan.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/fft.h>

static const double pi = 3.14159265358979323846;

// ---- the configuration

static int bins_below_half_the_rate(const wt_nsgt_config *c)
{
    int n = 0; // the bump of bin k ends where bin k + 1 lies
    while (c->fmin_hz * pow(2, (n + 1.0) / c->bins_per_octave) < c->rate_hz / 2) n++;
    return n;
}

static wt_status resolve(const wt_nsgt_config *given, wt_nsgt_config *c)
{
    *c = *given;
    if (!c->rate_hz) c->rate_hz = 22050;
    if (!c->fmin_hz) c->fmin_hz = 440 * pow(2, -45.0 / 12);
    if (!c->bins_per_octave) c->bins_per_octave = 12;
    if (!c->slice) c->slice = 65536;
    if (!c->n_slices) c->n_slices = 1;
    if (!c->channels) c->channels = 1;
    if (!(c->rate_hz >= 1 && c->rate_hz <= 1e9))
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: rate_hz %g, want 1..1e9", c->rate_hz);
    if (!(c->fmin_hz > 0 && c->fmin_hz < c->rate_hz / 2))
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: fmin_hz %g, want above 0 and below %g", c->fmin_hz, c->rate_hz / 2);
    if (c->bins_per_octave < 1 || c->bins_per_octave > 192)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: bins_per_octave %d, want 1..192", c->bins_per_octave);
    if (c->slice < 256 || c->slice > WT_FFT_MAX_N || c->slice % 2)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: slice %d, want an even 256..%d", c->slice, WT_FFT_MAX_N);
    if (c->n_slices < 1 || c->channels < 1 || c->n_slices > 65535 / c->channels)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: %d slices of %d channels, want 1..65535 in all", c->n_slices,
                       c->channels);
    const int most = bins_below_half_the_rate(c);
    if (!c->n_bins) c->n_bins = most;
    if (c->n_bins < 1 || c->n_bins > most)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: n_bins %d, want 1..%d, below half the rate", c->n_bins, most);
    return WT_OK;
}

// ---- rows

// A row's middle and ends, in bins of the slice's spectrum; row 0 and the last have one slope each.
typedef struct bump {
    double low, middle, high;
} bump;

static bump bump_of(const wt__nsgt_plan *plan, int row)
{
    const wt_nsgt_config *c = &plan->config;
    const double scale = c->slice / c->rate_hz, ratio = pow(2, 1.0 / c->bins_per_octave);
    const double middle = c->fmin_hz * pow(ratio, row - 1) * scale;
    bump b = {middle / ratio, middle, middle * ratio};
    if (b.low > middle - 2) b.low = middle - 2;
    if (b.high < middle + 2) b.high = middle + 2;
    return b;
}

static double hann(double from, double x, double to) // 0 at `from`, 1 at `to`
{
    return 0.5 - 0.5 * cos(pi * (x - from) / (to - from));
}

static double height(const wt__nsgt_plan *plan, int row, double f)
{
    if (row == 0) {
        const bump next = bump_of(plan, 1);
        return f <= next.low ? 1 : f >= next.middle ? 0 : hann(next.middle, f, next.low);
    }
    if (row == plan->n_rows - 1) {
        const bump last = bump_of(plan, row - 1);
        return f >= last.high ? 1 : f <= last.middle ? 0 : hann(last.middle, f, last.high);
    }
    const bump b = bump_of(plan, row);
    if (f <= b.low || f >= b.high) return 0;
    return f < b.middle ? hann(b.low, f, b.middle) : hann(b.high, f, b.middle);
}

static void place_row(wt__nsgt_plan *plan, int row)
{
    const int top = plan->config.slice / 2, last = plan->n_rows - 1;
    const double low = row == 0 ? -1 : bump_of(plan, row == last ? row - 1 : row).low;
    const double from = row == last ? bump_of(plan, row - 1).middle : low;
    const double high = row == last ? top + 1 : row == 0 ? bump_of(plan, 1).middle : bump_of(plan, row).high;
    int begin = (int)floor(from) + 1, end = (int)ceil(high);
    if (begin < 0) begin = 0;
    if (end > top + 1) end = top + 1;
    plan->rows[row] = (wt_nsgt_place){.first = begin, .length = end - begin, .window = plan->n_windows};
    plan->n_windows += end - begin;
    plan->hz[row] = row == 0      ? 0
                    : row == last ? plan->config.rate_hz / 2
                                  : bump_of(plan, row).middle * plan->config.rate_hz / plan->config.slice;
}

// Rows of one octave share the widest one's number of points, even, with small prime factors.
static void close_group(wt__nsgt_plan *plan, int first, int n_rows)
{
    int widest = 1;
    for (int r = first; r < first + n_rows; r++)
        if (plan->rows[r].length > widest) widest = plan->rows[r].length;
    const int n_points = 2 * wt_fft_good_size((widest + 1) / 2);
    plan->groups[plan->n_groups++] = (wt__nsgt_group){first, n_rows, n_points};
    for (int r = first; r < first + n_rows; r++) {
        plan->rows[r].n_points = n_points;
        plan->rows[r].offset = plan->n_points + (int64_t)(r - first) * n_points;
        plan->rows[r].stride = (int64_t)n_rows * n_points;
    }
    plan->n_points += (int64_t)plan->n_lines * n_rows * n_points;
}

static void place_rows(wt__nsgt_plan *plan)
{
    const int octave = plan->config.bins_per_octave, n_bins = plan->config.n_bins;
    for (int r = 0; r < plan->n_rows; r++) place_row(plan, r);
    close_group(plan, 0, 1);
    for (int k = 0; k < n_bins; k += octave) close_group(plan, 1 + k, n_bins - k < octave ? n_bins - k : octave);
    close_group(plan, n_bins + 1, 1);
}

// ---- tables

static void fill_slice_window(const wt__nsgt_plan *plan)
{
    const int n = plan->config.slice;
    for (int i = 0; i < n; i++) {
        const double u = fabs(i - n / 2.0) / (n / 2.0); // flat to 1/4, zero from 3/4 on
        plan->slice_window[i] = (float)(u <= 0.25 ? 1 : u >= 0.75 ? 0 : 1 - hann(0.25, u, 0.75));
    }
}

// `sum` gets the squares of all bumps, each bin.
static void fill_bumps(wt__nsgt_plan *plan, double *sum)
{
    const int n_bins = plan->config.slice / 2 + 1;
    for (int f = 0; f < n_bins; f++) plan->rows_at[2 * f] = plan->n_rows, plan->rows_at[2 * f + 1] = -1;
    for (int r = 0; r < plan->n_rows; r++)
        for (int j = 0; j < plan->rows[r].length; j++) {
            const int f = plan->rows[r].first + j;
            const double g = height(plan, r, f);
            sum[f] += g * g;
            plan->analysis[plan->rows[r].window + j] = (float)g;
            if (r < plan->rows_at[2 * f]) plan->rows_at[2 * f] = r;
            if (r > plan->rows_at[2 * f + 1]) plan->rows_at[2 * f + 1] = r;
        }
}

// The inverse transform of a row divides by its n_points; a sine's spectrum is half the slice high.
static void scale_bumps(wt__nsgt_plan *plan, const double *sum)
{
    for (int r = 0; r < plan->n_rows; r++) {
        const wt_nsgt_place *row = &plan->rows[r];
        const double scale = 2.0 * row->n_points / plan->config.slice;
        for (int j = 0; j < row->length; j++) {
            const double g = plan->analysis[row->window + j];
            plan->analysis[row->window + j] = (float)(g * scale);
            plan->synthesis[row->window + j] = (float)(g / scale / sum[row->first + j]);
        }
    }
}

static wt_status fill_tables(wt__nsgt_plan *plan)
{
    double *sum = calloc((size_t)plan->config.slice / 2 + 1, sizeof *sum);
    if (!sum) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: %d bins", plan->config.slice / 2 + 1);
    fill_slice_window(plan);
    fill_bumps(plan, sum);
    scale_bumps(plan, sum);
    free(sum);
    return WT_OK;
}

wt_status wt__nsgt_plan_create(const wt_nsgt_config *config, wt__nsgt_plan *plan)
{
    *plan = (wt__nsgt_plan){0};
    wt_status status = resolve(config, &plan->config);
    if (status) return status;
    const wt_nsgt_config *c = &plan->config;
    plan->n_rows = c->n_bins + 2;
    plan->n_lines = c->n_slices * c->channels;
    plan->hz = calloc((size_t)plan->n_rows, sizeof *plan->hz);
    plan->rows = calloc((size_t)plan->n_rows, sizeof *plan->rows);
    plan->groups = calloc((size_t)plan->n_rows, sizeof *plan->groups);
    if (!plan->hz || !plan->rows || !plan->groups) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: %d rows", plan->n_rows);
    place_rows(plan);
    plan->slice_window = calloc((size_t)c->slice, sizeof(float));
    plan->analysis = calloc((size_t)plan->n_windows, sizeof(float));
    plan->synthesis = calloc((size_t)plan->n_windows, sizeof(float));
    plan->rows_at = calloc((size_t)c->slice + 2, sizeof(int));
    if (!plan->slice_window || !plan->analysis || !plan->synthesis || !plan->rows_at)
        return wt_fail(WT_ERR_NO_MEMORY, "nsgt: windows of %d bins", plan->n_windows);
    return fill_tables(plan);
}

void wt__nsgt_plan_destroy(wt__nsgt_plan *plan)
{
    free(plan->hz), free(plan->rows), free(plan->groups), free(plan->slice_window);
    free(plan->analysis), free(plan->synthesis), free(plan->rows_at);
}
