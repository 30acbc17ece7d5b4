// One frame at a time: window, transform; and back (stft_inverse.c): transform, window, add. A frame stays in the
// first-level cache, so the signal is read and the spectrum written once.

#include "fft_plan.h"
#include "stft_core.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

// Spectra that a call writes more of than this go past the caches, which would read them first and then lose them.
// Short ones do not: too many of their lines are shared by two.
enum { PAST_BYTES = 4 << 20, PAST_ROW_BYTES = 4 << 10 };

// ---- life

static wt_status resolve(wt_stft_config *c)
{
    if (!c->n_fft) c->n_fft = 2048;
    if (c->n_fft < 1 || c->n_fft > WT_FFT_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "stft: n_fft %d, want 1..%d", c->n_fft, WT_FFT_MAX_N);
    if (!c->win_length) c->win_length = c->n_fft;
    if (c->win_length < 1 || c->win_length > c->n_fft)
        return wt_fail(WT_ERR_BAD_ARG, "stft: win_length %d, want 1..%d (n_fft)", c->win_length, c->n_fft);
    if (!c->hop) c->hop = c->win_length / 4;
    if (c->hop < 1 || c->hop > WT_STFT_MAX_HOP)
        return wt_fail(WT_ERR_BAD_ARG, "stft: hop %d, want 1..%d", c->hop, WT_STFT_MAX_HOP);
    if (!c->channels) c->channels = 1;
    if (c->channels < 1) return wt_fail(WT_ERR_BAD_ARG, "stft: %d channels, want 1 or more", c->channels);
    if ((unsigned)c->pad > WT_STFT_PAD_RAMP)
        return wt_fail(WT_ERR_BAD_ARG, "stft: pad %d, want 0..%d", (int)c->pad, WT_STFT_PAD_RAMP);
    c->window.n = c->win_length;
    return WT_OK;
}

static wt_status take_tables(wt_stft *s)
{
    const wt_stft_config *c = &s->config;
    const size_t n = (size_t)c->n_fft, hop = (size_t)c->hop;
    s->window = aligned_alloc(64, wt__fft_padded(n) * sizeof(float)); // loads across lines are slower
    s->halves = aligned_alloc(64, wt__fft_padded(n) * sizeof(float));
    s->steady = calloc(hop, sizeof(float));
    s->frame = calloc(n, sizeof(float));
    s->edge = calloc(n * (c->precise ? WT__FFT64_FRAMES + 1 : 1), sizeof(float));
    s->row = aligned_alloc(64, 2 * wt__fft_padded((size_t)s->bins) * sizeof(float));
    s->sum = calloc(n + WT__STFT_HOPS * hop, sizeof(float));
    if (!s->window || !s->halves || !s->steady || !s->frame || !s->edge || !s->row || !s->sum)
        return wt_fail(WT_ERR_NO_MEMORY, "stft: tables of %d and %d samples", c->n_fft, c->hop);
    memset(s->window, 0, n * sizeof(float));
    wt_status status = wt_window_fill(&c->window, s->window + (c->n_fft - c->win_length) / 2);
    if (status) return status;
    for (int i = 0; i < c->n_fft; i++) s->halves[i] = s->window[i] / 2; // as the transform wants its weights
    for (int i = 0; i < c->hop; i++) {
        double sum = 0;
        for (int64_t at = i; at < c->n_fft; at += c->hop) sum += (double)s->window[at] * s->window[at];
        s->steady[i] = (float)wt__stft_reciprocal(sum);
    }
    return WT_OK;
}

static wt_status make_whole(wt_stft *s)
{
    const size_t n = WT__FFT_WHOLE;
    if (s->config.n_fft != WT__FFT_WHOLE || !wt__stft_kernels(s)->whole) return WT_OK;
    s->points = aligned_alloc(64, WT__FFT_WHOLE_WORK * sizeof(float));
    s->backs = aligned_alloc(64, n * sizeof(float));
    if (!s->points || !s->backs) return wt_fail(WT_ERR_NO_MEMORY, "stft: a frame of %zu", n);
    for (size_t i = 0; i < n; i++) s->backs[i] = s->window[i] / (float)(n / 2);
    return wt__fft_whole_create(&s->whole);
}

static void take_steady(wt_stft *s)
{
    for (int i = 0; i < s->config.hop; i++) {
        double sum = 0;
        for (int64_t at = i; at < s->config.n_fft; at += s->config.hop) sum += s->window64[at] * s->window64[at];
        s->steady64[i] = wt__stft_reciprocal(sum);
    }
}

static wt_status make_precise(wt_stft *s)
{
    const int n = s->config.n_fft, pad = (n - s->config.win_length) / 2;
    const size_t points = wt__fft64_doubles(n), bins = (size_t)s->bins * WT__FFT64_FRAMES;
    s->window64 = calloc((size_t)n, sizeof(double));
    s->x64 = aligned_alloc(64, points * sizeof(double));
    s->work64 = aligned_alloc(64, points * sizeof(double));
    s->re64 = aligned_alloc(64, bins * sizeof(double));
    s->im64 = aligned_alloc(64, bins * sizeof(double));
    const size_t hop = (size_t)s->config.hop;
    s->steady64 = calloc(hop, sizeof(double));
    s->sum64 = calloc((size_t)n + WT__STFT_HOPS * hop, sizeof(double));
    if (!s->window64 || !s->x64 || !s->work64 || !s->re64 || !s->im64 || !s->steady64 || !s->sum64)
        return wt_fail(WT_ERR_NO_MEMORY, "stft: tables of %d doubles", n);
    wt_status status = wt_window_fill_double(&s->config.window, s->window64 + pad);
    take_steady(s);
    return status ? status : wt__fft64_create(n, &s->precise);
}

wt_status wt_stft_create(const wt_stft_config *config, wt_stft **stft)
{
    *stft = NULL;
    wt_stft *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "stft: handle");
    s->config = *config;
    wt_status status = resolve(&s->config);
    if (status) goto fail;
    const int n = s->config.n_fft;
    s->bins = n / 2 + 1;
    s->overlap = (n + s->config.hop - 1) / s->config.hop;
    status = take_tables(s);
    if (status) goto fail;
    status = wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_REAL_TO_COMPLEX}, &s->forward);
    if (status) goto fail;
    status = wt_fft_create(NULL, &(wt_fft_config){.n = n, .kind = WT_FFT_COMPLEX_TO_REAL}, &s->inverse);
    if (status) goto fail;
    s->weighs = wt__fft_weighs(s->forward);
    status = make_whole(s);
    if (status) goto fail;
    if (s->config.precise) status = make_precise(s);
    if (status) goto fail;
    s->config.window.samples = NULL; // copied
    *stft = s;
    return WT_OK;

fail:
    wt_stft_destroy(s);
    return status;
}

void wt_stft_destroy(wt_stft *stft)
{
    if (!stft) return;
    wt_fft_destroy(stft->forward);
    wt_fft_destroy(stft->inverse);
    free(stft->window);
    free(stft->halves);
    free(stft->steady);
    free(stft->frame);
    free(stft->edge);
    free(stft->row);
    free(stft->sum);
    free(stft->whole);
    free(stft->points);
    free(stft->backs);
    wt__fft64_destroy(stft->precise);
    free(stft->window64);
    free(stft->x64);
    free(stft->work64);
    free(stft->re64);
    free(stft->im64);
    free(stft->steady64);
    free(stft->sum64);
    free(stft);
}

// ---- sizes

int wt_stft_bins(const wt_stft *stft)
{
    return stft->bins;
}

int64_t wt_stft_frames(const wt_stft *stft, int64_t n)
{
    int64_t padded = n + 2 * wt__stft_margin(stft);
    return n < 1 || padded < stft->config.n_fft ? 0 : 1 + (padded - stft->config.n_fft) / stft->config.hop;
}

int64_t wt_stft_samples(const wt_stft *stft, int64_t n_frames)
{
    int64_t n = stft->config.n_fft + stft->config.hop * (n_frames - 1) - 2 * wt__stft_margin(stft);
    return n_frames < 1 || n < 0 ? 0 : n;
}

// ---- forward

#define PADDED(name, number)                                                                                           \
    number name(const number *pcm, int64_t n, int64_t at, int64_t margin, wt_stft_pad pad)                             \
    {                                                                                                                  \
        if (at >= 0 && at < n) return pcm[at];                                                                         \
        const int64_t outside = at < 0 ? -at : at - n + 1;                                                             \
        const number edge = pcm[at < 0 ? 0 : n - 1];                                                                   \
        if (pad == WT_STFT_PAD_ZERO) return 0;                                                                         \
        if (pad == WT_STFT_PAD_RAMP) return outside < margin ? edge * (number)(margin - outside) / (number)margin : 0; \
        if (pad == WT_STFT_PAD_EDGE || n == 1) return edge;                                                            \
        const bool symmetric = pad == WT_STFT_PAD_SYMMETRIC;                                                           \
        const int64_t period = symmetric ? 2 * n : 2 * (n - 1);                                                        \
        at %= period;                                                                                                  \
        if (at < 0) at += period;                                                                                      \
        return pcm[at < n ? at : period - at - symmetric];                                                             \
    }
PADDED(wt__stft_padded, float)
PADDED(wt__stft_padded64, double)

WT_CLONES void wt__stft_multiply(const float *a, const float *b, float *product, int n)
{
    for (int i = 0; i < n; i++) product[i] = a[i] * b[i];
}

void wt__stft_pad_samples(const wt_stft *s, const float *pcm, int64_t n, int64_t begin, int64_t count, float *to)
{
    const int64_t margin = wt__stft_margin(s), left = n - begin, before = begin < 0 ? -begin : 0;
    const int64_t end = left > count ? count : left > 0 ? left : 0, first = before < end ? before : end;
    for (int64_t i = 0; i < first; i++) to[i] = wt__stft_padded(pcm, n, begin + i, margin, s->config.pad);
    if (first < end) memcpy(to + first, pcm + begin + first, (size_t)(end - first) * sizeof(float));
    for (int64_t i = end; i < count; i++) to[i] = wt__stft_padded(pcm, n, begin + i, margin, s->config.pad);
}

// Bins in either form of n_fft samples. The window is applied as the transform reads, where it can.
WT_RT static void transform_samples(wt_stft *s, const float *x, wt__fft_form form, float *re, float *im)
{
    if (s->weighs) {
        wt__fft_real_weighted(s->forward, x, s->halves, form, re, im);
        return;
    }
    wt__stft_multiply(x, s->window, s->frame, s->config.n_fft);
    if (form == WT__FFT_SPLIT)
        wt__fft_real_forward(s->forward, s->frame, re, im);
    else
        (void)!wt_fft_run(s->forward, s->frame, re); // never fails
}

// Of frame t, in the signal or padded.
WT_RT static const float *frame_samples(wt_stft *s, const float *pcm, int64_t n, int64_t t)
{
    const int64_t begin = t * s->config.hop - wt__stft_margin(s), end = begin + s->config.n_fft;
    if (begin >= 0 && end <= n) return pcm + begin;
    wt__stft_pad_samples(s, pcm, n, begin, s->config.n_fft, s->edge);
    return s->edge;
}

// How many samples behind frame t the next one will read anew, and where they are.
static int64_t new_samples(const wt_stft *s, const float *pcm, int64_t n, int64_t t, const float **first)
{
    const int64_t end = t * s->config.hop - wt__stft_margin(s) + s->config.n_fft, left = n - end;
    *first = end > 0 && left > 0 ? pcm + end : pcm;
    return end <= 0 || left <= 0 ? 0 : left < s->config.hop ? left : s->config.hop;
}

WT_CLONES static void square_pairs(const float *pairs, int n, float *powers)
{
    for (int k = 0; k < n; k++) powers[k] = pairs[2 * k] * pairs[2 * k] + pairs[2 * k + 1] * pairs[2 * k + 1];
}

// Bins by the passes of fft_whole.h, whose pairs go straight to where they are wanted.
WT_RT static void transform_whole(wt_stft *s, const float *x, const float *next, wt__fft_form form, float *re,
                                  float *im)
{
    const wt__fft_kernels *k = wt__stft_kernels(s);
    float *row = form == WT__FFT_PAIRS ? re : s->row;
    k->whole->forward(s->whole, x, s->window, next, s->points, row);
    if (form == WT__FFT_SPLIT) k->split(row, re, im, s->bins);
    if (form == WT__FFT_POWERS) square_pairs(row, s->bins, re);
}

WT_RT static void transform_frame(wt_stft *s, const float *pcm, int64_t n, int64_t t, wt__fft_form form, float *re,
                                  float *im)
{
    const float *next, *x = frame_samples(s, pcm, n, t);
    const int64_t n_new = new_samples(s, pcm, n, t, &next);
    if (s->whole) {
        transform_whole(s, x, next, form, re, im);
        return;
    }
    wt__stft_prefetch(next, n_new);
    transform_samples(s, x, form, re, im);
}

WT_RT void wt__stft_frame(wt_stft *stft, const float *samples, float *re, float *im)
{
    if (stft->whole) transform_whole(stft, samples, samples, WT__FFT_SPLIT, re, im);
    else transform_samples(stft, samples, WT__FFT_SPLIT, re, im);
}

// The row goes with the next frame's passes.
WT_RT static void pairs_past(wt_stft *s, const float *pcm, int64_t n, int64_t t, float *pairs)
{
    const float *next, *samples = frame_samples(s, pcm, n, t);
    const int64_t n_new = new_samples(s, pcm, n, t, &next);
    wt__stft_prefetch(next, n_new);
    wt__fft_real_row(s->forward, samples, s->halves, &s->past, s->row);
    s->past = (wt__fft_past){s->row, pairs, 2 * s->bins};
    for (; s->past.n && (uintptr_t)s->past.to % 64; s->past.n--) *s->past.to++ = *s->past.from++;
}

WT_RT void wt__stft_pairs(wt_stft *stft, const float *pcm, int64_t n, int64_t t, bool past, float *pairs)
{
    if (past) {
        pairs_past(stft, pcm, n, t, pairs);
        return;
    }
    if (!stft->whole) wt__stft_prefetch(pairs + 2 * stft->bins, 2 * stft->bins);
    transform_frame(stft, pcm, n, t, WT__FFT_PAIRS, pairs, NULL);
}

WT_RT void wt__stft_streamed(wt_stft *stft)
{
    wt__stft_kernels(stft)->stream(&stft->past);
    wt__fft_streamed();
}

WT_CLONES static void add_squares(const float *re, const float *im, int n, float *sum)
{
    for (int k = 0; k < n; k++) sum[k] = re[k] * re[k] + im[k] * im[k];
}

WT_RT void wt__stft_powers(wt_stft *stft, const float *pcm, int64_t n, int64_t t, float *powers)
{
    float *im = stft->row + wt__fft_padded((size_t)stft->bins);
    transform_frame(stft, pcm, n, t, stft->weighs ? WT__FFT_POWERS : WT__FFT_SPLIT, stft->weighs ? powers : stft->row,
                    im);
    if (!stft->weighs) add_squares(stft->row, im, stft->bins, powers);
}

bool wt__stft_past(const wt_stft *stft, int64_t n_frames)
{
    const int64_t row = 2 * stft->bins * (int64_t)sizeof(float);
    return stft->weighs && !stft->whole && row > PAST_ROW_BYTES && row * n_frames > PAST_BYTES;
}

WT_RT wt_status wt_stft_forward(wt_stft *stft, const float *pcm, int64_t n, float *out)
{
    const int64_t n_frames = wt_stft_frames(stft, n);
    if (n_frames < 1) return WT_ERR_LENGTH;
    const bool past = wt__stft_past(stft, stft->config.channels * n_frames);
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames && !stft->precise; t++, out += 2 * stft->bins)
            wt__stft_pairs(stft, pcm, n, t, past, out);
    if (past) wt__stft_streamed(stft);
    if (!stft->precise) return WT_OK;
    pcm -= stft->config.channels * n;
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames; t += WT__FFT64_FRAMES)
            out = wt__stft_write_precise(stft, pcm, n, t, n_frames - t, out);
    return WT_OK;
}

WT_CLONES static void take_roots(float *powers, int bins)
{
    for (int k = 0; k < bins; k++) powers[k] = sqrtf(powers[k]);
}

WT_RT wt_status wt_stft_forward_real(wt_stft *stft, const float *pcm, int64_t n, bool powers, float *out)
{
    const int64_t n_frames = wt_stft_frames(stft, n), step = stft->precise ? WT__FFT64_FRAMES : 1;
    if (n_frames < 1) return WT_ERR_LENGTH;
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames; t += step) {
            const int count = (int)(n_frames - t < step ? n_frames - t : step);
            if (stft->precise) {
                wt__stft_write_precise_sizes(stft, pcm, n, t, count, powers, out);
            } else {
                wt__stft_powers(stft, pcm, n, t, out);
                if (!powers) take_roots(out, stft->bins);
            }
            out += count * stft->bins;
        }
    return WT_OK;
}

// ---- for other ops

const wt_stft_config *wt__stft_config(const wt_stft *stft)
{
    return &stft->config;
}

const float *wt__stft_window(const wt_stft *stft)
{
    return stft->window;
}

const wt__fft_kernels *wt__stft_kernels(const wt_stft *stft)
{
    return wt__fft_core_kernels(stft->forward->core);
}

WT_RT void wt__stft_transform(wt_stft *stft, const float *frame, float *pairs)
{
    (void)!wt_fft_run(stft->forward, frame, pairs); // never fails
}

bool wt__stft_turns(const wt_stft *stft)
{
    return stft->whole;
}

WT_RT void wt__stft_turn(wt_stft *stft, wt__fft_turn *turn)
{
    turn->weights = stft->window, turn->back_weights = stft->backs;
    wt__stft_kernels(stft)->whole->turn(stft->whole, turn, stft->points);
}

WT_RT void wt__stft_tile(wt_stft *stft, const float *pcm, int64_t n, int64_t t, int count, float *re, float *im,
                         size_t row)
{
    for (int f = 0; f < count && !stft->precise; f++)
        transform_frame(stft, pcm, n, t + f, WT__FFT_SPLIT, re + (size_t)f * row, im + (size_t)f * row);
    if (!stft->precise) return;
    const double *re64, *im64;
    wt__stft_precise(stft, pcm, n, t, count, &re64, &im64);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < stft->bins; k++) {
            re[(size_t)f * row + (size_t)k] = (float)re64[k * WT__FFT64_FRAMES + f];
            im[(size_t)f * row + (size_t)k] = (float)im64[k * WT__FFT64_FRAMES + f];
        }
}
