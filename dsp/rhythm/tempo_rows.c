// Tempograms row by row: a tempo each, and the strength of its multiples. On a GPU kernels/rhythm/tempo_rows.cu.

#include "tempo_cuda.h"

#include <limits.h>
#include <stdlib.h>
#include <warptone/tempo.h>

enum { ROWS_A_BLOCK = 8, THREADS = 256 };

// ---- a tempo a row

struct wt__tempo_rows_cuda {
    wt__tempogram_cuda *tempogram;
    wt_buffer *rows; // [n_signals][n_rows][length]
    wt_module *module;
    wt_kernel *kernel;
    wt_launch launch;
    wt_tempo_rows_args args;
};

wt_status wt__tempo_rows_cuda_create(wt_device *device, const wt_tempogram *tempogram, const wt__tempo_cuda *tempo,
                                     wt__tempo_rows_cuda **cuda)
{
    wt__tempo_rows_cuda *t = *cuda = calloc(1, sizeof *t); // the plan's destroy takes it back, also half built
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "tempo: CUDA plan");
    const wt_tempogram_config *c = wt__tempogram_config(tempogram);
    const int64_t n_rows = c->n_signals * wt_tempogram_rows(tempogram, c->n_frames);
    if (n_rows > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "tempo: %lld frames of all signals, want %d at most on a GPU", (long long)n_rows,
                       INT_MAX);
    t->args = (wt_tempo_rows_args){.choice = *wt__tempo_cuda_choice(tempo), .n_rows = n_rows};
    t->launch = (wt_launch){.grid = {(int)((n_rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK)}, .block = {THREADS}};
    wt_status status = wt__tempogram_cuda_create(device, tempogram, &t->tempogram);
    if (!status)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof(float) * (size_t)n_rows * (size_t)c->win_length,
                                  &t->rows);
    if (!status) status = wt__op_exact_module(device, "kernels/rhythm/tempo_rows.cu", &t->module);
    return status ? status : wt_module_get_kernel(t->module, "tempo_rows", &t->kernel);
}

void wt__tempo_rows_cuda_destroy(wt__tempo_rows_cuda *cuda)
{
    if (!cuda) return;
    wt__tempogram_cuda_destroy(cuda->tempogram);
    wt_buffer_destroy(cuda->rows);
    wt_module_destroy(cuda->module);
    free(cuda);
}

wt_status wt__tempo_rows_cuda_enqueue(const wt__tempo_rows_cuda *cuda, wt_stream *stream, const float *envelope,
                                      double *bpm)
{
    wt_tempo_rows_args args = cuda->args;
    float *rows = (float *)wt_buffer_address(cuda->rows);
    args.rows = rows, args.bpm = bpm;
    args.tempogram = *wt__tempogram_cuda_args(cuda->tempogram);
    args.tempogram.envelope = envelope;
    args.in_double = wt__tempogram_cuda_is_wide(cuda->tempogram);
    wt_status status = wt__tempogram_cuda_enqueue(cuda->tempogram, stream, envelope, rows);
    return status ? status : wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(args), 1);
}

// ---- multiples

struct wt_tempo_ratios {
    wt_tempo_ratios_config config;
    wt_device *device;
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
};

wt_status wt_tempo_ratios_create(wt_device *device, const wt_tempo_ratios_config *config, wt_tempo_ratios **plan)
{
    *plan = NULL;
    wt_tempo_ratios_config c = *config;
    if (c.rate_hz == 0) c.rate_hz = 22050;
    if (!c.hop) c.hop = 512;
    if (!c.win_length) c.win_length = 384;
    if (!(c.rate_hz > 0) || c.hop < 1 || c.win_length < 3)
        return wt_fail(WT_ERR_BAD_ARG, "tempo ratios: rate_hz %g, hop %d, win_length %d, want above 0, 1 and 3 or more",
                       c.rate_hz, c.hop, c.win_length);
    if (c.n_rows < 1 || c.n_rows > INT_MAX / WT_TEMPO_RATIOS)
        return wt_fail(WT_ERR_BAD_ARG, "tempo ratios: %lld rows, want 1..%d", (long long)c.n_rows,
                       INT_MAX / WT_TEMPO_RATIOS);
    wt_tempo_ratios *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "tempo ratios: plan");
    p->config = c, p->device = device;
    wt_status status = WT_OK;
    if (wt__op_on_gpu(device)) status = wt__op_exact_module(device, "kernels/rhythm/tempo_rows.cu", &p->module);
    if (p->module) status = wt_module_get_kernel(p->module, "tempo_ratios", &p->kernel);
    if (status)
        wt_tempo_ratios_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_tempo_ratios_destroy(wt_tempo_ratios *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct call {
    wt_tempo_ratios_config config;
    const float *rows;
    const double *bpm;
    float *ratios;
} call;

enum { ROWS_A_TURN = 256 };

static void run_rows(const void *args, int turn)
{
    const call *c = args;
    const int64_t first = (int64_t)turn * ROWS_A_TURN, end = first + ROWS_A_TURN;
    for (int64_t t = first; t < end && t < c->config.n_rows; t++)
        wt_tempogram_ratio(c->config.rate_hz, c->config.hop, c->rows + t * c->config.win_length, c->config.win_length,
                           c->bpm[t], c->ratios + t * WT_TEMPO_RATIOS);
}

wt_status wt_tempo_ratios_enqueue(wt_tempo_ratios *plan, wt_stream *stream, const wt_buffer *tempogram,
                                  size_t tempogram_offset, const wt_buffer *bpm, size_t bpm_offset, wt_buffer *ratios,
                                  size_t ratios_offset)
{
    const wt_tempo_ratios_config *c = &plan->config;
    const size_t n = (size_t)c->n_rows;
    wt_status status = wt__op_stream("tempo ratios", plan->device, stream);
    if (!status)
        status = wt__op_range("tempo ratios", "tempogram", tempogram, tempogram_offset, n * (size_t)c->win_length);
    if (!status) status = wt__op_range("tempo ratios", "bpm", bpm, bpm_offset, 2 * n);
    if (!status) status = wt__op_range("tempo ratios", "ratios", ratios, ratios_offset, n * WT_TEMPO_RATIOS);
    if (!status && bpm_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "tempo ratios: bpm offset %zu, want a multiple of 8", bpm_offset);
    if (status) return status;
    const call k = {*c, (const float *)(wt_buffer_address(tempogram) + tempogram_offset),
                    (const double *)(wt_buffer_address(bpm) + bpm_offset),
                    (float *)(wt_buffer_address(ratios) + ratios_offset)};
    if (!plan->kernel)
        return wt_stream_run(stream, run_rows, &k, sizeof k, (int)((c->n_rows + ROWS_A_TURN - 1) / ROWS_A_TURN));
    const wt_tempo_ratios_args args = {k.rows, k.bpm, k.ratios, 60 * c->rate_hz / c->hop, c->n_rows, c->win_length};
    const wt_launch launch = {.grid = {(int)((c->n_rows * WT_TEMPO_RATIOS + THREADS - 1) / THREADS)},
                              .block = {THREADS}};
    return wt_kernel_launch(plan->kernel, stream, &launch, &WT_ARG(args), 1);
}
