// Filtering of a batch by nearest neighbours: a signal a thread on the CPU; on a GPU one signal after the other,
// distances of as many frames at a time as the work space has room for.

#include "nn_filter_internal.h"
#include "nn_filter_kernel.h"
#include "op.h"

#include <stdlib.h>

#define WORK_BYTES (1LL << 28) // of distances

struct wt_nn_filter_plan {
    wt_device *device;
    wt_nn_filter_config config;
    int n_signals, n_slots, at_once; // at_once: frames
    wt__nn_filter_scratch *scratch;  // [n_slots], CPU
    wt_buffer *distances, *linked;
    wt_buffer *lists; // of so many frames that shared memory does not hold them
    wt_places places;
    wt_launch gather_launch;
    wt_module *module;
    wt_kernel *measure, *link, *gather; // NULL on a CPU
};

static wt_status create_cuda(wt_nn_filter_plan *p)
{
    const size_t n = (size_t)p->config.columns;
    const int64_t most = WORK_BYTES / (int64_t)(n * sizeof(double));
    p->at_once = most < p->config.columns ? (int)most : p->config.columns;
    const bool held = n * sizeof(int) <= wt_device_get_info(p->device)->shared_bytes;
    char options[2][48] = {"-fmad=false", "-DPLACES"};
    p->gather_launch = (wt_launch){
        .grid = {p->config.columns}, .block = {WT_NN_FILTER_THREADS}, .shared_bytes = held ? n * sizeof(int) : 0};
    wt_status status = wt__op_module(p->device, "kernels/decompose/nn_filter.cu", options, held ? 1 : 2, &p->module);
    if (!status && !held)
        status =
            wt__op_places(p->device, p->config.columns, 1, n * sizeof(int), &p->places, &p->gather_launch, &p->lists);
    if (!status) status = wt_module_get_kernel(p->module, "nn_distances", &p->measure);
    if (!status) status = wt_module_get_kernel(p->module, "nn_link", &p->link);
    if (!status) status = wt_module_get_kernel(p->module, "nn_gather", &p->gather);
    if (!status)
        status = wt_buffer_create(p->device, WT_MEMORY_DEVICE, (size_t)p->at_once * n * sizeof(double), &p->distances);
    return status ? status : wt_buffer_create(p->device, WT_MEMORY_DEVICE, n * n, &p->linked);
}

static wt_status create_cpu(wt_nn_filter_plan *p)
{
    p->n_slots = wt__op_slots(p->device, p->n_signals);
    p->scratch = calloc((size_t)p->n_slots, sizeof *p->scratch);
    wt_status status = p->scratch ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "nn_filter: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = wt__nn_filter_take(&p->config, &p->scratch[slot]);
    return status;
}

wt_status wt_nn_filter_plan_create(wt_device *device, const wt_nn_filter_config *config, int n_signals,
                                   wt_nn_filter_plan **plan)
{
    *plan = NULL;
    wt_nn_filter_config c = *config;
    wt_status status = wt__nn_filter_resolve(&c);
    if (status) return status;
    if (n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "nn_filter: %d signals, want 1 or more", n_signals);
    wt_nn_filter_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "nn_filter: plan");
    p->device = device, p->config = c, p->n_signals = n_signals;
    status = wt__op_on_gpu(device) ? create_cuda(p) : create_cpu(p);
    if (status)
        wt_nn_filter_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_nn_filter_plan_destroy(wt_nn_filter_plan *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->scratch && slot < plan->n_slots; slot++) wt__nn_filter_free(&plan->scratch[slot]);
    free(plan->scratch);
    wt_module_destroy(plan->module);
    wt_buffer_destroy(plan->distances);
    wt_buffer_destroy(plan->linked);
    wt_buffer_destroy(plan->lists);
    free(plan);
}

typedef struct call {
    const wt_nn_filter_plan *plan;
    const float *in;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_nn_filter_plan *p = c->plan;
    const int64_t area = (int64_t)p->config.rows * p->config.columns;
    for (int64_t s = slot; s < p->n_signals; s += p->n_slots)
        wt__nn_filter_run(&p->config, c->in + s * area, c->out + s * area, &p->scratch[slot]);
}

static wt_status filter_signal(const wt_nn_filter_plan *p, wt_stream *stream, const float *in, float *out)
{
    const wt_nn_filter_config *c = &p->config;
    const int across = (c->columns + WT_NN_FILTER_THREADS - 1) / WT_NN_FILTER_THREADS;
    wt_nn_filter_args args = {.in = in,
                              .out = out,
                              .distances = (double *)wt_buffer_address(p->distances),
                              .linked = (unsigned char *)wt_buffer_address(p->linked),
                              .rows = c->rows,
                              .columns = c->columns,
                              .k = c->k,
                              .width = c->width,
                              .cosine = c->cosine,
                              .symmetric = c->symmetric,
                              .median = c->median,
                              .places = p->places};
    wt_status status = WT_OK;
    for (int first = 0; first < c->columns && !status; first += p->at_once) {
        const int n = c->columns - first < p->at_once ? c->columns - first : p->at_once;
        const wt_launch measure = {.grid = {across * n}, .block = {WT_NN_FILTER_THREADS}};
        const wt_launch link = {.grid = {n}, .block = {WT_NN_FILTER_THREADS}};
        args.first = first, args.n_frames = n;
        status = wt_kernel_launch(p->measure, stream, &measure, &WT_ARG(args), 1);
        if (!status) status = wt_kernel_launch(p->link, stream, &link, &WT_ARG(args), 1);
    }
    return status ? status : wt_kernel_launch(p->gather, stream, &p->gather_launch, &WT_ARG(args), 1);
}

wt_status wt_nn_filter_plan_enqueue(wt_nn_filter_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                    wt_buffer *out, size_t out_offset)
{
    const size_t area = (size_t)plan->config.rows * (size_t)plan->config.columns;
    wt_status status = wt__op_stream("nn_filter", plan->device, stream);
    if (!status) status = wt__op_range("nn_filter", "input", in, in_offset, (size_t)plan->n_signals * area);
    if (!status) status = wt__op_range("nn_filter", "out", out, out_offset, (size_t)plan->n_signals * area);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->gather) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    for (size_t s = 0; s < (size_t)plan->n_signals && !status; s++)
        status = filter_signal(plan, stream, c.in + s * area, c.out + s * area);
    return status;
}
