#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

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
    };
    return cmocka_run_group_tests_name("vad", tests, NULL, NULL);
}
