// Many streams on a device. Where frames end is counted here, when blocks are queued; samples and sums stay there: on
// the CPU in a stream a line, on a GPU in two buffers each, used in turn.

#include "fft_double_cuda.h"
#include "op.h"
#include "spectrum_cuda.h"
#include "stft_stream_internal.h"

#include "stft_stream_wide_kernel.h"
#include <limits.h>
#include <stdlib.h>

// Frames of lengths that no block transforms: there, or back, by rows in memory.
typedef struct by_rows {
    wt__fft64_cuda fft;
    wt_module *module;
    wt_kernel *fill, *give, *put, *leave;
    wt_buffer *window;
} by_rows;

typedef struct on_gpu {
    wt__spectrum_cuda spectrum;
    wt_module *state;
    wt_kernel *forward, *back; // NULL: by rows
    wt_kernel *keep, *add;
    by_rows wide;
    const float *window;
    wt_buffer *steady, *windowed;
    wt_buffer *held[2], *sums[2]; // the first is read next
} on_gpu;

struct wt_stft_stream_plan {
    wt_device *device;
    int n_lines, max_samples, n_fft, hop, bins, n_slots;
    int n_held;             // samples of the present frame that have been queued
    int last, first, count; // the last block, 0 = its way back was queued: samples, where its frame 0 ends, frames
    wt_stft_stream **lines; // on a GPU one, for its tables
    on_gpu gpu;
};

// ---- life

static wt_status make_lines(const wt_stft_config *config, int n, wt_stft_stream_plan *p)
{
    wt_stft_config one = *config;
    one.channels = 1;
    p->lines = calloc((size_t)n, sizeof *p->lines);
    wt_status status = p->lines ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "stft stream: %d lines", n);
    for (int i = 0; i < n && !status; i++) status = wt_stft_stream_create(&one, &p->lines[i]);
    if (status) return status;
    const wt_stft_config *c = wt__stft_config(wt__stft_stream_stft(p->lines[0]));
    p->n_fft = c->n_fft, p->hop = c->hop, p->bins = c->n_fft / 2 + 1;
    p->n_held = p->n_fft - p->hop;
    return WT_OK;
}

static wt_status take_state(wt_stft_stream_plan *p)
{
    on_gpu *g = &p->gpu;
    const size_t line = (size_t)p->n_lines * (size_t)p->n_fft * sizeof(float);
    const size_t most = (size_t)(p->max_samples + p->hop - 1) / (size_t)p->hop;
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, line * most, &g->windowed);
    for (int i = 0; i < 2 && !status; i++) {
        status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, line, &g->held[i]);
        if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, line, &g->sums[i]);
    }
    if (!status)
        status =
            wt__op_upload(p->device, wt__stft_stream_steady(p->lines[0]), (size_t)p->hop * sizeof(float), &g->steady);
    wt_stream *stream = NULL;
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_stft_stream_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

static wt_status prepare_rows(wt_stft_stream_plan *p, const float *window)
{
    by_rows *w = &p->gpu.wide;
    const int64_t most = (p->max_samples + p->hop - 1) / p->hop;
    wt_status status = wt__fft64_cuda_create("stft stream", p->device, p->n_fft, p->n_lines * most, 1, &w->fft);
    if (!status) status = wt__op_upload(p->device, window, (size_t)p->n_fft * sizeof *window, &w->window);
    if (!status) status = wt__op_module(p->device, "kernels/spectral/stft_stream_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "stft_stream_fill", &w->fill);
    if (!status) status = wt_module_get_kernel(w->module, "stft_stream_give", &w->give);
    if (!status) status = wt_module_get_kernel(w->module, "stft_stream_put", &w->put);
    if (!status) status = wt_module_get_kernel(w->module, "stft_stream_leave", &w->leave);
    if (!status) p->gpu.window = (const float *)wt_buffer_address(w->window);
    return status;
}

static wt_status prepare_frames(wt_stft_stream_plan *p)
{
    on_gpu *g = &p->gpu;
    const float *window = wt__stft_window(wt__stft_stream_stft(p->lines[0]));
    wt_status status = wt__spectrum_cuda_open("stft stream", p->device, "kernels/spectral/stft_stream.cu", p->n_fft,
                                              window, &g->spectrum);
    if (status == WT_ERR_UNSUPPORTED) return prepare_rows(p, window);
    g->window = g->spectrum.args.window;
    if (!status) status = wt_module_get_kernel(g->spectrum.module, "stft_stream_forward", &g->forward);
    return status ? status : wt_module_get_kernel(g->spectrum.module, "stft_stream_back", &g->back);
}

static wt_status prepare_gpu(wt_stft_stream_plan *p)
{
    on_gpu *g = &p->gpu;
    wt_status status = prepare_frames(p);
    if (!status) status = wt__op_module(p->device, "kernels/spectral/stft_stream_state.cu", NULL, 0, &g->state);
    if (!status) status = wt_module_get_kernel(g->state, "stft_stream_keep", &g->keep);
    if (!status) status = wt_module_get_kernel(g->state, "stft_stream_add", &g->add);
    return status ? status : take_state(p);
}

wt_status wt_stft_stream_plan_create(wt_device *device, const wt_stft_stream_plan_config *config,
                                     wt_stft_stream_plan **plan)
{
    *plan = NULL;
    const int64_t channels = config->stft.channels ? config->stft.channels : 1,
                  signals = config->n_signals ? config->n_signals : 1;
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "stft stream: a plan without a device");
    if (channels < 1 || signals < 1 || channels * signals > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "stft stream: %d signals of %d channels, want 1..%d lines", config->n_signals,
                       config->stft.channels, INT_MAX);
    if (config->max_samples < 1 || config->max_samples > INT_MAX / 4)
        return wt_fail(WT_ERR_BAD_ARG, "stft stream: max_samples %d, want 1..%d", config->max_samples, INT_MAX / 4);
    wt_stft_stream_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "stft stream: plan");
    p->device = device, p->n_lines = (int)(channels * signals), p->max_samples = config->max_samples;
    p->n_slots = wt__op_slots(device, p->n_lines);
    const bool gpu = wt__op_on_gpu(device);
    wt_status status = make_lines(&config->stft, gpu ? 1 : p->n_lines, p);
    if (!status && gpu) status = prepare_gpu(p);
    if (status)
        wt_stft_stream_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_stft_stream_plan_destroy(wt_stft_stream_plan *plan)
{
    if (!plan) return;
    on_gpu *g = &plan->gpu;
    for (int i = 0, n = wt__op_on_gpu(plan->device) ? 1 : plan->n_lines; plan->lines && i < n; i++)
        wt_stft_stream_destroy(plan->lines[i]);
    free(plan->lines);
    wt__spectrum_cuda_release(&g->spectrum);
    wt__fft64_cuda_release(&g->wide.fft);
    wt_module_destroy(g->wide.module);
    wt_module_destroy(g->state);
    wt_buffer *const buffers[] = {g->steady,  g->windowed, g->held[0],    g->held[1],
                                  g->sums[0], g->sums[1],  g->wide.window};
    for (int i = 0; i < 7; i++) wt_buffer_destroy(buffers[i]);
    free(plan);
}

int wt_stft_stream_plan_frames(const wt_stft_stream_plan *p, int n)
{
    const int behind = n - (p->n_fft - p->n_held); // samples behind the end of the present frame
    return n < 1 || behind < 0 ? 0 : behind / p->hop + 1;
}

// ---- on the CPU

typedef struct call {
    const wt_stft_stream_plan *plan;
    const float *in;
    float *out;
    int n, n_frames;
} call;

static void forward_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots)
        wt__stft_stream_forward(c->plan->lines[i], c->in + i * c->n, c->n,
                                c->out + i * c->n_frames * c->plan->bins * 2);
}

static void inverse_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots)
        wt__stft_stream_inverse(c->plan->lines[i], c->in + i * c->n_frames * c->plan->bins * 2, c->n,
                                c->out + i * c->n);
}

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int64_t i = slot; i < c->plan->n_lines; i += c->plan->n_slots) wt_stft_stream_reset(c->plan->lines[i]);
}

// ---- on a GPU

static void swap(wt_buffer **pair)
{
    wt_buffer *other = pair[0];
    pair[0] = pair[1], pair[1] = other;
}

static wt_stft_stream_args gpu_args(const wt_stft_stream_plan *p, wt_buffer *const *state, float *pcm, float *frames)
{
    return (wt_stft_stream_args){.pcm = pcm,
                                 .frames = frames,
                                 .old = (const float *)wt_buffer_address(state[0]),
                                 .state = (float *)wt_buffer_address(state[1]),
                                 .windowed = (float *)wt_buffer_address(p->gpu.windowed),
                                 .window = p->gpu.window,
                                 .twiddles = p->gpu.spectrum.args.twiddles,
                                 .steady = (const float *)wt_buffer_address(p->gpu.steady),
                                 .n = p->last,
                                 .n_frames = p->count,
                                 .hop = p->hop,
                                 .n_fft = p->n_fft,
                                 .first = p->first};
}

// All frames one way, as many rows at a time as the work space has: numbers that come, a transform, numbers that go.
static wt_status run_rows(const wt_stft_stream_plan *p, wt_stream *stream, const wt_stft_stream_args *args, bool back)
{
    const by_rows *w = &p->gpu.wide;
    const int64_t all = (int64_t)p->n_lines * args->n_frames, coming = back ? p->bins : p->n_fft,
                  going = back ? p->n_fft : p->bins;
    wt_status status = WT_OK;
    for (int64_t first = 0; first < all && !status; first += w->fft.rows) {
        const int64_t rows = all - first < w->fft.rows ? all - first : w->fft.rows;
        const wt_stft_stream_wide_args a = {.stream = *args,
                                            .in = w->fft.in,
                                            .out = w->fft.out,
                                            .first = first,
                                            .n_rows = (int)rows,
                                            .pitch = w->fft.points};
        status = wt__fft64_cuda_each("stft stream", back ? w->put : w->fill, stream, WT_ARG(a), rows * coming);
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, rows);
        if (!status)
            status = wt__fft64_cuda_each("stft stream", back ? w->leave : w->give, stream, WT_ARG(a), rows * going);
    }
    return status;
}

// The frames one way, when there are any, and the samples.
static wt_status launch(const wt_stft_stream_plan *p, wt_stream *stream, const wt_stft_stream_args *args, bool back)
{
    const wt__spectrum_cuda *s = &p->gpu.spectrum;
    wt_launch by_frame = {.block = {s->threads}, .shared_bytes = s->shared_bytes}, by_sample = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("stft stream", p->n_lines, back ? (int64_t)args->n + p->n_fft : p->n_fft,
                                              256, &by_sample.grid[0]);
    if (!status && p->gpu.forward)
        status = wt__spectrum_cuda_grid("stft stream", p->n_lines, args->n_frames, wt__spectrum_sequences(p->n_fft),
                                        &by_frame.grid[0]);
    if (!status && !p->gpu.forward)
        status = run_rows(p, stream, args, back);
    else if (!status && args->n_frames)
        status = wt_kernel_launch(back ? p->gpu.back : p->gpu.forward, stream, &by_frame, &WT_ARG(*args), 1);
    if (status) return status;
    return wt_kernel_launch(back ? p->gpu.add : p->gpu.keep, stream, &by_sample, &WT_ARG(*args), 1);
}

// ---- queueing

wt_status wt_stft_stream_plan_reset(wt_stft_stream_plan *p, wt_stream *stream)
{
    wt_status status = wt__op_stream("stft stream", p->device, stream);
    if (status) return status;
    p->n_held = p->n_fft - p->hop, p->last = 0;
    if (!p->gpu.keep) return wt_stream_run(stream, reset_slot, &(call){.plan = p}, sizeof(call), p->n_slots);
    const size_t bytes = (size_t)p->n_lines * (size_t)p->n_fft * sizeof(float);
    status = wt_stream_fill(stream, p->gpu.held[0], 0, 0, bytes);
    return status ? status : wt_stream_fill(stream, p->gpu.sums[0], 0, 0, bytes);
}

static size_t spectra(const wt_stft_stream_plan *p, int n_frames)
{
    return (size_t)p->n_lines * (size_t)n_frames * (size_t)p->bins * 2;
}

// A block that completes no frame has none to hold, and no buffer need be given.
static wt_status check_frames(const wt_stft_stream_plan *p, const wt_buffer *frames, size_t offset, int n_frames)
{
    return n_frames ? wt__op_range("stft stream", "frames", frames, offset, spectra(p, n_frames)) : WT_OK;
}

static float *address(const wt_buffer *buffer, size_t offset)
{
    return buffer ? (float *)(wt_buffer_address(buffer) + offset) : NULL;
}

wt_status wt_stft_stream_plan_forward(wt_stft_stream_plan *p, wt_stream *stream, const wt_buffer *pcm,
                                      size_t pcm_offset, int n, wt_buffer *frames, size_t frames_offset)
{
    if (n < 1 || n > p->max_samples)
        return wt_fail(WT_ERR_BAD_ARG, "stft stream: a block of %d samples, want 1..%d", n, p->max_samples);
    const int count = wt_stft_stream_plan_frames(p, n);
    wt_status status = wt__op_stream("stft stream", p->device, stream);
    if (!status) status = wt__op_range("stft stream", "pcm", pcm, pcm_offset, (size_t)p->n_lines * (size_t)n);
    if (!status) status = check_frames(p, frames, frames_offset, count);
    if (status) return status;
    p->last = n, p->count = count, p->first = p->n_fft - p->n_held;
    p->n_held += n - count * p->hop;
    if (!p->gpu.keep) {
        const call c = {p, address(pcm, pcm_offset), address(frames, frames_offset), n, count};
        return wt_stream_run(stream, forward_slot, &c, sizeof c, p->n_slots);
    }
    const wt_stft_stream_args args = gpu_args(p, p->gpu.held, address(pcm, pcm_offset), address(frames, frames_offset));
    swap(p->gpu.held);
    return launch(p, stream, &args, false);
}

wt_status wt_stft_stream_plan_inverse(wt_stft_stream_plan *p, wt_stream *stream, const wt_buffer *frames,
                                      size_t frames_offset, wt_buffer *pcm, size_t pcm_offset)
{
    const int n = p->last;
    if (!n) return wt_fail(WT_ERR_BAD_ARG, "stft stream: no block whose way back was not queued before");
    wt_status status = wt__op_stream("stft stream", p->device, stream);
    if (!status) status = check_frames(p, frames, frames_offset, p->count);
    if (!status) status = wt__op_range("stft stream", "pcm", pcm, pcm_offset, (size_t)p->n_lines * (size_t)n);
    if (status) return status;
    p->last = 0;
    if (!p->gpu.keep) {
        const call c = {p, address(frames, frames_offset), address(pcm, pcm_offset), n, p->count};
        return wt_stream_run(stream, inverse_slot, &c, sizeof c, p->n_slots);
    }
    wt_stft_stream_args args = gpu_args(p, p->gpu.sums, address(pcm, pcm_offset), address(frames, frames_offset));
    args.n = n;
    swap(p->gpu.sums);
    return launch(p, stream, &args, true);
}
