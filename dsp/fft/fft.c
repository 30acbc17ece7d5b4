// Plans and immediate calls: layouts, real transforms as complex ones of half the length, groups of transforms.

#include "fft_internal.h"
#include "fft_plan.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/kernel.h>

enum { REAL_PAIRS_LEAST = 128 };

// ---- creating

static wt_status check_layout(const wt_fft_config *c)
{
    const int values[] = {c->in_stride, c->in_distance, c->out_stride, c->out_distance};
    static const char *const names[] = {"in_stride", "in_distance", "out_stride", "out_distance"};
    for (int i = 0; i < 4; i++)
        if (values[i] < 0) return wt_fail(WT_ERR_BAD_ARG, "fft: %s %d, want 0 or more", names[i], values[i]);
    for (int i = 0; i < 4; i += 2)
        if ((int64_t)values[i] * c->n > INT_MAX)
            return wt_fail(WT_ERR_BAD_ARG, "fft: %s %d, want at most %d for length %d", names[i], values[i],
                           INT_MAX / c->n, c->n);
    return WT_OK;
}

static wt_status check_config(const wt_fft_config *c)
{
    if (c->n < 1 || c->n > WT_FFT_MAX_N)
        return wt_fail(WT_ERR_BAD_ARG, "fft: length %d, want 1..%d", c->n, WT_FFT_MAX_N);
    if (c->batch < 0 || c->batch > WT_FFT_MAX_BATCH)
        return wt_fail(WT_ERR_BAD_ARG, "fft: batch %d, want 0..%d", c->batch, WT_FFT_MAX_BATCH);
    if ((unsigned)c->kind > WT_FFT_COMPLEX_TO_REAL)
        return wt_fail(WT_ERR_BAD_ARG, "fft: kind %d, want 0..%d", (int)c->kind, WT_FFT_COMPLEX_TO_REAL);
    if (c->inverse && c->kind == WT_FFT_REAL_TO_COMPLEX)
        return wt_fail(WT_ERR_BAD_ARG, "fft: an inverse transform from real to complex does not exist");
    return check_layout(c);
}

static void resolve(wt_fft *plan, const wt_fft_config *config)
{
    wt_fft_config *c = &plan->config;
    *c = *config;
    plan->bins = c->n / 2 + 1;
    plan->in_count = c->kind == WT_FFT_COMPLEX_TO_REAL ? plan->bins : c->n;
    plan->out_count = c->kind == WT_FFT_REAL_TO_COMPLEX ? plan->bins : c->n;
    plan->in_width = c->kind == WT_FFT_REAL_TO_COMPLEX ? 1 : 2;
    plan->out_width = c->kind == WT_FFT_COMPLEX_TO_REAL ? 1 : 2;
    if (!c->batch) c->batch = 1;
    if (!c->in_stride) c->in_stride = 1;
    if (!c->out_stride) c->out_stride = 1;
    if (!c->in_distance) c->in_distance = (plan->in_count - 1) * c->in_stride + 1;
    if (!c->out_distance) c->out_distance = (plan->out_count - 1) * c->out_stride + 1;
    if (c->kind == WT_FFT_COMPLEX_TO_REAL) c->inverse = true;
    plan->halved = c->kind != WT_FFT_COMPLEX && c->n % 2 == 0;
}

// Threads of a CPU device that can work on the batch at once.
static int count_slots(const wt_fft *plan)
{
    if (!plan->device || wt_device_get_info(plan->device)->backend != WT_BACKEND_CPU) return 1;
    int groups = (plan->config.batch + plan->group - 1) / plan->group,
        threads = wt_device_get_info(plan->device)->n_sms;
    return threads < 1 ? 1 : groups < threads ? groups : threads;
}

static void choose_short(wt_fft *plan)
{
    const wt_fft_config *c = &plan->config;
    plan->scale = c->inverse ? (float)(1.0 / c->n) : plan->halved ? 0.5f : 1;
    if (plan->pairs) {
        if (!plan->halved) plan->rows = wt__fft_core_rows_fn(plan->core, c->inverse, &plan->passes);
        return;
    }
    if (c->kind == WT_FFT_COMPLEX)
        plan->one = wt__fft_core_short(plan->core, c->inverse ? WT__FFT_BACK : WT__FFT_FORWARD, &plan->passes);
    else if (plan->halved)
        plan->one = wt__fft_core_short(plan->core, c->inverse ? WT__FFT_FOLD : WT__FFT_BINS, &plan->passes);
}

// Of real signals, those that tiles and short calls are not better for.
static bool takes_pairs(const wt_fft *plan) { return plan->halved && plan->config.n >= REAL_PAIRS_LEAST; }

wt_status wt__fft_create_lanes(wt_device *device, const wt_fft_config *config, int max_lanes, wt_fft **plan)
{
    *plan = NULL;
    wt_status status = check_config(config);
    if (status) return status;
    wt_fft *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "fft: plan");
    resolve(p, config);
    p->device = device;

    status = wt__fft_core_create(p->halved ? p->config.n / 2 : p->config.n, max_lanes, &p->core);
    if (status) goto fail;
    p->pairs = wt__fft_core_pairs(p->core) && (p->config.kind == WT_FFT_COMPLEX || takes_pairs(p));
    if (p->halved)
        status = (p->pairs ? wt__fft_pairs_twiddles : wt__fft_real_twiddles)(p->config.n / 2, &p->real_twiddles);
    if (status) goto fail;
    choose_short(p);
    p->group = wt__fft_core_group(p->core);
    p->row = (ptrdiff_t)wt__fft_padded(2 * (size_t)p->config.n + 2);
    p->core_floats = wt__fft_padded(wt__fft_core_scratch_floats(p->core));
    p->scratch_floats = p->core_floats + (size_t)(p->group + 2) * p->row;
    p->n_slots = count_slots(p);
    p->scratch = aligned_alloc(64, p->n_slots * p->scratch_floats * sizeof(float));
    if (!p->scratch) {
        status = wt_fail(WT_ERR_NO_MEMORY, "fft: %d x %zu floats of scratch", p->n_slots, p->scratch_floats);
        goto fail;
    }
    if (device && wt_device_get_info(device)->backend == WT_BACKEND_CUDA) {
        status = wt__fft_cuda_create(p, &p->cuda);
        if (status) goto fail;
    }
    *plan = p;
    return WT_OK;

fail:
    wt_fft_destroy(p);
    return status;
}

wt_status wt_fft_create(wt_device *device, const wt_fft_config *config, wt_fft **plan)
{
    return wt__fft_create_lanes(device, config, 0, plan);
}

void wt_fft_destroy(wt_fft *plan)
{
    if (!plan) return;
    wt__fft_cuda_destroy(plan->cuda);
    wt__fft_core_destroy(plan->core);
    free(plan->real_twiddles);
    free(plan->scratch);
    free(plan);
}

// ---- one group: `count` <= group transforms from rows to rows

typedef struct rows {
    float *data;
    ptrdiff_t distance; // floats
} rows;

// The plan's scratch: the core's, then rows for one side, and two rows to spare.
typedef struct areas {
    float *core, *in, *spare;
} areas;

static areas lay_areas(const wt_fft *plan, float *scratch)
{
    areas a = {.core = scratch};
    a.in = scratch + plan->core_floats;
    a.spare = a.in + plan->group * plan->row;
    return a;
}

static wt__fft_side split_side(const wt_fft *plan, float *area)
{
    return (wt__fft_side){area, area + plan->row / 2, plan->row, WT__FFT_SPLIT};
}

static wt__fft_side pairs_side(rows r, bool swapped)
{
    return (wt__fft_side){r.data, NULL, r.distance, swapped ? WT__FFT_SWAPPED : WT__FFT_PAIRS};
}

WT_RT static void forward_real(const wt_fft *plan, const areas *a, rows in, rows out, int count)
{
    const wt__fft_kernels *k = wt__fft_core_kernels(plan->core);
    const int n = plan->config.n;
    wt__fft_side z = wt__fft_core_output(plan->core, a->core), x = pairs_side(in, false);
    if (!plan->halved) {
        x = split_side(plan, a->in);
        for (int row = 0; row < count; row++) {
            memcpy(x.re + row * x.distance, in.data + row * in.distance, (size_t)n * sizeof(float));
            memset(x.im + row * x.distance, 0, (size_t)n * sizeof(float));
        }
    }
    wt__fft_core_run(plan->core, a->core, &x, &z, count, plan->scale);
    for (int row = 0; row < count; row++) {
        const float *z_re = z.re + row * z.distance, *z_im = z.im + row * z.distance;
        float *bins = out.data + row * out.distance;
        if (plan->halved)
            k->real_bins[WT__FFT_PAIRS](z_re, z_im, plan->real_twiddles, n / 2, bins, NULL);
        else
            k->join(z_re, z_im, bins, plan->bins, 1);
    }
}

// The whole spectrum of a real signal of odd length from its bins.
static void unfold(const float *re, const float *im, int n, float *x_re, float *x_im)
{
    x_re[0] = re[0], x_im[0] = 0;
    for (int k = 1; k <= n / 2; k++) {
        x_re[k] = x_re[n - k] = re[k];
        x_im[k] = im[k];
        x_im[n - k] = -im[k];
    }
}

WT_RT static void inverse_real(const wt_fft *plan, const areas *a, rows in, rows out, int count)
{
    const wt__fft_kernels *k = wt__fft_core_kernels(plan->core);
    const int n = plan->config.n;
    wt__fft_side z = wt__fft_core_input(plan->core, a->core), x = split_side(plan, a->in);
    float *re = a->spare, *im = a->spare + plan->row;
    for (int row = 0; row < count; row++) {
        const float *bins = in.data + row * in.distance;
        float *z_re = z.re + row * z.distance, *z_im = z.im + row * z.distance;
        if (plan->halved) {
            k->real_fold[WT__FFT_PAIRS](bins, NULL, plan->real_twiddles, n / 2, z_re, z_im);
        } else {
            k->split(bins, re, im, plan->bins);
            unfold(re, im, n, z_re, z_im);
        }
    }
    wt__fft_side from = {z.im, z.re, z.distance, WT__FFT_SPLIT};
    if (plan->halved) {
        wt__fft_side to = pairs_side(out, true);
        wt__fft_core_run(plan->core, a->core, &from, &to, count, plan->scale);
        return;
    }
    wt__fft_side to = {x.im, x.re, x.distance, WT__FFT_SPLIT};
    wt__fft_core_run(plan->core, a->core, &from, &to, count, plan->scale);
    for (int row = 0; row < count; row++)
        memcpy(out.data + row * out.distance, x.re + row * x.distance, (size_t)n * sizeof(float));
}

WT_RT static void run_pairs(const wt_fft *plan, float *scratch, rows in, rows out, int count)
{
    const wt_fft_config *c = &plan->config;
    if (!plan->halved) {
        wt__fft_core_rows(plan->core, scratch, in.data, in.distance, out.data, out.distance, count, c->inverse,
                          plan->scale);
        return;
    }
    for (; count; count--, in.data += in.distance, out.data += out.distance) {
        if (c->inverse)
            wt__fft_core_real_back(plan->core, scratch, plan->real_twiddles, in.data, NULL, WT__FFT_PAIRS, plan->scale,
                                   out.data);
        else
            wt__fft_core_real(plan->core, scratch, plan->real_twiddles, in.data, NULL, plan->scale, NULL,
                              WT__FFT_PAIRS, out.data, NULL);
    }
}

WT_RT static void run_group(const wt_fft *plan, const areas *a, rows in, rows out, int count)
{
    const wt_fft_config *c = &plan->config;
    if (plan->pairs) {
        run_pairs(plan, a->core, in, out, count);
    } else if (plan->one && (count < plan->group || plan->group == 1)) {
        for (int row = 0; row < count; row++)
            plan->one(plan->passes, plan->real_twiddles, in.data + row * in.distance, out.data + row * out.distance,
                      plan->scale);
    } else if (plan->halved && plan->group > 1 && count == plan->group) {
        const wt__fft_side x = pairs_side(in, false), y = pairs_side(out, false);
        (c->inverse ? wt__fft_core_fold : wt__fft_core_bins)(plan->core, a->core, plan->real_twiddles, &x, &y,
                                                             plan->scale);
    } else if (c->kind == WT_FFT_REAL_TO_COMPLEX) {
        forward_real(plan, a, in, out, count);
    } else if (c->kind == WT_FFT_COMPLEX_TO_REAL) {
        inverse_real(plan, a, in, out, count);
    } else {
        wt__fft_side x = pairs_side(in, c->inverse), y = pairs_side(out, c->inverse);
        wt__fft_core_run(plan->core, a->core, &x, &y, count, plan->scale);
    }
}

// ---- layouts

static void gather(const float *from, int stride, int width, int count, float *to)
{
    for (int i = 0; i < count; i++)
        for (int part = 0; part < width; part++) to[i * width + part] = from[(ptrdiff_t)i * stride * width + part];
}

static void scatter(const float *from, int stride, int width, int count, float *to)
{
    for (int i = 0; i < count; i++)
        for (int part = 0; part < width; part++) to[(ptrdiff_t)i * stride * width + part] = from[i * width + part];
}

/// Transforms begin .. end - 1 of the batch with the caller's scratch of plan->scratch_floats.  [rt]
WT_RT static void run_range(const wt_fft *plan, float *scratch, const float *in, float *out, int begin, int end)
{
    const wt_fft_config *c = &plan->config;
    const areas a = lay_areas(plan, scratch);
    const ptrdiff_t in_step = (ptrdiff_t)c->in_distance * plan->in_width;
    const ptrdiff_t out_step = (ptrdiff_t)c->out_distance * plan->out_width;
    const int most = plan->pairs && c->in_stride == 1 && c->out_stride == 1 ? end - begin : plan->group;
    for (int b = begin; b < end; b += most) {
        int count = end - b < most ? end - b : most;
        rows x = {(float *)in + b * in_step, in_step}, y = {out + b * out_step, out_step};
        rows from = x, to = y;
        if (c->in_stride != 1) {
            from = (rows){a.in, plan->row};
            for (int row = 0; row < count; row++)
                gather(x.data + row * x.distance, c->in_stride, plan->in_width, plan->in_count,
                       from.data + row * from.distance);
        }
        if (c->out_stride != 1) to = (rows){a.in, plan->row};
        run_group(plan, &a, from, to, count);
        for (int row = 0; row < count && c->out_stride != 1; row++)
            scatter(to.data + row * to.distance, c->out_stride, plan->out_width, plan->out_count,
                    y.data + row * y.distance);
    }
}

WT_RT wt_status wt_fft_run(wt_fft *plan, const float *in, float *out)
{
    const wt_fft_config *c = &plan->config;
    if (c->batch == 1 && c->in_stride == 1 && c->out_stride == 1) { // short ones feel the way through the layouts
        if (plan->rows) {
            plan->rows(plan->passes, in, 0, out, 0, 1, plan->scale);
            return WT_OK;
        }
        if (plan->one) {
            plan->one(plan->passes, plan->real_twiddles, in, out, plan->scale);
            return WT_OK;
        }
        const areas a = lay_areas(plan, plan->scratch);
        run_group(plan, &a, (rows){(float *)in, 0}, (rows){out, 0}, 1);
        return WT_OK;
    }
    run_range(plan, plan->scratch, in, out, 0, plan->config.batch);
    return WT_OK;
}

// ---- on a stream

typedef struct slots {
    const wt_fft *plan;
    const float *in;
    float *out;
} slots;

static void run_slot(const void *args, int slot)
{
    const slots *s = args;
    const wt_fft *plan = s->plan;
    const int64_t groups = (plan->config.batch + plan->group - 1) / plan->group;
    int64_t begin = groups * slot / plan->n_slots * plan->group,
            end = groups * (slot + 1) / plan->n_slots * plan->group;
    if (end > plan->config.batch) end = plan->config.batch;
    run_range(plan, plan->scratch + slot * plan->scratch_floats, s->in, s->out, (int)begin, (int)end);
}

static wt_status check_range(const char *side, const wt_buffer *buffer, size_t offset, size_t width, size_t elements)
{
    if (!buffer) return wt_fail(WT_ERR_BAD_ARG, "fft: no %s buffer", side);
    const size_t unit = width * sizeof(float), need = elements * unit, size = wt_buffer_size_bytes(buffer);
    if (offset % unit) return wt_fail(WT_ERR_BAD_ARG, "fft: %s offset %zu, want a multiple of %zu", side, offset, unit);
    if (offset > size || need > size - offset)
        return wt_fail(WT_ERR_BAD_ARG, "fft: %s takes %zu bytes at %zu, the buffer has %zu", side, need, offset, size);
    return WT_OK;
}

static size_t span(int batch, int distance, int count, int stride)
{
    return (size_t)(batch - 1) * (size_t)distance + (size_t)(count - 1) * (size_t)stride + 1;
}

wt_status wt_fft_enqueue(wt_fft *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                         size_t out_offset)
{
    const wt_fft_config *c = &plan->config;
    if (!plan->device) return wt_fail(WT_ERR_BAD_ARG, "fft: the plan has no device");
    if (wt_stream_device(stream) != plan->device)
        return wt_fail(WT_ERR_BAD_ARG, "fft: the stream belongs to another device than the plan");
    wt_status status = check_range("in", in, in_offset, (size_t)plan->in_width,
                                   span(c->batch, c->in_distance, plan->in_count, c->in_stride));
    if (status) return status;
    status = check_range("out", out, out_offset, (size_t)plan->out_width,
                         span(c->batch, c->out_distance, plan->out_count, c->out_stride));
    if (status) return status;
    uintptr_t from = wt_buffer_address(in) + in_offset, to = wt_buffer_address(out) + out_offset;
    if (plan->cuda) return wt__fft_cuda_enqueue(plan, stream, from, to);
    slots s = {plan, (const float *)from, (float *)to};
    return wt_stream_run(stream, run_slot, &s, sizeof s, plan->n_slots);
}

// ---- for other ops

bool wt__fft_weighs(const wt_fft *plan)
{
    return plan->pairs || (plan->halved && wt__fft_core_weighs(plan->core));
}

WT_RT void wt__fft_real_weighted(wt_fft *plan, const float *in, const float *weights, wt__fft_form form, float *re,
                                 float *im)
{
    if (plan->pairs) {
        wt__fft_core_real(plan->core, plan->scratch, plan->real_twiddles, in, weights, weights ? 1 : 0.5f, NULL, form,
                          re, im);
        return;
    }
    wt__fft_side x = {(float *)in, (float *)weights, 0, weights ? WT__FFT_WEIGHTED : WT__FFT_PAIRS};
    wt__fft_side z = wt__fft_core_output(plan->core, plan->scratch);
    wt__fft_core_run(plan->core, plan->scratch, &x, &z, 1, weights ? 1 : 0.5f);
    wt__fft_core_kernels(plan->core)->real_bins[form](z.re, z.im, plan->real_twiddles, plan->config.n / 2, re, im);
}

WT_RT void wt__fft_real_row(wt_fft *plan, const float *in, const float *weights, wt__fft_past *past, float *row)
{
    if (plan->pairs)
        wt__fft_core_real(plan->core, plan->scratch, plan->real_twiddles, in, weights, 1, past, WT__FFT_PAIRS, row,
                          NULL);
    else
        wt__fft_core_row(plan->core, plan->scratch, plan->real_twiddles, in, weights, past, row);
}

WT_RT void wt__fft_real_forward(wt_fft *plan, const float *in, float *re, float *im)
{
    const areas a = lay_areas(plan, plan->scratch);
    const int n = plan->config.n;
    if (plan->halved) {
        wt__fft_real_weighted(plan, in, NULL, WT__FFT_SPLIT, re, im);
        return;
    }
    memset(a.spare, 0, (size_t)n * sizeof(float));
    wt__fft_side x = {(float *)in, a.spare, 0, WT__FFT_SPLIT}, z = wt__fft_core_output(plan->core, a.core);
    wt__fft_core_run(plan->core, a.core, &x, &z, 1, 1);
    memcpy(re, z.re, (size_t)plan->bins * sizeof(float));
    memcpy(im, z.im, (size_t)plan->bins * sizeof(float));
}

WT_RT void wt__fft_real_inverse(wt_fft *plan, const float *re, const float *im, float *out)
{
    const areas a = lay_areas(plan, plan->scratch);
    const int n = plan->config.n;
    if (plan->pairs) {
        wt__fft_core_real_back(plan->core, a.core, plan->real_twiddles, re, im, WT__FFT_SPLIT, (float)(1.0 / n),
                               out);
        return;
    }
    wt__fft_side z = wt__fft_core_input(plan->core, a.core);
    wt__fft_side from = {z.im, z.re, 0, WT__FFT_SPLIT}, to = {out, NULL, 0, WT__FFT_SWAPPED};
    if (plan->halved) {
        wt__fft_core_kernels(plan->core)->real_fold[WT__FFT_SPLIT](re, im, plan->real_twiddles, n / 2, z.re, z.im);
    } else {
        unfold(re, im, n, z.re, z.im);
        to = (wt__fft_side){a.spare, out, 0, WT__FFT_SPLIT};
    }
    wt__fft_core_run(plan->core, a.core, &from, &to, 1, (float)(1.0 / n));
}
