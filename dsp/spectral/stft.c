// One frame at a time: window, transform; and back: transform, window, add. A frame stays in the first-level cache, so
// the signal is read and the spectrum written once.
//
// The inverse walks through its output hop by hop. Where every frame over a hop exists, the sum of the squared windows
// repeats with the hop, and its reciprocal is a table; at both ends it is summed anew, as librosa's
// window_sumsquare does.

#include <warptone/stft.h>
#include "fft_plan.h"
#include "stft_internal.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

// Sums move to the front of their buffer once in as many hops.
enum { HOPS = 8 };
// Spectra that a call writes more of than this go past the caches, which would read them first and then lose them.
// Short ones do not: too many of their lines are shared by two.
enum { PAST_BYTES = 4 << 20, PAST_ROW_BYTES = 4 << 10 };

struct wt_stft {
    wt_stft_config config;
    int bins, overlap; // overlap: frames over one sample at most
    wt_fft *forward, *inverse;
    bool weighs;   // the forward transform applies the window
    float *window; // [n_fft]
    float *halves; // [n_fft] of the window
    float *steady; // [hop] 1 / sum of squares, away from the ends
    float *frame;  // [n_fft]
    float *edge;   // [n_fft] samples of a frame that reaches over an end; precise: [FRAMES][n_fft], and silence
    float *row;    // bins of a frame: two of [bins], padded; or pairs, while `past` has them
    wt__fft_past past;
    wt__fft_whole_tables *whole; // NULL where the passes of fft_whole.h do not serve
    float *points, *backs;       // their work, [n_fft] of the window by half of n_fft
    float *sum; // [n_fft + HOPS * hop] what the frames so far add up to
    wt__fft64 *precise;
    double *window64, *x64, *work64, *re64, *im64; // [n_fft], two of [n_fft][2][8], two of [bins][16]
    double *steady64, *sum64;                      // as steady and sum
};

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

static float reciprocal(double sum)
{
    return sum > FLT_MIN ? (float)(1 / sum) : 1;
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
    s->sum = calloc(n + HOPS * hop, sizeof(float));
    if (!s->window || !s->halves || !s->steady || !s->frame || !s->edge || !s->row || !s->sum)
        return wt_fail(WT_ERR_NO_MEMORY, "stft: tables of %d and %d samples", c->n_fft, c->hop);
    memset(s->window, 0, n * sizeof(float));
    wt_status status = wt_window_fill(&c->window, s->window + (c->n_fft - c->win_length) / 2);
    if (status) return status;
    for (int i = 0; i < c->n_fft; i++) s->halves[i] = s->window[i] / 2; // as the transform wants its weights
    for (int i = 0; i < c->hop; i++) {
        double sum = 0;
        for (int64_t at = i; at < c->n_fft; at += c->hop) sum += (double)s->window[at] * s->window[at];
        s->steady[i] = reciprocal(sum);
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

static double reciprocal64(double sum) { return sum > FLT_MIN ? 1 / sum : 1; }

static void take_steady(wt_stft *s)
{
    for (int i = 0; i < s->config.hop; i++) {
        double sum = 0;
        for (int64_t at = i; at < s->config.n_fft; at += s->config.hop) sum += s->window64[at] * s->window64[at];
        s->steady64[i] = reciprocal64(sum);
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
    s->sum64 = calloc((size_t)n + HOPS * hop, sizeof(double));
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

static int64_t margin(const wt_stft *s)
{
    return s->config.no_center ? 0 : s->config.n_fft / 2;
}

int wt_stft_bins(const wt_stft *stft)
{
    return stft->bins;
}

int64_t wt_stft_frames(const wt_stft *stft, int64_t n)
{
    int64_t padded = n + 2 * margin(stft);
    return n < 1 || padded < stft->config.n_fft ? 0 : 1 + (padded - stft->config.n_fft) / stft->config.hop;
}

int64_t wt_stft_samples(const wt_stft *stft, int64_t n_frames)
{
    int64_t n = stft->config.n_fft + stft->config.hop * (n_frames - 1) - 2 * margin(stft);
    return n_frames < 1 || n < 0 ? 0 : n;
}

// ---- forward

float wt__stft_padded(const float *pcm, int64_t n, int64_t at, int64_t margin, wt_stft_pad pad)
{
    if (at >= 0 && at < n) return pcm[at];
    const int64_t outside = at < 0 ? -at : at - n + 1;
    const float edge = pcm[at < 0 ? 0 : n - 1];
    if (pad == WT_STFT_PAD_ZERO) return 0;
    if (pad == WT_STFT_PAD_RAMP) return outside < margin ? edge * (float)(margin - outside) / (float)margin : 0;
    if (pad == WT_STFT_PAD_EDGE || n == 1) return edge;
    const bool symmetric = pad == WT_STFT_PAD_SYMMETRIC;
    const int64_t period = symmetric ? 2 * n : 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return pcm[at < n ? at : period - at - symmetric];
}

WT_CLONES static void multiply(const float *a, const float *b, float *product, int n)
{
    for (int i = 0; i < n; i++) product[i] = a[i] * b[i];
}

WT_CLONES static void multiply_add(const float *a, const float *b, float *sum, int n)
{
    for (int i = 0; i < n; i++) sum[i] += a[i] * b[i];
}

static void pad_frame(const wt_stft *s, const float *pcm, int64_t n, int64_t begin, float *frame)
{
    for (int i = 0; i < s->config.n_fft; i++) frame[i] = wt__stft_padded(pcm, n, begin + i, margin(s), s->config.pad);
}

WT_CLONES static void scale_frames(double *x, int n, const wt__fft64_scales *scale)
{
    const wt__fft64_scales here = *scale; // which no store to x changes
    for (int i = 0; i < n; i++)
        for (int f = 0; f < WT__FFT64_FRAMES; f++) x[i * WT__FFT64_FRAMES + f] *= here.by[f];
}

// The transform of frames t .. t + count - 1, each brought near 1; `back`: by what it is to be taken.
WT_RT static const double *transform_precisely(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count,
                                               wt__fft64_scales *back)
{
    const int n_fft = s->config.n_fft;
    const float *frames[WT__FFT64_FRAMES];
    float *silence = s->edge + (size_t)WT__FFT64_FRAMES * (size_t)n_fft;
    for (int f = 0; f < WT__FFT64_FRAMES; f++) {
        const int64_t begin = (t + f) * s->config.hop - margin(s);
        float *edge = s->edge + (size_t)f * (size_t)n_fft;
        frames[f] = f < count ? edge : silence;
        if (f >= count) continue;
        if (begin >= 0 && begin + n_fft <= n)
            frames[f] = pcm + begin;
        else
            pad_frame(s, pcm, n, begin, edge);
    }
    wt__fft64_scales to;
    wt__fft64_level(frames, n_fft, silence, &to, back);
    wt__fft64_frames(frames, s->window64, n_fft, to.by, s->x64);
    return wt__fft64_run(s->precise, s->x64, s->work64);
}

WT_RT void wt__stft_precise_powers(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, float *powers)
{
    wt__fft64_scales back;
    const double *z = transform_precisely(s, pcm, n, t, count, &back);
    for (int f = 0; f < WT__FFT64_FRAMES; f++) back.by[f] *= back.by[f];
    wt__fft64_powers(z, s->config.n_fft, back.by, powers);
}

WT_RT void wt__stft_precise(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, const double **re,
                            const double **im)
{
    wt__fft64_scales back;
    wt__fft64_bins(transform_precisely(s, pcm, n, t, count, &back), s->config.n_fft, s->re64, s->im64);
    *re = s->re64, *im = s->im64;
    scale_frames(s->re64, s->bins, &back);
    scale_frames(s->im64, s->bins, &back);
}

static float *write_precise(wt_stft *s, const float *pcm, int64_t n, int64_t t, int64_t left, float *out)
{
    const int count = left < WT__FFT64_FRAMES ? (int)left : WT__FFT64_FRAMES;
    const double *re, *im;
    wt__stft_precise(s, pcm, n, t, count, &re, &im);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < s->bins; k++, out += 2) {
            out[0] = (float)re[k * WT__FFT64_FRAMES + f];
            out[1] = (float)im[k * WT__FFT64_FRAMES + f];
        }
    return out;
}

// What the next frame will read anew comes to the second-level cache while this one is transformed.
WT_INLINE void prefetch(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(x + i, 0, 2);
}

// Bins in either form of n_fft samples. The window is applied as the transform reads, where it can.
WT_RT static void transform_samples(wt_stft *s, const float *x, wt__fft_form form, float *re, float *im)
{
    if (s->weighs) {
        wt__fft_real_weighted(s->forward, x, s->halves, form, re, im);
        return;
    }
    multiply(x, s->window, s->frame, s->config.n_fft);
    if (form == WT__FFT_SPLIT)
        wt__fft_real_forward(s->forward, s->frame, re, im);
    else
        (void)!wt_fft_run(s->forward, s->frame, re); // never fails
}

// Of frame t, in the signal or padded.
WT_RT static const float *frame_samples(wt_stft *s, const float *pcm, int64_t n, int64_t t)
{
    const int64_t begin = t * s->config.hop - margin(s), end = begin + s->config.n_fft;
    if (begin >= 0 && end <= n) return pcm + begin;
    pad_frame(s, pcm, n, begin, s->edge);
    return s->edge;
}

// How many samples behind frame t the next one will read anew, and where they are.
static int64_t new_samples(const wt_stft *s, const float *pcm, int64_t n, int64_t t, const float **first)
{
    const int64_t end = t * s->config.hop - margin(s) + s->config.n_fft, left = n - end;
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
    prefetch(next, n_new);
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
    prefetch(next, n_new);
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
    if (!stft->whole) prefetch(pairs + 2 * stft->bins, 2 * stft->bins);
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
    if (n_frames < 1) return WT_ERR_BAD_ARG;
    const bool past = wt__stft_past(stft, stft->config.channels * n_frames);
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames && !stft->precise; t++, out += 2 * stft->bins)
            wt__stft_pairs(stft, pcm, n, t, past, out);
    if (past) wt__stft_streamed(stft);
    if (!stft->precise) return WT_OK;
    pcm -= stft->config.channels * n;
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames; t += WT__FFT64_FRAMES)
            out = write_precise(stft, pcm, n, t, n_frames - t, out);
    return WT_OK;
}

// Powers, or their roots, in place of the real parts.
WT_CLONES static void take_sizes(double *re, const double *im, int count, bool powers)
{
    for (int i = 0; i < count; i++) re[i] = re[i] * re[i] + im[i] * im[i];
    for (int i = 0; i < count && !powers; i++) re[i] = sqrt(re[i]);
}

WT_RT static void write_precise_sizes(wt_stft *s, const float *pcm, int64_t n, int64_t t, int count, bool powers,
                                      float *out)
{
    const double *re, *im;
    wt__stft_precise(s, pcm, n, t, count, &re, &im);
    take_sizes(s->re64, im, s->bins * WT__FFT64_FRAMES, powers);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < s->bins; k++) *out++ = (float)re[k * WT__FFT64_FRAMES + f];
}

WT_CLONES static void take_roots(float *powers, int bins)
{
    for (int k = 0; k < bins; k++) powers[k] = sqrtf(powers[k]);
}

WT_RT wt_status wt_stft_forward_real(wt_stft *stft, const float *pcm, int64_t n, bool powers, float *out)
{
    const int64_t n_frames = wt_stft_frames(stft, n), step = stft->precise ? WT__FFT64_FRAMES : 1;
    if (n_frames < 1) return WT_ERR_BAD_ARG;
    for (int c = 0; c < stft->config.channels; c++, pcm += n)
        for (int64_t t = 0; t < n_frames; t += step) {
            const int count = (int)(n_frames - t < step ? n_frames - t : step);
            if (stft->precise) {
                write_precise_sizes(stft, pcm, n, t, count, powers, out);
            } else {
                wt__stft_powers(stft, pcm, n, t, out);
                if (!powers) take_roots(out, stft->bins);
            }
            out += count * stft->bins;
        }
    return WT_OK;
}

// ---- inverse

// What the squared windows of the existing frames add up to at sample `at` of the padded signal.
static double squares(const wt_stft *s, int64_t at, int64_t n_frames)
{
    double sum = 0;
    for (int64_t t = at / s->config.hop; t >= 0 && at - t * s->config.hop < s->config.n_fft; t--)
        if (t < n_frames) {
            const int64_t i = at - t * s->config.hop;
            const double w = s->precise ? s->window64[i] : s->window[i];
            sum += w * w;
        }
    return sum;
}

// The finished samples begin .. begin + hop - 1 of the padded signal, to where they lie in the output.
WT_RT static void give_hop(const wt_stft *s, const float *sum, int64_t t, int64_t n_frames, int64_t length, float *out)
{
    const int64_t begin = t * s->config.hop;
    const bool whole = t >= s->overlap - 1 && t < n_frames;
    int64_t to = begin - margin(s), first = to < 0 ? -to : 0, end = s->config.hop;
    if (end > length - to) end = length - to;
    if (whole && first < end) {
        multiply(sum + first, s->steady + first, out + to + first, (int)(end - first));
        return;
    }
    for (int64_t i = first; i < end; i++) out[to + i] = sum[i] * reciprocal(squares(s, begin + i, n_frames));
}

// Frame t of `in`, windowed, to the sums.
WT_RT static wt_status add_frame(wt_stft *s, const float *in, int64_t t, int64_t n_frames, float *sum)
{
    const float *bins = in + t * 2 * s->bins, *next = t + 1 < n_frames ? bins + 2 * s->bins : bins;
    if (s->whole) {
        wt__stft_kernels(s)->whole->back(s->whole, bins, next, s->backs, s->points, sum);
        return WT_OK;
    }
    prefetch(next, 2 * s->bins);
    wt_status status = wt_fft_run(s->inverse, bins, s->frame);
    if (!status) multiply_add(s->frame, s->window, sum, s->config.n_fft);
    return status;
}

// ---- inverse in double: where windows overlap little, what divides by their squares lifts a transform's rounding

// As give_hop.
WT_RT static void give_hop64(const wt_stft *s, const double *sum, int64_t t, int64_t n_frames, int64_t length,
                             float *out)
{
    const int64_t begin = t * s->config.hop, to = begin - margin(s), room = length - to;
    const bool whole = t >= s->overlap - 1 && t < n_frames;
    const int64_t first = to < 0 ? -to : 0, end = room < s->config.hop ? room : s->config.hop;
    for (int64_t i = first; i < end; i++)
        out[to + i] =
            (float)(sum[i] * (whole ? s->steady64[i] : reciprocal64(squares(s, begin + i, n_frames))));
}

// Frames t .. t + count - 1 of `in`, transformed: frame f is lane f of the numbers, times n_fft.
WT_RT static const double *transform_back(wt_stft *s, const float *in, int64_t t, int count)
{
    for (int f = 0; f < WT__FFT64_FRAMES; f++) {
        const float *bins = in + (t + f) * 2 * s->bins;
        for (int k = 0; k < s->bins; k++) {
            s->re64[k * WT__FFT64_FRAMES + f] = f < count ? bins[2 * k] : 0;
            s->im64[k * WT__FFT64_FRAMES + f] = f < count ? bins[2 * k + 1] : 0;
        }
    }
    wt__fft64_fold(s->re64, s->im64, s->config.n_fft, s->x64);
    return wt__fft64_run(s->precise, s->x64, s->work64);
}

// As invert_part.
WT_RT static void invert_part64(wt_stft *s, const float *in, int64_t n_frames, int64_t length, int64_t hop_begin,
                                int64_t hop_end, float *out)
{
    enum { F = WT__FFT64_FRAMES };
    const int n = s->config.n_fft, hop = s->config.hop;
    const int64_t first = hop_begin < s->overlap ? 0 : hop_begin - s->overlap + 1;
    const double *z = NULL;
    memset(s->sum64, 0, (size_t)n * sizeof(double));
    for (int64_t t = first; t < hop_end; t++) {
        const int64_t place = (t - first) % HOPS;
        double *sum = s->sum64 + place * hop;
        memset(sum + n, 0, (size_t)hop * sizeof(double));
        if (t < n_frames) {
            const int f = (int)((t - first) % F);
            if (!f) z = transform_back(s, in, t, n_frames - t < F ? (int)(n_frames - t) : F);
            const double *from = z + (f + F / 2) % F; // parts exchanged
            for (int i = 0; i < n; i++) sum[i] += from[i * F] * s->window64[i] / n;
        }
        if (t >= hop_begin) give_hop64(s, sum, t, n_frames, length, out);
        if (place == HOPS - 1) memmove(s->sum64, sum + hop, (size_t)n * sizeof(double));
    }
}

// ---- inverse, of either kind

// Hops `hop_begin` .. `hop_end` - 1 of the padded signal: a part begins with the frames that reach into it, so its sums
// are those of the whole.
WT_RT static wt_status invert_part(wt_stft *s, const float *in, int64_t n_frames, int64_t length, int64_t hop_begin,
                                   int64_t hop_end, float *out)
{
    const int n = s->config.n_fft, hop = s->config.hop;
    const int64_t first = hop_begin < s->overlap ? 0 : hop_begin - s->overlap + 1;
    if (s->precise) {
        invert_part64(s, in, n_frames, length, hop_begin, hop_end, out);
        return WT_OK;
    }
    memset(s->sum, 0, (size_t)n * sizeof(float));
    for (int64_t t = first; t < hop_end; t++) {
        const int64_t place = (t - first) % HOPS;
        float *sum = s->sum + place * hop;
        memset(sum + n, 0, (size_t)hop * sizeof(float));
        if (t < n_frames) {
            wt_status status = add_frame(s, in, t, n_frames, sum);
            if (status) return status;
        }
        if (t >= hop_begin) give_hop(s, sum, t, n_frames, length, out);
        if (place == HOPS - 1) memmove(s->sum, sum + hop, (size_t)n * sizeof(float));
    }
    return WT_OK;
}

int64_t wt__stft_used_frames(const wt_stft *stft, int64_t n_frames, int64_t length)
{
    const int64_t hop = stft->config.hop, needed = (length + 2 * margin(stft) + hop - 1) / hop;
    return needed < n_frames ? needed : n_frames;
}

WT_RT wt_status wt__stft_invert_line(wt_stft *stft, const float *in, int64_t n_frames, int64_t length, int part,
                                     int n_parts, float *out)
{
    if (length) n_frames = wt__stft_used_frames(stft, n_frames, length);
    else length = wt_stft_samples(stft, n_frames);
    const int64_t n_hops = (length + margin(stft) + stft->config.hop - 1) / stft->config.hop;
    return invert_part(stft, in, n_frames, length, n_hops * part / n_parts, n_hops * (part + 1) / n_parts, out);
}

WT_RT wt_status wt_stft_inverse(wt_stft *stft, const float *in, int64_t n_frames, int64_t length, float *out)
{
    if (n_frames < 1 || length < 0) return WT_ERR_BAD_ARG;
    const int64_t given = length ? length : wt_stft_samples(stft, n_frames);
    for (int c = 0; c < stft->config.channels; c++) {
        wt_status status = wt__stft_invert_line(stft, in + c * n_frames * 2 * stft->bins, n_frames, length, 0, 1, out);
        if (status) return status;
        out += given;
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

WT_RT void wt__stft_spectrum(wt_stft *stft, const float *pcm, int64_t n, int64_t t, float *re, float *im)
{
    transform_frame(stft, pcm, n, t, WT__FFT_SPLIT, re, im);
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
        wt__stft_spectrum(stft, pcm, n, t + f, re + (size_t)f * row, im + (size_t)f * row);
    if (!stft->precise) return;
    const double *re64, *im64;
    wt__stft_precise(stft, pcm, n, t, count, &re64, &im64);
    for (int f = 0; f < count; f++)
        for (int k = 0; k < stft->bins; k++) {
            re[(size_t)f * row + (size_t)k] = (float)re64[k * WT__FFT64_FRAMES + f];
            im[(size_t)f * row + (size_t)k] = (float)im64[k * WT__FFT64_FRAMES + f];
        }
}

const double *wt__stft_window64(const wt_stft *stft)
{
    return stft->window64;
}

void wt__stft_set_window64(wt_stft *stft, const double *window)
{
    memcpy(stft->window64, window, (size_t)stft->config.n_fft * sizeof *window);
}
