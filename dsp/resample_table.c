// Taps: sinc at the lower Nyquist frequency times a Kaiser window. With A dB in the stop band and a transition of w
// radians the window spans (A - 8) / (2.285 w) taps (J. Kaiser, 1974). Where the rate falls, all of it stretches by the
// ratio. A cubic through rows P apart errs by 3/128 (pi / P)^4: below -150 dB from P = 96 on.
#include "resample_table.h"

#include <warptone/simd.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "soxr_hq_table.h"

enum { ROUND_TAPS = 16, ROWS_PER_FRAME = 128, MAX_EXACT_TAPS = 1 << 19 };
static const int64_t steered_denominator = (int64_t)1 << 40; // a steered step is a multiple of 2^-40 frames

typedef struct recipe {
    double stop_db, pass; // pass: edge of the flat band, of the lower Nyquist frequency; the stop band begins at 1
} recipe;
static const recipe recipes[] = {{158, 0.955}, {108, 0.90}};

int64_t wt__common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

typedef struct soxr_filter {
    int ratio, half; // of the higher rate to the lower; taps to each side, at the higher rate
    const double *taps;
} soxr_filter;

static const soxr_filter *soxr_filter_of(int in_hz, int out_hz)
{
    static const soxr_filter filters[] = {{2, SOXR_HQ_HALF, soxr_hq_half}, {3, SOXR_HQ_THIRD_HALF, soxr_hq_third}};
    for (int k = 0; k < 2; k++)
        if (in_hz == (int64_t)filters[k].ratio * out_hz || out_hz == (int64_t)filters[k].ratio * in_hz)
            return &filters[k];
    return NULL;
}

static wt_status check(const wt_resample_config *c, int channels)
{
    const int limit = 100000000;
    if (c->in_hz < 1 || c->in_hz > limit || c->out_hz < 1 || c->out_hz > limit)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d to %d Hz, want rates of 1..%d", c->in_hz, c->out_hz, limit);
    if (c->in_hz > 256LL * c->out_hz || c->out_hz > 256LL * c->in_hz)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d to %d Hz, want a ratio within 1/256..256", c->in_hz, c->out_hz);
    if (channels < 1 || channels > WT_RESAMPLE_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d channels, want 1..%d", channels, WT_RESAMPLE_MAX_CHANNELS);
    if (c->quality < WT_RESAMPLE_BEST || c->quality > WT_RESAMPLE_POLYPHASE)
        return wt_fail(WT_ERR_BAD_ARG, "resample: quality %d, want 0..3", (int)c->quality);
    if (c->quality == WT_RESAMPLE_SOXR_HQ && (!soxr_filter_of(c->in_hz, c->out_hz) || c->variable))
        return wt_fail(WT_ERR_BAD_ARG, "resample: soxr_hq from %d to %d Hz%s, want exactly 2:1, 3:1, 1:2 or 1:3",
                       c->in_hz, c->out_hz, c->variable ? ", variable" : "");
    if (c->quality == WT_RESAMPLE_POLYPHASE && c->variable)
        return wt_fail(WT_ERR_BAD_ARG, "resample: polyphase is not variable, want best or fast");
    return WT_OK;
}

static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > 1e-18 * sum; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

typedef struct sinc_filter {
    double cutoff; // cycles an input frame, doubled: 1 = its Nyquist frequency
    double half;   // input frames to each side
    double beta, scale;
} sinc_filter;

static double sinc_at(const sinc_filter *f, double t)
{
    const double x = M_PI * f->cutoff * t, away = t / f->half;
    if (fabs(away) >= 1) return 0;
    return f->cutoff * (t == 0 ? 1 : sin(x) / x) * bessel_i0(f->beta * sqrt(1 - away * away)) * f->scale;
}

static sinc_filter design(const recipe *r, double shrink)
{
    const double taps = (r->stop_db - 8) / (2.285 * M_PI * (1 - r->pass)) / shrink;
    sinc_filter f = {.cutoff = shrink * (1 + r->pass) / 2, .half = ceil(taps / 2), .beta = 0.1102 * (r->stop_db - 8.7)};
    f.scale = 1 / bessel_i0(f.beta);
    return f;
}

// scipy 1.17 signal/_signaltools.py, resample_poly(): firwin of 20 zero crossings, Kaiser 5.
static sinc_filter scipys(double shrink)
{
    return (sinc_filter){.cutoff = shrink, .half = 10 / shrink, .beta = 5, .scale = 1 / bessel_i0(5)};
}

static size_t rows_of(const wt__resample_table *t) { return (size_t)(t->n_phases + (t->interpolated ? 3 : 0)); }

static void fill_sinc(wt__resample_table *t, const sinc_filter *f)
{
    const int first = t->interpolated ? -1 : 0;
    for (size_t row = 0; row < rows_of(t); row++)
        for (int k = 0; k < t->n_taps; k++)
            t->taps[row * (size_t)t->n_taps + (size_t)k] =
                sinc_at(f, (double)((int)row + first) / t->n_phases + t->before - k);
}

// Every phase passes a constant exactly; between rows a cubic of exact rows is exact too.
static void fill_rows(wt__resample_table *t, const sinc_filter *f)
{
    fill_sinc(t, f);
    for (size_t r = 0; r < rows_of(t); r++) {
        double *row = t->taps + r * (size_t)t->n_taps, sum = 0;
        for (int k = 0; k < t->n_taps; k++) sum += row[k];
        for (int k = 0; k < t->n_taps; k++) row[k] /= sum;
    }
}

static void fill_soxr(wt__resample_table *t, const soxr_filter *f)
{
    for (int p = 0; p < t->n_phases; p++)
        for (int k = 0; k < t->n_taps; k++) {
            const int at = abs(p + t->n_phases * (t->before - k));
            if (at <= f->half) t->taps[(size_t)p * (size_t)t->n_taps + (size_t)k] = t->n_phases * f->taps[at];
        }
}

// Not each phase, all together: scipy's firwin passes a constant exactly at the rate that both rates divide.
static void fill_polyphase(wt__resample_table *t, const sinc_filter *f)
{
    const size_t n = (size_t)t->n_taps;
    double sum = 0;
    fill_sinc(t, f);
    for (int p = 0; p < t->n_phases; p++)
        for (size_t k = 0; k < n; k++) sum += t->taps[(size_t)(p + (t->interpolated ? 1 : 0)) * n + k];
    for (size_t k = 0; k < rows_of(t) * n; k++) t->taps[k] *= t->n_phases / sum;
}

static wt_status allocate(wt__resample_table *t, int real_taps)
{
    t->n_taps = (real_taps + ROUND_TAPS - 1) / ROUND_TAPS * ROUND_TAPS;
    t->before = t->n_taps - 1 - t->after; // padding lies in the past, where it costs no latency
    const size_t n = rows_of(t) * (size_t)t->n_taps;
    t->taps = aligned_alloc(64, n * sizeof *t->taps);
    if (t->taps && !t->wide) t->taps_f32 = aligned_alloc(64, n * sizeof *t->taps_f32);
    if (!t->taps || (!t->wide && !t->taps_f32)) return wt_fail(WT_ERR_NO_MEMORY, "resample: %zu taps", n);
    memset(t->taps, 0, n * sizeof *t->taps);
    return WT_OK;
}

static void round_taps(wt__resample_table *t)
{
    const size_t n = rows_of(t) * (size_t)t->n_taps;
    for (size_t k = 0; t->taps_f32 && k < n; k++) t->taps_f32[k] = (float)t->taps[k];
}

wt_status wt__resample_table_create(const wt_resample_config *config, wt__resample_table *t)
{
    *t = (wt__resample_table){0};
    wt_status status = check(config, config->channels ? config->channels : 2);
    if (status) return status;
    const int64_t divisor = wt__common_divisor(config->in_hz, config->out_hz);
    t->numerator = config->in_hz / divisor;
    t->denominator = config->out_hz / divisor;
    t->wide = config->quality == WT_RESAMPLE_BEST;
    if (config->quality == WT_RESAMPLE_SOXR_HQ) {
        const soxr_filter *filter = soxr_filter_of(config->in_hz, config->out_hz);
        t->halves = t->numerator == 2;
        t->n_phases = (int)t->denominator;
        t->after = (filter->half + t->n_phases - 1) / t->n_phases;
        status = allocate(t, 2 * t->after + 1);
        if (!status) fill_soxr(t, filter);
    } else {
        const bool polyphase = config->quality == WT_RESAMPLE_POLYPHASE;
        const double shrink = config->out_hz < config->in_hz ? (double)config->out_hz / config->in_hz : 1;
        const sinc_filter filter = polyphase ? scipys(shrink) : design(&recipes[config->quality], shrink);
        t->after = (int)ceil(filter.half);
        t->interpolated = config->variable || t->denominator * 2 * t->after > MAX_EXACT_TAPS;
        t->n_phases = t->interpolated ? (int)ceil(ROWS_PER_FRAME * shrink) : (int)t->denominator;
        status = allocate(t, 2 * t->after);
        if (!status && polyphase) fill_polyphase(t, &filter);
        if (!status && !polyphase) fill_rows(t, &filter);
    }
    if (!status) round_taps(t);
    if (config->variable) {
        t->numerator = llround((double)config->in_hz / config->out_hz * (double)steered_denominator);
        t->denominator = steered_denominator;
    }
    return status;
}

void wt__resample_table_destroy(wt__resample_table *t)
{
    free(t->taps);
    free(t->taps_f32);
    *t = (wt__resample_table){0};
}

// Lagrange's cubic through rows at -1, 0, 1, 2, read at w in 0 .. 1.
static void cubic(double w, double *weights)
{
    weights[0] = -w * (w - 1) * (w - 2) / 6;
    weights[1] = (w + 1) * (w - 1) * (w - 2) / 2;
    weights[2] = -(w + 1) * w * (w - 2) / 2;
    weights[3] = (w + 1) * w * (w - 1) / 6;
}

WT_CLONES static void blend_f64(const double *rows, int n, const double *w, double *out)
{
    for (int k = 0; k < n; k++)
        out[k] = w[0] * rows[k] + w[1] * rows[n + k] + w[2] * rows[2 * n + k] + w[3] * rows[3 * n + k];
}

WT_CLONES static void blend_f32(const float *rows, int n, const double *weights, float *out)
{
    const float w[4] = {(float)weights[0], (float)weights[1], (float)weights[2], (float)weights[3]};
    for (int k = 0; k < n; k++)
        out[k] = w[0] * rows[k] + w[1] * rows[n + k] + w[2] * rows[2 * n + k] + w[3] * rows[3 * n + k];
}

const void *wt__resample_row(const wt__resample_table *t, int64_t phase, void *scratch)
{
    const size_t n = (size_t)t->n_taps;
    if (!t->interpolated)
        return t->wide ? (void *)(t->taps + (size_t)phase * n) : (void *)(t->taps_f32 + (size_t)phase * n);
    const double at = (double)phase / (double)t->denominator * t->n_phases;
    const int row = (int)at;
    double weights[4];
    cubic(at - row, weights);
    if (t->wide)
        blend_f64(t->taps + (size_t)row * n, t->n_taps, weights, scratch);
    else
        blend_f32(t->taps_f32 + (size_t)row * n, t->n_taps, weights, scratch);
    return scratch;
}
