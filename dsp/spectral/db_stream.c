// Decibels of many signals on a stream: wt_db_from_power a signal on the CPU, kernels/spectral/db.cu on a GPU.

#include "db_internal.h"
#include "db_kernel.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>

struct wt_db {
    wt_db_config config; // defaults resolved
    bool amplitudes;
    wt_device *device;
    int n_signals;
    int64_t count;
    wt_module *module; // NULL on a CPU
    wt_kernel *peak, *count_digits, *pick, *log, *limit;
    wt_buffer *peaks, *middle, *counts; // middle, counts: of medians
    wt_launch launch;
};

static wt_status create_median(wt_db *p)
{
    const size_t n = (size_t)p->n_signals;
    if (p->count > UINT32_MAX)
        return wt_fail(WT_ERR_UNSUPPORTED, "db: the median of %lld values on a GPU, want %lld at most (17 GB)",
                       (long long)p->count, (long long)UINT32_MAX);
    wt_status status = wt_module_get_kernel(p->module, "db_count", &p->count_digits);
    if (!status) status = wt_module_get_kernel(p->module, "db_pick", &p->pick);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * sizeof(wt_db_middle), &p->middle);
    return status ? status : wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * 512 * sizeof(unsigned), &p->counts);
}

static wt_status create_cuda(wt_db *p)
{
    wt_status status = wt__op_module(p->device, "kernels/spectral/db.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "db_peak", &p->peak);
    if (!status) status = wt_module_get_kernel(p->module, "db_log", &p->log);
    if (!status) status = wt_module_get_kernel(p->module, "db_limit", &p->limit);
    if (!status)
        status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, 2 * (size_t)p->n_signals * sizeof(int), &p->peaks);
    if (!status && p->config.reference == WT_DB_REF_MEDIAN) status = create_median(p);
    p->launch.block[0] = 256;
    return status ? status : wt__spectrum_cuda_grid("db", p->n_signals, p->count, WT_DB_CHUNK, &p->launch.grid[0]);
}

wt_status wt_db_create(wt_device *device, const wt_db_config *config, bool amplitudes, int n_signals, int64_t count,
                       wt_db **plan)
{
    *plan = NULL;
    wt_db_config c = config ? *config : (wt_db_config){.ref = 0};
    wt_status status = wt__db_resolve("db", amplitudes ? 1e-5 : 1e-10, &c);
    if (!status && (n_signals < 1 || count < 1))
        status = wt_fail(WT_ERR_BAD_ARG, "db: %d signals of %lld values, want 1 or more", n_signals, (long long)count);
    if (status) return status;
    wt_db *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "db: plan");
    p->config = c, p->amplitudes = amplitudes, p->device = device, p->n_signals = n_signals, p->count = count;
    if (wt__op_on_gpu(device)) status = create_cuda(p);
    if (status)
        wt_db_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_db_destroy(wt_db *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->peaks);
    wt_buffer_destroy(plan->middle);
    wt_buffer_destroy(plan->counts);
    free(plan);
}

typedef struct call {
    const wt_db *plan;
    const float *in;
    float *out;
} call;

static void run_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_db *p = c->plan;
    const int64_t at = signal * p->count;
    (void)!(p->amplitudes ? wt_db_from_amplitude : wt_db_from_power)(&p->config, c->in + at, p->count, c->out + at);
}

static wt_status find_median(const wt_db *p, wt_stream *stream, wt_db_args args)
{
    const wt_launch by_signal = {.grid = {(p->n_signals + 31) / 32}, .block = {32}};
    wt_status status = WT_OK;
    for (args.digit = 0; args.digit < 4 && !status; args.digit++) {
        status = wt_stream_fill(stream, p->counts, 0, 0, wt_buffer_size_bytes(p->counts));
        if (!status) status = wt_kernel_launch(p->count_digits, stream, &p->launch, &WT_ARG(args), 1);
        if (!status) status = wt_kernel_launch(p->pick, stream, &by_signal, &WT_ARG(args), 1);
    }
    return status;
}

static wt_status enqueue_cuda(const wt_db *p, wt_stream *stream, const float *in, float *out)
{
    const wt_db_config *c = &p->config;
    const wt_db_args args = {.in = in,
                             .out = out,
                             .peaks = (int *)wt_buffer_address(p->peaks),
                             .count = p->count,
                             .n_signals = p->n_signals,
                             .middle = p->middle ? (wt_db_middle *)wt_buffer_address(p->middle) : NULL,
                             .counts = p->counts ? (unsigned *)wt_buffer_address(p->counts) : NULL,
                             .of_peak = c->reference == WT_DB_REF_MAX,
                             .of_median = c->reference == WT_DB_REF_MEDIAN,
                             .ref = fabs(c->ref),
                             .amin = c->amin,
                             .scale = (p->amplitudes ? 2 : 1) * 3.0102999566398120, // 10 log10(2)
                             .range = (float)c->top_db};
    // Bytes of 0x80 make an integer below that of any number.
    wt_status status = wt_stream_fill(stream, p->peaks, 0, 0x80, wt_buffer_size_bytes(p->peaks));
    if (!status && args.of_peak) status = wt_kernel_launch(p->peak, stream, &p->launch, &WT_ARG(args), 1);
    if (!status && args.of_median) status = find_median(p, stream, args);
    if (!status) status = wt_kernel_launch(p->log, stream, &p->launch, &WT_ARG(args), 1);
    if (status || c->no_top) return status;
    return wt_kernel_launch(p->limit, stream, &p->launch, &WT_ARG(args), 1);
}

wt_status wt_db_enqueue(wt_db *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                        size_t out_offset)
{
    const size_t count = (size_t)plan->n_signals * (size_t)plan->count;
    wt_status status = wt__op_stream("db", plan->device, stream);
    if (!status) status = wt__op_range("db", "input", in, in_offset, count);
    if (!status) status = wt__op_range("db", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->module) return enqueue_cuda(plan, stream, c.in, c.out);
    return wt_stream_run(stream, run_signal, &c, sizeof c, plan->n_signals);
}
