// The plan's tables in one buffer, slices and spectra in two more; rows are transformed in place on the way forth, and
// through a copy of their size on the way back.

#include "nsgt_plan.h"

#include <stdlib.h>
#include <string.h>
#include <warptone/fft.h>
#include <warptone/kernel.h>

enum { CUT, SCATTER, GATHER, OVERLAP, N_KERNELS };

struct wt__nsgt_cuda {
    const wt__nsgt_plan *plan;
    wt_module *module;
    wt_kernel *kernel[N_KERNELS];
    wt_fft *forward, *inverse, **rows_forward, **rows_inverse; // batches of all lines
    wt_buffer *tables, *slices, *spectra, *points;
    wt_nsgt_args args; // with the addresses of all but the caller's buffers
};

// ---- life

// The tables one behind the other, each on 16 bytes; returns where `data` lies.
static size_t put(unsigned char *into, size_t *end, const void *data, size_t bytes)
{
    const size_t at = *end;
    if (into) memcpy(into + at, data, bytes);
    *end += (bytes + 15) / 16 * 16;
    return at;
}

static size_t lay_tables(wt__nsgt_cuda *n, unsigned char *into, unsigned long long base)
{
    const wt__nsgt_plan *p = n->plan;
    wt_nsgt_args *a = &n->args;
    size_t end = 0;
    const size_t windows = (size_t)p->n_windows * sizeof(float), slice = (size_t)p->config.slice;
    a->rows = (const wt_nsgt_place *)(base + put(into, &end, p->rows, (size_t)p->n_rows * sizeof *p->rows));
    a->slice_window = (const float *)(base + put(into, &end, p->slice_window, slice * sizeof(float)));
    a->analysis = (const float *)(base + put(into, &end, p->analysis, windows));
    a->synthesis = (const float *)(base + put(into, &end, p->synthesis, windows));
    a->rows_at = (const int *)(base + put(into, &end, p->rows_at, (slice + 2) * sizeof(int)));
    return end;
}

static wt_status upload_tables(wt_device *device, wt__nsgt_cuda *n)
{
    const size_t bytes = lay_tables(n, NULL, 0);
    unsigned char *tables = calloc(1, bytes);
    if (!tables) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: %zu bytes of tables", bytes);
    wt_stream *stream = NULL;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &n->tables);
    if (!status) lay_tables(n, tables, (unsigned long long)wt_buffer_address(n->tables));
    if (!status) status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_stream_upload(stream, n->tables, 0, tables, bytes);
    if (!status) status = wt_stream_synchronize(stream);
    wt_stream_destroy(stream);
    free(tables);
    return status;
}

static wt_status take_memory(wt_device *device, wt__nsgt_cuda *n)
{
    const wt__nsgt_plan *p = n->plan;
    const size_t lines = (size_t)p->n_lines * sizeof(float), slice = (size_t)p->config.slice;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, lines * slice, &n->slices);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, lines * (slice + 2), &n->spectra);
    if (!status)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)p->n_points * 2 * sizeof(float), &n->points);
    if (status) return status;
    n->args.slices = (float *)wt_buffer_address(n->slices);
    n->args.spectra = (float *)wt_buffer_address(n->spectra);
    return WT_OK;
}

static wt_status take_transforms(wt_device *device, wt__nsgt_cuda *n)
{
    const wt__nsgt_plan *p = n->plan;
    n->rows_forward = calloc((size_t)p->n_groups, sizeof *n->rows_forward);
    n->rows_inverse = calloc((size_t)p->n_groups, sizeof *n->rows_inverse);
    if (!n->rows_forward || !n->rows_inverse) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: %d transforms", p->n_groups);
    wt_fft_config slice = {.n = p->config.slice, .batch = p->n_lines, .kind = WT_FFT_REAL_TO_COMPLEX};
    wt_status status = wt_fft_create(device, &slice, &n->forward);
    slice.kind = WT_FFT_COMPLEX_TO_REAL;
    if (!status) status = wt_fft_create(device, &slice, &n->inverse);
    for (int g = 0; g < p->n_groups && !status; g++) {
        wt_fft_config rows = {.n = p->groups[g].n_points, .batch = p->n_lines * p->groups[g].n_rows};
        status = wt_fft_create(device, &rows, &n->rows_forward[g]);
        rows.inverse = true;
        if (!status) status = wt_fft_create(device, &rows, &n->rows_inverse[g]);
    }
    return status;
}

static wt_status take_kernels(wt_device *device, wt__nsgt_cuda *n)
{
    static const char *const names[] = {"nsgt_cut", "nsgt_scatter", "nsgt_gather", "nsgt_overlap"};
    wt_status status = wt_module_create(device, &(wt_module_config){.name = "kernels/tonal/nsgt.cu"}, &n->module);
    for (int k = 0; k < N_KERNELS && !status; k++) status = wt_module_get_kernel(n->module, names[k], &n->kernel[k]);
    return status;
}

wt_status wt__nsgt_cuda_create(wt_device *device, const wt__nsgt_plan *plan, wt__nsgt_cuda **cuda)
{
    *cuda = NULL;
    wt__nsgt_cuda *n = calloc(1, sizeof *n);
    if (!n) return wt_fail(WT_ERR_NO_MEMORY, "nsgt: CUDA plan");
    n->plan = plan;
    n->args = (wt_nsgt_args){.slice = plan->config.slice,
                             .n_slices = plan->config.n_slices,
                             .n_rows = plan->n_rows,
                             .channels = plan->config.channels};
    wt_status status = upload_tables(device, n);
    if (!status) status = take_memory(device, n);
    if (!status) status = take_transforms(device, n);
    if (!status) status = take_kernels(device, n);
    if (status)
        wt__nsgt_cuda_destroy(n);
    else
        *cuda = n;
    return status;
}

void wt__nsgt_cuda_destroy(wt__nsgt_cuda *cuda)
{
    if (!cuda) return;
    wt_fft_destroy(cuda->forward), wt_fft_destroy(cuda->inverse);
    for (int g = 0; g < cuda->plan->n_groups; g++) {
        if (cuda->rows_forward) wt_fft_destroy(cuda->rows_forward[g]);
        if (cuda->rows_inverse) wt_fft_destroy(cuda->rows_inverse[g]);
    }
    free(cuda->rows_forward), free(cuda->rows_inverse);
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables), wt_buffer_destroy(cuda->slices);
    wt_buffer_destroy(cuda->spectra), wt_buffer_destroy(cuda->points);
    free(cuda);
}

// ---- running

static wt_status launch(const wt__nsgt_cuda *n, wt_stream *stream, int kernel, const wt_nsgt_args *args, int64_t across,
                        int down, int deep)
{
    if ((across + 255) / 256 > INT32_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "nsgt: %lld samples, want fewer", (long long)across);
    const wt_launch shape = {.grid = {(int)((across + 255) / 256), down, deep}, .block = {256}};
    return wt_kernel_launch(n->kernel[kernel], stream, &shape, &WT_ARG(*args), 1);
}

wt_status wt__nsgt_cuda_forward(wt__nsgt_cuda *n, wt_stream *stream, const float *pcm, int64_t samples, int64_t first,
                                wt_buffer *out, size_t out_offset)
{
    const wt__nsgt_plan *p = n->plan;
    wt_nsgt_args a = n->args;
    a.pcm = pcm, a.n = samples, a.first = first;
    a.points = (float *)(wt_buffer_address(out) + out_offset);
    wt_status status = launch(n, stream, CUT, &a, p->config.slice, p->n_lines, 1);
    if (!status) status = wt_fft_enqueue(n->forward, stream, n->slices, 0, n->spectra, 0);
    if (!status) status = launch(n, stream, SCATTER, &a, 1024, p->n_rows, p->n_lines);
    for (int g = 0; g < p->n_groups && !status; g++) {
        const size_t at = out_offset + (size_t)p->rows[p->groups[g].first].offset * 2 * sizeof(float);
        status = wt_fft_enqueue(n->rows_inverse[g], stream, out, at, out, at);
    }
    return status;
}

wt_status wt__nsgt_cuda_inverse(wt__nsgt_cuda *n, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                int64_t samples, int64_t first, float *pcm)
{
    const wt__nsgt_plan *p = n->plan;
    wt_nsgt_args a = n->args;
    a.out_pcm = pcm, a.n = samples, a.first = first;
    a.points = (float *)wt_buffer_address(n->points);
    wt_status status = WT_OK;
    for (int g = 0; g < p->n_groups && !status; g++) {
        const size_t at = (size_t)p->rows[p->groups[g].first].offset * 2 * sizeof(float);
        status = wt_fft_enqueue(n->rows_forward[g], stream, in, in_offset + at, n->points, at);
    }
    if (!status) status = launch(n, stream, GATHER, &a, p->config.slice / 2 + 1, p->n_lines, 1);
    if (!status) status = wt_fft_enqueue(n->inverse, stream, n->spectra, 0, n->slices, 0);
    const int64_t determined = (int64_t)(p->config.n_slices - 1) * (p->config.slice / 2);
    if (status || !determined) return status;
    return launch(n, stream, OVERLAP, &a, determined, p->config.channels, 1);
}
