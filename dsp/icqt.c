// From the lowest octave up: each frame's spectrum is the sum of the octave's filters, conjugated and weighted; the
// inverse short-time transform makes the octave's signal at its rate, which doubles as often as needed and is added.

#include <warptone/icqt.h>
#include "cqt_basis.h"

#include "soxr_hq_table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

// TAIL: what is kept of an octave before and behind its ends while it is doubled, since the filters' tails there go on
// into the next doubling.
enum { REACH = SOXR_HQ_HALF / 2, MARGIN = 2 * REACH, TAIL = 2 * REACH };

typedef struct octave {
    wt__cqt_basis basis; // values conjugated, with all factors
    wt_stft *stft;
    int hop, doublings;
} octave;

struct wt_icqt {
    wt_cqt_config config;
    int n_octaves;
    octave *octaves;
    int64_t max_frames;
    double longest; // filter, at the full rate
    float taps[SOXR_HQ_HALF + 1];
    float *spectrum;  // [max_frames][bins][2]
    float *signal[2]; // an octave's, with MARGIN on both sides of what is being doubled
};

// ---- life

static void weigh(const wt_cqt_config *c, const wt__cqt_scale *scale, wt__cqt_basis *b)
{
    for (int r = 0; r < b->n_rows; r++) {
        double power = 0;
        for (int i = 2 * b->begin[r]; i < 2 * b->begin[r + 1]; i++) power += b->value[i] * b->value[i];
        const double length = wt__cqt_length(c, scale, b->first + r, c->rate_hz);
        const double weight = b->n_fft / length / power * (c->no_scale ? 1 : sqrt(length));
        for (int i = b->begin[r]; i < b->begin[r + 1]; i++) {
            b->value[2 * i] *= weight;
            b->value[2 * i + 1] *= -weight;
        }
    }
}

static wt_status take_octaves(wt_icqt *q, const wt__cqt_scale *scale)
{
    const wt_cqt_config *c = &q->config;
    int halvings = 0;
    while (halvings < q->n_octaves - 1 && (c->hop >> halvings) % 2 == 0) halvings++;
    wt_status status = WT_OK;
    for (int i = 0; i < q->n_octaves && !status; i++) {
        octave *o = &q->octaves[i];
        const int above = q->n_octaves - 1 - i, first = i * c->bins_per_octave, left = c->n_bins - first;
        o->doublings = above < halvings ? above : halvings;
        o->hop = c->hop >> o->doublings;
        status = wt__cqt_basis_create(c, scale, first, left < c->bins_per_octave ? left : c->bins_per_octave,
                                      ldexp(c->rate_hz, -o->doublings), 2, &o->basis);
        if (status) break;
        weigh(c, scale, &o->basis);
        status = wt_stft_create(&(wt_stft_config){.n_fft = o->basis.n_fft, .hop = o->hop,
                                                  .window = {.kind = WT_WINDOW_RECTANGULAR}}, &o->stft);
    }
    return status;
}

static wt_status take_buffers(wt_icqt *q)
{
    size_t floats = 0;
    for (int i = 0; i < q->n_octaves; i++) {
        const size_t n = (size_t)(q->octaves[i].basis.n_fft / 2 + 1) * 2 * (size_t)q->max_frames;
        if (n > floats) floats = n;
    }
    const size_t tails = (size_t)(2 * TAIL) << q->octaves[0].doublings;
    const size_t longest = (size_t)(q->max_frames * q->config.hop) + tails + 4 * MARGIN;
    q->spectrum = calloc(floats, sizeof(float));
    q->signal[0] = calloc(longest, sizeof(float));
    q->signal[1] = calloc(longest, sizeof(float));
    if (!q->spectrum || !q->signal[0] || !q->signal[1])
        return wt_fail(WT_ERR_NO_MEMORY, "icqt: buffers of %lld frames", (long long)q->max_frames);
    return WT_OK;
}

wt_status wt_icqt_create(const wt_cqt_config *config, int64_t max_frames, wt_icqt **icqt)
{
    *icqt = NULL;
    wt_cqt_config c = *config;
    wt_status status = wt__cqt_resolve(&c);
    if (status) return status;
    if (c.kind != WT_CQT_FULL || c.intervals || c.gamma_hz != 0 || c.erb_gamma || c.magnitude)
        return wt_fail(WT_ERR_BAD_ARG, "icqt: pseudo, hybrid, variable-Q and magnitude transforms have no inverse");
    if (max_frames < 1 || max_frames > INT32_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "icqt: max_frames %lld, want 1..%d", (long long)max_frames, INT32_MAX);
    wt_icqt *q = calloc(1, sizeof *q);
    if (!q) return wt_fail(WT_ERR_NO_MEMORY, "icqt: handle");
    wt__cqt_scale scale = {0};
    q->config = c, q->max_frames = max_frames;
    q->n_octaves = (c.n_bins + c.bins_per_octave - 1) / c.bins_per_octave;
    for (int i = 0; i <= SOXR_HQ_HALF; i++) q->taps[i] = (float)(2 * soxr_hq_half[i]);
    q->octaves = calloc((size_t)q->n_octaves, sizeof *q->octaves);
    if (!q->octaves) status = wt_fail(WT_ERR_NO_MEMORY, "icqt: %d octaves", q->n_octaves);
    if (!status) status = wt__cqt_scale_create(&c, 0, c.n_bins, &scale);
    for (int k = 0; k < c.n_bins && !status; k++)
        q->longest = fmax(q->longest, wt__cqt_length(&c, &scale, k, c.rate_hz));
    if (!status) status = take_octaves(q, &scale);
    if (!status) status = take_buffers(q);
    wt__cqt_scale_destroy(&scale);
    if (status)
        wt_icqt_destroy(q);
    else
        *icqt = q;
    return status;
}

void wt_icqt_destroy(wt_icqt *icqt)
{
    if (!icqt) return;
    for (int i = 0; icqt->octaves && i < icqt->n_octaves; i++) {
        wt__cqt_basis_destroy(&icqt->octaves[i].basis);
        wt_stft_destroy(icqt->octaves[i].stft);
    }
    free(icqt->octaves);
    free(icqt->spectrum);
    free(icqt->signal[0]);
    free(icqt->signal[1]);
    free(icqt);
}

int64_t wt_icqt_samples(const wt_icqt *icqt, int64_t n_frames)
{
    return n_frames > 0 ? icqt->config.hop * (n_frames - 1) : 0;
}

// ---- one octave

WT_RT static void sum_filters(const wt_icqt *q, const wt__cqt_basis *b, const float *in, int64_t n_frames)
{
    const size_t bins = (size_t)b->n_fft / 2 + 1;
    memset(q->spectrum, 0, bins * 2 * (size_t)n_frames * sizeof(float));
    for (int64_t t = 0; t < n_frames; t++) {
        float *z = q->spectrum + (size_t)t * bins * 2;
        const float *row = in + (t * q->config.n_bins + b->first) * 2;
        for (int r = 0; r < b->n_rows; r++)
            for (int i = b->begin[r]; i < b->begin[r + 1]; i++) {
                const double re = b->value[2 * i], im = b->value[2 * i + 1];
                z[2 * b->bin[i]] += (float)(re * row[2 * r] - im * row[2 * r + 1]);
                z[2 * b->bin[i] + 1] += (float)(re * row[2 * r + 1] + im * row[2 * r]);
            }
    }
}

// out[2 i], out[2 i + 1] of n samples x, which has MARGIN zeros on both sides.
WT_CLONES static void double_rate(const float *taps, const float *x, int64_t n, float *out)
{
    enum { AT_ONCE = 64 };
    for (int64_t begin = 0; begin < n; begin += AT_ONCE) {
        const int count = n - begin < AT_ONCE ? (int)(n - begin) : AT_ONCE;
        const float *at = x + begin;
        float even[AT_ONCE] = {0}, odd[AT_ONCE] = {0};
        for (int j = REACH; j > 0; j--)
            for (int i = 0; i < AT_ONCE; i++) {
                even[i] += taps[2 * j] * (at[i - j] + at[i + j]);
                odd[i] += taps[2 * j - 1] * (at[i + 1 - j] + at[i + j]);
            }
        for (int i = 0; i < count; i++) {
            out[2 * (begin + i)] = even[i] + taps[0] * at[i];
            out[2 * (begin + i) + 1] = odd[i];
        }
    }
}

// The octave's signal at the full rate.
WT_RT static wt_status make_octave(const wt_icqt *q, const octave *o, const float *in, int64_t n_frames, float **made)
{
    int64_t n = o->hop * (n_frames - 1);
    float *x = q->signal[0] + MARGIN, *y = q->signal[1] + MARGIN;
    sum_filters(q, &o->basis, in, n_frames);
    memset(x, 0, (size_t)(n + 2 * TAIL) * sizeof *x);
    wt_status status = n ? wt_stft_inverse(o->stft, q->spectrum, n_frames, 0, x + TAIL) : WT_OK;
    n += 2 * TAIL;
    for (int i = 0; i < o->doublings && !status; i++, n *= 2) {
        memset(x - MARGIN, 0, MARGIN * sizeof *x);
        memset(x + n, 0, MARGIN * sizeof *x);
        double_rate(q->taps, x, n, y);
        float *old = x;
        x = y, y = old;
    }
    *made = x + ((int64_t)TAIL << o->doublings);
    return status;
}

WT_RT wt_status wt_icqt_run(wt_icqt *icqt, const float *in, int64_t n_frames, int64_t length, float *out)
{
    const wt_cqt_config *c = &icqt->config;
    if (n_frames < 1 || n_frames > icqt->max_frames || length < 0) return WT_ERR_BAD_ARG;
    const int64_t stride = n_frames * c->n_bins * 2;
    int64_t used = n_frames;
    if (length) {
        const int64_t needed = (int64_t)ceil(((double)length + icqt->longest) / c->hop);
        if (needed < used) used = needed;
    }
    const int64_t n = wt_icqt_samples(icqt, used);
    if (!length) length = n;
    for (int channel = 0; channel < c->channels; channel++, in += stride, out += length) {
        memset(out, 0, (size_t)length * sizeof *out);
        for (int i = 0; i < icqt->n_octaves; i++) {
            float *made;
            wt_status status = make_octave(icqt, &icqt->octaves[i], in, used, &made);
            if (status) return status;
            for (int64_t k = 0; k < n && k < length; k++) out[k] += made[k];
        }
    }
    return WT_OK;
}
