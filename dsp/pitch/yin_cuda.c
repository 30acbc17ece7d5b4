// YIN on a GPU: kernels/pitch/yin.cu.

#include "yin_cuda.h"

#include "op.h"

#include <stdlib.h>

struct wt__yin_cuda {
    wt_yin_args args;
    wt_launch launch;
    wt_module *module;
    wt_kernel *kernel;
    wt_buffer *scratch; // of frames too long for shared memory
};

enum { MAX_TILE = 16, STEP = 8, THREADS = 256 }; // as kernels/pitch/yin.cuh says
#define MOST_SCRATCH ((size_t)64 << 20)          // of a block; a single frame may take more

static size_t shared_bytes_of(const wt_yin_args *a, int tile)
{
    const size_t lags = ((size_t)a->max_period + STEP) / STEP * STEP;
    const size_t span = (size_t)a->frame + (size_t)(tile - 1) * (size_t)a->hop;
    const size_t room = (span + lags + 3 * STEP) / STEP * STEP;
    const size_t pieces = (size_t)tile + (a->n_shared ? (size_t)(tile + a->n_shared - 1) : 0);
    return (room / STEP * (STEP + 2) + pieces * lags) * sizeof(double);
}

// Tiles in memory, as long as that takes no more than the most for one.
static wt_status place_wide(wt_device *device, size_t extra_bytes, wt_yin_args *a, wt_launch *launch,
                            wt_buffer **scratch)
{
    if (shared_bytes_of(a, 1) > MOST_SCRATCH) a->n_shared = 0; // no products shared: less memory, more work
    for (a->tile = MAX_TILE; a->tile > 1 && shared_bytes_of(a, a->tile) > MOST_SCRATCH;) a->tile--;
    *launch = (wt_launch){.block = {THREADS}};
    return wt__op_places(device, (a->n_frames + a->tile - 1) / a->tile, a->n_signals,
                         shared_bytes_of(a, a->tile) + extra_bytes, &a->places, launch, scratch);
}

wt_status wt__yin_place(wt_device *device, size_t extra_bytes, wt_yin_args *args, wt_launch *launch,
                        wt_buffer **scratch)
{
    const size_t room = wt_device_get_info(device)->shared_bytes;
    int tile = MAX_TILE; // half the room: two blocks at work hide each other's waits
    while (tile > 1 && shared_bytes_of(args, tile) + extra_bytes > room / 2 - 1024) tile--;
    const size_t bytes = shared_bytes_of(args, tile) + extra_bytes;
    args->tile = tile;
    if (bytes > room) return place_wide(device, extra_bytes, args, launch, scratch);
    *launch =
        (wt_launch){.grid = {(int)((args->n_frames + tile - 1) / tile)}, .block = {THREADS}, .shared_bytes = bytes};
    return WT_OK;
}

wt_status wt__yin_cuda_create(const char *op, wt_device *device, const wt_yin_args *args, wt__yin_cuda **cuda)
{
    *cuda = NULL;
    wt__yin_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "%s: CUDA plan", op);
    char options[1][48] = {"-DPLACES"};
    c->args = *args;
    wt_status status = wt__yin_place(device, 0, &c->args, &c->launch, &c->scratch);
    if (!status) status = wt__op_module(device, "kernels/pitch/yin.cu", options, c->scratch ? 1 : 0, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "yin", &c->kernel);
    if (!c->scratch) c->launch.grid[1] = args->n_signals;
    if (status)
        wt__yin_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__yin_cuda_destroy(wt__yin_cuda *cuda)
{
    if (!cuda) return;
    wt_buffer_destroy(cuda->scratch);
    wt_module_destroy(cuda->module);
    free(cuda);
}

wt_status wt__yin_cuda_enqueue(const wt__yin_cuda *cuda, wt_stream *stream, const float *pcm, float *f0)
{
    wt_yin_args args = cuda->args;
    args.pcm = pcm;
    args.f0 = f0;
    return wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(args), 1);
}
