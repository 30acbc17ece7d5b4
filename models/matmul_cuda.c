// Products on a GPU: which kernel takes which, its modules, and its launch.
#include "matmul_internal.h"

#include <stdlib.h>

enum { ANY_ROWS = 8, ANY_WARPS = 8 }; // of kernels/matmul_any.cu

struct wt__mm_cuda {
    wt_matmul_config config;
    int n_sms;
    wt_module *any_module, *quantize_module;
    wt_kernel *any, *any_i8, *quantize;
};

wt_status wt__mm_cuda_create(const wt_matmul_config *config, int n_sms, wt__mm_cuda **cuda)
{
    wt__mm_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "matmul: no memory for a handle");
    *cuda = c;
    c->config = *config;
    c->n_sms = n_sms;
    wt_status status =
        wt_module_create(config->device, &(wt_module_config){.name = "kernels/matmul_any.cu"}, &c->any_module);
    if (!status) status = wt_module_get_kernel(c->any_module, "matmul_any", &c->any);
    if (!status) status = wt_module_get_kernel(c->any_module, "matmul_any_i8", &c->any_i8);
    if (!status)
        status = wt_module_create(config->device, &(wt_module_config){.name = "kernels/matmul_quantize.cu"},
                                  &c->quantize_module);
    return status ? status : wt_module_get_kernel(c->quantize_module, "matmul_quantize", &c->quantize);
}

void wt__mm_cuda_destroy(wt__mm_cuda *cuda)
{
    if (!cuda) return;
    wt_module_destroy(cuda->any_module);
    wt_module_destroy(cuda->quantize_module);
    free(cuda);
}

wt_status wt__mm_cuda_enqueue(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_args *args)
{
    if (!stream) return WT_OK;
    wt_mm_args a = *args;
    const int n_groups = wt__mm_number_tiles(&a, ANY_WARPS);
    const wt_launch launch = {.grid = {n_groups, wt_mm_n_tiles(&a, ANY_ROWS), 1}, .block = {32 * ANY_WARPS}};
    return wt_kernel_launch(wt__mm_is_exact(&a) ? cuda->any_i8 : cuda->any, stream, &launch, &WT_ARG(a), 1);
}

wt_status wt__mm_cuda_quantize(wt__mm_cuda *cuda, wt_stream *stream, const wt_mm_quantize_args *args)
{
    const wt_launch launch = {.grid = {args->m}, .block = {256}};
    return wt_kernel_launch(cuda->quantize, stream, &launch, &WT_ARG(*args), 1);
}

const char *wt__mm_cuda_kernel(wt__mm_cuda *cuda, const wt_mm_args *args)
{
    (void)cuda;
    return wt__mm_is_exact(args) ? "matmul_any_i8" : "matmul_any";
}
