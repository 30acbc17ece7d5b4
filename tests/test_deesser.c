#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#define RATE 48000.0
enum { SECOND = 48000 };

// Gain in dB of a sine once the de-esser has settled: amplitudes by least squares over whole periods.
static double tone_gain_db(const wt_setting *settings, int n_settings, double frequency_hz, double amplitude)
{
    static float x[SECOND], y[SECOND];
    sine_signal(x, SECOND, frequency_hz, RATE, amplitude, 0);
    wt_chain *chain = node_chain("deesser", settings, n_settings, 1, RATE);
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    wt_chain_destroy(chain);
    double re = 0, im = 0;
    for (int n = SECOND / 2; n < SECOND; n++) {
        re += y[n] * cos(2 * M_PI * frequency_hz / RATE * n);
        im += y[n] * sin(2 * M_PI * frequency_hz / RATE * n);
    }
    return 20 * log10(2 * hypot(re, im) / (SECOND / 2) / amplitude);
}

// |1 + (g - 1) H| in dB, H the second-order high-pass (Butterworth, bilinear transform) of the band.
static double shelf_db(double frequency_hz, double corner_hz, double reduction_db)
{
    double complex s = I * tan(M_PI * frequency_hz / RATE) / tan(M_PI * corner_hz / RATE);
    double complex band = s * s / (s * s + M_SQRT2 * s + 1);
    return 20 * log10(cabs(1 + (pow(10, -reduction_db / 20) - 1) * band));
}

static void a_loud_high_tone_is_turned_down_by_the_curve(void **state)
{
    (void)state;
    // a band level 20 dB over the threshold, ratio 4, slow enough to hold between the waves
    const wt_setting settings[] = {{"frequency_hz", NULL, 2000}, {"threshold_db", NULL, -30}, {"ratio", NULL, 4},
                                   {"attack_ms", NULL, 1}, {"release_ms", NULL, 1000}, {"range_db", NULL, 40}};
    double got = tone_gain_db(settings, 6, 17000, from_db(-10));
    assert_true(fabs(got - shelf_db(17000, 2000, 15)) < 0.05);
}

static void the_range_is_the_most_it_takes(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"frequency_hz", NULL, 2000}, {"threshold_db", NULL, -60}, {"ratio", NULL, 100},
                                   {"range_db", NULL, 9}};
    assert_true(fabs(tone_gain_db(settings, 4, 17000, 0.5) - shelf_db(17000, 2000, 9)) < 0.01);
}

static void a_low_tone_passes(void **state)
{
    (void)state;
    assert_true(fabs(tone_gain_db(NULL, 0, 300, 0.9)) < 0.001); // 300 Hz lies 52 dB down in the band above 6 kHz
}

static void a_bell_takes_its_centre(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"band", "bell", 0}, {"frequency_hz", NULL, 6000}, {"q", NULL, 2},
                                   {"threshold_db", NULL, -60}, {"ratio", NULL, 100}, {"range_db", NULL, 12}};
    assert_true(fabs(tone_gain_db(settings, 6, 6000, 0.5) + 12) < 0.05);
}

static void below_the_threshold_not_a_bit_changes(void **state)
{
    (void)state;
    float *x = noise_signal(5000, 3), y[5000];
    const wt_setting settings[] = {{"threshold_db", NULL, 10}};
    wt_chain *chain = node_chain("deesser", settings, 1, 1, RATE);
    process_blocks(chain, x, y, 5000, 64, 5000);
    assert_memory_equal(x, y, sizeof y);
    wt_chain_destroy(chain);
    free(x);
}

static const wt_setting busy[] = {{"threshold_db", NULL, -30}, {"attack_ms", NULL, 0.2}, {"release_ms", NULL, 5},
                                  {"link", "none", 0}, {"band", "bell", 0}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("deesser", busy, 3);
    check_node("deesser", busy, 5);
}

static void cuda_agrees(void **state) // filter and scans add in another order
{
    (void)state;
    check_node_cuda("deesser", busy, 3, 0, 3000, 100);
    check_node_cuda("deesser", busy, 5, 2, -10, 100);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting low[] = {{"frequency_hz", NULL, 100}}, band[] = {{"band", "low", 0}};
    check_refusal("deesser", low, 1, WT_ERR_BAD_ARG, "chain: deesser: frequency_hz is 100, want 1000..20000 Hz");
    check_refusal("deesser", band, 1, WT_ERR_BAD_ARG, "chain: deesser: band is 'low', want high|bell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loud_high_tone_is_turned_down_by_the_curve),
        cmocka_unit_test(the_range_is_the_most_it_takes),
        cmocka_unit_test(a_low_tone_passes),
        cmocka_unit_test(a_bell_takes_its_centre),
        cmocka_unit_test(below_the_threshold_not_a_bit_changes),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("deesser", tests, NULL, NULL);
}
