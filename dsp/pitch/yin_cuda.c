// YIN on a GPU: kernels/pitch/yin.cu.

#include "yin_cuda.h"

#include <stdlib.h>
#include <warptone/kernel.h>

struct wt__yin_cuda {
    wt_yin_args args;
    wt_launch launch;
    wt_module *module;
    wt_kernel *kernel;
};

enum { MAX_TILE = 16, STEP = 8, THREADS = 256 }; // as kernels/pitch/yin.cuh says

static size_t shared_bytes_of(const wt_yin_args *a, int tile)
{
    const size_t lags = ((size_t)a->max_period + STEP) / STEP * STEP;
    const size_t span = (size_t)a->frame + (size_t)(tile - 1) * (size_t)a->hop;
    const size_t room = (span + lags + 3 * STEP) / STEP * STEP;
    const size_t pieces = (size_t)tile + (a->n_shared ? (size_t)(tile + a->n_shared - 1) : 0);
    return (room / STEP * (STEP + 2) + pieces * lags) * sizeof(double);
}

wt_status wt__yin_choose_tile(const char *op, wt_device *device, size_t extra_bytes, wt_yin_args *args,
                              size_t *shared_bytes)
{
    const size_t room = wt_device_get_info(device)->shared_bytes;
    int tile = MAX_TILE; // half the room: two blocks at work hide each other's waits
    while (tile > 1 && shared_bytes_of(args, tile) + extra_bytes > room / 2 - 1024) tile--;
    *shared_bytes = shared_bytes_of(args, tile) + extra_bytes;
    args->tile = tile;
    if (*shared_bytes <= room) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED, "%s: a frame of %d samples takes %zu bytes of shared memory, the GPU has %zu",
                   op, args->frame, *shared_bytes, room);
}

wt_status wt__yin_cuda_create(const char *op, wt_device *device, const wt_yin_args *args, wt__yin_cuda **cuda)
{
    *cuda = NULL;
    wt__yin_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "%s: CUDA plan", op);
    c->args = *args;
    size_t shared_bytes;
    wt_status status = wt__yin_choose_tile(op, device, 0, &c->args, &shared_bytes);
    if (!status) status = wt_module_create(device, &(wt_module_config){.name = "kernels/pitch/yin.cu"}, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "yin", &c->kernel);
    const int64_t tiles = (args->n_frames + c->args.tile - 1) / c->args.tile;
    c->launch = (wt_launch){.grid = {(int)tiles, args->n_signals}, .block = {THREADS}, .shared_bytes = shared_bytes};
    if (status)
        wt__yin_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__yin_cuda_destroy(wt__yin_cuda *cuda)
{
    if (!cuda) return;
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
