// Samples on a stream, as files hold them: wt_pcm_read and wt_pcm_write a signal on the CPU, kernels/level/pcm.cu on a
// GPU.

#include "op.h"

#include <warptone/pcm.h>

#include "pcm_kernel.h"
#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 1024 };

struct wt_pcm_plan {
    wt_device *device;
    wt_pcm_plan_config config;
    wt_module *module; // NULL on a CPU
    wt_kernel *read, *write, *written;
};

wt_status wt_pcm_plan_create(wt_device *device, const wt_pcm_plan_config *config, wt_pcm_plan **plan)
{
    const wt_pcm_plan_config *c = config;
    *plan = NULL;
    if ((unsigned)c->format > WT_PCM_F64)
        return wt_fail(WT_ERR_BAD_ARG, "pcm: format %d, want 0..%d", (int)c->format, WT_PCM_F64);
    if (c->channels < 1 || c->channels > MAX_CHANNELS || c->n_frames < 1 || c->n_frames > INT_MAX || c->n_signals < 1 ||
        c->n_signals > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "pcm: %d signals of %d channels and %lld frames, want 1..65535, 1..%d, 1..%d",
                       c->n_signals, c->channels, (long long)c->n_frames, MAX_CHANNELS, INT_MAX);
    wt_pcm_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pcm: plan");
    *p = (wt_pcm_plan){.device = device, .config = *config};
    wt_status status =
        wt__op_on_gpu(device) ? wt__op_module(device, "kernels/level/pcm.cu", NULL, 0, &p->module) : WT_OK;
    if (p->module && !status) status = wt_module_get_kernel(p->module, "pcm_read", &p->read);
    if (p->module && !status) status = wt_module_get_kernel(p->module, "pcm_write", &p->write);
    if (p->module && !status) status = wt_module_get_kernel(p->module, "pcm_written", &p->written);
    if (status)
        wt_pcm_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_pcm_plan_destroy(wt_pcm_plan *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct call {
    const wt_pcm_plan *plan;
    const unsigned char *in;
    float *out;
} call;

static void fold_signal(const wt_pcm_plan_config *c, const unsigned char *in, float *out)
{
    enum { ROOM = 4096 };
    float block[ROOM], *rows[MAX_CHANNELS];
    const int step = ROOM / c->channels, frame_bytes = c->channels * wt_pcm_bytes(c->format);
    for (int k = 0; k < c->channels; k++) rows[k] = block + k * step;
    for (int64_t t = 0; t < c->n_frames; t += step) {
        const int n = c->n_frames - t < step ? (int)(c->n_frames - t) : step;
        wt_pcm_read(c->format, in + t * frame_bytes, c->channels, n, rows);
        wt_pcm_to_mono((const float *const *)rows, c->channels, n, out + t);
    }
}

static void run_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_pcm_plan_config *p = &c->plan->config;
    const size_t samples = (size_t)p->channels * (size_t)p->n_frames;
    const unsigned char *in = c->in + (size_t)signal * samples * (size_t)wt_pcm_bytes(p->format);
    float *rows[MAX_CHANNELS];
    if (p->fold) {
        fold_signal(p, in, c->out + signal * p->n_frames);
        return;
    }
    for (int k = 0; k < p->channels; k++) rows[k] = c->out + (size_t)signal * samples + (size_t)(k * p->n_frames);
    wt_pcm_read(p->format, in, p->channels, (int)p->n_frames, rows);
}

/// Samples of the format within a buffer, aligned as it.
static wt_status check_samples(const wt_pcm_plan_config *p, const char *what, const wt_buffer *buffer, size_t offset)
{
    const size_t samples = (size_t)p->n_signals * (size_t)p->n_frames * (size_t)p->channels;
    const size_t bytes = (size_t)wt_pcm_bytes(p->format), room = wt_buffer_size_bytes(buffer);
    if (offset > room || samples > (room - offset) / bytes || offset % (p->format == WT_PCM_S24 ? 1 : bytes))
        return wt_fail(WT_ERR_BAD_ARG, "pcm: %s of %zu bytes at %zu, want it aligned within the buffer's %zu", what,
                       samples * bytes, offset, room);
    return WT_OK;
}

static wt_launch launch_of(const wt_pcm_plan_config *p)
{
    return (wt_launch){.grid = {(int)((p->n_frames + 255) / 256), p->n_signals}, .block = {256}};
}

wt_status wt_pcm_plan_enqueue(wt_pcm_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              wt_buffer *out, size_t out_offset)
{
    const wt_pcm_plan_config *p = &plan->config;
    const size_t frames = (size_t)p->n_signals * (size_t)p->n_frames, samples = frames * (size_t)p->channels;
    wt_status status = wt__op_stream("pcm", plan->device, stream);
    if (!status) status = check_samples(p, "input", in, in_offset);
    if (!status) status = wt__op_range("pcm", "out", out, out_offset, p->fold ? frames : samples);
    if (status) return status;
    const call c = {plan, (const unsigned char *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->read) return wt_stream_run(stream, run_signal, &c, sizeof c, p->n_signals);
    const wt_pcm_args args = {c.in, c.out, p->n_frames, p->channels, p->n_signals, (int)p->format, p->fold};
    const wt_launch launch = launch_of(p);
    return wt_kernel_launch(plan->read, stream, &launch, &WT_ARG(args), 1);
}

// ---- the other way

static_assert(sizeof(wt_pcm_state) == sizeof(wt_pcm_writer) &&
                  offsetof(wt_pcm_state, n_samples) == offsetof(wt_pcm_writer, n_samples) &&
                  offsetof(wt_pcm_state, n_bad) == offsetof(wt_pcm_writer, n_bad),
              "a writer on the device");

static void write_signal(const void *args, int signal)
{
    const wt_pcm_write_args *a = args;
    const size_t samples = (size_t)a->channels * (size_t)a->n_frames;
    const float *rows[MAX_CHANNELS];
    for (int k = 0; k < a->channels; k++) rows[k] = a->in + (size_t)signal * samples + (size_t)(k * a->n_frames);
    wt_pcm_write((wt_pcm_writer *)a->states + signal, (wt_pcm_format)a->format, rows, a->channels, (int)a->n_frames,
                 a->out + (size_t)signal * samples * (size_t)wt_pcm_bytes((wt_pcm_format)a->format));
}

wt_status wt_pcm_plan_enqueue_write(wt_pcm_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                    wt_buffer *out, size_t out_offset, wt_buffer *writers, size_t writers_offset)
{
    const wt_pcm_plan_config *p = &plan->config;
    const size_t samples = (size_t)p->n_signals * (size_t)p->n_frames * (size_t)p->channels;
    const size_t room = wt_buffer_size_bytes(writers), wanted = sizeof(wt_pcm_writer) * (size_t)p->n_signals;
    wt_status status = wt__op_stream("pcm", plan->device, stream);
    if (!status && p->fold) status = wt_fail(WT_ERR_BAD_ARG, "pcm: a plan that folds writes nothing");
    if (!status) status = wt__op_range("pcm", "in", in, in_offset, samples);
    if (!status) status = check_samples(p, "output", out, out_offset);
    if (!status && (writers_offset > room || wanted > room - writers_offset || writers_offset % 8))
        status = wt_fail(WT_ERR_BAD_ARG, "pcm: writers of %zu bytes at %zu, want them aligned within the buffer's %zu",
                         wanted, writers_offset, room);
    if (status) return status;
    const wt_pcm_write_args args = {.in = (const float *)(wt_buffer_address(in) + in_offset),
                                    .out = (unsigned char *)(wt_buffer_address(out) + out_offset),
                                    .states = (wt_pcm_state *)(wt_buffer_address(writers) + writers_offset),
                                    .n_frames = p->n_frames,
                                    .channels = p->channels,
                                    .n_signals = p->n_signals,
                                    .format = (int)p->format};
    if (!plan->write) return wt_stream_run(stream, write_signal, &args, sizeof args, p->n_signals);
    const wt_launch launch = launch_of(p), after = {.grid = {(p->n_signals + 255) / 256}, .block = {256}};
    status = wt_kernel_launch(plan->write, stream, &launch, &WT_ARG(args), 1);
    return status ? status : wt_kernel_launch(plan->written, stream, &after, &WT_ARG(args), 1);
}
