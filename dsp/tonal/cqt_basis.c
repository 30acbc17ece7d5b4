#include "cqt_basis.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>

static const double pi = 3.14159265358979323846;

// ---- options

// librosa 0.11.0 filters.py, WINDOW_BANDWIDTHS: n sum of squares / square of the sum, at n = 1000.
static double bandwidth_of(const wt_window_config *window)
{
    enum { N = 1000 };
    wt_window_config shape = *window;
    double samples[N], sum = 0, squares = 0;
    switch (window->kind) {
    case WT_WINDOW_HAMMING: return 1.3629455320350348;
    case WT_WINDOW_BLACKMAN: return 1.7269681554262326;
    case WT_WINDOW_BLACKMAN_HARRIS: return 2.0045975283585014;
    case WT_WINDOW_FLAT_TOP: return 2.7762255046484143;
    case WT_WINDOW_RECTANGULAR: return 1;
    case WT_WINDOW_KAISER:
    case WT_WINDOW_GAUSSIAN: break;
    default: return 1.50018310546875;
    }
    shape.n = N;
    if (wt_window_fill_double(&shape, samples)) return 1; // told when filters are filled
    for (int i = 0; i < N; i++) sum += samples[i], squares += samples[i] * samples[i];
    return N * squares / (sum * sum);
}

static wt_status check_intervals(const wt_cqt_config *c)
{
    for (int k = 0; c->intervals && k < c->bins_per_octave; k++) {
        const double ratio = c->intervals[k], before = k ? c->intervals[k - 1] : 0;
        if (!(ratio >= 1 && ratio < 2 && ratio > before))
            return wt_fail(WT_ERR_BAD_ARG, "cqt: interval %d is %g, want 1 or more, below 2, and ascending", k, ratio);
    }
    return WT_OK;
}

wt_status wt__cqt_resolve(wt_cqt_config *c)
{
    if (c->rate_hz == 0) c->rate_hz = 22050;
    if (!c->hop) c->hop = 512;
    if (c->fmin_hz == 0) c->fmin_hz = 32.703195662574829;
    if (!c->n_bins) c->n_bins = 84;
    if (!c->bins_per_octave) c->bins_per_octave = 12;
    if (c->filter_scale == 0) c->filter_scale = 1;
    if (c->sparsity == 0) c->sparsity = 0.01;
    if (c->sparsity < 0) c->sparsity = 0;
    if (!c->channels) c->channels = 1;
    if ((unsigned)c->kind > WT_CQT_HYBRID || (unsigned)c->norm > WT_CQT_NORM_NONE)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: kind %d and norm %d, want 0..2 and 0..3", (int)c->kind, (int)c->norm);
    if (!(c->rate_hz >= 1 && c->rate_hz <= 1e8))
        return wt_fail(WT_ERR_BAD_ARG, "cqt: rate %g Hz, want 1..1e8", c->rate_hz);
    if (c->hop < 1 || c->hop > 1 << 20) return wt_fail(WT_ERR_BAD_ARG, "cqt: hop %d, want 1..1048576", c->hop);
    if (!(c->fmin_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "cqt: fmin %g Hz, want above 0", c->fmin_hz);
    if (c->n_bins < 1 || c->n_bins > WT_CQT_MAX_BINS || c->bins_per_octave < 1 || c->bins_per_octave > WT_CQT_MAX_BINS)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: %d bins, %d an octave, want 1..%d", c->n_bins, c->bins_per_octave,
                       WT_CQT_MAX_BINS);
    if (!(c->gamma_hz >= 0) || !(c->filter_scale > 0) || !(c->sparsity < 1) || !isfinite(c->tuning))
        return wt_fail(WT_ERR_BAD_ARG, "cqt: gamma %g, filter_scale %g, sparsity %g, tuning %g, want 0 or more, above "
                       "0, below 1, finite", c->gamma_hz, c->filter_scale, c->sparsity, c->tuning);
    if ((unsigned)c->pad > WT_STFT_PAD_EDGE)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: padding %d%s, want 0..%d (zero, reflect, symmetric or edge)", (int)c->pad,
                       c->pad == WT_STFT_PAD_RAMP ? " (ramp)" : "", WT_STFT_PAD_EDGE);
    if (c->channels < 1 || c->channels > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: %d channels, want 1..65535", c->channels);
    if (c->window.kind == WT_WINDOW_CUSTOM || (c->kind != WT_CQT_FULL && (c->intervals || c->gamma_hz || c->erb_gamma)))
        return wt_fail(WT_ERR_BAD_ARG, "cqt: custom windows, and intervals or gamma of pseudo and hybrid transforms, "
                       "do not exist");
    return check_intervals(c);
}

// ---- frequencies

static double hz_of(const wt_cqt_config *c, int k)
{
    const int octave = k / c->bins_per_octave, within = k % c->bins_per_octave;
    const double ratio = c->intervals ? c->intervals[within] : exp2((double)within / c->bins_per_octave);
    return ldexp(ratio, octave) * (c->fmin_hz * exp2(c->tuning / c->bins_per_octave));
}

// Bandwidth from the distance to the neighbours (librosa filters.py, _relative_bandwidth): of one bin, from the octave.
static double alpha_of(const wt_cqt_config *c, const double *hz, int k, int n)
{
    double octaves = 1.0 / c->bins_per_octave;
    if (n > 1) {
        const int low = k ? k - 1 : 0, high = k < n - 1 ? k + 1 : n - 1;
        octaves = (log2(hz[high]) - log2(hz[low])) / (high - low);
    }
    const double square = exp2(2 * octaves);
    return (square - 1) / (square + 1);
}

wt_status wt__cqt_scale_create(const wt_cqt_config *c, int first, int n_bins, wt__cqt_scale *scale)
{
    *scale = (wt__cqt_scale){.n_bins = n_bins};
    double *all = calloc(3 * (size_t)n_bins, sizeof *all);
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "cqt: %d bins", n_bins);
    scale->hz = all, scale->alpha = all + n_bins, scale->gamma = all + 2 * n_bins;
    for (int k = 0; k < n_bins; k++) scale->hz[k] = hz_of(c, first + k);
    const double bandwidth = bandwidth_of(&c->window);
    for (int k = 0; k < n_bins; k++) {
        const double alpha = alpha_of(c, scale->hz, k, n_bins);
        const double gamma = c->erb_gamma ? alpha * 24.7 / 0.108 : c->gamma_hz;
        const double top = scale->hz[k] * (1 + 0.5 * bandwidth * alpha / c->filter_scale) + 0.5 * gamma;
        scale->alpha[k] = alpha, scale->gamma[k] = gamma;
        if (top > scale->cutoff_hz) scale->cutoff_hz = top;
    }
    if (scale->cutoff_hz <= c->rate_hz / 2) return WT_OK;
    wt_status status = wt_fail(WT_ERR_BAD_ARG, "cqt: the filters reach %.1f Hz, want %.1f or less (half the rate): "
                               "fewer bins or a lower fmin", scale->cutoff_hz, c->rate_hz / 2);
    wt__cqt_scale_destroy(scale);
    return status;
}

void wt__cqt_scale_destroy(wt__cqt_scale *scale)
{
    free(scale->hz);
    scale->hz = scale->alpha = scale->gamma = NULL;
}

double wt__cqt_length(const wt_cqt_config *c, const wt__cqt_scale *scale, int k, double rate_hz)
{
    const double q = c->filter_scale / scale->alpha[k];
    return q * rate_hz / (scale->hz[k] + scale->gamma[k] / scale->alpha[k]);
}

// ---- filters

// Transform in place, n a power of two; `work` is as large; turn [k step] is exp(-i pi k / (n / 2)).
static void transform(const double complex *turn, int step, double complex *x, double complex *work, int n)
{
    if (n == 1) return;
    const int h = n / 2;
    for (int i = 0; i < h; i++) work[i] = x[2 * i], work[h + i] = x[2 * i + 1];
    transform(turn, 2 * step, work, x, h);
    transform(turn, 2 * step, work + h, x + h, h);
    for (int k = 0; k < h; k++) {
        const double complex odd = turn[k * step] * work[h + k];
        x[k] = work[k] + odd, x[h + k] = work[k] - odd;
    }
}

static double norm_of(wt_cqt_norm norm, const double *window, int n)
{
    double sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        const double size = fabs(window[i]);
        sum += norm == WT_CQT_NORM_2 ? size * size : size;
        if (size > most) most = size;
    }
    const double by = norm == WT_CQT_NORM_1     ? sum
                      : norm == WT_CQT_NORM_2   ? sqrt(sum)
                      : norm == WT_CQT_NORM_MAX ? most
                                                : 1;
    return by > DBL_MIN ? by : 1;
}

// A windowed turn of length n in the middle of n_fft points, rounded to float as librosa's are, times length / n_fft.
static wt_status fill_filter(const wt_cqt_config *c, double hz, double rate_hz, double length, int n_fft,
                             double complex *filter)
{
    const double begin = floor(-length / 2), end = floor(length / 2);
    const int n = (int)(end - begin), left = (n_fft - n) / 2;
    if (n < 1)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: the filter at %.1f Hz has %.2f samples, want 2 or more", hz, length);
    double *window = malloc((size_t)n * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "cqt: filter of %d samples", n);
    wt_window_config shape = c->window;
    shape.n = n;
    wt_status status = wt_window_fill_double(&shape, window);
    if (!status) {
        memset(filter, 0, (size_t)n_fft * sizeof *filter);
        const double norm = norm_of(c->norm, window, n);
        for (int i = 0; i < n; i++) {
            const double turn = (begin + i) * 2 * pi * hz / rate_hz, size = window[i] / norm;
            const float re = (float)(cos(turn) * size), im = (float)(sin(turn) * size);
            filter[left + i] = (re + I * im) * (length / n_fft);
        }
    }
    free(window);
    return status;
}

static void sift(double *x, int root, int n)
{
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && x[child + 1] > x[child]) child++;
        if (x[root] >= x[child]) return;
        const double larger = x[child];
        x[child] = x[root], x[root] = larger;
    }
}

// Ascending, in place: the C library's qsort may take memory.
static void sort(double *x, int n)
{
    for (int root = n / 2 - 1; root >= 0; root--) sift(x, root, n);
    for (int end = n - 1; end > 0; end--) {
        const double most = x[0];
        x[0] = x[end], x[end] = most;
        sift(x, 0, end);
    }
}

// The magnitude from which bins are kept: the smaller ones together are less than `share` of all.
static double threshold(const double *size, double *sorted, int n, double share)
{
    double sum = 0, so_far = 0;
    memcpy(sorted, size, (size_t)n * sizeof *sorted);
    sort(sorted, n);
    for (int k = 0; k < n; k++) sum += size[k];
    for (int k = 0; k < n; k++) {
        so_far += sorted[k] / sum;
        if (!(so_far < share)) return sorted[k];
    }
    return sorted[0];
}

static wt_status fill_basis(const wt_cqt_config *c, const wt__cqt_scale *scale, double rate_hz, wt__cqt_basis *b)
{
    const int n = b->n_fft, bins = n / 2 + 1;
    double complex *filter = malloc(3 * (size_t)n * sizeof *filter), *turn = filter + 2 * (size_t)n;
    double *size = malloc(2 * (size_t)bins * sizeof *size);
    wt_status status = filter && size ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "cqt: filters of %d points", n);
    for (int k = 0; k < n / 2 && !status; k++) turn[k] = cexp(-I * pi * k / (n / 2));
    for (int r = 0, at = 0; r < b->n_rows && !status; r++) {
        status = fill_filter(c, scale->hz[b->first + r], rate_hz, b->lengths[r], n, filter);
        if (status) break;
        transform(turn, 1, filter, filter + n, n);
        for (int k = 0; k < bins; k++) size[k] = cabs(filter[k]);
        const double least = threshold(size, size + bins, bins, c->sparsity);
        for (int k = 0; k < bins; k++) {
            if (size[k] < least) continue;
            b->bin[at] = k;
            b->value[2 * at] = creal(filter[k]), b->value[2 * at + 1] = cimag(filter[k]);
            at++;
        }
        b->begin[r + 1] = at;
    }
    free(filter);
    free(size);
    return status;
}

// 0.4 GB of filters' spectra of one octave, or of a pseudo transform: 252 filters of 6 s at 22050 Hz, 84 with a hop of
// 6 s.
enum { MOST_POINTS = 1 << 25 };

wt_status wt__cqt_basis_create(const wt_cqt_config *c, const wt__cqt_scale *scale, int first, int n_rows,
                               double rate_hz, int min_n_fft, wt__cqt_basis *basis)
{
    *basis = (wt__cqt_basis){.n_fft = 1, .first = first, .n_rows = n_rows};
    double longest = min_n_fft;
    for (int r = 0; r < n_rows; r++) longest = fmax(longest, wt__cqt_length(c, scale, first + r, rate_hz));
    if (!(longest <= WT_FFT_MAX_N))
        return wt_fail(WT_ERR_BAD_ARG, "cqt: a filter of %.0f samples, want %d at most", longest, WT_FFT_MAX_N);
    while (basis->n_fft < longest) basis->n_fft *= 2;
    if ((int64_t)n_rows * basis->n_fft > MOST_POINTS)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: spectra of %d filters in %d points, want %d points in all at most: a "
                       "smaller hop, a higher fmin or fewer bins", n_rows, basis->n_fft, MOST_POINTS);
    const size_t room = (size_t)n_rows * (size_t)(basis->n_fft / 2 + 1);
    basis->begin = calloc((size_t)n_rows + 1, sizeof(int));
    basis->bin = calloc(room, sizeof(int));
    basis->value = calloc(2 * room, sizeof(double));
    basis->lengths = calloc((size_t)n_rows, sizeof(double));
    wt_status status = WT_OK;
    if (!basis->begin || !basis->bin || !basis->value || !basis->lengths)
        status = wt_fail(WT_ERR_NO_MEMORY, "cqt: %d filters of %d points", n_rows, basis->n_fft);
    for (int r = 0; r < n_rows && !status; r++) basis->lengths[r] = wt__cqt_length(c, scale, first + r, rate_hz);
    if (!status) status = fill_basis(c, scale, rate_hz, basis);
    if (status) wt__cqt_basis_destroy(basis);
    return status;
}

void wt__cqt_basis_destroy(wt__cqt_basis *basis)
{
    free(basis->begin);
    free(basis->bin);
    free(basis->value);
    free(basis->lengths);
    *basis = (wt__cqt_basis){0};
}
