#include "spectral_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/kernel.h>

static wt_window_config window_config(const golden_case *g)
{
    static const char *const names[] = {"hann",     "hamming", "blackman", "blackmanharris",
                                        "kaiser",   "gaussian", "flattop", "boxcar"};
    const char *text = golden_text(g, "window", "hann"), *parameter = strchr(text, ',');
    wt_window_config window = {.parameter = parameter ? atof(parameter + 1) : 0};
    for (int k = 0; k < 8; k++)
        if (!strncmp(text, names[k], strlen(names[k])) && strlen(names[k]) == strcspn(text, ",")) window.kind = k;
    return window;
}

wt_stft_config golden_stft_config(const golden_case *g)
{
    static const char *const pads[] = {"constant", "reflect", "symmetric", "edge", "linear_ramp"};
    wt_stft_config c = {
        .n_fft = golden_int(g, "n_fft", 2048),
        .win_length = golden_int(g, "win_length", 0),
        .hop = golden_int(g, "hop_length", 0),
        .no_center = !golden_int(g, "center", 1),
        .window = window_config(g),
    };
    if (!c.hop) c.hop = (c.win_length ? c.win_length : c.n_fft) / 4;
    for (int k = 0; k < 5; k++)
        if (!strcmp(golden_text(g, "pad_mode", "constant"), pads[k])) c.pad = k;
    return c;
}

wt_mel_bank_config golden_bank_config(const golden_case *g)
{
    const char *norm = golden_text(g, "norm", "none");
    wt_mel_bank_config c = {
        .rate_hz = golden_int(g, "sr", 22050),
        .n_fft = golden_int(g, "n_fft", 2048),
        .n_mels = golden_int(g, "n_mels", 128),
        .fmin_hz = golden_double(g, "fmin", 0),
        .fmax_hz = golden_double(g, "fmax", 0),
        .htk = golden_int(g, "htk", 0),
    };
    if (strstr(g->params, "norm=") && strcmp(norm, "slaney"))
        c.norm = !strcmp(norm, "none") ? WT_MEL_NORM_NONE
                 : !strcmp(norm, "1")  ? WT_MEL_NORM_1
                 : !strcmp(norm, "2")  ? WT_MEL_NORM_2
                                       : WT_MEL_NORM_INF;
    return c;
}

wt_pitch_frames golden_pitch_frames(const golden_case *g, size_t n)
{
    const bool reflects = !strcmp(golden_text(g, "pad_mode", "constant"), "reflect");
    return (wt_pitch_frames){.rate_hz = golden_double(g, "sr", 22050),
                             .fmin_hz = golden_double(g, "fmin", 0),
                             .fmax_hz = golden_double(g, "fmax", 0),
                             .frame_length = golden_int(g, "frame_length", 0),
                             .hop = golden_int(g, "hop_length", 0),
                             .n_samples = (int64_t)n,
                             .pad = reflects ? WT_STFT_PAD_REFLECT : WT_STFT_PAD_ZERO,
                             .no_center = !golden_int(g, "center", 1)};
}

float *floats(size_t count)
{
    float *x = calloc(count ? count : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

float *noise_floats(size_t count, uint64_t seed)
{
    float *x = floats(count);
    for (size_t i = 0; i < count; i++) x[i] = noise(&seed);
    return x;
}

float *turned(const float *x, size_t rows, size_t columns, size_t width)
{
    float *y = floats(rows * columns * width);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(y + (c * rows + r) * width, x + (r * columns + c) * width, width * 4);
    return y;
}

void assert_near_peak(const float *want, const float *got, size_t count, double bound, const char *what)
{
    double peak = 0, worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(want[i]) && isnan(got[i])) continue;
        peak = fmax(peak, fabs((double)want[i]));
        double off = fabs((double)got[i] - want[i]);
        if (!(off <= worst)) worst = off, at = i; // also when it is not a number
    }
    if (!(worst <= bound * peak))
        fail_msg("%s: %.3g of the peak %g at %zu (%.9g, want %.9g), allowed %.2g", what, worst / peak, peak, at,
                 got[at], want[at], bound);
}

wt_device *cpu_device(void)
{
    wt_device *device;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &device));
    return device;
}

wt_device *gpu_device(void)
{
    wt_device *device;
    if (!wt_device_count()) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device));
    return device;
}

void run_on_stream(const stream_call *call, const float *in, size_t n_in, float *out, size_t n_out)
{
    wt_stream *stream;
    wt_buffer *from, *to;
    assert_ok(wt_stream_create(call->device, NULL, &stream));
    assert_ok(wt_buffer_create(call->device, WT_MEMORY_DEVICE, n_in * sizeof *in, &from));
    assert_ok(wt_buffer_create(call->device, WT_MEMORY_DEVICE, n_out * sizeof *out, &to));
    assert_ok(wt_stream_upload(stream, from, 0, in, n_in * sizeof *in));
    assert_ok(call->enqueue(call->op, stream, from, 0, to, 0));
    assert_ok(wt_stream_download(stream, out, to, 0, n_out * sizeof *out));
    assert_ok(wt_stream_synchronize(stream));
    wt_stream_destroy(stream);
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
}

static void move_rows(float *to, size_t to_pitch, const float *from, size_t from_pitch, size_t rows, size_t n)
{
    for (size_t row = 0; row < rows; row++) memcpy(to + row * to_pitch, from + row * from_pitch, n * sizeof *to);
}

void run_in_blocks(const block_op *op, const float *in, size_t n, const int *sizes, int n_sizes, float *out)
{
    wt_stream *stream;
    wt_buffer *from, *to;
    float *some_in = floats(op->in_rows * n), *some_out = floats(op->out_rows * n);
    assert_ok(wt_stream_create(op->device, NULL, &stream));
    assert_ok(wt_buffer_create(op->device, WT_MEMORY_DEVICE, op->in_rows * n * sizeof *in, &from));
    assert_ok(wt_buffer_create(op->device, WT_MEMORY_DEVICE, op->out_rows * n * sizeof *out, &to));
    assert_ok(op->reset(op->op, stream));
    for (size_t done = 0, k = 0, size; done < n; done += size, k++) {
        size = (size_t)sizes[k % (size_t)n_sizes];
        if (size > n - done) size = n - done;
        move_rows(some_in, size, in + done, n, op->in_rows, size);
        assert_ok(wt_stream_upload(stream, from, 0, some_in, op->in_rows * size * sizeof *in));
        assert_ok(op->enqueue(op->op, stream, from, (int)size, to));
        assert_ok(wt_stream_download(stream, some_out, to, 0, op->out_rows * size * sizeof *out));
        assert_ok(wt_stream_synchronize(stream));
        move_rows(out + done, n, some_out, size, op->out_rows, size);
    }
    wt_stream_destroy(stream), wt_buffer_destroy(from), wt_buffer_destroy(to);
    free(some_in), free(some_out);
}
