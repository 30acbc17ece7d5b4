#include "wide_cuda.h"

#include <stdlib.h>

wt_status wt__wide_create(const char *op, wt_device *device, int n_fft, int64_t n_lines, int64_t n_frames, int sets,
                          const double *window, wt__wide *w)
{
    const int64_t pairs = (n_frames + 1) / 2;
    *w = (wt__wide){.op = op, .n_pairs = n_lines * pairs};
    wt_status status = wt__fft64_cuda_create(op, device, n_fft, sets * w->n_pairs, sets, &w->fft);
    if (!status && window)
        status = wt__op_upload(device, window, (size_t)sets * (size_t)n_fft * sizeof *window, &w->window);
    if (!status) status = wt__op_module(device, "kernels/spectral/wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "wide_fill", &w->fill);
    if (!status) status = wt_module_get_kernel(w->module, "wide_add", &w->add);
    if (status) return status;
    w->at_once = (int)(w->fft.rows / sets);
    w->pairs = (wt_wide_pairs){.in = w->fft.in,
                               .out = w->fft.out,
                               .pairs = pairs,
                               .n_frames = n_frames,
                               .n_fft = n_fft,
                               .pitch = w->fft.points};
    w->fill_args.window = w->window ? (const double *)wt_buffer_address(w->window) : NULL;
    return WT_OK;
}

wt_status wt__wide_load(const char *op, wt_device *device, const wt_stft *stft, int64_t n_lines, int64_t n_frames,
                        wt__wide *w)
{
    const wt_stft_config *c = wt__stft_config(stft);
    *w = (wt__wide){.op = op};
    double *window = malloc((size_t)c->n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "%s: window of %d", op, c->n_fft);
    for (int i = 0; i < c->n_fft; i++) window[i] = c->precise ? wt__stft_window64(stft)[i] : wt__stft_window(stft)[i];
    wt_status status = wt__wide_create(op, device, c->n_fft, n_lines, n_frames, 1, window, w);
    free(window);
    w->fill_args.hop = c->hop;
    w->fill_args.margin = c->no_center ? 0 : c->n_fft / 2;
    w->fill_args.pad = (int)c->pad;
    return status;
}

wt_status wt__wide_level(wt_device *device, wt__wide *w)
{
    wt_status status =
        wt_buffer_create(device, WT_MEMORY_DEVICE, 2 * (size_t)w->at_once * sizeof *w->pairs.levels, &w->levels);
    if (!status) w->pairs.levels = (double *)wt_buffer_address(w->levels);
    return status ? status : wt_module_get_kernel(w->module, "wide_level", &w->level);
}

void wt__wide_release(wt__wide *wide)
{
    wt__fft64_cuda_release(&wide->fft);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->window);
    wt_buffer_destroy(wide->levels);
}

wt_wide_pairs wt__wide_tile(const wt__wide *wide, int64_t first)
{
    wt_wide_pairs tile = wide->pairs;
    tile.first = first;
    tile.n_pairs = wide->n_pairs - first < wide->at_once ? (int)(wide->n_pairs - first) : wide->at_once;
    return tile;
}

wt_status wt__wide_launch(const wt__wide *wide, wt_kernel *kernel, wt_stream *stream, const wt_wide_pairs *tile,
                          int each, wt_arg args)
{
    return wt__fft64_cuda_each(wide->op, kernel, stream, args, (int64_t)tile->n_pairs * each);
}

wt_status wt__wide_forward(const wt__wide *wide, wt_stream *stream, const wt_wide_fill_args *args)
{
    wt_status status = WT_OK;
    if (args->pairs.levels) status = wt__wide_launch(wide, wide->level, stream, &args->pairs, 64, WT_ARG(*args));
    if (!status) status = wt__wide_launch(wide, wide->fill, stream, &args->pairs, args->pairs.n_fft, WT_ARG(*args));
    return status ? status : wt__fft64_cuda_run(&wide->fft, stream, args->pairs.n_pairs);
}

wt_status wt__wide_add(const wt__wide *wide, wt_stream *stream, const wt_wide_pairs *tile, int64_t n_sums, int64_t used,
                       double *sums)
{
    const int64_t last = tile->first + tile->n_pairs - 1, line = tile->first / tile->pairs,
                  n_lines = last / tile->pairs - line + 1, hop = wide->fill_args.hop;
    const bool inside = n_lines == 1; // of several lines all samples
    const int64_t begin = inside ? 2 * (tile->first % tile->pairs) * hop : 0,
                  end = (2 * (last % tile->pairs) + 1) * hop + tile->n_fft;
    const wt_wide_add_args args = {.pairs = *tile,
                                   .sums = sums,
                                   .window = wide->fill_args.window,
                                   .n_sums = n_sums,
                                   .line = line,
                                   .n_lines = n_lines,
                                   .begin = begin,
                                   .count = (inside && end < n_sums ? end : n_sums) - begin,
                                   .used = used,
                                   .hop = (int)hop};
    return wt__fft64_cuda_each(wide->op, wide->add, stream, WT_ARG(args), n_lines * args.count);
}
