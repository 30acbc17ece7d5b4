// Spectra R of an iteration and two signals in double, of as many lines at a time as the work space has room for;
// frames go there and back a tile at a time. The last group begins early enough to be as large as the others.

#include "griffin_lim_wide.h"
#include "griffin_lim_wide_kernel.h"
#include "wide_cuda.h"

#include <stdlib.h>

#define WORK_BYTES (4LL << 30) // of spectra and signals

struct wt__griffin_lim_wide {
    wt__wide wide;
    wt_module *module;
    wt_kernel *begin, *turn, *finish;
    wt_buffer *squares, *seeds, *jumps, *before, *sums[2];
    wt_griffin_lim_wide_args args;
    int64_t n_lines, at_once;
    int n_iter;
};

static wt_status take_work(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_wide *w)
{
    const int64_t spectra = s->n_used * w->args.bins * 2 * (int64_t)sizeof(double),
                  sums = s->n_padded * (int64_t)sizeof(double), most = WORK_BYTES / (spectra + 2 * sums);
    w->at_once = most < 1 ? 1 : most < s->n_lines ? most : s->n_lines;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(w->at_once * spectra), &w->before);
    for (int i = 0; i < 2 && !status; i++)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(w->at_once * sums), &w->sums[i]);
    if (!status) w->args.before = (double *)wt_buffer_address(w->before);
    w->args.n_lines = w->at_once;
    return status;
}

static wt_status upload(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_wide *w)
{
    const size_t bins = (size_t)w->args.bins;
    wt_status status = wt__griffin_lim_upload_squares(device, s, true, &w->squares);
    if (!status) status = wt__op_upload(device, s->seeds, bins * sizeof *s->seeds, &w->seeds);
    if (!status) status = wt__op_upload(device, s->jumps, (size_t)s->n_used * 2 * sizeof *s->jumps, &w->jumps);
    if (status) return status;
    w->args.squares = (const double *)wt_buffer_address(w->squares);
    w->args.seeds = (const unsigned long long *)wt_buffer_address(w->seeds);
    w->args.jumps = (const unsigned long long *)wt_buffer_address(w->jumps);
    return WT_OK;
}

static wt_status prepare(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_wide *w)
{
    w->n_lines = s->n_lines, w->n_iter = s->n_iter;
    w->args = (wt_griffin_lim_wide_args){.stored_frames = s->n_frames,
                                         .n_padded = s->n_padded,
                                         .length = s->length,
                                         .momentum = s->momentum,
                                         .bins = wt_stft_bins(s->stft),
                                         .zero_phase = s->zero_phase};
    wt_status status = take_work(device, s, w);
    if (!status) status = upload(device, s, w);
    if (!status) status = wt__wide_load("griffin-lim", device, s->stft, w->at_once, s->n_used, &w->wide);
    w->wide.fill_args.n_samples = s->length, w->wide.fill_args.apart = s->n_padded;
    w->args.margin = w->wide.fill_args.margin;
    if (!status) status = wt__op_module(device, "kernels/spectral/griffin_lim_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "griffin_lim_wide_begin", &w->begin);
    if (!status) status = wt_module_get_kernel(w->module, "griffin_lim_wide_turn", &w->turn);
    return status ? status : wt_module_get_kernel(w->module, "griffin_lim_wide_finish", &w->finish);
}

wt_status wt__griffin_lim_wide_create(wt_device *device, const wt__griffin_lim_shape *shape,
                                      wt__griffin_lim_wide **wide)
{
    wt__griffin_lim_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    return w ? prepare(device, shape, w) : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: CUDA plan");
}

void wt__griffin_lim_wide_destroy(wt__griffin_lim_wide *wide)
{
    if (!wide) return;
    wt__wide_release(&wide->wide);
    wt_module_destroy(wide->module);
    wt_buffer *const buffers[] = {wide->squares, wide->seeds, wide->jumps, wide->before, wide->sums[0], wide->sums[1]};
    for (int i = 0; i < 6; i++) wt_buffer_destroy(buffers[i]);
    free(wide);
}

// ---- running

// A tile's bins, which `args` has put for the way back, to the sums.
static wt_status return_tile(const wt__griffin_lim_wide *w, wt_stream *stream, wt_kernel *put,
                             const wt_griffin_lim_wide_args *args)
{
    const wt_wide_pairs *tile = &args->pairs;
    wt_status status = wt__wide_launch(&w->wide, put, stream, tile, args->bins, WT_ARG(*args));
    if (!status) status = wt__fft64_cuda_run(&w->wide.fft, stream, tile->n_pairs);
    return status ? status : wt__wide_add(&w->wide, stream, tile, args->n_padded, tile->n_frames, args->sums);
}

// Iteration i, -1 the first phases, from one buffer of signals to the other.
static wt_status iterate(const wt__griffin_lim_wide *w, wt_stream *stream, int i, wt_griffin_lim_wide_args *args)
{
    wt_buffer *from = w->sums[(i + 1) % 2], *to = w->sums[i % 2 != 0];
    wt_wide_fill_args fill = w->wide.fill_args;
    fill.samples = (const double *)wt_buffer_address(from) + args->margin;
    args->sums = (double *)wt_buffer_address(to);
    args->first = i == 0;
    wt_status status = wt_stream_fill(stream, to, 0, 0, (size_t)(args->n_lines * args->n_padded) * sizeof *args->sums);
    for (int64_t first = 0; first < w->wide.n_pairs && !status; first += w->wide.at_once) {
        fill.pairs = args->pairs = wt__wide_tile(&w->wide, first);
        if (i >= 0) status = wt__wide_forward(&w->wide, stream, &fill);
        if (!status) status = return_tile(w, stream, i < 0 ? w->begin : w->turn, args);
    }
    return status ? status
                  : wt__fft64_cuda_each("griffin-lim", w->finish, stream, WT_ARG(*args), args->n_lines * args->length);
}

wt_status wt__griffin_lim_wide_enqueue(const wt__griffin_lim_wide *w, wt_stream *stream, const float *magnitude,
                                       float *out)
{
    wt_griffin_lim_wide_args args = w->args;
    wt_status status = WT_OK;
    for (int64_t done = 0; done < w->n_lines && !status; done += w->at_once) {
        const int64_t first = w->n_lines - done < w->at_once ? w->n_lines - w->at_once : done;
        args.magnitude = magnitude + first * args.stored_frames * args.bins;
        for (int i = -1; i < w->n_iter && !status; i++) {
            args.out = i + 1 == w->n_iter ? out + first * args.length : NULL;
            status = iterate(w, stream, i, &args);
        }
    }
    return status;
}
