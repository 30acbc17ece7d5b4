// Predominant local pulse on a GPU: kernels/rhythm/plp.cu, for as many signals at a time as the work space has room
// for.

#include "plp_cuda.h"
#include "fft_double_cuda.h"
#include "plp_wide_kernel.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 256 };
#define WORK_BYTES (1LL << 30)

struct wt__plp_cuda {
    wt__spectrum_cuda spectrum;
    wt_buffer *turn, *waves, *facts;
    wt_kernel *strongest, *pulse, *scale;
    wt_plp_args args;
    int n_signals, at_once, length;
    // Of windows that no block transforms: rows in memory in place of `strongest`.
    wt__fft64_cuda rows;
    wt_module *pulse_module, *wide_module;
    wt_kernel *fill, *wide_strongest;
    wt_buffer *window;
};

static wt_status make_tables(wt_device *device, wt__plp_cuda *p)
{
    const int n = p->length;
    float *turn = malloc(2 * (size_t)n * sizeof *turn);
    if (!turn) return wt_fail(WT_ERR_NO_MEMORY, "plp: window of %d frames", n);
    for (int i = 0; i < n; i++) {
        const double angle = 2 * 3.14159265358979323846 * i / n;
        turn[2 * i] = (float)cos(angle), turn[2 * i + 1] = (float)sin(angle);
    }
    wt_status status = wt__op_upload(device, turn, 2 * (size_t)n * sizeof *turn, &p->turn);
    free(turn);
    if (!status) p->args.turn = (const float *)wt_buffer_address(p->turn);
    return status;
}

static wt_status take_work(wt_device *device, wt__plp_cuda *p)
{
    const int64_t rows = p->args.n_rows, room = WORK_BYTES / (rows * (int64_t)sizeof(wt_plp_wave));
    p->at_once = room < 1 ? 1 : room < p->n_signals ? (int)room : p->n_signals;
    const size_t n = (size_t)p->at_once;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, n * (size_t)rows * sizeof(wt_plp_wave), &p->waves);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * n * sizeof(int), &p->facts);
    if (status) return status;
    p->args.waves = (wt_plp_wave *)wt_buffer_address(p->waves);
    p->args.facts = (int *)wt_buffer_address(p->facts);
    return WT_OK;
}

static wt_status open_wide(wt_device *device, const float *window, wt__plp_cuda *p)
{
    char options[2][48] = {"-DPLP_WIDE"};
    snprintf(options[1], sizeof options[1], "-DSPECTRUM_N=%d", p->length);
    wt_status status = wt__fft64_cuda_create("plp", device, p->length, p->n_signals * p->args.n_rows, 1, &p->rows);
    if (!status) status = wt__op_upload(device, window, (size_t)p->length * sizeof *window, &p->window);
    if (!status) status = wt__op_module(device, "kernels/rhythm/plp.cu", options, 2, &p->pulse_module);
    if (!status) status = wt__op_module(device, "kernels/rhythm/plp_wide.cu", NULL, 0, &p->wide_module);
    if (!status) status = wt_module_get_kernel(p->wide_module, "plp_wide_fill", &p->fill);
    if (!status) status = wt_module_get_kernel(p->wide_module, "plp_wide_strongest", &p->wide_strongest);
    if (!status) p->args.window = (const float *)wt_buffer_address(p->window);
    return status;
}

static wt_status open_window(wt_device *device, int length, wt__plp_cuda *p)
{
    float *window = malloc((size_t)length * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "plp: window of %d frames", length);
    wt_status status = wt_window_fill(&(wt_window_config){.n = length}, window);
    if (!status) status = wt__spectrum_cuda_open("plp", device, "kernels/rhythm/plp.cu", length, window, &p->spectrum);
    p->args.window = p->spectrum.args.window;
    p->args.twiddles = p->spectrum.args.twiddles;
    if (status == WT_ERR_UNSUPPORTED) status = open_wide(device, window, p);
    free(window);
    return status;
}

static wt_status load(wt__plp_cuda *p)
{
    wt_module *module = p->wide_strongest ? p->pulse_module : p->spectrum.module;
    wt_status status = WT_OK;
    if (!p->wide_strongest) status = wt_module_get_kernel(module, "plp_strongest", &p->strongest);
    if (!status) status = wt_module_get_kernel(module, "plp_pulse", &p->pulse);
    return status ? status : wt_module_get_kernel(module, "plp_scale", &p->scale);
}

wt_status wt__plp_cuda_create(wt_device *device, int length, int first, int last, int64_t n_frames, int n_signals,
                              wt__plp_cuda **cuda)
{
    wt__plp_cuda *p = *cuda = calloc(1, sizeof *p); // the plan's destroy takes it back, also half built
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "plp: CUDA plan");
    p->n_signals = n_signals, p->length = length;
    p->args = (wt_plp_args){.n_frames = n_frames, .n_rows = n_frames + 1 - length % 2, .first = first, .last = last};
    if (n_frames > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "plp: max_frames %lld, want 1..%d on a GPU", (long long)n_frames, INT_MAX);
    wt_status status = open_window(device, length, p);
    if (!status) status = make_tables(device, p);
    if (!status) status = take_work(device, p);
    return status ? status : load(p);
}

void wt__plp_cuda_destroy(wt__plp_cuda *cuda)
{
    if (!cuda) return;
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt__fft64_cuda_release(&cuda->rows);
    wt_module_destroy(cuda->pulse_module);
    wt_module_destroy(cuda->wide_module);
    wt_buffer_destroy(cuda->window);
    wt_buffer_destroy(cuda->turn);
    wt_buffer_destroy(cuda->waves);
    wt_buffer_destroy(cuda->facts);
    free(cuda);
}

// The strongest bins of n signals' rows, as many rows at a time as the work space has.
static wt_status find_wide(const wt__plp_cuda *p, wt_stream *stream, const wt_plp_args *args, int n)
{
    const int64_t all = n * args->n_rows;
    wt_status status = WT_OK;
    for (int64_t first = 0; first < all && !status; first += p->rows.rows) {
        const int64_t rows = all - first < p->rows.rows ? all - first : p->rows.rows;
        const wt_plp_wide_args a = {.plp = *args,
                                    .in = p->rows.in,
                                    .out = p->rows.out,
                                    .first = first,
                                    .n_rows = (int)rows,
                                    .pitch = p->rows.points,
                                    .length = p->length};
        status = wt__fft64_cuda_each("plp", p->fill, stream, WT_ARG(a), rows * p->length);
        if (!status) status = wt__fft64_cuda_run(&p->rows, stream, rows);
        if (!status) status = wt__fft64_cuda_each("plp", p->wide_strongest, stream, WT_ARG(a), rows * 32);
    }
    return status;
}

static wt_status find(const wt__plp_cuda *p, wt_stream *stream, const wt_plp_args *args, int n)
{
    wt_launch rows = {.block = {p->spectrum.threads}, .shared_bytes = p->spectrum.shared_bytes};
    if (!p->strongest) return find_wide(p, stream, args, n);
    wt_status status =
        wt__spectrum_cuda_grid("plp", n, args->n_rows, wt__spectrum_sequences(p->spectrum.n_fft), &rows.grid[0]);
    return status ? status : wt_kernel_launch(p->strongest, stream, &rows, &WT_ARG(*args), 1);
}

static wt_status enqueue_signals(const wt__plp_cuda *p, wt_stream *stream, const wt_plp_args *args, int n)
{
    wt_launch frames = {.block = {BLOCK}};
    wt_status status = wt__spectrum_cuda_grid("plp", n, args->n_frames, BLOCK, &frames.grid[0]);
    if (!status) status = wt_stream_fill(stream, p->facts, 0, 0, wt_buffer_size_bytes(p->facts));
    if (!status) status = find(p, stream, args, n);
    if (!status) status = wt_kernel_launch(p->pulse, stream, &frames, &WT_ARG(*args), 1);
    return status ? status : wt_kernel_launch(p->scale, stream, &frames, &WT_ARG(*args), 1);
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
