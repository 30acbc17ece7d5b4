// One fused kernel, compiled for the plan's kernels and options (kernels/decompose/hpss.cu says how).

#include "hpss.h"

#include "hpss_kernel.h"
#include "op.h"
#include <stdio.h>
#include <stdlib.h>

struct wt__hpss_cuda {
    wt_module *module;
    wt_kernel *kernel;
    wt_launch launch;
    wt_buffer *memory; // of tiles too large for shared memory
    wt_places places;
};

static size_t shared_bytes(const wt_hpss_config *c)
{
    return (size_t)(WT_HPSS_BINS + c->kernel_percussive - 1) * (WT_HPSS_FRAMES + 1) * sizeof(int);
}

wt_status wt__hpss_cuda_create(wt_device *device, const wt_hpss_config *c, wt__hpss_cuda **cuda)
{
    wt__hpss_cuda *h = *cuda = calloc(1, sizeof **cuda);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "hpss: CUDA plan");
    const bool held = shared_bytes(c) <= wt_device_get_info(device)->shared_bytes;
    char text[6][48] = {[5] = "-DPLACES"};
    h->launch = (wt_launch){.block = {256}, .shared_bytes = held ? shared_bytes(c) : 0};
    snprintf(text[0], sizeof text[0], "-DHPSS_HARMONIC=%d", c->kernel_harmonic);
    snprintf(text[1], sizeof text[1], "-DHPSS_PERCUSSIVE=%d", c->kernel_percussive);
    snprintf(text[2], sizeof text[2], "-DHPSS_COMPLEX=%d", (int)c->complex_in);
    snprintf(text[3], sizeof text[3], "-DHPSS_MASKS=%d", (int)c->give_masks);
    snprintf(text[4], sizeof text[4], "-DHPSS_SQUARE=%d", c->power == 2);
    wt_status status =
        held ? WT_OK : wt__op_places(device, INT32_MAX, c->lines, shared_bytes(c), &h->places, &h->launch, &h->memory);
    if (!status) status = wt__op_module(device, "kernels/decompose/hpss.cu", text, held ? 5 : 6, &h->module);
    if (!status) status = wt_module_get_kernel(h->module, "hpss_tile", &h->kernel);
    if (status) {
        wt__hpss_cuda_destroy(h);
        *cuda = NULL;
    }
    return status;
}

void wt__hpss_cuda_destroy(wt__hpss_cuda *cuda)
{
    if (!cuda) return;
    wt_buffer_destroy(cuda->memory);
    wt_module_destroy(cuda->module);
    free(cuda);
}

wt_status wt__hpss_cuda_enqueue(const wt__hpss_cuda *cuda, wt_stream *stream, const wt_hpss_config *c, const float *in,
                                int64_t n_frames, float *harmonic, float *percussive)
{
    wt_hpss_args args = {.in = in,
                         .harmonic = harmonic,
                         .percussive = percussive,
                         .n_frames = n_frames,
                         .bins = c->bins,
                         .lines = c->lines,
                         .power = c->power,
                         .margin_harmonic = c->margin_harmonic,
                         .margin_percussive = c->margin_percussive,
                         .silent = c->margin_harmonic == 1 && c->margin_percussive == 1 ? 0.5f : 0.0f,
                         .places = cuda->places};
    const int across = (c->bins + WT_HPSS_BINS - 1) / WT_HPSS_BINS;
    const int64_t down = (n_frames + WT_HPSS_FRAMES - 1) / WT_HPSS_FRAMES;
    if (down > INT32_MAX / across)
        return wt_fail(WT_ERR_BAD_ARG, "hpss: %lld frames of %d bins, want fewer", (long long)n_frames, c->bins);
    wt_launch launch = cuda->launch;
    args.places.across = down * across;
    if (!cuda->memory) launch.grid[0] = (int)down * across, launch.grid[1] = c->lines;
    return wt_kernel_launch(cuda->kernel, stream, &launch, &WT_ARG(args), 1);
}
