// Plans on a GPU. Three ways, by the length L of the complex transform (n, or n / 2 of an even real signal):
//
//   L <= 8192, factors up to 13       one kernel, one reading and one writing of the data
//   other L, 2 L - 1 <= 8192          the same kernel by Bluestein's algorithm, both transforms in shared memory
//   longer                            prepare, two steps of columns, finish; Bluestein's takes the steps twice
//
// The kernels are compiled for the plan (kernels/fft/fft.cu says how); tables are made here in double.

#include "fft_plan.h"
#include "fft_kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/kernel.h>

enum { MAX_STEP = 4096, FINE = 4096, MAX_OPTIONS = 5, WORK_POINTS = 1 << 24, MAX_WORK_BATCH = 32768 };

typedef struct step {
    wt_module *module;
    wt_kernel *kernel;
    int points, columns;
    wt_launch launch;
    size_t twiddles; // floats from the start of the tables
} step;

struct wt__fft_cuda {
    wt_module *module;
    wt_kernel *block, *prepare, *filter, *finish;
    step steps[2]; // of a long transform
    bool bluestein, is_long;
    int length, points;
    wt_buffer *tables, *work[2];
    int work_batch;   // transforms the work space holds
    wt_fft_args args; // all but in, out and batch
};

// ---- sizes

static bool is_smooth(int n)
{
    for (int radix; n > 1; n /= radix)
        if (!(radix = wt__fft_block_radix(n))) return false;
    return true;
}

// The divisor of n nearest above its root; 0 when a step would be too long.
static int first_step(int n)
{
    int divisor = (int)sqrt((double)n);
    while (divisor * divisor < n || n % divisor) divisor++;
    return divisor <= MAX_STEP ? divisor : 0;
}

static void choose_sizes(const wt_fft *plan, wt__fft_cuda *c)
{
    c->length = plan->halved ? plan->config.n / 2 : plan->config.n;
    c->points = c->length;
    c->bluestein = !is_smooth(c->length) || (c->length > WT_FFT_BLOCK_MAX && !first_step(c->length));
    if (c->bluestein)
        for (c->points = 1; c->points < 2 * c->length - 1;) c->points *= 2;
    c->is_long = c->points > WT_FFT_BLOCK_MAX;
    if (!c->is_long) return;
    c->steps[0].points = first_step(c->points);
    c->steps[1].points = c->points / c->steps[0].points;
}

// ---- tables

static void root(int64_t turn, int64_t of, float *pair)
{
    double angle = -2 * 3.14159265358979323846 * (double)(turn % of) / (double)of;
    pair[0] = (float)cos(angle), pair[1] = (float)sin(angle);
}

// A block's passes [radix - 1][m] pairs each.
size_t wt__fft_block_twiddles(int n, float *table)
{
    size_t at = 0;
    for (int rest = n; rest > 1;) {
        int radix = wt__fft_block_radix(rest), m = rest / radix;
        for (int j = 1; j < radix && m > 1; j++)
            for (int p = 0; p < m; p++, at += 2)
                if (table) root((int64_t)j * p, rest, table + at);
        rest = m;
    }
    return at;
}

static wt_status fill_bluestein(const wt__fft_cuda *c, float *chirp, float *filter)
{
    wt__fft_core *core;
    wt_status status = wt__fft_core_create(c->points, 0, &core);
    if (status) return status;
    float *part[4];
    const size_t floats = wt__fft_padded((size_t)c->points);
    part[0] = aligned_alloc(64, 4 * floats * sizeof(float));
    status = part[0] ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "fft: %zu floats of tables", 4 * floats);
    for (int i = 1; i < 4 && !status; i++) part[i] = part[i - 1] + floats;
    if (!status) status = wt__fft_chirp(c->length, core, part[0], part[1], part[2], part[3]);
    for (int k = 0; k < c->length && !status; k++) chirp[2 * k] = part[0][k], chirp[2 * k + 1] = part[1][k];
    for (int k = 0; k < c->points && !status; k++) filter[2 * k] = part[2][k], filter[2 * k + 1] = part[3][k];
    free(part[0]);
    wt__fft_core_destroy(core);
    return status;
}

// Where each table begins, in floats; equal to the next one when there is none.
typedef struct table_map {
    size_t twiddles[2], coarse, fine, real, chirp, filter, end;
} table_map;

static table_map map_tables(const wt_fft *plan, const wt__fft_cuda *c)
{
    table_map m = {.twiddles = {0, 0}};
    m.twiddles[1] = wt__fft_block_twiddles(c->is_long ? c->steps[0].points : c->points, NULL);
    m.coarse = m.twiddles[1] + (c->is_long ? wt__fft_block_twiddles(c->steps[1].points, NULL) : 0);
    m.fine = m.coarse + (c->is_long ? 2 * ((size_t)c->points / FINE + 1) : 0);
    m.real = m.fine + (c->is_long ? 2 * FINE : 0);
    m.chirp = m.real + (plan->halved ? 2 * ((size_t)c->length + 1) : 0);
    m.filter = m.chirp + (c->bluestein ? 2 * (size_t)c->length : 0);
    m.end = m.filter + (c->bluestein ? 2 * (size_t)c->points : 0) + 2; // never empty
    return m;
}

static wt_status fill_tables(const wt_fft *plan, const wt__fft_cuda *c, const table_map *m, float *table)
{
    wt__fft_block_twiddles(c->is_long ? c->steps[0].points : c->points, table + m->twiddles[0]);
    if (c->is_long) {
        wt__fft_block_twiddles(c->steps[1].points, table + m->twiddles[1]);
        for (int i = 0; i <= c->points / FINE; i++) root((int64_t)i * FINE, c->points, table + m->coarse + 2 * i);
        for (int i = 0; i < FINE; i++) root(i, c->points, table + m->fine + 2 * i);
    }
    for (int k = 0; plan->halved && k <= c->length; k++) root(k, 2 * (int64_t)c->length, table + m->real + 2 * k);
    if (plan->halved) table[m->real + 2 * (size_t)c->length + 1] = 0; // sin pi: the last bin is real
    return c->bluestein ? fill_bluestein(c, table + m->chirp, table + m->filter) : WT_OK;
}

static wt_status upload(wt_device *device, const float *table, size_t bytes, wt_buffer **buffer)
{
    wt_stream *stream;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, buffer);
    if (status) return status;
    status = wt_stream_create(device, NULL, &stream);
    if (status) return status;
    status = wt_stream_upload(stream, *buffer, 0, table, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

static wt_status make_tables(const wt_fft *plan, wt__fft_cuda *c)
{
    const table_map m = map_tables(plan, c);
    float *table = calloc(m.end, sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "fft: %zu floats of tables", m.end);
    wt_status status = fill_tables(plan, c, &m, table);
    if (!status) status = upload(plan->device, table, m.end * sizeof *table, &c->tables);
    free(table);
    if (status) return status;
    const float *base = (const float *)wt_buffer_address(c->tables);
    const wt_fft_config *f = &plan->config;
    c->steps[0].twiddles = m.twiddles[0], c->steps[1].twiddles = m.twiddles[1];
    c->args = (wt_fft_args){.twiddles = base,
                            .real_twiddles = base + m.real,
                            .chirp = base + m.chirp,
                            .filter = base + m.filter,
                            .in_distance = f->in_distance,
                            .out_distance = f->out_distance,
                            .in_stride = f->in_stride,
                            .out_stride = f->out_stride,
                            .n = f->n,
                            .length = c->length,
                            .points = c->points,
                            .scale = f->inverse ? (float)(1.0 / f->n) : 1};
    return WT_OK;
}

// ---- kernels

static wt_status load_module(wt_device *device, const char *name, char options[][32], int n_options, wt_module **module)
{
    const char *list[MAX_OPTIONS];
    for (int i = 0; i < n_options; i++) list[i] = options[i];
    return wt_module_create(device, &(wt_module_config){.name = name, .options = list, .n_options = n_options}, module);
}

static wt_status load_ends(const wt_fft *plan, wt__fft_cuda *c)
{
    char options[MAX_OPTIONS][32];
    snprintf(options[0], sizeof options[0], "-DFFT_POINTS=%d", c->is_long ? 0 : c->points);
    snprintf(options[1], sizeof options[1], "-DFFT_KIND=%d", (int)plan->config.kind);
    snprintf(options[2], sizeof options[2], "-DFFT_INVERSE=%d", (int)plan->config.inverse);
    snprintf(options[3], sizeof options[3], "-DFFT_HALVED=%d", (int)plan->halved);
    snprintf(options[4], sizeof options[4], "-DFFT_BLUESTEIN=%d", (int)c->bluestein);
    wt_status status = load_module(plan->device, "kernels/fft/fft.cu", options, 5, &c->module);
    if (status) return status;
    if (!c->is_long) return wt_module_get_kernel(c->module, "fft_block_batch", &c->block);
    status = wt_module_get_kernel(c->module, "fft_prepare", &c->prepare);
    if (!status) status = wt_module_get_kernel(c->module, "fft_filter", &c->filter);
    if (!status) status = wt_module_get_kernel(c->module, "fft_finish", &c->finish);
    return status;
}

static wt_status load_step(const wt_fft *plan, wt__fft_cuda *c, int which)
{
    step *s = &c->steps[which];
    const size_t region = (size_t)(wt__fft_shared_floats(s->points) | 1) * sizeof(float);
    int at_once = 8;
    while (at_once > 1 && at_once * region > wt_device_get_info(plan->device)->shared_bytes) at_once /= 2;
    s->columns = c->points / s->points;
    s->launch = (wt_launch){.grid = {(s->columns + at_once - 1) / at_once},
                            .block = {wt__fft_threads(s->points, 1024 / at_once) * at_once},
                            .shared_bytes = at_once * region};
    char options[MAX_OPTIONS][32];
    snprintf(options[0], sizeof options[0], "-DFFT_POINTS=%d", s->points);
    snprintf(options[1], sizeof options[1], "-DFFT_COLUMNS=%d", at_once);
    snprintf(options[2], sizeof options[2], "-DFFT_TURNED=%d", which == 0);
    wt_status status = load_module(plan->device, "kernels/fft/fft_columns.cu", options, 3, &s->module);
    return status ? status : wt_module_get_kernel(s->module, "fft_columns", &s->kernel);
}

static wt_status take_work(const wt_fft *plan, wt__fft_cuda *c)
{
    int most = WORK_POINTS / c->points;
    if (most < 1) most = 1;
    if (most > MAX_WORK_BATCH) most = MAX_WORK_BATCH;
    c->work_batch = plan->config.batch < most ? plan->config.batch : most;
    wt_status status = WT_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = wt_buffer_create(plan->device, WT_MEMORY_DEVICE, (size_t)c->work_batch * (size_t)c->points * 8,
                                  &c->work[i]);
    return status;
}

wt_status wt__fft_cuda_create(const wt_fft *plan, wt__fft_cuda **cuda)
{
    *cuda = NULL;
    wt__fft_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "fft: CUDA plan");
    choose_sizes(plan, c);
    wt_status status = make_tables(plan, c);
    if (!status) status = load_ends(plan, c);
    for (int i = 0; i < 2 && c->is_long && !status; i++) status = load_step(plan, c, i);
    if (c->is_long && !status) status = take_work(plan, c);
    if (status)
        wt__fft_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__fft_cuda_destroy(wt__fft_cuda *cuda)
{
    if (!cuda) return;
    for (int i = 0; i < 2; i++) {
        wt_module_destroy(cuda->steps[i].module);
        wt_buffer_destroy(cuda->work[i]);
    }
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables);
    free(cuda);
}

// ---- running

static wt_status launch_block(const wt__fft_cuda *c, wt_stream *stream, wt_fft_args args)
{
    const int sequences = wt__fft_sequences(c->points);
    wt_launch launch = {.grid = {(args.batch + sequences - 1) / sequences},
                        .block = {wt__fft_threads(c->points, 1024), sequences},
                        .shared_bytes = (size_t)sequences * (size_t)wt__fft_shared_floats(c->points) * sizeof(float)};
    return wt_kernel_launch(c->block, stream, &launch, &WT_ARG(args), 1);
}

// Both steps, from `from` by way of the second work buffer to `to`.
static wt_status launch_steps(const wt__fft_cuda *c, wt_stream *stream, uintptr_t from, uintptr_t to, int batch,
                              bool swap, float scale)
{
    const float *tables = (const float *)wt_buffer_address(c->tables);
    const float *coarse = tables + c->steps[1].twiddles + wt__fft_block_twiddles(c->steps[1].points, NULL);
    const float *between = (const float *)wt_buffer_address(c->work[1]);
    wt_fft_columns_args first = {.in = (const float *)from,
                                 .out = (float *)between,
                                 .twiddles = tables,
                                 .coarse = coarse,
                                 .fine = coarse + 2 * (c->points / FINE + 1),
                                 .columns = c->steps[0].columns,
                                 .batch = batch,
                                 .swap_in = swap,
                                 .scale = 1};
    wt_fft_columns_args second = {.in = between,
                                  .out = (float *)to,
                                  .twiddles = tables + c->steps[1].twiddles,
                                  .columns = c->steps[1].columns,
                                  .batch = batch,
                                  .swap_out = swap,
                                  .scale = scale};
    wt_launch launch = c->steps[0].launch;
    launch.grid[1] = batch;
    wt_status status = wt_kernel_launch(c->steps[0].kernel, stream, &launch, &WT_ARG(first), 1);
    if (status) return status;
    launch = c->steps[1].launch;
    launch.grid[1] = batch;
    return wt_kernel_launch(c->steps[1].kernel, stream, &launch, &WT_ARG(second), 1);
}

static wt_status launch_long(const wt__fft_cuda *c, wt_stream *stream, wt_fft_args args)
{
    uintptr_t points = wt_buffer_address(c->work[0]);
    const wt_arg ends[] = {WT_ARG(args), WT_ARG(points)};
    const wt_launch each = {.grid = {c->points / 256 + 1, args.batch}, .block = {256}};
    wt_status status = wt_kernel_launch(c->prepare, stream, &each, ends, 2);
    if (!status) status = launch_steps(c, stream, points, points, args.batch, false, 1);
    if (!status && c->bluestein) {
        status = wt_kernel_launch(c->filter, stream, &each, ends, 2);
        if (!status) status = launch_steps(c, stream, points, points, args.batch, false, 1);
    }
    return status ? status : wt_kernel_launch(c->finish, stream, &each, ends, 2);
}

// A packed complex signal is its own work space at both ends.
static bool is_plain(const wt_fft *plan)
{
    const wt_fft_config *f = &plan->config;
    return f->kind == WT_FFT_COMPLEX && f->in_stride == 1 && f->out_stride == 1 && f->in_distance == f->n &&
           f->out_distance == f->n && !plan->cuda->bluestein;
}

wt_status wt__fft_cuda_enqueue(const wt_fft *plan, wt_stream *stream, uintptr_t in, uintptr_t out)
{
    const wt__fft_cuda *c = plan->cuda;
    const wt_fft_config *f = &plan->config;
    wt_status status = WT_OK;
    const int at_once = c->is_long ? c->work_batch : f->batch;
    for (int b = 0; b < f->batch && !status; b += at_once) {
        wt_fft_args args = c->args;
        args.in = (const float *)in + (ptrdiff_t)b * f->in_distance * plan->in_width;
        args.out = (float *)out + (ptrdiff_t)b * f->out_distance * plan->out_width;
        args.batch = f->batch - b < at_once ? f->batch - b : at_once;
        if (!c->is_long)
            status = launch_block(c, stream, args);
        else if (is_plain(plan))
            status =
                launch_steps(c, stream, (uintptr_t)args.in, (uintptr_t)args.out, args.batch, f->inverse, args.scale);
        else
            status = launch_long(c, stream, args);
    }
    return status;
}
