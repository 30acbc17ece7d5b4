// Forward and backward over whole rows on a stream: wt_sos_filtfilt a row on the CPU, kernels/filter/sos.cu on a GPU,
// where rows in double are the work space and go in groups when they are many.

#include "op.h"
#include "sos_internal.h"

#include <stdlib.h>

#define WORK_BYTES (1LL << 30)

struct wt_filtfilt {
    wt_device *device;
    wt__sos_filtfilt filter;
    int n_rows, n_slots, at_once; // at_once: rows of a launch
    double *scratch;              // [n_slots][n_frames + 2 pad], CPU
    wt__sos_cuda cuda;
    wt_buffer *zi, *work;
};

static size_t row_numbers(const wt_filtfilt *p) { return (size_t)p->filter.n_frames + 2 * (size_t)p->filter.pad; }

static wt_status create_cuda(wt_filtfilt *p)
{
    const wt__sos_filtfilt *f = &p->filter;
    const size_t row = row_numbers(p) * sizeof(double);
    p->at_once = (size_t)p->n_rows * row <= WORK_BYTES ? p->n_rows : row < WORK_BYTES ? (int)(WORK_BYTES / row) : 1;
    wt_status status = wt__sos_load(p->device, "sos_filtfilt", f->sos, f->n_sections, &p->cuda);
    if (!status) status = wt__op_upload(p->device, f->zi, 2 * (size_t)f->n_sections * sizeof *f->zi, &p->zi);
    return status ? status : wt_buffer_create(p->device, WT_MEMORY_DEVICE, (size_t)p->at_once * row, &p->work);
}

static wt_status create_cpu(wt_filtfilt *p)
{
    p->n_slots = wt__op_slots(p->device, p->n_rows);
    p->scratch = malloc((size_t)p->n_slots * row_numbers(p) * sizeof *p->scratch);
    return p->scratch ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "sos: %d rows of %zu numbers", p->n_slots, row_numbers(p));
}

wt_status wt_filtfilt_create(wt_device *device, const wt_sos_config *config, int pad_frames, int n_rows,
                             int64_t n_frames, wt_filtfilt **plan)
{
    *plan = NULL;
    if (n_rows < 1) return wt_fail(WT_ERR_BAD_ARG, "sos: %d rows, want 1 or more", n_rows);
    wt_filtfilt *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "sos: plan");
    p->device = device, p->n_rows = n_rows;
    wt_status status = wt__sos_filtfilt_init(config->sos, config->n_sections, n_frames, pad_frames, &p->filter);
    if (!status) status = wt__op_on_gpu(device) ? create_cuda(p) : create_cpu(p);
    if (status)
        wt_filtfilt_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_filtfilt_destroy(wt_filtfilt *plan)
{
    if (!plan) return;
    wt__sos_release(&plan->cuda);
    wt_buffer_destroy(plan->zi);
    wt_buffer_destroy(plan->work);
    free(plan->scratch);
    free(plan);
}

static void run_slot(const void *args, int slot)
{
    const wt__sos_call *c = args;
    const wt_filtfilt *p = c->plan;
    for (int64_t row = slot; row < p->n_rows; row += p->n_slots) {
        const int64_t at = row * p->filter.n_frames;
        wt__sos_filtfilt_run(&p->filter, c->in + at, c->out + at, p->scratch + (size_t)slot * row_numbers(p));
    }
}

static wt_status enqueue_cuda(const wt_filtfilt *p, wt_stream *stream, const float *in, float *out)
{
    const wt__sos_filtfilt *f = &p->filter;
    wt_sos_filtfilt_args args = {.rows = {.n_frames = f->n_frames,
                                          .n_sections = f->n_sections,
                                          .sections = (const wt_sos_section *)wt_buffer_address(p->cuda.sections)},
                                 .zi = (const double *)wt_buffer_address(p->zi),
                                 .work = (double *)wt_buffer_address(p->work),
                                 .pad = f->pad};
    wt_status status = WT_OK;
    for (int64_t row = 0; row < p->n_rows && !status; row += p->at_once) {
        const int n = p->n_rows - row < p->at_once ? (int)(p->n_rows - row) : p->at_once;
        const wt_launch launch = {
            .grid = {n}, .block = {WT_SOS_THREADS}, .shared_bytes = wt__sos_shared_bytes(f->n_sections)};
        args.rows.in = in + row * f->n_frames, args.rows.out = out + row * f->n_frames;
        status = wt_kernel_launch(p->cuda.kernel, stream, &launch, &WT_ARG(args), 1);
    }
    return status;
}

wt_status wt_filtfilt_enqueue(wt_filtfilt *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              wt_buffer *out, size_t out_offset)
{
    wt__sos_call c;
    const size_t count = (size_t)plan->n_rows * (size_t)plan->filter.n_frames;
    wt_status status = wt__sos_call_of(plan, plan->device, stream, count, in, in_offset, out, out_offset, &c);
    if (status) return status;
    return plan->cuda.kernel ? enqueue_cuda(plan, stream, c.in, c.out)
                             : wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
}
