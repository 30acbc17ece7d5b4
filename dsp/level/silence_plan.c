// Level and silence of many signals on a stream: the functions of silence.c, or kernels/level/level.cu.

#include "level_kernel.h"
#include "silence_internal.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <stdlib.h>

enum { WARPS = 8 }; // as kernels/level/level.cu says

static wt_level_frames_args frames_of(const wt_level_config *c, int64_t n_samples)
{
    return (wt_level_frames_args){.n_samples = n_samples,
                                  .n_frames = wt_level_frames(c, n_samples),
                                  .frame = c->frame_length,
                                  .hop = c->hop,
                                  .margin = c->no_center ? 0 : c->frame_length / 2,
                                  .pad = (int)c->pad};
}

static wt_status launch_frames(const char *op, wt_kernel *kernel, wt_stream *stream, int64_t n, const wt_arg *args)
{
    wt_launch launch = {.block = {32 * WARPS}};
    wt_status status = wt__spectrum_cuda_grid(op, 1, n, WARPS, &launch.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &launch, args, 1);
}

// ---- level

struct wt_level_plan {
    wt_level_plan_config config; // defaults resolved
    wt_device *device;
    int64_t n_frames;
    wt_module *module; // NULL on a CPU
    wt_kernel *kernel;
};

wt_status wt_level_plan_create(wt_device *device, const wt_level_plan_config *config, wt_level_plan **plan)
{
    *plan = NULL;
    wt_level_plan_config c = *config;
    c.level = wt__level_defaults(&c.level);
    if (!c.n_signals) c.n_signals = 1;
    wt_status status = wt__level_check(&c.level, c.n_samples);
    if (status) return status;
    if ((unsigned)c.kind > WT_LEVEL_ZERO_CROSSINGS || c.n_signals < 1)
        return wt_fail(WT_ERR_BAD_ARG, "level: kind %d of %d signals, want 0..%d of 1 or more", (int)c.kind,
                       c.n_signals, WT_LEVEL_ZERO_CROSSINGS);
    wt_level_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "level: plan");
    *p = (wt_level_plan){.config = c, .device = device, .n_frames = wt_level_frames(&c.level, c.n_samples)};
    if (wt__op_on_gpu(device)) status = wt__op_module(device, "kernels/level/level.cu", NULL, 0, &p->module);
    if (p->module) status = wt_module_get_kernel(p->module, "level_frames", &p->kernel);
    if (status)
        wt_level_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_level_plan_destroy(wt_level_plan *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct level_call {
    const wt_level_plan *plan;
    const float *pcm;
    float *out;
} level_call;

static void measure_signal(const void *args, int signal)
{
    const level_call *k = args;
    const wt_level_plan_config *c = &k->plan->config;
    const float *pcm = k->pcm + signal * c->n_samples;
    float *out = k->out + signal * k->plan->n_frames;
    switch (c->kind) { // checked by create
    case WT_LEVEL_RMS:
        (void)!wt_level_rms(&c->level, pcm, c->n_samples, out);
        break;
    case WT_LEVEL_ENERGY:
        (void)!wt_level_energy(&c->level, pcm, c->n_samples, out);
        break;
    case WT_LEVEL_ZERO_CROSSINGS:
        (void)!wt_level_zero_crossings(&c->level, pcm, c->n_samples, out);
        break;
    }
}

wt_status wt_level_plan_enqueue(wt_level_plan *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                wt_buffer *out, size_t out_offset)
{
    const wt_level_plan_config *c = &plan->config;
    const size_t n = (size_t)c->n_signals;
    wt_status status = wt__op_stream("level", plan->device, stream);
    if (!status) status = wt__op_range("level", "pcm", pcm, pcm_offset, n * (size_t)c->n_samples);
    if (!status) status = wt__op_range("level", "out", out, out_offset, n * (size_t)plan->n_frames);
    if (status) return status;
    const level_call k = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                          (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->kernel) return wt_stream_run(stream, measure_signal, &k, sizeof k, c->n_signals);
    wt_level_args args = {
        .frames = frames_of(&c->level, c->n_samples), .out = k.out, .n_lines = c->n_signals, .kind = (int)c->kind};
    args.frames.pcm = k.pcm;
    return launch_frames("level", plan->kernel, stream, args.n_lines * plan->n_frames, &WT_ARG(args));
}

// ---- silence

struct wt_silence {
    wt_silence_config config; // defaults resolved
    wt_device *device;
    int64_t n_frames;
    double *loud; // [n_slots][n_frames] on a CPU
    int n_slots;
    wt_module *module; // NULL on a CPU
    wt_kernel *levels, *spans;
    wt_buffer *level_buffer, *peaks;
};

static wt_status prepare_gpu(wt_silence *p)
{
    const size_t n = (size_t)p->config.n_signals;
    wt_status status =
        wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * (size_t)p->n_frames * sizeof(double), &p->level_buffer);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * sizeof(double), &p->peaks);
    if (!status) status = wt__op_module(p->device, "kernels/level/level.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "silence_levels", &p->levels);
    return status ? status : wt_module_get_kernel(p->module, "silence_spans", &p->spans);
}

static wt_status prepare_cpu(wt_silence *p)
{
    p->n_slots = wt__op_slots(p->device, p->config.n_signals);
    p->loud = malloc((size_t)p->n_slots * (size_t)p->n_frames * sizeof *p->loud);
    return p->loud ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "silence: %lld frames", (long long)p->n_frames);
}

static wt_status resolve(wt_silence_config *c)
{
    c->level = wt__level_defaults(&c->level);
    if (!c->top_db) c->top_db = 60;
    if (!c->channels) c->channels = 1;
    if (!c->n_signals) c->n_signals = 1;
    wt_status status = wt__silence_check(&c->level, c->top_db, c->channels, c->n_samples);
    if (status) return status;
    const int64_t n_frames = wt_level_frames(&c->level, c->n_samples);
    if (!c->room) c->room = c->trim ? 1 : (n_frames + 1) / 2; // silent frames stand between two parts
    if (c->n_signals >= 1 && c->room >= 1 && n_frames < INT_MAX) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "silence: %d signals of %lld frames, room for %lld spans, want 1 or more",
                   c->n_signals, (long long)n_frames, (long long)c->room);
}

wt_status wt_silence_create(wt_device *device, const wt_silence_config *config, wt_silence **plan)
{
    *plan = NULL;
    wt_silence_config c = *config;
    wt_status status = resolve(&c);
    if (status) return status;
    wt_silence *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "silence: plan");
    *p = (wt_silence){.config = c, .device = device, .n_frames = wt_level_frames(&c.level, c.n_samples)};
    status = wt__op_on_gpu(device) ? prepare_gpu(p) : prepare_cpu(p);
    if (status)
        wt_silence_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_silence_destroy(wt_silence *plan)
{
    if (!plan) return;
    free(plan->loud);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->level_buffer);
    wt_buffer_destroy(plan->peaks);
    free(plan);
}

int64_t wt_silence_room(const wt_silence *plan) { return plan->config.room; }

typedef struct silence_call {
    const wt_silence *plan;
    const float *pcm;
    wt_span *spans;
    int *counts;
} silence_call;

static void find_slot(const void *args, int slot)
{
    const silence_call *k = args;
    const wt_silence *p = k->plan;
    const wt_silence_config *c = &p->config;
    double *loud = p->loud + slot * p->n_frames;
    for (int64_t s = slot; s < c->n_signals; s += p->n_slots) {
        const float *pcm = k->pcm + s * c->channels * c->n_samples;
        wt_span *spans = k->spans + s * c->room;
        const int64_t count =
            wt__silence_find(&c->level, c->top_db, pcm, c->channels, c->n_samples, loud, spans, c->trim ? 0 : c->room);
        k->counts[s] = (int)count;
        if (!c->trim) continue;
        int64_t first = 0, last = p->n_frames;
        while (first < last && loud[first] == 0) first++;
        while (last > first && loud[last - 1] == 0) last--;
        first *= c->level.hop, last *= c->level.hop;
        spans[0] = (wt_span){first < c->n_samples ? first : c->n_samples, last < c->n_samples ? last : c->n_samples};
    }
}

static wt_status launch_silence(const wt_silence *p, wt_stream *stream, const silence_call *k)
{
    const wt_silence_config *c = &p->config;
    wt_silence_args args = {.frames = frames_of(&c->level, c->n_samples),
                            .levels = (double *)wt_buffer_address(p->level_buffer),
                            .peaks = (unsigned long long *)wt_buffer_address(p->peaks),
                            .spans = (wt_silence_span *)k->spans,
                            .counts = k->counts,
                            .n_signals = c->n_signals,
                            .room = c->room,
                            .channels = c->channels,
                            .trim = c->trim,
                            .top_db = c->top_db};
    args.frames.pcm = k->pcm;
    const wt_launch spans = {.grid = {c->n_signals}, .block = {32 * WARPS}};
    wt_status status = wt_stream_fill(stream, p->peaks, 0, 0, wt_buffer_size_bytes(p->peaks));
    if (!status) status = launch_frames("silence", p->levels, stream, args.n_signals * p->n_frames, &WT_ARG(args));
    return status ? status : wt_kernel_launch(p->spans, stream, &spans, &WT_ARG(args), 1);
}

wt_status wt_silence_enqueue(wt_silence *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                             wt_buffer *spans, size_t spans_offset, wt_buffer *counts, size_t counts_offset)
{
    const wt_silence_config *c = &plan->config;
    const size_t n = (size_t)c->n_signals, lines = n * (size_t)c->channels;
    wt_status status = wt__op_stream("silence", plan->device, stream);
    if (!status) status = wt__op_range("silence", "pcm", pcm, pcm_offset, lines * (size_t)c->n_samples);
    if (!status)
        status = wt__op_range("silence", "spans", spans, spans_offset,
                              n * (size_t)c->room * (sizeof(wt_span) / sizeof(float)));
    if (!status) status = wt__op_range("silence", "counts", counts, counts_offset, n);
    if (!status && spans_offset % sizeof(int64_t))
        status = wt_fail(WT_ERR_BAD_ARG, "silence: spans offset %zu, want a multiple of 8", spans_offset);
    if (status) return status;
    const silence_call k = {plan, (const float *)(wt_buffer_address(pcm) + pcm_offset),
                            (wt_span *)(wt_buffer_address(spans) + spans_offset),
                            (int *)(wt_buffer_address(counts) + counts_offset)};
    if (plan->module) return launch_silence(plan, stream, &k);
    return wt_stream_run(stream, find_slot, &k, sizeof k, plan->n_slots);
}
