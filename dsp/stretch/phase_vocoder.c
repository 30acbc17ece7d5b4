// librosa 0.11's phase vocoder. Output frame t reads input frames k and k + 1 about t * rate: its magnitude lies
// between theirs, and its phase is the first frame's plus all differences of neighbours so far. A phase is a unit
// vector, a sum of phases their product (librosa 1.0's arithmetic, without angles); one Newton step a frame keeps its
// length at 1. Two frames of silence follow the last one.

#include "phase_vocoder.h"
#include "stretch_cuda.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/simd.h>

typedef struct frame {
    double *size, *re, *im; // [bins] magnitude, and the unit vector of the phase
} frame;

struct wt_phase_vocoder {
    wt_device *device;
    int bins;
    double rate;
    double *memory;
    double *re, *im; // [bins] the phase so far
    frame frames[2]; // the two that the last output frame was made of
    int64_t t, at;   // output frames so far, the input frame that the last one began with
    wt__vocoder_cuda cuda;
};

wt_status wt_phase_vocoder_create(wt_device *device, const wt_phase_vocoder_config *config, wt_phase_vocoder **vocoder)
{
    *vocoder = NULL;
    if (config->bins < 1) return wt_fail(WT_ERR_BAD_ARG, "phase_vocoder: %d bins, want 1 or more", config->bins);
    if (!(config->rate >= 1.0 / 256) || config->rate > 256)
        return wt_fail(WT_ERR_BAD_ARG, "phase_vocoder: rate %g, want 1/256..256", config->rate);
    wt_phase_vocoder *v = calloc(1, sizeof *v);
    const size_t row = ((size_t)config->bins + 7) / 8 * 8;
    double *p = v ? aligned_alloc(64, 8 * row * sizeof(double)) : NULL;
    if (!p) {
        free(v);
        return wt_fail(WT_ERR_NO_MEMORY, "phase_vocoder: %d bins", config->bins);
    }
    *v = (wt_phase_vocoder){
        .device = device, .bins = config->bins, .rate = config->rate, .memory = p, .re = p, .im = p + row};
    for (int k = 0; k < 2; k++, p += 3 * row) v->frames[k] = (frame){p + 2 * row, p + 3 * row, p + 4 * row};
    wt_status status = wt__op_on_gpu(device) ? wt__vocoder_cuda_load(device, &v->cuda) : WT_OK;
    if (status)
        wt_phase_vocoder_destroy(v);
    else
        *vocoder = v;
    return status;
}

void wt_phase_vocoder_destroy(wt_phase_vocoder *vocoder)
{
    if (!vocoder) return;
    wt_module_destroy(vocoder->cuda.module);
    free(vocoder->memory);
    free(vocoder);
}

int64_t wt_phase_vocoder_frames(const wt_phase_vocoder *vocoder, int64_t n_frames)
{
    return (int64_t)ceil((double)n_frames / vocoder->rate);
}

// ---- vector parts

WT_CLONES static void polar(const float *restrict pairs, int n, double *restrict size, double *restrict re,
                            double *restrict im)
{
    for (int i = 0; i < n; i++) {
        const double x = pairs[2 * i], y = pairs[2 * i + 1], r = sqrt(x * x + y * y);
        const double scale = r > 0 ? 1 / r : 0;
        size[i] = r;
        re[i] = r > 0 ? x * scale : 1; // the angle of 0 is 0
        im[i] = y * scale;
    }
}

WT_CLONES static void emit(const double *restrict re, const double *restrict im, const double *restrict first,
                           const double *restrict second, double alpha, int n, float *restrict pairs)
{
    for (int i = 0; i < n; i++) {
        const double size = (1 - alpha) * first[i] + alpha * second[i];
        pairs[2 * i] = (float)(size * re[i]);
        pairs[2 * i + 1] = (float)(size * im[i]);
    }
}

WT_CLONES static void advance(const double *restrict a_re, const double *restrict a_im, const double *restrict b_re,
                              const double *restrict b_im, int n, double *restrict re, double *restrict im)
{
    for (int i = 0; i < n; i++) {
        const double turn_re = b_re[i] * a_re[i] + b_im[i] * a_im[i], turn_im = b_im[i] * a_re[i] - b_re[i] * a_im[i];
        const double x = re[i] * turn_re - im[i] * turn_im, y = re[i] * turn_im + im[i] * turn_re;
        const double fix = 1.5 - 0.5 * (x * x + y * y);
        re[i] = x * fix;
        im[i] = y * fix;
    }
}

// ---- running

static void take_frame(const wt_phase_vocoder *v, wt__vocoder_input input, const void *user, int64_t k, frame *f)
{
    const float *pairs = input(user, k);
    if (pairs) {
        polar(pairs, v->bins, f->size, f->re, f->im);
        return;
    }
    memset(f->size, 0, (size_t)v->bins * sizeof(double));
    memset(f->im, 0, (size_t)v->bins * sizeof(double));
    for (int i = 0; i < v->bins; i++) f->re[i] = 1;
}

void wt__phase_vocoder_begin(wt_phase_vocoder *v) { v->t = 0; }

WT_RT void wt__phase_vocoder_next(wt_phase_vocoder *v, wt__vocoder_input input, const void *user, float *out)
{
    frame *a = &v->frames[0], *b = &v->frames[1];
    const double step = (double)v->t * v->rate;
    const int64_t k = (int64_t)step;
    if (!v->t) {
        take_frame(v, input, user, 0, a);
        take_frame(v, input, user, 1, b);
        memcpy(v->re, a->re, (size_t)v->bins * sizeof(double));
        memcpy(v->im, a->im, (size_t)v->bins * sizeof(double));
    } else if (k == v->at + 1) {
        const frame first = *a;
        *a = *b, *b = first;
        take_frame(v, input, user, k + 1, b);
    } else if (k > v->at) {
        take_frame(v, input, user, k, a);
        take_frame(v, input, user, k + 1, b);
    }
    v->at = k;
    v->t++;
    emit(v->re, v->im, a->size, b->size, step - (double)k, v->bins, out);
    advance(a->re, a->im, b->re, b->im, v->bins, v->re, v->im);
}

typedef struct spectrogram {
    const float *in;
    int64_t n_frames, row;
} spectrogram;

static const float *frame_of(const void *user, int64_t k)
{
    const spectrogram *s = user;
    return k < s->n_frames ? s->in + k * s->row : NULL;
}

WT_RT void wt_phase_vocoder_run(wt_phase_vocoder *v, const float *in, int64_t n_frames, float *out)
{
    const int64_t n_out = wt_phase_vocoder_frames(v, n_frames);
    const spectrogram s = {in, n_frames, 2 * v->bins};
    wt__phase_vocoder_begin(v);
    for (int64_t t = 0; t < n_out; t++) wt__phase_vocoder_next(v, frame_of, &s, out + t * s.row);
}

// ---- on a stream

typedef struct call {
    wt_phase_vocoder *vocoder;
    const float *in;
    float *out;
    int64_t n_frames;
    int n_lines;
} call;

static void run_lines(const void *args, int item)
{
    const call *c = args;
    const int64_t row = 2 * c->vocoder->bins, n_out = wt_phase_vocoder_frames(c->vocoder, c->n_frames);
    (void)item;
    for (int64_t line = 0; line < c->n_lines; line++)
        wt_phase_vocoder_run(c->vocoder, c->in + line * c->n_frames * row, c->n_frames, c->out + line * n_out * row);
}

static wt_status follow(const wt_phase_vocoder *v, wt_stream *stream, int n_lines, int64_t n_frames, const float *in,
                        float *out)
{
    const int64_t n_out = wt_phase_vocoder_frames(v, n_frames);
    if (n_frames > INT_MAX / 2 || n_out > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "phase_vocoder: %lld frames to %lld, want %d at most", (long long)n_frames,
                       (long long)n_out, INT_MAX / 2);
    const wt_vocoder_follow_args args = {.in = in,
                                         .out = out,
                                         .rate = v->rate,
                                         .bins = v->bins,
                                         .n_frames = (int)n_frames,
                                         .n_held = (int)n_frames,
                                         .n_out = (int)n_out,
                                         .pitch = (int)n_out};
    return wt__vocoder_cuda_follow(&v->cuda, stream, n_lines, &args);
}

wt_status wt_phase_vocoder_enqueue(wt_phase_vocoder *vocoder, wt_stream *stream, const wt_buffer *in, size_t in_offset,
                                   int64_t n_frames, int n_lines, wt_buffer *out, size_t out_offset)
{
    if (n_frames < 1 || n_lines < 1)
        return wt_fail(WT_ERR_BAD_ARG, "phase_vocoder: %lld frames of %d lines, want 1 or more", (long long)n_frames,
                       n_lines);
    const int64_t n_out = wt_phase_vocoder_frames(vocoder, n_frames);
    const size_t row = 2 * (size_t)vocoder->bins * (size_t)n_lines;
    wt_status status = wt__op_stream("phase_vocoder", vocoder->device, stream);
    if (!status) status = wt__op_range("phase_vocoder", "in", in, in_offset, row * (size_t)n_frames);
    if (!status) status = wt__op_range("phase_vocoder", "out", out, out_offset, row * (size_t)n_out);
    if (status) return status;
    const call c = {vocoder, (const float *)(wt_buffer_address(in) + in_offset),
                    (float *)(wt_buffer_address(out) + out_offset), n_frames, n_lines};
    if (vocoder->cuda.follow) return follow(vocoder, stream, n_lines, n_frames, c.in, c.out);
    return wt_stream_run(stream, run_lines, &c, sizeof c, 1);
}
