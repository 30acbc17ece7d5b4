// Three kernels a group of signals: frames in double, the vocoder, and the short-time transform's way back; before them
// the attacks, with the bins that they rule. A group is as many signals as the work space has room for; the last one
// begins early enough to be as large as the others.
//
// Where one signal's spectra are more than that, a tile of frames after the other: what the vocoder keeps goes on, and
// the way back begins with the last frames of the tile before, so that the samples it gives have all their frames.
// Tiles begin at even frames: pairs that are transformed together are the whole's.

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
    wt_buffer *analysed, *made, *rules; // of a tile
    wt_buffer *kept, *samples;    // what goes on from tile to tile, and a tile's samples; NULL = there is one tile
    wt_stft_plan *inverse, *last; // of a tile, and of one that is shorter
    wt_launch lock_launch;
    int at_once, bins;      // at_once: signals of a group
    int64_t n_used;         // frames of the output that reach into its samples
    int64_t n_held, n_back; // frames of a tile; those of them that are the tile's before
};

// ---- kernels that need no transform

wt_status wt__vocoder_cuda_load(wt_device *device, wt__vocoder_cuda *v)
{
    wt_status status = wt__op_module(device, "kernels/stretch/vocoder.cu", NULL, 0, &v->module);
    if (!status) status = wt_module_get_kernel(v->module, "vocoder_follow", &v->follow);
    return status ? status : wt_module_get_kernel(v->module, "vocoder_cut", &v->cut);
}

wt_status wt__vocoder_cuda_follow(const wt__vocoder_cuda *v, wt_stream *stream, int64_t n_lines,
                                  const wt_vocoder_follow_args *args)
{
    wt_launch launch = {.block = {256}};
    wt_status status = wt__spectrum_cuda_grid("phase_vocoder", n_lines, args->bins, 256, &launch.grid[0]);
    return status ? status : wt_kernel_launch(v->follow, stream, &launch, &WT_ARG(*args), 1);
}

wt_status wt__vocoder_cuda_cut(const wt__vocoder_cuda *v, wt_stream *stream, int n_lines, float gain, int64_t n_in,
                               const float *in, int64_t n_out, float *out)
{
    const wt_vocoder_cut_args args = {.in = in, .out = out, .n_in = n_in, .n_out = n_out, .gain = gain};
    const wt_launch launch = {.grid = {(int)((n_out + 1023) / 1024), n_lines}, .block = {256}};
    return wt_kernel_launch(v->cut, stream, &launch, &WT_ARG(args), 1);
}

// ---- tiles

static int64_t smallest(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct tile {
    int64_t first, count; // frames of the output that are made
    int64_t back;         // frames before them that are there
    int64_t in, n_in;     // frames of the input, librosa's mode; else two a frame
} tile;

static bool is_locked(const wt__stretch_cuda *c) { return c->shape.mode != WT_STRETCH_LIBROSA; }

// The tile that makes frames `first` and on. Librosa's mode reads frames in pairs.
static tile tile_from(const wt__stretch_cuda *c, int64_t first)
{
    const wt__stretch_shape *s = &c->shape;
    tile t = {.first = first, .back = first ? c->n_back : 0};
    t.count = smallest(c->n_used - first, c->n_held - t.back);
    t.n_in = 2 * t.count;
    if (is_locked(c)) return t;
    t.in = (int64_t)((double)first * s->rate) / 2 * 2;
    const int64_t last = ((int64_t)((double)(first + t.count - 1) * s->rate) + 1) | 1;
    t.n_in = t.in < s->n_frames ? smallest(last + 1, s->n_frames) - t.in : 0;
    return t;
}

// Samples before this one are finished by it.
static int64_t finished_by(const wt__stretch_cuda *c, const tile *t)
{
    const wt__stretch_shape *s = &c->shape;
    if (t->first + t->count == c->n_used) return s->n_out;
    return smallest((t->first + t->count) * s->hop - s->n_fft / 2, s->n_out);
}

static bool is_one_tile(const wt__stretch_cuda *c) { return c->n_held == c->n_used; }

// Bytes of work that a frame of the output takes.
static int64_t frame_bytes(const wt__stretch_cuda *c)
{
    const wt__stretch_shape *s = &c->shape;
    const double inputs = is_locked(c) ? 2 : s->rate < 1 ? 1 : s->rate;
    const bool attacks = s->mode == WT_STRETCH_TRANSIENT;
    return (int64_t)((inputs + 1) * 8 * c->bins) + (attacks ? c->bins : 0) + (int64_t)sizeof(float) * s->hop;
}

// All frames, where they fit or none are wanted less; else no fewer than the way back must have.
static void shape_tiles(wt_device *device, wt__stretch_cuda *c)
{
    const wt__stretch_shape *s = &c->shape;
    const int64_t needed = (s->n_out + 2 * (s->n_fft / 2) + s->hop - 1) / s->hop;
    c->n_used = smallest(s->n_made, needed);
    c->n_back = ((s->n_fft + s->hop - 1) / s->hop + 1) / 2 * 2;
    int64_t most = s->frames_at_once ? s->frames_at_once : wt__frames_cuda_room(device) / frame_bytes(c);
    if (most < 2 * c->n_back) most = 2 * c->n_back;
    c->n_held = most < c->n_used ? most / 2 * 2 : c->n_used;
}

// ---- creating

static wt_status load(wt_device *device, const wt__stretch_shape *s, int64_t n_frames, wt__stretch_cuda *c)
{
    c->lock_launch = (wt_launch){.grid = {c->at_once},
                                 .block = {wt__vocoder_threads(s->n_fft)},
                                 .shared_bytes = (size_t)wt__vocoder_lock_bytes(s->n_fft)};
    const bool held = c->lock_launch.shared_bytes <= wt_device_get_info(device)->shared_bytes;
    wt_status status = wt__frames_cuda_create("stretch", device, s->n_fft, s->window, c->at_once, n_frames, &c->frames);
    wt_module *fused = c->frames.module;
    if (!status && fused && held) status = wt_module_get_kernel(fused, "vocoder_lock", &c->lock);
    if (!status && fused) status = wt_module_get_kernel(fused, "vocoder_attacks", &c->attacks);
    if (!status && !c->lock && is_locked(c)) status = wt__lock_wide_create(device, s->n_fft, c->at_once, &c->lock_wide);
    return status ? status : wt__vocoder_cuda_load(device, &c->vocoder);
}

// The way back of `count` frames to `length` samples.
static wt_status make_inverse(wt_device *device, const wt__stretch_cuda *c, int64_t count, int64_t length,
                              wt_stft_plan **plan)
{
    const wt__stretch_shape *s = &c->shape;
    const wt_stft_plan_config back = {
        .stft = {.n_fft = s->n_fft, .hop = s->hop}, .n_signals = c->at_once, .n_frames = count, .length = length};
    return wt_stft_plan_create(device, &back, plan);
}

// The sizes of the plans that tiles go back by.
static wt_status prepare_tiles(wt_device *device, wt__stretch_cuda *c)
{
    const wt__stretch_shape *s = &c->shape;
    const size_t lines = (size_t)c->at_once;
    const int64_t length = c->n_held * s->hop - s->n_fft / 2;
    wt_status status = make_inverse(device, c, c->n_held, length, &c->inverse);
    int64_t most = length;
    for (int64_t done = 0, first = 0; done < s->n_out && !status;) {
        const tile t = tile_from(c, first);
        const int64_t begin = t.first - t.back, rest = s->n_out - begin * s->hop;
        done = finished_by(c, &t), first += t.count;
        if (t.back + t.count == c->n_held && done < s->n_out) continue;
        if (rest > most) most = rest;
        status = make_inverse(device, c, t.back + t.count, rest, &c->last);
    }
    if (!status)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, lines * (size_t)c->bins * 2 * sizeof(double), &c->kept);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, lines * (size_t)most * sizeof(float), &c->samples);
    return status;
}

static wt_status take_work(wt_device *device, int64_t n_frames, wt__stretch_cuda *c)
{
    const size_t row = (size_t)c->at_once * (size_t)c->bins * 2 * sizeof(float);
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, row * (size_t)n_frames, &c->analysed);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, row * (size_t)c->n_held, &c->made);
    if (status) return status;
    return is_one_tile(c) ? make_inverse(device, c, c->n_used, c->shape.n_out, &c->inverse) : prepare_tiles(device, c);
}

static wt_status prepare_attacks(wt_device *device, const wt__stretch_shape *s, wt__stretch_cuda *c)
{
    const size_t bytes = (size_t)c->at_once * (size_t)c->n_held * (size_t)c->bins;
    wt_status status = wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &c->rules);
    if (!status) status = wt__transients_cuda_create(device, s, c->at_once, s->n_made, &c->transients);
    c->frames.args.places = c->transients.args.places, c->frames.args.n_places = s->n_made;
    return status;
}

static wt_status prepare(wt_device *device, wt__stretch_cuda *c)
{
    const wt__stretch_shape *s = &c->shape;
    if (!s->n_out) return WT_OK;
    c->bins = s->n_fft / 2 + 1;
    shape_tiles(device, c);
    const double inputs = is_locked(c) ? 2.0 * (double)c->n_held : s->rate * (double)c->n_held + 6;
    if (s->n_frames > INT_MAX / 2 || s->n_made > INT_MAX / 2 || inputs > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "stretch: %lld samples to %lld, want fewer on a GPU", (long long)s->n_samples,
                       (long long)s->n_out);
    const int64_t n_frames = is_locked(c) ? 2 * c->n_held : smallest((int64_t)inputs, s->n_frames);
    c->at_once = wt__frames_cuda_group(device, s->n_signals, c->n_held * frame_bytes(c));
    wt_status status = load(device, s, n_frames, c);
    c->frames.args.n_samples = s->n_samples, c->frames.args.hop = s->hop;
    c->frames.args.rate = is_locked(c) ? s->rate : 0;
    if (!status && s->mode == WT_STRETCH_TRANSIENT) status = prepare_attacks(device, s, c);
    return status ? status : take_work(device, n_frames, c);
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
    wt_stft_plan_destroy(cuda->last);
    wt__frames_cuda_release(&cuda->frames);
    wt__lock_wide_release(&cuda->lock_wide);
    wt_module_destroy(cuda->vocoder.module);
    wt__transients_cuda_release(&cuda->transients);
    wt_buffer_destroy(cuda->rules);
    wt_buffer_destroy(cuda->analysed);
    wt_buffer_destroy(cuda->made);
    wt_buffer_destroy(cuda->kept);
    wt_buffer_destroy(cuda->samples);
    free(cuda);
}

// ---- running

// The bins that attacks rule which a tile's frames go with.
static wt_status rule(const wt__stretch_cuda *c, wt_stream *stream, const wt_vocoder_frames_args *frames, int count)
{
    wt_vocoder_attacks_args args = {.frames = *frames,
                                    .at = c->transients.args.at,
                                    .rules = (unsigned char *)wt_buffer_address(c->rules),
                                    .most = c->transients.args.most,
                                    .n_out = count,
                                    .blocks = (count + WT_VOCODER_SEARCHED - 1) / WT_VOCODER_SEARCHED};
    wt_launch launch = c->frames.launch;
    if (!c->attacks) return wt__vocoder_wide_attacks(&c->frames.wide, stream, c->at_once, &args);
    wt_status status = wt__spectrum_cuda_grid("stretch", c->at_once, args.blocks, 1, &launch.grid[0]);
    return status ? status : wt_kernel_launch(c->attacks, stream, &launch, &WT_ARG(args), 1);
}

static wt_status lock_frames(const wt__stretch_cuda *c, wt_stream *stream, const tile *t, float *out)
{
    const wt_vocoder_lock_args lock = {.in = (const float *)wt_buffer_address(c->analysed),
                                       .out = out,
                                       .before = c->kept ? (double *)wt_buffer_address(c->kept) : NULL,
                                       .places = c->frames.args.places,
                                       .rules = c->rules ? (unsigned char *)wt_buffer_address(c->rules) : NULL,
                                       .n_places = c->frames.args.n_places,
                                       .first = t->first,
                                       .n_out = (int)t->count,
                                       .pitch = (int)(t->back + t->count)};
    if (!c->lock) return wt__lock_wide_enqueue(&c->lock_wide, stream, c->at_once, &lock);
    return wt_kernel_launch(c->lock, stream, &c->lock_launch, &WT_ARG(lock), 1);
}

static wt_status follow_frames(const wt__stretch_cuda *c, wt_stream *stream, const tile *t, float *out)
{
    const wt_vocoder_follow_args args = {.in = (const float *)wt_buffer_address(c->analysed),
                                         .out = out,
                                         .phases = c->kept ? (double *)wt_buffer_address(c->kept) : NULL,
                                         .rate = c->shape.rate,
                                         .first = t->first,
                                         .first_in = t->in,
                                         .bins = c->bins,
                                         .n_frames = (int)c->shape.n_frames,
                                         .n_held = (int)t->n_in,
                                         .n_out = (int)t->count,
                                         .pitch = (int)(t->back + t->count)};
    return wt__vocoder_cuda_follow(&c->vocoder, stream, c->at_once, &args);
}

// The frames of a tile, behind the last ones of the tile before.
static wt_status make_frames(const wt__stretch_cuda *c, wt_stream *stream, const float *pcm, const tile *t)
{
    wt_vocoder_frames_args args = c->frames.args;
    args.pcm = pcm, args.out = (float *)wt_buffer_address(c->analysed);
    args.first = is_locked(c) ? t->first : t->in / 2, args.n_frames = (int)t->n_in;
    wt_status status = c->rules ? rule(c, stream, &args, (int)t->count) : WT_OK;
    if (!status && t->n_in)
        status = wt__frames_cuda_enqueue("stretch", &c->frames, stream, c->at_once, c->shape.n_fft, &args);
    float *out = (float *)wt_buffer_address(c->made) + t->back * c->bins * 2;
    if (status) return status;
    return is_locked(c) ? lock_frames(c, stream, t, out) : follow_frames(c, stream, t, out);
}

// The last frames of the tile before, of all lines, to where this one's lie.
static wt_status keep_back(const wt__stretch_cuda *c, wt_stream *stream, const tile *t)
{
    const size_t row = (size_t)c->bins * 2 * sizeof(float);
    wt_status status = WT_OK;
    for (int64_t line = 0; line < c->at_once && t->back && !status; line++)
        status = wt_stream_copy(stream, c->made, (size_t)(line * (t->back + t->count)) * row, c->made,
                                (size_t)((line + 1) * c->n_held - t->back) * row, (size_t)t->back * row);
    return status;
}

// The samples from `done` to `end` of all lines that a tile finishes.
static wt_status give_samples(const wt__stretch_cuda *c, wt_stream *stream, const tile *t, int64_t done, int64_t end,
                              wt_buffer *out, size_t out_offset)
{
    const wt__stretch_shape *s = &c->shape;
    const int64_t begin = (t->first - t->back) * s->hop;
    const bool whole = t->back + t->count == c->n_held && end < s->n_out;
    const int64_t length = whole ? c->n_held * s->hop - s->n_fft / 2 : s->n_out - begin;
    wt_status status = wt_stft_plan_inverse(whole ? c->inverse : c->last, stream, c->made, 0, c->samples, 0);
    for (int64_t line = 0; line < c->at_once && !status; line++)
        status = wt_stream_copy(stream, out, out_offset + (size_t)(line * s->n_out + done) * sizeof(float), c->samples,
                                (size_t)(line * length + done - begin) * sizeof(float),
                                (size_t)(end - done) * sizeof(float));
    return status;
}

static wt_status stretch_group(const wt__stretch_cuda *c, wt_stream *stream, const float *pcm, wt_buffer *out,
                               size_t out_offset)
{
    const wt__stretch_shape *s = &c->shape;
    wt_status status = c->rules ? wt__transients_cuda_enqueue(&c->transients, stream, pcm) : WT_OK;
    if (is_one_tile(c)) {
        const tile t = tile_from(c, 0);
        if (!status) status = make_frames(c, stream, pcm, &t);
        return status ? status : wt_stft_plan_inverse(c->inverse, stream, c->made, 0, out, out_offset);
    }
    for (int64_t done = 0, first = 0; done < s->n_out && !status;) {
        const tile t = tile_from(c, first);
        const int64_t end = finished_by(c, &t);
        status = keep_back(c, stream, &t);
        if (!status) status = make_frames(c, stream, pcm, &t);
        if (!status) status = give_samples(c, stream, &t, done, end, out, out_offset);
        done = end, first += t.count;
    }
    return status;
}

wt_status wt__stretch_cuda_enqueue(const wt__stretch_cuda *cuda, wt_stream *stream, const float *pcm, wt_buffer *out,
                                   size_t out_offset)
{
    const wt__stretch_shape *s = &cuda->shape;
    wt_status status = WT_OK;
    for (int done = 0; done < s->n_signals && s->n_out && !status; done += cuda->at_once) {
        const int first = s->n_signals - done < cuda->at_once ? s->n_signals - cuda->at_once : done;
        status = stretch_group(cuda, stream, pcm + first * s->n_samples, out,
                               out_offset + (size_t)(first * s->n_out) * sizeof(float));
    }
    return status;
}
