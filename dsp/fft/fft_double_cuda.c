// Lengths with no prime factor above 13 go by passes of up to twenty points from one work buffer to the other; others
// by Bluestein's algorithm, whose filter a transform on the device makes.

#include "fft_double_cuda.h"
#include "spectrum_kernel.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORK_POINTS = 1 << 23, THREADS = 256 }; // of each buffer: 128 MB; smaller ones have too few rows to a launch

wt_status wt__fft64_cuda_each(const char *op, wt_kernel *kernel, wt_stream *stream, wt_arg args, int64_t count)
{
    const int64_t blocks = (count + THREADS - 1) / THREADS;
    if (blocks > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %lld numbers at once, want %lld at most", op, (long long)count,
                       (long long)INT_MAX * THREADS);
    const wt_launch launch = {.grid = {(int)blocks}, .block = {THREADS}};
    return count > 0 ? wt_kernel_launch(kernel, stream, &launch, &args, 1) : WT_OK;
}

// ---- creating

// The passes of n points; false where one of them would be of more than twenty.
static bool choose_passes(int n, wt__fft64_cuda *f)
{
    f->n_passes = 0;
    for (int rest = n; rest > 1; rest /= f->radix[f->n_passes++])
        if (!(f->radix[f->n_passes] = wt__spectrum_radix(rest))) return false;
    return true;
}

// Of so many points or more, the transform whose passes read and write least, in f.
static void choose_points(int least, wt__fft64_cuda *f)
{
    int64_t best = INT64_MAX;
    for (int n = least; n < 2 * least; n++) {
        if (!choose_passes(n, f) || (int64_t)n * f->n_passes >= best) continue;
        best = (int64_t)n * f->n_passes, f->points = n;
    }
    choose_passes(f->points, f);
}

static void put_root(int64_t turn, int64_t of, double *pair)
{
    const double angle = -2 * 3.14159265358979323846 * (double)(turn % of) / (double)of;
    pair[0] = cos(angle), pair[1] = sin(angle);
}

// roots [points], and with Bluestein's algorithm the chirp [n], its conjugate over points [n], room for the filter
// [points]
static wt_status make_tables(const char *op, wt_device *device, bool bluestein, wt__fft64_cuda *f)
{
    const size_t points = (size_t)f->points, n = (size_t)f->n, pairs = bluestein ? 2 * points + 2 * n : points;
    double *table = calloc(2 * pairs, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "%s: tables of %zu numbers", op, pairs);
    for (size_t k = 0; k < points; k++) put_root((int64_t)k, f->points, table + 2 * k);
    double *chirp = table + 2 * points, *back = chirp + 2 * n;
    for (size_t k = 0; k < n && bluestein; k++) {
        put_root((int64_t)k * (int64_t)k, 2 * (int64_t)f->n, chirp + 2 * k);
        back[2 * k] = chirp[2 * k] / f->points, back[2 * k + 1] = -chirp[2 * k + 1] / f->points;
    }
    wt_status status = wt__op_upload(device, table, 2 * pairs * sizeof *table, &f->tables);
    free(table);
    if (status || !bluestein) return status;
    f->chirp = (const double *)wt_buffer_address(f->tables) + 2 * points;
    f->back = f->chirp + 2 * n;
    f->filter = f->back + 2 * n;
    return WT_OK;
}

static wt_status load(wt_device *device, wt__fft64_cuda *f)
{
    wt_status status = WT_OK;
    for (int i = 0; i < (f->n_passes ? f->n_passes : 1) && !status; i++) {
        char options[1][48];
        snprintf(options[0], sizeof options[0], "-DFFT_RADIX=%d", f->n_passes ? f->radix[i] : 2);
        for (int k = 0; k < i && !f->passes[i]; k++)
            if (f->radix[k] == f->radix[i]) f->passes[i] = f->passes[k];
        if (f->passes[i]) continue;
        status = wt__op_module(device, "kernels/fft/fft_double.cu", options, 1, &f->modules[i]);
        if (!status) status = wt_module_get_kernel(f->modules[i], "fft_double_pass", &f->passes[i]);
    }
    return status ? status : wt_module_get_kernel(f->modules[0], "fft_double_product", &f->product);
}

static wt_fft_double_args args_of(const wt__fft64_cuda *f, int64_t rows)
{
    return (wt_fft_double_args){.from = f->in,
                                .to = f->in,
                                .roots = (const double *)wt_buffer_address(f->tables),
                                .rows = rows,
                                .points = f->points,
                                .done = 1,
                                .n = f->points};
}

// All passes, from work buffer `which`; the result is in *which.
static wt_status run_passes(const wt__fft64_cuda *f, wt_stream *stream, int64_t rows, int *which)
{
    wt_fft_double_args a = args_of(f, rows);
    wt_status status = WT_OK;
    for (int i = 0; i < f->n_passes && !status; i++, *which = 1 - *which, a.done *= f->radix[i - 1]) {
        a.from = (double *)wt_buffer_address(f->work[*which]);
        a.to = (double *)wt_buffer_address(f->work[1 - *which]);
        status = wt__fft64_cuda_each("fft", f->passes[i], stream, WT_ARG(a), rows * (f->points / f->radix[i]));
    }
    return status;
}

// The transform of the chirp's conjugate, as far as it reaches both ways.
static wt_status make_filter(wt_device *device, wt__fft64_cuda *f)
{
    double *row = calloc(2 * (size_t)f->points, sizeof *row);
    wt_stream *stream = NULL;
    wt_status status = row ? wt_stream_create(device, NULL, &stream)
                           : wt_fail(WT_ERR_NO_MEMORY, "fft: a filter of %d points", f->points);
    for (int k = 0; k < f->n && !status; k++) {
        double *to = row + 2 * k, *mirror = row + 2 * ((f->points - k) % f->points);
        put_root((int64_t)k * k, 2 * (int64_t)f->n, to);
        to[1] = -to[1], mirror[0] = to[0], mirror[1] = to[1];
    }
    const size_t bytes = 2 * (size_t)f->points * sizeof *row;
    int which = 0;
    if (!status) status = wt_stream_upload(stream, f->work[0], 0, row, bytes);
    if (!status) status = run_passes(f, stream, 1, &which);
    if (!status)
        status = wt_stream_copy(stream, f->tables, (size_t)((uintptr_t)f->filter - wt_buffer_address(f->tables)),
                                f->work[which], 0, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    free(row);
    return status;
}

wt_status wt__fft64_cuda_create(const char *op, wt_device *device, int n, int64_t rows, int step, wt__fft64_cuda *f)
{
    *f = (wt__fft64_cuda){.n = n, .points = n};
    const bool bluestein = !choose_passes(n, f);
    if (bluestein) choose_points(2 * n - 1, f);
    const int64_t most = WORK_POINTS / f->points / step * step;
    f->rows = (rows + step - 1) / step * step;
    if (f->rows > most) f->rows = most ? most : step;
    const size_t bytes = (size_t)f->rows * (size_t)f->points * 2 * sizeof(double);
    wt_status status = make_tables(op, device, bluestein, f);
    for (int i = 0; i < 2 && !status; i++) status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &f->work[i]);
    if (!status) status = load(device, f);
    if (status) return status;
    f->in = (double *)wt_buffer_address(f->work[0]);
    f->out = bluestein ? f->in : (double *)wt_buffer_address(f->work[f->n_passes % 2]);
    return bluestein ? make_filter(device, f) : WT_OK;
}

void wt__fft64_cuda_release(wt__fft64_cuda *f)
{
    for (int i = 0; i < WT__FFT64_PASSES; i++) wt_module_destroy(f->modules[i]);
    wt_buffer_destroy(f->tables);
    for (int i = 0; i < 2; i++) wt_buffer_destroy(f->work[i]);
}

// ---- running

// Work buffer `which` times a row of n numbers, in place.
static wt_status multiply(const wt__fft64_cuda *f, wt_stream *stream, int64_t rows, int which, const double *by, int n,
                          bool swap)
{
    wt_fft_double_args a = args_of(f, rows);
    a.from = a.to = (double *)wt_buffer_address(f->work[which]);
    a.roots = by, a.n = n, a.swap = swap;
    return wt__fft64_cuda_each("fft", f->product, stream, WT_ARG(a), rows * f->points);
}

wt_status wt__fft64_cuda_run(const wt__fft64_cuda *f, wt_stream *stream, int64_t rows)
{
    int which = 0;
    if (!f->chirp) return run_passes(f, stream, rows, &which);
    wt_status status = multiply(f, stream, rows, which, f->chirp, f->n, false);
    if (!status) status = run_passes(f, stream, rows, &which);
    if (!status) status = multiply(f, stream, rows, which, f->filter, f->points, true);
    if (!status) status = run_passes(f, stream, rows, &which);
    return status ? status : multiply(f, stream, rows, which, f->back, f->n, true); // parts exchanged: the inverse
}
