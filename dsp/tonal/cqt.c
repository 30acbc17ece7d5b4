// A signal runs through in chunks. Each level of the cascade, the signal at one rate, keeps a line of what its octaves'
// next frames need; whatever is appended there goes through the 2:1 filter and on to the next level. Sixteen frames at
// a time are transformed, their spectra side by side, so that the filters' few numbers each meet sixteen frames.
// Memory depends on filters and hop alone.

#include "cqt_plan.h"
#include "cqt_precise.h"
#include "halve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/kernel.h>
#include <warptone/simd.h>

enum { CHUNK = 8192, FRAMES = 16, MAX_WORKERS = 64 };

#include "cqt_level.h"

typedef struct line {
    float *x;
    int margin, fill, capacity;
    int64_t origin, n; // sample of the signal at x[0]; samples so far
    int64_t end;       // samples it has in all,
    int64_t sounding;  // of which the last one may be a zero
    bool started;      // the margin before the signal is filled
    wt__halver *half;  // on to the next level; NULL at the last
    float *halved;     // [CHUNK] what it gives
} line;

typedef struct worker {
    line *lines;       // [n_levels]
    wt_fft **ffts;     // [n_parts]
    int64_t *frame;    // [n_parts] the next one
    float *spectra;    // [FRAMES][bins][2]
    float *spectrum;   // [bins][FRAMES][2] of the bins that filters use
    float *windowed;   // [FRAMES][n_fft] of a pseudo part
    float *rows;       // [n_rows][FRAMES][2]
    wt__cqt_precise *precise; // in place of transforms and filters, or NULL
} worker;

struct wt_cqt {
    wt_device *device;
    wt__cqt_plan plan;
    float *window; // of the pseudo part
    int n_workers;
    worker *workers;
    wt__cqt_cuda *cuda;
};

typedef struct job {
    const wt_cqt *cqt;
    const float *pcm;
    float *out;
    int64_t n, n_frames;
    wt_cqt_tile tile; // `count` frames from `first` on, not beyond n_frames
    int n_workers;
} job;

// ---- life

static wt_status take_line(const wt__cqt_plan *plan, int level, line *l)
{
    int batch = 0;
    for (int i = 0; i < plan->n_parts; i++) {
        const wt__cqt_part *p = &plan->parts[i];
        if (p->level != level) continue;
        const int needs = (FRAMES + 1) * p->hop + p->n_fft;
        if (p->n_fft / 2 > l->margin) l->margin = p->n_fft / 2;
        if (needs > batch) batch = needs;
    }
    l->capacity = 4 * l->margin + 2 * batch + 2 * CHUNK;
    l->x = calloc((size_t)l->capacity, sizeof(float));
    l->halved = calloc(CHUNK, sizeof(float));
    if (!l->x || !l->halved) return wt_fail(WT_ERR_NO_MEMORY, "cqt: line of %d samples", l->capacity);
    if (level + 1 == plan->n_levels) return WT_OK;
    const bool early = level < plan->early;
    return wt__halver_create(early ? plan->early : 1, early ? level : 0, plan->config.precise, &l->half);
}

static wt_status take_worker(const wt__cqt_plan *plan, worker *w)
{
    int n_fft = 1, n_rows = 1;
    w->lines = calloc((size_t)plan->n_levels, sizeof *w->lines);
    w->ffts = calloc((size_t)plan->n_parts, sizeof *w->ffts);
    w->frame = calloc((size_t)plan->n_parts, sizeof *w->frame);
    if (!w->lines || !w->ffts || !w->frame) return wt_fail(WT_ERR_NO_MEMORY, "cqt: worker");
    wt_status status = WT_OK;
    for (int i = 0; i < plan->n_levels && !status; i++) status = take_line(plan, i, &w->lines[i]);
    for (int i = 0; i < plan->n_parts && !status; i++) {
        const wt__cqt_part *p = &plan->parts[i];
        if (p->n_fft > n_fft) n_fft = p->n_fft;
        if (p->n_rows > n_rows) n_rows = p->n_rows;
        status = wt_fft_create(NULL, &(wt_fft_config){.n = p->n_fft, .batch = FRAMES, .kind = WT_FFT_REAL_TO_COMPLEX,
                                                      .in_distance = p->pseudo ? p->n_fft : p->hop}, &w->ffts[i]);
    }
    if (status) return status;
    w->spectra = calloc((size_t)(n_fft / 2 + 1) * FRAMES * 2, sizeof(float));
    w->spectrum = calloc((size_t)(n_fft / 2 + 1) * FRAMES * 2, sizeof(float));
    w->windowed = calloc((size_t)n_fft * FRAMES, sizeof(float));
    w->rows = calloc((size_t)n_rows * FRAMES * 2, sizeof(float));
    if (!w->spectra || !w->spectrum || !w->windowed || !w->rows)
        return wt_fail(WT_ERR_NO_MEMORY, "cqt: spectra of %d points", n_fft);
    return WT_OK;
}

static wt_status take_window(wt_cqt *q)
{
    for (int i = 0; i < q->plan.n_parts; i++) {
        if (!q->plan.parts[i].pseudo) continue;
        q->window = calloc((size_t)q->plan.parts[i].n_fft, sizeof(float));
        if (!q->window) return wt_fail(WT_ERR_NO_MEMORY, "cqt: window");
        return wt_window_fill(&(wt_window_config){.n = q->plan.parts[i].n_fft}, q->window);
    }
    return WT_OK;
}

wt_status wt_cqt_create(wt_device *device, const wt_cqt_config *config, int64_t max_samples, wt_cqt **cqt)
{
    *cqt = NULL;
    wt_cqt *q = calloc(1, sizeof *q);
    if (!q) return wt_fail(WT_ERR_NO_MEMORY, "cqt: handle");
    q->device = device;
    wt_status status = wt__cqt_plan_create(config, &q->plan);
    const bool on_gpu = device && wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    int n = device && !on_gpu ? wt_device_get_info(device)->n_sms : 1;
    if (n > q->plan.config.channels) n = q->plan.config.channels;
    q->n_workers = n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : n;
    if (!status) status = take_window(q);
    if (!status) {
        q->workers = calloc((size_t)q->n_workers, sizeof *q->workers);
        if (!q->workers) status = wt_fail(WT_ERR_NO_MEMORY, "cqt: %d workers", q->n_workers);
    }
    for (int i = 0; i < q->n_workers && !status; i++) {
        status = take_worker(&q->plan, &q->workers[i]);
        if (!status && config->precise) status = wt__cqt_precise_create(&q->plan, q->window, &q->workers[i].precise);
    }
    if (!status && on_gpu) status = wt__cqt_cuda_create(device, &q->plan, max_samples, &q->cuda);
    if (status)
        wt_cqt_destroy(q);
    else
        *cqt = q;
    return status;
}

static void free_worker(const wt__cqt_plan *plan, worker *w)
{
    for (int i = 0; w->lines && i < plan->n_levels; i++) {
        wt__halver_destroy(w->lines[i].half);
        free(w->lines[i].x);
        free(w->lines[i].halved);
    }
    for (int i = 0; w->ffts && i < plan->n_parts; i++) wt_fft_destroy(w->ffts[i]);
    wt__cqt_precise_destroy(w->precise);
    free(w->lines), free(w->ffts), free(w->frame), free(w->spectra), free(w->spectrum), free(w->windowed),
        free(w->rows);
}

void wt_cqt_destroy(wt_cqt *cqt)
{
    if (!cqt) return;
    wt__cqt_cuda_destroy(cqt->cuda);
    for (int i = 0; cqt->workers && i < cqt->n_workers; i++) free_worker(&cqt->plan, &cqt->workers[i]);
    free(cqt->workers);
    free(cqt->window);
    wt__cqt_plan_destroy(&cqt->plan);
    free(cqt);
}

int wt_cqt_bins(const wt_cqt *cqt)
{
    return cqt->plan.config.n_bins;
}

int64_t wt_cqt_frames(const wt_cqt *cqt, int64_t n)
{
    return wt__cqt_plan_frames(&cqt->plan, n);
}

int64_t wt_cqt_reach(const wt_cqt *cqt)
{
    return wt__cqt_plan_reach(&cqt->plan);
}

double wt_cqt_frequency_hz(const wt_cqt *cqt, int k)
{
    return cqt->plan.hz[k];
}

double wt_cqt_length_samples(const wt_cqt *cqt, int k)
{
    return cqt->plan.lengths[k];
}

// ---- sixteen frames of one octave

// The bins that the part's filters use, of sixteen frames side by side. A transform that wrote its bins apart would
// take two to three times as long.
static void interleave(const wt__cqt_part *p, const float *spectra, float *spectrum)
{
    const int bins = p->n_fft / 2 + 1;
    int first = bins, last = -1;
    for (int i = 0; i < p->begin[p->n_rows]; i++) {
        if (p->bin[i] < first) first = p->bin[i];
        if (p->bin[i] > last) last = p->bin[i];
    }
    for (int k = first; k <= last; k++)
        for (int f = 0; f < FRAMES; f++)
            memcpy(spectrum + (k * FRAMES + f) * 2, spectra + (f * bins + k) * 2, 2 * sizeof(float));
}

// The same of magnitudes and real filters; the result is magnitudes as it stands, in the real parts.
WT_CLONES static void project_pseudo(const wt__cqt_part *p, float *spectrum, float *rows)
{
    for (int k = 0; k <= p->n_fft / 2; k++)
        for (int f = 0; f < FRAMES; f++) {
            const float *z = spectrum + (k * FRAMES + f) * 2;
            spectrum[k * FRAMES + f] = sqrtf(z[0] * z[0] + z[1] * z[1]);
        }
    for (int r = 0; r < p->n_rows; r++, rows += 2 * FRAMES) {
        float sum[FRAMES] = {0};
        for (int i = p->begin[r]; i < p->begin[r + 1]; i++)
            for (int f = 0; f < FRAMES; f++) sum[f] += p->value[i] * spectrum[p->bin[i] * FRAMES + f];
        for (int f = 0; f < FRAMES; f++) rows[2 * f] = sum[f], rows[2 * f + 1] = 0;
    }
}

WT_RT static void give(const wt__cqt_plan *plan, const wt__cqt_part *p, const float *rows, int n, float *out)
{
    const int n_bins = plan->config.n_bins;
    for (int f = 0; f < n; f++)
        for (int r = 0; r < p->n_rows; r++) {
            const float re = rows[(r * FRAMES + f) * 2], im = rows[(r * FRAMES + f) * 2 + 1];
            const size_t at = (size_t)f * (size_t)n_bins + (size_t)(p->first + r);
            if (plan->magnitude)
                out[at] = sqrtf(re * re + im * im);
            else
                out[2 * at] = re, out[2 * at + 1] = im;
        }
}

WT_CLONES static void cut_frames(const float *x, const wt__cqt_part *p, const float *window, float *frames)
{
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < p->n_fft; i++) frames[f * p->n_fft + i] = x[f * p->hop + i] * window[i];
}

// The rows of sixteen frames at x.
WT_RT static wt_status take_rows(const job *j, worker *w, int part, const float *x)
{
    const wt__cqt_part *p = &j->cqt->plan.parts[part];
    if (w->precise) {
        wt__cqt_precise_rows(w->precise, part, x, w->rows);
        return WT_OK;
    }
    if (p->pseudo) {
        cut_frames(x, p, j->cqt->window, w->windowed);
        x = w->windowed;
    }
    wt_status status = wt_fft_run(w->ffts[part], x, w->spectra);
    if (status) return status;
    interleave(p, w->spectra, w->spectrum);
    if (p->pseudo)
        project_pseudo(p, w->spectrum, w->rows);
    else
        WT_LEVEL_CALL(project, p, w->spectrum, w->rows);
    return WT_OK;
}

WT_RT static wt_status give_frames(const job *j, worker *w, int part, int n, float *out)
{
    const wt__cqt_plan *plan = &j->cqt->plan;
    const wt__cqt_part *p = &plan->parts[part];
    const line *l = &w->lines[p->level];
    const float *x = l->x + (w->frame[part] * p->hop - p->n_fft / 2 - l->origin);
    wt_status status = take_rows(j, w, part, x);
    if (status) return status;
    const int64_t width = plan->config.n_bins * (plan->magnitude ? 1 : 2);
    give(plan, p, w->rows, n, out + w->frame[part] * width);
    w->frame[part] += n;
    return WT_OK;
}

// ---- lines

// The sample at `at` before or behind the signal, from the line. Zeros need no filling.
static float outside(const line *l, int64_t at, wt_stft_pad pad)
{
    const int64_t n = l->n;
    if (pad == WT_STFT_PAD_EDGE || n == 1) return l->x[(at < 0 ? 0 : n - 1) - l->origin];
    const int symmetric = pad == WT_STFT_PAD_SYMMETRIC;
    const int64_t period = symmetric ? 2 * n : 2 * (n - 1);
    at %= period;
    if (at < 0) at += period;
    return l->x[(at < n ? at : period - at - symmetric) - l->origin];
}

WT_RT static void start_line(line *l, wt_stft_pad pad)
{
    if (pad != WT_STFT_PAD_ZERO)
        for (int i = 1; i <= l->margin; i++) l->x[l->margin - i] = outside(l, -i, pad);
    l->started = true;
}

WT_RT static wt_status give_ready(const job *j, worker *w, int level, bool all, float *out)
{
    line *l = &w->lines[level];
    const wt__cqt_plan *plan = &j->cqt->plan;
    const int64_t end = j->tile.first + j->tile.count;
    int64_t needed = l->n - l->margin - 1; // what padding behind the end may reflect
    for (int i = 0; i < plan->n_parts; i++) {
        const wt__cqt_part *p = &plan->parts[i];
        if (p->level != level) continue;
        for (;;) {
            const int64_t left = end - w->frame[i], needs = (w->frame[i] + FRAMES - 1) * p->hop + p->n_fft / 2;
            if (left < 1 || (!all && needs > l->n)) break;
            wt_status status = give_frames(j, w, i, left < FRAMES ? (int)left : FRAMES, out);
            if (status) return status;
        }
        const int64_t next = w->frame[i] * p->hop - p->n_fft / 2;
        if (w->frame[i] < end && next < needed) needed = next;
    }
    const int64_t past = needed - l->origin;
    if (past > CHUNK || l->fill > l->capacity / 2) {
        if (past <= 0) return WT_OK;
        l->fill -= (int)past, l->origin += past;
        memmove(l->x, l->x + past, (size_t)l->fill * sizeof(float));
    }
    return WT_OK;
}

WT_RT static wt_status append(const job *j, worker *w, int level, const float *x, int n, float *out)
{
    line *l = &w->lines[level];
    const wt_stft_pad pad = j->cqt->plan.config.pad;
    const int n_all = n;
    if (n > l->end - l->n) n = (int)(l->end - l->n);
    float *kept = l->x + l->fill;
    memcpy(kept, x, (size_t)n * sizeof(float));
    if (l->n + n > l->sounding) kept[n - 1] = 0;
    const bool early = level < j->cqt->plan.early; // then what lies behind the signal goes on too
    const int made = l->half ? wt__halver_process(l->half, early ? x : kept, early ? n_all : n, l->halved) : 0;
    l->fill += n, l->n += n;
    if (!l->started && l->n > l->margin) start_line(l, pad);
    wt_status status = l->started ? give_ready(j, w, level, false, out) : WT_OK;
    if (status || !l->half) return status;
    return append(j, w, level + 1, l->halved, made, out);
}

WT_RT static wt_status finish(const job *j, worker *w, int level, float *out)
{
    line *l = &w->lines[level];
    const wt_stft_pad pad = j->cqt->plan.config.pad;
    wt_status status = WT_OK;
    if (l->half) {
        const int made = wt__halver_drain(l->half, l->halved);
        status = append(j, w, level + 1, l->halved, made, out);
        if (!status) status = finish(j, w, level + 1, out);
    }
    if (status) return status;
    if (!l->started) start_line(l, pad);
    memset(l->x + l->fill, 0, (size_t)(l->capacity - l->fill) * sizeof(float));
    for (int i = 0; i < l->margin && pad != WT_STFT_PAD_ZERO; i++) l->x[l->fill + i] = outside(l, l->n + i, pad);
    return give_ready(j, w, level, true, out);
}

// ---- whole signals

// Silence behind a signal that is halved early.
WT_RT static wt_status append_tail(const job *j, worker *w, float *out)
{
    static const float zeros[CHUNK];
    const int early = j->cqt->plan.early;
    for (int64_t left = early ? (int64_t)WT__CQT_TAIL << early : 0; left > 0; left -= CHUNK) {
        wt_status status = append(j, w, 0, zeros, left < CHUNK ? (int)left : CHUNK, out);
        if (status) return status;
    }
    return WT_OK;
}

WT_RT static wt_status run_channel(const job *j, worker *w, const float *pcm, float *out)
{
    const wt__cqt_plan *plan = &j->cqt->plan;
    for (int i = 0; i < plan->n_levels; i++) {
        line *l = &w->lines[i];
        memset(l->x, 0, (size_t)l->margin * sizeof(float));
        l->fill = l->margin, l->origin = -l->margin, l->n = 0, l->started = false;
        l->end = wt__cqt_samples(j->n, i);
        l->sounding = i == plan->early ? wt__cqt_sounding(j->n, i) : l->end;
        if (l->half) wt__halver_reset(l->half, wt__cqt_phase(j->tile.begin, i + 1));
    }
    for (int i = 0; i < plan->n_parts; i++) w->frame[i] = j->tile.first;
    wt_status status = WT_OK;
    for (int64_t at = 0; at < j->n && !status; at += CHUNK) {
        const int n = j->n - at < CHUNK ? (int)(j->n - at) : CHUNK;
        status = append(j, w, 0, pcm + at, n, out);
    }
    if (!status) status = append_tail(j, w, out);
    return status ? status : finish(j, w, 0, out);
}

static void run_worker(const void *args, int index)
{
    const job *j = args;
    const wt__cqt_plan *plan = &j->cqt->plan;
    const int64_t stride = j->n_frames * plan->config.n_bins * (plan->magnitude ? 1 : 2);
    for (int c = index; c < plan->config.channels; c += j->n_workers)
        if (run_channel(j, &j->cqt->workers[index], j->pcm + c * j->n, j->out + c * stride)) return;
}

/// With the count of its frames; NULL = the whole. False: not of n samples.
WT_RT static bool resolve_tile(const wt_cqt *q, int64_t n, const wt_cqt_tile *tile, wt_cqt_tile *resolved)
{
    const int64_t group = (int64_t)FRAMES * q->plan.config.hop, n_frames = wt_cqt_frames(q, n);
    wt_cqt_tile *p = resolved;
    *p = tile ? *tile : (wt_cqt_tile){.count = n_frames};
    if (n < 1 || p->begin < 0 || p->begin % group || p->count < 0) return false;
    if (p->first < 0 || p->first >= n_frames || p->first % FRAMES) return false;
    if (!p->count || p->count > n_frames - p->first) p->count = n_frames - p->first;
    return true;
}

static wt_status tile_fail(const wt_cqt *q, int64_t n, const wt_cqt_tile *tile)
{
    const long long group = (long long)FRAMES * q->plan.config.hop;
    if (n < 1) return wt_fail(WT_ERR_BAD_ARG, "cqt: %lld samples, want 1 or more", (long long)n);
    if (tile->begin < 0 || tile->begin % group)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: the tile begins at sample %lld, want 0 or a multiple of %lld (%d hops)",
                       (long long)tile->begin, group, FRAMES);
    if (tile->count < 0)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: %lld frames of the tile, want 1 or more, or 0 for all",
                       (long long)tile->count);
    return wt_fail(WT_ERR_BAD_ARG, "cqt: from frame %lld of the tile on, want a multiple of %d below its %lld frames",
                   (long long)tile->first, FRAMES, (long long)wt_cqt_frames(q, n));
}

WT_RT wt_status wt_cqt_run_tile(wt_cqt *cqt, const float *pcm, int64_t n, const wt_cqt_tile *tile, float *out)
{
    job j = {.cqt = cqt, .pcm = pcm, .out = out, .n = n, .n_frames = wt_cqt_frames(cqt, n), .n_workers = 1};
    if (!resolve_tile(cqt, n, tile, &j.tile)) return WT_ERR_BAD_ARG;
    run_worker(&j, 0);
    return WT_OK;
}

WT_RT wt_status wt_cqt_run(wt_cqt *cqt, const float *pcm, int64_t n, float *out)
{
    return wt_cqt_run_tile(cqt, pcm, n, NULL, out);
}

static wt_status check_range(const char *name, const wt_buffer *buffer, size_t offset, size_t floats)
{
    const size_t room = wt_buffer_size_bytes(buffer);
    if (offset > room || floats * sizeof(float) > room - offset || offset % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "cqt: %s of %zu bytes at %zu, want it aligned within the buffer's %zu", name,
                       floats * sizeof(float), offset, room);
    return WT_OK;
}

wt_status wt_cqt_enqueue_tile(wt_cqt *cqt, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n,
                              const wt_cqt_tile *tile, wt_buffer *out, size_t out_offset)
{
    const wt__cqt_plan *plan = &cqt->plan;
    wt_cqt_tile resolved;
    if (!cqt->device || wt_stream_device(stream) != cqt->device)
        return wt_fail(WT_ERR_BAD_ARG, "cqt: the stream belongs to another device than the plan");
    if (!resolve_tile(cqt, n, tile, &resolved)) return tile_fail(cqt, n, tile);
    const int64_t n_frames = wt_cqt_frames(cqt, n), channels = plan->config.channels;
    const size_t width = plan->magnitude ? 1 : 2;
    wt_status status = check_range("input", in, in_offset, (size_t)(channels * n));
    if (!status)
        status = check_range("output", out, out_offset, (size_t)(channels * n_frames * plan->config.n_bins) * width);
    if (status) return status;
    const job j = {.cqt = cqt,
                   .pcm = (const float *)(wt_buffer_address(in) + in_offset),
                   .out = (float *)(wt_buffer_address(out) + out_offset),
                   .n = n,
                   .n_frames = n_frames,
                   .tile = resolved,
                   .n_workers = cqt->n_workers};
    if (cqt->cuda) return wt__cqt_cuda_enqueue(cqt->cuda, stream, j.pcm, n, &j.tile, j.out);
    return wt_stream_run(stream, run_worker, &j, sizeof j, cqt->n_workers);
}

wt_status wt_cqt_enqueue(wt_cqt *cqt, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n,
                         wt_buffer *out, size_t out_offset)
{
    return wt_cqt_enqueue_tile(cqt, stream, in, in_offset, n, NULL, out, out_offset);
}
