// Frames in double, their cepstra and envelopes, and the way back in double, a group of signals at a time; the last
// group begins early enough to be as large as the others. Where one signal's frames do not fit, a tile of them after
// the other, from an even one on: pairs that are transformed together are the whole's. A tile has the frames again that
// reach into the samples it gives.

#include "formants_plan.h"
#include "formants_wide_kernel.h"
#include "spectrum_cuda.h"
#include "stretch_cuda.h"

#include <stdio.h>
#include <stdlib.h>

struct wt__formants_cuda {
    wt__formants_config config;
    wt__frames_cuda frames;
    wt_module *module, *transforms;
    wt_kernel *cepstra, *move, *back, *add;      // cepstra, back: NULL where no block holds a frame,
    wt_kernel *most, *fill, *give, *put, *leave; // and these do it
    wt_buffer *work;                             // spectra, cepstra, largest powers, knots
    size_t cepstra_offset, most_offset, knots_offset;
    bool knots_in_memory;
    wt_formants_args args;
    wt_launch cepstra_launch, move_launch; // without a grid; back: as cepstra
    int at_once, n_held, n_back;           // n_held: frames of a tile; those of them that the tile before has too
};

static wt_status load_fused(wt_device *device, wt__formants_cuda *c)
{
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", c->args.n_fft);
    wt_status status = wt__op_module(device, "kernels/stretch/formants.cu", options, 1, &c->transforms);
    if (!status) status = wt_module_get_kernel(c->transforms, "formants_cepstra", &c->cepstra);
    return status ? status : wt_module_get_kernel(c->transforms, "formants_back", &c->back);
}

static wt_status load_wide(wt_device *device, wt__formants_cuda *c)
{
    wt_status status = wt__op_module(device, "kernels/stretch/formants_wide.cu", NULL, 0, &c->transforms);
    if (!status) status = wt_module_get_kernel(c->transforms, "formants_wide_most", &c->most);
    if (!status) status = wt_module_get_kernel(c->transforms, "formants_wide_fill", &c->fill);
    if (!status) status = wt_module_get_kernel(c->transforms, "formants_wide_give", &c->give);
    if (!status) status = wt_module_get_kernel(c->transforms, "formants_wide_put", &c->put);
    return status ? status : wt_module_get_kernel(c->transforms, "formants_wide_leave", &c->leave);
}

static wt_status load(wt_device *device, wt__formants_cuda *c)
{
    const int n_fft = c->args.n_fft;
    double *window = malloc((size_t)n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: window of %d", n_fft);
    wt_status status = wt_window_fill_double(&(wt_window_config){.n = n_fft}, window);
    if (!status)
        status = wt__frames_cuda_create("pitch_shift", device, n_fft, window, c->at_once, c->n_held, &c->frames);
    free(window);
    if (!status) status = wt__op_module(device, "kernels/stretch/formants_move.cu", NULL, 0, &c->module);
    if (!status) status = c->frames.kernel ? load_fused(device, c) : load_wide(device, c);
    if (!status) status = wt_module_get_kernel(c->module, "formants_move", &c->move);
    return status ? status : wt_module_get_kernel(c->module, "formants_add", &c->add);
}

static void shape_launches(wt__formants_cuda *c)
{
    const size_t knots = c->knots_in_memory ? 0 : 3 * (size_t)wt__formants_room(c->args.n_fft) * sizeof(double);
    const int warps = 4 * knots > 64 << 10 ? 1 : 4;
    c->args.twiddles = c->frames.args.twiddles, c->args.window = c->frames.args.window;
    c->cepstra_launch = c->frames.launch;
    c->move_launch = (wt_launch){.block = {32 * warps}, .shared_bytes = (size_t)warps * knots};
}

// All frames, where they fit or none are wanted less; `bytes` a frame.
static void shape_tiles(wt_device *device, int64_t bytes, wt__formants_cuda *c)
{
    const int wanted = c->config.frames_at_once;
    int64_t most = wanted ? wanted : wt__frames_cuda_room(device) / bytes;
    c->n_back = (c->args.n_fft / c->args.hop + 1) / 2 * 2;
    if (most < 2 * c->n_back) most = 2 * c->n_back;
    c->n_held = most < c->args.n_frames ? (int)(most / 2 * 2) : c->args.n_frames;
}

static wt_status prepare(wt_device *device, wt__formants_cuda *c)
{
    const wt__formants_config *s = &c->config;
    const int n_fft = s->n_fft ? s->n_fft : 2048, hop = n_fft > 4 ? n_fft / 4 : 1;
    const int64_t n_frames = 1 + s->n_samples / hop, bins = n_fft / 2 + 1;
    if (n_frames > INT32_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %lld samples, want fewer on a GPU", (long long)s->n_samples);
    c->args = wt__formants_plan(s, n_fft, n_frames);
    const int64_t width = sizeof(double), knots = 3 * wt__formants_room(n_fft),
                  spectra = bins * 2 * (int64_t)sizeof(float), cepstra = width * (c->args.last - c->args.first + 3);
    c->knots_in_memory = (size_t)knots * sizeof(double) > wt_device_get_info(device)->shared_bytes;
    const int64_t all = spectra + cepstra + width + (c->knots_in_memory ? width * knots : 0);
    shape_tiles(device, all, c);
    c->at_once = wt__frames_cuda_group(device, s->n_signals, all * c->n_held);
    wt_status status = load(device, c);
    if (!status) shape_launches(c);
    c->frames.args.n_samples = s->n_samples, c->frames.args.hop = hop;
    const size_t rows = (size_t)c->at_once * (size_t)c->n_held;
    c->cepstra_offset = rows * (size_t)spectra;
    c->most_offset = c->cepstra_offset + rows * (size_t)cepstra;
    c->knots_offset = c->most_offset + rows * (size_t)width;
    return status ? status : wt_buffer_create(device, WT_MEMORY_DEVICE, rows * (size_t)all, &c->work);
}

wt_status wt__formants_cuda_create(wt_device *device, const wt__formants_config *config, wt__formants_cuda **formants)
{
    *formants = NULL;
    wt__formants_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: formants");
    c->config = *config;
    wt_status status = prepare(device, c);
    if (status)
        wt__formants_cuda_destroy(c);
    else
        *formants = c;
    return status;
}

void wt__formants_cuda_destroy(wt__formants_cuda *formants)
{
    if (!formants) return;
    wt__frames_cuda_release(&formants->frames);
    wt_module_destroy(formants->module);
    wt_module_destroy(formants->transforms);
    wt_buffer_destroy(formants->work);
    free(formants);
}

// Cepstra of a tile's frames, or their windowed samples, some pairs at a time.
static wt_status transform_wide(const wt__formants_cuda *c, wt_stream *stream, const wt_formants_args *formants,
                                bool back)
{
    wt__wide wide = c->frames.wide.wide;
    const wt__wide *w = &wide;
    wide.pairs.n_frames = formants->n_held, wide.pairs.pairs = (formants->n_held + 1) / 2;
    wide.n_pairs = c->at_once * wide.pairs.pairs;
    wt_formants_wide_args args = {.formants = *formants,
                                  .most = (double *)(wt_buffer_address(c->work) + c->most_offset),
                                  .bins = formants->n_fft / 2 + 1};
    const int n_fft = formants->n_fft, width = formants->last - formants->first + 3;
    wt_status status =
        back ? WT_OK : wt__fft64_cuda_each("pitch_shift", c->most, stream, WT_ARG(args), 32 * formants->n_rows);
    for (int64_t first = 0; first < w->n_pairs && !status; first += w->at_once) {
        args.pairs = wt__wide_tile(w, first);
        status =
            wt__wide_launch(w, back ? c->put : c->fill, stream, &args.pairs, back ? args.bins : n_fft, WT_ARG(args));
        if (!status) status = wt__fft64_cuda_run(&w->fft, stream, args.pairs.n_pairs);
        if (!status)
            status =
                wt__wide_launch(w, back ? c->leave : c->give, stream, &args.pairs, back ? n_fft : width, WT_ARG(args));
    }
    return status;
}

static wt_status transform(const wt__formants_cuda *c, wt_stream *stream, const wt_formants_args *args, bool back)
{
    wt_launch launch = c->cepstra_launch;
    if (!c->cepstra) return transform_wide(c, stream, args, back);
    wt_status status = wt__spectrum_cuda_grid("pitch_shift", c->at_once, (args->n_held + 1) / 2,
                                              wt__spectrum_sequences(args->n_fft), &launch.grid[0]);
    return status ? status : wt_kernel_launch(back ? c->back : c->cepstra, stream, &launch, &WT_ARG(*args), 1);
}

static wt_status move_envelopes(const wt__formants_cuda *c, wt_stream *stream, const wt_formants_args *args)
{
    wt_launch launch = c->move_launch;
    wt_status status = wt__spectrum_cuda_grid("pitch_shift", 1, args->n_rows, launch.block[0] / 32, &launch.grid[0]);
    return status ? status : wt_kernel_launch(c->move, stream, &launch, &WT_ARG(*args), 1);
}

static wt_status add_frames(const wt__formants_cuda *c, wt_stream *stream, const wt_formants_args *args)
{
    wt_launch launch = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("pitch_shift", 1, c->at_once * args->count, 256, &launch.grid[0]);
    return status ? status : wt_kernel_launch(c->add, stream, &launch, &WT_ARG(*args), 1);
}

// The tile that `args` names.
static wt_status move_tile(const wt__formants_cuda *c, wt_stream *stream, const float *pcm,
                           const wt_formants_args *args)
{
    wt_vocoder_frames_args frames = c->frames.args;
    frames.pcm = pcm, frames.out = args->spectra;
    frames.first = args->first_frame / 2, frames.n_frames = args->n_held;
    wt_status status = wt__frames_cuda_enqueue("pitch_shift", &c->frames, stream, c->at_once, args->n_fft, &frames);
    if (!status) status = transform(c, stream, args, false);
    if (!status) status = move_envelopes(c, stream, args);
    if (!status) status = transform(c, stream, args, true);
    return status || !args->count ? status : add_frames(c, stream, args);
}

static wt_status move_group(const wt__formants_cuda *c, wt_stream *stream, const float *pcm, float *out)
{
    wt_formants_args args = c->args;
    wt_status status = WT_OK;
    args.spectra = (float *)wt_buffer_address(c->work);
    args.cepstra = (double *)(wt_buffer_address(c->work) + c->cepstra_offset);
    args.knots = c->knots_in_memory ? (double *)(wt_buffer_address(c->work) + c->knots_offset) : NULL;
    args.out = out;
    for (int end = 0; end < args.n_frames && !status;) {
        args.first_frame = end ? end - c->n_back : 0;
        args.n_held = args.n_frames - args.first_frame < c->n_held ? args.n_frames - args.first_frame : c->n_held;
        args.n_rows = (long long)c->at_once * args.n_held;
        end = args.first_frame + args.n_held;
        const long long to = (long long)end * args.hop - args.n_fft / 2;
        args.count = (end == args.n_frames ? args.n_samples : to < args.from ? args.from : to) - args.from;
        status = move_tile(c, stream, pcm, &args);
        args.from += args.count;
    }
    return status;
}

wt_status wt__formants_cuda_enqueue(const wt__formants_cuda *c, wt_stream *stream, const float *pcm, wt_buffer *out)
{
    const wt__formants_config *s = &c->config;
    float *moved = (float *)wt_buffer_address(out);
    wt_status status = WT_OK;
    for (int done = 0; done < s->n_signals && !status; done += c->at_once) {
        const int64_t first = s->n_signals - done < c->at_once ? s->n_signals - c->at_once : done;
        status = move_group(c, stream, pcm + first * s->n_samples, moved + first * s->n_samples);
    }
    return status;
}
