// Samples on a stream, as files hold them: wt_pcm_read a signal on the CPU, kernels/level/pcm.cu on a GPU.

#include "op.h"

#include <warptone/pcm.h>

#include "pcm_kernel.h"
#include <limits.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 1024 };

struct wt_pcm_plan {
    wt_device *device;
    wt_pcm_plan_config config;
    wt_module *module; // NULL on a CPU
    wt_kernel *kernel;
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
    *p = (wt_pcm_plan){device, *config, NULL, NULL};
    wt_status status =
        wt__op_on_gpu(device) ? wt__op_module(device, "kernels/level/pcm.cu", NULL, 0, &p->module) : WT_OK;
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

wt_status wt_pcm_plan_enqueue(wt_pcm_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              wt_buffer *out, size_t out_offset)
{
    const wt_pcm_plan_config *p = &plan->config;
    const size_t frames = (size_t)p->n_signals * (size_t)p->n_frames, samples = frames * (size_t)p->channels;
    const size_t bytes = (size_t)wt_pcm_bytes(p->format), room = wt_buffer_size_bytes(in);
    const size_t align = p->format == WT_PCM_S24 ? 1 : bytes;
    wt_status status = wt__op_stream("pcm", plan->device, stream);
    if (!status && (in_offset > room || samples > (room - in_offset) / bytes || in_offset % align))
        status = wt_fail(WT_ERR_BAD_ARG, "pcm: input of %zu bytes at %zu, want it aligned within the buffer's %zu",
                         samples * bytes, in_offset, room);
    if (!status) status = wt__op_range("pcm", "out", out, out_offset, p->fold ? frames : samples);
    if (status) return status;
    const call c = {plan, (const unsigned char *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->kernel) return wt_stream_run(stream, run_signal, &c, sizeof c, p->n_signals);
    const wt_pcm_args args = {c.in, c.out, p->n_frames, p->channels, p->n_signals, (int)p->format, p->fold};
    const wt_launch launch = {.grid = {(int)((p->n_frames + 255) / 256), p->n_signals}, .block = {256}};
    return wt_kernel_launch(plan->kernel, stream, &launch, &WT_ARG(args), 1);
}
