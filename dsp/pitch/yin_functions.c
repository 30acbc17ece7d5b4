// The difference function of librosa 0.11, d(k) = 2 (r(0) - r(k)) - sum of y(m)^2 over m < k, with r the frame's
// autocorrelation, divided by the mean of d(1) .. d(k).
//
// librosa takes r from two transforms of twice the frame. Here r is summed directly, in double: products of floats are
// exact, so decisions follow the float64 ones, and a frame shares with its neighbours what lies in whole hops:
//
//     r(k) = sum over n < q hop of y(n) y(n + k)  +  sum over q hop <= n < frame - k
//
// With q hop + max_period <= frame the first sum needs no end, so it is made once a hop and added up q times. At 2048 /
// 512 and 65 Hz that leaves 0.29 M products a frame of 0.70 M. The sums run as a sliding filter in registers
// (yin_level.h).

#include "yin_internal.h"
#include "stft_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

// GROUP samples and TILE lags at once; samples STRIDE apart follow each other in a sum; SUMS vectors in registers.
enum { GROUP = 64, TILE = 64, STRIDE = 8, SUMS = 8 };

// ---- layout

static wt_status check_range(const char *op, const wt_pitch_frames *f)
{
    if (!(f->rate_hz > 0) || f->rate_hz > 1e9)
        return wt_fail(WT_ERR_BAD_ARG, "%s: rate %g Hz, want above 0", op, f->rate_hz);
    if (!(f->fmin_hz > 0)) return wt_fail(WT_ERR_BAD_ARG, "%s: fmin %g Hz, want above 0", op, f->fmin_hz);
    if (!(f->fmax_hz > f->fmin_hz))
        return wt_fail(WT_ERR_BAD_ARG, "%s: fmax %g Hz, want above fmin %g Hz", op, f->fmax_hz, f->fmin_hz);
    if (f->fmax_hz > f->rate_hz / 2)
        return wt_fail(WT_ERR_BAD_ARG, "%s: fmax %g Hz, want at most %g Hz, half the rate", op, f->fmax_hz,
                       f->rate_hz / 2);
    if (f->rate_hz / f->fmin_hz >= f->frame_length - 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s: frame_length %d is too short for fmin %g Hz, want %.0f or more", op,
                       f->frame_length, f->fmin_hz, ceil(f->rate_hz / f->fmin_hz) + 2);
    return WT_OK;
}

static wt_status check_sizes(const char *op, const wt_pitch_frames *f)
{
    if (f->frame_length < 3 || f->frame_length > WT_PITCH_MAX_FRAME)
        return wt_fail(WT_ERR_BAD_ARG, "%s: frame_length %d, want 3..%d", op, f->frame_length, WT_PITCH_MAX_FRAME);
    if (f->hop < 1 || f->hop > WT_PITCH_MAX_FRAME)
        return wt_fail(WT_ERR_BAD_ARG, "%s: hop %d, want 1..%d", op, f->hop, WT_PITCH_MAX_FRAME);
    if (f->n_signals < 1 || f->n_signals > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d signals, want 1..65535", op, f->n_signals);
    if ((unsigned)f->pad > WT_STFT_PAD_RAMP)
        return wt_fail(WT_ERR_BAD_ARG, "%s: pad %d, want 0..%d", op, (int)f->pad, WT_STFT_PAD_RAMP);
    if (f->n_samples < 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s: signals of %lld samples, want 1 or more", op, (long long)f->n_samples);
    if (f->no_center && f->n_samples < f->frame_length)
        return wt_fail(WT_ERR_LENGTH, "%s: signals of %lld samples, want a frame of %d or centring", op,
                       (long long)f->n_samples, f->frame_length);
    return WT_OK;
}

wt_status wt__yin_layout(const char *op, wt_pitch_frames *f, wt_yin_args *a)
{
    if (f->rate_hz == 0) f->rate_hz = 22050;
    if (!f->frame_length) f->frame_length = 2048;
    if (!f->hop) f->hop = f->frame_length / 4;
    if (!f->n_signals) f->n_signals = 1;
    wt_status status = check_sizes(op, f);
    if (!status) status = check_range(op, f);
    if (status) return status;
    const int margin = f->no_center ? 0 : f->frame_length / 2;
    const double longest = ceil(f->rate_hz / f->fmin_hz);
    *a = (wt_yin_args){.n_samples = f->n_samples,
                       .n_frames = 1 + (f->n_samples + 2 * margin - f->frame_length) / f->hop,
                       .rate_hz = f->rate_hz,
                       .n_signals = f->n_signals,
                       .frame = f->frame_length,
                       .hop = f->hop,
                       .margin = margin,
                       .pad = f->pad,
                       .min_period = (int)floor(f->rate_hz / f->fmax_hz),
                       .max_period = longest < f->frame_length - 1 ? (int)longest : f->frame_length - 1};
    a->n_shared = (a->frame - a->max_period) / a->hop;
    return WT_OK;
}

static size_t count_lags(const wt_yin_args *a) // whole tiles
{
    return ((size_t)a->max_period + 1 + TILE - 1) / TILE * TILE;
}

static size_t count_samples(const wt_yin_args *a)
{
    return (size_t)a->frame + (size_t)(WT__YIN_CHUNK - 1) * (size_t)a->hop;
}

static double *take_doubles(size_t count)
{
    double *p = aligned_alloc(64, (count * sizeof(double) + 63) / 64 * 64);
    if (p) memset(p, 0, count * sizeof(double));
    return p;
}

wt_status wt__yin_scratch_create(const char *op, const wt_yin_args *a, wt__yin_scratch *s)
{
    const size_t lags = count_lags(a), margin = lags + 2 * TILE;
    *s = (wt__yin_scratch){.samples = take_doubles(count_samples(a) + margin),
                           .products = take_doubles((size_t)(a->n_shared + 1) * lags),
                           .tail = take_doubles((size_t)a->frame + margin),
                           .sums = take_doubles(lags),
                           .means = take_doubles(lags),
                           .function = take_doubles(lags + STRIDE)};
    if (s->samples && s->products && s->tail && s->sums && s->means && s->function) return WT_OK;
    return wt_fail(WT_ERR_NO_MEMORY, "%s: scratch for frames of %d samples", op, a->frame);
}

void wt__yin_scratch_destroy(wt__yin_scratch *s)
{
    free(s->samples);
    free(s->products);
    free(s->tail);
    free(s->sums);
    free(s->means);
    free(s->function);
    *s = (wt__yin_scratch){0};
}

// ---- products

#include "yin_level.h"

// A whole hop: all lags see `count` samples.
static void correlate_hop(const double *x, int count, int n_lags, double *sums)
{
    for (int lag = 0; lag < n_lags; lag += TILE) WT_LEVEL_CALL(correlate_tile, x, count, lag, sums + lag);
}

// The tail of a frame, zeros behind it: a lag takes samples off.
static void correlate_tail(const double *x, int count, int n_lags, double *sums)
{
    for (int lag = 0; lag < n_lags; lag += TILE)
        WT_LEVEL_CALL(correlate_tile, x, count > lag ? count - lag : 0, lag, sums + lag);
}

// ---- the function

WT_CLONES static void add(const double *from, double *to, int n)
{
    for (int i = 0; i < n; i++) to[i] += from[i];
}

// Numerators and denominators of lags 1 .. max_period. As in librosa, lag 1 subtracts nothing.
static void differences(const wt_yin_args *a, const double *y, double *sums, double *means)
{
    const double r0 = sums[0];
    double energy = y[0] * y[0], total = 2 * (r0 - sums[1]);
    sums[1] = means[1] = total;
    for (int k = 2; k <= a->max_period; k++) {
        energy += y[k - 1] * y[k - 1];
        sums[k] = 2 * (r0 - sums[k]) - energy;
        total += sums[k];
        means[k] = total;
    }
}

WT_CLONES static void divide(const double *sums, const double *means, int first, int n, double *function)
{
    for (int i = 0; i < n; i++) function[i] = sums[first + i] / (means[first + i] / (first + i) + DBL_MIN);
}

// Frame t - begin of the chunk; its hops' products are made.
static const double *finish_frame(const wt_yin_args *a, wt__yin_scratch *s, const double *y, int64_t frame)
{
    const int n_lags = (int)count_lags(a), shared = a->n_shared * a->hop;
    memcpy(s->tail, y + shared, (size_t)(a->frame - shared) * sizeof(double));
    correlate_tail(s->tail, a->frame - shared, n_lags, s->sums);
    for (int b = 0; b < a->n_shared; b++)
        add(s->products + (size_t)((frame + b) % a->n_shared) * (size_t)n_lags, s->sums, a->max_period + 1);
    if (!isfinite(s->sums[0])) return NULL;
    differences(a, y, s->sums, s->means);
    divide(s->sums, s->means, a->min_period, a->max_period - a->min_period + 1, s->function);
    return s->function;
}

WT_CLONES static void widen(const float *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

static void fill_samples(const wt_yin_args *a, const float *pcm, int64_t first, int64_t count, double *samples)
{
    int64_t inner = first < 0 ? -first : 0, end = a->n_samples - first;
    if (inner > count) inner = count;
    if (end > count) end = count;
    if (end < inner) end = inner;
    for (int64_t i = 0; i < inner; i++) samples[i] = wt__stft_padded(pcm, a->n_samples, first + i, a->margin, a->pad);
    widen(pcm + first + inner, samples + inner, end - inner);
    for (int64_t i = end; i < count; i++) samples[i] = wt__stft_padded(pcm, a->n_samples, first + i, a->margin, a->pad);
}

WT_RT void wt__yin_functions(const wt_yin_args *a, wt__yin_scratch *s, const float *pcm, int64_t begin, int count,
                             wt__yin_take take, void *user)
{
    const int n_lags = (int)count_lags(a);
    const int64_t n_samples = a->frame + (int64_t)(count - 1) * a->hop;
    fill_samples(a, pcm, begin * a->hop - a->margin, n_samples, s->samples);
    for (int t = 0, b = 0; t < count; t++) {
        const double *y = s->samples + (int64_t)t * a->hop;
        for (; a->n_shared && b < t + a->n_shared; b++)
            correlate_hop(s->samples + (int64_t)b * a->hop, a->hop, n_lags,
                          s->products + (size_t)(b % a->n_shared) * (size_t)n_lags);
        take(user, begin + t, finish_frame(a, s, y, t));
    }
}
