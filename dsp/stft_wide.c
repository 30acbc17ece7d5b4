// Frames to memory, wt_fft, and what is made of its bins: any length that wt_fft takes. Lines go in groups whose frames
// the work space holds; the last group begins early enough to be as large as the others.

#include "stft_wide.h"

#include "op.h"
#include "spectrum_cuda.h"
#include "stft_wide_kernel.h"

#include <stdlib.h>
#include <warptone/fft.h>

#define WORK_BYTES (1LL << 30)

enum { THREADS = 256 };

struct wt__stft_wide {
    wt_device *device;
    wt_stft_wide_args args; // of a group
    int64_t n_lines;        // in all
    wt_fft *forward, *inverse;
    wt_buffer *frames, *pairs, *window; // pairs: NULL of complex output
    wt_module *module;
    wt_kernel *fill, *give, *add;
};

static wt_status create_transforms(wt__stft_wide *w)
{
    const wt_stft_wide_args *a = &w->args;
    const int64_t batch = a->n_lines * a->n_frames;
    if (batch > WT_FFT_MAX_BATCH)
        return wt_fail(WT_ERR_BAD_ARG, "stft: %lld frames of %d samples, want %d at most on a GPU", (long long)batch,
                       a->n_fft, WT_FFT_MAX_BATCH);
    wt_fft_config config = {.n = a->n_fft, .batch = (int)batch, .kind = WT_FFT_REAL_TO_COMPLEX};
    wt_status status = wt_fft_create(w->device, &config, &w->forward);
    config.kind = WT_FFT_COMPLEX_TO_REAL;
    return status ? status : wt_fft_create(w->device, &config, &w->inverse);
}

static wt_status create_work(wt__stft_wide *w, const wt_stft *stft)
{
    wt_stft_wide_args *a = &w->args;
    const size_t frames = (size_t)(a->n_lines * a->n_frames) * sizeof(float);
    wt_status status = wt_buffer_create(w->device, WT_MEMORY_DEVICE, frames * (size_t)a->n_fft, &w->frames);
    if (!status && a->kind != WT_STFT_COMPLEX)
        status = wt_buffer_create(w->device, WT_MEMORY_DEVICE, frames * 2 * (size_t)a->bins, &w->pairs);
    if (!status) status = wt__op_upload(w->device, wt__stft_window(stft), (size_t)a->n_fft * sizeof(float), &w->window);
    if (status) return status;
    a->frames = (float *)wt_buffer_address(w->frames);
    a->window = (const float *)wt_buffer_address(w->window);
    if (w->pairs) a->pairs = (const float *)wt_buffer_address(w->pairs);
    status = wt__op_module(w->device, "kernels/stft_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "stft_wide_fill", &w->fill);
    if (!status) status = wt_module_get_kernel(w->module, "stft_wide_give", &w->give);
    return status ? status : wt_module_get_kernel(w->module, "stft_wide_add", &w->add);
}

wt_status wt__stft_wide_create(wt_device *device, const wt_stft *stft, wt_stft_output output, int64_t n_lines,
                               int64_t n_samples, int64_t n_frames, int64_t length, wt__stft_wide **wide)
{
    const wt_stft_config *c = wt__stft_config(stft);
    const int64_t line = n_frames * c->n_fft * (int64_t)sizeof(float), most = line < WORK_BYTES ? WORK_BYTES / line : 1;
    wt__stft_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "stft: CUDA plan");
    w->device = device, w->n_lines = n_lines;
    w->args = (wt_stft_wide_args){.n_samples = n_samples,
                                  .length = length,
                                  .n_lines = n_lines < most ? n_lines : most,
                                  .n_frames = n_frames,
                                  .n_fft = c->n_fft,
                                  .bins = wt_stft_bins(stft),
                                  .hop = c->hop,
                                  .margin = c->no_center ? 0 : c->n_fft / 2,
                                  .pad = (int)c->pad,
                                  .kind = (int)output,
                                  .used_frames = (int)wt__stft_used_frames(stft, n_frames, length)};
    wt_status status = create_transforms(w);
    return status ? status : create_work(w, stft);
}

void wt__stft_wide_destroy(wt__stft_wide *wide)
{
    if (!wide) return;
    wt_fft_destroy(wide->forward);
    wt_fft_destroy(wide->inverse);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->frames);
    wt_buffer_destroy(wide->pairs);
    wt_buffer_destroy(wide->window);
    free(wide);
}

static wt_status launch(wt_kernel *kernel, wt_stream *stream, const wt_stft_wide_args *args, int64_t count)
{
    wt_launch shape = {.block = {THREADS}};
    wt_status status = wt__spectrum_cuda_grid("stft", args->n_lines, count, THREADS, &shape.grid[0]);
    return status ? status : wt_kernel_launch(kernel, stream, &shape, &WT_ARG(*args), 1);
}

static int64_t first_of(const wt__stft_wide *w, int64_t line)
{
    return w->n_lines - line < w->args.n_lines ? w->n_lines - w->args.n_lines : line;
}

wt_status wt__stft_wide_forward(wt__stft_wide *w, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                                wt_buffer *out, size_t out_offset)
{
    const size_t row = (size_t)(w->args.n_frames * w->args.bins) * sizeof(float) * (w->pairs ? 1 : 2);
    wt_status status = WT_OK;
    for (int64_t line = 0; line < w->n_lines && !status; line += w->args.n_lines) {
        const int64_t first = first_of(w, line);
        const size_t to = out_offset + (size_t)first * row;
        wt_stft_wide_args a = w->args;
        a.pcm = (const float *)(wt_buffer_address(pcm) + pcm_offset) + first * a.n_samples;
        a.out = (float *)(wt_buffer_address(out) + to);
        status = launch(w->fill, stream, &a, a.n_frames * a.n_fft);
        if (!status)
            status = w->pairs ? wt_fft_enqueue(w->forward, stream, w->frames, 0, w->pairs, 0)
                              : wt_fft_enqueue(w->forward, stream, w->frames, 0, out, to);
        if (!status && w->pairs) status = launch(w->give, stream, &a, a.n_frames * a.bins);
    }
    return status;
}

wt_status wt__stft_wide_inverse(wt__stft_wide *w, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                wt_buffer *pcm, size_t pcm_offset)
{
    const size_t row = (size_t)(w->args.n_frames * w->args.bins) * sizeof(float) * 2;
    wt_status status = WT_OK;
    for (int64_t line = 0; line < w->n_lines && !status; line += w->args.n_lines) {
        const int64_t first = first_of(w, line);
        wt_stft_wide_args a = w->args;
        a.out = (float *)(wt_buffer_address(pcm) + pcm_offset) + first * a.length;
        status = wt_fft_enqueue(w->inverse, stream, in, in_offset + (size_t)first * row, w->frames, 0);
        if (!status) status = launch(w->add, stream, &a, a.length);
    }
    return status;
}
