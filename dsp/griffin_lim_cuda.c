// One launch an iteration, for as many signals at a time as the work space has room for: two buffers of spectra and one
// of signals, whose other one is the output itself.

#include "griffin_lim_cuda.h"
#include "griffin_lim_wide.h"
#include "spectrum_cuda.h"

#include "griffin_lim_kernel.h"
#include <limits.h>
#include <stdlib.h>

#define WORK_BYTES (8LL << 30) // of spectra

struct wt__griffin_lim_cuda {
    wt__spectrum_cuda spectrum;
    wt_kernel *begin, *step;
    wt_buffer *squares, *seeds, *jumps, *spectra[2], *signals;
    wt_griffin_lim_args args; // all but what changes from launch to launch
    wt_launch launch;         // of all lines at once
    int64_t n_lines, at_once, bins;
    int n_iter;
    wt__griffin_lim_wide *wide; // in double, and where no block holds a frame
};

static wt_status take_work(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_cuda *c)
{
    const int64_t spectrum = s->n_used * c->bins * 2 * (int64_t)sizeof(float);
    const bool keeps = s->momentum != 0 && s->n_iter > 1;
    c->at_once = WORK_BYTES / (2 * spectrum);
    if (c->at_once < 1) c->at_once = 1;
    if (c->at_once > s->n_lines) c->at_once = s->n_lines;
    wt_status status =
        wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(c->at_once * s->length) * sizeof(float), &c->signals);
    for (int i = 0; i < 2 && keeps && !status; i++)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(c->at_once * spectrum), &c->spectra[i]);
    return status;
}

static wt_status upload(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_cuda *c)
{
    wt_status status = wt__op_upload(device, s->squares, (size_t)s->n_padded * sizeof *s->squares, &c->squares);
    if (!status) status = wt__op_upload(device, s->seeds, (size_t)c->bins * sizeof *s->seeds, &c->seeds);
    if (!status) status = wt__op_upload(device, s->jumps, (size_t)s->n_used * 2 * sizeof *s->jumps, &c->jumps);
    if (status) return status;
    c->args.squares = (const float *)wt_buffer_address(c->squares);
    c->args.seeds = (const unsigned long long *)wt_buffer_address(c->seeds);
    c->args.jumps = (const unsigned long long *)wt_buffer_address(c->jumps);
    return WT_OK;
}

static wt_status prepare(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_cuda *c)
{
    if (s->n_frames > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: %lld frames, want %d at most on a GPU", (long long)s->n_frames,
                       INT_MAX / 2);
    wt_status status = wt__spectrum_cuda_load("griffin-lim", device, s->stft, "kernels/griffin_lim.cu", &c->spectrum);
    if (status) return status;
    c->bins = wt_stft_bins(s->stft);
    c->n_lines = s->n_lines, c->n_iter = s->n_iter;
    c->args.frames = c->spectrum.args;
    c->args.frames.n_samples = s->length, c->args.frames.n_frames = (int)s->n_used;
    c->args.stored_frames = (int)s->n_frames;
    c->args.zero_phase = s->zero_phase, c->args.momentum = (float)s->momentum;
    status = upload(device, s, c);
    if (!status) status = take_work(device, s, c);
    if (!status)
        status = wt__spectrum_cuda_walk("griffin-lim", device, &c->spectrum, c->at_once, s->length, &c->args.walk,
                                        &c->launch);
    c->launch.shared_bytes += (size_t)wt__griffin_lim_staged(c->spectrum.n_fft);
    if (!status && c->launch.shared_bytes > wt_device_get_info(device)->shared_bytes)
        status = wt_fail(WT_ERR_UNSUPPORTED, "griffin-lim: n_fft %d takes %zu bytes of shared memory, the GPU has %zu",
                         c->spectrum.n_fft, c->launch.shared_bytes, wt_device_get_info(device)->shared_bytes);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "griffin_lim_begin", &c->begin);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "griffin_lim_step", &c->step);
    return status;
}

static void release(wt__griffin_lim_cuda *c)
{
    wt__spectrum_cuda_release(&c->spectrum);
    wt_buffer *const buffers[] = {c->squares, c->seeds, c->jumps, c->spectra[0], c->spectra[1], c->signals};
    for (int i = 0; i < 6; i++) wt_buffer_destroy(buffers[i]);
    *c = (wt__griffin_lim_cuda){.wide = NULL};
}

wt_status wt__griffin_lim_cuda_create(wt_device *device, const wt__griffin_lim_shape *shape,
                                      wt__griffin_lim_cuda **cuda)
{
    *cuda = NULL;
    wt__griffin_lim_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: CUDA plan");
    wt_status status = wt__stft_config(shape->stft)->precise ? WT_ERR_UNSUPPORTED : prepare(device, shape, c);
    if (status == WT_ERR_UNSUPPORTED) {
        release(c);
        status = wt__griffin_lim_wide_create(device, shape, &c->wide);
    }
    if (status)
        wt__griffin_lim_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__griffin_lim_cuda_destroy(wt__griffin_lim_cuda *cuda)
{
    if (!cuda) return;
    wt__griffin_lim_wide_destroy(cuda->wide);
    release(cuda);
    free(cuda);
}

static float *spectra_of(const wt__griffin_lim_cuda *c, int iteration)
{
    const bool kept = iteration >= 0 && iteration + 1 < c->n_iter && c->spectra[0];
    return kept ? (float *)wt_buffer_address(c->spectra[iteration % 2]) : NULL;
}

// The signals of `iteration` (-1: the first) lie where the last one's come to lie in the output.
static float *signals_of(const wt__griffin_lim_cuda *c, int iteration, float *out)
{
    return (c->n_iter - 1 - iteration) % 2 ? (float *)wt_buffer_address(c->signals) : out;
}

wt_status wt__griffin_lim_cuda_enqueue(const wt__griffin_lim_cuda *cuda, wt_stream *stream, const float *magnitude,
                                       float *out)
{
    if (cuda->wide) return wt__griffin_lim_wide_enqueue(cuda->wide, stream, magnitude, out);
    wt_griffin_lim_args args = cuda->args;
    wt_status status = WT_OK;
    for (int64_t first = 0; first < cuda->n_lines && !status; first += cuda->at_once) {
        const int64_t count = cuda->n_lines - first < cuda->at_once ? cuda->n_lines - first : cuda->at_once;
        wt_launch launch = cuda->launch;
        launch.grid[0] = (int)(launch.grid[0] / cuda->at_once * count);
        float *result = out + first * args.frames.n_samples;
        args.magnitude = magnitude + first * args.stored_frames * cuda->bins;
        for (int i = -1; i < cuda->n_iter && !status; i++) {
            args.frames.pcm = signals_of(cuda, i - 1, result);
            args.out = signals_of(cuda, i, result);
            args.before = spectra_of(cuda, i - 1), args.after = spectra_of(cuda, i);
            status = wt_kernel_launch(i < 0 ? cuda->begin : cuda->step, stream, &launch, &WT_ARG(args), 1);
        }
    }
    return status;
}
