#include "vocoder_wide.h"

wt_status wt__vocoder_wide_create(const char *op, wt_device *device, int n_fft, const double *window, int64_t n_lines,
                                  int64_t n_frames, wt__vocoder_wide *v)
{
    *v = (wt__vocoder_wide){.module = NULL};
    wt_status status = wt__wide_create(op, device, n_fft, n_lines, n_frames, 1, window, &v->wide);
    if (!status) status = wt__op_module(device, "kernels/stretch/vocoder_wide.cu", NULL, 0, &v->module);
    if (!status) status = wt_module_get_kernel(v->module, "vocoder_wide_fill", &v->fill);
    if (!status) status = wt_module_get_kernel(v->module, "vocoder_wide_give", &v->give);
    if (!status) status = wt_module_get_kernel(v->module, "vocoder_wide_attacks", &v->attacks);
    return status ? status : wt_module_get_kernel(v->module, "vocoder_wide_rules", &v->rules);
}

void wt__vocoder_wide_release(wt__vocoder_wide *v)
{
    wt__wide_release(&v->wide);
    wt_module_destroy(v->module);
}

wt_status wt__vocoder_wide_frames(const wt__vocoder_wide *v, wt_stream *stream, int64_t n_lines,
                                  const wt_vocoder_frames_args *frames)
{
    wt__wide w = v->wide;
    w.pairs.n_frames = frames->n_frames, w.pairs.pairs = (frames->n_frames + 1) / 2;
    w.n_pairs = n_lines * w.pairs.pairs;
    wt_vocoder_wide_args args = {.frames = *frames, .bins = w.pairs.n_fft / 2 + 1};
    wt_status status = WT_OK;
    for (int64_t first = 0; first < w.n_pairs && !status; first += w.at_once) {
        args.pairs = wt__wide_tile(&w, first);
        status = wt__wide_launch(&w, v->fill, stream, &args.pairs, args.pairs.n_fft, WT_ARG(args));
        if (!status) status = wt__fft64_cuda_run(&w.fft, stream, args.pairs.n_pairs);
        if (!status) status = wt__wide_launch(&w, v->give, stream, &args.pairs, args.bins, WT_ARG(args));
    }
    return status;
}

wt_status wt__vocoder_wide_attacks(const wt__vocoder_wide *v, wt_stream *stream, int64_t n_lines,
                                   const wt_vocoder_attacks_args *attacks)
{
    wt__wide w = v->wide; // the same work space, a pair an output frame
    w.pairs.pairs = attacks->n_out, w.pairs.n_frames = 2 * attacks->n_out;
    w.n_pairs = n_lines * attacks->n_out;
    wt_vocoder_rules_args args = {.attacks = *attacks, .bins = w.pairs.n_fft / 2 + 1};
    wt_status status = WT_OK;
    for (int64_t first = 0; first < w.n_pairs && !status; first += w.at_once) {
        args.pairs = wt__wide_tile(&w, first);
        status = wt__wide_launch(&w, v->attacks, stream, &args.pairs, args.pairs.n_fft, WT_ARG(args));
        if (!status) status = wt__fft64_cuda_run(&w.fft, stream, args.pairs.n_pairs);
        if (!status) status = wt__wide_launch(&w, v->rules, stream, &args.pairs, args.bins, WT_ARG(args));
    }
    return status;
}

// ---- locking

wt_status wt__lock_wide_create(wt_device *device, int n_fft, int n_lines, wt__lock_wide *l)
{
    const size_t bins = (size_t)n_fft / 2 + 1, peaks = bins / 3 + 2, lines = (size_t)n_lines,
                 pairs = 2 * sizeof(double) * lines, before = pairs * bins, turns = pairs * peaks,
                 powers = lines * bins * sizeof(float), each = lines * peaks * sizeof(int);
    *l = (wt__lock_wide){.args = {.bins = (int)bins, .most_peaks = (int)peaks}};
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, before + turns + powers + 2 * each, &l->work);
    if (status) return status;
    const uintptr_t begin = wt_buffer_address(l->work);
    l->args.before = (double *)begin;
    l->args.turns = (double *)(begin + before);
    l->args.powers = (float *)(begin + before + turns);
    l->args.peaks = (int *)(begin + before + turns + powers);
    l->args.begins = (int *)(begin + before + turns + powers + each);
    status = wt__op_module(device, "kernels/stretch/vocoder_wide.cu", NULL, 0, &l->module);
    return status ? status : wt_module_get_kernel(l->module, "vocoder_wide_lock", &l->kernel);
}

void wt__lock_wide_release(wt__lock_wide *l)
{
    wt_module_destroy(l->module);
    wt_buffer_destroy(l->work);
}

wt_status wt__lock_wide_enqueue(const wt__lock_wide *l, wt_stream *stream, int n_lines,
                                const wt_vocoder_lock_args *lock)
{
    wt_vocoder_wide_lock_args args = l->args;
    args.lock = *lock;
    const wt_launch launch = {.grid = {n_lines}, .block = {1024}};
    return wt_kernel_launch(l->kernel, stream, &launch, &WT_ARG(args), 1);
}
