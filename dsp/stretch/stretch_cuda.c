// Three kernels a group of signals: frames in double, the vocoder, and the short-time transform's way back; before them
// the attacks, with the bins that each rules. A group is as many signals as the work space has room for; the last one
// begins early enough to be as large as the others.

#include "stretch_cuda.h"
#include "spectrum_cuda.h"
#include "stretch_transients.h"
#include "transients_cuda.h"

#include <limits.h>
#include <stdlib.h>

struct wt__stretch_cuda {
    wt__stretch_shape shape;
    wt__vocoder_cuda vocoder;
    wt__transients_cuda transients; // with care for attacks
    wt__frames_cuda frames;
    wt_kernel *lock, *attacks; // NULL where kernels/stretch/vocoder_wide.cu does it
    wt__lock_wide lock_wide;
    wt_buffer *analysed, *made, *rules;
    wt_stft_plan *inverse;
    wt_launch lock_launch;
    int at_once, bins, n_frames; // of a signal, analysed
    int64_t most_attacks;        // of a signal; 0 = no care for them
};

// ---- kernels that need no transform

wt_status wt__vocoder_cuda_load(wt_device *device, wt__vocoder_cuda *v)
{
    wt_status status = wt__op_module(device, "kernels/stretch/vocoder.cu", NULL, 0, &v->module);
    if (!status) status = wt_module_get_kernel(v->module, "vocoder_follow", &v->follow);
    return status ? status : wt_module_get_kernel(v->module, "vocoder_cut", &v->cut);
}

wt_status wt__vocoder_cuda_follow(const wt__vocoder_cuda *v, wt_stream *stream, int64_t n_lines, int bins, double rate,
                                  int64_t n_frames, const float *in, int64_t n_out, float *out)
{
    if (n_frames > INT_MAX / 2 || n_out > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "phase_vocoder: %lld frames to %lld, want %d at most", (long long)n_frames,
                       (long long)n_out, INT_MAX / 2);
    const wt_vocoder_follow_args args = {
        .in = in, .out = out, .rate = rate, .bins = bins, .n_frames = (int)n_frames, .n_out = (int)n_out};
    wt_launch launch = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("phase_vocoder", n_lines, bins, 256, &launch.grid[0]);
    return status ? status : wt_kernel_launch(v->follow, stream, &launch, &WT_ARG(args), 1);
}

wt_status wt__vocoder_cuda_cut(const wt__vocoder_cuda *v, wt_stream *stream, int n_lines, float gain, int64_t n_in,
                               const float *in, int64_t n_out, float *out)
{
    const wt_vocoder_cut_args args = {.in = in, .out = out, .n_in = n_in, .n_out = n_out, .gain = gain};
    const wt_launch launch = {.grid = {(int)((n_out + 1023) / 1024), n_lines}, .block = {256}};
    return wt_kernel_launch(v->cut, stream, &launch, &WT_ARG(args), 1);
}

// ---- creating

static wt_status load(wt_device *device, const wt__stretch_shape *s, wt__stretch_cuda *c)
{
    c->lock_launch = (wt_launch){.grid = {c->at_once},
                                 .block = {wt__vocoder_threads(s->n_fft)},
                                 .shared_bytes = (size_t)wt__vocoder_lock_bytes(s->n_fft)};
    const bool held = c->lock_launch.shared_bytes <= wt_device_get_info(device)->shared_bytes;
    wt_status status =
        wt__frames_cuda_create("stretch", device, s->n_fft, s->window, c->at_once, c->n_frames, &c->frames);
    wt_module *fused = c->frames.module;
    if (!status && fused && held) status = wt_module_get_kernel(fused, "vocoder_lock", &c->lock);
    if (!status && fused) status = wt_module_get_kernel(fused, "vocoder_attacks", &c->attacks);
    if (!status && !c->lock && s->mode != WT_STRETCH_LIBROSA)
        status = wt__lock_wide_create(device, s->n_fft, c->at_once, &c->lock_wide);
    return status ? status : wt__vocoder_cuda_load(device, &c->vocoder);
}

static wt_status take_work(wt_device *device, const wt__stretch_shape *s, wt__stretch_cuda *c)
{
    const size_t row = (size_t)c->at_once * (size_t)c->bins * 2 * sizeof(float);
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, row * (size_t)c->n_frames, &c->analysed);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, row * (size_t)s->n_made, &c->made);
    if (status) return status;
    const wt_stft_plan_config back = {
        .stft = {.n_fft = s->n_fft, .hop = s->hop}, .n_signals = c->at_once, .n_frames = s->n_made, .length = s->n_out};
    return wt_stft_plan_create(device, &back, &c->inverse);
}

static wt_status prepare_attacks(wt_device *device, const wt__stretch_shape *s, wt__stretch_cuda *c)
{
    const size_t bytes = (size_t)c->at_once * (size_t)c->most_attacks * (size_t)c->bins;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->rules);
    if (!status) status = wt__transients_cuda_create(device, s, c->at_once, s->n_made, &c->transients);
    c->frames.args.places = c->transients.args.places;
    return status;
}

static wt_status prepare(wt_device *device, wt__stretch_cuda *c)
{
    const wt__stretch_shape *s = &c->shape;
    const bool locked = s->mode != WT_STRETCH_LIBROSA;
    const int64_t n_frames = locked ? 2 * s->n_made : s->n_frames;
    if (!s->n_out) return WT_OK;
    if (n_frames > INT_MAX / 2 || s->n_made > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: %lld samples to %lld, want fewer on a GPU", (long long)s->n_samples,
                       (long long)s->n_out);
    c->bins = s->n_fft / 2 + 1;
    c->n_frames = (int)n_frames;
    if (s->mode == WT_STRETCH_TRANSIENT) c->most_attacks = wt__transients_most(s->n_samples, s->n_fft);
    c->at_once = wt__frames_cuda_group(device, s->n_signals,
                                       (n_frames + s->n_made) * c->bins * 2 * (int64_t)sizeof(float) +
                                           c->most_attacks * c->bins);
    wt_status status = load(device, s, c);
    c->frames.args.n_samples = s->n_samples, c->frames.args.n_frames = c->n_frames, c->frames.args.hop = s->hop;
    c->frames.args.rate = locked ? s->rate : 0;
    if (!status && c->most_attacks) status = prepare_attacks(device, s, c);
    return status ? status : take_work(device, s, c);
}

wt_status wt__stretch_cuda_create(wt_device *device, const wt__stretch_shape *shape, wt__stretch_cuda **cuda)
{
    *cuda = NULL;
    wt__stretch_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "stretch: CUDA plan");
    c->shape = *shape;
    wt_status status = prepare(device, c);
    c->shape.window = NULL; // uploaded
    if (status)
        wt__stretch_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__stretch_cuda_destroy(wt__stretch_cuda *cuda)
{
    if (!cuda) return;
    wt_stft_plan_destroy(cuda->inverse);
    wt__frames_cuda_release(&cuda->frames);
    wt__lock_wide_release(&cuda->lock_wide);
    wt_module_destroy(cuda->vocoder.module);
    wt__transients_cuda_release(&cuda->transients);
    wt_buffer_destroy(cuda->rules);
    wt_buffer_destroy(cuda->analysed);
    wt_buffer_destroy(cuda->made);
    free(cuda);
}

// ---- running

// The attacks of a group's signals, where its frames come from, the bins that begin anew.
static wt_status find_attacks(const wt__stretch_cuda *c, wt_stream *stream, const float *pcm)
{
    enum { BLOCKS = 16 }; // of a line, each with every sixteenth of its attacks
    wt_status status = wt__transients_cuda_enqueue(&c->transients, stream, pcm);
    if (status) return status;
    wt_vocoder_attacks_args args = {.frames = c->frames.args,
                                    .at = c->transients.args.at,
                                    .counts = c->transients.args.counts,
                                    .rules = (unsigned char *)wt_buffer_address(c->rules),
                                    .most = c->most_attacks,
                                    .blocks = BLOCKS};
    wt_launch launch = c->frames.launch;
    args.frames.pcm = pcm;
    if (!c->attacks) return wt__vocoder_wide_attacks(&c->frames.wide, stream, c->at_once, &args);
    status = wt__spectrum_cuda_grid("stretch", c->at_once, BLOCKS, 1, &launch.grid[0]);
    return status ? status : wt_kernel_launch(c->attacks, stream, &launch, &WT_ARG(args), 1);
}

static wt_status stretch_group(const wt__stretch_cuda *c, wt_stream *stream, const float *pcm)
{
    const wt__stretch_shape *s = &c->shape;
    float *analysed = (float *)wt_buffer_address(c->analysed), *made = (float *)wt_buffer_address(c->made);
    wt_status status = c->most_attacks ? find_attacks(c, stream, pcm) : WT_OK;
    if (!status) status = wt__frames_cuda_enqueue("stretch", &c->frames, stream, c->at_once, s->n_fft, pcm, analysed);
    if (status) return status;
    if (s->mode == WT_STRETCH_LIBROSA)
        return wt__vocoder_cuda_follow(&c->vocoder, stream, c->at_once, c->bins, s->rate, s->n_frames, analysed,
                                       s->n_made, made);
    const wt_vocoder_lock_args lock = {.in = analysed,
                                       .out = made,
                                       .places = c->frames.args.places,
                                       .rules = c->most_attacks ? (unsigned char *)wt_buffer_address(c->rules) : NULL,
                                       .most = c->most_attacks,
                                       .n_out = (int)s->n_made};
    if (!c->lock) return wt__lock_wide_enqueue(&c->lock_wide, stream, c->at_once, &lock);
    return wt_kernel_launch(c->lock, stream, &c->lock_launch, &WT_ARG(lock), 1);
}

wt_status wt__stretch_cuda_enqueue(const wt__stretch_cuda *cuda, wt_stream *stream, const float *pcm, wt_buffer *out,
                                   size_t out_offset)
{
    const wt__stretch_shape *s = &cuda->shape;
    wt_status status = WT_OK;
    for (int done = 0; done < s->n_signals && s->n_out && !status; done += cuda->at_once) {
        const int first = s->n_signals - done < cuda->at_once ? s->n_signals - cuda->at_once : done;
        status = stretch_group(cuda, stream, pcm + first * s->n_samples);
        if (!status)
            status = wt_stft_plan_inverse(cuda->inverse, stream, cuda->made, 0, out,
                                          out_offset + (size_t)(first * s->n_out) * sizeof(float));
    }
    return status;
}
