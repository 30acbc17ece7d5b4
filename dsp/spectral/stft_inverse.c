// The inverse walks through its output hop by hop. Where every frame over a hop exists, the sum of the squared windows
// repeats with the hop, and its reciprocal is a table; at both ends it is summed anew, as librosa's
// window_sumsquare does.
//
// Sums are float, or double where the transform is precise: where windows overlap little, what divides by their squares
// lifts a transform's rounding.
#include "stft_core.h"

#include <string.h>
#include <warptone/simd.h>

// Of one channel.
typedef struct inversion {
    const float *in; // [n_frames][bins][2], from `held` on: those before `held_end`
    int64_t n_frames, length;
    int64_t held, held_end;
    float *out; // [length], from `given` on
    int64_t given;
    int64_t first;        // frame that the walk begins with
    const double *turned; // precise: the frames transformed last
} inversion;

typedef struct sums {
    size_t size; // of a number
    char *front; // [n_fft + WT__STFT_HOPS * hop]
    wt_status (*add)(wt_stft *s, inversion *v, int64_t t, void *sum);               // frame t, windowed
    void (*give)(const wt_stft *s, const inversion *v, int64_t t, const void *sum); // the finished hop t
} sums;

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

// Where hop t lies in the output, and which of its samples do; `steady`: every frame over it exists.
typedef struct place {
    int64_t to, first, end;
    bool steady;
} place;

static place place_of(const wt_stft *s, const inversion *v, int64_t t)
{
    const int64_t to = t * s->config.hop - wt__stft_margin(s), room = v->length - to;
    return (place){.to = to,
                   .first = to < 0 ? -to : 0,
                   .end = room < s->config.hop ? room : s->config.hop,
                   .steady = t >= s->overlap - 1 && t < v->n_frames};
}

// ---- in float

WT_CLONES static void multiply_add(const float *a, const float *b, float *sum, int n)
{
    for (int i = 0; i < n; i++) sum[i] += a[i] * b[i];
}

WT_RT static wt_status add_frame(wt_stft *s, inversion *v, int64_t t, void *sum)
{
    const float *bins = v->in + (t - v->held) * 2 * s->bins, *next = t + 1 < v->held_end ? bins + 2 * s->bins : bins;
    if (s->whole) {
        wt__stft_kernels(s)->whole->back(s->whole, bins, next, s->backs, s->points, sum);
        return WT_OK;
    }
    wt__stft_prefetch(next, 2 * s->bins);
    wt_status status = wt_fft_run(s->inverse, bins, s->frame);
    if (!status) multiply_add(s->frame, s->window, sum, s->config.n_fft);
    return status;
}

WT_RT static void give_hop(const wt_stft *s, const inversion *v, int64_t t, const void *finished)
{
    const float *sum = finished;
    const place p = place_of(s, v, t);
    if (p.first >= p.end) return;
    float *out = v->out + (p.to + p.first - v->given);
    if (p.steady) {
        wt__stft_multiply(sum + p.first, s->steady + p.first, out, (int)(p.end - p.first));
        return;
    }
    for (int64_t i = p.first; i < p.end; i++)
        *out++ = sum[i] * (float)wt__stft_reciprocal(squares(s, t * s->config.hop + i, v->n_frames));
}

// ---- in double

// Frames t .. t + count - 1, transformed: frame f is lane f of the numbers, times n_fft.
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

WT_RT static wt_status add_frame64(wt_stft *s, inversion *v, int64_t t, void *to)
{
    enum { F = WT__FFT64_FRAMES };
    const int n = s->config.n_fft, f = (int)((t - v->first) % F);
    const int64_t left = v->n_frames - t;
    if (!f) v->turned = transform_back(s, v->in, t, left < F ? (int)left : F);
    const double *from = v->turned + (f + F / 2) % F; // parts exchanged
    double *sum = to;
    for (int i = 0; i < n; i++) sum[i] += from[i * F] * s->window64[i] / n;
    return WT_OK;
}

WT_RT static void give_hop64(const wt_stft *s, const inversion *v, int64_t t, const void *finished)
{
    const double *sum = finished;
    const place p = place_of(s, v, t);
    for (int64_t i = p.first; i < p.end; i++) {
        const int64_t at = t * s->config.hop + i;
        v->out[p.to + i - v->given] =
            (float)(sum[i] * (p.steady ? s->steady64[i] : wt__stft_reciprocal(squares(s, at, v->n_frames))));
    }
}

// ---- the walk

static sums sums_of(const wt_stft *s)
{
    return s->precise ? (sums){sizeof(double), (char *)s->sum64, add_frame64, give_hop64}
                      : (sums){sizeof(float), (char *)s->sum, add_frame, give_hop};
}

// Begin with frame `first`.
static void begin_walk(wt_stft *s, inversion *v, int64_t first)
{
    const sums kind = sums_of(s);
    v->first = first;
    memset(kind.front, 0, (size_t)s->config.n_fft * kind.size);
}

// On from frame t; hops hop_begin .. hop_end - 1 of the padded signal are given.
WT_RT static wt_status walk(wt_stft *s, inversion *v, int64_t t, int64_t hop_begin, int64_t hop_end)
{
    const sums kind = sums_of(s);
    const size_t frame_bytes = (size_t)s->config.n_fft * kind.size, hop_bytes = (size_t)s->config.hop * kind.size;
    for (; t < hop_end; t++) {
        const size_t n_before = (size_t)((t - v->first) % WT__STFT_HOPS);
        char *sum = kind.front + n_before * hop_bytes;
        memset(sum + frame_bytes, 0, hop_bytes);
        wt_status status = t < v->n_frames ? kind.add(s, v, t, sum) : WT_OK;
        if (status) return status;
        if (t >= hop_begin) kind.give(s, v, t, sum);
        if (n_before == WT__STFT_HOPS - 1) memmove(kind.front, sum + hop_bytes, frame_bytes);
    }
    return WT_OK;
}

// A part begins with the frames that reach into it, so its sums are those of the whole.
WT_RT static wt_status invert_part(wt_stft *s, inversion *v, int64_t hop_begin, int64_t hop_end)
{
    begin_walk(s, v, hop_begin < s->overlap ? 0 : hop_begin - s->overlap + 1);
    return walk(s, v, v->first, hop_begin, hop_end);
}

int64_t wt__stft_used_frames(const wt_stft *stft, int64_t n_frames, int64_t length)
{
    const int64_t hop = stft->config.hop, needed = (length + 2 * wt__stft_margin(stft) + hop - 1) / hop;
    return needed < n_frames ? needed : n_frames;
}

WT_RT wt_status wt__stft_invert_line(wt_stft *stft, const float *in, int64_t n_frames, int64_t length, int part,
                                     int n_parts, float *out)
{
    if (length) n_frames = wt__stft_used_frames(stft, n_frames, length);
    else length = wt_stft_samples(stft, n_frames);
    const int64_t n_hops = (length + wt__stft_margin(stft) + stft->config.hop - 1) / stft->config.hop;
    inversion v = {.in = in, .n_frames = n_frames, .length = length, .held_end = n_frames, .out = out};
    return invert_part(stft, &v, n_hops * part / n_parts, n_hops * (part + 1) / n_parts);
}

void wt__stft_walk_begin(wt_stft *stft, int64_t n_frames, int64_t length, wt__stft_walk *w)
{
    inversion v;
    begin_walk(stft, &v, 0);
    *w = (wt__stft_walk){.n_frames = wt__stft_used_frames(stft, n_frames, length), .length = length};
    w->n_hops = (length + wt__stft_margin(stft) + stft->config.hop - 1) / stft->config.hop;
    if (w->n_frames > w->n_hops) w->n_frames = w->n_hops;
}

WT_RT int64_t wt__stft_walk_on(wt_stft *stft, wt__stft_walk *w, const float *in, int64_t count, float *out)
{
    const int64_t end = w->n_hops - w->t < count ? w->n_hops : w->t + count, given = w->given;
    inversion v = {.in = in,
                   .n_frames = w->n_frames,
                   .length = w->length,
                   .held = w->t,
                   .held_end = end,
                   .out = out,
                   .given = given};
    (void)!walk(stft, &v, w->t, w->t, end); // no transform of a plan that was made fails
    const int64_t to = end * stft->config.hop - wt__stft_margin(stft);
    w->t = end;
    w->given = to < 0 ? 0 : to < w->length ? to : w->length;
    return w->given - given;
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
