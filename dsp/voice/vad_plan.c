// Voice activity of whole signals: line after line as the streaming form hears it, or kernels/voice/vad.cu. The state
// that goes from part to part has the same bytes on both backends.

#include "op.h"
#include "spectrum_cuda.h"
#include "vad_batch_kernel.h"
#include "vad_internal.h"

#include <limits.h>
#include <stdlib.h>

enum { WARPS = 8 }; // as kernels/voice/vad.cu says

struct wt_vad_plan {
    wt__vad_settings settings;
    wt_device *device;
    int64_t n_samples;
    int n_lines, n_windows;
    wt_module *module; // NULL on a CPU
    wt_kernel *listen, *decide;
    wt_buffer *windows, *states; // states: of parts that have none of their own
};

static wt_status prepare_gpu(wt_vad_plan *p)
{
    const size_t items = (size_t)p->n_lines * (size_t)(p->n_windows > 1 ? p->n_windows : 1);
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, items * sizeof(vad_window), &p->windows);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, wt_vad_plan_state_bytes(p), &p->states);
    if (!status) status = wt__op_module(p->device, "kernels/voice/vad.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "vad_batch_listen", &p->listen);
    return status ? status : wt_module_get_kernel(p->module, "vad_batch_decide", &p->decide);
}

wt_status wt_vad_plan_create(wt_device *device, const wt_vad_plan_config *config, wt_vad_plan **plan)
{
    *plan = NULL;
    const int n_lines = config->n_lines ? config->n_lines : 1;
    wt_vad_config one = config->vad;
    wt__vad_settings settings;
    one.channels = 1;
    wt_status status = wt__vad_resolve(&one, &settings);
    if (status) return status;
    if (config->n_samples < 0 || config->n_samples / settings.window > INT_MAX || n_lines < 1)
        return wt_fail(WT_ERR_BAD_ARG, "vad: %d lines of %lld samples, want 1 or more of 0 .. %lld", n_lines,
                       (long long)config->n_samples, (long long)INT_MAX * settings.window);
    wt_vad_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "vad: plan");
    *p = (wt_vad_plan){.settings = settings,
                       .device = device,
                       .n_samples = config->n_samples,
                       .n_lines = n_lines,
                       .n_windows = (int)(config->n_samples / settings.window)};
    if (wt__op_on_gpu(device)) status = prepare_gpu(p);
    if (status)
        wt_vad_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_vad_plan_destroy(wt_vad_plan *plan)
{
    if (!plan) return;
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->windows);
    wt_buffer_destroy(plan->states);
    free(plan);
}

int wt_vad_plan_windows(const wt_vad_plan *plan) { return plan->n_windows; }

int wt_vad_plan_window_frames(const wt_vad_plan *plan) { return plan->settings.window; }

size_t wt_vad_plan_state_bytes(const wt_vad_plan *plan) { return sizeof(vad_state) * (size_t)plan->n_lines; }

typedef struct call {
    const wt_vad_plan *plan;
    const float *pcm;
    wt_vad_part part;
    vad_state *states; // NULL = nobody wants them
    int *speech;
} call;

static call call_of(const wt_vad_plan *p, const float *pcm, const wt_vad_part *part, void *state, int *speech)
{
    return (call){p, pcm, part ? *part : (wt_vad_part){.n_windows = p->n_windows}, state, speech};
}

WT_RT static void hear_line(const void *args, int line)
{
    const call *c = args;
    const wt__vad_settings *v = &c->plan->settings;
    const float *x = c->pcm + line * c->plan->n_samples + c->part.from;
    int *speech = c->speech + (int64_t)line * c->part.n_windows;
    vad_state s = {0};
    if (c->part.continued) s = c->states[line];
    for (int w = 0; w < c->part.n_windows; w++, x += v->window) {
        vad_hear(&s.voice, v->high_pole, x, v->window);
        vad_end_window(&v->rules, &s.count, &s.voice, v->window);
        vad_count_on(&s.count);
        speech[w] = s.voice.active;
    }
    if (c->states) c->states[line] = s;
}

WT_RT void wt_vad_plan_run(const wt_vad_plan *plan, const float *pcm, const wt_vad_part *part, void *state, int *speech)
{
    const call c = call_of(plan, pcm, part, state, speech);
    for (int line = 0; line < plan->n_lines; line++) hear_line(&c, line);
}

static wt_status launch(const wt_vad_plan *p, wt_stream *stream, const call *c)
{
    const vad_batch_args args = {.pcm = c->pcm,
                                 .states = c->states ? c->states : (vad_state *)wt_buffer_address(p->states),
                                 .windows = (vad_window *)wt_buffer_address(p->windows),
                                 .speech = c->speech,
                                 .n_samples = p->n_samples,
                                 .from = c->part.from,
                                 .n_lines = p->n_lines,
                                 .n_windows = c->part.n_windows,
                                 .window = p->settings.window,
                                 .continued = c->part.continued,
                                 .pole = p->settings.high_pole,
                                 .rules = p->settings.rules};
    wt_launch listen = {.block = {32 * WARPS}}, decide = {.block = {32}, .grid = {(p->n_lines + 31) / 32}};
    const int64_t items = (int64_t)p->n_lines * c->part.n_windows;
    wt_status status = wt__spectrum_cuda_grid("vad", 1, items, WARPS, &listen.grid[0]);
    if (!status && items) status = wt_kernel_launch(p->listen, stream, &listen, &WT_ARG(args), 1);
    return status ? status : wt_kernel_launch(p->decide, stream, &decide, &WT_ARG(args), 1);
}

static wt_status check_part(const wt_vad_plan *p, const wt_vad_part *part, const wt_buffer *state, size_t state_offset)
{
    if (!part) return WT_OK;
    const int64_t room = part->from < 0 ? 0 : (p->n_samples - part->from) / p->settings.window;
    if (part->from < 0 || part->from > p->n_samples || part->n_windows < 0 || part->n_windows > room)
        return wt_fail(WT_ERR_BAD_ARG, "vad: %d windows from sample %lld, want them within lines of %lld",
                       part->n_windows, (long long)part->from, (long long)p->n_samples);
    if (state_offset % 8) return wt_fail(WT_ERR_BAD_ARG, "vad: state offset %zu, want a multiple of 8", state_offset);
    return wt__op_range("vad", "state", state, state_offset, wt_vad_plan_state_bytes(p) / sizeof(float));
}

wt_status wt_vad_plan_enqueue(wt_vad_plan *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                              const wt_vad_part *part, wt_buffer *state, size_t state_offset, wt_buffer *speech,
                              size_t speech_offset)
{
    const size_t n_lines = (size_t)plan->n_lines;
    wt_status status = wt__op_stream("vad", plan->device, stream);
    if (!status) status = check_part(plan, part, state, state_offset);
    call c = call_of(plan, NULL, part, NULL, NULL);
    if (!status) status = wt__op_range("vad", "pcm", pcm, pcm_offset, n_lines * (size_t)plan->n_samples);
    if (!status) status = wt__op_range("vad", "speech", speech, speech_offset, n_lines * (size_t)c.part.n_windows);
    if (status) return status;
    c.pcm = (const float *)(wt_buffer_address(pcm) + pcm_offset);
    c.speech = (int *)(wt_buffer_address(speech) + speech_offset);
    if (part) c.states = (vad_state *)(wt_buffer_address(state) + state_offset);
    return plan->module ? launch(plan, stream, &c) : wt_stream_run(stream, hear_line, &c, sizeof c, plan->n_lines);
}
