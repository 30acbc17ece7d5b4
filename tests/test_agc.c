#include "support/failing_alloc.h"
#include "support/realtime.h"
#include "support/testing.h"

#include <warptone/agc.h>

#include <math.h>
#include <string.h>

enum { RATE = 48000 };

static wt_agc *agc_of(const wt_agc_config *config)
{
    wt_agc *agc = NULL;
    assert_ok(wt_agc_create(config, &agc));
    return agc;
}

// One second of a 1 kHz sine whose RMS is `level_db`, in place through the AGC; the level of its last 0.1 s.
static double second_of_sine_db(wt_agc *agc, double level_db)
{
    static float x[RATE];
    double power = 0;
    for (int n = 0; n < RATE; n++) x[n] = (float)(M_SQRT2 * pow(10, level_db / 20) * sin(2 * M_PI * (n % 48) / 48));
    wt_agc_process(agc, (const float *[]){x}, (float *[]){x}, RATE);
    for (int n = RATE - 4800; n < RATE; n++) power += (double)x[n] * x[n] / 4800;
    return 10 * log10(power);
}

static void quiet_and_loud_speech_reach_the_target_at_their_rates(void **state)
{
    (void)state;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    assert_true(fabs(second_of_sine_db(agc, -30) - (-30 + 6 * 0.95)) < 0.5); // 6 dB in a second, its end averaged
    assert_true(fabs(second_of_sine_db(agc, -30) - -20) < 0.5);
    second_of_sine_db(agc, -6);                                 // 24 dB down at 24 dB a second
    assert_true(fabs(second_of_sine_db(agc, -6) - -20) < 0.1);
    for (int k = 0; k < 9; k++) second_of_sine_db(agc, -48);
    assert_true(fabs(second_of_sine_db(agc, -48) - -24) < 0.1); // the gain ends at 24 dB
    wt_agc_destroy(agc);
}

static void pauses_leave_the_gain_alone(void **state)
{
    (void)state;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    for (int k = 0; k < 3; k++) second_of_sine_db(agc, -30);
    second_of_sine_db(agc, -80); // the smoothed level falls through the gate within 0.2 s
    const double gain_db = wt_agc_gain_db(agc);
    for (int k = 0; k < 5; k++) second_of_sine_db(agc, -80);
    assert_true(wt_agc_gain_db(agc) == gain_db);
    assert_true(fabs(gain_db - 10) < 2);
    wt_agc_destroy(agc);
}

static void gain_moves_without_steps_and_blocks_do_not_matter(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float ones[N], whole[N], parts[N];
    const int sizes[] = {1, 63, 64, 65, 253};
    for (int n = 0; n < N; n++) ones[n] = 0.01f;
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1, .rise_db_per_s = 100});
    wt_agc_process(agc, (const float *[]){ones}, (float *[]){whole}, N);
    for (int n = 1; n < N; n++) // 100 dB/s is 0.00024 a frame
        assert_true(fabsf(whole[n] / whole[n - 1] - 1) < 0.0003f);
    wt_agc_reset(agc);
    for (int at = 0, turn = 0; at < N; turn++) {
        const int n = sizes[turn % 5] < N - at ? sizes[turn % 5] : N - at;
        wt_agc_process(agc, (const float *[]){ones + at}, (float *[]){parts + at}, n);
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    wt_agc_destroy(agc);
}

static void bad_samples_do_not_move_the_gain(void **state)
{
    (void)state;
    float x[128] = {0};
    wt_agc *agc = agc_of(&(wt_agc_config){.channels = 1});
    x[3] = NAN;
    x[70] = INFINITY;
    RT_SECTION
    {
        wt_agc_process(agc, (const float *[]){x}, (float *[]){x}, 128);
    }
    assert_true(wt_agc_gain_db(agc) == 0);
    wt_agc_destroy(agc);
}

static wt_status create_agc(void *user)
{
    return wt_agc_create(&(wt_agc_config){0}, user);
}

static void destroy_agc(void *user)
{
    wt_agc_destroy(*(wt_agc **)user);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    wt_agc *agc = NULL;
    assert_true(assert_survives_failing_alloc(create_agc, destroy_agc, &agc) >= 1);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    wt_agc *agc = NULL;
    assert_fails(wt_agc_create(&(wt_agc_config){.rate_hz = 1}, &agc), WT_ERR_BAD_ARG,
                 "agc: rate 1 Hz, want 8000..384000");
    assert_fails(wt_agc_create(&(wt_agc_config){.channels = 65}, &agc), WT_ERR_BAD_ARG, "agc: 65 channels, want 1..64");
    assert_fails(wt_agc_create(&(wt_agc_config){.target_db = 3}, &agc), WT_ERR_BAD_ARG,
                 "agc: target 3 dB, want -100..0");
    assert_fails(wt_agc_create(&(wt_agc_config){.max_gain_db = 61}, &agc), WT_ERR_BAD_ARG,
                 "agc: gain of 0 to 61 dB, want -60..0 to 0..60");
    assert_null(agc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_and_loud_speech_reach_the_target_at_their_rates),
        cmocka_unit_test(pauses_leave_the_gain_alone),
        cmocka_unit_test(gain_moves_without_steps_and_blocks_do_not_matter),
        cmocka_unit_test(bad_samples_do_not_move_the_gain),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(refuses_bad_settings),
    };
    return cmocka_run_group_tests_name("agc", tests, NULL, NULL);
}
