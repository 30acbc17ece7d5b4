// Onset strength on a GPU: the mel plan's kernels, then kernels/rhythm/onset.cu over the bands.

#include "onset_cuda.h"
#include "spectrum_cuda.h"

#include <float.h>
#include <stdlib.h>
#include <warptone/mel.h>

struct wt__onset_cuda {
    wt_mel *mel;
    wt_buffer *bands; // [n_signals][n_mels][n_frames]
    wt_buffer *rises; // of so many bands that shared memory does not hold them
    wt_buffer *peaks; // [n_signals] of precise spectra
    wt_module *module;
    wt_kernel *peak, *strength, *detrend;
    wt_launch peak_launch, strength_launch, detrend_launch;
    bool detrended;
    wt_onset_args args;
};

// More bands than shared memory holds lie in memory.
static wt_status load(wt_device *device, wt__onset_cuda *o)
{
    const size_t bytes = (size_t)o->args.n_bands * (WT_ONSET_TILE + 1) * sizeof(float);
    const bool held = bytes <= wt_device_get_info(device)->shared_bytes;
    char options[2][48] = {"-fmad=false", "-DPLACES"};
    o->strength_launch = (wt_launch){.block = {256}, .shared_bytes = held ? bytes : 0};
    o->peak_launch = (wt_launch){.block = {256}};
    o->detrend_launch = (wt_launch){.grid = {(o->args.n_signals + 31) / 32}, .block = {32}};
    int *tiles = &o->strength_launch.grid[0];
    wt_status status = wt__spectrum_cuda_grid("onset", o->args.n_signals, o->args.n_frames, WT_ONSET_TILE, tiles);
    if (!status)
        status = wt__spectrum_cuda_grid("onset", o->args.n_signals, o->args.n_bands * o->args.n_frames, WT_ONSET_PEAK,
                                        &o->peak_launch.grid[0]);
    if (!status && !held)
        status = wt__op_places(device, *tiles, 1, bytes, &o->args.places, &o->strength_launch, &o->rises);
    if (!status) status = wt__op_module(device, "kernels/rhythm/onset.cu", options, held ? 1 : 2, &o->module);
    if (!status) status = wt_module_get_kernel(o->module, "onset_peak", &o->peak);
    if (!status) status = wt_module_get_kernel(o->module, "onset_strength", &o->strength);
    return status ? status : wt_module_get_kernel(o->module, "onset_detrend", &o->detrend);
}

wt_status wt__onset_cuda_create(wt_device *device, const wt_onset_config *c, int shift, int64_t *n_frames,
                                wt__onset_cuda **cuda)
{
    wt__onset_cuda *o = *cuda = calloc(1, sizeof *o); // the plan's destroy takes it back, also half built
    if (!o) return wt_fail(WT_ERR_NO_MEMORY, "onset: CUDA plan");
    const wt_mel_config mel = {.n_samples = c->n_samples,
                               .n_signals = c->n_signals,
                               .stft = {.n_fft = c->n_fft, .hop = c->hop, .precise = c->precise},
                               .bank = {.rate_hz = c->rate_hz, .n_mels = c->n_mels},
                               .scale = c->precise ? WT_MEL_LINEAR : WT_MEL_DB,
                               .db = {.no_top = c->has_floor}};
    wt_status status = wt_mel_create(device, &mel, &o->mel);
    if (status) return status;
    *n_frames = wt_mel_frames(o->mel);
    o->detrended = c->detrend;
    o->args = (wt_onset_args){.n_frames = *n_frames,
                              .n_signals = c->n_signals,
                              .n_bands = c->n_mels,
                              .lag = c->lag,
                              .max_size = c->max_size,
                              .shift = shift,
                              .median = c->median,
                              .floor = c->has_floor ? c->floor_db : -FLT_MAX,
                              .precise = c->precise,
                              .has_floor = c->has_floor};
    const size_t floats = (size_t)c->n_signals * (size_t)c->n_mels * (size_t)*n_frames;
    status = wt_buffer_create(device, WT_MEMORY_DEVICE, floats * sizeof(float), &o->bands);
    if (!status) o->args.mel = (const float *)wt_buffer_address(o->bands);
    const size_t peaks = sizeof(int) * (size_t)c->n_signals;
    if (!status && c->precise) status = wt_buffer_create(device, WT_MEMORY_DEVICE, peaks, &o->peaks);
    if (!status && c->precise) o->args.peaks = (int *)wt_buffer_address(o->peaks);
    return status ? status : load(device, o);
}

void wt__onset_cuda_destroy(wt__onset_cuda *cuda)
{
    if (!cuda) return;
    wt_mel_destroy(cuda->mel);
    wt_buffer_destroy(cuda->bands);
    wt_buffer_destroy(cuda->rises);
    wt_buffer_destroy(cuda->peaks);
    wt_module_destroy(cuda->module);
    free(cuda);
}

wt_status wt__onset_cuda_enqueue(const wt__onset_cuda *cuda, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                 float *envelope)
{
    wt_onset_args args = cuda->args;
    args.out = envelope;
    wt_status status = wt_mel_enqueue(cuda->mel, stream, pcm, pcm_offset, cuda->bands, 0);
    if (!status && args.peaks) status = wt_stream_fill(stream, cuda->peaks, 0, 0, wt_buffer_size_bytes(cuda->peaks));
    if (!status && args.peaks) status = wt_kernel_launch(cuda->peak, stream, &cuda->peak_launch, &WT_ARG(args), 1);
    if (!status) status = wt_kernel_launch(cuda->strength, stream, &cuda->strength_launch, &WT_ARG(args), 1);
    if (!status && cuda->detrended)
        status = wt_kernel_launch(cuda->detrend, stream, &cuda->detrend_launch, &WT_ARG(args), 1);
    return status;
}
