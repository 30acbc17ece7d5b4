// Loudness of many programmes that go on from block to block: a meter a programme on the CPU,
// kernels/level/loudness_stream.cu on a GPU.

#include "loudness_internal.h"
#include "loudness_stream_kernel.h"
#include "spectrum_cuda.h"

#include <stdlib.h>

enum { PEAK_FRAMES = 2048 }; // as kernels/level/loudness_stream.cu says

struct wt_loudness_plan {
    wt_device *device;
    int n_signals, channels, n_slots;
    wt_loudness **meters; // [n_signals] CPU
    wt_module *module;    // NULL on a CPU
    wt_kernel *peaks, *power, *windows, *query;
    wt_buffer *lines, *programmes, *bins, *steps;
    loudness_stream_args args;
};

// ---- life

static wt_status create_cpu(wt_loudness_plan *p, const wt_loudness_config *config)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->meters = calloc((size_t)p->n_signals, sizeof *p->meters);
    wt_status status = p->meters ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "loudness: %d programmes", p->n_signals);
    for (int i = 0; i < p->n_signals && !status; i++) status = wt_loudness_create(config, &p->meters[i]);
    return status;
}

static wt_status take(wt_loudness_plan *p, size_t count, size_t size, wt_buffer **buffer, void **address)
{
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, count * size, buffer);
    if (!status) *address = (void *)wt_buffer_address(*buffer);
    return status;
}

static wt_status create_cuda(wt_loudness_plan *p)
{
    loudness_stream_args *a = &p->args;
    const size_t n = (size_t)p->n_signals, lines = n * (size_t)p->channels;
    wt_stream *stream = NULL;
    wt_status status = take(p, lines, sizeof *a->lines, &p->lines, (void **)&a->lines);
    if (!status) status = take(p, n, sizeof *a->programmes, &p->programmes, (void **)&a->programmes);
    if (!status) status = take(p, 2 * n * LOUDNESS_N_BINS, sizeof *a->bins, &p->bins, (void **)&a->bins);
    if (!status) status = take(p, lines * LOUDNESS_STREAM_STEPS, sizeof *a->steps, &p->steps, (void **)&a->steps);
    if (!status) status = wt__op_module(p->device, "kernels/level/loudness_stream.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "loudness_stream_peaks", &p->peaks);
    if (!status) status = wt_module_get_kernel(p->module, "loudness_stream_power", &p->power);
    if (!status) status = wt_module_get_kernel(p->module, "loudness_stream_windows", &p->windows);
    if (!status) status = wt_module_get_kernel(p->module, "loudness_stream_query", &p->query);
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_loudness_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

// What a meter of this kind makes of its config.
static wt_status describe(wt_loudness_plan *p, const wt_loudness_config *config)
{
    loudness_args meter = {.pcm = NULL};
    wt_loudness *one;
    wt_status status = wt_loudness_create(config, &one);
    if (status) return status;
    wt__loudness_describe(one, &meter);
    wt_loudness_destroy(one);
    loudness_stream_args *a = &p->args;
    a->n_signals = p->n_signals, a->channels = p->channels = meter.channels;
    a->rate_hz = meter.rate_hz, a->oversampling = meter.oversampling, a->weighting = meter.weighting;
    for (int c = 0; c < LOUDNESS_MAX_CHANNELS; c++) a->weights[c] = meter.weights[c];
    return WT_OK;
}

wt_status wt_loudness_plan_create(wt_device *device, const wt_loudness_config *config, int n_signals,
                                  wt_loudness_plan **plan)
{
    *plan = NULL;
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "loudness: a plan without a device");
    if (n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "loudness: %d programmes, want 1 or more", n_signals);
    wt_loudness_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "loudness: plan");
    p->device = device, p->n_signals = n_signals;
    wt_status status = describe(p, config);
    if (!status) status = wt__op_on_gpu(device) ? create_cuda(p) : create_cpu(p, config);
    if (status)
        wt_loudness_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_loudness_plan_destroy(wt_loudness_plan *plan)
{
    if (!plan) return;
    for (int i = 0; plan->meters && i < plan->n_signals; i++) wt_loudness_destroy(plan->meters[i]);
    free(plan->meters);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->lines);
    wt_buffer_destroy(plan->programmes);
    wt_buffer_destroy(plan->bins);
    wt_buffer_destroy(plan->steps);
    free(plan);
}

// ---- running

typedef struct call {
    const wt_loudness_plan *plan;
    const float *in;
    wt_loudness_values *values;
    int n_frames;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots) wt_loudness_reset(c->plan->meters[i]);
}

static void meter_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_loudness_plan *p = c->plan;
    const float *in[WT_LOUDNESS_MAX_CHANNELS];
    for (int64_t i = slot; i < p->n_signals; i += p->n_slots) {
        for (int k = 0; k < p->channels; k++) in[k] = c->in + (i * p->channels + k) * c->n_frames;
        wt_loudness_process(p->meters[i], in, c->n_frames);
    }
}

static void query_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots)
        wt_loudness_query(c->plan->meters[i], c->values + i);
}

wt_status wt_loudness_plan_reset(wt_loudness_plan *plan, wt_stream *stream)
{
    wt_buffer *const state[] = {plan->lines, plan->programmes, plan->bins};
    wt_status status = wt__op_stream("loudness", plan->device, stream);
    if (status) return status;
    if (!plan->module) return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
    for (int k = 0; k < 3 && !status; k++)
        status = wt_stream_fill(stream, state[k], 0, 0, wt_buffer_size_bytes(state[k]));
    plan->args.frame = plan->args.step = 0;
    return status;
}

// The frames from `pcm` on, in which fewer than LOUDNESS_STREAM_STEPS steps end.
static wt_status enqueue_part(wt_loudness_plan *p, wt_stream *stream, const float *pcm, int count)
{
    loudness_stream_args *a = &p->args;
    const int64_t lines = (int64_t)p->n_signals * p->channels;
    wt_launch peaks = {.block = {256}}, power = {.block = {32}};
    a->pcm = pcm, a->count = count, a->n_steps = 0;
    while (loudness_end_of_step(a->rate_hz, a->step + a->n_steps + 1) <= a->frame + count) a->n_steps++;
    wt_status status = wt__spectrum_cuda_grid("loudness", lines, count, PEAK_FRAMES, &peaks.grid[0]);
    if (!status) status = wt__spectrum_cuda_grid("loudness", 1, lines, 32, &power.grid[0]);
    if (!status) status = wt_kernel_launch(p->peaks, stream, &peaks, &WT_ARG(*a), 1);
    if (!status) status = wt_kernel_launch(p->power, stream, &power, &WT_ARG(*a), 1);
    if (!status && a->n_steps)
        status = wt_kernel_launch(
            p->windows, stream, &(wt_launch){.grid = {p->n_signals}, .block = {LOUDNESS_STREAM_STEPS}}, &WT_ARG(*a), 1);
    a->frame += count, a->step += a->n_steps;
    return status;
}

wt_status wt_loudness_plan_enqueue(wt_loudness_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   int n_frames)
{
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "loudness: a block of %d frames, want 1 or more", n_frames);
    wt_status status = wt__op_stream("loudness", plan->device, stream);
    if (!status)
        status = wt__op_range("loudness", "input", in, in_offset,
                              (size_t)plan->n_signals * (size_t)plan->channels * (size_t)n_frames);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset), NULL, n_frames};
    if (!plan->module) return wt_stream_run(stream, meter_slot, &c, sizeof c, plan->n_slots);
    const int most = plan->args.rate_hz * (LOUDNESS_STREAM_STEPS - 2) / LOUDNESS_STEPS_PER_S;
    plan->args.stride = n_frames;
    for (int done = 0; done < n_frames && !status; done += most)
        status = enqueue_part(plan, stream, c.in + done, n_frames - done < most ? n_frames - done : most);
    return status;
}

wt_status wt_loudness_plan_query(wt_loudness_plan *plan, wt_stream *stream, wt_buffer *values, size_t values_offset)
{
    const size_t floats = (size_t)plan->n_signals * (sizeof(wt_loudness_values) / sizeof(float));
    wt_status status = wt__op_stream("loudness", plan->device, stream);
    if (!status) status = wt__op_range("loudness", "values", values, values_offset, floats);
    if (!status && values_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "loudness: values offset %zu, want a multiple of 8", values_offset);
    if (status) return status;
    const call c = {plan, NULL, (wt_loudness_values *)(wt_buffer_address(values) + values_offset), 0};
    if (!plan->module) return wt_stream_run(stream, query_slot, &c, sizeof c, plan->n_slots);
    loudness_stream_args args = plan->args;
    args.values = (loudness_values *)c.values;
    return wt_kernel_launch(plan->query, stream, &(wt_launch){.grid = {plan->n_signals}, .block = {256}}, &WT_ARG(args),
                            1);
}
