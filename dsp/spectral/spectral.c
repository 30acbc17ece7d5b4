#include "spectral_cuda.h"
#include "spectral_internal.h"
#include "spectral_sums.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/db.h>
#include <warptone/simd.h>

wt_status wt__spectral_resolve(const wt_spectral_shape *shape, wt_spectral_shape *s)
{
    *s = *shape;
    if (!s->rate_hz) s->rate_hz = 22050;
    if (!s->n_fft) s->n_fft = 2048;
    if (s->rate_hz < 1 || s->n_fft < 1 || s->n_frames < 0)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: rate %d Hz, n_fft %d, %lld frames, want 1, 1 and 0 or more",
                       s->rate_hz, s->n_fft, (long long)s->n_frames);
    return WT_OK;
}

// ---- terms of sums over bins

WT_CLONES static void plain_terms(const float *m, int first, int n, const void *by, double *terms)
{
    (void)first, (void)by;
    for (int k = 0; k < n; k++) terms[k] = m[k];
}

WT_CLONES static void square_terms(const float *m, int first, int n, const void *by, double *terms)
{
    (void)first, (void)by;
    for (int k = 0; k < n; k++) terms[k] = (double)m[k] * m[k];
}

WT_CLONES static void place_terms(const float *m, int first, int n, const void *by, double *terms)
{
    (void)by;
    for (int k = 0; k < n; k++) terms[k] = (double)(first + k) * m[k];
}

typedef struct spread {
    double hz, middle, p; // of a bin; from where; the power of the distance
} spread;

WT_CLONES static void spread_terms(const float *m, int first, int n, const void *by, double *terms)
{
    const spread s = *(const spread *)by;
    for (int k = 0; k < n; k++) terms[k] = fabs((first + k) * s.hz - s.middle);
    if (s.p == 2)
        for (int k = 0; k < n; k++) terms[k] *= terms[k] * m[k];
    else
        for (int k = 0; k < n; k++) terms[k] = m[k] * pow(terms[k], s.p);
}

typedef struct limit {
    double power, amin;
} limit;

WT_CLONES static void limited_terms(const float *m, int first, int n, const void *by, double *terms)
{
    const limit l = *(const limit *)by;
    (void)first;
    if (l.power == 2)
        for (int k = 0; k < n; k++) terms[k] = (double)m[k] * m[k];
    else if (l.power == 1)
        for (int k = 0; k < n; k++) terms[k] = m[k];
    else
        for (int k = 0; k < n; k++) terms[k] = pow(m[k], l.power);
    for (int k = 0; k < n; k++) terms[k] = terms[k] <= l.amin ? l.amin : terms[k];
}

// `by`: the frame before.
WT_CLONES static void rise_terms(const float *m, int first, int n, const void *by, double *terms)
{
    const float *before = (const float *)by + first;
    for (int k = 0; k < n; k++) {
        const double more = (double)m[k] - before[k];
        terms[k] = more <= 0 ? 0 : more;
    }
}

// `by`: weights of all bins.
WT_CLONES static void weighted_terms(const float *m, int first, int n, const void *by, double *terms)
{
    const double *weights = (const double *)by + first;
    for (int k = 0; k < n; k++) terms[k] = weights[k] * m[k];
}

// ---- features

static double centroid_of(const wt_spectral_shape *s, const float *m, double total)
{
    const double sum = wt__spectral_sum(place_terms, m, s->n_fft / 2 + 1, NULL) * wt__spectral_hz(s, 1);
    return total < DBL_MIN ? sum : sum / total;
}

wt_status wt_spectral_centroid(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins)
        out[t] = (float)centroid_of(&s, magnitude, wt__spectral_sum(plain_terms, magnitude, bins, NULL));
    return status;
}

wt_status wt_spectral_bandwidth(const wt_spectral_shape *shape, const float *magnitude, double p, bool no_norm,
                                float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    if (!p) p = 2;
    if (!status && !(p > 0)) status = wt_fail(WT_ERR_BAD_ARG, "spectral: bandwidth of order %g, want more than 0", p);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        const double total = wt__spectral_sum(plain_terms, magnitude, bins, NULL);
        const spread by = {wt__spectral_hz(&s, 1), centroid_of(&s, magnitude, total), p};
        const double sum = wt__spectral_sum(spread_terms, magnitude, bins, &by);
        out[t] = (float)pow(no_norm || total < DBL_MIN ? sum : sum / total, 1 / p);
    }
    return status;
}

wt_status wt_spectral_rolloff(const wt_spectral_shape *shape, const float *magnitude, double percent, float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    if (!percent) percent = 0.85;
    if (!status && !(percent > 0 && percent < 1))
        status = wt_fail(WT_ERR_BAD_ARG, "spectral: roll-off at %g, want between 0 and 1", percent);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        const double threshold = percent * wt__spectral_sum(plain_terms, magnitude, bins, NULL);
        double sum = magnitude[0];
        int k = 0;
        while (k < bins - 1 && sum < threshold) sum += magnitude[++k];
        out[t] = threshold == threshold ? (float)wt__spectral_hz(&s, k) : NAN;
    }
    return status;
}

wt_status wt_spectral_flatness(const wt_spectral_shape *shape, const float *magnitude, double power, double amin,
                               float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    if (!power) power = 2;
    if (!amin) amin = 1e-10;
    if (!status && !isfinite(power)) status = wt_fail(WT_ERR_BAD_ARG, "spectral: power %g, want a finite one", power);
    if (!status && !(amin > 0)) status = wt_fail(WT_ERR_BAD_ARG, "spectral: amin %g, want more than 0", amin);
    const limit by = {power, fmax(amin, DBL_MIN)};
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        double mean, geometric;
        wt__spectral_means(limited_terms, magnitude, bins, &by, &mean, &geometric);
        out[t] = mean <= DBL_MAX ? (float)(geometric / mean) : NAN;
    }
    return status;
}

wt_status wt_spectral_flux(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins)
        out[t] = t ? (float)wt__spectral_sum(rise_terms, magnitude, bins, magnitude - bins) : 0;
    return status;
}

wt_status wt_spectral_rms(const wt_spectral_shape *shape, const float *magnitude, float *out)
{
    wt_spectral_shape s;
    wt_status status = wt__spectral_resolve(shape, &s);
    const int bins = s.n_fft / 2 + 1;
    for (int64_t t = 0; t < s.n_frames && !status; t++, magnitude += bins) {
        const double first = magnitude[0], last = s.n_fft % 2 ? 0 : magnitude[bins - 1]; // once, the others twice
        const double sum = wt__spectral_sum(square_terms, magnitude, bins, NULL);
        out[t] = (float)(sqrt(2 * sum - first * first - (bins > 1 ? last * last : 0)) / s.n_fft);
    }
    return status;
}

// ---- polynomial

enum { MAX_ORDER = WT_SPECTRAL_MAX_ORDER };

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
    wt_status status = wt__spectral_resolve(shape, &s);
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
            const double *row = basis + (size_t)p * (size_t)bins;
            const double dot = wt__spectral_sum(weighted_terms, magnitude + t * bins, bins, row);
            for (int i = 0; i < n; i++) coefficients[i] += dot * powers[p * n + i];
        }
        const double per_hz = bins > 1 ? 1 / wt__spectral_hz(&s, bins - 1) : 0;
        for (int i = 0; i < n; i++) out[(order - i) * s.n_frames + t] = (float)(coefficients[i] * pow(per_hz, i));
    }
    free(basis);
    return WT_OK;
}

// ---- on a stream

struct wt_spectral {
    wt_spectral_config config; // defaults resolved
    wt_device *device;
    int rows;
    wt__spectral_cuda *cuda; // NULL on a CPU
};

static wt_status parts_in_db(const wt_spectral_config *c, const float *magnitude, float *out)
{
    const wt_db_config unlimited = {.no_top = true};
    const int64_t count = (c->contrast.n_bands + 1) * c->shape.n_frames;
    wt_status status = wt_spectral_contrast_parts(&c->shape, magnitude, &c->contrast, out, out + count);
    return status || c->contrast.linear ? status : wt_db_from_power(&unlimited, out, 2 * count, out);
}

static bool is_contrast(const wt_spectral_config *c) { return c->kind >= WT_SPECTRAL_CONTRAST; }

static wt_status run_signal(const wt_spectral_config *c, const float *magnitude, float *out)
{
    const wt_spectral_shape *s = &c->shape;
    switch (c->kind) {
    case WT_SPECTRAL_CENTROID: return wt_spectral_centroid(s, magnitude, out);
    case WT_SPECTRAL_BANDWIDTH: return wt_spectral_bandwidth(s, magnitude, c->p, c->no_norm, out);
    case WT_SPECTRAL_ROLLOFF: return wt_spectral_rolloff(s, magnitude, c->percent, out);
    case WT_SPECTRAL_FLATNESS: return wt_spectral_flatness(s, magnitude, c->power, c->amin, out);
    case WT_SPECTRAL_FLUX: return wt_spectral_flux(s, magnitude, out);
    case WT_SPECTRAL_RMS: return wt_spectral_rms(s, magnitude, out);
    case WT_SPECTRAL_POLYNOMIAL: return wt_spectral_polynomial(s, magnitude, c->order, out);
    case WT_SPECTRAL_CONTRAST: return wt_spectral_contrast(s, magnitude, &c->contrast, out);
    case WT_SPECTRAL_CONTRAST_PARTS: return parts_in_db(c, magnitude, out);
    }
    return wt_fail(WT_ERR_BAD_ARG, "spectral: kind %d, want 0..%d", (int)c->kind, WT_SPECTRAL_CONTRAST_PARTS);
}

// What the function itself refuses, by a call without frames.
static wt_status check(wt_spectral *p)
{
    wt_spectral_config *c = &p->config, none;
    wt_status status = wt__spectral_resolve(&c->shape, &c->shape);
    if (!status) status = wt__contrast_resolve(&c->contrast);
    if (status) return status;
    if (!c->p) c->p = 2;
    if (!c->percent) c->percent = 0.85;
    if (!c->power) c->power = 2;
    if (!c->amin) c->amin = 1e-10;
    if (!c->n_signals) c->n_signals = 1;
    if (c->shape.n_frames < 1 || c->n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "spectral: %d signals of %lld frames, want 1 or more", c->n_signals,
                       (long long)c->shape.n_frames);
    none = *c;
    none.shape.n_frames = 0;
    p->rows = c->kind == WT_SPECTRAL_POLYNOMIAL ? c->order + 1 : is_contrast(c) ? c->contrast.n_bands + 1 : 1;
    if (c->kind == WT_SPECTRAL_CONTRAST_PARTS) p->rows *= 2;
    return run_signal(&none, NULL, NULL);
}

static wt_status create_cuda(wt_spectral *p)
{
    const wt_spectral_config *c = &p->config;
    const int bins = c->shape.n_fft / 2 + 1;
    const bool parts = c->kind == WT_SPECTRAL_CONTRAST_PARTS;
    const wt_spectral_args args = {.n_frames = c->shape.n_frames,
                                   .n_signals = c->n_signals,
                                   .bins = bins,
                                   .rows = parts ? p->rows / 2 : p->rows,
                                   .parts = parts,
                                   .kind = (int)c->kind,
                                   .rate_hz = c->shape.rate_hz,
                                   .n_fft = c->shape.n_fft,
                                   .no_norm = c->no_norm,
                                   .linear = c->contrast.linear,
                                   .p = c->p,
                                   .percent = c->percent,
                                   .power = c->power,
                                   .amin = c->amin};
    if (is_contrast(c)) {
        wt_spectral_band bands[WT__CONTRAST_BANDS + 1];
        wt_status status = wt__contrast_bands(&c->shape, &c->contrast, bands);
        return status ? status : wt__spectral_cuda_create(p->device, &args, bands, NULL, &p->cuda);
    }
    if (c->kind != WT_SPECTRAL_POLYNOMIAL) return wt__spectral_cuda_create(p->device, &args, NULL, NULL, &p->cuda);
    const size_t n = (size_t)p->rows, area = n * (size_t)bins;
    double *basis = malloc((area + n * n) * sizeof *basis);
    if (!basis) return wt_fail(WT_ERR_NO_MEMORY, "spectral: basis of %d * %d", p->rows, bins);
    make_basis(bins, c->order, basis, basis + area);
    wt_status status = wt__spectral_cuda_create(p->device, &args, NULL, basis, &p->cuda);
    free(basis);
    return status;
}

wt_status wt_spectral_create(wt_device *device, const wt_spectral_config *config, wt_spectral **plan)
{
    *plan = NULL;
    wt_spectral *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "spectral: plan");
    p->config = *config;
    p->device = device;
    wt_status status = check(p);
    if (!status && wt__op_on_gpu(device)) status = create_cuda(p);
    if (status)
        wt_spectral_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_spectral_destroy(wt_spectral *plan)
{
    if (!plan) return;
    wt__spectral_cuda_destroy(plan->cuda);
    free(plan);
}

int wt_spectral_rows(const wt_spectral *plan)
{
    return plan->rows;
}

typedef struct call {
    const wt_spectral *plan;
    const float *in;
    float *out;
} call;

static void run_item(const void *args, int signal)
{
    const call *k = args;
    const wt_spectral_config *c = &k->plan->config;
    const int64_t area = c->shape.n_frames * (c->shape.n_fft / 2 + 1), values = c->shape.n_frames * k->plan->rows;
    (void)!run_signal(c, k->in + signal * area, k->out + signal * values); // checked by create
}

wt_status wt_spectral_enqueue(wt_spectral *plan, wt_stream *stream, const wt_buffer *magnitude,
                              size_t magnitude_offset, wt_buffer *out, size_t out_offset)
{
    const wt_spectral_config *c = &plan->config;
    const size_t frames = (size_t)c->n_signals * (size_t)c->shape.n_frames, bins = (size_t)c->shape.n_fft / 2 + 1;
    wt_status status = wt__op_stream("spectral", plan->device, stream);
    if (!status) status = wt__op_range("spectral", "magnitude", magnitude, magnitude_offset, frames * bins);
    if (!status) status = wt__op_range("spectral", "out", out, out_offset, frames * (size_t)plan->rows);
    if (status) return status;
    const call k = {plan, (const float *)(wt_buffer_address(magnitude) + magnitude_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->cuda) return wt__spectral_cuda_enqueue(plan->cuda, stream, k.in, k.out);
    return wt_stream_run(stream, run_item, &k, sizeof k, c->n_signals);
}
