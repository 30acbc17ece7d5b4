// One launch an iteration. The output has y all the way; two buffers of signals take turns as what a step transforms
// and what the next one will.

#include "griffin_lim_cuda.h"
#include "griffin_lim_wide.h"
#include "spectrum_cuda.h"

#include "griffin_lim_kernel.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

struct wt__griffin_lim_cuda {
    wt__spectrum_cuda spectrum;
    wt_kernel *begin, *step;
    wt_buffer *squares, *seeds, *jumps, *factors, *signals[2];
    wt_griffin_lim_args args; // all but what changes from launch to launch
    wt_launch launch;
    int n_iter;
    wt__griffin_lim_wide *wide; // in double, and where no block holds a frame
};

enum { SQUARES_AT_ONCE = 1 << 16 };

// Squares begin .. begin + n - 1.
static void fill_squares(const wt__griffin_lim_shape *s, int64_t begin, int n, bool in_double, void *to)
{
    const int64_t hop = wt__stft_config(s->stft)->hop, steady = s->head - hop;
    for (int i = 0; i < n; i++) {
        const int64_t at = begin + i;
        const double by = s->squares[at < s->head    ? at
                                     : at >= s->tail ? s->head + at - s->tail
                                                     : steady + (at - steady) % hop];
        if (in_double)
            ((double *)to)[i] = by;
        else
            ((float *)to)[i] = (float)(by < FLT_MAX ? by : 1);
    }
}

wt_status wt__griffin_lim_upload_squares(wt_device *device, const wt__griffin_lim_shape *s, bool in_double,
                                         wt_buffer **squares)
{
    const size_t width = in_double ? sizeof(double) : sizeof(float);
    wt_stream *stream = NULL;
    void *some = malloc(SQUARES_AT_ONCE * width);
    wt_status status = some ? wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)s->n_padded * width, squares)
                            : wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: squares");
    if (!status) status = wt_stream_create(device, NULL, &stream);
    for (int64_t at = 0; at < s->n_padded && !status; at += SQUARES_AT_ONCE) {
        const int n = s->n_padded - at < SQUARES_AT_ONCE ? (int)(s->n_padded - at) : SQUARES_AT_ONCE;
        fill_squares(s, at, n, in_double, some);
        status = wt_stream_upload(stream, *squares, (size_t)at * width, some, (size_t)n * width);
        if (!status) status = wt_stream_synchronize(stream);
    }
    wt_stream_destroy(stream);
    free(some);
    return status;
}

static wt_status upload(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_cuda *c)
{
    wt_status status = wt__griffin_lim_upload_squares(device, s, false, &c->squares);
    if (!status) status = wt__op_upload(device, s->seeds, (size_t)wt_stft_bins(s->stft) * sizeof *s->seeds, &c->seeds);
    if (!status) status = wt__op_upload(device, s->jumps, (size_t)s->n_used * 2 * sizeof *s->jumps, &c->jumps);
    if (status) return status;
    c->args.squares = (const float *)wt_buffer_address(c->squares);
    c->args.seeds = (const unsigned long long *)wt_buffer_address(c->seeds);
    c->args.jumps = (const unsigned long long *)wt_buffer_address(c->jumps);
    return WT_OK;
}

// The factors that the stages of `radix` points times w^k ask for (kernels/spectral/griffin_lim.cu), w the p-th of
// `parts` of a turn: [radix / 2][count]. Returns where the next ones go.
static float *make_factors(float *to, int radix, int parts, int count)
{
    for (int i = 0; i < radix / 2; i++) {
        int n = 1; // results the stage has of each set of points
        while (n <= i) n *= 2;
        for (int p = 0; p < count; p++, to += 2) {
            const double turns = (0.5 * radix * p / parts + 0.5 * (i - n / 2)) / n;
            to[0] = (float)cos(2 * 3.14159265358979323846 * turns);
            to[1] = (float)-sin(2 * 3.14159265358979323846 * turns);
        }
    }
    return to;
}

static wt_status upload_factors(wt_device *device, wt__griffin_lim_cuda *c)
{
    float factors[WT_GRIFFIN_LIM_FACTORS * 2];
    make_factors(make_factors(factors, 16, 256, 16), 8, 2048, 256);
    wt_status status = wt__op_upload(device, factors, sizeof factors, &c->factors);
    if (!status) c->args.factors = (const float *)wt_buffer_address(c->factors);
    return status;
}

static wt_status prepare(wt_device *device, const wt__griffin_lim_shape *s, wt__griffin_lim_cuda *c)
{
    if (s->n_frames > INT_MAX / 2)
        return wt_fail(WT_ERR_BAD_ARG, "griffin-lim: %lld frames, want %d at most on a GPU", (long long)s->n_frames,
                       INT_MAX / 2);
    wt_status status =
        wt__spectrum_cuda_load("griffin-lim", device, s->stft, "kernels/spectral/griffin_lim.cu", &c->spectrum);
    if (status) return status;
    const bool quarter = c->spectrum.n_fft == 2048 && c->spectrum.args.hop == 512;
    c->n_iter = s->n_iter;
    c->args.frames = c->spectrum.args;
    c->args.frames.n_samples = s->length, c->args.frames.n_frames = (int)s->n_used;
    c->args.stored_frames = (int)s->n_frames;
    c->args.zero_phase = s->zero_phase, c->args.momentum = (float)s->momentum;
    status = upload(device, s, c);
    if (quarter && !status) status = upload_factors(device, c);
    for (int i = 0; i < 2 && !status; i++)
        status = wt_buffer_create(device, WT_MEMORY_DEVICE, (size_t)(s->n_lines * s->length) * sizeof(float),
                                  &c->signals[i]);
    if (!status)
        status = wt__spectrum_cuda_walk("griffin-lim", device, &c->spectrum, s->n_lines, s->length, &c->args.walk,
                                        &c->launch);
    if (quarter)
        c->launch.shared_bytes = (size_t)wt__griffin_lim_quarter_bytes();
    else
        c->launch.shared_bytes += (size_t)wt__griffin_lim_staged(c->spectrum.n_fft);
    if (!status && c->launch.shared_bytes > wt_device_get_info(device)->shared_bytes)
        status = wt_fail(WT_ERR_UNSUPPORTED, "griffin-lim: n_fft %d takes %zu bytes of shared memory, the GPU has %zu",
                         c->spectrum.n_fft, c->launch.shared_bytes, wt_device_get_info(device)->shared_bytes);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "griffin_lim_begin", &c->begin);
    if (!status)
        status =
            wt_module_get_kernel(c->spectrum.module, quarter ? "griffin_lim_quarter" : "griffin_lim_step", &c->step);
    return status;
}

static void release(wt__griffin_lim_cuda *c)
{
    wt__spectrum_cuda_release(&c->spectrum);
    wt_buffer *const buffers[] = {c->squares, c->seeds, c->jumps, c->factors, c->signals[0], c->signals[1]};
    for (int i = 0; i < 6; i++) wt_buffer_destroy(buffers[i]);
    *c = (wt__griffin_lim_cuda){.wide = NULL};
}

wt_status wt__griffin_lim_cuda_create(wt_device *device, const wt__griffin_lim_shape *shape,
                                      wt__griffin_lim_cuda **cuda)
{
    *cuda = NULL;
    wt__griffin_lim_cuda *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "griffin-lim: CUDA plan");
    wt_status status = wt__stft_config(shape->stft)->precise ? WT_ERR_UNSUPPORTED : prepare(device, shape, c);
    if (status == WT_ERR_UNSUPPORTED) {
        release(c);
        status = wt__griffin_lim_wide_create(device, shape, &c->wide);
    }
    if (status)
        wt__griffin_lim_cuda_destroy(c);
    else
        *cuda = c;
    return status;
}

void wt__griffin_lim_cuda_destroy(wt__griffin_lim_cuda *cuda)
{
    if (!cuda) return;
    wt__griffin_lim_wide_destroy(cuda->wide);
    release(cuda);
    free(cuda);
}

wt_status wt__griffin_lim_cuda_enqueue(const wt__griffin_lim_cuda *cuda, wt_stream *stream, const float *magnitude,
                                       float *out)
{
    if (cuda->wide) return wt__griffin_lim_wide_enqueue(cuda->wide, stream, magnitude, out);
    wt_griffin_lim_args args = cuda->args;
    float *const signals[2] = {(float *)wt_buffer_address(cuda->signals[0]),
                               (float *)wt_buffer_address(cuda->signals[1])};
    wt_status status = WT_OK;
    args.magnitude = magnitude, args.out = out;
    for (int i = -1; i < cuda->n_iter && !status; i++) {
        args.frames.pcm = signals[(i + 2) % 2];
        args.next = i + 1 < cuda->n_iter ? signals[(i + 1) % 2] : NULL;
        status = wt_kernel_launch(i < 0 ? cuda->begin : cuda->step, stream, &cuda->launch, &WT_ARG(args), 1);
    }
    return status;
}
