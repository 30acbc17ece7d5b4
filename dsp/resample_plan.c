// Whole lines at once. A GPU gets its own copy of the taps, turned so that threads side by side read side by side; on
// the CPU backend each line has a streaming resampler, and lines run on the stream's threads.
#include "resample_table.h"

#include <warptone/kernel.h>

#include <stdlib.h>
#include <string.h>

struct wt_resample_plan {
    wt_device *device;
    wt__resample_table table;
    wt_resample_args args;
    wt_resample **lines; // CPU: [n_lines]
    wt_module *module;   // GPU
    wt_kernel *kernel;
    wt_buffer *taps;
};

static int columns_of(const wt__resample_table *t)
{
    return t->n_phases + (t->interpolated ? 3 : 0);
}

void *wt__resample_turned_taps(const wt__resample_table *t, size_t *size_bytes)
{
    const int n_columns = columns_of(t);
    *size_bytes = (t->wide ? sizeof(double) : sizeof(float)) * (size_t)n_columns * (size_t)t->n_taps;
    void *turned = malloc(*size_bytes);
    for (int column = 0; turned && column < n_columns; column++) {
        const int64_t row = t->interpolated ? column : column * t->numerator % t->denominator;
        for (int k = 0; k < t->n_taps; k++) {
            const size_t to = (size_t)k * (size_t)n_columns + (size_t)column, from = (size_t)row * (size_t)t->n_taps;
            if (t->wide)
                ((double *)turned)[to] = t->taps[from + (size_t)k];
            else
                ((float *)turned)[to] = t->taps_f32[from + (size_t)k];
        }
    }
    return turned;
}

static wt_status upload_taps(wt_resample_plan *plan)
{
    size_t size_bytes;
    void *turned = wt__resample_turned_taps(&plan->table, &size_bytes);
    if (!turned) return wt_fail(WT_ERR_NO_MEMORY, "resample: %zu bytes of taps", size_bytes);
    wt_stream *stream = NULL;
    wt_status status = wt_buffer_create(plan->device, WT_MEMORY_DEVICE, size_bytes, &plan->taps);
    if (!status) status = wt_stream_create(plan->device, NULL, &stream);
    if (!status) status = wt_stream_upload(stream, plan->taps, 0, turned, size_bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    free(turned);
    return status;
}

static wt_status prepare_gpu(wt_resample_plan *plan)
{
    static const char *const names[2][2] = {{"resample_exact", "resample_exact_wide"},
                                            {"resample_blend", "resample_blend_wide"}};
    wt_status status =
        wt_module_create(plan->device, &(wt_module_config){.name = "kernels/resample.cu"}, &plan->module);
    if (status) return status;
    status = wt_module_get_kernel(plan->module, names[plan->table.interpolated][plan->table.wide], &plan->kernel);
    if (status) return status;
    status = upload_taps(plan);
    if (!status) plan->args.taps = (const void *)wt_buffer_address(plan->taps);
    return status;
}

static wt_status prepare_cpu(wt_resample_plan *plan)
{
    plan->lines = calloc((size_t)plan->args.n_lines, sizeof *plan->lines);
    if (!plan->lines) return wt_fail(WT_ERR_NO_MEMORY, "resample: %d lines", plan->args.n_lines);
    for (int k = 0; k < plan->args.n_lines; k++) {
        wt_status status = wt__resample_create_sharing(&plan->table, 1, &plan->lines[k]);
        if (status) return status;
    }
    return WT_OK;
}

wt_resample_args wt__resample_args_of(const wt__resample_table *t, int n_lines, int n_in, int n_out)
{
    return (wt_resample_args){
        .numerator = t->numerator,
        .denominator = t->denominator,
        .stride = (WT_RESAMPLE_THREADS + t->denominator - 1) / t->denominator * t->denominator,
        .n_taps = t->n_taps,
        .before = t->before,
        .n_columns = columns_of(t),
        .n_phases = t->n_phases,
        .n_in = n_in,
        .n_out = n_out,
        .n_lines = n_lines,
    };
}

wt_status wt_resample_plan_create(wt_device *device, const wt_resample_plan_config *config, wt_resample_plan **plan)
{
    *plan = NULL;
    const wt_resample_config table = {config->in_hz, config->out_hz, 1, config->quality, false};
    if (config->n_lines < 0 || config->n_lines > 65535 || config->n_in < 1)
        return wt_fail(WT_ERR_BAD_ARG, "resample: %d lines of %d frames, want 0..65535 of 1 or more", config->n_lines,
                       config->n_in);
    wt_resample_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "resample: plan");
    p->device = device;
    wt_status status = wt__resample_table_create(&table, &p->table);
    if (status) goto fail;
    const int64_t n_out = wt_resample_out_frames(&table, config->n_in);
    if (n_out > INT32_MAX / 2) {
        status = wt_fail(WT_ERR_BAD_ARG, "resample: %lld output frames a line, want %d at most", (long long)n_out,
                         INT32_MAX / 2);
        goto fail;
    }
    p->args = wt__resample_args_of(&p->table, config->n_lines ? config->n_lines : 1, config->n_in, (int)n_out);
    status = wt_device_get_info(device)->backend == WT_BACKEND_CUDA ? prepare_gpu(p) : prepare_cpu(p);
    if (status) goto fail;
    *plan = p;
    return WT_OK;

fail:
    wt_resample_plan_destroy(p);
    return status;
}

void wt_resample_plan_destroy(wt_resample_plan *plan)
{
    if (!plan) return;
    for (int k = 0; plan->lines && k < plan->args.n_lines; k++) wt_resample_destroy(plan->lines[k]);
    free(plan->lines);
    wt_buffer_destroy(plan->taps);
    wt_module_destroy(plan->module);
    wt__resample_table_destroy(&plan->table);
    free(plan);
}

int wt_resample_plan_out_frames(const wt_resample_plan *plan)
{
    return plan->args.n_out;
}

// ---- running

typedef struct cpu_call {
    wt_resample **lines;
    const float *in;
    float *out;
    int n_in, n_out;
} cpu_call;

static void run_line(const void *args, int line)
{
    const cpu_call *call = args;
    const float *in = call->in + (size_t)line * (size_t)call->n_in;
    float *out = call->out + (size_t)line * (size_t)call->n_out, *rest;
    int n_used, n_first, n_rest;
    wt_resample_reset(call->lines[line]);
    wt_resample_process(call->lines[line], &in, call->n_in, &n_used, &out, call->n_out, &n_first);
    rest = out + n_first;
    wt_resample_drain(call->lines[line], &rest, call->n_out - n_first, &n_rest);
}

static wt_status launch(wt_resample_plan *plan, wt_stream *stream, const wt_resample_args *args)
{
    const int64_t tiles = (args->stride + WT_RESAMPLE_THREADS - 1) / WT_RESAMPLE_THREADS;
    const int64_t group = args->stride * WT_RESAMPLE_REPEAT;
    const int64_t blocks = plan->table.interpolated ? (args->n_out + WT_RESAMPLE_THREADS - 1) / WT_RESAMPLE_THREADS
                                                    : (args->n_out + group - 1) / group * tiles;
    const wt_launch shape = {.grid = {(int)blocks, args->n_lines, 1}, .block = {WT_RESAMPLE_THREADS, 1, 1}};
    return wt_kernel_launch(plan->kernel, stream, &shape, &(wt_arg){args, sizeof *args}, 1);
}

static wt_status check_range(const char *name, const wt_buffer *buffer, size_t offset, size_t frames)
{
    const size_t size_bytes = frames * sizeof(float), room = wt_buffer_size_bytes(buffer);
    if (offset > room || size_bytes > room - offset || offset % sizeof(float))
        return wt_fail(WT_ERR_BAD_ARG, "resample: %s of %zu bytes at %zu, want it aligned within the buffer's %zu",
                       name, size_bytes, offset, room);
    return WT_OK;
}

wt_status wt_resample_plan_enqueue(wt_resample_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   wt_buffer *out, size_t out_offset)
{
    wt_resample_args args = plan->args;
    wt_status status = check_range("input", in, in_offset, (size_t)args.n_lines * (size_t)args.n_in);
    if (!status) status = check_range("output", out, out_offset, (size_t)args.n_lines * (size_t)args.n_out);
    if (status) return status;
    args.in = (const float *)(wt_buffer_address(in) + in_offset);
    args.out = (float *)(wt_buffer_address(out) + out_offset);
    if (plan->kernel) return launch(plan, stream, &args);
    const cpu_call call = {plan->lines, args.in, args.out, args.n_in, args.n_out};
    return wt_stream_run(stream, run_line, &call, sizeof call, args.n_lines);
}
