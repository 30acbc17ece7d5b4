// Savitzky-Golay over the rows of a batch: wt_savgol_filter a row on the CPU, kernels/rows.cu on a GPU.

#include "savgol_internal.h"
#include "spectrum_cuda.h"

#include <stdlib.h>

// ---- on a GPU

wt_status wt__savgol_cuda_open(wt_device *device, const wt_savgol_config *config, bool ends, int64_t n_rows,
                               int64_t n_frames, wt__savgol_cuda *cuda)
{
    const int width = config->n_taps;
    const size_t count = (size_t)width * (size_t)width;
    *cuda = (wt__savgol_cuda){.launch = {.block = {256}}};
    double *taps = calloc(count, sizeof *taps);
    wt_status status = taps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "savgol: taps of %d * %d", width, width);
    for (int position = 0; position < width && !status; position++)
        if (ends || position == width / 2)
            status = wt_savgol_taps(config, position, taps + (size_t)position * (size_t)width);
    if (!status) status = wt__op_upload(device, taps, count * sizeof *taps, &cuda->taps);
    free(taps);
    if (!status) status = wt__op_module(device, "kernels/rows.cu", NULL, 0, &cuda->module);
    if (!status) status = wt_module_get_kernel(cuda->module, "rows_savgol", &cuda->kernel);
    if (status) return status;
    cuda->args = (wt_savgol_args){
        .taps = (const double *)wt_buffer_address(cuda->taps), .n_rows = n_rows, .n_frames = n_frames, .width = width};
    return wt__spectrum_cuda_grid("savgol", 1, n_rows * n_frames, 256, &cuda->launch.grid[0]);
}

void wt__savgol_cuda_release(wt__savgol_cuda *cuda)
{
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->taps);
}

wt_status wt__savgol_cuda_launch(const wt__savgol_cuda *cuda, wt_stream *stream, const wt_savgol_args *args)
{
    return wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(*args), 1);
}

// ---- rows

struct wt_savgol_rows {
    wt_savgol_config config;
    wt_device *device;
    int n_rows, n_frames, n_slots;
    wt__savgol_cuda cuda;
};

wt_status wt_savgol_rows_create(wt_device *device, const wt_savgol_config *config, int n_rows, int n_frames,
                                wt_savgol_rows **plan)
{
    double taps[WT_SAVGOL_MAX_TAPS];
    *plan = NULL;
    wt_status status = wt_savgol_taps(config, config->n_taps > 0 ? config->n_taps / 2 : 0, taps);
    if (!status && n_frames < config->n_taps)
        status = wt_fail(WT_ERR_LENGTH, "savgol: %d frames, want the window's %d or more", n_frames, config->n_taps);
    if (!status && n_rows < 1) status = wt_fail(WT_ERR_BAD_ARG, "savgol: %d rows, want 1 or more", n_rows);
    if (status) return status;
    wt_savgol_rows *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "savgol: plan");
    *p = (wt_savgol_rows){.config = *config,
                          .device = device,
                          .n_rows = n_rows,
                          .n_frames = n_frames,
                          .n_slots = wt__op_slots(device, n_rows)};
    if (wt__op_on_gpu(device)) status = wt__savgol_cuda_open(device, config, true, n_rows, n_frames, &p->cuda);
    if (status)
        wt_savgol_rows_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_savgol_rows_destroy(wt_savgol_rows *plan)
{
    if (!plan) return;
    wt__savgol_cuda_release(&plan->cuda);
    free(plan);
}

typedef struct call {
    const wt_savgol_rows *plan;
    const float *in;
    float *out;
} call;

static void run_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_savgol_rows *p = c->plan;
    for (int64_t row = slot; row < p->n_rows; row += p->n_slots)
        (void)!wt_savgol_filter(&p->config, c->in + row * p->n_frames, c->out + row * p->n_frames,
                                p->n_frames); // checked by create
}

wt_status wt_savgol_rows_enqueue(wt_savgol_rows *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                 wt_buffer *out, size_t out_offset)
{
    const size_t count = (size_t)plan->n_rows * (size_t)plan->n_frames;
    wt_status status = wt__op_stream("savgol", plan->device, stream);
    if (!status) status = wt__op_range("savgol", "input", in, in_offset, count);
    if (!status) status = wt__op_range("savgol", "out", out, out_offset, count);
    if (status) return status;
    const call c = {plan, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset)};
    if (!plan->cuda.kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    wt_savgol_args args = plan->cuda.args;
    args.in = c.in, args.out = c.out;
    return wt__savgol_cuda_launch(&plan->cuda, stream, &args);
}
