// Frames in double, their cepstra and envelopes, and the way back in double, a group of signals at a time; the last
// group begins early enough to be as large as the others.

#include "formants_plan.h"
#include "spectrum_cuda.h"
#include "stretch_cuda.h"

#include <stdio.h>
#include <stdlib.h>

struct wt__formants_cuda {
    wt__formants_config config;
    wt__frames_cuda frames;
    wt_module *module;
    wt_kernel *cepstra, *move, *back, *add;
    wt_buffer *work; // spectra, then cepstra
    size_t cepstra_offset;
    wt_formants_args args;
    wt_launch cepstra_launch, move_launch, add_launch; // back: as cepstra
    int at_once;
};

static wt_status load(wt_device *device, wt__formants_cuda *c)
{
    const int n_fft = c->args.n_fft;
    double *window = malloc((size_t)n_fft * sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "pitch_shift: window of %d", n_fft);
    wt_status status = wt_window_fill_double(&(wt_window_config){.n = n_fft}, window);
    if (!status) status = wt__frames_cuda_create("pitch_shift", device, n_fft, window, &c->frames);
    free(window);
    char options[1][48];
    snprintf(options[0], sizeof options[0], "-DSPECTRUM_N=%d", n_fft);
    if (!status) status = wt__op_module(device, "kernels/formants.cu", options, 1, &c->module);
    if (!status) status = wt_module_get_kernel(c->module, "formants_cepstra", &c->cepstra);
    if (!status) status = wt_module_get_kernel(c->module, "formants_move", &c->move);
    if (!status) status = wt_module_get_kernel(c->module, "formants_back", &c->back);
    return status ? status : wt_module_get_kernel(c->module, "formants_add", &c->add);
}

static wt_status shape_launches(wt__formants_cuda *c)
{
    const int n_fft = c->args.n_fft, sequences = wt__spectrum_sequences(n_fft);
    const size_t knots = 3 * (size_t)wt__formants_room(n_fft) * sizeof(double);
    const int warps = 4 * knots > 64 << 10 ? 1 : 4;
    c->args.twiddles = c->frames.args.twiddles, c->args.window = c->frames.args.window;
    c->args.n_rows = (long long)c->at_once * c->args.n_frames;
    c->cepstra_launch = c->frames.launch;
    c->move_launch = (wt_launch){.block = {32 * warps}, .shared_bytes = (size_t)warps * knots};
    wt_status status = wt__spectrum_cuda_grid("pitch_shift", c->at_once, (c->args.n_frames + 1) / 2, sequences,
                                              &c->cepstra_launch.grid[0]);
    if (!status) status = wt__spectrum_cuda_grid("pitch_shift", 1, c->args.n_rows, warps, &c->move_launch.grid[0]);
    c->add_launch = (wt_launch){.block = {256}};
    return status
               ? status
               : wt__spectrum_cuda_grid("pitch_shift", 1, c->at_once * c->args.n_samples, 256, &c->add_launch.grid[0]);
}

static wt_status prepare(wt_device *device, wt__formants_cuda *c)
{
    const wt__formants_config *s = &c->config;
    const int n_fft = s->n_fft ? s->n_fft : 2048, hop = n_fft > 4 ? n_fft / 4 : 1;
    const int64_t n_frames = 1 + s->n_samples / hop, bins = n_fft / 2 + 1;
    if (n_frames > INT32_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "pitch_shift: %lld samples, want fewer on a GPU", (long long)s->n_samples);
    c->args = wt__formants_plan(s, n_fft, n_frames);
    const int64_t spectra = n_frames * bins * 2 * (int64_t)sizeof(float),
                  cepstra = n_frames * (c->args.last - c->args.first + 3) * (int64_t)sizeof(double);
    c->at_once = wt__frames_cuda_group(device, s->n_signals, spectra + cepstra);
    wt_status status = load(device, c);
    if (!status) status = shape_launches(c);
    c->frames.args.n_samples = s->n_samples, c->frames.args.n_frames = (int)n_frames, c->frames.args.hop = hop;
    c->cepstra_offset = (size_t)c->at_once * (size_t)spectra;
    return status
               ? status
               : wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)c->at_once * (size_t)(spectra + cepstra), &c->work);
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
    wt_buffer_destroy(formants->work);
    free(formants);
}

static wt_status move_group(const wt__formants_cuda *c, wt_stream *stream, const float *pcm, float *out)
{
    wt_formants_args args = c->args;
    args.spectra = (float *)wt_buffer_address(c->work);
    args.cepstra = (double *)(wt_buffer_address(c->work) + c->cepstra_offset);
    args.out = out;
    wt_status status =
        wt__frames_cuda_enqueue("pitch_shift", &c->frames, stream, c->at_once, args.n_fft, pcm, args.spectra);
    if (!status) status = wt_kernel_launch(c->cepstra, stream, &c->cepstra_launch, &WT_ARG(args), 1);
    if (!status) status = wt_kernel_launch(c->move, stream, &c->move_launch, &WT_ARG(args), 1);
    if (!status) status = wt_kernel_launch(c->back, stream, &c->cepstra_launch, &WT_ARG(args), 1);
    return status ? status : wt_kernel_launch(c->add, stream, &c->add_launch, &WT_ARG(args), 1);
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
