// Frames to memory, transforms in double there, then the filters (kernels/tonal/cqt_wide.cu).

#include "cqt_wide.h"

#include "cqt_wide_kernel.h"
#include "wide_cuda.h"

#include <stdlib.h>

struct wt__cqt_wide {
    wt__wide wide; // of the most frames
    wt_module *module;
    wt_kernel *kernel;
    int64_t n_lines;
    bool pseudo;
};

static wt_status load(wt_device *device, const wt__cqt_part *part, int64_t max_frames, wt__cqt_wide *w)
{
    const int n = part->n_fft;
    double *window = malloc((size_t)n * sizeof *window);
    float *hann = malloc((size_t)n * sizeof *hann); // the CPU's are floats
    wt_status status = window && hann ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "cqt: window of %d", n);
    if (!status && part->pseudo) status = wt_window_fill(&(wt_window_config){.n = n}, hann);
    for (int i = 0; i < n && !status; i++) window[i] = part->pseudo ? (double)hann[i] : 1;
    if (!status) status = wt__wide_create("cqt", device, n, w->n_lines, max_frames, 1, window, &w->wide);
    if (!status) status = wt__wide_level(device, &w->wide);
    free(window);
    free(hann);
    if (!status) status = wt__op_module(device, "kernels/tonal/cqt_wide.cu", NULL, 0, &w->module);
    return status ? status : wt_module_get_kernel(w->module, "cqt_wide", &w->kernel);
}

wt_status wt__cqt_wide_create(wt_device *device, const wt__cqt_plan *plan, const wt__cqt_part *part, int64_t max_frames,
                              wt__cqt_wide **wide)
{
    wt__cqt_wide *w = *wide = calloc(1, sizeof *w); // the plan's destroy takes it back, also half built
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "cqt: CUDA plan");
    w->n_lines = plan->config.channels, w->pseudo = part->pseudo;
    wt_status status = load(device, part, max_frames, w);
    w->wide.fill_args.margin = part->n_fft / 2;
    w->wide.fill_args.pad = (int)plan->config.pad;
    return status;
}

void wt__cqt_wide_destroy(wt__cqt_wide *wide)
{
    if (!wide) return;
    wt__wide_release(&wide->wide);
    wt_module_destroy(wide->module);
    free(wide);
}

wt_status wt__cqt_wide_enqueue(const wt__cqt_wide *wide, wt_stream *stream, const wt_cqt_octave_args *octave)
{
    wt__wide w = wide->wide; // of this signal's frames
    wt_wide_fill_args fill = w.fill_args;
    wt_cqt_wide_args args = {.octave = *octave, .pseudo = wide->pseudo};
    wt_status status = WT_OK;
    w.pairs.n_frames = octave->n_frames;
    w.pairs.pairs = (octave->n_frames + 1) / 2;
    w.n_pairs = wide->n_lines * w.pairs.pairs;
    fill.pcm = octave->in, fill.n_samples = octave->n, fill.hop = octave->hop;
    for (int64_t first = 0; first < w.n_pairs && !status; first += w.at_once) {
        fill.pairs = args.pairs = wt__wide_tile(&w, first);
        status = wt__wide_forward(&w, stream, &fill);
        if (!status) status = wt__wide_launch(&w, wide->kernel, stream, &args.pairs, octave->n_rows, WT_ARG(args));
    }
    return status;
}
