// Chroma on a GPU: kernels/tonal/chroma.cu.

#include "chroma_cuda.h"
#include "spectrum_cuda.h"

#include <stdlib.h>
#include <string.h>

struct wt__chroma_cuda {
    wt_module *module;
    wt_kernel *kernels[2];
    wt_launch launches[2];
    wt_buffer *table, *steps;
    int per_block[2]; // frames
    wt_chroma_args args;
};

enum { WARPS = 8 }; // as kernels/tonal/chroma.cu says

wt_status wt__chroma_cuda_create(wt_device *device, const char *const kernels[2], const wt_chroma_args *args,
                                 const void *table, size_t table_bytes, size_t steps,
                                 void (*place)(wt_chroma_args *args, uintptr_t table), wt__chroma_cuda **cuda)
{
    wt__chroma_cuda *c = *cuda = calloc(1, sizeof *c); // the plan's destroy takes it back, also half built
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "chroma: CUDA plan");
    c->args = *args;
    wt_status status = wt__op_exact_module(device, "kernels/tonal/chroma.cu", &c->module);
    for (int k = 0; k < 2 && kernels[k] && !status; k++) {
        const bool a_thread_a_frame = !strcmp(kernels[k], "chroma_quantise");
        c->per_block[k] = a_thread_a_frame ? 32 * WARPS : WARPS;
        c->launches[k] =
            (wt_launch){.block = {32 * WARPS},
                        .shared_bytes = a_thread_a_frame ? 0 : (size_t)WARPS * (size_t)args->n_chroma * sizeof(double)};
        status = wt_module_get_kernel(c->module, kernels[k], &c->kernels[k]);
    }
    if (!status && table) status = wt__op_upload(device, table, table_bytes, &c->table);
    if (!status && table) place(&c->args, wt_buffer_address(c->table));
    if (!status && steps) status = wt_buffer_create(device, WT_MEMORY_DEVICE, steps * sizeof(float), &c->steps);
    if (!status && steps) c->args.steps = (float *)wt_buffer_address(c->steps);
    return status;
}

void wt__chroma_cuda_destroy(wt__chroma_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->module);
    wt_buffer_destroy(cuda->table);
    wt_buffer_destroy(cuda->steps);
    free(cuda);
}

wt_status wt__chroma_cuda_enqueue(const wt__chroma_cuda *cuda, wt_stream *stream, const float *in, int64_t n_frames,
                                  int64_t n_all, float *out)
{
    wt_chroma_args args = cuda->args;
    args.in = in, args.out = out, args.n_frames = n_frames, args.n_all = n_all;
    wt_status status = WT_OK;
    for (int k = 0; k < 2 && cuda->kernels[k] && !status; k++) {
        wt_launch launch = cuda->launches[k];
        status = wt__spectrum_cuda_grid("chroma", 1, n_all, cuda->per_block[k], &launch.grid[0]);
        if (!status) status = wt_kernel_launch(cuda->kernels[k], stream, &launch, &WT_ARG(args), 1);
    }
    return status;
}
