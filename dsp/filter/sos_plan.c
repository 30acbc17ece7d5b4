// Second-order sections over many signals that go on from block to block: wt_sos a signal on the CPU,
// kernels/filter/sos.cu on a GPU.

#include "op.h"
#include "sos_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct wt_sos_plan {
    wt_device *device;
    int n_signals, channels, n_sections, n_slots;
    int at;           // frames into the present piece, GPU
    wt_sos **signals; // CPU
    wt__sos_cuda cuda;
    wt_kernel *settle;
    wt_buffer *zi, *states, *held;
};

static size_t rows_of(const wt_sos_plan *p) { return (size_t)p->n_signals * (size_t)p->channels; }

static wt_status create_cpu(wt_sos_plan *p, const wt_sos_config *config)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->signals = calloc((size_t)p->n_signals, sizeof *p->signals);
    wt_status status = p->signals ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "sos: %d signals", p->n_signals);
    for (int i = 0; i < p->n_signals && !status; i++) status = wt_sos_create(config, &p->signals[i]);
    return status;
}

static wt_status create_cuda(wt_sos_plan *p, const double *sos)
{
    double scaled[WT_SOS_MAX_SECTIONS][6], zi[WT_SOS_MAX_SECTIONS][2];
    const size_t rows = rows_of(p), states = (size_t)p->n_sections * sizeof *zi;
    wt_stream *stream = NULL;
    for (int k = 0; k < 6 * p->n_sections; k++) scaled[k / 6][k % 6] = sos[k] / sos[k / 6 * 6 + 3];
    if (wt_sos_zi(scaled[0], p->n_sections, zi[0])) memset(zi, 0, sizeof zi); // as reset_to promises
    wt_status status = wt__sos_load(p->device, "sos_stream", sos, p->n_sections, &p->cuda);
    if (!status) status = wt_module_get_kernel(p->cuda.module, "sos_settle", &p->settle);
    if (!status) status = wt__op_upload(p->device, zi, states, &p->zi);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, rows * states, &p->states);
    if (!status) status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, rows * WT_SOS_PIECE * sizeof(float), &p->held);
    if (!status) status = wt_stream_create(p->device, NULL, &stream);
    if (!status) status = wt_sos_plan_reset(p, stream);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    return status;
}

wt_status wt_sos_plan_create(wt_device *device, const wt_sos_config *config, int n_signals, wt_sos_plan **plan)
{
    *plan = NULL;
    int channels;
    wt_status status = wt__sos_resolve(config, &channels);
    if (!status && !device) status = wt_fail(WT_ERR_BAD_ARG, "sos: a plan without a device");
    if (!status && (n_signals < 1 || n_signals > INT_MAX / channels))
        status = wt_fail(WT_ERR_BAD_ARG, "sos: %d signals, want 1..%d", n_signals, INT_MAX / channels);
    if (status) return status;
    wt_sos_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "sos: plan");
    *p =
        (wt_sos_plan){.device = device, .n_signals = n_signals, .channels = channels, .n_sections = config->n_sections};
    status = wt__op_on_gpu(device) ? create_cuda(p, config->sos) : create_cpu(p, config);
    if (status)
        wt_sos_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_sos_plan_destroy(wt_sos_plan *plan)
{
    if (!plan) return;
    for (int i = 0; plan->signals && i < plan->n_signals; i++) wt_sos_destroy(plan->signals[i]);
    free(plan->signals);
    wt__sos_release(&plan->cuda);
    wt_buffer_destroy(plan->zi);
    wt_buffer_destroy(plan->states);
    wt_buffer_destroy(plan->held);
    free(plan);
}

// ---- on the CPU

typedef struct call {
    const wt_sos_plan *plan;
    const float *in; // or levels
    float *out;
    int n_frames;
} call;

static void reset_slot(const void *args, int slot)
{
    const call *c = args;
    for (int i = slot; i < c->plan->n_signals; i += c->plan->n_slots)
        if (c->in)
            wt_sos_reset_to(c->plan->signals[i], c->in + (size_t)i * (size_t)c->plan->channels);
        else
            wt_sos_reset(c->plan->signals[i]);
}

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_sos_plan *p = c->plan;
    const float *in[WT__SOS_MAX_CHANNELS];
    float *out[WT__SOS_MAX_CHANNELS];
    for (int64_t i = slot; i < p->n_signals; i += p->n_slots) {
        wt__op_channels(c->in, c->out, i, p->channels, c->n_frames, in, out);
        wt_sos_process(p->signals[i], in, out, c->n_frames);
    }
}

// ---- queueing

wt_status wt_sos_plan_reset(wt_sos_plan *plan, wt_stream *stream)
{
    wt_status status = wt__op_stream("sos", plan->device, stream);
    if (status) return status;
    plan->at = 0;
    if (plan->settle) return wt_stream_fill(stream, plan->states, 0, 0, wt_buffer_size_bytes(plan->states));
    return wt_stream_run(stream, reset_slot, &(call){.plan = plan}, sizeof(call), plan->n_slots);
}

wt_status wt_sos_plan_reset_to(wt_sos_plan *plan, wt_stream *stream, const wt_buffer *level, size_t level_offset)
{
    enum { THREADS = 128 };
    wt_status status = wt__op_stream("sos", plan->device, stream);
    if (!status) status = wt__op_range("sos", "level", level, level_offset, rows_of(plan));
    if (status) return status;
    plan->at = 0;
    const float *levels = (const float *)(wt_buffer_address(level) + level_offset);
    if (!plan->settle)
        return wt_stream_run(stream, reset_slot, &(call){.plan = plan, .in = levels}, sizeof(call), plan->n_slots);
    const wt_sos_settle_args args = {.zi = (const double *)wt_buffer_address(plan->zi),
                                     .level = levels,
                                     .states = (double *)wt_buffer_address(plan->states),
                                     .n_rows = (int64_t)rows_of(plan),
                                     .n_sections = plan->n_sections};
    const int64_t blocks = (args.n_rows * args.n_sections + THREADS - 1) / THREADS; // 2^31 * 24 / 128: a grid has them
    return wt_kernel_launch(plan->settle, stream, &(wt_launch){.grid = {(int)blocks}, .block = {THREADS}},
                            &WT_ARG(args), 1);
}

wt_status wt_sos_plan_enqueue(wt_sos_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset, int n_frames,
                              wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1) return wt_fail(WT_ERR_BAD_ARG, "sos: a block of %d frames, want 1 or more", n_frames);
    wt__sos_call c;
    wt_status status = wt__sos_call_of(plan, plan->device, stream, rows_of(plan) * (size_t)n_frames, in, in_offset, out,
                                       out_offset, &c);
    if (status) return status;
    if (!plan->cuda.kernel)
        return wt_stream_run(stream, run_slot, &(call){plan, c.in, c.out, n_frames}, sizeof(call), plan->n_slots);
    const wt_sos_stream_args args = {
        .rows = {.in = c.in,
                 .out = c.out,
                 .n_frames = n_frames,
                 .n_sections = plan->n_sections,
                 .sections = (const wt_sos_section *)wt_buffer_address(plan->cuda.sections)},
        .states = (double *)wt_buffer_address(plan->states),
        .held = (float *)wt_buffer_address(plan->held),
        .at = plan->at};
    const wt_launch launch = {.grid = {(int)rows_of(plan)},
                              .block = {WT_SOS_THREADS},
                              .shared_bytes = wt__sos_shared_bytes(plan->n_sections)};
    plan->at = (int)((plan->at + (int64_t)n_frames) % WT_SOS_PIECE);
    return wt_kernel_launch(plan->cuda.kernel, stream, &launch, &WT_ARG(args), 1);
}
