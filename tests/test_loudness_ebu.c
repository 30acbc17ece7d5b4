// The signals of EBU Tech 3341 (V4, table 1) and Tech 3342 (V4, table 1), synthesised from their descriptions and held
// to their tolerances.
//
// The documents were not at hand; written down from knowledge of them. Checked against public lists of the EBU's test
// set v05 and what meters must say of its files: the expected values and tolerances of 1 to 6 and 9 to 23 (+0.1 -0.1
// LU, +0.2 -0.4 dBTP), "constant after 3 s" and "after 1 s" of 9 and 12, the rising values of 11 and 14, the lengths of
// 1, 4, 5, 6, 9 and 12, and the ranges of 3342's 1 to 4. Not checked: how long the two levels of 9 and 12 last, which
// must and do average to -23 LUFS (cases_9_and_12_average_to_their_value), the steps by which 10, 11, 13 and 14 begin
// later, frequencies and phases of 15 to 19, and how the transient of 20 to 23 is made. 7 and 8, and 3342's 5 and 6,
// are recordings.
#include "support/loudness_check.h"
#include "support/testing.h"

static void tech_3341_cases_1_and_2_steady_tones(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const double level = k ? -33 : -23;
        wt_loudness_values v = LOUDNESS_PROGRAMME({level, 20});
        assert_near(v.momentary_lufs, level, 0.1);
        assert_near(v.short_term_lufs, level, 0.1);
        assert_near(v.integrated_lufs, level, 0.1);
    }
}

static void tech_3341_cases_3_to_5_gating(void **state)
{
    (void)state;
    assert_near(LOUDNESS_PROGRAMME({-36, 10}, {-23, 60}, {-36, 10}).integrated_lufs, -23, 0.1);
    assert_near(LOUDNESS_PROGRAMME({-72, 10}, {-36, 10}, {-23, 60}, {-36, 10}, {-72, 10}).integrated_lufs, -23, 0.1);
    assert_near(LOUDNESS_PROGRAMME({-26, 20}, {-20, 20.1}, {-26, 20}).integrated_lufs, -23, 0.1);
}

static void tech_3341_case_6_five_channels(void **state)
{
    (void)state;
    wt_loudness *meter = loudness_meter(48000, 5);
    loudness_tone(meter, (double[]){-28, -28, -24, -30, -30}, 5, 20);
    assert_near(loudness_now(meter).integrated_lufs, -23, 0.1);
    wt_loudness_destroy(meter);

    meter = loudness_meter(48000, 6); // the same with a loud LFE, which does not count
    loudness_tone(meter, (double[]){-28, -28, -24, 0, -30, -30}, 6, 20);
    assert_near(loudness_now(meter).integrated_lufs, -23, 0.1);
    wt_loudness_destroy(meter);
}

static void tech_3341_case_9_short_term_stays(void **state)
{
    (void)state;
    wt_loudness *meter = loudness_meter(48000, 2);
    for (int k = 0; k < 5 * 30; k++) { // -20 for 1.34 s, -30 for 1.66 s, looked at every 0.1 s
        const double begin = fmod(k * 0.1, 3), loud = fmin(fmax(1.34 - begin, 0), 0.1);
        loudness_stereo(meter, -20, loud);
        loudness_stereo(meter, -30, 0.1 - loud);
        if (k >= 30) assert_near(loudness_now(meter).short_term_lufs, -23, 0.1);
    }
    wt_loudness_destroy(meter);
}

/// Energy weighed by time; a tone of -20 dB in both channels is -20 LUFS.
static void cases_9_and_12_average_to_their_value(void **state)
{
    (void)state;
    assert_near(10 * log10((1.34 * 1e-2 + 1.66 * 1e-3) / 3), -23, 0.05);
    assert_near(10 * log10((0.18 * 1e-2 + 0.22 * 1e-3) / 0.4), -23, 0.05);
}

static void tech_3341_case_12_momentary_stays(void **state)
{
    (void)state;
    wt_loudness *meter = loudness_meter(48000, 2);
    for (int k = 0; k < 25 * 20; k++) { // -20 for 0.18 s, -30 for 0.22 s, looked at every 0.02 s
        loudness_stereo(meter, k % 20 < 9 ? -20 : -30, 0.02);
        if (k >= 50) assert_near(loudness_now(meter).momentary_lufs, -23, 0.1);
    }
    wt_loudness_destroy(meter);
}

static void tech_3341_cases_10_and_13_maxima_wherever_the_tone_begins(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        wt_loudness_values v = LOUDNESS_PROGRAMME({-INFINITY, i * 0.15}, {-23, 3}, {-INFINITY, 1});
        assert_near(v.max_short_term_lufs, -23, 0.1);
        v = LOUDNESS_PROGRAMME({-INFINITY, i * 0.02}, {-23, 0.4}, {-INFINITY, 1});
        assert_near(v.max_momentary_lufs, -23, 0.1);
    }
}

// Live: the same segments after each other, a decibel louder each time, so that the maximum moves with them.
static void tech_3341_cases_11_and_14_maxima_that_rise(void **state)
{
    (void)state;
    for (int momentary = 0; momentary < 2; momentary++) {
        wt_loudness *meter = loudness_meter(48000, 2);
        for (int i = 0; i < 20; i++) {
            loudness_stereo(meter, -INFINITY, i * (momentary ? 0.02 : 0.15));
            loudness_stereo(meter, -38 + i, momentary ? 0.4 : 3);
            loudness_stereo(meter, -INFINITY, 1);
            const wt_loudness_values v = loudness_now(meter);
            assert_near(momentary ? v.max_momentary_lufs : v.max_short_term_lufs, -38 + i, 0.1);
        }
        wt_loudness_destroy(meter);
    }
}

static void tech_3342_cases_1_to_4_loudness_range(void **state)
{
    (void)state;
    assert_near(LOUDNESS_PROGRAMME({-20, 20}, {-30, 20}).range_lu, 10, 1);
    assert_near(LOUDNESS_PROGRAMME({-20, 20}, {-15, 20}).range_lu, 5, 1);
    assert_near(LOUDNESS_PROGRAMME({-40, 20}, {-20, 20}).range_lu, 20, 1);
    assert_near(LOUDNESS_PROGRAMME({-50, 20}, {-35, 20}, {-20, 20}, {-35, 20}, {-50, 20}).range_lu, 15, 1);
}

// One second of a sine of `frequency` cycles a frame.
static double true_peak_of_sine(double frequency, double degrees, double peak)
{
    static float sine[48000];
    for (int n = 0; n < 48000; n++) {
        // a raised-cosine fade of 50 ms: a sine that is switched on overshoots on its own
        const double fade = n < 2400 ? 0.5 - 0.5 * cos(M_PI * n / 2400) : 1;
        sine[n] = (float)(fade * peak * sin(2 * M_PI * frequency * n + degrees * M_PI / 180));
    }
    wt_loudness *meter = loudness_meter(48000, 1);
    wt_loudness_process(meter, (const float *[]){sine}, 48000);
    double true_peak_db = loudness_now(meter).true_peak_db;
    wt_loudness_destroy(meter);
    return true_peak_db;
}

// Tech 3341 allows +0.2 and -0.4 dB; we hold +0.1 and -0.2: at rate / 4 a 4x grid misses at most 0.17 dB.
static void assert_true_peak(double got_db, double want_db)
{
    if (!(got_db <= want_db + 0.1 && got_db >= want_db - 0.2))
        fail_msg("true peak %.3f dBTP, want %.3f +0.1 -0.2", got_db, want_db);
}

static void tech_3341_cases_15_to_19_true_peak_of_sines(void **state)
{
    (void)state;
    const double half_db = 20 * log10(0.5);
    assert_true_peak(true_peak_of_sine(1 / 4.0, 0, 0.5), half_db);
    assert_true_peak(true_peak_of_sine(1 / 4.0, 45, 0.5), half_db);
    assert_true_peak(true_peak_of_sine(1 / 6.0, 60, 0.5), half_db);
    assert_true_peak(true_peak_of_sine(1 / 8.0, 67.5, 0.5), half_db);
    assert_true_peak(true_peak_of_sine(1 / 4.0, 45, 1.41), 20 * log10(1.41));
}

// Cases 20 to 23 are one transient made at four times the rate, band-limited, and decimated with offsets 0 .. 3. Here
// it is written down directly: a tone at rate / 6 of 0.5 and a band-limited bump that lifts its crest to 1.
static void tech_3341_cases_20_to_23_true_peak_of_a_transient_between_samples(void **state)
{
    (void)state;
    for (int offset = 0; offset < 4; offset++) {
        static float signal[4800];
        for (int n = 0; n < 4800; n++) {
            const double t = n - 2400 - offset / 4.0, s = fmin(1, fmin(n, 4799 - n) / 480.0);
            const double tone = 0.5 * s * cos(2 * M_PI * t / 6), bump = 0.5 * exp(-t * t / 18) * cos(2 * M_PI * t / 4);
            signal[n] = (float)(tone + bump);
        }
        wt_loudness *meter = loudness_meter(48000, 1);
        wt_loudness_process(meter, (const float *[]){signal}, 4800);
        assert_true_peak(loudness_now(meter).true_peak_db, 0);
        wt_loudness_destroy(meter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tech_3341_cases_1_and_2_steady_tones),
        cmocka_unit_test(tech_3341_cases_3_to_5_gating),
        cmocka_unit_test(tech_3341_case_6_five_channels),
        cmocka_unit_test(tech_3341_case_9_short_term_stays),
        cmocka_unit_test(tech_3341_case_12_momentary_stays),
        cmocka_unit_test(tech_3341_cases_10_and_13_maxima_wherever_the_tone_begins),
        cmocka_unit_test(tech_3341_cases_11_and_14_maxima_that_rise),
        cmocka_unit_test(tech_3342_cases_1_to_4_loudness_range),
        cmocka_unit_test(tech_3341_cases_15_to_19_true_peak_of_sines),
        cmocka_unit_test(tech_3341_cases_20_to_23_true_peak_of_a_transient_between_samples),
        cmocka_unit_test(cases_9_and_12_average_to_their_value),
    };
    return cmocka_run_group_tests_name("loudness of the EBU's signals", tests, NULL, NULL);
}
