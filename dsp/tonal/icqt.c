// From the lowest octave up: each frame's spectrum is the sum of the octave's filters, conjugated and weighted; the
// inverse short-time transform makes the octave's signal at its rate, to which the octaves below have been doubled and
// are added.

#include "icqt_plan.h"

#include "icqt_kernel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { REACH = WT_ICQT_REACH, MARGIN = 2 * REACH, TAIL = WT_ICQT_TAIL, ENDS = 2 * WT_ICQT_END_KEPT };

typedef struct worker {
    wt_stft **stft;   // [n_octaves]
    float *spectrum;  // [max_frames][bins][2]
    float *signal[2]; // with TAIL on both sides, and MARGIN around that
    float *octave;    // one octave's
    float *ends;      // [doublings] of the octaves at a rate, the first and last samples
} worker;

struct wt_icqt {
    wt_device *device;
    wt__icqt_plan plan;
    int n_workers;
    worker *workers;
    wt__icqt_cuda *cuda;
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

static wt_status take_octaves(wt__icqt_plan *p, const wt__cqt_scale *scale)
{
    const wt_cqt_config *c = &p->config;
    int halvings = 0;
    while (halvings < p->n_octaves - 1 && (c->hop >> halvings) % 2 == 0) halvings++;
    wt_status status = WT_OK;
    for (int i = 0; i < p->n_octaves && !status; i++) {
        wt__icqt_octave *o = &p->octaves[i];
        const int above = p->n_octaves - 1 - i, first = i * c->bins_per_octave, left = c->n_bins - first;
        o->doublings = above < halvings ? above : halvings;
        o->hop = c->hop >> o->doublings;
        status = wt__cqt_basis_create(c, scale, first, left < c->bins_per_octave ? left : c->bins_per_octave,
                                      ldexp(c->rate_hz, -o->doublings), 2, &o->basis);
        if (!status) weigh(c, scale, &o->basis);
    }
    return status;
}

static wt_status take_worker(const wt__icqt_plan *p, worker *w)
{
    size_t floats = 0;
    w->stft = calloc((size_t)p->n_octaves, sizeof *w->stft);
    wt_status status = w->stft ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "icqt: %d octaves", p->n_octaves);
    for (int i = 0; i < p->n_octaves && !status; i++) {
        const wt__icqt_octave *o = &p->octaves[i];
        const size_t n = (size_t)(o->basis.n_fft / 2 + 1) * 2 * (size_t)p->max_frames;
        if (n > floats) floats = n;
        status = wt_stft_create(
            &(wt_stft_config){.n_fft = o->basis.n_fft, .hop = o->hop, .window = {.kind = WT_WINDOW_RECTANGULAR}},
            &w->stft[i]);
    }
    if (status) return status;
    const size_t longest = (size_t)(p->max_frames * p->config.hop) + 2 * TAIL + 4 * MARGIN;
    w->spectrum = calloc(floats, sizeof(float));
    w->signal[0] = calloc(longest, sizeof(float));
    w->signal[1] = calloc(longest, sizeof(float));
    w->octave = calloc(longest, sizeof(float));
    w->ends = calloc(((size_t)p->octaves[0].doublings + 1) * ENDS, sizeof(float));
    if (w->spectrum && w->signal[0] && w->signal[1] && w->octave && w->ends) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "icqt: buffers of %lld frames", (long long)p->max_frames);
}

static wt_status make_plan(const wt_cqt_config *config, int64_t max_frames, wt__icqt_plan *p)
{
    wt__cqt_scale scale = {0};
    p->config = *config, p->max_frames = max_frames;
    p->n_octaves = (config->n_bins + config->bins_per_octave - 1) / config->bins_per_octave;
    double taps[WT_SOXR_HALF + 1];
    wt_status status = wt__soxr_half(1, 0, taps);
    for (int i = 0; i <= WT_SOXR_HALF; i++) p->taps[i] = (float)(2 * taps[i]);
    p->octaves = calloc((size_t)p->n_octaves, sizeof *p->octaves);
    if (!p->octaves) return wt_fail(WT_ERR_NO_MEMORY, "icqt: %d octaves", p->n_octaves);
    if (!status) status = wt__cqt_scale_create(config, 0, config->n_bins, &scale);
    for (int k = 0; k < config->n_bins && !status; k++)
        p->longest = fmax(p->longest, wt__cqt_length(config, &scale, k, config->rate_hz));
    if (!status) status = take_octaves(p, &scale);
    wt__cqt_scale_destroy(&scale);
    return status ? status : wt__icqt_ends_create(p->octaves[0].doublings + 1, &p->ends);
}

wt_status wt_icqt_create(wt_device *device, const wt_cqt_config *config, int64_t max_frames, wt_icqt **icqt)
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
    q->device = device;
    status = make_plan(&c, max_frames, &q->plan);
    q->n_workers = wt__op_slots(device, c.channels);
    if (!status && !(q->workers = calloc((size_t)q->n_workers, sizeof *q->workers)))
        status = wt_fail(WT_ERR_NO_MEMORY, "icqt: %d workers", q->n_workers);
    for (int i = 0; i < q->n_workers && !status; i++) status = take_worker(&q->plan, &q->workers[i]);
    if (!status && wt__op_on_gpu(device)) status = wt__icqt_cuda_create(device, &q->plan, &q->cuda);
    if (status)
        wt_icqt_destroy(q);
    else
        *icqt = q;
    return status;
}

void wt_icqt_destroy(wt_icqt *icqt)
{
    if (!icqt) return;
    wt__icqt_cuda_destroy(icqt->cuda);
    for (int i = 0; icqt->workers && i < icqt->n_workers; i++) {
        worker *w = &icqt->workers[i];
        for (int k = 0; w->stft && k < icqt->plan.n_octaves; k++) wt_stft_destroy(w->stft[k]);
        free(w->stft), free(w->spectrum), free(w->signal[0]), free(w->signal[1]), free(w->octave);
        free(w->ends);
    }
    free(icqt->workers);
    for (int i = 0; icqt->plan.octaves && i < icqt->plan.n_octaves; i++)
        wt__cqt_basis_destroy(&icqt->plan.octaves[i].basis);
    free(icqt->plan.octaves);
    wt__icqt_ends_destroy(&icqt->plan.ends);
    free(icqt);
}

int64_t wt_icqt_samples(const wt_icqt *icqt, int64_t n_frames)
{
    return n_frames > 0 ? icqt->plan.config.hop * (n_frames - 1) : 0;
}

/// Frames of n_frames that a result of `length` samples needs; 0 = all.
static int64_t used_frames(const wt__icqt_plan *plan, int64_t n_frames, int64_t length)
{
    const int64_t needed = (int64_t)ceil(((double)length + plan->longest) / plan->config.hop);
    return length && needed < n_frames ? needed : n_frames;
}

// ---- octaves

WT_RT static void sum_filters(const wt__cqt_basis *b, int n_bins, const float *in, int64_t n_frames, float *spectrum)
{
    const size_t bins = (size_t)b->n_fft / 2 + 1;
    memset(spectrum, 0, bins * 2 * (size_t)n_frames * sizeof(float));
    for (int64_t t = 0; t < n_frames; t++) {
        float *z = spectrum + (size_t)t * bins * 2;
        const float *row = in + (t * n_bins + b->first) * 2;
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

// One octave's samples at its rate, added to those of x.
WT_RT static wt_status add_octave(const wt__icqt_plan *p, const worker *w, int i, const float *in, int64_t n_frames,
                                  float *x)
{
    const int64_t n = p->octaves[i].hop * (n_frames - 1);
    if (!n) return WT_OK;
    sum_filters(&p->octaves[i].basis, p->config.n_bins, in, n_frames, w->spectrum);
    wt_status status = wt_stft_inverse(w->stft[i], w->spectrum, n_frames, 0, w->octave);
    if (status) return status;
    for (int64_t k = 0; k < n; k++) x[k] += w->octave[k];
    wt__icqt_ends_keep(w->octave, n, w->ends + p->octaves[i].doublings * ENDS);
    return WT_OK;
}

// All octaves; the result begins TAIL behind *made.
WT_RT static wt_status add_octaves(const wt__icqt_plan *p, const worker *w, const float *in, int64_t n_frames,
                                   float **made)
{
    float *x = w->signal[0] + MARGIN, *y = w->signal[1] + MARGIN;
    int level = p->octaves[0].doublings;
    int64_t n = p->octaves[0].hop * (n_frames - 1);
    memset(x, 0, (size_t)(n + 2 * TAIL) * sizeof *x);
    memset(w->ends, 0, (size_t)(level + 1) * ENDS * sizeof *w->ends);
    wt_status status = WT_OK;
    for (int i = 0; i < p->n_octaves && !status; i++) {
        for (; level > p->octaves[i].doublings; level--, n *= 2) {
            memset(x - MARGIN, 0, MARGIN * sizeof *x);
            memset(x + n + 2 * TAIL, 0, MARGIN * sizeof *x);
            double_rate(p->taps, x + TAIL / 2, n + TAIL, y); // sample -TAIL of y is at -TAIL / 2 of x
            float *old = x;
            x = y, y = old;
        }
        status = add_octave(p, w, i, in, n_frames, x + TAIL);
    }
    for (int i = 2; i <= p->octaves[0].doublings && !status; i++)
        wt__icqt_ends_add(&p->ends, i, w->ends + i * ENDS, n >> i, x + TAIL);
    *made = x;
    return status;
}

typedef struct job {
    const wt_icqt *icqt;
    const float *in;
    float *out;
    int64_t n_frames, used, length;
    int n_workers;
} job;

static void run_worker(const void *args, int index)
{
    const job *j = args;
    const wt__icqt_plan *p = &j->icqt->plan;
    const int64_t n = wt_icqt_samples(j->icqt, j->used), kept = n < j->length ? n : j->length;
    for (int64_t c = index; c < p->config.channels; c += j->n_workers) {
        float *made, *out = j->out + c * j->length;
        if (add_octaves(p, &j->icqt->workers[index], j->in + c * j->n_frames * p->config.n_bins * 2, j->used, &made))
            return; // the sizes were checked
        memcpy(out, made + TAIL, (size_t)kept * sizeof *out);
        memset(out + kept, 0, (size_t)(j->length - kept) * sizeof *out);
    }
}

static job make_job(const wt_icqt *q, const float *in, int64_t n_frames, int64_t length, float *out)
{
    const int64_t used = used_frames(&q->plan, n_frames, length);
    return (job){q, in, out, n_frames, used, length ? length : wt_icqt_samples(q, used), q->n_workers};
}

WT_RT wt_status wt_icqt_run(wt_icqt *icqt, const float *in, int64_t n_frames, int64_t length, float *out)
{
    if (n_frames < 1 || n_frames > icqt->plan.max_frames || length < 0) return WT_ERR_BAD_ARG;
    job j = make_job(icqt, in, n_frames, length, out);
    j.n_workers = 1;
    run_worker(&j, 0);
    return WT_OK;
}

wt_status wt_icqt_enqueue(wt_icqt *icqt, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n_frames,
                          int64_t length, wt_buffer *out, size_t out_offset)
{
    const wt__icqt_plan *p = &icqt->plan;
    if (n_frames < 1 || n_frames > p->max_frames || length < 0)
        return wt_fail(WT_ERR_BAD_ARG, "icqt: %lld frames to %lld samples, want 1..%lld and 0 or more",
                       (long long)n_frames, (long long)length, (long long)p->max_frames);
    const size_t channels = (size_t)p->config.channels;
    job j = make_job(icqt, NULL, n_frames, length, NULL);
    wt_status status = wt__op_stream("icqt", icqt->device, stream);
    if (!status)
        status = wt__op_range("icqt", "in", in, in_offset, channels * (size_t)(n_frames * p->config.n_bins) * 2);
    if (!status) status = wt__op_range("icqt", "out", out, out_offset, channels * (size_t)j.length);
    if (status || !j.length) return status;
    j.in = (const float *)(wt_buffer_address(in) + in_offset);
    j.out = (float *)(wt_buffer_address(out) + out_offset);
    if (icqt->cuda) return wt__icqt_cuda_enqueue(icqt->cuda, stream, j.in, n_frames, j.used, j.length, j.out);
    return wt_stream_run(stream, run_worker, &j, sizeof j, icqt->n_workers);
}
