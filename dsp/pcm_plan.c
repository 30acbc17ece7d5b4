// Samples on a stream, as files hold them: wt_pcm_read a signal on the CPU, kernels/pcm.cu on a GPU.

#include "op.h"

#include <warptone/pcm.h>

#include "pcm_kernel.h"
#include <limits.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 1024 };

struct wt_pcm_plan {
    wt_device *device;
    wt_pcm_format format;
    int channels, n_signals;
    int64_t n_frames;
    wt_module *module; // NULL on a CPU
    wt_kernel *kernel;
};

wt_status wt_pcm_plan_create(wt_device *device, wt_pcm_format format, int channels, int64_t n_frames, int n_signals,
                             wt_pcm_plan **plan)
{
    *plan = NULL;
    if ((unsigned)format > WT_PCM_F64)
        return wt_fail(WT_ERR_BAD_ARG, "pcm: format %d, want 0..%d", (int)format, WT_PCM_F64);
    if (channels < 1 || channels > MAX_CHANNELS || n_frames < 1 || n_frames > INT_MAX || n_signals < 1 ||
        n_signals > 65535)
        return wt_fail(WT_ERR_BAD_ARG, "pcm: %d signals of %d channels and %lld frames, want 1..65535, 1..%d, 1..%d",
                       n_signals, channels, (long long)n_frames, MAX_CHANNELS, INT_MAX);
    wt_pcm_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pcm: plan");
    *p = (wt_pcm_plan){device, format, channels, n_signals, n_frames, NULL, NULL};
    wt_status status = wt__op_on_gpu(device) ? wt__op_module(device, "kernels/pcm.cu", NULL, 0, &p->module) : WT_OK;
    if (p->module && !status) status = wt_module_get_kernel(p->module, "pcm_read", &p->kernel);
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

static void run_signal(const void *args, int signal)
{
    const call *c = args;
    const wt_pcm_plan *p = c->plan;
    const size_t samples = (size_t)p->channels * (size_t)p->n_frames;
    float *rows[MAX_CHANNELS];
    for (int k = 0; k < p->channels; k++) rows[k] = c->out + (size_t)signal * samples + (size_t)(k * p->n_frames);
    wt_pcm_read(p->format, c->in + (size_t)signal * samples * (size_t)wt_pcm_bytes(p->format), p->channels,
                (int)p->n_frames, rows);
}

wt_status wt_pcm_plan_enqueue(wt_pcm_plan *p, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                              size_t out_offset)
{
    const size_t samples = (size_t)p->n_signals * (size_t)p->channels * (size_t)p->n_frames;
    const size_t bytes = (size_t)wt_pcm_bytes(p->format), room = wt_buffer_size_bytes(in);
    const size_t align = p->format == WT_PCM_S24 ? 1 : bytes;
    wt_status status = wt__op_stream("pcm", p->device, stream);
    if (!status && (in_offset > room || samples > (room - in_offset) / bytes || in_offset % align))
        status = wt_fail(WT_ERR_BAD_ARG, "pcm: input of %zu bytes at %zu, want it aligned within the buffer's %zu",
                         samples * bytes, in_offset, room);
    if (!status) status = wt__op_range("pcm", "out", out, out_offset, samples);
    if (status) return status;
    const call c = {p, (const unsigned char *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!p->kernel) return wt_stream_run(stream, run_signal, &c, sizeof c, p->n_signals);
    const wt_pcm_args args = {c.in, c.out, p->n_frames, p->channels, p->n_signals, (int)p->format};
    const wt_launch launch = {.grid = {(int)((p->n_frames + 255) / 256), p->n_signals}, .block = {256}};
    return wt_kernel_launch(p->kernel, stream, &launch, &WT_ARG(args), 1);
}
