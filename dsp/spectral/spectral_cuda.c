// Features of spectrograms on a GPU: kernels/spectral/spectral.cu.

#include "spectral_cuda.h"
#include "spectrum_cuda.h"

#include <stdlib.h>

struct wt__spectral_cuda {
    wt_module *module;
    wt_kernel *kernel, *finish; // finish: contrast in decibels, else NULL
    wt_buffer *tables, *valleys, *peaks;
    wt_launch launch, finish_launch;
    wt_spectral_args args;
};

enum { WARPS = 8 }; // as kernels/spectral/spectral.cu says

static wt_status make_tables(wt_device *device, const wt_spectral_band *bands, const double *basis,
                             wt__spectral_cuda *s)
{
    wt_spectral_args *a = &s->args;
    const size_t rows = (size_t)a->rows, values = (size_t)a->n_signals * rows * (size_t)a->n_frames;
    wt_status status = WT_OK;
    if (bands) status = wt__op_upload(device, bands, rows * sizeof *bands, &s->tables);
    if (basis) status = wt__op_upload(device, basis, rows * ((size_t)a->bins + rows) * sizeof *basis, &s->tables);
    if (s->tables && bands) a->bands = (const wt_spectral_band *)wt_buffer_address(s->tables);
    if (s->tables && basis) a->basis = (const double *)wt_buffer_address(s->tables);
    if (status || !bands || a->linear || a->parts) return status;
    status = wt_buffer_create(device, WT_MEMORY_DEVICE, values * sizeof(float), &s->valleys);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * (size_t)a->n_signals * sizeof(int), &s->peaks);
    if (status) return status;
    a->valleys = (float *)wt_buffer_address(s->valleys);
    a->peaks = (int *)wt_buffer_address(s->peaks);
    return wt_module_get_kernel(s->module, "spectral_finish", &s->finish);
}

wt_status wt__spectral_cuda_create(wt_device *device, const wt_spectral_args *args, const wt_spectral_band *bands,
                                   const double *basis, wt__spectral_cuda **cuda)
{
    wt__spectral_cuda *s = *cuda = calloc(1, sizeof *s); // the plan's destroy takes it back, also half built
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "spectral: CUDA plan");
    s->args = *args;
    s->launch.block[0] = 32 * WARPS;
    s->finish_launch.block[0] = 32 * WARPS;
    wt_status status = wt__op_module(device, "kernels/spectral/spectral.cu", NULL, 0, &s->module);
    if (!status) status = wt_module_get_kernel(s->module, bands ? "spectral_contrast" : "spectral_shape", &s->kernel);
    if (!status) status = make_tables(device, bands, basis, s);
    const int64_t frames = args->n_signals * args->n_frames;
    if (!status)
        status = wt__spectrum_cuda_grid("spectral", 1, bands ? frames * args->rows : frames, WARPS, &s->launch.grid[0]);
    if (!status)
        status = wt__spectrum_cuda_grid("spectral", 1, frames * args->rows, 32 * WARPS, &s->finish_launch.grid[0]);
    return status;
}

void wt__spectral_cuda_destroy(wt__spectral_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->valleys);
    wt_buffer_destroy(cuda->peaks);
    free(cuda);
}

wt_status wt__spectral_cuda_enqueue(const wt__spectral_cuda *cuda, wt_stream *stream, const float *in, float *out)
{
    wt_spectral_args args = cuda->args;
    args.in = in, args.out = out;
    // Bytes of 0x80 make an integer below that of any decibel.
    wt_status status =
        cuda->finish ? wt_stream_fill(stream, cuda->peaks, 0, 0x80, wt_buffer_size_bytes(cuda->peaks)) : WT_OK;
    if (!status) status = wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(args), 1);
    if (status || !cuda->finish) return status;
    return wt_kernel_launch(cuda->finish, stream, &cuda->finish_launch, &WT_ARG(args), 1);
}
