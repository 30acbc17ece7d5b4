// Coordinate descent: x[j] moves to the best value its column allows, the residual follows. A column of a mel bank
// touches two bands, so a sweep over 1025 bins costs no more than the bank itself. Vectors run along eight frames.

#include "nnls_cuda.h"
#include "nnls_internal.h"

#include <warptone/mel_inverse.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

enum { LANES = WT__NNLS_LANES };

#include "nnls_level.h"

// Columns t .. t + count - 1 of b.
static void solve_tile(const wt__nnls_problem *p, const float *b, int64_t n, int64_t t, int count, int n_sweeps,
                       float *out)
{
    double peak = 0, *x = p->x, *residual = p->residual;
    memset(residual, 0, (size_t)p->n_rows * LANES * sizeof *residual);
    memset(x, 0, (size_t)p->n_columns * LANES * sizeof *x);
    for (int j = 0; j < p->n_columns; j++)
        for (int k = 0; k < count; k++) x[j * LANES + k] = fmax(0, out[j * n + t + k]);
    for (int i = 0; i < p->n_rows; i++)
        for (int k = 0; k < count; k++) {
            double sum = b[i * n + t + k];
            peak = fmax(peak, fabs(sum));
            for (int j = 0; j < p->n_columns; j++)
                if (i >= p->begins[j] && i < p->ends[j])
                    sum -= p->a[(size_t)j * (size_t)p->n_rows + (size_t)i] * x[j * LANES + k];
            residual[i * LANES + k] = sum;
        }
    for (int s = 0; s < n_sweeps && WT_LEVEL_CALL(sweep, p, x, residual) > WT__NNLS_ENOUGH * peak;) s++;
    for (int j = 0; j < p->n_columns; j++)
        for (int k = 0; k < count; k++) out[j * n + t + k] = (float)x[j * LANES + k];
}

void wt__nnls_solve(const wt__nnls_problem *p, const float *b, int64_t n, int n_sweeps, float *x)
{
    for (int64_t t = 0; t < n; t += LANES) solve_tile(p, b, n, t, n - t < LANES ? (int)(n - t) : LANES, n_sweeps, x);
}

wt_status wt__nnls_pose(const double *a, int n_rows, int n_columns, wt__nnls_problem *p)
{
    const size_t rows = (size_t)n_rows, columns = (size_t)n_columns;
    const size_t doubles = (rows + columns) * LANES + rows * columns + columns;
    double *work = aligned_alloc(64, (doubles * sizeof(double) + 63) / 64 * 64);
    int *ranges = calloc(2 * columns, sizeof *ranges);
    *p = (wt__nnls_problem){.n_rows = n_rows, .n_columns = n_columns, .work = work, .ranges = ranges};
    if (!work || !ranges) return wt_fail(WT_ERR_NO_MEMORY, "nnls: matrix of %d * %d", n_rows, n_columns);
    double *turned = work + (rows + columns) * LANES, *squares = turned + rows * columns;
    for (size_t j = 0; j < columns; j++) {
        squares[j] = 0;
        ranges[j] = n_rows;
        for (size_t i = 0; i < rows; i++) {
            const double value = turned[j * rows + i] = a[i * columns + j];
            squares[j] += value * value;
            if (value != 0 && (int)i < ranges[j]) ranges[j] = (int)i;
            if (value != 0) ranges[columns + j] = (int)i + 1;
        }
    }
    p->residual = work, p->x = work + rows * LANES;
    p->a = turned, p->squares = squares;
    p->begins = ranges, p->ends = ranges + columns;
    return WT_OK;
}

void wt__nnls_dismiss(wt__nnls_problem *p)
{
    free(p->work);
    free(p->ranges);
}

static wt_status check(int n_rows, int n_columns, int64_t n)
{
    if (n_rows >= 1 && n_columns >= 1 && n >= 1) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "nnls: %d rows, %d columns, %lld right sides, want 1 or more", n_rows, n_columns,
                   (long long)n);
}

enum { MOST_SWEEPS = 10000 };

wt_status wt_nnls_run(const double *a, int n_rows, int n_columns, const float *b, int64_t n, bool from_x, int n_sweeps,
                      float *x)
{
    wt__nnls_problem p;
    wt_status status = check(n_rows, n_columns, n);
    if (status) return status;
    status = wt__nnls_pose(a, n_rows, n_columns, &p);
    if (!status) {
        if (!from_x) memset(x, 0, (size_t)n_columns * (size_t)n * sizeof *x);
        wt__nnls_solve(&p, b, n, n_sweeps ? n_sweeps : MOST_SWEEPS, x);
    }
    wt__nnls_dismiss(&p);
    return status;
}

// ---- many signals on a stream

struct wt_nnls {
    wt_nnls_config config; // defaults resolved
    wt_device *device;
    int n_slots;
    wt__nnls_problem *slots;
    wt__nnls_cuda *cuda; // NULL on a CPU
};

static wt_status make_cuda(wt_nnls *p)
{
    const wt__nnls_problem *q = &p->slots[0];
    const wt_nnls_config *c = &p->config;
    const wt__nnls_shape shape = {.a = c->a,
                                  .squares = q->squares,
                                  .begins = q->begins,
                                  .ends = q->ends,
                                  .n_rows = c->n_rows,
                                  .n_columns = c->n_columns,
                                  .n_signals = c->n_signals,
                                  .n_sweeps = c->n_sweeps,
                                  .start = c->from_x ? NNLS_FROM_X : NNLS_FROM_ZERO,
                                  .n = c->n,
                                  .power = 1,
                                  .enough = WT__NNLS_ENOUGH};
    return wt__nnls_cuda_create("nnls", p->device, &shape, &p->cuda);
}

wt_status wt_nnls_create(wt_device *device, const wt_nnls_config *config, wt_nnls **plan)
{
    *plan = NULL;
    wt_nnls_config c = *config;
    if (!c.n_signals) c.n_signals = 1;
    if (!c.n_sweeps) c.n_sweeps = MOST_SWEEPS;
    wt_status status = check(c.n_rows, c.n_columns, c.n);
    if (!status && !device) status = wt_fail(WT_ERR_BAD_ARG, "nnls: a plan without a device");
    if (!status && c.n_signals < 1) status = wt_fail(WT_ERR_BAD_ARG, "nnls: %d signals, want 1 or more", c.n_signals);
    if (status) return status;
    wt_nnls *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "nnls: plan");
    p->config = c, p->device = device;
    p->n_slots = wt__op_slots(device, c.n_signals);
    p->slots = calloc((size_t)p->n_slots, sizeof *p->slots);
    status = p->slots ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "nnls: %d threads", p->n_slots);
    for (int i = 0; i < p->n_slots && !status; i++) status = wt__nnls_pose(c.a, c.n_rows, c.n_columns, &p->slots[i]);
    if (!status && wt__op_on_gpu(device)) status = make_cuda(p);
    p->config.a = NULL;
    if (status)
        wt_nnls_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_nnls_destroy(wt_nnls *plan)
{
    if (!plan) return;
    wt__nnls_cuda_destroy(plan->cuda);
    for (int i = 0; plan->slots && i < plan->n_slots; i++) wt__nnls_dismiss(&plan->slots[i]);
    free(plan->slots);
    free(plan);
}

typedef struct call {
    const wt_nnls *plan;
    const float *b;
    float *x;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_nnls_config *f = &c->plan->config;
    for (int64_t signal = slot; signal < f->n_signals; signal += c->plan->n_slots) {
        float *x = c->x + signal * f->n_columns * f->n;
        if (!f->from_x) memset(x, 0, (size_t)(f->n_columns * f->n) * sizeof *x);
        wt__nnls_solve(&c->plan->slots[slot], c->b + signal * f->n_rows * f->n, f->n, f->n_sweeps, x);
    }
}

wt_status wt_nnls_enqueue(wt_nnls *plan, wt_stream *stream, const wt_buffer *b, size_t b_offset, wt_buffer *x,
                          size_t x_offset)
{
    const size_t sides = (size_t)plan->config.n_signals * (size_t)plan->config.n;
    wt_status status = wt__op_stream("nnls", plan->device, stream);
    if (!status) status = wt__op_range("nnls", "b", b, b_offset, sides * (size_t)plan->config.n_rows);
    if (!status) status = wt__op_range("nnls", "x", x, x_offset, sides * (size_t)plan->config.n_columns);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(b) + b_offset), (float *)(wt_buffer_address(x) + x_offset)};
    if (plan->cuda) return wt__nnls_cuda_enqueue(plan->cuda, stream, c.b, c.x);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
