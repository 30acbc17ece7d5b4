// Loudness of many programmes on a stream: a meter a thread, or kernels/level/loudness.cu.

#include "loudness_internal.h"
#include "spectrum_cuda.h"

#include <stdlib.h>

enum { BLOCK = 1 << 22 };                                           // frames a meter is given at once
enum { POWER_ITEMS = 128, PEAK_FRAMES = 2048, WINDOW_STEPS = 256 }; // as kernels/level/loudness.cu says

struct wt_loudness_batch {
    int64_t n_frames;
    int n_signals, channels, n_slots;
    wt_device *device;
    wt_loudness **meters; // [n_slots]
    wt_module *module;    // NULL on a CPU
    wt_kernel *power, *peaks, *windows, *finish;
    wt_buffer *steps, *facts, *blocks, *ranges;
    loudness_args args;
};

_Static_assert(sizeof(loudness_values) == sizeof(wt_loudness_values), "the kernel's values are the header's");

// ---- a GPU

static int64_t steps_of(int rate_hz, int64_t n_frames)
{
    int64_t steps = n_frames * LOUDNESS_STEPS_PER_S / rate_hz + 1;
    while (loudness_end_of_step(rate_hz, steps) > n_frames) steps--;
    return steps;
}

static wt_status take(wt_loudness_batch *b, int64_t count, size_t size, wt_buffer **buffer, void **address)
{
    wt_status status = wt_buffer_create(b->device, WT_MEMORY_DEVICE, (size_t)(count > 1 ? count : 1) * size, buffer);
    if (!status) *address = (void *)wt_buffer_address(*buffer);
    return status;
}

static wt_status prepare_gpu(wt_loudness_batch *b)
{
    loudness_args *a = &b->args;
    const int64_t n = b->n_signals, steps = steps_of(a->rate_hz, b->n_frames);
    a->n_frames = b->n_frames, a->n_signals = n, a->n_steps = steps;
    a->n_blocks = steps >= LOUDNESS_MOMENTARY ? (steps - LOUDNESS_MOMENTARY) / 10 + 1 : 0;
    a->n_ranges = steps >= LOUDNESS_SHORT_TERM ? (steps - LOUDNESS_SHORT_TERM) / 100 + 1 : 0;
    wt_status status = take(b, n * a->channels * steps, sizeof(double), &b->steps, (void **)&a->steps);
    if (!status) status = take(b, n, sizeof(loudness_facts), &b->facts, (void **)&a->facts);
    if (!status) status = take(b, n * a->n_blocks, sizeof(loudness_block), &b->blocks, (void **)&a->blocks);
    if (!status) status = take(b, n * a->n_ranges, sizeof(loudness_block), &b->ranges, (void **)&a->ranges);
    if (!status) status = wt__op_module(b->device, "kernels/level/loudness.cu", NULL, 0, &b->module);
    if (!status) status = wt_module_get_kernel(b->module, "loudness_power", &b->power);
    if (!status) status = wt_module_get_kernel(b->module, "loudness_peaks", &b->peaks);
    if (!status) status = wt_module_get_kernel(b->module, "loudness_windows", &b->windows);
    return status ? status : wt_module_get_kernel(b->module, "loudness_finish", &b->finish);
}

// A kernel over `count` numbers of each of n_lines, `per_block` of them a block.
static wt_status launch(wt_kernel *kernel, wt_stream *stream, const loudness_args *args, int64_t n_lines, int64_t count,
                        int per_block, int threads)
{
    wt_launch shape = {.block = {threads}};
    if (!count) return WT_OK;
    wt_status status = wt__spectrum_cuda_grid("loudness", n_lines, count, per_block, &shape.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &shape, &WT_ARG(*args), 1);
}

static wt_status enqueue_gpu(const wt_loudness_batch *b, wt_stream *stream, const float *pcm,
                             wt_loudness_values *values)
{
    loudness_args args = b->args;
    const int64_t lines = args.n_signals * args.channels;
    const int64_t seconds = (args.n_steps + LOUDNESS_STEPS_PER_S - 1) / LOUDNESS_STEPS_PER_S;
    args.pcm = pcm, args.values = (loudness_values *)values;
    wt_status status = wt_stream_fill(stream, b->facts, 0, 0, wt_buffer_size_bytes(b->facts));
    if (!status) status = launch(b->power, stream, &args, 1, lines * seconds, POWER_ITEMS, POWER_ITEMS);
    if (!status) status = launch(b->peaks, stream, &args, lines, args.n_frames, PEAK_FRAMES, 256);
    if (!status) status = launch(b->windows, stream, &args, args.n_signals, args.n_steps, WINDOW_STEPS, WINDOW_STEPS);
    return status ? status : launch(b->finish, stream, &args, 1, args.n_signals, 1, 256);
}

// ---- life

wt_status wt_loudness_batch_create(wt_device *device, const wt_loudness_batch_config *config, wt_loudness_batch **batch)
{
    *batch = NULL;
    const int n_signals = config->n_signals ? config->n_signals : 1;
    if (config->n_frames < 1 || n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "loudness: %d programmes of %lld frames, want 1 or more", n_signals,
                       (long long)config->n_frames);
    wt_loudness_batch *b = calloc(1, sizeof *b);
    if (!b) return wt_fail(WT_ERR_NO_MEMORY, "loudness: batch");
    b->n_frames = config->n_frames, b->n_signals = n_signals, b->device = device;
    b->n_slots = wt__op_slots(device, n_signals);
    b->meters = calloc((size_t)b->n_slots, sizeof *b->meters);
    wt_status status = b->meters ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "loudness: %d threads", b->n_slots);
    for (int slot = 0; slot < b->n_slots && !status; slot++)
        status = wt_loudness_create(&config->meter, &b->meters[slot]);
    if (!status) wt__loudness_describe(b->meters[0], &b->args);
    b->channels = b->args.channels;
    if (!status && wt__op_on_gpu(device)) status = prepare_gpu(b);
    if (status)
        wt_loudness_batch_destroy(b);
    else
        *batch = b;
    return status;
}

void wt_loudness_batch_destroy(wt_loudness_batch *batch)
{
    if (!batch) return;
    for (int slot = 0; batch->meters && slot < batch->n_slots; slot++) wt_loudness_destroy(batch->meters[slot]);
    free(batch->meters);
    wt_module_destroy(batch->module);
    wt_buffer_destroy(batch->steps);
    wt_buffer_destroy(batch->facts);
    wt_buffer_destroy(batch->blocks);
    wt_buffer_destroy(batch->ranges);
    free(batch);
}

// ---- running

typedef struct call {
    const wt_loudness_batch *batch;
    const float *pcm;
    wt_loudness_values *values;
} call;

static void meter_programme(const wt_loudness_batch *b, wt_loudness *meter, const float *pcm,
                            wt_loudness_values *values)
{
    const float *in[WT_LOUDNESS_MAX_CHANNELS];
    wt_loudness_reset(meter);
    for (int64_t at = 0; at < b->n_frames; at += BLOCK) {
        for (int c = 0; c < b->channels; c++) in[c] = pcm + c * b->n_frames + at;
        wt_loudness_process(meter, in, b->n_frames - at < BLOCK ? (int)(b->n_frames - at) : BLOCK);
    }
    wt_loudness_query(meter, values);
}

static void meter_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_loudness_batch *b = c->batch;
    for (int64_t s = slot; s < b->n_signals; s += b->n_slots)
        meter_programme(b, b->meters[slot], c->pcm + s * b->channels * b->n_frames, c->values + s);
}

WT_RT void wt_loudness_batch_run(wt_loudness_batch *batch, const float *pcm, wt_loudness_values *values)
{
    const call c = {batch, pcm, values};
    for (int slot = 0; slot < batch->n_slots; slot++) meter_slot(&c, slot);
}

wt_status wt_loudness_batch_enqueue(wt_loudness_batch *batch, wt_stream *stream, const wt_buffer *pcm,
                                    size_t pcm_offset, wt_buffer *values, size_t values_offset)
{
    const size_t n = (size_t)batch->n_signals, floats = n * (size_t)batch->channels * (size_t)batch->n_frames;
    wt_status status = wt__op_stream("loudness", batch->device, stream);
    if (!status) status = wt__op_range("loudness", "pcm", pcm, pcm_offset, floats);
    if (!status)
        status =
            wt__op_range("loudness", "values", values, values_offset, n * (sizeof(wt_loudness_values) / sizeof(float)));
    if (!status && values_offset % sizeof(double))
        status = wt_fail(WT_ERR_BAD_ARG, "loudness: values offset %zu, want a multiple of 8", values_offset);
    if (status) return status;
    const call c = {batch, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                    (wt_loudness_values *)(wt_buffer_address(values) + values_offset)};
    if (batch->module) return enqueue_gpu(batch, stream, c.pcm, c.values);
    return wt_stream_run(stream, meter_slot, &c, sizeof c, batch->n_slots);
}
