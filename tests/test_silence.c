// Level and silence of many signals on a device; test_spectral.c judges the functions by librosa.
#include "support/failing_alloc.h"
#include "support/spectral_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <warptone/silence.h>

enum { N = 21011, SIGNALS = 3, CHANNELS = 2, LINES = SIGNALS * CHANNELS };

// Bursts of noise of unlike loudness, at other places in each line, over a hiss; the last line begins and ends loud,
// and one sample is not a number.
static float *bursts(void)
{
    float *x = noise_floats((size_t)LINES * N, 31);
    for (int line = 0; line < LINES; line++)
        for (int i = 0; i < N; i++) {
            const int place = (i + 700 * line) / 2500 + (line == LINES - 1);
            x[line * N + i] *= place % 3 == 1 ? 0.5f / (float)(1 + place) : place % 3 == 2 ? 1e-4f : 0;
        }
    x[N + 4321] = NAN;
    return x;
}

static wt_status enqueue_level(void *op, wt_stream *stream, const wt_buffer *in, size_t in_offset, wt_buffer *out,
                               size_t out_offset)
{
    return wt_level_plan_enqueue(op, stream, in, in_offset, out, out_offset);
}

static void check_levels(wt_device *device, const float *x, const wt_level_config *level)
{
    static wt_status (*const functions[])(const wt_level_config *, const float *, int64_t, float *) = {
        wt_level_rms, wt_level_energy, wt_level_zero_crossings};
    const size_t frames = (size_t)wt_level_frames(level, N);
    float *want = floats(frames), *got = floats(LINES * frames);
    for (int kind = WT_LEVEL_RMS; kind <= WT_LEVEL_ZERO_CROSSINGS; kind++) {
        wt_level_plan *plan;
        const wt_level_plan_config c = {
            .kind = (wt_level_kind)kind, .level = *level, .n_samples = N, .n_signals = LINES};
        assert_ok(wt_level_plan_create(device, &c, &plan));
        run_on_stream(&(stream_call){device, enqueue_level, plan}, x, (size_t)LINES * N, got, LINES * frames);
        for (size_t line = 0; line < LINES; line++) {
            char what[64];
            snprintf(what, sizeof what, "kind %d, frames of %d, line %zu", kind, level->frame_length, line);
            assert_ok(functions[kind](level, x + line * N, N, want));
            assert_near_peak(want, got + line * frames, frames, kind == WT_LEVEL_ZERO_CROSSINGS ? 0 : 2e-6, what);
        }
        wt_level_plan_destroy(plan);
    }
    free(want), free(got);
}

static void check_silence(wt_device *device, const float *x, wt_silence_config c)
{
    enum { ROOM = 64 };
    c.n_samples = N, c.n_signals = c.channels ? LINES / c.channels : LINES;
    const int channels = c.channels ? c.channels : 1;
    wt_silence *plan;
    wt_stream *stream;
    wt_buffer *pcm, *spans, *counts;
    assert_ok(wt_silence_create(device, &c, &plan));
    const int64_t room = wt_silence_room(plan);
    const size_t pcm_bytes = sizeof(float) * LINES * N, n = (size_t)(room * c.n_signals), bytes = n * sizeof(wt_span);
    wt_span want[ROOM], *got = calloc(n, sizeof *got);
    int n_got[LINES];
    assert_non_null(got);
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, pcm_bytes, &pcm));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, bytes, &spans));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof(int) * (size_t)c.n_signals, &counts));
    assert_ok(wt_stream_upload(stream, pcm, 0, x, pcm_bytes));
    for (int repeat = 0; repeat < 2; repeat++) assert_ok(wt_silence_enqueue(plan, stream, pcm, 0, spans, 0, counts, 0));
    assert_ok(wt_stream_download(stream, got, spans, 0, bytes));
    assert_ok(wt_stream_download(stream, n_got, counts, 0, sizeof(int) * (size_t)c.n_signals));
    assert_ok(wt_stream_synchronize(stream));
    for (int s = 0; s < c.n_signals; s++) {
        int64_t count;
        const float *signal = x + s * channels * N;
        assert_ok(wt_silence_split(&c.level, c.top_db, signal, channels, N, want, ROOM, &count));
        assert_in_range(count, 1, ROOM);
        if (n_got[s] != count) fail_msg("signal %d: %d spans, want %lld", s, n_got[s], (long long)count);
        if (c.trim) {
            assert_ok(wt_silence_trim(&c.level, c.top_db, signal, channels, N, want));
            count = 1;
        }
        for (int64_t k = 0; k < count && k < room; k++) {
            const wt_span g = got[s * room + k], w = want[k];
            if (g.begin != w.begin || g.end != w.end)
                fail_msg("signal %d, span %lld: %lld to %lld, want %lld to %lld", s, (long long)k, (long long)g.begin,
                         (long long)g.end, (long long)w.begin, (long long)w.end);
        }
    }
    assert_int_equal(wt_silence_enqueue(plan, stream, pcm, 0, spans, 8, counts, 0), WT_ERR_BAD_ARG);
    assert_int_equal(wt_silence_enqueue(plan, stream, pcm, 4, spans, 0, counts, 0), WT_ERR_BAD_ARG);
    assert_int_equal(wt_silence_enqueue(plan, stream, pcm, 0, spans, 0, counts, 4), WT_ERR_BAD_ARG);
    wt_silence_destroy(plan), wt_stream_destroy(stream), free(got);
    wt_buffer_destroy(pcm), wt_buffer_destroy(spans), wt_buffer_destroy(counts);
}

static void check_device(wt_device *device)
{
    float *x = bursts();
    const wt_level_config plain = {.frame_length = 2048, .hop = 512},
                          odd = {.frame_length = 301, .hop = 77, .pad = WT_STFT_PAD_REFLECT},
                          bare = {.frame_length = 64, .hop = 64, .no_center = true},
                          wide = {.frame_length = 50000, .hop = 4000, .pad = WT_STFT_PAD_RAMP};
    const wt_level_config *const levels[] = {&plain, &odd, &bare, &wide};
    for (int k = 0; k < 4; k++) check_levels(device, x, levels[k]);
    check_silence(device, x, (wt_silence_config){.level = plain});
    check_silence(device, x, (wt_silence_config){.level = odd, .top_db = 20, .channels = CHANNELS});
    check_silence(device, x, (wt_silence_config){.level = bare, .top_db = 30, .channels = CHANNELS, .room = 1});
    check_silence(device, x, (wt_silence_config){.level = bare, .top_db = 30, .channels = CHANNELS, .trim = true});
    check_silence(device, x, (wt_silence_config){.level = plain, .top_db = 100, .trim = true});
    free(x);
    wt_device_close(device);
}

static void batches_on_a_cpu_give_what_each_signal_gives(void **state)
{
    (void)state;
    check_device(cpu_device());
}

static void cuda_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    check_device(gpu_device());
}

static void bad_input_gets_a_sentence(void **state)
{
    (void)state;
    wt_level_plan *level = NULL;
    wt_silence *silence = NULL;
    assert_fails(wt_level_plan_create(NULL, &(wt_level_plan_config){.level = {.hop = -1}, .n_samples = 9}, &level),
                 WT_ERR_BAD_ARG, "level: hop -1, want 1 or more");
    assert_fails(wt_level_plan_create(NULL, &(wt_level_plan_config){.n_samples = 9, .n_signals = -1}, &level),
                 WT_ERR_BAD_ARG, "level: kind 0 of -1 signals, want 0..2 of 1 or more");
    assert_fails(wt_silence_create(NULL, &(wt_silence_config){.n_samples = 0}, &silence), WT_ERR_LENGTH,
                 "level: no frame of 2048 in 0 samples");
    assert_fails(wt_silence_create(NULL, &(wt_silence_config){.n_samples = 9, .top_db = -6}, &silence), WT_ERR_BAD_ARG,
                 "silence: 1 channels, -6 dB, want 1 or more, above 0");
    assert_fails(wt_silence_create(NULL, &(wt_silence_config){.n_samples = 9, .room = -1}, &silence), WT_ERR_BAD_ARG,
                 "silence: 1 signals of 1 frames, room for -1 spans, want 1 or more");
    assert_true(!level && !silence);
}

static wt_status create(void *user)
{
    return wt_silence_create(NULL, &(wt_silence_config){.n_samples = 5000}, user);
}

static void destroy(void *user)
{
    wt_silence_destroy(*(wt_silence **)user);
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    wt_silence *plan = NULL;
    assert_survives_failing_alloc(create, destroy, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_on_a_cpu_give_what_each_signal_gives),
        cmocka_unit_test(cuda_gives_what_the_cpu_gives),
        cmocka_unit_test(bad_input_gets_a_sentence),
        cmocka_unit_test(running_out_of_memory_is_survived),
    };
    return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
