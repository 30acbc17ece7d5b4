// Spectra to memory, transforms in double there, and sums of the overlapped frames in double, of as many lines at a
// time as the work space holds (kernels/tonal/icqt_wide.cu).

#include "icqt_wide.h"

#include "icqt_wide_kernel.h"
#include "wide_cuda.h"

#include <stdlib.h>

#define WORK_BYTES (1LL << 30)

struct wt__icqt_wide {
    wt__wide wide; // of the lines of a group and the most frames
    wt_buffer *sums;
    wt_module *module;
    wt_kernel *put, *finish;
    int64_t n_lines, at_once;
};

static wt_status load(wt_device *device, int n_fft, int64_t max_frames, int64_t max_samples, wt__icqt_wide *w)
{
    const size_t sums = (size_t)(w->at_once * (n_fft / 2 + max_samples)) * sizeof(double);
    double *window = malloc((size_t)n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "icqt: window of %d", n_fft);
    for (int i = 0; i < n_fft; i++) window[i] = 1;
    wt_status status = wt__wide_create("icqt", device, n_fft, w->at_once, max_frames, 1, window, &w->wide);
    free(window);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, sums, &w->sums);
    if (!status) status = wt__op_module(device, "kernels/tonal/icqt_wide.cu", NULL, 0, &w->module);
    if (!status) status = wt_module_get_kernel(w->module, "icqt_wide_put", &w->put);
    return status ? status : wt_module_get_kernel(w->module, "icqt_wide_finish", &w->finish);
}

wt_status wt__icqt_wide_create(wt_device *device, int n_fft, int64_t n_lines, int64_t max_frames, int64_t max_samples,
                               wt__icqt_wide **wide)
{
    wt__icqt_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "icqt: CUDA plan");
    const int64_t most = WORK_BYTES / ((n_fft / 2 + max_samples) * (int64_t)sizeof(double));
    w->n_lines = n_lines;
    w->at_once = most < 1 ? 1 : most < n_lines ? most : n_lines;
    return load(device, n_fft, max_frames, max_samples, w);
}

void wt__icqt_wide_destroy(wt__icqt_wide *wide)
{
    if (!wide) return;
    wt__wide_release(&wide->wide);
    wt_module_destroy(wide->module);
    wt_buffer_destroy(wide->sums);
    free(wide);
}

// The lines from `first` on, as many as there are sums for.
static wt_status enqueue_group(const wt__icqt_wide *wide, wt_stream *stream, int64_t first, wt_icqt_wide_args *args)
{
    wt__wide w = wide->wide;
    wt_icqt_octave_args *o = &args->octave;
    double *sums = (double *)wt_buffer_address(wide->sums);
    const int64_t n_lines = wide->n_lines - first < wide->at_once ? wide->n_lines - first : wide->at_once;
    const int64_t n_sums = o->walk.margin + o->n, stride = o->n + 2 * WT_ICQT_TAIL;
    w.fill_args.hop = o->walk.hop;
    w.pairs.n_frames = o->n_frames, w.pairs.pairs = (o->n_frames + 1) / 2;
    w.n_pairs = n_lines * w.pairs.pairs;
    args->sums = sums, args->n_lines = n_lines;
    o->in += first * o->stored_frames * o->n_bins * 2;
    o->under += first * stride;
    o->out += first * (o->last ? o->walk.length : stride);
    if (o->kept) o->kept += first * 2 * WT_ICQT_END_KEPT;
    wt_status status = wt_stream_fill(stream, wide->sums, 0, 0, (size_t)(n_lines * n_sums) * sizeof *sums);
    for (int64_t pair = 0; pair < w.n_pairs && !status; pair += w.at_once) {
        args->pairs = wt__wide_tile(&w, pair);
        status = wt__wide_launch(&w, wide->put, stream, &args->pairs, args->pairs.n_fft / 2 + 1, WT_ARG(*args));
        if (!status) status = wt__fft64_cuda_run(&w.fft, stream, args->pairs.n_pairs);
        if (!status) status = wt__wide_add(&w, stream, &args->pairs, n_sums, o->n_frames, sums);
    }
    return status ? status : wt__fft64_cuda_each("icqt", wide->finish, stream, WT_ARG(*args), n_lines * o->walk.length);
}

wt_status wt__icqt_wide_enqueue(const wt__icqt_wide *wide, wt_stream *stream, const wt_icqt_octave_args *octave)
{
    wt_status status = WT_OK;
    for (int64_t first = 0; first < wide->n_lines && !status; first += wide->at_once) {
        wt_icqt_wide_args args = {.octave = *octave};
        args.octave.walk.margin = wide->wide.pairs.n_fft / 2;
        status = enqueue_group(wide, stream, first, &args);
    }
    return status;
}
