// Frames in double to memory and back, a tile of them at a time. On the way back the sums of as many lines as the work
// space holds are in double; the last group of lines begins early enough to be as large as the others.

#include "stft_wide.h"

#include "stft_wide_kernel.h"
#include "wide_cuda.h"

#include <stdlib.h>

#define WORK_BYTES (1LL << 30)

struct wt__stft_wide {
    wt__wide wide; // of a group
    wt_stft_wide_args args;
    int64_t n_lines; // in all
    wt_buffer *sums;
    wt_module *module;
    wt_kernel *give, *put, *finish;
};

static wt_status load(wt_device *device, wt__stft_wide *w)
{
    const size_t sums = (size_t)(w->args.n_lines * (w->args.margin + w->args.length)) * sizeof(double);
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, sums, &w->sums);
    if (!status) status = wt__op_module(device, "kernels/spectral/stft_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "stft_wide_give", &w->give);
    if (!status) status = wt_module_get_kernel(w->module, "stft_wide_put", &w->put);
    if (!status) status = wt_module_get_kernel(w->module, "stft_wide_finish", &w->finish);
    if (!status) w->args.sums = (const double *)wt_buffer_address(w->sums);
    return status;
}

wt_status wt__stft_wide_create(wt_device *device, const wt_stft *stft, wt_stft_output output, int64_t n_lines,
                               int64_t n_samples, int64_t n_frames, int64_t length, wt__stft_wide **wide)
{
    const wt_stft_config *c = wt__stft_config(stft);
    const int margin = c->no_center ? 0 : c->n_fft / 2;
    const int64_t most = WORK_BYTES / ((margin + length + 1) * (int64_t)sizeof(double)), at_once = most < 1 ? 1
                                                                                                   : most < n_lines
                                                                                                       ? most
                                                                                                       : n_lines;
    wt__stft_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "stft: CUDA plan");
    w->n_lines = n_lines;
    wt_status status = wt__wide_load("stft", device, stft, at_once, n_frames, &w->wide);
    w->wide.fill_args.n_samples = n_samples;
    w->args = (wt_stft_wide_args){.window = w->wide.fill_args.window,
                                  .length = length,
                                  .n_lines = at_once,
                                  .used = wt__stft_used_frames(stft, n_frames, length),
                                  .bins = wt_stft_bins(stft),
                                  .hop = c->hop,
                                  .margin = margin,
                                  .kind = (int)output};
    if (!status) status = wt__wide_level(device, &w->wide);
    return status ? status : load(device, w);
}

void wt__stft_wide_destroy(wt__stft_wide *wide)
{
    if (!wide) return;
    wt__wide_release(&wide->wide);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->sums);
    free(wide);
}

static int64_t first_of(const wt__stft_wide *w, int64_t line)
{
    return w->n_lines - line < w->args.n_lines ? w->n_lines - w->args.n_lines : line;
}

static wt_status forward_group(const wt__stft_wide *w, wt_stream *stream, const float *pcm, float *out)
{
    wt_wide_fill_args fill = w->wide.fill_args;
    wt_stft_wide_args args = w->args;
    fill.pcm = pcm, args.out = out;
    wt_status status = WT_OK;
    for (int64_t first = 0; first < w->wide.n_pairs && !status; first += w->wide.at_once) {
        fill.pairs = args.pairs = wt__wide_tile(&w->wide, first);
        status = wt__wide_forward(&w->wide, stream, &fill);
        if (!status) status = wt__wide_launch(&w->wide, w->give, stream, &args.pairs, args.bins, WT_ARG(args));
    }
    return status;
}

wt_status wt__stft_wide_forward(wt__stft_wide *w, wt_stream *stream, const float *pcm, float *out)
{
    const int64_t row = w->wide.pairs.n_frames * w->args.bins * (w->args.kind == WT_STFT_COMPLEX ? 2 : 1);
    wt_status status = WT_OK;
    for (int64_t line = 0; line < w->n_lines && !status; line += w->args.n_lines) {
        const int64_t first = first_of(w, line);
        status = forward_group(w, stream, pcm + first * w->wide.fill_args.n_samples, out + first * row);
    }
    return status;
}

static wt_status inverse_group(const wt__stft_wide *w, wt_stream *stream, const float *in, float *pcm)
{
    const int64_t n_sums = w->args.margin + w->args.length;
    wt_stft_wide_args args = w->args;
    args.in = in, args.out = pcm;
    wt_status status = wt_stream_fill(stream, w->sums, 0, 0, (size_t)(args.n_lines * n_sums) * sizeof(double));
    for (int64_t first = 0; first < w->wide.n_pairs && !status; first += w->wide.at_once) {
        args.pairs = wt__wide_tile(&w->wide, first);
        status = wt__wide_launch(&w->wide, w->put, stream, &args.pairs, args.bins, WT_ARG(args));
        if (!status) status = wt__fft64_cuda_run(&w->wide.fft, stream, args.pairs.n_pairs);
        if (!status)
            status =
                wt__wide_add(&w->wide, stream, &args.pairs, n_sums, args.used, (double *)wt_buffer_address(w->sums));
    }
    return status ? status : wt__fft64_cuda_each("stft", w->finish, stream, WT_ARG(args), args.n_lines * args.length);
}

wt_status wt__stft_wide_inverse(wt__stft_wide *w, wt_stream *stream, const float *in, float *pcm)
{
    const int64_t row = w->wide.pairs.n_frames * w->args.bins * 2;
    wt_status status = WT_OK;
    for (int64_t line = 0; line < w->n_lines && !status; line += w->args.n_lines) {
        const int64_t first = first_of(w, line);
        status = inverse_group(w, stream, in + first * row, pcm + first * w->args.length);
    }
    return status;
}
