#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/spectral_check.h"

#include <warptone/audio_file.h>
#include <warptone/vad.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 48000, WINDOW = 480 };

static wt_vad *vad_of(const wt_vad_config *config)
{
    wt_vad *vad = NULL;
    assert_ok(wt_vad_create(config, &vad));
    return vad;
}

static wt_audio load(const char *relative)
{
    wt_audio audio;
    if (!shared_data(relative)) {
        printf("skipped: no shared data\n");
        skip();
    }
    assert_ok(wt_audio_load(shared_data(relative), 0, &audio));
    return audio;
}

// Part of the windows first .. that count as speech.
static double share(const bool *speech, int first, int end)
{
    int n = 0;
    for (int k = first; k < end; k++) n += speech[k];
    return (double)n / (end - first);
}

static void tone_in_noise_is_found_on_time_and_let_go(void **state)
{
    (void)state;
    enum { N = 4 * RATE, BEGIN = 2 * RATE, END = 3 * RATE };
    static float x[N];
    static bool speech[N / WINDOW + 1];
    uint64_t seed = 1;
    for (int n = 0; n < N; n++) {
        x[n] = 0.01f * noise(&seed);
        if (n >= BEGIN && n < END) x[n] += (float)(0.1 * sin(2 * M_PI * 440 * n / RATE));
    }
    wt_vad *vad = vad_of(&(wt_vad_config){.channels = 1});
    assert_int_equal(wt_vad_window_frames(vad), WINDOW);
    assert_int_equal(wt_vad_latency_frames(vad), 2 * WINDOW);
    assert_int_equal(wt_vad_process(vad, (const float *[]){x}, N, speech), N / WINDOW);
    assert_true(share(speech, 0, BEGIN / WINDOW + 1) == 0); // known after two windows, not before
    assert_true(share(speech, BEGIN / WINDOW + 1, END / WINDOW + 20) == 1);
    assert_true(share(speech, END / WINDOW + 20, N / WINDOW) == 0); // 200 ms hangover, then silence
    wt_vad_destroy(vad);
}

// White noise of 480 values to a window wanders by 0.3 dB; nothing near the 8 dB threshold. The step of 20 dB must be
// background once the minima of the last 2 s are new.
static void steady_noise_is_not_speech_and_louder_noise_becomes_background(void **state)
{
    (void)state;
    enum { N = 12 * RATE, STEP = 6 * RATE };
    float *x = malloc(sizeof *x * N);
    static bool speech[N / WINDOW + 1];
    uint64_t seed = 2;
    for (int n = 0; n < N; n++) x[n] = (n < STEP ? 0.01f : 0.1f) * noise(&seed);
    wt_vad *vad = vad_of(&(wt_vad_config){.channels = 1});
    wt_vad_process(vad, (const float *[]){x}, N, speech);
    assert_true(share(speech, 0, STEP / WINDOW) == 0);
    assert_true(share(speech, STEP / WINDOW + 230, N / WINDOW) == 0); // 2 s, 50 ms of smoothing, 200 ms of hangover
    assert_true(fabs(wt_vad_floor_db(vad, 0) - 10 * log10(0.01 / 3)) < 1.5);
    wt_vad_destroy(vad);
    free(x);
}

static void silence_and_offsets_are_not_speech(void **state)
{
    (void)state;
    static float zeros[RATE], offset[RATE];
    for (int n = 0; n < RATE; n++) offset[n] = n < RATE / 2 ? 0 : 0.0005f;
    wt_vad *vad = vad_of(&(wt_vad_config){0});
    bool speech[2 * (RATE / WINDOW + 1)];
    assert_int_equal(wt_vad_process(vad, (const float *[]){zeros, offset}, RATE, speech), 100);
    assert_true(share(speech, 0, 200) == 0);
    assert_true(wt_vad_level_db(vad, 0) == -200);
    wt_vad_destroy(vad);
}

// Truth: windows of the clean recording within 30 dB of its loudest are speech; pauses are windows with 250 ms of
// silence (45 dB below) before them, the hangover and the smoothing over. Found: 553 of 556 and 2 of 95. The noise has
// bangs 10 to 17 dB above its calm, which no detector by energy can tell from speech: 0.27 of its windows.
static void speech_at_0_db_is_found_and_pauses_are_not(void **state)
{
    (void)state;
    wt_audio clean = load("audio/noisy/clean_freesound_33711.wav"), noisy = load("audio/noisy/noisy_snr0.wav");
    const int n_frames = (int)noisy.n_frames, n_windows = n_frames / WINDOW;
    bool *speech = calloc((size_t)n_windows + 1, 1), *in_noise = calloc((size_t)n_windows + 1, 1);
    wt_vad *vad = vad_of(&(wt_vad_config){.channels = 1});
    wt_vad_process(vad, (const float *[]){noisy.samples}, n_frames, speech);
    for (int n = 0; n < n_frames; n++) noisy.samples[n] -= 2 * clean.samples[n]; // the mix holds it at +6 dB
    wt_vad_reset(vad);
    wt_vad_process(vad, (const float *[]){noisy.samples}, n_frames, in_noise);
    double *power = calloc((size_t)n_windows, sizeof *power), peak = 0;
    for (int k = 0; k < n_windows; k++) {
        for (int n = 0; n < WINDOW; n++) power[k] += pow(clean.samples[k * WINDOW + n], 2);
        peak = fmax(peak, power[k]);
    }
    int n_loud = 0, n_found = 0, n_pause = 0, n_false = 0, n_silent = 0;
    for (int k = 200; k < n_windows; k++) { // the floor has seen 2 s
        n_silent = power[k] < 3e-5 * peak ? n_silent + 1 : 0;
        if (power[k] > 0.001 * peak) n_loud++, n_found += speech[k];
        if (n_silent > 25) n_pause++, n_false += speech[k];
    }
    if (n_found < 0.98 * n_loud || n_false > 0.05 * n_pause || share(in_noise, 200, n_windows) > 0.35)
        fail_msg(
            "speech %d of %d windows, want 98 %%; false %d of %d in pauses, want 5 %%; noise alone %.2f, want 0.35",
            n_found, n_loud, n_false, n_pause, share(in_noise, 200, n_windows));
    wt_vad_destroy(vad);
    free(speech), free(in_noise), free(power);
    wt_audio_free(&clean), wt_audio_free(&noisy);
}

// Clean speech between pauses of 2 s with noise at -75 dB: a pause is quiet from 0.5 s on (the hangover, and recordings
// that end with a breath); what is within 20 dB of the loudest window is speech, but for a first window at each onset.
static void clean_speech_is_found_between_pauses(void **state)
{
    (void)state;
    const char *const files[] = {"audio/speech/jfk.wav", "audio/speech/1089-134686-0000.flac",
                                 "audio/speech/1272-141231-0002.flac"};
    enum { RATE_16K = 16000, SHORT = 160, PAUSE = 2 * RATE_16K };
    wt_vad *vad = vad_of(&(wt_vad_config){.rate_hz = RATE_16K, .channels = 1});
    static float quiet[PAUSE];
    static bool decided[4000];
    uint64_t seed = 8;
    for (int n = 0; n < PAUSE; n++) quiet[n] = 0.0003f * noise(&seed);
    for (int k = 0; k < 3; k++) {
        wt_audio audio = load(files[k]);
        const int n_windows = (int)audio.n_frames / SHORT;
        int n_loud = 0, n_found = 0;
        double peak = 0, power[4000];
        assert_int_equal(audio.rate_hz, RATE_16K);
        assert_true(n_windows < 4000);
        wt_vad_process(vad, (const float *[]){quiet}, PAUSE, decided);
        if (k > 0) assert_true(share(decided, 50, PAUSE / SHORT) == 0);
        wt_vad_process(vad, (const float *[]){audio.samples}, n_windows * SHORT, decided);
        for (int w = 0; w < n_windows; w++) {
            power[w] = 0;
            for (int n = 0; n < SHORT; n++) power[w] += pow(audio.samples[w * SHORT + n], 2);
            peak = fmax(peak, power[w]);
        }
        for (int w = 0; w < n_windows; w++)
            if (power[w] > 0.01 * peak) n_loud++, n_found += decided[w];
        if (n_found < 0.96 * n_loud) fail_msg("%s: %d of %d windows found, want 96 %%", files[k], n_found, n_loud);
        wt_audio_free(&audio);
    }
    wt_vad_destroy(vad);
}

static void blocks_do_not_matter(void **state)
{
    (void)state;
    enum { N = RATE };
    static float a[N], b[N];
    static bool whole[2 * (N / WINDOW + 1)], parts[2 * (N / WINDOW + 1)];
    const int sizes[] = {1, 63, 64, 65, 253, 1000};
    uint64_t seed = 3;
    for (int n = 0; n < N; n++) {
        a[n] = (n / 9000 % 2 ? 0.3f : 0.01f) * noise(&seed);
        b[n] = n == 20000 ? NAN : (n / 7000 % 2 ? 0.01f : 0.2f) * noise(&seed);
    }
    wt_vad *vad = vad_of(&(wt_vad_config){0});
    const int n_windows = wt_vad_process(vad, (const float *[]){a, b}, N, whole);
    const double floor_db = wt_vad_floor_db(vad, 1);
    wt_vad_reset(vad);
    int n_ended = 0;
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 6] < N - at ? sizes[turn % 6] : N - at;
        RT_SECTION
        {
            n_ended += wt_vad_process(vad, (const float *[]){a + at, b + at}, n, parts + 2 * n_ended);
        }
        at += n;
    }
    assert_int_equal(n_windows, n_ended);
    assert_memory_equal(whole, parts, 2 * (size_t)n_windows);
    assert_true(wt_vad_floor_db(vad, 1) == floor_db && floor_db > -60);
    assert_true(wt_vad_active(vad, 0) == whole[2 * n_windows - 2]);
    wt_vad_destroy(vad);
}

static wt_status create_vad(void *user)
{
    return wt_vad_create(&(wt_vad_config){0}, user);
}

static void destroy_vad(void *user)
{
    wt_vad_destroy(*(wt_vad **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_vad *vad = NULL;
    assert_true(assert_survives_failing_alloc(create_vad, destroy_vad, &vad) >= 1);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    wt_vad *vad = NULL;
    assert_fails(wt_vad_create(&(wt_vad_config){.rate_hz = 1}, &vad), WT_ERR_BAD_ARG,
                 "vad: rate 1 Hz, want 8000..384000");
    assert_fails(wt_vad_create(&(wt_vad_config){.channels = 65}, &vad), WT_ERR_BAD_ARG, "vad: 65 channels, want 1..64");
    assert_fails(wt_vad_create(&(wt_vad_config){.enter_db = 3}, &vad), WT_ERR_BAD_ARG,
                 "vad: enters at 3 and leaves at 4 dB, want 0 < leave <= enter <= 60");
    assert_fails(wt_vad_create(&(wt_vad_config){.min_db = NAN}, &vad), WT_ERR_BAD_ARG,
                 "vad: minimum nan dB, want -200..0");
    assert_fails(wt_vad_create(&(wt_vad_config){.hangover_ms = -1}, &vad), WT_ERR_BAD_ARG,
                 "vad: hangover -1 ms, want 0..10000");
    assert_null(vad);
}

// ---- whole signals

enum { LINES = 5, LONG = 3 * 22050 + 77, STEP = 221 };

/// Noise at its own level in each line, with tones that come and go; one starts from an offset, one holds a NaN and an
/// infinity at windows' ends, one is silent.
static float *many_lines(void)
{
    float *x = malloc(sizeof *x * LINES * LONG);
    assert_non_null(x);
    uint64_t seed = 4;
    for (int line = 0; line < LINES; line++)
        for (int n = 0; n < LONG; n++) {
            const bool on = (n + 3000 * line) % 14000 < 5000;
            x[line * LONG + n] = (line == 1 ? 0.4f : 0) + 0.003f * (float)(1 + line) * noise(&seed) +
                                 (on ? 0.1f * sinf(0.11f * (float)(n % 5700)) : 0);
        }
    x[2 * LONG + 40 * STEP - 1] = NAN, x[2 * LONG + 90 * STEP] = INFINITY, x[2 * LONG + 90 * STEP + 5] = 3e38f;
    memset(x + 3 * LONG, 0, sizeof *x * LONG);
    return x;
}

/// Decisions of each line by a streaming detector.
static int *decisions(const float *x, int n_windows)
{
    int *want = calloc((size_t)(LINES * n_windows), sizeof *want);
    bool speech[2];
    assert_non_null(want);
    for (int line = 0; line < LINES; line++) {
        wt_vad *vad = vad_of(&(wt_vad_config){.rate_hz = 22050, .channels = 1});
        assert_int_equal(wt_vad_window_frames(vad), STEP);
        for (int w = 0; w < n_windows; w++) {
            assert_int_equal(wt_vad_process(vad, (const float *[]){x + line * LONG + w * STEP}, STEP, speech), 1);
            want[line * n_windows + w] = speech[0];
        }
        wt_vad_destroy(vad);
    }
    return want;
}

static void same_decisions(const int *want, int n_want, const int *got, int first, int n_got, const char *what)
{
    for (int line = 0; line < LINES; line++)
        for (int w = 0; w < n_got; w++)
            if (got[line * n_got + w] != want[line * n_want + first + w])
                fail_msg("%s: line %d, window %d: %d, want %d", what, line, first + w, got[line * n_got + w],
                         want[line * n_want + first + w]);
}

/// All windows at once, then in parts of which one is empty and each begins anywhere in the lines it is given.
static void check_plan(wt_device *device)
{
    static const int ends[] = {1, 1, 39, 91, 299};
    float *x = many_lines();
    const wt_vad_plan_config config = {.vad = {.rate_hz = 22050}, .n_samples = LONG, .n_lines = LINES};
    wt_vad_plan *plan;
    wt_stream *stream;
    wt_buffer *pcm, *state, *speech;
    assert_ok(wt_vad_plan_create(device, &config, &plan));
    const int n_windows = wt_vad_plan_windows(plan);
    assert_int_equal(n_windows, LONG / STEP);
    assert_int_equal(wt_vad_plan_window_frames(plan), STEP);
    int *want = decisions(x, n_windows), *got = calloc((size_t)(LINES * n_windows), sizeof *got), n_speech = 0;
    for (int k = 0; k < LINES * n_windows; k++) n_speech += want[k];
    assert_in_range(n_speech, 200, LINES * n_windows - 400); // both kinds
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof *x * LINES * LONG, &pcm));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 8 + wt_vad_plan_state_bytes(plan), &state));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, sizeof *got * (size_t)(LINES * n_windows), &speech));
    assert_ok(wt_stream_upload(stream, pcm, 0, x, sizeof *x * LINES * LONG));
    assert_ok(wt_vad_plan_enqueue(plan, stream, pcm, 0, NULL, NULL, 0, speech, 0));
    assert_ok(wt_stream_download(stream, got, speech, 0, sizeof *got * (size_t)(LINES * n_windows)));
    assert_ok(wt_stream_synchronize(stream));
    same_decisions(want, n_windows, got, 0, n_windows, "whole");
    assert_ok(wt_stream_fill(stream, state, 0, 0xff, 8 + wt_vad_plan_state_bytes(plan)));
    for (int k = 0, first = 0; k < 5; first = ends[k++]) {
        const wt_vad_part part = {(int64_t)first * STEP, ends[k] - first, k > 0};
        assert_ok(wt_vad_plan_enqueue(plan, stream, pcm, 0, &part, state, 8, speech, 0));
        if (part.n_windows)
            assert_ok(wt_stream_download(stream, got, speech, 0, sizeof *got * (size_t)(LINES * part.n_windows)));
        assert_ok(wt_stream_synchronize(stream));
        same_decisions(want, n_windows, got, first, part.n_windows, "in parts");
    }
    assert_fails(
        wt_vad_plan_enqueue(plan, stream, pcm, 0, &(wt_vad_part){LONG - STEP + 1, 1, false}, state, 8, speech, 0),
        WT_ERR_BAD_ARG, "vad: 1 windows from sample 66007, want them within lines of 66227");
    assert_fails(wt_vad_plan_enqueue(plan, stream, pcm, 0, &(wt_vad_part){0, 1, false}, state, 4, speech, 0),
                 WT_ERR_BAD_ARG, "vad: state offset 4, want a multiple of 8");
    assert_fails(wt_vad_plan_enqueue(plan, stream, pcm, 4, NULL, NULL, 0, speech, 0), WT_ERR_BAD_ARG,
                 "vad: pcm takes 1324540 bytes at 4, the buffer has 1324540");
    wt_buffer_destroy(pcm), wt_buffer_destroy(state), wt_buffer_destroy(speech), wt_stream_destroy(stream);
    wt_vad_plan_destroy(plan);
    wt_device_close(device);
    free(x), free(want), free(got);
}

static void whole_signals_get_the_decisions_of_a_stream(void **state)
{
    (void)state;
    check_plan(cpu_device());
}

static void a_gpu_decides_as_the_cpu(void **state)
{
    (void)state;
    check_plan(gpu_device());
}

static void a_part_on_the_calling_thread_is_that_of_a_stream(void **state)
{
    (void)state;
    float *x = many_lines();
    wt_vad_plan *plan;
    assert_ok(wt_vad_plan_create(
        NULL, &(wt_vad_plan_config){.vad = {.rate_hz = 22050}, .n_samples = LONG, .n_lines = LINES}, &plan));
    const int n_windows = wt_vad_plan_windows(plan);
    int *want = decisions(x, n_windows), *got = calloc((size_t)(LINES * n_windows), sizeof *got);
    double *between = calloc(1, wt_vad_plan_state_bytes(plan));
    RT_SECTION wt_vad_plan_run(plan, x, NULL, NULL, got);
    same_decisions(want, n_windows, got, 0, n_windows, "whole");
    RT_SECTION wt_vad_plan_run(plan, x, &(wt_vad_part){0, 50, false}, between, got);
    same_decisions(want, n_windows, got, 0, 50, "first part");
    RT_SECTION wt_vad_plan_run(plan, x, &(wt_vad_part){50 * STEP, 200, true}, between, got);
    same_decisions(want, n_windows, got, 50, 200, "second part");
    wt_vad_plan_destroy(plan);
    free(x), free(want), free(got), free(between);
}

static void plans_refuse_bad_sizes(void **state)
{
    (void)state;
    wt_vad_plan *plan = NULL;
    assert_fails(wt_vad_plan_create(NULL, &(wt_vad_plan_config){.n_samples = -1}, &plan), WT_ERR_BAD_ARG,
                 "vad: 1 lines of -1 samples, want 1 or more of 0 .. 1030792150560");
    assert_fails(wt_vad_plan_create(NULL, &(wt_vad_plan_config){.n_samples = 1, .n_lines = -2}, &plan), WT_ERR_BAD_ARG,
                 "vad: -2 lines of 1 samples, want 1 or more of 0 .. 1030792150560");
    assert_fails(wt_vad_plan_create(NULL, &(wt_vad_plan_config){.vad = {.rate_hz = 7999}}, &plan), WT_ERR_BAD_ARG,
                 "vad: rate 7999 Hz, want 8000..384000");
    assert_null(plan);
    wt_vad_plan_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tone_in_noise_is_found_on_time_and_let_go),
        cmocka_unit_test(steady_noise_is_not_speech_and_louder_noise_becomes_background),
        cmocka_unit_test(silence_and_offsets_are_not_speech),
        cmocka_unit_test(speech_at_0_db_is_found_and_pauses_are_not),
        cmocka_unit_test(clean_speech_is_found_between_pauses),
        cmocka_unit_test(blocks_do_not_matter),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(whole_signals_get_the_decisions_of_a_stream),
        cmocka_unit_test(a_gpu_decides_as_the_cpu),
        cmocka_unit_test(a_part_on_the_calling_thread_is_that_of_a_stream),
        cmocka_unit_test(plans_refuse_bad_sizes),
    };
    return cmocka_run_group_tests_name("vad", tests, NULL, NULL);
}
