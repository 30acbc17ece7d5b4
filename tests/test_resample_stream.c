// Streams that change their rate on a device, against a resampler a line.
#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/resample.h>

enum { N = 6001, STEER = 4000, LINES = 10, ROOM = 6 * N }; // a warp has 8 lines

typedef struct stream_case {
    wt_resample_config config; // channels: 2 of 5 signals
    bool steered;
} stream_case;

static const stream_case cases[] = {
    {{44100, 48000, 2, WT_RESAMPLE_BEST, false}, false},
    {{48000, 16000, 2, WT_RESAMPLE_FAST, false}, false},
    {{8000, 44101, 2, WT_RESAMPLE_BEST, false}, false}, // between rows
    {{44100, 22050, 2, WT_RESAMPLE_SOXR_HQ, false}, false},
    {{44100, 24000, 2, WT_RESAMPLE_SOXR_HQ, false}, false}, // first outputs of their own, a rounded end
    {{44101, 16000, 2, WT_RESAMPLE_SOXR_HQ, false}, false},
    {{48000, 44100, 2, WT_RESAMPLE_POLYPHASE, false}, false},
    {{48000, 48000, 2, WT_RESAMPLE_BEST, true}, true},
    {{44100, 48000, 2, WT_RESAMPLE_FAST, true}, true},
    {{48000, 500, 2, WT_RESAMPLE_FAST, true}, false}, // most blocks give nothing
};

static float *tones(size_t lines)
{
    float *x = floats(lines * N);
    uint64_t seed = 12;
    for (size_t line = 0; line < lines; line++)
        for (size_t f = 0; f < N; f++)
            x[line * N + f] = 0.3f * sinf((float)f * (0.01f + 0.02f * (float)line)) + 0.2f * noise(&seed);
    return x;
}

// Two bends on the way, the second before the first has ended, and a jump at 5000.
static const struct {
    int at, ramp;
    double speed;
} bends[] = {{STEER, 3000, 1.02}, {STEER + 700, 500, 0.97}, {5000, 0, 1.003}};

enum { BENDS = sizeof bends / sizeof *bends };

// What a line gives by itself; returns its frames.
static size_t resample_line(const stream_case *k, const float *x, float *out)
{
    wt_resample *r;
    wt_resample_config one = k->config;
    size_t total = 0;
    int used, made;
    one.channels = 1;
    assert_ok(wt_resample_create(&one, &r));
    for (int done = 0, b = 0; done < N; done += used, b++) {
        const int end = k->steered && b < BENDS ? bends[b].at : N;
        wt_resample_process(r, (const float *[]){x + done}, end - done, &used, (float *[]){out + total}, ROOM, &made);
        total += (size_t)made;
        if (end < N) assert_int_equal(wt_resample_steer(r, bends[b].speed, bends[b].ramp), WT_OK);
    }
    wt_resample_drain(r, (float *[]){out + total}, ROOM, &made);
    wt_resample_destroy(r);
    return total + (size_t)made;
}

typedef struct bench {
    wt_resample_stream *plan;
    wt_stream *stream;
    wt_buffer *in, *out;
    size_t lines, total;
    float *some_in, *some_out;
} bench;

static void take(bench *b, int made, float *out)
{
    if (!made) return;
    assert_ok(wt_stream_download(b->stream, b->some_out, b->out, 0, b->lines * (size_t)made * sizeof *out));
    assert_ok(wt_stream_synchronize(b->stream));
    for (size_t line = 0; line < b->lines; line++)
        memcpy(out + line * ROOM + b->total, b->some_out + line * (size_t)made, (size_t)made * sizeof *out);
    b->total += (size_t)made;
}

static void give(bench *b, const float *x, int at, int n, float *out)
{
    const int made = wt_resample_stream_frames(b->plan, n);
    for (size_t line = 0; line < b->lines; line++)
        memcpy(b->some_in + line * (size_t)n, x + line * N + at, (size_t)n * sizeof *x);
    assert_ok(wt_stream_upload(b->stream, b->in, 0, b->some_in, b->lines * (size_t)n * sizeof *x));
    assert_ok(wt_resample_stream_enqueue(b->plan, b->stream, b->in, 0, n, b->out, 0));
    assert_ok(wt_stream_synchronize(b->stream));
    take(b, made, out);
}

// Signals of two lines each in blocks; returns the frames of a line.
static size_t run(wt_device *device, const stream_case *k, size_t signals, const float *x, const int *sizes,
                  int n_sizes, float *out)
{
    const size_t lines = 2 * signals;
    bench b = {.lines = lines, .some_in = floats(lines * N), .some_out = floats(lines * ROOM)};
    const wt_resample_stream_config config = {k->config, (int)signals, N};
    assert_ok(wt_resample_stream_create(device, &config, &b.plan));
    assert_ok(wt_stream_create(device, NULL, &b.stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, lines * N * sizeof *x, &b.in));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, lines * ROOM * sizeof *x, &b.out));
    for (int done = 0, s = 0, bend = 0; done < N; s++) {
        const int end = k->steered && bend < BENDS ? bends[bend].at : N, size = sizes[s % n_sizes];
        const int n = size < end - done ? size : end - done;
        give(&b, x, done, n, out);
        done += n;
        if (done < end || end == N) continue;
        assert_ok(wt_resample_stream_steer(b.plan, b.stream, bends[bend].speed, bends[bend].ramp));
        bend++;
    }
    const int rest = wt_resample_stream_rest(b.plan);
    assert_ok(wt_resample_stream_drain(b.plan, b.stream, b.out, 0));
    take(&b, rest, out);
    assert_int_equal(wt_resample_stream_rest(b.plan), 0);
    wt_resample_stream_destroy(b.plan), wt_stream_destroy(b.stream), wt_buffer_destroy(b.in), wt_buffer_destroy(b.out);
    free(b.some_in), free(b.some_out);
    return b.total;
}

static void check_case(wt_device *device, const stream_case *k, double bound)
{
    static const int whole[] = {N}, cuts[] = {1, 63, 64, 65, 253, 2000};
    char what[64];
    float *x = tones(LINES), *want = floats(LINES * ROOM), *got = floats(LINES * ROOM), *cut = floats(LINES * ROOM);
    size_t frames = 0;
    snprintf(what, sizeof what, "%d to %d Hz, quality %d", k->config.in_hz, k->config.out_hz, (int)k->config.quality);
    for (size_t line = 0; line < LINES; line++) frames = resample_line(k, x + line * N, want + line * ROOM);
    assert_int_equal(run(device, k, LINES / 2, x, whole, 1, got), frames);
    assert_near_peak(want, got, LINES * ROOM, bound, what);
    assert_int_equal(run(device, k, LINES / 2, x, cuts, 6, cut), frames);
    assert_memory_equal(got, cut, LINES * ROOM * sizeof *got);
    assert_int_equal(run(device, k, 1, x + 2 * N, cuts, 5, cut), frames);
    assert_memory_equal(got + 2 * ROOM, cut, 2 * ROOM * sizeof *got);
    free(x), free(want), free(got), free(cut);
}

static void check_device(wt_device *device, double bound)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check_case(device, &cases[k], bound);
    wt_device_close(device);
}

static void a_cpus_streams_are_each_lines(void **state)
{
    (void)state;
    check_device(cpu_device(), 0);
}

static void a_gpu_streams_as_the_cpu_does(void **state)
{
    (void)state;
    check_device(gpu_device(), 2e-6);
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_device *cpu = cpu_device();
    wt_resample_stream *plan = NULL;
    wt_stream *stream;
    wt_buffer *buffer;
    const wt_resample_config plain = {48000, 44100, 1, 0, false};
    assert_fails(wt_resample_stream_create(NULL, &(wt_resample_stream_config){plain, 1, 1}, &plan), WT_ERR_BAD_ARG,
                 "resample: streams without a device");
    assert_fails(wt_resample_stream_create(cpu, &(wt_resample_stream_config){plain, -2, 1}, &plan), WT_ERR_BAD_ARG,
                 "resample: -2 signals of 1 channels, want 1..65535 lines");
    assert_fails(wt_resample_stream_create(cpu, &(wt_resample_stream_config){plain, 1, 0}, &plan), WT_ERR_BAD_ARG,
                 "resample: max_in 0, want 1..4194303");
    assert_null(plan);
    assert_ok(wt_resample_stream_create(cpu, &(wt_resample_stream_config){plain, 1, 9}, &plan));
    assert_ok(wt_stream_create(cpu, NULL, &stream));
    assert_ok(wt_buffer_create(cpu, WT_MEMORY_DEVICE, 16, &buffer));
    assert_fails(wt_resample_stream_enqueue(plan, stream, buffer, 0, 10, NULL, 0), WT_ERR_BAD_ARG,
                 "resample: a block of 10 frames, want 1..9");
    assert_fails(wt_resample_stream_enqueue(plan, stream, buffer, 0, 5, NULL, 0), WT_ERR_BAD_ARG,
                 "resample: input takes 20 bytes at 0, the buffer has 16");
    assert_fails(wt_resample_stream_steer(plan, stream, 1, 0), WT_ERR_STATE,
                 "resample: steered, but its ratio is not variable");
    assert_ok(wt_resample_stream_enqueue(plan, stream, buffer, 0, 4, NULL, 0)); // it reaches further than 4 frames
    assert_int_equal(wt_resample_stream_rest(plan), 4);
    assert_ok(wt_resample_stream_drain(plan, stream, buffer, 0));
    assert_fails(wt_resample_stream_enqueue(plan, stream, buffer, 0, 4, NULL, 0), WT_ERR_STATE,
                 "resample: a block behind the end, want a reset before it");
    assert_ok(wt_resample_stream_reset(plan, stream));
    assert_ok(wt_resample_stream_enqueue(plan, stream, buffer, 0, 4, NULL, 0));
    assert_ok(wt_stream_synchronize(stream));
    wt_resample_stream_destroy(plan), wt_resample_stream_destroy(NULL);
    wt_stream_destroy(stream), wt_buffer_destroy(buffer);
    wt_device_close(cpu);
}

static wt_device *alloc_device;

static wt_status create(void *user)
{
    return wt_resample_stream_create(alloc_device, &(wt_resample_stream_config){cases[4].config, 1, 100}, user);
}

static void destroy(void *user) { wt_resample_stream_destroy(*(wt_resample_stream **)user); }

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_resample_stream *plan = NULL;
    alloc_device = cpu_device();
    assert_survives_failing_alloc(create, destroy, &plan);
    wt_device_close(alloc_device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cpus_streams_are_each_lines),
        cmocka_unit_test(a_gpu_streams_as_the_cpu_does),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("resample stream", tests, NULL, NULL);
}
