// The invertible constant-Q transform at each frame: a walk along a signal's slices, on the calling thread, and on a
// GPU.

#include "analyze_features.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/nsgt.h>

enum { MOST = 4 }; // halves that a GPU does at a time

int analyze_half_slice(const analyze_options *o) { return o->ops.slice ? o->ops.slice / 2 : 32768; }

wt_nsgt_config analyze_nsgt_config(const analyze_signal *s, int n_slices, int n_signals)
{
    const analyze_options *o = s->options;
    return (wt_nsgt_config){.rate_hz = s->rate_hz,
                            .fmin_hz = o->fmin_hz,
                            .slice = o->ops.slice ? o->ops.slice : 65536,
                            .n_slices = n_slices,
                            .bins_per_octave = o->bins_per_octave,
                            .n_bins = o->n_bins,
                            .channels = n_signals};
}

/// Column t of [bins][n_frames]: line `line` of slices' points, `place` slices behind the second half of the first of
/// two: slices are cut by windows that sum to one, and so do the points of both at one time.
static void read_points(const wt_nsgt *nsgt, const float *points, int64_t line, double place, int64_t t,
                        int64_t n_frames, float *out)
{
    for (int k = 0; k < wt_nsgt_n_rows(nsgt) - 2; k++) {
        const wt_nsgt_row row = wt_nsgt_get_row(nsgt, k + 1);
        const int64_t m = (int64_t)(place * row.n_points), first = row.offset + line * row.stride;
        const float *x = points + 2 * (first + row.n_points / 2 + m);
        const float *y = points + 2 * (first + row.stride + m);
        out[k * n_frames + t] = hypotf(x[0] + y[0], x[1] + y[1]);
    }
}

/// The frames in the half behind the first of slices `at` and at + 1.
static void read_half(const analyze_signal *s, const wt_nsgt *nsgt, const float *points, int64_t line, int64_t at,
                      float *out)
{
    const int64_t n_frames = analyze_centred_frames(s->options, s->n), hop = analyze_hop(s->options);
    const int64_t half = analyze_half_slice(s->options);
    for (int64_t t = (at * half + hop - 1) / hop; t < n_frames && t * hop < (at + 1) * half; t++)
        read_points(nsgt, points, line, (double)(t * hop - at * half) / (double)(2 * half), t, n_frames, out);
}

static int64_t n_halves(const analyze_signal *s)
{
    const int64_t last = (analyze_centred_frames(s->options, s->n) - 1) * analyze_hop(s->options);
    return last / analyze_half_slice(s->options) + 1;
}

wt_status analyze_nsgt(const analyze_signal *s, analyze_result *r)
{
    const wt_nsgt_config config = analyze_nsgt_config(s, 2, 1);
    wt_nsgt *nsgt;
    void *data;
    wt_status status = wt_nsgt_create(NULL, &config, &nsgt);
    if (status) return status;
    float *points = malloc(2 * sizeof *points * (size_t)wt_nsgt_coefficients(nsgt));
    status = points ? analyze_add(r, &analyze_like.nsgt, wt_nsgt_n_rows(nsgt) - 2,
                                  analyze_centred_frames(s->options, s->n), &data)
                    : wt_fail(WT_ERR_NO_MEMORY, "nsgt: slices of %d samples", config.slice);
    for (int64_t at = 0; at < n_halves(s) && !status; at++) {
        status = wt_nsgt_forward(nsgt, s->pcm, s->n, at, points);
        if (!status) read_half(s, nsgt, points, 0, at, data);
    }
    wt_nsgt_destroy(nsgt);
    free(points);
    return status;
}

// ---- on a GPU

static wt_status make_slices(const analyze_batch *b, int n_slices, void **plan)
{
    const wt_nsgt_config config = analyze_nsgt_config(&b->signal, n_slices, b->n_signals);
    return wt_nsgt_create(b->signal.place->device, &config, (wt_nsgt **)plan);
}

static void destroy_slices(void *plan) { wt_nsgt_destroy(plan); }

const analyze_maker analyze_slices_maker = {make_slices, destroy_slices};

wt_status analyze_gpu_nsgt(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const int64_t all = n_halves(&b->signal), halves = all < MOST ? all : MOST;
    void *nsgt, *out;
    wt_buffer *points = NULL;
    wt_status status =
        analyze_kept_plan(b, &analyze_slices_maker, (int)halves + 1, &nsgt);
    const size_t bytes = status ? 0 : 2 * sizeof(float) * (size_t)wt_nsgt_coefficients(nsgt);
    if (!status) status = analyze_room(b, 0, bytes, &points);
    for (int k = 0; k < b->n_used && !status; k++)
        status = analyze_add(&parts[k], &analyze_like.nsgt, wt_nsgt_n_rows(nsgt) - 2,
                             analyze_centred_frames(b->signal.options, b->signal.n), &out);
    for (int64_t at = 0; at < all && !status; at += halves) {
        const void *data;
        status = wt_nsgt_enqueue_forward(nsgt, p->stream, p->pcm, 0, b->signal.n, at, points, 0);
        if (!status) status = analyze_fetch(b, points, bytes, &data);
        for (int64_t i = 0; i < b->n_used * halves && !status; i++)
            read_half(&b->signal, nsgt, data, i / halves * (halves + 1) + i % halves, at + i % halves,
                      parts[i / halves].arrays[0].data);
    }
    return status;
}
