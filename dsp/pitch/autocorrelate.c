// By a transform of at least 2 n - 1 points, so that nothing wraps around.

#include <warptone/autocorrelate.h>
#include "autocorrelate_kernel.h"
#include "fft_internal.h"
#include "spectrum_cuda.h"

#include <stdlib.h>
#include <string.h>

#define WORK_BYTES (1LL << 30)

struct wt_autocorrelate {
    wt_autocorrelate_config config;
    int n_fft;
    wt_fft *forward, *inverse;
    float *signal, *re, *im; // [n_fft], [n_fft / 2 + 1] each
    wt_device *device;
    wt_autocorrelate **workers; // [n_slots], the first is the plan itself
    int n_slots;
    wt_fft *there, *back; // on a GPU, of at_once signals
    wt_buffer *signals, *spectra;
    wt_module *module; // NULL on a CPU
    wt_kernel *pad, *power, *take;
    int at_once;
};

static wt_status take_gpu(wt_autocorrelate *p)
{
    const int64_t each = 8LL * p->n_fft + 8, n = p->config.n_signals,
                  room = WORK_BYTES / each > 0 ? WORK_BYTES / each : 1;
    const int64_t turns = (n + room - 1) / room;
    p->at_once = (int)((n + turns - 1) / turns);
    const size_t floats = (size_t)p->at_once * (size_t)p->n_fft, bins = (size_t)p->n_fft / 2 + 1;
    wt_fft_config c = {.n = p->n_fft, .batch = p->at_once, .kind = WT_FFT_REAL_TO_COMPLEX};
    wt_status status = wt_fft_create(p->device, &c, &p->there);
    c.kind = WT_FFT_COMPLEX_TO_REAL;
    if (!status) status = wt_fft_create(p->device, &c, &p->back);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, floats * sizeof(float), &p->signals);
    if (!status)
        status =
            wt_buffer_create(p->device, WT_MEMORY_DEVICE, (size_t)p->at_once * bins * 2 * sizeof(float), &p->spectra);
    if (!status) status = wt__op_module(p->device, "kernels/pitch/autocorrelate.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "autocorrelate_pad", &p->pad);
    if (!status) status = wt_module_get_kernel(p->module, "autocorrelate_power", &p->power);
    return status ? status : wt_module_get_kernel(p->module, "autocorrelate_take", &p->take);
}

static wt_status take_device(wt_autocorrelate *p, wt_device *device)
{
    p->device = device;
    if (wt__op_on_gpu(device)) return take_gpu(p);
    p->n_slots = wt__op_slots(device, p->config.n_signals);
    p->workers = calloc((size_t)p->n_slots, sizeof *p->workers);
    if (!p->workers) return wt_fail(WT_ERR_NO_MEMORY, "autocorrelate: %d threads", p->n_slots);
    p->workers[0] = p;
    wt_status status = WT_OK;
    for (int slot = 1; slot < p->n_slots && !status; slot++)
        status = wt_autocorrelate_create(NULL, &p->config, &p->workers[slot]);
    return status;
}

static wt_status prepare(wt_autocorrelate *p)
{
    const int bins = p->n_fft / 2 + 1;
    wt_status status =
        wt_fft_create(NULL, &(wt_fft_config){.n = p->n_fft, .kind = WT_FFT_REAL_TO_COMPLEX}, &p->forward);
    if (!status)
        status = wt_fft_create(NULL, &(wt_fft_config){.n = p->n_fft, .kind = WT_FFT_COMPLEX_TO_REAL}, &p->inverse);
    if (status) return status;
    p->signal = malloc((size_t)p->n_fft * sizeof(float));
    p->re = malloc((size_t)bins * sizeof(float));
    p->im = malloc((size_t)bins * sizeof(float));
    return p->signal && p->re && p->im ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "autocorrelate: %d samples", p->config.n);
}

wt_status wt_autocorrelate_create(wt_device *device, const wt_autocorrelate_config *config, wt_autocorrelate **plan)
{
    *plan = NULL;
    if (config->n < 1 || config->n > WT_FFT_MAX_N / 2)
        return wt_fail(WT_ERR_BAD_ARG, "autocorrelate: %d samples, want 1..%d", config->n, WT_FFT_MAX_N / 2);
    if (config->max_lags < 0 || config->n_signals < 0)
        return wt_fail(WT_ERR_BAD_ARG, "autocorrelate: %d lags, %d signals, want 0 or more", config->max_lags,
                       config->n_signals);
    wt_autocorrelate *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "autocorrelate: plan");
    p->config = *config;
    if (!p->config.n_signals) p->config.n_signals = 1;
    if (!p->config.max_lags || p->config.max_lags > config->n) p->config.max_lags = config->n;
    p->n_fft = wt_fft_good_size(2 * config->n);
    wt_status status = prepare(p);
    if (!status && device) status = take_device(p, device);
    if (status)
        wt_autocorrelate_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_autocorrelate_destroy(wt_autocorrelate *plan)
{
    if (!plan) return;
    for (int slot = 1; plan->workers && slot < plan->n_slots; slot++) wt_autocorrelate_destroy(plan->workers[slot]);
    free(plan->workers);
    wt_fft_destroy(plan->there);
    wt_fft_destroy(plan->back);
    wt_buffer_destroy(plan->signals);
    wt_buffer_destroy(plan->spectra);
    wt_module_destroy(plan->module);
    wt_fft_destroy(plan->forward);
    wt_fft_destroy(plan->inverse);
    free(plan->signal);
    free(plan->re);
    free(plan->im);
    free(plan);
}

int wt_autocorrelate_lags(const wt_autocorrelate *plan) { return plan->config.max_lags; }

WT_RT static void run_signal(wt_autocorrelate *p, const float *in, float *out)
{
    const int n = p->config.n, bins = p->n_fft / 2 + 1;
    memcpy(p->signal, in, (size_t)n * sizeof *in);
    memset(p->signal + n, 0, (size_t)(p->n_fft - n) * sizeof *in);
    wt__fft_real_forward(p->forward, p->signal, p->re, p->im);
    for (int k = 0; k < bins; k++) p->re[k] = p->re[k] * p->re[k] + p->im[k] * p->im[k];
    memset(p->im, 0, (size_t)bins * sizeof *p->im);
    wt__fft_real_inverse(p->inverse, p->re, p->im, p->signal);
    memcpy(out, p->signal, (size_t)p->config.max_lags * sizeof *out);
}

WT_RT void wt_autocorrelate_run(wt_autocorrelate *p, const float *in, float *out)
{
    for (int64_t s = 0; s < p->config.n_signals; s++) run_signal(p, in + s * p->config.n, out + s * p->config.max_lags);
}

// ---- on a stream

typedef struct call {
    const wt_autocorrelate *plan;
    const float *in;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_autocorrelate_config *f = &c->plan->config;
    for (int64_t s = slot; s < f->n_signals; s += c->plan->n_slots)
        run_signal(c->plan->workers[slot], c->in + s * f->n, c->out + s * f->max_lags);
}

static wt_status launch(wt_kernel *kernel, wt_stream *stream, const wt_autocorrelate_args *args, int rows, int length)
{
    wt_launch shape = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("autocorrelate", rows, length, WT_AUTOCORRELATE_TILE, &shape.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &shape, &WT_ARG(*args), 1);
}

static wt_status enqueue_gpu(wt_autocorrelate *p, wt_stream *stream, const call *c)
{
    const int64_t n = p->config.n_signals;
    wt_autocorrelate_args args = {.signals = (float *)wt_buffer_address(p->signals),
                                  .spectra = (float *)wt_buffer_address(p->spectra),
                                  .n = p->config.n,
                                  .lags = p->config.max_lags,
                                  .n_fft = p->n_fft,
                                  .at_once = p->at_once};
    wt_status status = WT_OK;
    for (int64_t first = 0; first < n && !status; first += p->at_once) {
        args.n_signals = (int)(n - first < p->at_once ? n - first : p->at_once);
        args.in = c->in + first * p->config.n, args.out = c->out + first * p->config.max_lags;
        status = launch(p->pad, stream, &args, p->at_once, p->n_fft);
        if (!status) status = wt_fft_enqueue(p->there, stream, p->signals, 0, p->spectra, 0);
        if (!status) status = launch(p->power, stream, &args, p->at_once, p->n_fft / 2 + 1);
        if (!status) status = wt_fft_enqueue(p->back, stream, p->spectra, 0, p->signals, 0);
        if (!status) status = launch(p->take, stream, &args, args.n_signals, p->config.max_lags);
    }
    return status;
}

wt_status wt_autocorrelate_enqueue(wt_autocorrelate *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   wt_buffer *out, size_t out_offset)
{
    const size_t n = (size_t)plan->config.n_signals;
    wt_status status = wt__op_stream("autocorrelate", plan->device, stream);
    if (!status) status = wt__op_range("autocorrelate", "in", in, in_offset, n * (size_t)plan->config.n);
    if (!status) status = wt__op_range("autocorrelate", "out", out, out_offset, n * (size_t)plan->config.max_lags);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (plan->module) return enqueue_gpu(plan, stream, &c);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
