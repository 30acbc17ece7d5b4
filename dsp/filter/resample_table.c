// Taps: sinc at the lower Nyquist frequency times a Kaiser window. With A dB in the stop band and a transition of w
// radians the window spans (A - 8) / (2.285 w) taps (J. Kaiser, 1974). Where the rate falls, all of it stretches by the
// ratio. A cubic through rows P apart errs by 3/128 (pi / P)^4: below -150 dB from P = 96 on.
#include "resample_table.h"

#include <warptone/simd.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fir_design_internal.h"
#include "soxr_hq.h"

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
    if (c->variable && c->quality > WT_RESAMPLE_FAST)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %s is not variable, want best or fast",
                       c->quality == WT_RESAMPLE_SOXR_HQ ? "soxr_hq" : "polyphase");
    return WT_OK;
}

typedef struct sinc_filter {
    double cutoff; // cycles an input frame, doubled: 1 = its Nyquist frequency
    double half;   // input frames to each side
    double beta, scale;
} sinc_filter;

static sinc_filter design(const recipe *r, double shrink)
{
    const double taps = (r->stop_db - 8) / (2.285 * M_PI * (1 - r->pass)) / shrink;
    sinc_filter f = {.cutoff = shrink * (1 + r->pass) / 2, .half = ceil(taps / 2), .beta = 0.1102 * (r->stop_db - 8.7)};
    f.scale = 1 / wt__bessel_i0(f.beta);
    return f;
}

// scipy 1.17 signal/_signaltools.py, resample_poly(): firwin of 20 zero crossings, Kaiser 5.
static sinc_filter scipys(double shrink)
{
    return (sinc_filter){.cutoff = shrink, .half = 10 / shrink, .beta = 5, .scale = 1 / wt__bessel_i0(5)};
}

static size_t rows_of(const wt__resample_table *t) { return (size_t)(t->n_phases + (t->interpolated ? 3 : 0)); }

enum { SERIES = 128 }; // terms; 48 of a beta of 16.5, the largest here

// Kaiser's window at a share a of its half: I0(beta sqrt(1 - a^2)) / I0(beta) is a polynomial in u = 1 - a^2, whose terms
// (beta^2 / 4)^k / k!^2 are all positive, so Horner's sum keeps every digit. Here times the cutoff.
static int make_series(const sinc_filter *f, double series[SERIES])
{
    double term = f->scale * f->cutoff, sum = 0;
    int n = 0;
    for (; n < SERIES && term > 1e-17 * sum; n++) {
        series[n] = term;
        sum += term;
        term *= f->beta * f->beta / (4.0 * (n + 1) * (n + 1));
    }
    return n;
}

typedef struct sinc_rows {
    sinc_filter filter;
    double series[SERIES];
    int n_series, n_taps, before;
    double *u, *sines, *cosines; // [n_taps]: of the row, 1 - a^2; of the angle from tap `before` to each
} sinc_rows;

// Taps at before + fraction, and each a frame less, from the centre. Sines of differences of angles come from the tables,
// which are most exact where they are divided by least; next to 0 sin(x) / x is its series.
WT_CLONES static void fill_row(const sinc_rows *r, double fraction, double *taps)
{
    const double step = M_PI * r->filter.cutoff, inverse = 1 / r->filter.half, sine = sin(step * fraction),
                 cosine = cos(step * fraction);
    const int n = r->n_taps, last = r->n_series - 1;
    double *u = r->u;
    for (int k = 0; k < n; k++) {
        const double away = (r->before - k + fraction) * inverse;
        u[k] = 1 - away * away;
        taps[k] = r->series[last];
    }
    for (int j = last - 1; j >= 0; j--)
        for (int k = 0; k < n; k++) taps[k] = taps[k] * u[k] + r->series[j];
    for (int k = 0; k < n; k++) {
        const double t = r->before - k + fraction, x = step * t;
        const double whole = (sine * r->cosines[k] - cosine * r->sines[k]) / x;
        const double sinc = fabs(x) < 1e-4 ? 1 - x * x / 6 : whole;
        taps[k] = fabs(t) < r->filter.half ? taps[k] * sinc : 0;
    }
}

static wt_status fill_sinc(wt__resample_table *t, const sinc_filter *f)
{
    const int first = t->interpolated ? -1 : 0;
    const size_t n = (size_t)t->n_taps;
    double *room = malloc(3 * n * sizeof *room);
    if (!room) return wt_fail(WT_ERR_NO_MEMORY, "resample: %zu taps", n);
    sinc_rows rows = {.filter = *f, .n_taps = t->n_taps, .before = t->before,
                      .u = room, .sines = room + n, .cosines = room + 2 * n};
    rows.n_series = make_series(f, rows.series);
    for (size_t k = 0; k < n; k++) {
        const double angle = M_PI * f->cutoff * ((double)k - t->before);
        rows.sines[k] = sin(angle), rows.cosines[k] = cos(angle);
    }
    for (size_t row = 0; row < rows_of(t); row++)
        fill_row(&rows, (double)((int)row + first) / t->n_phases, t->taps + row * n);
    free(room);
    return WT_OK;
}

// Every phase passes a constant exactly; between rows a cubic of exact rows is exact too.
static wt_status fill_rows(wt__resample_table *t, const sinc_filter *f)
{
    wt_status status = fill_sinc(t, f);
    for (size_t r = 0; r < rows_of(t) && !status; r++) {
        double *row = t->taps + r * (size_t)t->n_taps, sum = 0;
        for (int k = 0; k < t->n_taps; k++) sum += row[k];
        for (int k = 0; k < t->n_taps; k++) row[k] /= sum;
    }
    return status;
}

// Not each phase, all together: scipy's firwin passes a constant exactly at the rate that both rates divide.
static wt_status fill_polyphase(wt__resample_table *t, const sinc_filter *f)
{
    const size_t n = (size_t)t->n_taps;
    double sum = 0;
    wt_status status = fill_sinc(t, f);
    if (status) return status;
    for (int p = 0; p < t->n_phases; p++)
        for (size_t k = 0; k < n; k++) sum += t->taps[(size_t)(p + (t->interpolated ? 1 : 0)) * n + k];
    for (size_t k = 0; k < rows_of(t) * n; k++) t->taps[k] *= t->n_phases / sum;
    return WT_OK;
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

// ---- soxr's

// The row's weights as taps around the output's input frame.
static void place_row(const wt__resample_table *t, const wt__soxr_row *row, int64_t frame, double *taps)
{
    for (int k = 0; k < row->n; k++) {
        const int64_t at = row->first + k - frame + t->before;
        if (at >= 0 && at < t->n_taps) taps[at] = row->weights[k];
    }
}

static void fill_soxr(wt__resample_table *t, const wt__soxr_chain *chain, wt__soxr_row *row)
{
    const double outputs = (double)t->denominator / (double)t->numerator; // of an input frame
    for (int64_t i = 0; i < (int64_t)rows_of(t); i++) {
        double *taps = t->taps + i * t->n_taps;
        if (t->interpolated) {
            wt__soxr_row_of(chain, 0, (double)(i - 1) / t->n_phases * outputs, false, row);
            place_row(t, row, 0, taps);
        } else { // output i, in its phase's row
            wt__soxr_row_of(chain, i, 0, false, row);
            place_row(t, row, i * t->numerator / t->denominator,
                      t->taps + i * t->numerator % t->denominator * t->n_taps);
        }
    }
}

static wt_status fill_start(wt__resample_table *t, const wt__soxr_chain *chain, wt__soxr_row *row)
{
    const size_t n = (size_t)t->n_taps;
    for (row->cut = true; row->cut; t->n_start++) wt__soxr_row_of(chain, t->n_start, 0, true, row);
    t->n_start--; // the last one was whole
    if (!t->n_start) return WT_OK;
    t->start = calloc((size_t)t->n_start * n, sizeof *t->start);
    double *taps = malloc(n * sizeof *taps);
    for (int i = 0; t->start && taps && i < t->n_start; i++) {
        memset(taps, 0, n * sizeof *taps);
        wt__soxr_row_of(chain, i, 0, true, row);
        place_row(t, row, i * t->numerator / t->denominator, taps);
        for (size_t k = 0; k < n; k++) t->start[(size_t)i * n + k] = (float)taps[k];
    }
    free(taps);
    return t->start && taps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "resample: first %d outputs", t->n_start);
}

static wt_status make_soxr(const wt_resample_config *config, wt__resample_table *t)
{
    wt__soxr_chain chain;
    wt__soxr_row row = {0};
    wt_status status = wt__soxr_chain_create(config->in_hz, config->out_hz, &chain);
    t->numerator = chain.numerator, t->denominator = chain.denominator;
    t->halves = t->numerator == 2 && t->denominator == 1;
    t->rounds = true;
    t->after = t->halves ? WT_SOXR_HALF : chain.reach;
    t->interpolated = chain.order || t->denominator * 2 * t->after > MAX_EXACT_TAPS;
    t->n_phases = chain.order ? chain.n_phases : (int)t->denominator;
    t->order = chain.order;
    if (t->interpolated && !chain.order) { // too many phases of its own
        t->n_phases = (int)ceil(ROWS_PER_FRAME * fmin((double)config->out_hz / config->in_hz, 1));
        t->order = 3;
    }
    if (!status) status = wt__soxr_row_create(&chain, &row);
    if (!status) status = allocate(t, 2 * t->after + 1);
    if (!status) fill_soxr(t, &chain, &row);
    if (!status) status = fill_start(t, &chain, &row);
    wt__soxr_row_destroy(&row);
    wt__soxr_chain_destroy(&chain);
    return status;
}

// ----

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
    t->order = 3;
    if (config->quality == WT_RESAMPLE_SOXR_HQ) {
        status = make_soxr(config, t);
    } else {
        const bool polyphase = config->quality == WT_RESAMPLE_POLYPHASE;
        const double shrink = config->out_hz < config->in_hz ? (double)config->out_hz / config->in_hz : 1;
        const sinc_filter filter = polyphase ? scipys(shrink) : design(&recipes[config->quality], shrink);
        t->after = (int)ceil(filter.half);
        t->interpolated = config->variable || t->denominator * 2 * t->after > MAX_EXACT_TAPS;
        t->n_phases = t->interpolated ? (int)ceil(ROWS_PER_FRAME * shrink) : (int)t->denominator;
        status = allocate(t, 2 * t->after);
        if (!status) status = polyphase ? fill_polyphase(t, &filter) : fill_rows(t, &filter);
    }
    if (!status) round_taps(t);
    t->variable = config->variable;
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
    free(t->start);
    *t = (wt__resample_table){0};
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
    wt__resample_weights(t->order, at - row, weights);
    if (t->wide)
        blend_f64(t->taps + (size_t)row * n, t->n_taps, weights, scratch);
    else
        blend_f32(t->taps_f32 + (size_t)row * n, t->n_taps, weights, scratch);
    return scratch;
}
