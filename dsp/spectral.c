#include <warptone/spectral.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/db.h>

static wt_status resolve(const wt_spectral_shape *shape, wt_spectral_shape *s)
{
    *s = *shape;
    if (!s->rate_hz) s->rate_hz = 22050;
    if (!s->n_fft) s->n_fft = 2048;
    if (s->rate_hz < 1 || s->n_fft < 1 || s->n_frames < 0)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: rate %d Hz, n_fft %d, %lld frames, want 1, 1 and 0 or more",
                       s->rate_hz, s->n_fft, (long long)s->n_frames);
    return WT_OK;
}

static double hz_of(const wt_spectral_shape *s, int k)
{
    return (double)k * s->rate_hz / s->n_fft;
}

static double sum_of(const float *m, int bins)
{
    double sum = 0;
    for (int k = 0; k < bins; k++) sum += m[k];
    return sum;
}

static double centroid_of(const wt_spectral_shape *s, const float *m)
{
    const int bins = s->n_fft / 2 + 1;
    double sum = 0, total = sum_of(m, bins);
    for (int k = 0; k < bins; k++) sum += hz_of(s, k) * m[k];
    return total < DBL_MIN ? sum : sum / total;
}

wt_status wt_spectral_centroid(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    for (int64_t t = 0; t < s.n_frames && !status; t++)
        out[t] = (float)centroid_of(&s, magnitude + t * (s.n_fft / 2 + 1));
    return status;
}

wt_status wt_spectral_bandwidth(const wt_spectral_shape *shape, const float *magnitude, double p, bool no_norm,
                                float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    if (!p) p = 2;
    if (!status && !(p > 0)) status = wt_fail(WT_ERR_BAD_ARG, "spectral: bandwidth of order %g, want more than 0", p);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        const double middle = centroid_of(&s, magnitude), total = sum_of(magnitude, bins);
        double sum = 0;
        for (int k = 0; k < bins; k++) {
            const double off = fabs(hz_of(&s, k) - middle);
            sum += magnitude[k] * (p == 2 ? off * off : pow(off, p));
        }
        out[t] = (float)pow(no_norm || total < DBL_MIN ? sum : sum / total, 1 / p);
    }
    return status;
}

wt_status wt_spectral_rolloff(const wt_spectral_shape *shape, const float *magnitude, double percent, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    if (!percent) percent = 0.85;
    if (!status && !(percent > 0 && percent < 1))
        status = wt_fail(WT_ERR_BAD_ARG, "spectral: roll-off at %g, want between 0 and 1", percent);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        const double threshold = percent * sum_of(magnitude, bins);
        double sum = magnitude[0];
        int k = 0;
        while (k < bins - 1 && sum < threshold) sum += magnitude[++k];
        out[t] = threshold == threshold ? (float)hz_of(&s, k) : NAN;
    }
    return status;
}

wt_status wt_spectral_flatness(const wt_spectral_shape *shape, const float *magnitude, double power, double amin,
                               float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    if (!power) power = 2;
    if (!amin) amin = 1e-10;
    if (!status && !(amin > 0)) status = wt_fail(WT_ERR_BAD_ARG, "spectral: amin %g, want more than 0", amin);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        double logs = 0, sum = 0;
        for (int k = 0; k < bins; k++) {
            const double m = magnitude[k], x = power == 2 ? m * m : pow(m, power), limited = x <= amin ? amin : x;
            logs += log(limited);
            sum += limited;
        }
        out[t] = (float)(exp(logs / bins) / (sum / bins));
    }
    return status;
}

wt_status wt_spectral_flux(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++) {
        double sum = 0;
        for (int k = 0; k < bins && t; k++) {
            const double more = (double)magnitude[t * bins + k] - magnitude[(t - 1) * bins + k];
            sum += more <= 0 ? 0 : more;
        }
        out[t] = (float)sum;
    }
    return status;
}

wt_status wt_spectral_rms(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        double sum = 0;
        for (int k = 0; k < bins; k++) {
            const bool end = k == 0 || 2 * k == s.n_fft;
            sum += (end ? 0.5 : 1) * magnitude[k] * magnitude[k];
        }
        out[t] = (float)(sqrt(2 * sum) / s.n_fft);
    }
    return status;
}

// ---- contrast

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Bins first .. last of band b: octave edges, with the bin before, and the rest of the spectrum for the highest.
static wt_status find_band(const wt_spectral_shape *s, const wt_spectral_contrast_config *c, int b, int *first,
                           int *last)
{
    const int bins = s->n_fft / 2 + 1;
    const double low = b ? c->fmin_hz * exp2(b - 1) : 0, high = c->fmin_hz * exp2(b);
    if (low >= s->rate_hz / 2.0)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: contrast band from %g Hz, want all below %g", low, s->rate_hz / 2.0);
    for (*first = 0; *first < bins && hz_of(s, *first) < low;) ++*first;
    for (*last = bins - 1; *last >= 0 && hz_of(s, *last) > high;) --*last;
    if (*first > *last)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: no bin between %g and %g Hz, want a longer n_fft than %d", low, high,
                       s->n_fft);
    if (b) --*first;
    if (b == c->n_bands) *last = bins - 1;
    return WT_OK;
}

static void contrast_of(const float *band, int used, int share, float *sorted, float *peak, float *valley)
{
    double low = 0, high = 0;
    memcpy(sorted, band, (size_t)used * sizeof *sorted);
    qsort(sorted, (size_t)used, sizeof *sorted, ascending);
    for (int i = 0; i < share; i++) low += sorted[i], high += sorted[used - 1 - i];
    *valley = (float)(low / share), *peak = (float)(high / share);
}

static wt_status run_contrast(const wt_spectral_shape *s, const wt_spectral_contrast_config *c, const float *magnitude,
                              float *work, float *out)
{
    const int bins = s->n_fft / 2 + 1;
    const int64_t count = (c->n_bands + 1) * s->n_frames;
    float *sorted = work, *valleys = work + bins;
    for (int b = 0; b <= c->n_bands; b++) {
        int first = 0, last = 0;
        wt_status status = find_band(s, c, b, &first, &last);
        if (status) return status;
        // the bin at the upper edge counts for the share alone
        const int all = last - first + 1, used = b < c->n_bands && all > 1 ? all - 1 : all;
        int share = (int)nearbyint(c->quantile * all);
        share = share < 1 ? 1 : share > used ? used : share;
        for (int64_t t = 0; t < s->n_frames; t++)
            contrast_of(magnitude + t * bins + first, used, share, sorted, out + b * s->n_frames + t,
                        valleys + b * s->n_frames + t);
    }
    wt_status status = c->linear ? WT_OK : wt_db_from_power(NULL, out, count, out);
    if (!status && !c->linear) status = wt_db_from_power(NULL, valleys, count, valleys);
    for (int64_t i = 0; i < count; i++) out[i] -= valleys[i];
    return status;
}

wt_status wt_spectral_contrast(const wt_spectral_shape *shape, const float *magnitude,
                               const wt_spectral_contrast_config *config, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    if (status) return status;
    wt_spectral_contrast_config c = config ? *config : (wt_spectral_contrast_config){.n_bands = 0};
    if (!c.fmin_hz) c.fmin_hz = 200;
    if (!c.n_bands) c.n_bands = 6;
    if (!c.quantile) c.quantile = 0.02;
    if (!(c.fmin_hz > 0) || c.n_bands < 1 || c.n_bands > 32 || !(c.quantile > 0 && c.quantile < 1))
        return wt_fail(WT_ERR_BAD_ARG, "spectral: contrast from %g Hz, %d bands, quantile %g, want > 0, 1..32, 0..1",
                       c.fmin_hz, c.n_bands, c.quantile);
    const size_t floats = (size_t)(s.n_fft / 2 + 1) + (size_t)(c.n_bands + 1) * (size_t)s.n_frames;
    float *work = malloc(floats * sizeof *work);
    if (!work) return wt_fail(WT_ERR_NO_MEMORY, "spectral: %zu floats of contrast", floats);
    status = run_contrast(&s, &c, magnitude, work, out);
    free(work);
    return status;
}

// ---- polynomial

enum { MAX_ORDER = 10 };

// Least squares by an orthonormal basis of x = k / (bins - 1): row p of `basis` [order + 1][bins], and `powers`
// [order + 1][order + 1], whose row p are the coefficients of that polynomial in x. Gram and Schmidt, twice.
static void make_basis(int bins, int order, double *basis, double *powers)
{
    const int n = order + 1;
    memset(powers, 0, (size_t)n * (size_t)n * sizeof *powers);
    for (int p = 0; p < n; p++) {
        double *row = basis + (size_t)p * (size_t)bins, *own = powers + p * n;
        own[p] = 1;
        for (int k = 0; k < bins; k++) row[k] = pow(bins > 1 ? (double)k / (bins - 1) : 0, p);
        for (int again = 0; again < 2; again++)
            for (int q = 0; q < p; q++) {
                const double *other = basis + (size_t)q * (size_t)bins;
                double dot = 0;
                for (int k = 0; k < bins; k++) dot += row[k] * other[k];
                for (int k = 0; k < bins; k++) row[k] -= dot * other[k];
                for (int i = 0; i < n; i++) own[i] -= dot * powers[q * n + i];
            }
        double norm = 0;
        for (int k = 0; k < bins; k++) norm += row[k] * row[k];
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        for (int k = 0; k < bins; k++) row[k] *= norm;
        for (int i = 0; i < n; i++) own[i] *= norm;
    }
}

wt_status wt_spectral_polynomial(const wt_spectral_shape *shape, const float *magnitude, int order, float *out)
{
    wt_spectral_shape s;
    wt_status status = resolve(shape, &s);
    if (status) return status;
    const int bins = s.n_fft / 2 + 1, n = order + 1;
    if (order < 0 || order > MAX_ORDER || order >= bins)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: order %d of %d bins, want 0..%d", order, bins,
                       bins - 1 < MAX_ORDER ? bins - 1 : MAX_ORDER);
    double powers[(MAX_ORDER + 1) * (MAX_ORDER + 1)], *basis = malloc((size_t)n * (size_t)bins * sizeof *basis);
    if (!basis) return wt_fail(WT_ERR_NO_MEMORY, "spectral: basis of %d * %d", n, bins);
    make_basis(bins, order, basis, powers);
    for (int64_t t = 0; t < s.n_frames; t++) {
        double coefficients[MAX_ORDER + 1] = {0};
        for (int p = 0; p < n; p++) {
            double dot = 0;
            for (int k = 0; k < bins; k++) dot += basis[(size_t)p * (size_t)bins + (size_t)k] * magnitude[t * bins + k];
            for (int i = 0; i < n; i++) coefficients[i] += dot * powers[p * n + i];
        }
        const double per_hz = bins > 1 ? 1 / hz_of(&s, bins - 1) : 0;
        for (int i = 0; i < n; i++) out[(order - i) * s.n_frames + t] = (float)(coefficients[i] * pow(per_hz, i));
    }
    free(basis);
    return WT_OK;
}
