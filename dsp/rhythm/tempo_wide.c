// Windows that no block transforms: rows to memory, transforms in double there, a tile of rows at a time
// (kernels/rhythm/tempo_wide.cu).

#include "tempo_wide.h"

#include "fft_double_cuda.h"
#include "tempo_wide_kernel.h"

#include <stdlib.h>

enum { FILL, SCALE, POWER, GIVE, ADD, MEAN, KERNELS };

struct wt__tempo_wide {
    const char *op;
    int n_signals;
    wt__fft64_cuda fft;
    wt_module *module;
    wt_kernel *kernels[KERNELS];
    wt_buffer *window, *scales, *sums;
    wt_tempo_wide_args args;
};

static wt_status load(wt_device *device, wt__tempo_wide *w)
{
    static const char *const names[KERNELS] = {"tempo_wide_fill", "tempo_wide_scale", "tempo_wide_power",
                                               "tempo_wide_give", "tempo_wide_add",   "tempo_wide_mean"};
    wt_status status = wt__op_module(device, "kernels/rhythm/tempo_wide.cu", NULL, 0, &w->module);
    for (int i = 0; i < KERNELS && !status; i++) status = wt_module_get_kernel(w->module, names[i], &w->kernels[i]);
    return status;
}

wt_status wt__tempo_wide_create(const char *op, wt_device *device, const wt_tempogram_args *rows, int n_fft,
                                const float *window, int n_signals, wt__tempo_wide **wide)
{
    wt__tempo_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "%s: CUDA plan", op);
    w->op = op, w->n_signals = n_signals;
    wt_status status = wt__fft64_cuda_create(op, device, n_fft, n_signals * rows->n_rows, 1, &w->fft);
    if (!status) status = wt__op_upload(device, window, (size_t)rows->length * sizeof *window, &w->window);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)w->fft.rows * sizeof(double), &w->scales);
    if (!status) status = load(device, w);
    if (status) return status;
    w->args = (wt_tempo_wide_args){.rows = *rows,
                                   .in = w->fft.in,
                                   .out = w->fft.out,
                                   .scales = (double *)wt_buffer_address(w->scales),
                                   .n_fft = n_fft,
                                   .pitch = w->fft.points};
    w->args.rows.window = (const float *)wt_buffer_address(w->window);
    return WT_OK;
}

wt_status wt__tempo_wide_take_sums(wt__tempo_wide *wide, wt_device *device)
{
    const size_t count = (size_t)wide->n_signals * ((size_t)wide->args.n_fft / 2 + 1);
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, count * sizeof(double), &wide->sums);
    if (!status) wide->args.rows.sums = (double *)wt_buffer_address(wide->sums);
    return status;
}

void wt__tempo_wide_destroy(wt__tempo_wide *wide)
{
    if (!wide) return;
    wt__fft64_cuda_release(&wide->fft);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->window);
    wt_buffer_destroy(wide->scales);
    wt_buffer_destroy(wide->sums);
    free(wide);
}

const wt_tempogram_args *wt__tempo_wide_rows_args(const wt__tempo_wide *wide) { return &wide->args.rows; }

// A thread for each of `count` numbers, and a block for each of the tile's rows.
static wt_status each(const wt__tempo_wide *w, wt_stream *stream, int kernel, const wt_tempo_wide_args *a,
                      int64_t count)
{
    return wt__fft64_cuda_each(w->op, w->kernels[kernel], stream, WT_ARG(*a), count);
}

static wt_status each_row(const wt__tempo_wide *w, wt_stream *stream, int kernel, const wt_tempo_wide_args *a)
{
    const wt_launch launch = {.grid = {a->count}, .block = {256}};
    return wt_kernel_launch(w->kernels[kernel], stream, &launch, &WT_ARG(*a), 1);
}

// The tile of `all` rows that begins at `first`.
static void cut(const wt__tempo_wide *w, int64_t first, int64_t all, wt_tempo_wide_args *a)
{
    a->first = first;
    a->count = (int)(all - first < w->fft.rows ? all - first : w->fft.rows);
}

wt_status wt__tempo_wide_rows(const wt__tempo_wide *w, wt_stream *stream, const float *envelope, float *out)
{
    wt_tempo_wide_args a = w->args;
    const int64_t all = w->n_signals * a.rows.n_rows;
    wt_status status = WT_OK;
    a.rows.envelope = envelope, a.rows.out = out;
    for (int64_t first = 0; first < all && !status; first += w->fft.rows) {
        cut(w, first, all, &a);
        const int64_t numbers = (int64_t)a.count * a.n_fft;
        status = each(w, stream, FILL, &a, numbers);
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, a.count);
        if (!status) status = each(w, stream, POWER, &a, numbers);
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, a.count);
        if (!status) status = each_row(w, stream, GIVE, &a);
    }
    return status;
}

static wt_status add_rows(const wt__tempo_wide *w, wt_stream *stream, wt_tempo_wide_args *a)
{
    const int64_t n_rows = a->rows.n_rows, all = w->n_signals * n_rows;
    wt_status status = wt_stream_fill(stream, w->sums, 0, 0, wt_buffer_size_bytes(w->sums));
    for (int64_t first = 0; first < all && !status; first += w->fft.rows) {
        cut(w, first, all, a);
        const int64_t n_signals = (first + a->count - 1) / n_rows - first / n_rows + 1;
        status = each(w, stream, FILL, a, (int64_t)a->count * a->n_fft);
        if (!status) status = each_row(w, stream, SCALE, a);
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, a->count);
        if (!status) status = each(w, stream, ADD, a, n_signals * (a->n_fft / 2 + 1));
    }
    return status;
}

wt_status wt__tempo_wide_lags(const wt__tempo_wide *w, wt_stream *stream, const float *envelope, float *lags)
{
    wt_tempo_wide_args a = w->args;
    a.rows.envelope = envelope, a.rows.out = lags, a.rows.no_norm = 1;
    wt_status status = add_rows(w, stream, &a);
    for (int64_t first = 0; first < w->n_signals && !status; first += w->fft.rows) {
        cut(w, first, w->n_signals, &a);
        status = each(w, stream, MEAN, &a, (int64_t)a.count * a.n_fft);
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, a.count);
        if (!status) status = each_row(w, stream, GIVE, &a);
    }
    return status;
}
