// Second-order sections over whole rows on a stream: wt_sos a row on the CPU, kernels/filter/sos.cu on a GPU.

#include "op.h"
#include "sos_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/filter.h>

struct wt_sos_rows {
    wt_device *device;
    int n_rows, n_sections;
    int64_t n_frames;
    int n_slots;
    wt_sos **filters; // [n_slots] of one channel
    wt__sos_cuda cuda;
};

static void multiply(const double *a, const double *b, double *out)
{
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++) out[2 * r + c] = a[2 * r] * b[c] + a[2 * r + 1] * b[2 + c];
}

// States [s1, s2] after a frame of silence: [s2 - a1 s1, -a2 s1].
static wt_sos_section section_of(const double *sos)
{
    wt_sos_section f = {sos[0] / sos[3], sos[1] / sos[3], sos[2] / sos[3], sos[4] / sos[3], sos[5] / sos[3], {{0}}};
    double m[4] = {-f.a1, 1, -f.a2, 0}, square[4];
    for (int frames = 1; frames < WT_SOS_RUN; frames *= 2) {
        multiply(m, m, square);
        memcpy(m, square, sizeof m);
    }
    for (int k = 0; k < WT_SOS_POWERS; k++) {
        memcpy(f.power[k], m, sizeof m);
        multiply(m, m, square);
        memcpy(m, square, sizeof m);
    }
    return f;
}

wt_status wt__sos_load(wt_device *device, const char *name, const double *sos, int n_sections, wt__sos_cuda *cuda)
{
    wt_sos_section sections[WT_SOS_MAX_SECTIONS];
    for (int k = 0; k < n_sections; k++) sections[k] = section_of(sos + 6 * k);
    wt_status status = wt__op_upload(device, sections, (size_t)n_sections * sizeof *sections, &cuda->sections);
    if (!status) status = wt__op_module(device, "kernels/filter/sos.cu", NULL, 0, &cuda->module);
    return status ? status : wt_module_get_kernel(cuda->module, name, &cuda->kernel);
}

void wt__sos_release(wt__sos_cuda *cuda)
{
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->sections);
}

wt_status wt__sos_call_of(const void *plan, const wt_device *device, const wt_stream *stream, size_t count,
                          const wt_buffer *in, size_t in_offset, const wt_buffer *out, size_t out_offset,
                          wt__sos_call *call)
{
    wt_status status = wt__op_stream("sos", device, stream);
    if (!status) status = wt__op_range("sos", "input", in, in_offset, count);
    if (!status) status = wt__op_range("sos", "out", out, out_offset, count);
    if (!status)
        *call = (wt__sos_call){plan, (const float *)(wt_buffer_address(in) + in_offset),
                               (float *)(wt_buffer_address(out) + out_offset)};
    return status;
}

wt_status wt_sos_rows_create(wt_device *device, const wt_sos_config *config, int n_rows, int64_t n_frames,
                             wt_sos_rows **plan)
{
    *plan = NULL;
    if (n_rows < 1 || n_frames < 1)
        return wt_fail(WT_ERR_BAD_ARG, "sos: %d rows of %lld frames, want 1 or more", n_rows, (long long)n_frames);
    wt_sos_rows *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "sos: plan");
    p->device = device, p->n_rows = n_rows, p->n_frames = n_frames, p->n_sections = config->n_sections;
    p->n_slots = wt__op_slots(device, n_rows);
    p->filters = calloc((size_t)p->n_slots, sizeof *p->filters);
    wt_status status = p->filters ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "sos: %d threads", p->n_slots);
    wt_sos_config one = *config;
    one.channels = 1;
    for (int slot = 0; slot < p->n_slots && !status; slot++) status = wt_sos_create(&one, &p->filters[slot]);
    if (!status && wt__op_on_gpu(device))
        status = wt__sos_load(device, "sos_rows", config->sos, p->n_sections, &p->cuda);
    if (status)
        wt_sos_rows_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_sos_rows_destroy(wt_sos_rows *plan)
{
    if (!plan) return;
    for (int slot = 0; plan->filters && slot < plan->n_slots; slot++) wt_sos_destroy(plan->filters[slot]);
    free(plan->filters);
    wt__sos_release(&plan->cuda);
    free(plan);
}

static void run_slot(const void *args, int slot)
{
    const wt__sos_call *c = args;
    const wt_sos_rows *p = c->plan;
    for (int64_t row = slot; row < p->n_rows; row += p->n_slots) {
        wt_sos_reset(p->filters[slot]);
        for (int64_t t = 0, n; t < p->n_frames; t += n) {
            n = p->n_frames - t < INT_MAX / 2 ? p->n_frames - t : INT_MAX / 2;
            const float *in = c->in + row * p->n_frames + t;
            float *out = c->out + row * p->n_frames + t;
            wt_sos_process(p->filters[slot], &in, &out, (int)n);
        }
    }
}

wt_status wt_sos_rows_enqueue(wt_sos_rows *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                              wt_buffer *out, size_t out_offset)
{
    wt__sos_call c;
    const size_t count = (size_t)plan->n_rows * (size_t)plan->n_frames;
    wt_status status = wt__sos_call_of(plan, plan->device, stream, count, in, in_offset, out, out_offset, &c);
    if (status) return status;
    if (!plan->cuda.kernel) return wt_stream_run(stream, run_slot, &c, sizeof c, plan->n_slots);
    const wt_sos_args args = {.in = c.in,
                              .out = c.out,
                              .n_frames = plan->n_frames,
                              .n_sections = plan->n_sections,
                              .sections = (const wt_sos_section *)wt_buffer_address(plan->cuda.sections)};
    const wt_launch launch = {
        .grid = {plan->n_rows}, .block = {WT_SOS_THREADS}, .shared_bytes = wt__sos_shared_bytes(plan->n_sections)};
    return wt_kernel_launch(plan->cuda.kernel, stream, &launch, &WT_ARG(args), 1);
}
