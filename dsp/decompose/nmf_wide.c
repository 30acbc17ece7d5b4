// A side's products to memory, then its rows (kernels/decompose/nmf_wide.cu).

#include "nmf_wide.h"

#include "nmf_wide_kernel.h"
#include <stdlib.h>
#include <warptone/decompose.h>

enum { SQUARE = WT_NMF_SQUARE, THREADS = SQUARE * SQUARE };

struct wt__nmf_wide {
    wt_module *module;
    wt_kernel *multiply, *descend, *scale;
    wt_buffer *work;
    double *product, *by, *quotient; // [m or n][k], the same, [m][n]
};

wt_status wt__nmf_wide_create(wt_device *device, int m, int n, int k, wt__nmf_wide **wide)
{
    wt__nmf_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "nmf: CUDA plan");
    const size_t factors = (size_t)(m > n ? m : n) * (size_t)k, all = (size_t)m * (size_t)n;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, (2 * factors + all) * sizeof(double), &w->work);
    if (!status) status = wt__op_module(device, "kernels/decompose/nmf_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "nmf_wide_multiply", &w->multiply);
    if (!status) status = wt_module_get_kernel(w->module, "nmf_wide_descend", &w->descend);
    if (!status) status = wt_module_get_kernel(w->module, "nmf_wide_scale", &w->scale);
    if (status) return status;
    w->product = (double *)wt_buffer_address(w->work);
    w->by = w->product + factors, w->quotient = w->by + factors;
    return WT_OK;
}

void wt__nmf_wide_destroy(wt__nmf_wide *wide)
{
    if (!wide) return;
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->work);
    free(wide);
}

static wt_status multiply(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_multiply_args *args)
{
    const int down = (args->rows + SQUARE - 1) / SQUARE, across = (args->columns + SQUARE - 1) / SQUARE;
    const wt_launch launch = {.grid = {down * across}, .block = {THREADS}};
    return wt_kernel_launch(w->multiply, stream, &launch, &WT_ARG(*args), 1);
}

// out [m][k] = matrix [m][n] b [n][k]
static wt_status multiply_b(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_side_args *s, const double *matrix)
{
    const wt_nmf_multiply_args args = {.left = matrix,
                                       .right = s->b,
                                       .out = w->product,
                                       .left_row = s->n,
                                       .left_step = 1,
                                       .right_step = s->k,
                                       .right_column = 1,
                                       .rows = s->m,
                                       .depth = s->n,
                                       .columns = s->k};
    return multiply(w, stream, &args);
}

// gram [k][k] = b^T b
static wt_status multiply_gram(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_side_args *s)
{
    const wt_nmf_multiply_args args = {.left = s->b,
                                       .right = s->b,
                                       .out = s->gram,
                                       .left_row = 1,
                                       .left_step = s->k,
                                       .right_step = s->k,
                                       .right_column = 1,
                                       .rows = s->k,
                                       .depth = s->n,
                                       .columns = s->k};
    return multiply(w, stream, &args);
}

// by [m][k] = a gram
static wt_status multiply_a(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_side_args *s)
{
    const wt_nmf_multiply_args args = {.left = s->a,
                                       .right = s->gram,
                                       .out = w->by,
                                       .left_row = s->k,
                                       .left_step = 1,
                                       .right_step = s->k,
                                       .right_column = 1,
                                       .rows = s->m,
                                       .depth = s->k,
                                       .columns = s->k};
    return multiply(w, stream, &args);
}

// quotient [m][n] = v / (a b^T)
static wt_status divide(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_side_args *s)
{
    const wt_nmf_multiply_args args = {.left = s->a,
                                       .right = s->b,
                                       .over = s->v,
                                       .out = w->quotient,
                                       .left_row = s->k,
                                       .left_step = 1,
                                       .right_step = 1,
                                       .right_column = s->k,
                                       .rows = s->m,
                                       .depth = s->k,
                                       .columns = s->n};
    return multiply(w, stream, &args);
}

wt_status wt__nmf_wide_update(const wt__nmf_wide *w, wt_stream *stream, const wt_nmf_side_args *s)
{
    const bool divergence = s->solver == WT_NMF_MULTIPLICATIVE_KL, descends = s->solver == WT_NMF_CD;
    const wt_nmf_update_args update = {.a = s->a,
                                       .product = w->product,
                                       .by = s->solver == WT_NMF_MULTIPLICATIVE ? w->by : s->gram,
                                       .m = s->m,
                                       .k = s->k,
                                       .shared = divergence,
                                       .clip = s->clip};
    wt_status status = divergence ? divide(w, stream, s) : multiply_gram(w, stream, s);
    if (!status) status = multiply_b(w, stream, s, divergence ? w->quotient : s->v);
    if (!status && !descends && !divergence) status = multiply_a(w, stream, s);
    if (status) return status;
    const int64_t numbers = (int64_t)s->m * s->k;
    const wt_launch launch = {.grid = {descends ? s->m : (int)((numbers + THREADS - 1) / THREADS)}, .block = {THREADS}};
    return wt_kernel_launch(descends ? w->descend : w->scale, stream, &launch, &WT_ARG(update), 1);
}
