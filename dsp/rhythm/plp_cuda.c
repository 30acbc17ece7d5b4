// Predominant local pulse on a GPU: kernels/rhythm/plp.cu, for as many signals at a time as the work space has room
// for, and of them a tile of rows at a time.

#include "plp_cuda.h"
#include "fft_double_cuda.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FILL, KEEP, ADD, PULSE, SCALE, KERNELS };
#define WORK_BYTES (1LL << 30)

struct wt__plp_cuda {
    wt__fft64_cuda rows;
    wt_module *module;
    wt_kernel *kernels[KERNELS];
    wt_buffer *tables, *waves, *sums, *facts;
    wt_plp_args args;
    int n_signals, at_once;
};

// Pairs first, where memory is aligned for them.
static wt_status upload_tables(wt_device *device, const wt__plp_tables *t, wt__plp_cuda *p)
{
    const size_t n = (size_t)t->length;
    double *table = malloc((4 * n + 1) * sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "plp: window of %d frames", t->length);
    memcpy(table, t->turn, 2 * n * sizeof *table);
    memcpy(table + 2 * n, t->window, n * sizeof *table);
    memcpy(table + 3 * n, t->squares, (n + 1) * sizeof *table);
    wt_status status = wt__op_upload(device, table, (4 * n + 1) * sizeof *table, &p->tables);
    free(table);
    if (status) return status;
    p->args.turn = (const double *)wt_buffer_address(p->tables);
    p->args.window = p->args.turn + 2 * n, p->args.squares = p->args.window + n;
    return WT_OK;
}

static wt_status take_work(wt_device *device, wt__plp_cuda *p)
{
    const int64_t frames = p->args.n_frames, room = WORK_BYTES / (2 * frames * (int64_t)sizeof(double));
    p->at_once = room < 1 ? 1 : room < p->n_signals ? (int)room : p->n_signals;
    const size_t n = (size_t)p->at_once;
    wt_status status =
        wt__fft64_cuda_create("plp", device, p->args.length, (int64_t)p->at_once * p->args.n_rows, 1, &p->rows);
    if (!status)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)p->rows.rows * sizeof(wt_plp_wave), &p->waves);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * n * (size_t)frames * sizeof(double), &p->sums);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * n * sizeof *p->args.facts, &p->facts);
    if (status) return status;
    p->args.in = p->rows.in, p->args.out = p->rows.out, p->args.pitch = p->rows.points;
    p->args.waves = (wt_plp_wave *)wt_buffer_address(p->waves);
    p->args.sums = (double *)wt_buffer_address(p->sums);
    p->args.facts = (unsigned long long *)wt_buffer_address(p->facts);
    return WT_OK;
}

static wt_status load(wt_device *device, wt__plp_cuda *p)
{
    static const char *const names[KERNELS] = {"plp_fill", "plp_keep", "plp_add", "plp_pulse", "plp_scale"};
    wt_status status = wt__op_module(device, "kernels/rhythm/plp.cu", NULL, 0, &p->module);
    for (int i = 0; i < KERNELS && !status; i++) status = wt_module_get_kernel(p->module, names[i], &p->kernels[i]);
    return status;
}

wt_status wt__plp_cuda_create(wt_device *device, const wt__plp_tables *tables, int64_t n_frames, int n_signals,
                              wt__plp_cuda **cuda)
{
    wt__plp_cuda *p = *cuda = calloc(1, sizeof *p); // the plan's destroy takes it back, also half built
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "plp: CUDA plan");
    p->n_signals = n_signals;
    p->args = (wt_plp_args){.n_frames = n_frames,
                            .n_rows = n_frames + 1 - tables->length % 2,
                            .length = tables->length,
                            .first_bin = tables->first,
                            .last_bin = tables->last};
    if (n_frames > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "plp: max_frames %lld, want 1..%d on a GPU", (long long)n_frames, INT_MAX);
    wt_status status = upload_tables(device, tables, p);
    if (!status) status = take_work(device, p);
    return status ? status : load(device, p);
}

void wt__plp_cuda_destroy(wt__plp_cuda *cuda)
{
    if (!cuda) return;
    wt__fft64_cuda_release(&cuda->rows);
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->waves);
    wt_buffer_destroy(cuda->sums);
    wt_buffer_destroy(cuda->facts);
    free(cuda);
}

static wt_status each(const wt__plp_cuda *p, wt_stream *stream, int kernel, const wt_plp_args *args, int64_t count)
{
    return wt__fft64_cuda_each("plp", p->kernels[kernel], stream, WT_ARG(*args), count);
}

// The waves of n signals' rows, as many rows at a time as the work space has.
static wt_status add_rows(const wt__plp_cuda *p, wt_stream *stream, wt_plp_args *a, int n)
{
    const int64_t all = n * a->n_rows;
    wt_status status = wt_stream_fill(stream, p->sums, 0, 0, wt_buffer_size_bytes(p->sums));
    if (!status) status = wt_stream_fill(stream, p->facts, 0, 0, wt_buffer_size_bytes(p->facts));
    for (a->first = 0; a->first < all && !status; a->first += p->rows.rows) {
        a->count = (int)(all - a->first < p->rows.rows ? all - a->first : p->rows.rows);
        const int64_t n_touched = (a->first + a->count - 1) / a->n_rows - a->first / a->n_rows + 1;
        status = each(p, stream, FILL, a, (int64_t)a->count * a->length);
        if (!status) status = wt__fft64_cuda_run(&p->rows, stream, a->count);
        if (!status) status = each(p, stream, KEEP, a, (int64_t)a->count * 32);
        if (!status) status = each(p, stream, ADD, a, n_touched * a->n_frames);
    }
    return status;
}

static wt_status enqueue_signals(const wt__plp_cuda *p, wt_stream *stream, wt_plp_args *args, int n)
{
    wt_launch frames = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("plp", n, args->n_frames, 256, &frames.grid[0]);
    if (!status) status = add_rows(p, stream, args, n);
    if (!status) status = wt_kernel_launch(p->kernels[PULSE], stream, &frames, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(p->kernels[SCALE], stream, &frames, &WT_ARG(*args), 1);
}

wt_status wt__plp_cuda_enqueue(const wt__plp_cuda *cuda, wt_stream *stream, const float *envelope, float *pulse)
{
    wt_plp_args args = cuda->args;
    wt_status status = WT_OK;
    for (int first = 0; first < cuda->n_signals && !status; first += cuda->at_once) {
        const int rest = cuda->n_signals - first;
        args.envelope = envelope + first * args.n_frames, args.pulse = pulse + first * args.n_frames;
        status = enqueue_signals(cuda, stream, &args, rest < cuda->at_once ? rest : cuda->at_once);
    }
    return status;
}
