// Batches of signals. On the CPU each thread has a transform of its own and takes some frames at a time, or an equal
// part of all lines on the way back, of which few are parted; on a GPU one kernel does each way
// (kernels/spectral/spectrum.cu), or, of lengths that no block holds and of precise ones, stft_wide.c.

#include "spectrum_cuda.h"
#include "stft_wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <warptone/simd.h>

enum { AT_ONCE = 32 }; // frames that a thread takes

struct wt_stft_plan {
    wt_stft_plan_config config; // defaults resolved
    wt_device *device;
    int64_t n_lines, n_frames, length;
    int bins, n_slots, tile; // tile: frames transformed at once
    wt_stft **slots;
    float **rows; // [n_slots] re, im of a tile of frames
    wt__op_share share;
    wt__spectrum_cuda spectrum;
    wt_kernel *forward, *inverse;
    wt_spectrum_walk walk;
    wt_launch inverse_launch;
    wt_buffer *squares;  // [hop]
    wt__stft_wide *wide; // NULL where kernels/spectral/spectrum.cu does it
};

// ---- creating

static wt_status resolve(wt_stft_plan *p)
{
    wt_stft_plan_config *c = &p->config;
    const wt_stft *stft = p->slots[0];
    if (!c->n_signals) c->n_signals = 1;
    if (c->n_signals < 1) return wt_fail(WT_ERR_BAD_ARG, "stft: %d signals, want 1 or more", c->n_signals);
    if (c->n_samples < 0 || c->length < 0 || c->n_frames < 0 || (!c->n_samples && !c->n_frames))
        return wt_fail(WT_ERR_BAD_ARG,
                       "stft: %lld samples, length %lld, %lld frames, want samples or frames, none below 0",
                       (long long)c->n_samples, (long long)c->length, (long long)c->n_frames);
    if ((unsigned)c->output > WT_STFT_PHASE)
        return wt_fail(WT_ERR_BAD_ARG, "stft: output %d, want 0..%d", (int)c->output, WT_STFT_PHASE);
    p->bins = wt_stft_bins(stft);
    p->tile = c->stft.precise ? WT__FFT64_FRAMES : 1;
    p->n_frames = c->n_frames ? c->n_frames : wt_stft_frames(stft, c->n_samples);
    if (p->n_frames < 1 || p->n_frames > INT32_MAX / 2)
        return wt_fail(p->n_frames < 1 ? WT_ERR_LENGTH : WT_ERR_BAD_ARG,
                       "stft: %lld frames of %lld samples, want 1..%d (n_fft %d)", (long long)p->n_frames,
                       (long long)c->n_samples, INT32_MAX / 2, wt__stft_config(stft)->n_fft);
    p->length = c->length ? c->length : wt_stft_samples(stft, p->n_frames);
    p->n_lines = (int64_t)c->n_signals * wt__stft_config(stft)->channels;
    return WT_OK;
}

static wt_status make_slots(wt_stft_plan *p)
{
    wt_status status = WT_OK;
    for (int i = 0; i < p->n_slots && !status; i++) {
        if (!p->slots[i]) status = wt_stft_create(&p->config.stft, &p->slots[i]);
        p->rows[i] = aligned_alloc(64, 2 * (size_t)p->tile * wt__fft_padded((size_t)p->bins) * sizeof(float));
        if (!status && !p->rows[i]) status = wt_fail(WT_ERR_NO_MEMORY, "stft: %d bins", p->bins);
    }
    return status;
}

// Reciprocals of what the squared windows of all frames that touch a sample add up to.
static wt_status upload_squares(wt_stft_plan *p)
{
    const wt_stft_config *c = wt__stft_config(p->slots[0]);
    const float *window = wt__stft_window(p->slots[0]);
    float *fix = malloc((size_t)c->hop * sizeof *fix);
    if (!fix) return wt_fail(WT_ERR_NO_MEMORY, "stft: hop %d", c->hop);
    for (int i = 0; i < c->hop; i++) {
        float sum = 0;
        for (int at = i; at < c->n_fft; at += c->hop) sum += window[at] * window[at];
        fix[i] = sum > FLT_MIN ? 1 / sum : 1;
    }
    wt_status status = wt__op_upload(p->device, fix, (size_t)c->hop * sizeof *fix, &p->squares);
    free(fix);
    return status;
}

static wt_status make_cuda(wt_stft_plan *p)
{
    wt_status status = wt__spectrum_cuda_create("stft", p->device, p->slots[0], &p->spectrum);
    if (!status)
        status = wt__spectrum_cuda_walk("stft", p->device, &p->spectrum, p->n_lines, p->length, &p->walk,
                                        &p->inverse_launch);
    if (!status) status = upload_squares(p);
    if (!status) status = wt_module_get_kernel(p->spectrum.module, "spectrum_stft", &p->forward);
    if (!status) status = wt_module_get_kernel(p->spectrum.module, "spectrum_istft", &p->inverse);
    return status;
}

wt_status wt_stft_plan_create(wt_device *device, const wt_stft_plan_config *config, wt_stft_plan **plan)
{
    *plan = NULL;
    if (!device) return wt_fail(WT_ERR_BAD_ARG, "stft: a plan without a device");
    wt_stft_plan *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "stft: plan");
    p->config = *config;
    p->device = device;
    p->n_slots = wt__op_slots(device, INT64_MAX);
    p->slots = calloc((size_t)p->n_slots, sizeof *p->slots);
    p->rows = calloc((size_t)p->n_slots, sizeof *p->rows);
    wt_status status = p->slots && p->rows ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "stft: %d threads", p->n_slots);
    if (!status) status = wt_stft_create(&config->stft, &p->slots[0]);
    if (!status) status = resolve(p);
    if (!status) status = make_slots(p);
    if (!status && wt__op_on_gpu(device)) status = config->stft.precise ? WT_ERR_UNSUPPORTED : make_cuda(p);
    if (status == WT_ERR_UNSUPPORTED)
        status = wt__stft_wide_create(device, p->slots[0], p->config.output, p->n_lines, p->config.n_samples,
                                      p->n_frames, p->length, &p->wide);
    p->config.stft.window.samples = NULL; // copied
    if (status)
        wt_stft_plan_destroy(p);
    else
        *plan = p;
    return status;
}

void wt_stft_plan_destroy(wt_stft_plan *plan)
{
    if (!plan) return;
    wt__spectrum_cuda_release(&plan->spectrum);
    wt__stft_wide_destroy(plan->wide);
    wt_buffer_destroy(plan->squares);
    for (int i = 0; i < plan->n_slots; i++) {
        if (plan->slots) wt_stft_destroy(plan->slots[i]);
        if (plan->rows) free(plan->rows[i]);
    }
    free(plan->slots);
    free(plan->rows);
    free(plan);
}

int64_t wt_stft_plan_frames(const wt_stft_plan *plan) { return plan->n_frames; }

int64_t wt_stft_plan_length(const wt_stft_plan *plan) { return plan->length; }

// ---- on the CPU

typedef struct call {
    wt_stft_plan *plan;
    const float *in;
    float *out;
} call;

WT_CLONES void wt__stft_write(const float *re, const float *im, int bins, wt_stft_output output, float *out)
{
    if (output == WT_STFT_MAGNITUDE)
        for (int k = 0; k < bins; k++) out[k] = sqrtf(re[k] * re[k] + im[k] * im[k]);
    else if (output == WT_STFT_POWER)
        for (int k = 0; k < bins; k++) out[k] = re[k] * re[k] + im[k] * im[k];
    else
        for (int k = 0; k < bins; k++) out[k] = atan2f(im[k], re[k]);
}

// Tiles begin .. end - 1 of all lines; `past`: spectra go past the caches.
WT_RT static void forward_tiles(const call *c, int slot, int64_t begin, int64_t end, bool past)
{
    const wt_stft_plan *p = c->plan;
    wt_stft *stft = p->slots[slot];
    const size_t width = wt__fft_padded((size_t)p->bins);
    float *re = p->rows[slot], *im = re + (size_t)p->tile * width;
    const bool pairs = p->config.output == WT_STFT_COMPLEX;
    const int64_t tiles = (p->n_frames + p->tile - 1) / p->tile;
    for (int64_t i = begin; i < end; i++) {
        const int64_t line = i / tiles, t = i % tiles * p->tile, row = line * p->n_frames + t;
        const int count = p->n_frames - t < p->tile ? (int)(p->n_frames - t) : p->tile;
        const float *pcm = c->in + line * p->config.n_samples;
        if (pairs && !p->config.stft.precise) {
            wt__stft_pairs(stft, pcm, p->config.n_samples, t, past, c->out + row * p->bins * 2);
            continue;
        }
        wt__stft_tile(stft, pcm, p->config.n_samples, t, count, re, im, width);
        for (int f = 0; f < count; f++) {
            const float *x = re + (size_t)f * width, *y = im + (size_t)f * width;
            if (pairs)
                wt__stft_kernels(stft)->join(x, y, c->out + (row + f) * p->bins * 2, p->bins, 1);
            else
                wt__stft_write(x, y, p->bins, p->config.output, c->out + (row + f) * p->bins);
        }
    }
}

WT_RT static void forward_slot(const void *args, int slot)
{
    const call *c = args;
    wt_stft_plan *p = c->plan;
    const bool past = wt__stft_past(p->slots[slot], p->n_lines * p->n_frames);
    const int64_t all = p->n_lines * ((p->n_frames + p->tile - 1) / p->tile);
    int64_t begin, end;
    while (wt__op_take(&p->share, all, AT_ONCE / p->tile, p->n_slots, &begin, &end))
        forward_tiles(c, slot, begin, end, past);
    if (past) wt__stft_streamed(p->slots[slot]);
}

WT_RT static void inverse_slot(const void *args, int slot)
{
    const call *c = args;
    const wt_stft_plan *p = c->plan;
    const int64_t n_parts = p->n_lines < p->n_slots ? p->n_slots : 1, all = p->n_lines * n_parts;
    const int64_t end = wt__op_begin(all, slot + 1, p->n_slots);
    for (int64_t i = wt__op_begin(all, slot, p->n_slots); i < end; i++) { // lengths were checked
        const int64_t line = i / n_parts;
        (void)!wt__stft_invert_line(p->slots[slot], c->in + line * p->n_frames * p->bins * 2, p->n_frames, p->length,
                                    (int)(i % n_parts), (int)n_parts, c->out + line * p->length);
    }
}

// ---- queueing

static wt_status forward_cuda(const wt_stft_plan *p, wt_stream *stream, uintptr_t in, uintptr_t out)
{
    wt_spectrum_stft_args args = {.frames = p->spectrum.args, .out = (float *)out, .kind = (int)p->config.output};
    args.frames.pcm = (const float *)in;
    args.frames.n_samples = p->config.n_samples;
    args.frames.n_frames = (int)p->n_frames;
    wt_launch launch = {.block = {p->spectrum.threads}, .shared_bytes = p->spectrum.shared_bytes};
    wt_status status = wt__spectrum_cuda_grid("stft", p->n_lines, p->n_frames, p->spectrum.frames, &launch.grid[0]);
    return status ? status : wt_kernel_launch(p->forward, stream, &launch, &WT_ARG(args), 1);
}

static wt_status inverse_cuda(const wt_stft_plan *p, wt_stream *stream, uintptr_t in, uintptr_t out)
{
    const wt_spectrum_istft_args args = {.walk = p->walk,
                                         .in = (const float *)in,
                                         .out = (float *)out,
                                         .squares = (const float *)wt_buffer_address(p->squares),
                                         .stored_frames = (int)p->n_frames,
                                         .n_frames = (int)wt__stft_used_frames(p->slots[0], p->n_frames, p->length)};
    return wt_kernel_launch(p->inverse, stream, &p->inverse_launch, &WT_ARG(args), 1);
}

wt_status wt_stft_plan_forward(wt_stft_plan *plan, wt_stream *stream, const wt_buffer *pcm, size_t pcm_offset,
                               wt_buffer *out, size_t out_offset)
{
    const int64_t floats = plan->n_lines * plan->n_frames * plan->bins * (plan->config.output ? 1 : 2);
    wt_status status = wt__op_stream("stft", plan->device, stream);
    if (!status && plan->config.n_frames)
        status = wt_fail(WT_ERR_BAD_ARG, "stft: the plan was made from frames, want it made from samples");
    if (!status)
        status = wt__op_range("stft", "pcm", pcm, pcm_offset, (size_t)(plan->n_lines * plan->config.n_samples));
    if (!status) status = wt__op_range("stft", "out", out, out_offset, (size_t)floats);
    if (status) return status;
    const uintptr_t from = wt_buffer_address(pcm) + pcm_offset, to = wt_buffer_address(out) + out_offset;
    if (plan->wide) return wt__stft_wide_forward(plan->wide, stream, (const float *)from, (float *)to);
    if (plan->forward) return forward_cuda(plan, stream, from, to);
    const call c = {plan, (const float *)from, (float *)to};
    return wt_stream_run(stream, forward_slot, &c, sizeof c, plan->n_slots);
}

wt_status wt_stft_plan_inverse(wt_stft_plan *plan, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                               wt_buffer *pcm, size_t pcm_offset)
{
    const int64_t floats = plan->n_lines * plan->n_frames * plan->bins * 2;
    wt_status status = wt__op_stream("stft", plan->device, stream);
    if (!status) status = wt__op_range("stft", "in", in, in_offset, (size_t)floats);
    if (!status) status = wt__op_range("stft", "pcm", pcm, pcm_offset, (size_t)(plan->n_lines * plan->length));
    if (status || !plan->length) return status;
    const uintptr_t from = wt_buffer_address(in) + in_offset, to = wt_buffer_address(pcm) + pcm_offset;
    if (plan->wide) return wt__stft_wide_inverse(plan->wide, stream, (const float *)from, (float *)to);
    if (plan->inverse) return inverse_cuda(plan, stream, from, to);
    const call c = {plan, (const float *)from, (float *)to};
    return wt_stream_run(stream, inverse_slot, &c, sizeof c, plan->n_slots);
}
