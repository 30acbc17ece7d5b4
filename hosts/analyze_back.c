// Signals through a transform and back: what its inverse makes of it, on the calling thread and on a GPU. NSGT goes
// slice by slice.

#include "analyze_features.h"
#include "analyze_sound.h"

#include <math.h>
#include <stdlib.h>
#include <warptone/icqt.h>
#include <warptone/nsgt.h>

// ---- Fourier

int64_t analyze_istft_reach(const analyze_signal *s) { return 2 * analyze_n_fft(s->options); }

wt_status analyze_istft(const analyze_signal *s, analyze_result *r)
{
    analyze_spectra x;
    void *out;
    wt_status status = analyze_spectra_make(s, WT_STFT_COMPLEX, false, &x);
    if (!status) status = analyze_add(r, &analyze_like.istft, 1, s->n, &out);
    if (!status) status = wt_stft_inverse(x.stft, x.values, x.n_frames, s->n, out);
    analyze_spectra_free(&x);
    return status;
}

enum { ROOM_BACK = 1, ROOM_POINTS = 2 }; // behind that of spectra

static wt_status make_back(const analyze_batch *b, int variant, void **plan)
{
    const wt_stft_plan_config config = {.stft = analyze_stft_config(b->signal.options),
                                        .n_samples = b->signal.n,
                                        .n_signals = b->n_signals,
                                        .length = b->signal.n};
    (void)variant;
    return wt_stft_plan_create(b->signal.place->device, &config, (wt_stft_plan **)plan);
}

static void destroy_back(void *plan) { wt_stft_plan_destroy(plan); }

static size_t samples_bytes(const analyze_batch *b)
{
    return sizeof(float) * (size_t)b->n_signals * (size_t)b->signal.n;
}

static wt_status give_samples(const analyze_batch *b, const wt_buffer *pcm, const analyze_array *like,
                              analyze_result *parts)
{
    const void *data;
    wt_status status = analyze_fetch(b, pcm, samples_bytes(b), &data);
    return status ? status : analyze_give(b, parts, like, data, 1, b->signal.n, false);
}

wt_status analyze_gpu_istft(const analyze_batch *b, analyze_result *parts)
{
    wt_buffer *spectra, *pcm = NULL;
    int64_t n_frames;
    void *back;
    wt_status status = analyze_spectra_on_gpu(b, WT_STFT_COMPLEX, false, &spectra, &n_frames);
    if (!status) status = analyze_kept_plan(b, &(analyze_maker){make_back, destroy_back}, 0, &back);
    if (!status) status = analyze_room(b, ROOM_BACK, samples_bytes(b), &pcm);
    if (!status) status = wt_stft_plan_inverse(back, b->signal.place->stream, spectra, 0, pcm, 0);
    return status ? status : give_samples(b, pcm, &analyze_like.istft, parts);
}

// ---- constant-Q

static wt_cqt_config cqt_config(const analyze_signal *s, int lines)
{
    wt_cqt_config config = analyze_cqt_config(s, WT_CQT_FULL);
    config.channels = lines;
    return config;
}

/// Of both: of the way back filters as long as their lowest note wants, in frames up to twice that, and doublings.
int64_t analyze_icqt_reach(const analyze_signal *s)
{
    const wt_cqt_config c = analyze_cqt_config(s, WT_CQT_FULL);
    const int steps = c.bins_per_octave ? c.bins_per_octave : 12, n_bins = c.n_bins ? c.n_bins : 84;
    const double fmin_hz = (c.fmin_hz > 0 ? c.fmin_hz : ANALYZE_C1_HZ) * exp2(c.tuning / steps);
    const double longest = 3.0 * (c.filter_scale > 0 ? c.filter_scale : 1) * s->rate_hz * steps / fmin_hz;
    const double octaves = fmin(ceil((double)n_bins / steps), ceil(log2(fmax(1, s->rate_hz / fmin_hz))));
    return analyze_cqt_reach(s) + (int64_t)(longest + 256 * exp2(octaves));
}

typedef struct both_ways {
    wt_cqt *there;
    wt_icqt *back;
    int64_t n_frames;
} both_ways;

static void destroy_both(void *plan)
{
    both_ways *p = plan;
    if (!p) return;
    wt_cqt_destroy(p->there);
    wt_icqt_destroy(p->back);
    free(p);
}

static wt_status create_both(wt_device *device, const analyze_signal *s, int lines, both_ways **plan)
{
    const wt_cqt_config config = cqt_config(s, lines);
    both_ways *p = *plan = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "icqt: plan");
    wt_status status = wt_cqt_create(device, &config, s->n, &p->there);
    if (!status) p->n_frames = wt_cqt_frames(p->there, s->n);
    if (!status) status = wt_icqt_create(device, &config, p->n_frames, &p->back);
    if (!status) return WT_OK;
    destroy_both(p);
    *plan = NULL;
    return status;
}

wt_status analyze_icqt(const analyze_signal *s, analyze_result *r)
{
    const wt_cqt_tile tile = analyze_cqt_tile(s->whole, false);
    both_ways *p;
    void *out;
    wt_status status = create_both(NULL, s, 1, &p);
    if (status) return status;
    float *bins = malloc(2 * sizeof *bins * (size_t)(p->n_frames * wt_cqt_bins(p->there)));
    status = bins ? analyze_add(r, &analyze_like.icqt, 1, s->n, &out)
                  : wt_fail(WT_ERR_NO_MEMORY, "icqt: %lld frames", (long long)p->n_frames);
    if (!status) status = wt_cqt_run_tile(p->there, s->pcm, s->n, &tile, bins);
    if (!status) status = wt_icqt_run(p->back, bins, p->n_frames, s->n, out);
    free(bins);
    destroy_both(p);
    return status;
}

static wt_status make_both(const analyze_batch *b, int variant, void **plan)
{
    (void)variant;
    return create_both(b->signal.place->device, &b->signal, b->n_signals, (both_ways **)plan);
}

wt_status analyze_gpu_icqt(const analyze_batch *b, analyze_result *parts)
{
    const analyze_place *p = b->signal.place;
    const wt_cqt_tile tile = analyze_cqt_tile(b->whole, false);
    wt_buffer *bins = NULL, *pcm = NULL;
    void *plan;
    wt_status status = analyze_kept_plan(b, &(analyze_maker){make_both, destroy_both}, 0, &plan);
    if (status) return status;
    const both_ways *both = plan;
    const size_t line = 2 * sizeof(float) * (size_t)(both->n_frames * wt_cqt_bins(both->there));
    status = analyze_room(b, ROOM_POINTS, line * (size_t)b->n_signals, &bins);
    if (!status) status = analyze_room(b, ROOM_BACK, samples_bytes(b), &pcm);
    if (!status) status = wt_cqt_enqueue_tile(both->there, p->stream, p->pcm, 0, b->signal.n, &tile, bins, 0);
    if (!status) status = wt_icqt_enqueue(both->back, p->stream, bins, 0, both->n_frames, b->signal.n, pcm, 0);
    return status ? status : give_samples(b, pcm, &analyze_like.icqt, parts);
}

// ---- the one with an inverse: two slices determine the half that they share

static int64_t n_halves(const analyze_options *o, int64_t n)
{
    const int half = analyze_half_slice(o);
    return (n + half - 1) / half;
}

wt_status analyze_insgt_of(const analyze_signal *s, const float *pcm, int64_t n, analyze_result *r)
{
    const wt_nsgt_config config = analyze_nsgt_config(s, 2, 1);
    wt_nsgt *nsgt;
    void *out;
    wt_status status = wt_nsgt_create(NULL, &config, &nsgt);
    if (status) return status;
    float *points = malloc(2 * sizeof *points * (size_t)wt_nsgt_coefficients(nsgt));
    status = points ? analyze_add(r, &analyze_like.insgt, 1, n, &out)
                    : wt_fail(WT_ERR_NO_MEMORY, "insgt: slices of %d samples", config.slice);
    for (int64_t at = 0; at < n_halves(s->options, n) && !status; at++) {
        status = wt_nsgt_forward(nsgt, pcm, n, at, points);
        if (!status) status = wt_nsgt_inverse(nsgt, points, n, at, out);
    }
    wt_nsgt_destroy(nsgt);
    free(points);
    return status;
}

wt_status analyze_insgt(const analyze_signal *s, analyze_result *r) { return analyze_insgt_of(s, s->pcm, s->n, r); }

wt_status analyze_gpu_insgt(const analyze_batch *b, analyze_result *parts)
{
    enum { MOST = 4 }; // halves at a time
    const analyze_place *p = b->signal.place;
    const int64_t n = b->signal.n, all = n_halves(b->signal.options, n), halves = all < MOST ? all : MOST;
    void *nsgt;
    wt_buffer *points = NULL, *pcm = NULL;
    wt_status status = analyze_kept_plan(b, &analyze_slices_maker, (int)halves + 1, &nsgt);
    const size_t bytes = status ? 0 : 2 * sizeof(float) * (size_t)wt_nsgt_coefficients(nsgt);
    if (!status) status = analyze_room(b, ROOM_POINTS, bytes, &points);
    if (!status) status = analyze_room(b, ROOM_BACK, samples_bytes(b), &pcm);
    for (int64_t at = 0; at < all && !status; at += halves) {
        status = wt_nsgt_enqueue_forward(nsgt, p->stream, p->pcm, 0, n, at, points, 0);
        if (!status) status = wt_nsgt_enqueue_inverse(nsgt, p->stream, points, 0, n, at, pcm, 0);
    }
    return status ? status : give_samples(b, pcm, &analyze_like.insgt, parts);
}
