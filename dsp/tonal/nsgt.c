// A worker takes line after line, a line being a slice of a channel: cut, transform, lay into rows, transform back; and
// the other way round. The slices' halves meet when all lines are done.

#include "nsgt_plan.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/kernel.h>
#include <warptone/simd.h>

enum { MAX_WORKERS = 64 };

typedef struct worker {
    wt_fft *forward, *inverse;             // of the slice
    wt_fft **rows_forward, **rows_inverse; // [n_groups]
    float *spectrum;                       // [slice / 2 + 1][2]
    float *points;                         // a group's rows of one line
} worker;

struct wt_nsgt {
    wt_device *device;
    wt__nsgt_plan plan;
    int n_workers;
    worker *workers;
    float *slices; // [n_lines][slice]
    wt__nsgt_cuda *cuda;
};

typedef struct job {
    const wt_nsgt *nsgt;
    const float *in;
    float *out;
    int64_t n, first;
    int n_workers;
} job;

// ---- life

static wt_status take_worker(const wt__nsgt_plan *plan, worker *w)
{
    const int slice = plan->config.slice;
    size_t most = 0;
    w->rows_forward = calloc((size_t)plan->n_groups, sizeof *w->rows_forward);
    w->rows_inverse = calloc((size_t)plan->n_groups, sizeof *w->rows_inverse);
    if (!w->rows_forward || !w->rows_inverse) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: worker");
    wt_status status = wt_fft_create(NULL, &(wt_fft_config){.n = slice, .kind = WT_FFT_REAL_TO_COMPLEX}, &w->forward);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = slice, .kind = WT_FFT_COMPLEX_TO_REAL}, &w->inverse);
    for (int g = 0; g < plan->n_groups && !status; g++) {
        const wt__nsgt_group *group = &plan->groups[g];
        wt_fft_config c = {.n = group->n_points, .batch = group->n_rows};
        status = wt_fft_create(NULL, &c, &w->rows_forward[g]);
        c.inverse = true;
        if (!status) status = wt_fft_create(NULL, &c, &w->rows_inverse[g]);
        const size_t n = (size_t)group->n_rows * (size_t)group->n_points;
        if (n > most) most = n;
    }
    if (status) return status;
    w->spectrum = calloc((size_t)slice + 2, sizeof(float));
    w->points = calloc(2 * most, sizeof(float));
    return w->spectrum && w->points ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "nsgt: worker of %d samples", slice);
}

static wt_status take_workers(wt_nsgt *s, bool on_gpu)
{
    int n = s->device && !on_gpu ? wt_device_get_info(s->device)->n_sms : 1;
    if (n > s->plan.n_lines) n = s->plan.n_lines;
    s->n_workers = n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : n;
    s->workers = calloc((size_t)s->n_workers, sizeof *s->workers);
    s->slices = calloc((size_t)s->plan.n_lines * (size_t)s->plan.config.slice, sizeof(float));
    if (!s->workers || !s->slices) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: %d slices", s->plan.n_lines);
    wt_status status = WT_OK;
    for (int i = 0; i < s->n_workers && !status; i++) status = take_worker(&s->plan, &s->workers[i]);
    return status;
}

wt_status wt_nsgt_create(wt_device *device, const wt_nsgt_config *config, wt_nsgt **nsgt)
{
    *nsgt = NULL;
    wt_nsgt *s = calloc(1, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: handle");
    const bool on_gpu = device && wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    s->device = device;
    wt_status status = wt__nsgt_plan_create(config, &s->plan);
    if (!status) status = take_workers(s, on_gpu);
    if (!status && on_gpu) status = wt__nsgt_cuda_create(device, &s->plan, &s->cuda);
    if (status)
        wt_nsgt_destroy(s);
    else
        *nsgt = s;
    return status;
}

static void free_worker(const wt__nsgt_plan *plan, worker *w)
{
    wt_fft_destroy(w->forward), wt_fft_destroy(w->inverse);
    for (int g = 0; g < plan->n_groups; g++) {
        if (w->rows_forward) wt_fft_destroy(w->rows_forward[g]);
        if (w->rows_inverse) wt_fft_destroy(w->rows_inverse[g]);
    }
    free(w->rows_forward), free(w->rows_inverse), free(w->spectrum), free(w->points);
}

void wt_nsgt_destroy(wt_nsgt *nsgt)
{
    if (!nsgt) return;
    wt__nsgt_cuda_destroy(nsgt->cuda);
    for (int i = 0; nsgt->workers && i < nsgt->n_workers; i++) free_worker(&nsgt->plan, &nsgt->workers[i]);
    free(nsgt->workers), free(nsgt->slices);
    wt__nsgt_plan_destroy(&nsgt->plan);
    free(nsgt);
}

int wt_nsgt_n_rows(const wt_nsgt *nsgt) { return nsgt->plan.n_rows; }

wt_nsgt_row wt_nsgt_get_row(const wt_nsgt *nsgt, int row)
{
    const wt_nsgt_place *r = &nsgt->plan.rows[row];
    return (wt_nsgt_row){nsgt->plan.hz[row], r->n_points, r->offset, r->stride};
}

int64_t wt_nsgt_coefficients(const wt_nsgt *nsgt) { return nsgt->plan.n_points; }

int64_t wt_nsgt_slices(const wt_nsgt *nsgt, int64_t n)
{
    return n < 1 ? 0 : (n - 1) / (nsgt->plan.config.slice / 2) + 2;
}

// ---- one line

WT_CLONES static void cut(const wt__nsgt_plan *plan, const float *pcm, int64_t n, int64_t first, float *slice)
{
    const int64_t length = plan->config.slice, low = first < 0 ? -first : 0, left = n - first;
    const int64_t begin = low < length ? low : length, end = left < begin ? begin : left < length ? left : length;
    memset(slice, 0, (size_t)begin * sizeof *slice);
    for (int64_t i = begin; i < end; i++) slice[i] = pcm[first + i] * plan->slice_window[i];
    memset(slice + end, 0, (size_t)(length - end) * sizeof *slice);
}

// A row's bins lie in its points by their index modulo their number: in two runs, begun by bins 0 and `wrap`.
typedef struct runs {
    int at, wrap;
} runs;

static runs runs_of(const wt_nsgt_place *row)
{
    const int at = row->first % row->n_points, room = row->n_points - at;
    return (runs){at, room < row->length ? room : row->length};
}

WT_CLONES static void weigh(const float *x, const float *g, int n, float *y)
{
    for (int j = 0; j < n; j++) y[2 * j] = g[j] * x[2 * j], y[2 * j + 1] = g[j] * x[2 * j + 1];
}

WT_CLONES static void add_weighed(const float *x, const float *g, int n, float *y)
{
    for (int j = 0; j < n; j++) y[2 * j] += g[j] * x[2 * j], y[2 * j + 1] += g[j] * x[2 * j + 1];
}

WT_RT static wt_status forward_line(const job *j, worker *w, int line)
{
    const wt__nsgt_plan *plan = &j->nsgt->plan;
    const wt_nsgt_config *c = &plan->config;
    float *slice = j->nsgt->slices + (size_t)line * (size_t)c->slice;
    const int64_t s = j->first + line % c->n_slices;
    cut(plan, j->in + line / c->n_slices * j->n, j->n, (s - 1) * (c->slice / 2), slice);
    wt_status status = wt_fft_run(w->forward, slice, w->spectrum);
    for (int g = 0; g < plan->n_groups && !status; g++) {
        const wt__nsgt_group *group = &plan->groups[g];
        const wt_nsgt_place *rows = plan->rows + group->first;
        float *points = j->out + 2 * (rows->offset + line * rows->stride);
        memset(points, 0, (size_t)rows->stride * 2 * sizeof *points);
        for (int r = 0; r < group->n_rows; r++) {
            const runs at = runs_of(&rows[r]);
            const float *x = w->spectrum + 2 * rows[r].first, *bump = plan->analysis + rows[r].window;
            float *y = points + 2 * (size_t)r * (size_t)group->n_points;
            weigh(x, bump, at.wrap, y + 2 * at.at);
            weigh(x + 2 * at.wrap, bump + at.wrap, rows[r].length - at.wrap, y);
        }
        status = wt_fft_run(w->rows_inverse[g], points, points);
    }
    return status;
}

WT_RT static wt_status inverse_line(const job *j, worker *w, int line)
{
    const wt__nsgt_plan *plan = &j->nsgt->plan;
    const int slice = plan->config.slice;
    wt_status status = WT_OK;
    memset(w->spectrum, 0, ((size_t)slice + 2) * sizeof(float));
    for (int g = 0; g < plan->n_groups && !status; g++) {
        const wt__nsgt_group *group = &plan->groups[g];
        const wt_nsgt_place *rows = plan->rows + group->first;
        status = wt_fft_run(w->rows_forward[g], j->in + 2 * (rows->offset + line * rows->stride), w->points);
        for (int r = 0; r < group->n_rows && !status; r++) {
            const runs at = runs_of(&rows[r]);
            const float *x = w->points + 2 * (size_t)r * (size_t)group->n_points;
            const float *bump = plan->synthesis + rows[r].window;
            float *y = w->spectrum + 2 * rows[r].first;
            add_weighed(x + 2 * at.at, bump, at.wrap, y);
            add_weighed(x, bump + at.wrap, rows[r].length - at.wrap, y + 2 * at.wrap);
        }
    }
    return status ? status : wt_fft_run(w->inverse, w->spectrum, j->nsgt->slices + (size_t)line * (size_t)slice);
}

// ---- all lines

static void forward_worker(const void *args, int index)
{
    const job *j = args;
    for (int line = index; line < j->nsgt->plan.n_lines; line += j->n_workers)
        if (forward_line(j, &j->nsgt->workers[index], line)) return;
}

static void inverse_worker(const void *args, int index)
{
    const job *j = args;
    for (int line = index; line < j->nsgt->plan.n_lines; line += j->n_workers)
        if (inverse_line(j, &j->nsgt->workers[index], line)) return;
}

// Each sample lies in two slices.
static void overlap_worker(const void *args, int index)
{
    const job *j = args;
    const wt_nsgt_config *c = &j->nsgt->plan.config;
    const int64_t hop = c->slice / 2;
    for (int i = index; i < c->channels * (c->n_slices - 1); i += j->n_workers) {
        const int channel = i / (c->n_slices - 1), s = i % (c->n_slices - 1);
        const float *a = j->nsgt->slices + (size_t)(channel * c->n_slices + s) * (size_t)c->slice + hop, *b = a + hop;
        const int64_t at = (j->first + s) * hop, left = j->n - at, end = left < hop ? left : hop;
        for (int64_t k = 0; k < end; k++) j->out[channel * j->n + at + k] = a[k] + b[k];
    }
}

static bool is_bad(int64_t n, int64_t first) { return n < 1 || first < 0 || first > INT64_MAX / WT_FFT_MAX_N; }

WT_RT wt_status wt_nsgt_forward(wt_nsgt *nsgt, const float *pcm, int64_t n, int64_t first, float *out)
{
    if (is_bad(n, first)) return WT_ERR_BAD_ARG;
    forward_worker(&(job){nsgt, pcm, out, n, first, 1}, 0);
    return WT_OK;
}

WT_RT wt_status wt_nsgt_inverse(wt_nsgt *nsgt, const float *in, int64_t n, int64_t first, float *pcm)
{
    if (is_bad(n, first)) return WT_ERR_BAD_ARG;
    const job j = {nsgt, in, pcm, n, first, 1};
    inverse_worker(&j, 0);
    overlap_worker(&j, 0);
    return WT_OK;
}

static wt_status check_range(const char *name, const wt_buffer *buffer, size_t offset, size_t bytes)
{
    const size_t room = wt_buffer_size_bytes(buffer);
    if (offset > room || bytes > room - offset || offset % 8)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: %s of %zu bytes at %zu, want it aligned to 8 within the buffer's %zu",
                       name, bytes, offset, room);
    return WT_OK;
}

static wt_status check_call(const wt_nsgt *s, const wt_buffer *pcm, size_t pcm_offset, int64_t n, int64_t first,
                            const wt_buffer *points, size_t points_offset)
{
    if (!s->device) return wt_fail(WT_ERR_BAD_ARG, "nsgt: made without a device, want one for streams");
    if (is_bad(n, first))
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: %lld samples from slice %lld, want 1 or more from 0 or later",
                       (long long)n, (long long)first);
    wt_status status =
        check_range("signal", pcm, pcm_offset, (size_t)n * (size_t)s->plan.config.channels * sizeof(float));
    return status ? status : check_range("rows", points, points_offset, (size_t)s->plan.n_points * 2 * sizeof(float));
}

wt_status wt_nsgt_enqueue_forward(wt_nsgt *nsgt, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset, int64_t n,
                                  int64_t first, wt_buffer *out, size_t out_offset)
{
    wt_status status = check_call(nsgt, pcm, pcm_offset, n, first, out, out_offset);
    if (status) return status;
    const float *in = (const float *)(wt_buffer_address(pcm) + pcm_offset);
    if (nsgt->cuda) return wt__nsgt_cuda_forward(nsgt->cuda, stream, in, n, first, out, out_offset);
    const job j = {nsgt, in, (float *)(wt_buffer_address(out) + out_offset), n, first, nsgt->n_workers};
    return wt_stream_run(stream, forward_worker, &j, sizeof j, j.n_workers);
}

wt_status wt_nsgt_enqueue_inverse(wt_nsgt *nsgt, wt_stream *stream, const wt_buffer *in, size_t in_offset, int64_t n,
                                  int64_t first, wt_buffer *pcm, size_t pcm_offset)
{
    wt_status status = check_call(nsgt, pcm, pcm_offset, n, first, in, in_offset);
    if (status) return status;
    float *out = (float *)(wt_buffer_address(pcm) + pcm_offset);
    if (nsgt->cuda) return wt__nsgt_cuda_inverse(nsgt->cuda, stream, in, in_offset, n, first, out);
    const job j = {nsgt, (const float *)(wt_buffer_address(in) + in_offset), out, n, first, nsgt->n_workers};
    status = wt_stream_run(stream, inverse_worker, &j, sizeof j, j.n_workers);
    return status ? status : wt_stream_run(stream, overlap_worker, &j, sizeof j, j.n_workers);
}
