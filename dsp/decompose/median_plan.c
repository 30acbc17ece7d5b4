// Median filter of a batch of images on a stream: an image a thread on the CPU, kernels/decompose/median.cu on a GPU.

#include "median_kernel.h"
#include "median_run.h"
#include "op.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/median.h>

struct wt_median_plan {
    wt_device *device;
    wt_median_config config;
    int n_slots;
    wt_median **medians; // [n_slots] of one image, CPU
    wt_module *module;
    wt_kernel *kernel; // NULL on a CPU
    bool is_long;      // the kernel is median_long's
    wt_median_args args;
    wt_median_long_args long_args;
    wt_launch launch;
};

// Windows that shared memory does not hold, or that are so long that a warp is better at one than a thread.
static wt_status create_long(wt_median_plan *p)
{
    const wt_median_config *c = &p->config;
    const int64_t n_out = (int64_t)c->rows * c->columns * c->lines, blocks = (n_out + 7) / 8;
    if (blocks > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "median: %d images of %d x %d, want fewer than 2^34 values on a GPU", c->lines,
                       c->rows, c->columns);
    p->is_long = true;
    p->long_args = (wt_median_long_args){.n_out = n_out,
                                         .rows = c->rows,
                                         .columns = c->columns,
                                         .kernel_rows = c->kernel_rows,
                                         .kernel_columns = c->kernel_columns};
    p->launch = (wt_launch){.grid = {(int)blocks}, .block = {256}};
    wt_status status = wt__op_module(p->device, "kernels/decompose/median_long.cu", NULL, 0, &p->module);
    return status ? status : wt_module_get_kernel(p->module, "median_long", &p->kernel);
}

static wt_status create_cuda(wt_median_plan *p)
{
    const wt_median_config *c = &p->config;
    if (c->kernel_rows * c->kernel_columns > WT__MEDIAN_MAX_K) return create_long(p);
    const int64_t across = (c->columns + WT_MEDIAN_COLUMNS - 1) / WT_MEDIAN_COLUMNS;
    const int64_t down = (c->rows + WT_MEDIAN_ROWS - 1) / WT_MEDIAN_ROWS;
    const size_t width = WT_MEDIAN_COLUMNS + (size_t)c->kernel_columns - 1;
    const size_t height = WT_MEDIAN_ROWS + (size_t)c->kernel_rows - 1;
    if (across * down > INT_MAX / c->lines)
        return wt_fail(WT_ERR_BAD_ARG, "median: %d images of %d x %d, want fewer than 2^31 blocks of %d x %d on a GPU",
                       c->lines, c->rows, c->columns, WT_MEDIAN_ROWS, WT_MEDIAN_COLUMNS);
    p->args = (wt_median_args){.rows = c->rows, .columns = c->columns, .across = (int)across, .down = (int)down};
    p->launch = (wt_launch){.grid = {(int)(across * down) * c->lines},
                            .block = {WT_MEDIAN_ROWS * WT_MEDIAN_COLUMNS},
                            .shared_bytes = width * height * sizeof(int)};
    char options[2][48];
    snprintf(options[0], sizeof options[0], "-DMEDIAN_HEIGHT=%d", c->kernel_rows);
    snprintf(options[1], sizeof options[1], "-DMEDIAN_WIDTH=%d", c->kernel_columns);
    wt_status status = wt__op_module(p->device, "kernels/decompose/median.cu", options, 2, &p->module);
    return status ? status : wt_module_get_kernel(p->module, "median_filter", &p->kernel);
}

static wt_status create_cpu(wt_median_plan *p)
{
    wt_median_config one = p->config;
    one.lines = 1;
    p->n_slots = wt__op_slots(p->device, p->config.lines);
    p->medians = calloc((size_t)p->n_slots, sizeof *p->medians);
    wt_status status = p->medians ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "median: %d threads", p->n_slots);
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = wt_median_create(&one, &p->medians[slot]);
    return status;
}

wt_status wt_median_plan_create(wt_device *device, const wt_median_config *config, wt_median_plan **plan)
{
    *plan = NULL;
    wt_median_config c = *config;
    wt_status status = wt__median_resolve(&c);
    if (status) return status;
    wt_median_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "median: plan");
    p->device = device, p->config = c;
    status = wt__op_on_gpu(device) ? create_cuda(p) : create_cpu(p);
    if (status)
        wt_median_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_median_plan_destroy(wt_median_plan *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->medians && slot < plan->n_slots; slot++) wt_median_destroy(plan->medians[slot]);
    free(plan->medians);
    wt_module_destroy(plan->module);
    free(plan);
}

typedef struct call {
    const wt_median_plan *plan;
    const float *in;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_median_config *f = &c->plan->config;
    const int64_t area = (int64_t)f->rows * f->columns;
    for (int64_t line = slot; line < f->lines; line += c->plan->n_slots)
        wt_median_run(c->plan->medians[slot], c->in + line * area, c->out + line * area);
}

wt_status wt_median_plan_enqueue(wt_median_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                 wt_buffer *out, size_t out_offset)
{
    const wt_median_config *f = &plan->config;
    const size_t count = (size_t)f->lines * (size_t)f->rows * (size_t)f->columns;
    wt_status status = wt__op_stream("median", plan->device, stream);
    if (!status) status = wt__op_range("median", "input", in, in_offset, count);
    if (!status) status = wt__op_range("median", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    if (plan->is_long) {
        wt_median_long_args long_args = plan->long_args;
        long_args.in = c.in, long_args.out = c.out;
        return wt_kernel_launch(plan->kernel, stream, &plan->launch, &WT_ARG(long_args), 1);
    }
    wt_median_args args = plan->args;
    args.in = c.in, args.out = c.out;
    return wt_kernel_launch(plan->kernel, stream, &plan->launch, &WT_ARG(args), 1);
}
