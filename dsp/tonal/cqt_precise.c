// A frame is longer than most of its filters, so a loud sound that lies outside a filter fills the frame's bins and
// leaves its result by cancelling: bins, filters and sums are in double.

#include "cqt_precise.h"

#include "fft_double.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

enum { FRAMES = WT__FFT64_FRAMES };

struct wt__cqt_precise {
    const wt__cqt_plan *plan;
    wt__fft64 **ffts; // [n_parts]
    double *ones, *window; // [the longest frame], and of the pseudo part's
    float *silence;        // likewise
    double *x, *work, *re, *im;
};

static double *take(size_t count) { return aligned_alloc(64, (count * sizeof(double) + 63) / 64 * 64); }

wt_status wt__cqt_precise_create(const wt__cqt_plan *plan, const float *window, wt__cqt_precise **precise)
{
    wt__cqt_precise *c = *precise = calloc(1, sizeof *c); // the worker's destroy takes it back, also half built
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "cqt: transforms in double");
    c->plan = plan;
    c->ffts = calloc((size_t)plan->n_parts, sizeof *c->ffts);
    wt_status status = c->ffts ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "cqt: %d octaves", plan->n_parts);
    int n_fft = 1;
    for (int i = 0; i < plan->n_parts && !status; i++) {
        if (plan->parts[i].n_fft > n_fft) n_fft = plan->parts[i].n_fft;
        status = wt__fft64_create(plan->parts[i].n_fft, &c->ffts[i]);
    }
    if (status) return status;
    const size_t points = wt__fft64_doubles(n_fft), bins = ((size_t)n_fft / 2 + 1) * FRAMES;
    c->ones = take((size_t)n_fft), c->window = take((size_t)n_fft);
    c->silence = calloc((size_t)n_fft, sizeof *c->silence);
    c->x = take(points), c->work = take(points), c->re = take(bins), c->im = take(bins);
    if (!c->ones || !c->window || !c->silence || !c->x || !c->work || !c->re || !c->im)
        return wt_fail(WT_ERR_NO_MEMORY, "cqt: spectra of %d points in double", n_fft);
    for (int i = 0; i < n_fft; i++) c->ones[i] = 1;
    for (int part = 0; part < plan->n_parts && window; part++)
        for (int i = 0; plan->parts[part].pseudo && i < plan->parts[part].n_fft; i++) c->window[i] = window[i];
    return WT_OK;
}

void wt__cqt_precise_destroy(wt__cqt_precise *precise)
{
    if (!precise) return;
    for (int i = 0; precise->ffts && i < precise->plan->n_parts; i++) wt__fft64_destroy(precise->ffts[i]);
    free(precise->ffts);
    free(precise->ones), free(precise->window), free(precise->silence);
    free(precise->x), free(precise->work), free(precise->re), free(precise->im);
    free(precise);
}

WT_CLONES static void sum_row(const wt__cqt_part *p, int row, const double *re, const double *im,
                              const wt__fft64_scales *scales, float *out)
{
    double x[FRAMES] = {0}, y[FRAMES] = {0};
    for (int i = p->begin[row]; i < p->begin[row + 1]; i++) {
        const double *a = re + (size_t)p->bin[i] * FRAMES, *b = im + (size_t)p->bin[i] * FRAMES;
        const double u = p->value[2 * i], v = p->value[2 * i + 1];
        for (int f = 0; f < FRAMES; f++) x[f] += u * a[f] - v * b[f], y[f] += v * a[f] + u * b[f];
    }
    for (int f = 0; f < FRAMES; f++)
        out[2 * f] = (float)(x[f] * scales->by[f]), out[2 * f + 1] = (float)(y[f] * scales->by[f]);
}

WT_CLONES static void sum_sizes(const wt__cqt_part *p, int row, const double *re, const double *im,
                                const wt__fft64_scales *scales, float *out)
{
    double x[FRAMES] = {0};
    for (int i = p->begin[row]; i < p->begin[row + 1]; i++) {
        const double *a = re + (size_t)p->bin[i] * FRAMES, *b = im + (size_t)p->bin[i] * FRAMES;
        for (int f = 0; f < FRAMES; f++) x[f] += p->value[i] * sqrt(a[f] * a[f] + b[f] * b[f]);
    }
    for (int f = 0; f < FRAMES; f++) out[2 * f] = (float)(x[f] * scales->by[f]), out[2 * f + 1] = 0;
}

WT_RT void wt__cqt_precise_rows(wt__cqt_precise *c, int part, const float *x, float *rows)
{
    const wt__cqt_part *p = &c->plan->parts[part];
    const float *frames[FRAMES];
    for (int f = 0; f < FRAMES; f++) frames[f] = x + f * p->hop;
    wt__fft64_scales to, back;
    wt__fft64_level(frames, p->n_fft, c->silence, &to, &back);
    wt__fft64_frames(frames, p->pseudo ? c->window : c->ones, p->n_fft, to.by, c->x);
    wt__fft64_bins(wt__fft64_run(c->ffts[part], c->x, c->work), p->n_fft, c->re, c->im);
    for (int r = 0; r < p->n_rows; r++, rows += 2 * FRAMES) {
        if (p->pseudo)
            sum_sizes(p, r, c->re, c->im, &back, rows);
        else
            sum_row(p, r, c->re, c->im, &back, rows);
    }
}
