// In tiles of 64 frames and 128 bins, which with their margins stay in the second-level cache: magnitudes as keys,
// medians along time (lanes are neighbouring bins), the tile turned, medians along frequency (lanes are neighbouring
// frames), masks. Workers take every n-th tile, each with its own scratch; tiles do not depend on each other, so that
// the result does not depend on the workers.

#include "hpss.h"
#include "median_run.h"
#include "softmask.h"

#include <stdlib.h>
#include <warptone/kernel.h>

enum { TILE_FRAMES = 64, TILE_BINS = 128, MAX_WORKERS = 64 };

typedef struct scratch {
    int *keys;       // [TILE_FRAMES + kernel][TILE_BINS + kernel]
    int *turned;     // [TILE_BINS + kernel][TILE_FRAMES], then the percussive medians [TILE_FRAMES][TILE_BINS]
    int *harmonic;   // [TILE_FRAMES][TILE_BINS]
    int *percussive; // [TILE_BINS][TILE_FRAMES]
    int *medians;
} scratch;

struct wt_hpss {
    wt_device *device;
    wt_hpss_config config;
    int n_workers;
    scratch *workers;
    wt__hpss_cuda *cuda;
};

typedef struct job {
    const wt_hpss *hpss;
    const float *in;
    float *harmonic, *percussive;
    int64_t n_frames;
    int n_workers;
} job;

// One tile of one line.
typedef struct tile {
    const float *in;
    float *harmonic, *percussive;
    int64_t n_frames, frame;
    int bin, frames, bins; // where it begins, and what of it exists
} tile;

// ---- life

static wt_status resolve(wt_hpss_config *c)
{
    if (c->bins < 1 || c->bins > 1 << 24) return wt_fail(WT_ERR_BAD_ARG, "hpss: %d bins, want 1..16777216", c->bins);
    if (!c->lines) c->lines = 1;
    if (c->lines < 1 || c->lines > 65535) return wt_fail(WT_ERR_BAD_ARG, "hpss: %d lines, want 1..65535", c->lines);
    if (!c->kernel_harmonic) c->kernel_harmonic = 31;
    if (!c->kernel_percussive) c->kernel_percussive = 31;
    if (c->kernel_harmonic < 1 || c->kernel_harmonic > WT_HPSS_MAX_KERNEL || c->kernel_percussive < 1 ||
        c->kernel_percussive > WT_HPSS_MAX_KERNEL)
        return wt_fail(WT_ERR_BAD_ARG, "hpss: kernels %d and %d, want 1..%d", c->kernel_harmonic, c->kernel_percussive,
                       WT_HPSS_MAX_KERNEL);
    if (c->power == 0) c->power = 2;
    if (!(c->power > 0)) return wt_fail(WT_ERR_BAD_ARG, "hpss: power %g, want above 0", (double)c->power);
    if (c->margin_harmonic == 0) c->margin_harmonic = 1;
    if (c->margin_percussive == 0) c->margin_percussive = 1;
    if (!(c->margin_harmonic >= 1 && c->margin_percussive >= 1))
        return wt_fail(WT_ERR_BAD_ARG, "hpss: margins %g and %g, want 1 or more", (double)c->margin_harmonic,
                       (double)c->margin_percussive);
    return WT_OK;
}

static int tile_height(const wt_hpss_config *c)
{
    return TILE_FRAMES + c->kernel_harmonic - 1;
}

static int tile_width(const wt_hpss_config *c)
{
    return TILE_BINS + c->kernel_percussive - 1;
}

static wt_status take_scratch(const wt_hpss_config *c, scratch *s)
{
    const int longer = c->kernel_harmonic > c->kernel_percussive ? c->kernel_harmonic : c->kernel_percussive;
    s->keys = calloc((size_t)tile_height(c) * (size_t)tile_width(c), sizeof(int));
    s->turned = calloc((size_t)tile_width(c) * TILE_FRAMES, sizeof(int));
    s->harmonic = calloc(TILE_FRAMES * TILE_BINS, sizeof(int));
    s->percussive = calloc(TILE_FRAMES * TILE_BINS, sizeof(int));
    s->medians = calloc(wt__median_scratch(longer), sizeof(int));
    if (!s->keys || !s->turned || !s->harmonic || !s->percussive || !s->medians)
        return wt_fail(WT_ERR_NO_MEMORY, "hpss: scratch of a tile");
    return WT_OK;
}

static int workers_of(const wt_device *device)
{
    const int n = device ? wt_device_get_info(device)->n_sms : 1;
    return n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : n;
}

wt_status wt_hpss_create(wt_device *device, const wt_hpss_config *config, wt_hpss **hpss)
{
    *hpss = NULL;
    wt_hpss_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    wt_hpss *h = calloc(1, sizeof *h);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "hpss: handle");
    const bool on_gpu = device && wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    h->device = device;
    h->config = c;
    h->n_workers = on_gpu ? 1 : workers_of(device);
    h->workers = calloc((size_t)h->n_workers, sizeof *h->workers);
    if (!h->workers) status = wt_fail(WT_ERR_NO_MEMORY, "hpss: %d workers", h->n_workers);
    for (int i = 0; i < h->n_workers && !status; i++) status = take_scratch(&c, &h->workers[i]);
    if (!status && on_gpu) status = wt__hpss_cuda_create(device, &c, &h->cuda);
    if (status)
        wt_hpss_destroy(h);
    else
        *hpss = h;
    return status;
}

void wt_hpss_destroy(wt_hpss *hpss)
{
    if (!hpss) return;
    wt__hpss_cuda_destroy(hpss->cuda);
    for (int i = 0; hpss->workers && i < hpss->n_workers; i++) {
        const scratch *s = &hpss->workers[i];
        free(s->keys), free(s->turned), free(s->harmonic), free(s->percussive), free(s->medians);
    }
    free(hpss->workers);
    free(hpss);
}

// ---- one tile

WT_INLINE int magnitude_key(const float *in, int64_t at, bool complex_in)
{
    if (!complex_in) return wt__median_key(in[at]);
    return wt__median_key(sqrtf(in[2 * at] * in[2 * at] + in[2 * at + 1] * in[2 * at + 1]));
}

WT_CLONES static void fill_keys(const wt_hpss_config *c, const tile *t, int *keys)
{
    const int width = tile_width(c), first = t->bin - c->kernel_percussive / 2;
    const int inside = first < 0 ? -first : 0, end = c->bins - first < width ? c->bins - first : width;
    for (int r = 0; r < tile_height(c); r++, keys += width) {
        const int64_t frame = wt__median_mirror(t->frame + r - c->kernel_harmonic / 2, t->n_frames);
        const float *in = t->in + frame * c->bins * (c->complex_in ? 2 : 1);
        for (int x = 0; x < inside; x++)
            keys[x] = magnitude_key(in, wt__median_mirror(first + x, c->bins), c->complex_in);
        if (c->complex_in)
            for (int x = inside; x < end; x++) keys[x] = magnitude_key(in, first + x, true);
        else
            for (int x = inside; x < end; x++) keys[x] = magnitude_key(in, first + x, false);
        for (int x = end; x < width; x++)
            keys[x] = magnitude_key(in, wt__median_mirror(first + x, c->bins), c->complex_in);
    }
}

// [height][width] to [width][height], in squares that the first-level cache holds; they divide the height.
WT_CLONES static void turn(const int *keys, int height, int width, int *turned)
{
    enum { SQUARE = 16 };
    for (int x = 0; x < width; x += SQUARE)
        for (int f = 0; f < height; f += SQUARE)
            for (int i = x; i < x + SQUARE && i < width; i++)
                for (int j = f; j < f + SQUARE; j++) turned[i * height + j] = keys[j * width + i];
}

static void find_medians(const wt_hpss_config *c, const tile *t, const scratch *s)
{
    const int width = tile_width(c), before = c->kernel_percussive / 2;
    for (int f = 0; f < t->frames; f += WT__MEDIAN_RUN)
        for (int b = 0; b < t->bins; b += WT__MEDIAN_LANES)
            wt__median_run(s->keys + (size_t)f * (size_t)width + (size_t)(before + b), width, c->kernel_harmonic,
                           s->harmonic + f * TILE_BINS + b, TILE_BINS, s->medians);
    turn(s->keys + (size_t)(c->kernel_harmonic / 2) * (size_t)width, TILE_FRAMES, width, s->turned);
    for (int b = 0; b < t->bins; b += WT__MEDIAN_RUN)
        for (int f = 0; f < t->frames; f += WT__MEDIAN_LANES)
            wt__median_run(s->turned + b * TILE_FRAMES + f, TILE_FRAMES, c->kernel_percussive,
                           s->percussive + b * TILE_FRAMES + f, TILE_FRAMES, s->medians);
    turn(s->percussive, TILE_BINS, TILE_FRAMES, s->turned);
}

// The masks of one frame of a tile. The power is a constant where it is inlined.
WT_INLINE void mask_row(const wt_hpss_config *c, const scratch *s, int f, int n, float power, float *harmonic,
                        float *percussive)
{
    const float silent = c->margin_harmonic == 1 && c->margin_percussive == 1 ? 0.5f : 0.0f;
    float h[TILE_BINS], p[TILE_BINS];
    for (int b = 0; b < n; b++) p[b] = wt__median_value(s->turned[f * TILE_BINS + b]);
    for (int b = 0; b < n; b++) h[b] = wt__median_value(s->harmonic[f * TILE_BINS + b]);
    for (int b = 0; b < n; b++) harmonic[b] = wt__softmask(h[b], p[b] * c->margin_harmonic, power, silent);
    for (int b = 0; b < n; b++) percussive[b] = wt__softmask(p[b], h[b] * c->margin_percussive, power, silent);
}

WT_CLONES static void give_parts(const wt_hpss_config *c, const tile *t, const scratch *s)
{
    float h[TILE_BINS], p[TILE_BINS];
    const int width = c->complex_in ? 2 : 1, out_width = c->give_masks ? 1 : width, n = t->bins;
    for (int f = 0; f < t->frames; f++) {
        if (c->power == 2)
            mask_row(c, s, f, n, 2, h, p);
        else
            mask_row(c, s, f, n, c->power, h, p);
        const int64_t at = (t->frame + f) * c->bins + t->bin;
        const float *in = t->in + at * width;
        float *harmonic = t->harmonic + at * out_width, *percussive = t->percussive + at * out_width;
        if (c->give_masks) {
            for (int b = 0; b < n; b++) harmonic[b] = h[b], percussive[b] = p[b];
        } else if (c->complex_in) {
            for (int b = 0; b < n; b++) {
                const float re = in[2 * b], im = in[2 * b + 1];
                harmonic[2 * b] = re * h[b], harmonic[2 * b + 1] = im * h[b];
                percussive[2 * b] = re * p[b], percussive[2 * b + 1] = im * p[b];
            }
        } else {
            for (int b = 0; b < n; b++) {
                const float x = in[b];
                harmonic[b] = x * h[b], percussive[b] = x * p[b];
            }
        }
    }
}

// ---- all tiles

static void run_worker(const void *args, int worker)
{
    const job *j = args;
    const wt_hpss_config *c = &j->hpss->config;
    const scratch *s = &j->hpss->workers[worker];
    const int64_t across = (c->bins + TILE_BINS - 1) / TILE_BINS, down = (j->n_frames + TILE_FRAMES - 1) / TILE_FRAMES;
    const int64_t area = j->n_frames * c->bins;
    const int width = c->complex_in ? 2 : 1, out_width = c->give_masks ? 1 : width;
    for (int64_t i = worker; i < c->lines * down * across; i += j->n_workers) {
        const int64_t line = i / (down * across);
        tile t = {.in = j->in + line * area * width,
                  .harmonic = j->harmonic + line * area * out_width,
                  .percussive = j->percussive + line * area * out_width,
                  .n_frames = j->n_frames,
                  .frame = i / across % down * TILE_FRAMES,
                  .bin = (int)(i % across) * TILE_BINS};
        t.frames = j->n_frames - t.frame < TILE_FRAMES ? (int)(j->n_frames - t.frame) : TILE_FRAMES;
        t.bins = c->bins - t.bin < TILE_BINS ? c->bins - t.bin : TILE_BINS;
        fill_keys(c, &t, s->keys);
        find_medians(c, &t, s);
        give_parts(c, &t, s);
    }
}

WT_RT wt_status wt_hpss_run(wt_hpss *hpss, const float *in, int64_t n_frames, float *harmonic, float *percussive)
{
    if (n_frames < 1) return WT_ERR_BAD_ARG;
    run_worker(&(job){hpss, in, harmonic, percussive, n_frames, 1}, 0);
    return WT_OK;
}

static wt_status check_range(const char *name, const wt_buffer *buffer, size_t offset, size_t floats)
{
    const size_t room = wt_buffer_size_bytes(buffer);
    if (offset > room || floats * sizeof(float) > room - offset || offset % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "hpss: %s of %zu bytes at %zu, want it aligned within the buffer's %zu", name,
                       floats * sizeof(float), offset, room);
    return WT_OK;
}

wt_status wt_hpss_enqueue(wt_hpss *hpss, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n_frames,
                          wt_buffer *harmonic, size_t harmonic_offset, wt_buffer *percussive, size_t percussive_offset)
{
    const wt_hpss_config *c = &hpss->config;
    if (!hpss->device || wt_stream_device(stream) != hpss->device)
        return wt_fail(WT_ERR_BAD_ARG, "hpss: the stream belongs to another device than the plan");
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "hpss: %lld frames, want 1 or more", (long long)n_frames);
    const size_t area = (size_t)c->lines * (size_t)n_frames * (size_t)c->bins, width = c->complex_in ? 2 : 1;
    const size_t out_area = c->give_masks ? area : area * width;
    wt_status status = check_range("input", in, in_offset, area * width);
    if (!status) status = check_range("harmonic part", harmonic, harmonic_offset, out_area);
    if (!status) status = check_range("percussive part", percussive, percussive_offset, out_area);
    if (status) return status;
    const job j = {.hpss = hpss,
                   .in = (const float *)(wt_buffer_address(in) + in_offset),
                   .harmonic = (float *)(wt_buffer_address(harmonic) + harmonic_offset),
                   .percussive = (float *)(wt_buffer_address(percussive) + percussive_offset),
                   .n_frames = n_frames,
                   .n_workers = hpss->n_workers};
    if (hpss->cuda) return wt__hpss_cuda_enqueue(hpss->cuda, stream, c, j.in, n_frames, j.harmonic, j.percussive);
    return wt_stream_run(stream, run_worker, &j, sizeof j, hpss->n_workers);
}
