#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/loudness.h>

#define RATE 48000.0
enum { SECOND = 48000, PEAK = 0, RMS, TRUE_PEAK, MOMENTARY, SHORT_TERM, INTEGRATED, N_READINGS };

static wt_chain *metered(int channels, double rate_hz, const float *x, int n_frames, float *readings)
{
    wt_chain *chain = node_chain("meter", NULL, 0, channels, rate_hz);
    float *y = calloc((size_t)channels * (size_t)n_frames, sizeof *y);
    process_blocks(chain, x, y, n_frames, 480, n_frames);
    assert_memory_equal(x, y, sizeof *y * (size_t)channels * (size_t)n_frames);
    free(y);
    for (int k = 0; k < N_READINGS; k++) readings[k] = reading(chain, 0, k);
    return chain;
}

// EBU Tech 3341, 1 and 2: a stereo sine of 1 kHz at -23 dBFS reads -23 LUFS everywhere, at any rate.
static void a_tone_of_1_khz_reads_its_level(void **state)
{
    (void)state;
    const double rates[] = {44100, 48000, 96000};
    for (int k = 0; k < 3; k++) {
        int n_frames = (int)rates[k] * 4;
        float *x = malloc(sizeof *x * (size_t)n_frames * 2), r[N_READINGS];
        sine_signal(x, n_frames, 1000, rates[k], pow(10, -23 / 20.0), 0);
        memcpy(x + n_frames, x, sizeof *x * (size_t)n_frames);
        wt_chain_destroy(metered(2, rates[k], x, n_frames, r));
        for (int which = MOMENTARY; which <= INTEGRATED; which++) assert_true(fabsf(r[which] + 23) < 0.02f);
        assert_true(fabsf(r[PEAK] + 23) < 0.03f);
        assert_true(fabsf(r[TRUE_PEAK] + 23) < 0.05f);
        assert_true(fabsf(r[RMS] + 23 + 3.0103f) < 0.01f);
        free(x);
    }
}

// As Tech 3341, 3: the relative gate leaves the middle. Against the library's other meter too.
static void gates_agree_with_the_loudness_meter(void **state)
{
    (void)state;
    enum { PART = 6 * SECOND, FRAMES = 3 * PART };
    float *x = malloc(sizeof *x * 2 * FRAMES), r[N_READINGS];
    sine_signal(x, FRAMES, 1000, RATE, 1, 0);
    for (int n = 0; n < FRAMES; n++) x[n] *= from_db(n / PART == 1 ? -23 : -40);
    memcpy(x + FRAMES, x, sizeof *x * FRAMES);
    wt_chain_destroy(metered(2, RATE, x, FRAMES, r));
    wt_loudness *judge;
    wt_loudness_values want;
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = SECOND}, &judge));
    wt_loudness_process(judge, (const float *const[]){x, x + FRAMES}, FRAMES);
    wt_loudness_query(judge, &want);
    assert_true(fabs(want.integrated_lufs + 23) < 0.3); // with the blocks across both edges
    assert_true(fabs(r[INTEGRATED] - want.integrated_lufs) < 0.01); // bins of 0.1 LU: no block lies near the gate
    assert_true(fabs(r[MOMENTARY] - want.momentary_lufs) < 0.01);
    assert_true(fabs(r[SHORT_TERM] - want.short_term_lufs) < 0.01);
    assert_true(fabs(r[TRUE_PEAK] - want.true_peak_db) < 0.001);
    assert_true(fabs(r[PEAK] - want.sample_peak_db) < 0.001);
    wt_loudness_destroy(judge);
    free(x);
}

static void noise_in_six_channels_agrees_with_the_loudness_meter(void **state)
{
    (void)state;
    enum { FRAMES = 4 * SECOND, CHANNELS = 6 };
    float *x = noise_signal(CHANNELS * FRAMES, 21), r[N_READINGS];
    const float *planes[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) planes[c] = x + c * FRAMES;
    for (int n = 0; n < CHANNELS * FRAMES; n++) x[n] *= 0.2f + 0.15f * (float)sin(n * 2e-4);
    wt_chain_destroy(metered(CHANNELS, RATE, x, FRAMES, r));
    wt_loudness *judge;
    wt_loudness_values want;
    assert_ok(wt_loudness_create(&(wt_loudness_config){.rate_hz = SECOND, .channels = CHANNELS}, &judge));
    wt_loudness_process(judge, planes, FRAMES);
    wt_loudness_query(judge, &want);
    assert_true(fabs(r[INTEGRATED] - want.integrated_lufs) < 0.01);
    assert_true(fabs(r[SHORT_TERM] - want.short_term_lufs) < 0.01);
    assert_true(fabs(r[TRUE_PEAK] - want.true_peak_db) < 0.001);
    wt_loudness_destroy(judge);
    free(x);
}

static void the_true_peak_lies_between_the_samples(void **state)
{
    (void)state;
    static float x[SECOND];
    float r[N_READINGS];
    sine_signal(x, SECOND, RATE / 4, RATE, 0.5, M_PI / 4); // Tech 3341, 16: every sample is 3 dB low
    wt_chain_destroy(metered(1, RATE, x, SECOND, r));
    assert_true(fabsf(r[PEAK] + 9.031f) < 0.01f);
    assert_true(r[TRUE_PEAK] > -6.02f - 0.4f && r[TRUE_PEAK] < -6.02f + 0.2f); // the tolerance of Tech 3341
}

static void silence_shows_the_floor(void **state)
{
    (void)state;
    static float x[SECOND];
    float r[N_READINGS];
    wt_chain_destroy(metered(1, RATE, x, SECOND, r));
    for (int k = 0; k < N_READINGS; k++) assert_true(r[k] == -120);
}

// Audio passes; so the readings are what has to be the same, to the bit.
static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    enum { FRAMES = 20000 };
    const int sizes[] = {FRAMES, 1, 31, 33, 64, 253, 256}, channels[] = {1, 2, 11};
    for (int k = 0; k < 3; k++) {
        float *x = noise_signal(channels[k] * FRAMES, 4), *y = malloc(sizeof *y * (size_t)channels[k] * FRAMES);
        float first[N_READINGS], r[N_READINGS];
        for (int pass = 0; pass < 7; pass++) {
            wt_chain *chain = node_chain("meter", NULL, 0, channels[k], RATE);
            process_blocks(chain, x, y, FRAMES, sizes[pass], FRAMES);
            assert_int_equal(wt_chain_readings(chain, 0, pass ? r : first, N_READINGS), N_READINGS);
            if (pass) assert_memory_equal(first, r, sizeof r);
            wt_chain_destroy(chain);
        }
        free(x), free(y);
    }
    check_node("meter", NULL, 0);
}

static void cuda_passes_audio_unchanged(void **state)
{
    (void)state;
    check_node_cuda("meter", NULL, 0, -1, 0, 300);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "meter", NULL, 0);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = 2000, .channels = 1}, &desc, &chain), WT_ERR_BAD_ARG,
                 "chain: meter: rate 2000 Hz, want 4000 or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tone_of_1_khz_reads_its_level),
        cmocka_unit_test(gates_agree_with_the_loudness_meter),
        cmocka_unit_test(noise_in_six_channels_agrees_with_the_loudness_meter),
        cmocka_unit_test(the_true_peak_lies_between_the_samples),
        cmocka_unit_test(silence_shows_the_floor),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_passes_audio_unchanged),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
