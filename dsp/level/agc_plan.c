// Gain control of many signals that go on from block to block: wt_agc a signal on the CPU, kernels/level/agc.cu on a
// GPU.

#include "agc_internal.h"
#include "op.h"

#include <stdlib.h>

struct wt_agc_plan {
    wt_device *device;
    int n_signals, channels, at, n_slots; // at: frames into the present step
    wt_agc **signals;                     // CPU
    agc_rules rules;
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
    wt_buffer *state;
};

static wt_status create_cpu(wt_agc_plan *p, const wt_agc_config *config)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->signals = calloc((size_t)p->n_signals, sizeof *p->signals);
    wt_status status = p->signals ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "agc: %d signals", p->n_signals);
    for (int i = 0; i < p->n_signals && !status; i++) status = wt_agc_create(config, &p->signals[i]);
    return status;
}

static wt_status create_cuda(wt_agc_plan *p)
{
    const size_t bytes = (size_t)p->n_signals * sizeof(agc_batch_state);
    wt_stream *stream = NULL;
    wt_status status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, bytes, &p->state);
    if (!status) status = wt__op_module(p->device, "kernels/level/agc.cu", NULL, 0, &p->module);
    if (!status) status = wt_module_get_kernel(p->module, "agc_batch", &p->kernel);
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_agc_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

wt_status wt_agc_plan_create(wt_device *device, const wt_agc_config *config, int n_signals, wt_agc_plan **plan)
{
    *plan = NULL;
    agc_rules rules;
    int channels;
    wt_status status = wt__agc_resolve(config, &rules, &channels);
    if (!status && !device) status = wt_fail(WT_ERR_BAD_ARG, "agc: a plan without a device");
    if (!status && n_signals < 1) status = wt_fail(WT_ERR_BAD_ARG, "agc: %d signals, want 1 or more", n_signals);
    if (status) return status;
    wt_agc_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "agc: plan");
    *p = (wt_agc_plan){.device = device, .n_signals = n_signals, .channels = channels, .rules = rules};
    status = wt__op_on_gpu(device) ? create_cuda(p) : create_cpu(p, config);
    if (status)
        wt_agc_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_agc_plan_destroy(wt_agc_plan *plan)
{
    if (!plan) return;
    for (int i = 0; plan->signals && i < plan->n_signals; i++) wt_agc_destroy(plan->signals[i]);
    free(plan->signals);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->state);
    free(plan);
}

typedef struct call {
    const wt_agc_plan *plan;
    const float *in;
    float *out;
    int n_frames;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots) wt_agc_reset(c->plan->signals[i]);
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_agc_plan *p = c->plan;
    const float *in[AGC_MAX_CHANNELS];
    float *out[AGC_MAX_CHANNELS];
    for (int64_t i = slot; i < p->n_signals; i += p->n_slots) {
        wt__op_channels(c->in, c->out, i, p->channels, c->n_frames, in, out);
        wt_agc_process(p->signals[i], in, out, c->n_frames);
    }
}

wt_status wt_agc_plan_reset(wt_agc_plan *plan, wt_stream *stream)
{
    wt_status status = wt__op_stream("agc", plan->device, stream);
    if (status) return status;
    plan->at = 0;
    if (plan->kernel) return wt_stream_fill(stream, plan->state, 0, 0, wt_buffer_size_bytes(plan->state));
    return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
}

wt_status wt_agc_plan_enqueue(wt_agc_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, int n_frames,
                              wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "agc: a block of %d frames, want 1 or more", n_frames);
    const size_t count = (size_t)plan->n_signals * (size_t)plan->channels * (size_t)n_frames;
    wt_status status = wt__op_stream("agc", plan->device, stream);
    if (!status) status = wt__op_range("agc", "input", in, in_offset, count);
    if (!status) status = wt__op_range("agc", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames};
    if (!plan->kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    const agc_batch_args args = {.in = c.in,
                                 .out = c.out,
                                 .state = (agc_batch_state *)wt_buffer_address(plan->state),
                                 .n_frames = n_frames,
                                 .channels = plan->channels,
                                 .at = plan->at,
                                 .rules = plan->rules};
    plan->at = (int)((plan->at + (int64_t)n_frames) % AGC_STEP);
    return wt_kernel_launch(plan->kernel, stream, &(wt_launch){.grid = {plan->n_signals}, .block = {256}},
                            &WT_ARG(args), 1);
}
