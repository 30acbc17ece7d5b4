// Transforms by the passes of a plan (fft_core.c): one at a time, side by side in a tile, on pairs, as rows of real
// samples, and by Bluestein's way. What is where a plan says how: nothing is decided here but by it.

#include "fft_core.h"

#include <string.h>

typedef struct buffers {
    float *re[2], *im[2];
} buffers;

static buffers lay_buffers(float *scratch, size_t n)
{
    size_t part = wt__fft_padded(n);
    return (buffers){{scratch, scratch + 2 * part}, {scratch + part, scratch + 3 * part}};
}

WT_RT static void run_one(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                          float scale)
{
    const wt__fft_kernels *k = core->kernels;
    const wt__fft_pass *pass = core->passes;
    buffers b = lay_buffers(scratch, core->n);
    if (k->first[in->form][pass->index]) {
        k->first[in->form][pass->index](pass, in->re, in->im, b.re[0], b.im[0], 1);
    } else {
        bool swapped = in->form == WT__FFT_SWAPPED;
        k->split(in->re, swapped ? b.im[1] : b.re[1], swapped ? b.re[1] : b.im[1], core->n);
        k->first[WT__FFT_SPLIT][pass->index](pass, b.re[1], b.im[1], b.re[0], b.im[0], 1);
    }
    const int turn = !pass->square;
    int at = 0;
    for (pass++; pass < core->passes + core->n_passes - 1; pass++, at ^= turn)
        k->mid[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], 1);
    if (k->last[out->form][pass->index]) {
        k->last[out->form][pass->index](pass, b.re[at], b.im[at], out->re, out->im, scale);
        return;
    }
    bool swapped = out->form == WT__FFT_SWAPPED;
    k->last[WT__FFT_SPLIT][pass->index](pass, b.re[at], b.im[at], b.re[!at], b.im[!at], scale);
    k->join(swapped ? b.im[!at] : b.re[!at], swapped ? b.re[!at] : b.im[!at], out->re, core->n, 1);
}

WT_RT static void pour_part(const wt__fft_core *core, wt__fft_past *past, ptrdiff_t parts)
{
    if (!past) return;
    wt__fft_past part = {past->from, past->to, past->n / parts / 16 * 16};
    past->from += part.n, past->to += part.n, past->n -= part.n;
    core->kernels->stream(&part);
}

// What `past` has goes between the passes, part by part.
WT_RT static void run_pairs(const wt__fft_core *pairs, float *scratch, const float *x, const float *weights,
                            wt__fft_past *past, float *y, bool back, float scale)
{
    const wt__fft_pairs *k = pairs->kernels->pairs;
    const wt__fft_pass *pass = pairs->passes, *last = pass + pairs->n_passes - 1;
    float *at = scratch, *other = pass->turned_bits ? at : scratch + 2 * wt__fft_padded(pairs->n);
    if (pairs->rows[back] && !weights) {
        pairs->rows[back](pairs->passes, x, 0, y, 0, 1, scale);
        return;
    }
    pour_part(pairs, past, pairs->n_passes - 1);
    (weights ? k->weighted : k->first[back])[pass->radix](pass, x, weights, at, 1);
    for (pass++; pass < last; pass++) {
        pour_part(pairs, past, last - pass);
        k->mid[back][pass->radix](pass, at, NULL, other, 1);
        float *turned = at;
        at = other, other = turned;
    }
    if (past) pairs->kernels->stream(past);
    k->last[back][pass->radix](pass, at, NULL, y, scale);
}

WT_RT void wt__fft_core_rows(const wt__fft_core *core, float *scratch, const float *x, ptrdiff_t x_distance, float *y,
                             ptrdiff_t y_distance, int count, bool back, float scale)
{
    const wt__fft_core *pairs = core->pairs;
    if (pairs->rows[back]) pairs->rows[back](pairs->passes, x, x_distance, y, y_distance, count, scale);
    else
        for (; count; count--, x += x_distance, y += y_distance)
            run_pairs(pairs, scratch, x, NULL, NULL, y, back, scale);
}

WT_RT void wt__fft_core_real(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                             const float *weights, float scale, wt__fft_past *past, wt__fft_form form, float *re,
                             float *im)
{
    // is not read by the last pass
    const bool second = core->pairs->passes[0].turned_bits || core->pairs->n_passes % 2 == 0;
    float *z = form == WT__FFT_PAIRS ? re : scratch + (second ? 2 * wt__fft_padded(core->n) : 0);
    run_pairs(core->pairs, scratch, x, weights, past, z, false, 1);
    core->kernels->pairs->bins[form](z, twiddles, core->n, scale, re, im);
}

WT_RT void wt__fft_core_real_back(const wt__fft_core *core, float *scratch, const float *twiddles, const float *re,
                                  const float *im, wt__fft_form form, float scale, float *y)
{
    float *z = scratch + 2 * wt__fft_padded(core->n); // the first pass writes to the other buffer
    core->kernels->pairs->fold[form](re, im, twiddles, core->n, z);
    run_pairs(core->pairs, scratch, z, NULL, NULL, y, true, scale);
}

WT_RT void wt__fft_core_row(const wt__fft_core *core, float *scratch, const float *twiddles, const float *x,
                            const float *weights, wt__fft_past *past, float *row)
{
    const wt__fft_kernels *k = core->kernels;
    const wt__fft_pass *pass = core->passes, *last = pass + core->n_passes - 1;
    const buffers b = lay_buffers(scratch, core->n);
    const int turn = !pass->square;
    int at = 0;
    k->row.first[pass->index](pass, x, weights, b.re[0], b.im[0], past);
    for (pass++; pass < last; pass++, at ^= turn)
        k->row.mid[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], past);
    k->row.last[pass->index](pass, b.re[at], b.im[at], b.re[at ^ turn], b.im[at ^ turn], past);
    k->stream(past);
    k->real_bins[WT__FFT_PAIRS](b.re[at ^ turn], b.im[at ^ turn], twiddles, core->n, row, NULL);
}

// Rows of fewer transforms than lanes, one number at a time; the other lanes hold zeros.
static void few_rows_in(const float *rows, ptrdiff_t distance, int n, int step, int count, int lanes, float *tile)
{
    memset(tile, 0, (size_t)n * (size_t)lanes * sizeof *tile);
    for (int row = 0; row < count; row++)
        for (int i = 0; i < n; i++) tile[(size_t)i * lanes + row] = rows[row * distance + (ptrdiff_t)i * step];
}

static void few_rows_out(const float *tile, int n, int step, int count, int lanes, float *rows, ptrdiff_t distance)
{
    for (int row = 0; row < count; row++)
        for (int i = 0; i < n; i++) rows[row * distance + (ptrdiff_t)i * step] = tile[(size_t)i * lanes + row];
}

static void tile_in(const wt__fft_core *core, const wt__fft_side *in, int count, float *re, float *im)
{
    const wt__fft_kernels *k = core->kernels;
    const bool pairs = in->form != WT__FFT_SPLIT, swapped = in->form == WT__FFT_SWAPPED, full = count == k->lanes;
    float *even = swapped ? im : re, *odd = swapped ? re : im;
    if (pairs && full) {
        k->rows_in(in->re, in->distance, 2 * core->n, even, odd, true);
    } else if (full) {
        k->rows_in(in->re, in->distance, core->n, re, re, false);
        k->rows_in(in->im, in->distance, core->n, im, im, false);
    } else {
        few_rows_in(in->re, in->distance, core->n, pairs ? 2 : 1, count, k->lanes, even);
        few_rows_in(pairs ? in->re + 1 : in->im, in->distance, core->n, pairs ? 2 : 1, count, k->lanes, odd);
    }
}

static void tile_out(const wt__fft_core *core, float *re, float *im, int count, const wt__fft_side *out)
{
    const wt__fft_kernels *k = core->kernels;
    const bool pairs = out->form != WT__FFT_SPLIT, swapped = out->form == WT__FFT_SWAPPED, full = count == k->lanes;
    float *even = swapped ? im : re, *odd = swapped ? re : im;
    if (pairs && full) {
        k->rows_out(even, odd, 2 * core->n, out->re, out->distance, true);
    } else if (full) {
        k->rows_out(re, re, core->n, out->re, out->distance, false);
        k->rows_out(im, im, core->n, out->im, out->distance, false);
    } else {
        few_rows_out(even, core->n, pairs ? 2 : 1, count, k->lanes, out->re, out->distance);
        few_rows_out(odd, core->n, pairs ? 2 : 1, count, k->lanes, pairs ? out->re + 1 : out->im, out->distance);
    }
}

// From buffers `at`; returns those that hold the result.
WT_RT static int tile_passes(const wt__fft_core *core, const buffers *b, int at, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    for (int lane = 0; lane < k->lanes && core->n == 1; lane++) b->re[at][lane] *= scale, b->im[at][lane] *= scale;
    for (int i = 0; i < core->n_passes; i++, at ^= 1) {
        const wt__fft_pass *pass = &core->passes[i];
        const bool last = i == core->n_passes - 1;
        (last ? k->last[WT__FFT_SPLIT] : k->mid)[pass->index](pass, b->re[at], b->im[at], b->re[!at], b->im[!at],
                                                              scale);
    }
    return at;
}

WT_RT static void run_tile(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                           int count, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    tile_in(core, in, count, b.re[0], b.im[0]);
    const int at = tile_passes(core, &b, 0, scale);
    tile_out(core, b.re[at], b.im[at], count, out);
}

WT_RT void wt__fft_core_bins(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    if (core->n == 4) {
        k->tile_of_8[0](twiddles, in, out, scale);
        return;
    }
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    k->rows_in(in->re, in->distance, 2 * core->n, b.re[0], b.im[0], true);
    const int at = tile_passes(core, &b, 0, scale);
    k->tile_bins(b.re[at], b.im[at], twiddles, core->n, b.re[!at], b.im[!at]);
    k->rows_out(b.re[!at], b.im[!at], 2 * core->n + 2, out->re, out->distance, true);
}

WT_RT void wt__fft_core_fold(const wt__fft_core *core, float *scratch, const float *twiddles, const wt__fft_side *in,
                             const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    if (core->n == 4) {
        k->tile_of_8[1](twiddles, in, out, scale);
        return;
    }
    buffers b = lay_buffers(scratch, (size_t)core->n * k->lanes);
    k->rows_in(in->re, in->distance, 2 * core->n + 2, b.re[0], b.im[0], true);
    k->tile_fold(b.re[0], b.im[0], twiddles, core->n, b.im[1], b.re[1]);
    const int at = tile_passes(core, &b, 1, scale);
    k->rows_out(b.im[at], b.re[at], 2 * core->n, out->re, out->distance, true);
}

WT_RT static void run_bluestein(const wt__fft_core *core, float *scratch, const wt__fft_side *in,
                                const wt__fft_side *out, float scale)
{
    const wt__fft_kernels *k = core->kernels;
    const int n = core->n, m = core->inner_n;
    float *re = scratch, *im = re + wt__fft_padded(m), *inner = im + wt__fft_padded(m);
    const float *x_re = in->re, *x_im = in->im;
    if (in->form != WT__FFT_SPLIT) {
        bool swapped = in->form == WT__FFT_SWAPPED;
        k->split(in->re, swapped ? im : re, swapped ? re : im, n);
        x_re = re, x_im = im;
    }
    k->multiply(x_re, x_im, core->chirp_re, core->chirp_im, re, im, n);
    memset(re + n, 0, (size_t)(m - n) * sizeof *re);
    memset(im + n, 0, (size_t)(m - n) * sizeof *im);
    wt__fft_side forward = {re, im, 0, WT__FFT_SPLIT}, backward = {im, re, 0, WT__FFT_SPLIT};
    wt__fft_core_run(core->inner, inner, &forward, &forward, 1, 1);
    k->multiply(re, im, core->filter_re, core->filter_im, re, im, m);
    wt__fft_core_run(core->inner, inner, &backward, &backward, 1, scale);
    if (out->form == WT__FFT_SPLIT) {
        k->multiply(re, im, core->chirp_re, core->chirp_im, out->re, out->im, n);
        return;
    }
    bool swapped = out->form == WT__FFT_SWAPPED;
    k->multiply(re, im, core->chirp_re, core->chirp_im, re, im, n);
    k->join(swapped ? im : re, swapped ? re : im, out->re, n, 1);
}

// The scratch of one lies behind that of a tile, where input and output may be.
WT_RT static void run_few(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                          int count, float scale)
{
    float *mine = scratch + 4 * wt__fft_padded((size_t)core->n * core->kernels->lanes);
    wt__fft_side x = *in, y = *out;
    for (int row = 0; row < count; row++) {
        run_one(core->few, mine, &x, &y, scale);
        x.re += x.distance, y.re += y.distance;
        if (x.im) x.im += x.distance;
        if (y.im) y.im += y.distance;
    }
}

WT_RT void wt__fft_core_run(const wt__fft_core *core, float *scratch, const wt__fft_side *in, const wt__fft_side *out,
                            int count, float scale)
{
    if (core->inner)
        run_bluestein(core, scratch, in, out, scale);
    else if (core->few && count < core->kernels->lanes)
        run_few(core, scratch, in, out, count, scale);
    else if (core->tiled)
        run_tile(core, scratch, in, out, count, scale);
    else
        run_one(core, scratch, in, out, scale);
}

static wt__fft_side spare_buffer(const wt__fft_core *core, float *scratch, int which)
{
    if (core->inner) return (wt__fft_side){scratch, scratch + wt__fft_padded(core->inner_n), 0, WT__FFT_SPLIT};
    buffers b = lay_buffers(scratch, (size_t)core->n * wt__fft_core_group(core));
    return (wt__fft_side){b.re[which], b.im[which], core->n, WT__FFT_SPLIT};
}

wt__fft_side wt__fft_core_input(const wt__fft_core *core, float *scratch)
{
    return spare_buffer(core, scratch, 1); // the first pass, or the tile's filling, writes to the other one
}

wt__fft_side wt__fft_core_output(const wt__fft_core *core, float *scratch)
{
    const int written = core->tiled ? core->n_passes : core->n_passes - 2;
    return spare_buffer(core, scratch, !core->passes[0].square && !(written & 1)); // the last of squares goes in place
}
