#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/audio_file.h>
#include <warptone/loudness.h>
#include <warptone/preset.h>

#define RATE 48000.0

static double integrated_lufs(const float *x, int channels, int stride, int n_frames, int rate_hz)
{
    wt_loudness *meter;
    wt_loudness_values values;
    const float *in[2] = {x, x + (channels - 1) * stride};
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = rate_hz, .channels = channels}, &meter));
    wt_loudness_process(meter, in, n_frames);
    wt_loudness_query(meter, &values);
    wt_loudness_destroy(meter);
    return values.integrated_lufs;
}

static wt_chain *build(const wt_setting *settings, int n, int channels)
{
    const wt_node_desc node = {.type = "leveler", .settings = settings, .n_settings = n};
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels},
                              &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain));
    return chain;
}

// Steady noise 10 dB off in either direction: on target from the first sound with look-ahead. 0.2 LU: the scatter of
// 400 ms of noise.
static void steady_sound_reaches_the_target(void **state)
{
    (void)state;
    enum { FRAMES = 240000, AHEAD = 24000 };
    const wt_setting settings[] = {{"lookahead_ms", NULL, 500}, {"target_lufs", NULL, -20}};
    float *x = noise_signal(2 * FRAMES, 3), *y = calloc(2 * FRAMES, sizeof *y);
    for (int loud = 0; loud <= 1; loud++) {
        for (int n = 0; n < 2 * FRAMES; n++) x[n] *= loud ? 10.0f : 0.055f; // to -30, then to -10 LUFS
        double before = integrated_lufs(x, 2, FRAMES, FRAMES, 48000);
        assert_true(fabs(fabs(before + 20) - 10) < 3);
        wt_chain *chain = build(settings, 2, 2);
        assert_int_equal(wt_chain_latency_frames(chain), AHEAD);
        process_blocks(chain, x, y, FRAMES, 640, FRAMES);
        double after = integrated_lufs(y + AHEAD, 2, FRAMES, FRAMES - AHEAD, 48000);
        if (fabs(after + 20) > 0.2) fail_msg("%.2f LUFS in, %.2f out, want -20", before, after);
        wt_chain_destroy(chain);
    }
    free(x), free(y);
}

// A pause 30 dB down is not lifted: the gain holds within 0.1 dB over its three seconds.
static void pauses_are_left_alone(void **state)
{
    (void)state;
    enum { FRAMES = 384000, PAUSE = 240000 };
    const wt_setting settings[] = {{"target_lufs", NULL, -20}, {"speed_db_s", NULL, 20}};
    float *x = noise_signal(FRAMES, 3), *y = calloc(FRAMES, sizeof *y), shown[2];
    for (int n = PAUSE; n < FRAMES; n++) x[n] *= 0.0316f;
    wt_chain *chain = build(settings, 2, 1);
    process_blocks(chain, x, y, PAUSE, 640, FRAMES);
    assert_int_equal(wt_chain_readings(chain, 0, shown, 2), 2);
    float before = shown[0];
    process_blocks(chain, x + PAUSE, y + PAUSE, FRAMES - PAUSE, 640, FRAMES);
    wt_chain_readings(chain, 0, shown, 2);
    assert_true(before < -3 && fabsf(shown[0] - before) < 0.1f);
    wt_chain_destroy(chain);
    free(x), free(y);
}

static void the_gain_moves_no_faster_than_told(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"target_lufs", NULL, -40}, {"speed_db_s", NULL, 3}, {"max_gain_db", NULL, 40}};
    enum { FRAMES = 4800 };
    float *x = noise_signal(FRAMES, 3), y[FRAMES], before = 0, shown[2];
    wt_chain *chain = build(settings, 3, 1);
    for (int k = 0; k < 40; k++) {
        process_blocks(chain, x, y, FRAMES, FRAMES, FRAMES);
        wt_chain_readings(chain, 0, shown, 2);
        assert_true(shown[0] <= before && before - shown[0] < 0.3001f); // 3 dB/s for 0.1 s
        before = shown[0];
    }
    assert_true(before < -10); // 3.7 s after the first 400 ms
    wt_chain_destroy(chain);
    free(x);
}

static const wt_setting some[] = {{"lookahead_ms", NULL, 7}, {"speed_db_s", NULL, 20}};
static const wt_node_desc some_node = {.type = "leveler", .settings = some, .n_settings = 2};
static const wt_chain_desc some_chain = {.nodes = &some_node, .n_nodes = 1};

static void blocks_change_nothing_and_the_latency_is_exact(void **state)
{
    (void)state;
    check_block_sizes(&some_chain, 1, 8000);
    check_block_sizes(&some_chain, 2, 8000);
    check_latency(&some_chain, RATE);
}

static void gpu_agrees_while_the_target_moves(void **state)
{
    (void)state;
    check_cuda(&some_chain, 3, 8000, 0, 0, -30, 100); // 6 steps in 5000 frames; log and exp within 2 ulp
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"lookahead_ms", NULL, 20000}};
    const wt_node_desc node = {.type = "leveler", .settings = settings, .n_settings = 1};
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: leveler: lookahead_ms is 20000, want 0..10000");
    const wt_node_desc plain = {.type = "leveler"};
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = 2000, .channels = 1},
                                 &(wt_chain_desc){.nodes = &plain, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: leveler: rate 2000 Hz, want 4000 or more");
}

// The preset's promise, on speech that came in between -15 and -27 LUFS.
static void podcast_master_lands_at_minus_16_lufs(void **state)
{
    (void)state;
    const char *const files[] = {"audio/speech/jfk.wav", "audio/speech/1089-134686-0000.flac",
                                 "audio/speech/1272-141231-0002.flac"};
    if (!shared_data(files[0])) {
        printf("skipped: no shared data\n");
        skip();
    }
    for (int k = 0; k < 3; k++) {
        wt_audio audio;
        wt_preset *preset;
        wt_chain *chain;
        assert_ok(wt_audio_load(shared_data(files[k]), 0, &audio));
        assert_ok(wt_preset_load("podcast-master", &preset));
        assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = audio.rate_hz, .channels = 1}, &chain));
        int n_frames = (int)audio.n_frames, latency = wt_chain_latency_frames(chain), length = n_frames + latency;
        float *x = calloc((size_t)length, sizeof *x), *y = calloc((size_t)length, sizeof *y);
        memcpy(x, audio.samples, sizeof *x * (size_t)n_frames);
        process_blocks(chain, x, y, length, 256, length);
        double lufs = integrated_lufs(y + latency, 1, length, n_frames, audio.rate_hz);
        if (fabs(lufs + 16) > 1) fail_msg("%s: %.1f LUFS, want -16 within 1", files[k], lufs);
        free(x), free(y);
        wt_chain_destroy(chain), wt_preset_destroy(preset), wt_audio_free(&audio);
    }
}

int main(void)
{
    setenv("WARPTONE_PRESETS", "presets", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_sound_reaches_the_target),
        cmocka_unit_test(pauses_are_left_alone),
        cmocka_unit_test(the_gain_moves_no_faster_than_told),
        cmocka_unit_test(blocks_change_nothing_and_the_latency_is_exact),
        cmocka_unit_test(gpu_agrees_while_the_target_moves),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(podcast_master_lands_at_minus_16_lufs),
    };
    return cmocka_run_group_tests_name("leveler", tests, NULL, NULL);
}
