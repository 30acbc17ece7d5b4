// Drawing tokens on a GPU: memory and launches.
#include "gpu_sample.h"

enum { THREADS = 256, ALIGN = 256 };

wt_status wt__gpu_drawer_create(wt_device *device, wt__gpu_drawer *drawer)
{
    wt_status status =
        wt_module_create(device, &(wt_module_config){.name = "kernels/llm/llm_sample.cu"}, &drawer->module);
    if (!status) status = wt_module_get_kernel(drawer->module, "llm_extremes", &drawer->extremes);
    if (!status) status = wt_module_get_kernel(drawer->module, "llm_depths", &drawer->depths);
    if (!status) status = wt_module_get_kernel(drawer->module, "llm_top", &drawer->top);
    return status ? status : wt_module_get_kernel(drawer->module, "llm_draw", &drawer->draw);
}

void wt__gpu_drawer_destroy(wt__gpu_drawer *drawer) { wt_module_destroy(drawer->module); }

static void *lay(uintptr_t base, size_t *at, size_t bytes)
{
    void *here = base ? (void *)(base + *at) : NULL;
    *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return here;
}

size_t wt__gpu_draw_layout(int n_rows, int vocab_size, uintptr_t base, wt_llm_sample_args *args, size_t *n_zeroed)
{
    const size_t n = (size_t)n_rows, vocab = (size_t)vocab_size, pitch = (vocab + 3) / 4 * 4;
    size_t at = 0;
    args->bins = lay(base, &at, n * WT_LLM_DRAW_BINS * sizeof *args->bins);
    args->mass = lay(base, &at, n * sizeof *args->mass);
    args->arrived = lay(base, &at, n * sizeof *args->arrived);
    *n_zeroed = at;
    args->extremes = lay(base, &at, n * (1 + WT_LLM_DRAW_BLOCKS) * sizeof *args->extremes);
    args->tops = lay(base, &at, n * WT_LLM_DRAW_BLOCKS * WT_LLM_MAX_TOP * sizeof *args->tops);
    args->depths = lay(base, &at, n * pitch * sizeof *args->depths);
    args->tallies = lay(base, &at, n * vocab * sizeof *args->tallies);
    args->vocab_size = vocab_size;
    return at;
}

static wt_status launch(wt_kernel *kernel, wt_stream *stream, int x, int y, int threads, const wt_llm_sample_args *args)
{
    const wt_launch shape = {.grid = {x, y}, .block = {threads}};
    const wt_arg arg = {args, sizeof *args};
    return wt_kernel_launch(kernel, stream, &shape, &arg, 1);
}

wt_status wt__gpu_draw(const wt__gpu_drawer *drawer, wt_stream *stream, const wt_llm_sample_args *args, int n_rows,
                       bool tops)
{
    wt_status status = launch(drawer->extremes, stream, WT_LLM_DRAW_BLOCKS, n_rows, THREADS, args);
    if (!status) status = launch(drawer->depths, stream, WT_LLM_DRAW_BLOCKS, n_rows, THREADS, args);
    if (!status && tops) status = launch(drawer->top, stream, WT_LLM_DRAW_BLOCKS, n_rows, THREADS, args);
    return status ? status : launch(drawer->draw, stream, n_rows, 1, WT_LLM_DRAW_BINS, args);
}
