// Convolution of many signals that go on from block to block: wt_overlap_save a signal on the CPU,
// kernels/filter/overlap_save.cu on a GPU. There transforms have half the CPU's points at most, so that a pair of runs
// is made before its first output is due: the latency is the CPU's.

#include "overlap_save_internal.h"

#include <limits.h>
#include <stdlib.h>

#define WORK_FLOATS (4LL << 20) // of the inputs of a part of a block: they and its outputs stay in the caches

enum { THREADS = 256 };

typedef struct on_gpu {
    wt__overlap_save_cuda cuda;
    wt_kernel *take, *pairs, *give; // NULL on a CPU
    wt_buffer *past, *made;
    wt_overlap_save_stream_args args;
    int at_once;     // frames of a part
    int64_t n_taken; // since reset
} on_gpu;

struct wt_overlap_save_plan {
    wt_device *device;
    int n_signals, channels, max_frames, latency, n_slots;
    wt_overlap_save **signals; // CPU
    on_gpu gpu;
};

// ---- life

static wt_status create_cpu(wt_overlap_save_plan *p, const wt_overlap_save_config *config)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->signals = calloc((size_t)p->n_signals, sizeof *p->signals);
    wt_status status = p->signals ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "overlap save: %d signals", p->n_signals);
    for (int i = 0; i < p->n_signals && !status; i++) status = wt_overlap_save_create(config, &p->signals[i]);
    return status;
}

static wt_status take_rings(wt_overlap_save_plan *p, int n)
{
    on_gpu *g = &p->gpu;
    const wt_overlap_save_taps *t = &g->cuda.taps;
    const int64_t rows = (int64_t)p->n_signals * p->channels, pair = 2 * (int64_t)t->fresh;
    const int64_t reach = n - t->fresh + (int64_t)(t->n_parts - 1) * t->part, most = WORK_FLOATS / rows;
    g->at_once = (int)(p->max_frames < most ? p->max_frames : most > pair ? most : pair);
    // of a pair that is not whole yet all inputs stay
    g->args = (wt_overlap_save_stream_args){
        .n_rows = rows, .n_past = (int)(reach + pair + g->at_once), .n_made = p->latency + g->at_once, .taps = *t};
    const size_t past = (size_t)rows * (size_t)g->args.n_past, made = (size_t)rows * (size_t)g->args.n_made;
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, past * sizeof(float), &g->past);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, made * sizeof(float), &g->made);
    if (status) return status;
    g->args.past = (float *)wt_buffer_address(g->past), g->args.made = (float *)wt_buffer_address(g->made);
    return WT_OK;
}

static wt_status create_cuda(wt_overlap_save_plan *p, const wt_overlap_save_config *config, int n)
{
    on_gpu *g = &p->gpu;
    wt_stream *stream = NULL;
    const int points = n / 2 < WT_SPECTRUM_MAX ? n / 2 : WT_SPECTRUM_MAX;
    wt_status status = wt__overlap_save_load(p->device, config->taps, config->n_taps, points, &g->cuda);
    if (!status) status = wt_module_get_kernel(g->cuda.spectrum.module, "overlap_save_take", &g->take);
    if (!status) status = wt_module_get_kernel(g->cuda.spectrum.module, "overlap_save_pairs", &g->pairs);
    if (!status) status = wt_module_get_kernel(g->cuda.spectrum.module, "overlap_save_give", &g->give);
    if (!status) status = take_rings(p, points);
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_overlap_save_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

wt_status wt_overlap_save_plan_create(wt_device *device, const wt_overlap_save_plan_config *config,
                                      wt_overlap_save_plan **plan)
{
    *plan = NULL;
    int channels, n;
    wt_status status = wt__overlap_save_resolve(&config->filter, &channels, &n);
    const int n_signals = config->n_signals ? config->n_signals : 1;
    if (!status && !device) status = wt_fail(WT_ERR_BAD_ARG, "overlap save: a plan without a device");
    if (!status && (n_signals < 1 || n_signals > INT_MAX / channels))
        status = wt_fail(WT_ERR_BAD_ARG, "overlap save: %d signals, want 1..%d", n_signals, INT_MAX / channels);
    if (!status && (config->max_frames < 1 || config->max_frames > INT_MAX / 4))
        status = wt_fail(WT_ERR_BAD_ARG, "overlap save: max_frames %d, want 1..%d", config->max_frames, INT_MAX / 4);
    if (status) return status;
    wt_overlap_save_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "overlap save: plan");
    *p = (wt_overlap_save_plan){.device = device,
                                .n_signals = n_signals,
                                .channels = channels,
                                .max_frames = config->max_frames,
                                .latency = n - config->filter.n_taps + 1};
    status = wt__op_on_gpu(device) ? create_cuda(p, &config->filter, n) : create_cpu(p, &config->filter);
    if (status)
        wt_overlap_save_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_overlap_save_plan_destroy(wt_overlap_save_plan *plan)
{
    if (!plan) return;
    for (int i = 0; plan->signals && i < plan->n_signals; i++) wt_overlap_save_destroy(plan->signals[i]);
    free(plan->signals);
    wt__overlap_save_release(&plan->gpu.cuda);
    wt_buffer_destroy(plan->gpu.past);
    wt_buffer_destroy(plan->gpu.made);
    free(plan);
}

int wt_overlap_save_plan_latency_frames(const wt_overlap_save_plan *plan) { return plan->latency; }

// ---- on the CPU

typedef struct call {
    const wt_overlap_save_plan *plan;
    const float *in;
    float *out;
    int n_frames;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots) wt_overlap_save_reset(c->plan->signals[i]);
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_overlap_save_plan *p = c->plan;
    const float *in[WT__OVERLAP_SAVE_MAX_CHANNELS];
    float *out[WT__OVERLAP_SAVE_MAX_CHANNELS];
    for (int64_t i = slot; i < p->n_signals; i += p->n_slots) {
        wt__op_channels(c->in, c->out, i, p->channels, c->n_frames, in, out);
        wt_overlap_save_process(p->signals[i], in, out, c->n_frames);
    }
}

// ---- on a GPU

static wt_status launch_frames(wt_kernel *kernel, wt_stream *stream, const wt_overlap_save_stream_args *a)
{
    wt_launch launch = {.block = {THREADS}};
    wt_status status = wt__spectrum_cuda_grid("overlap save", 1, a->n_rows * a->n_frames, THREADS, &launch.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &launch, &WT_ARG(*a), 1);
}

static wt_status launch_pairs(const on_gpu *g, wt_stream *stream, const wt_overlap_save_stream_args *a)
{
    wt_launch launch = g->cuda.launch;
    if (!a->n_pairs) return WT_OK;
    wt_status status =
        wt__spectrum_cuda_grid("overlap save", 1, a->n_rows * a->n_pairs, g->cuda.teams, &launch.grid[0]);
    return status ? status : wt_kernel_launch(g->pairs, stream, &launch, &WT_ARG(*a), 1);
}

// `n` frames from `done` on, at_once at most.
static wt_status enqueue_part(wt_overlap_save_plan *p, wt_stream *stream, const call *c, int done, int n)
{
    on_gpu *g = &p->gpu;
    wt_overlap_save_stream_args a = g->args;
    const int64_t pair = 2 * (int64_t)a.taps.fresh, first = g->n_taken / pair;
    a.in = c->in + done, a.out = c->out + done, a.pitch = c->n_frames, a.n_frames = n;
    a.past_at = (int)(g->n_taken % a.n_past), a.pair_past_at = (int)(first * pair % a.n_past);
    // frame t hands out what was made for t - latency
    a.made_at = (int)((g->n_taken + a.n_made - p->latency) % a.n_made), a.pair_made_at = (int)(first * pair % a.n_made);
    g->n_taken += n;
    a.n_pairs = (int)(g->n_taken / pair - first);
    wt_status status = launch_frames(g->take, stream, &a);
    if (!status) status = launch_pairs(g, stream, &a);
    return status ? status : launch_frames(g->give, stream, &a);
}

static wt_status enqueue_cuda(wt_overlap_save_plan *p, wt_stream *stream, const call *c)
{
    wt_status status = WT_OK;
    for (int done = 0, n; done < c->n_frames && !status; done += n) {
        n = c->n_frames - done < p->gpu.at_once ? c->n_frames - done : p->gpu.at_once;
        status = enqueue_part(p, stream, c, done, n);
    }
    return status;
}

// ---- queueing

wt_status wt_overlap_save_plan_reset(wt_overlap_save_plan *plan, wt_stream *stream)
{
    on_gpu *g = &plan->gpu;
    wt_status status = wt__op_stream("overlap save", plan->device, stream);
    if (status) return status;
    g->n_taken = 0;
    if (!g->take) return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
    status = wt_stream_fill(stream, g->past, 0, 0, wt_buffer_size_bytes(g->past));
    return status ? status : wt_stream_fill(stream, g->made, 0, 0, wt_buffer_size_bytes(g->made));
}

wt_status wt_overlap_save_plan_enqueue(wt_overlap_save_plan *plan, wt_stream *stream, const wt_buffer *in,
                                       size_t in_offset, int n_frames, wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1 || n_frames > plan->max_frames)
        return wt_fail(WT_ERR_BAD_ARG, "overlap save: a block of %d frames, want 1..%d", n_frames, plan->max_frames);
    const size_t count = (size_t)plan->n_signals * (size_t)plan->channels * (size_t)n_frames;
    wt_status status = wt__op_stream("overlap save", plan->device, stream);
    if (!status) status = wt__op_range("overlap save", "input", in, in_offset, count);
    if (!status) status = wt__op_range("overlap save", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames};
    if (plan->gpu.take) return enqueue_cuda(plan, stream, &c);
    return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
