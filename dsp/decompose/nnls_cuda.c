// One launch for as many signals as the work space holds; the matrix lies there column by column.

#include "nnls_cuda.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>

#define WORK_BYTES (4LL << 30)

struct wt__nnls_cuda {
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *doubles, *ints, *work, *residuals;
    wt_nnls_args args;
    wt_launch launch; // of all signals at once
    int n_signals, at_once;
};

// doubles: sums [n_rows], sizes [n_columns], parts [n_columns], values, shares; ints: begins [n_columns], offsets
// [n_columns + 1]
static void write_tables(const wt__nnls_shape *s, size_t n_values, double *doubles, int *ints)
{
    const int columns = s->n_columns;
    double *sizes = doubles + s->n_rows, *parts = sizes + columns, *values = parts + columns;
    double *shares = values + n_values;
    int at = 0;
    for (int m = 0; m < s->n_rows && s->sums; m++) doubles[m] = s->sums[m];
    for (int j = 0; j < columns; j++) {
        sizes[j] = sqrt(s->squares[j]), parts[j] = s->squares[j] > 0 ? 1 / s->squares[j] : 0;
        ints[j] = s->begins[j], ints[columns + j] = at;
        for (int m = s->begins[j]; m < s->ends[j]; m++, at++) {
            values[at] = s->a[(size_t)m * (size_t)columns + (size_t)j];
            if (s->shares) shares[at] = s->shares[(size_t)m * (size_t)columns + (size_t)j];
        }
    }
    ints[2 * columns] = at;
}

static wt_status make_tables(const char *op, wt_device *device, const wt__nnls_shape *s, wt__nnls_cuda *c)
{
    size_t n_values = 1; // never empty
    for (int j = 0; j < s->n_columns; j++)
        if (s->ends[j] > s->begins[j]) n_values += (size_t)(s->ends[j] - s->begins[j]);
    const size_t columns = (size_t)s->n_columns, n_shares = s->shares ? n_values : 0;
    const size_t n_doubles = (size_t)s->n_rows + 2 * columns + n_values + n_shares;
    double *doubles = calloc(n_doubles, sizeof *doubles);
    int *ints = calloc(2 * columns + 1, sizeof *ints);
    wt_status status = doubles && ints ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: tables of %zu doubles", op, n_doubles);
    if (!status && n_values > INT32_MAX)
        status = wt_fail(WT_ERR_UNSUPPORTED, "%s: a matrix of %d * %d on a GPU, want fewer than 2^31 numbers (17 GB)",
                         op, s->n_rows, s->n_columns);
    if (!status) write_tables(s, n_values, doubles, ints);
    if (!status) status = wt__op_upload(device, doubles, n_doubles * sizeof *doubles, &c->doubles);
    if (!status) status = wt__op_upload(device, ints, (2 * columns + 1) * sizeof *ints, &c->ints);
    free(doubles);
    free(ints);
    if (status) return status;
    c->args.sums = (const double *)wt_buffer_address(c->doubles);
    c->args.sizes = c->args.sums + s->n_rows, c->args.parts = c->args.sizes + columns;
    c->args.values = c->args.parts + columns, c->args.shares = c->args.values + n_values;
    c->args.begins = (const int *)wt_buffer_address(c->ints), c->args.offsets = c->args.begins + columns;
    return WT_OK;
}

// 128 right sides a block, fewer where their residuals would leave a multiprocessor with fewer than three blocks; 128
// again where even 32 do not fit.
static wt_status shape_launch(const char *op, wt_device *device, const wt__nnls_shape *s, wt__nnls_cuda *c)
{
    const size_t side = (size_t)s->n_rows * sizeof(double), room = wt_device_get_info(device)->shared_bytes;
    int threads = 128;
    while (threads > 32 && 3 * side * (size_t)threads > room) threads /= 2;
    const bool fits = side * (size_t)threads <= room;
    if (!fits) threads = 128;
    c->launch = (wt_launch){.block = {threads}, .shared_bytes = fits ? side * (size_t)threads : 0};
    wt_status status = wt__spectrum_cuda_grid(op, c->at_once, s->n, threads, &c->launch.grid[0]);
    if (status || fits) return status;
    const size_t bytes = side * (size_t)s->n * (size_t)c->at_once;
    status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->residuals);
    if (!status) c->args.residuals = (double *)wt_buffer_address(c->residuals);
    return status;
}

static wt_status prepare(const char *op, wt_device *device, const wt__nnls_shape *s, wt__nnls_cuda *c)
{
    const int64_t bytes = s->n_columns * s->n * (int64_t)sizeof(double), most = WORK_BYTES / bytes;
    c->n_signals = s->n_signals;
    c->at_once = most < 1 ? 1 : most < s->n_signals ? (int)most : s->n_signals;
    c->args.n = s->n, c->args.n_columns = s->n_columns, c->args.n_rows = s->n_rows;
    c->args.n_sweeps = s->n_sweeps, c->args.power = s->power, c->args.enough = s->enough, c->args.start = s->start;
    wt_status status = shape_launch(op, device, s, c);
    if (!status) status = make_tables(op, device, s, c);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(bytes * c->at_once), &c->work);
    if (status) return status;
    c->args.x = (double *)wt_buffer_address(c->work);
    status = wt__op_module(device, "kernels/decompose/nnls.cu", NULL, 0, &c->module);
    return status ? status : wt_module_get_kernel(c->module, "nnls", &c->kernel);
}

wt_status wt__nnls_cuda_create(const char *op, wt_device *device, const wt__nnls_shape *shape, wt__nnls_cuda **cuda)
{
    *cuda = NULL;
    wt__nnls_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "%s: CUDA plan", op);
    wt_status status = prepare(op, device, shape, c);
    if (status)
        wt__nnls_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__nnls_cuda_destroy(wt__nnls_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->doubles);
    wt_buffer_destroy(cuda->ints);
    wt_buffer_destroy(cuda->work);
    wt_buffer_destroy(cuda->residuals);
    free(cuda);
}

wt_status wt__nnls_cuda_enqueue(const wt__nnls_cuda *cuda, wt_stream *stream, const float *b, float *out)
{
    wt_nnls_args args = cuda->args;
    wt_status status = WT_OK;
    for (int first = 0; first < cuda->n_signals && !status; first += cuda->at_once) {
        const int count = cuda->n_signals - first < cuda->at_once ? cuda->n_signals - first : cuda->at_once;
        wt_launch launch = cuda->launch;
        launch.grid[0] = launch.grid[0] / cuda->at_once * count;
        args.b = b + first * args.n_rows * args.n;
        args.out = out + first * args.n_columns * args.n;
        status = wt_kernel_launch(cuda->kernel, stream, &launch, &WT_ARG(args), 1);
    }
    return status;
}
