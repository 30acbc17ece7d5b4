// Per iteration: A to a signal y, y to spectra R, A = S (R - c R_before) / |R - c R_before|, c = m / (1 + m).
//
// In float a frame goes all the way while it is in the cache: transformed, given its phases, transformed back and added
// to the next y. No spectrum is kept: the transform is linear, so R - c R_before is that of y - c y_before, and two
// signals are what an iteration needs of those before. And several iterations run at once, each `lag` frames behind the
// one before, whose samples are finished there: they and the magnitudes of a frame stay in the second-level cache for
// all of them. The order of every sum is as if one ran after the other. On eight lanes frames of 2048 samples go all
// the way in fft_whole.h.

#include "griffin_lim_internal.h"

#include <math.h>
#include <string.h>
#include <warptone/simd.h>

// ---- phases

// cos and sin of pi (u + 1), -1 <= u < 1: Taylor's series about the nearest quarter turn, below an ulp.
WT_INLINE void unit_vector(float u, float *re, float *im)
{
    const int quarter = (int)(2 * u + 2.5f) - 2;
    const float r = u - 0.5f * (float)quarter, q = r * r;
    const float sine =
        r * (3.14159265f + q * (-5.16771278f + q * (2.55016404f + q * (-0.599264529f + q * 0.0821458866f))));
    const float cosine =
        1 + q * (-4.93480220f + q * (4.05871213f + q * (-1.33526277f + q * (0.235330630f - q * 0.0258068913f))));
    const float x = quarter & 1 ? -sine : cosine, y = quarter & 1 ? cosine : sine;
    *re = quarter & 2 ? x : -x, *im = quarter & 2 ? y : -y; // half a turn more
}

WT_CLONES static void first_phases(uint64_t *seeds, const float *magnitude, float *re, float *im, int bins)
{
    for (int k = 0; k < bins; k++) {
        seeds[k] = seeds[k] * WT__GRIFFIN_LIM_FACTOR + WT__GRIFFIN_LIM_TERM;
        float x, y;
        unit_vector((float)(int32_t)(seeds[k] >> 32) * 0x1p-31f, &x, &y);
        re[k] = magnitude[k] * x, im[k] = magnitude[k] * y;
    }
}

// 1 / sqrt(x) of what is not negative, of the least normal number where it is less: a first guess from its bits (C.
// Lomont, Fast inverse square root, 2003), and Newton steps to the last bits: on vectors it takes a third of a root and
// a division. Bits are compared, not numbers: GCC 12 takes a choice of floats for a branch on AVX2, and leaves the loop
// around it scalar.
WT_INLINE float inverse_root(float x)
{
    enum { LEAST = 1 << 23 }; // FLT_MIN
    union {
        float number;
        int32_t bits;
    } normal = {x}, guess;
    normal.bits = normal.bits > LEAST ? normal.bits : LEAST;
    guess.bits = 0x5f375a86 - (normal.bits >> 1);
    float y = guess.number;
    for (int i = 0; i < 3; i++) y = y * (1.5f - 0.5f * normal.number * y * y);
    return y;
}

// R - c R_before of one frame to A, in place: below its magnitude where the power would be a denormal number.
WT_CLONES static void update(float *re, float *im, const float *magnitude, int bins)
{
    for (int k = 0; k < bins; k++) {
        const float by = magnitude[k] * inverse_root(re[k] * re[k] + im[k] * im[k]);
        re[k] *= by, im[k] *= by;
    }
}

WT_CLONES static void add_windowed(const float *frame, const float *window, float *sums, int n)
{
    for (int i = 0; i < n; i++) sums[i] += frame[i] * window[i];
}

// Sums to y and y - c y_before.
WT_CLONES static void finish_sums(float *y, const float *by, const float *before, float c, float *next, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] *= by[i];
        next[i] = y[i] - c * before[i];
    }
}

// ---- in float, several iterations at once

// Room for frame t and a hop behind it, zeros where no frame before it reached: that hop is the next frame's, or
// between the two where hops are longer than frames, or behind the last frame, where the signal and its padding may go
// on.
static void make_room(const wt_griffin_lim *g, wt__griffin_lim_stage *s, int64_t t)
{
    const int64_t end = (t + 1) * g->hop + g->n_fft, keep = t > g->lag ? (t - g->lag) * g->hop : 0;
    if (end - s->origin > g->room) {
        memmove(s->samples, s->samples + (keep - s->origin), (size_t)(end - g->hop - keep) * sizeof(float));
        memmove(s->next, s->next + (keep - s->origin), (size_t)(t * g->hop - keep) * sizeof(float));
        s->origin = keep;
    }
    const int64_t fresh = t ? g->hop : g->n_fft + g->hop;
    memset(s->samples + (end - fresh - s->origin), 0, (size_t)fresh * sizeof(float));
}

// A of frame t, in re and im, to the sums.
WT_RT static void add_frame(const wt_griffin_lim *g, wt__griffin_lim_slot *s, wt__griffin_lim_stage *to, int64_t t)
{
    if (t >= g->used) return;
    wt__fft_real_inverse(s->inverse, s->re, s->im, s->frame);
    add_windowed(s->frame, wt__stft_window(s->stft), to->samples + (t * g->hop - to->origin), g->n_fft);
}

// What the edges of `next` are continued by: the front once frame t has made it, the end behind the last frame. A
// margin of samples and one more decide it.
static void pad(const wt_griffin_lim *g, wt__griffin_lim_stage *s, int64_t t)
{
    const wt_stft_pad rule = g->config.stft.pad;
    const int64_t before = s->origin > g->margin ? s->origin - g->margin : 0, n = g->length - before;
    const float *signal = s->next + (g->margin + before - s->origin);
    if (!s->origin && (t == g->lag || t == g->config.n_frames - 1))
        for (int64_t i = 1; i <= g->margin; i++)
            s->next[g->margin - i] = wt__stft_padded(signal, n, -i, g->margin, rule);
    if (t < g->config.n_frames - 1) return;
    for (int64_t i = 0; i < g->margin; i++)
        s->next[g->margin + g->length + i - s->origin] = wt__stft_padded(signal, n, n + i, g->margin, rule);
}

// Samples begin .. end - 1 of the padded signal, which frame t is the first to begin with, or the last.
static void hop_of(const wt_griffin_lim *g, int64_t t, int64_t *begin, int64_t *end)
{
    const bool last = t == g->config.n_frames - 1;
    const int64_t most = g->margin + g->length;
    *begin = t * g->hop, *end = last || *begin + g->hop > most ? most : *begin + g->hop;
}

// Those of the hop that the signal has, from the stage to where it is kept whole, or back.
static void copy_hop(const wt_griffin_lim *g, const wt__griffin_lim_stage *s, int64_t t, float *samples, float *whole,
                     bool back)
{
    int64_t begin, end;
    hop_of(g, t, &begin, &end);
    const int64_t first = begin > g->margin ? begin : g->margin;
    float *here = samples + (first - s->origin), *there = whole + (first - g->margin);
    if (end > first) memcpy(back ? here : there, back ? there : here, (size_t)(end - first) * sizeof(float));
}

// Samples that no later frame than t reaches become the signal; `before`: the stage of y_before, NULL = 0.
WT_RT static void finish(const wt_griffin_lim *g, wt__griffin_lim_stage *s, const wt__griffin_lim_stage *before,
                         int64_t t)
{
    int64_t begin, end;
    hop_of(g, t, &begin, &end);
    if (end <= begin) return;
    const int64_t all = g->n_fft / g->hop * g->hop; // where all frames that can reach a sample do, squares repeat
    const bool steady = t < g->config.n_frames - 1 && begin >= all && t < g->used;
    const int64_t at = steady ? all : begin < g->head ? begin : g->head + begin - g->tail;
    float *y = s->samples + (begin - s->origin), *next = s->next + (begin - s->origin);
    finish_sums(y, g->squares32 + at, before ? before->samples + (begin - before->origin) : y, before ? g->c : 0, next,
                end - begin);
}

// Frame t of the stage before, with its new phases, to the sums.
WT_RT static void iterate(const wt_griffin_lim *g, wt__griffin_lim_slot *s, wt__griffin_lim_stage *to, int64_t t,
                          const float *magnitude)
{
    const float *x = to[-1].next + (t * g->hop - to[-1].origin);
    const int64_t next = t > g->lag ? t - g->lag : 0; // of the stage behind
    if (t >= g->used) return;
    if (wt__stft_turns(s->stft)) {
        wt__stft_turn(s->stft, &(wt__fft_turn){.x = x,
                                               .magnitude = magnitude,
                                               .sums = to->samples + (t * g->hop - to->origin),
                                               .next_magnitude = magnitude - (t - next) * g->bins,
                                               .next_x = to->next + (next * g->hop - to->origin)});
        return;
    }
    wt__stft_frame(s->stft, x, s->re, s->im);
    update(s->re, s->im, magnitude, g->bins);
    add_frame(g, s, to, t);
}

static void begin_phases(const wt_griffin_lim *g, wt__griffin_lim_slot *s, const float *magnitude)
{
    if (!g->config.zero_phase) {
        first_phases(s->seeds, magnitude, s->re, s->im, g->bins);
        return;
    }
    memcpy(s->re, magnitude, (size_t)g->bins * sizeof(float));
    memset(s->im, 0, (size_t)g->bins * sizeof(float));
}

// Frame t of stage i; `done` iterations were made before the first.
WT_RT static void step_stage(const wt_griffin_lim *g, wt__griffin_lim_slot *s, int i, int done, int64_t t,
                             const float *magnitude, float *out)
{
    wt__griffin_lim_stage *to = &s->stages[i];
    make_room(g, to, t);
    if (!i && done) {
        copy_hop(g, to, t, to->samples, out, true);
        copy_hop(g, to, t, to->next, s->next, true);
        return;
    }
    if (i) {
        iterate(g, s, to, t, magnitude + t * g->bins);
    } else {
        begin_phases(g, s, magnitude + t * g->bins);
        add_frame(g, s, to, t);
    }
    finish(g, to, i ? to - 1 : NULL, t);
}

// Iterations done .. done + count - 1, each a stage behind the one before; stage 0 is what they begin with.
WT_RT static void run_stages(const wt_griffin_lim *g, wt__griffin_lim_slot *s, int done, int count,
                             const float *magnitude, float *out)
{
    const int64_t n_frames = g->config.n_frames;
    for (int i = 0; i <= count; i++) s->stages[i].origin = 0;
    for (int64_t step = 0; step < n_frames + count * g->lag; step++)
        for (int i = 0; i <= count; i++) {
            const int64_t t = step - i * g->lag;
            wt__griffin_lim_stage *to = &s->stages[i];
            if (t < 0 || t >= n_frames) continue;
            step_stage(g, s, i, done, t, magnitude, out);
            if (i == count) copy_hop(g, to, t, to->samples, out, false);
            if (i == count) copy_hop(g, to, t, to->next, s->next, false);
            pad(g, to, t);
        }
}

WT_RT void wt__griffin_lim_run_float(const wt_griffin_lim *g, wt__griffin_lim_slot *s, const float *magnitude,
                                     float *out)
{
    wt__griffin_lim_seed(g, s->seeds);
    for (int done = 0; done < g->config.n_iter; done += WT__GRIFFIN_LIM_AT_ONCE) {
        const int left = g->config.n_iter - done;
        run_stages(g, s, done, left < WT__GRIFFIN_LIM_AT_ONCE ? left : WT__GRIFFIN_LIM_AT_ONCE, magnitude, out);
    }
}
