#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0
enum { SECOND = 48000, BANDS = 31, AT_1000_HZ = 17 };

static void levels_of(const wt_setting *settings, int n, const float *x, float values[BANDS])
{
    static float y[SECOND];
    wt_chain *chain = node_chain("spectrum", settings, n, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    assert_memory_equal(x, y, sizeof y);
    assert_int_equal(wt_chain_readings(chain, 0, values, BANDS), BANDS);
    wt_chain_destroy(chain);
}

// A sine at the centre of a band: its mean square there, and what Hann's window lets into other bands. At 200 Hz a
// third of an octave is four bins of 4096, as wide as the main lobe, so a little falls into the neighbours.
static void a_sine_shows_in_its_band(void **state)
{
    (void)state;
    static float x[SECOND];
    const wt_setting fast[] = {{"time_ms", NULL, 0}};
    float values[BANDS];
    for (int band = 10; band < BANDS; band++) {
        sine_signal(x, SECOND, 1000 * pow(10, (band - AT_1000_HZ) / 10.0), RATE, 0.5, 0.3);
        levels_of(fast, 1, x, values);
        assert_true(fabsf(values[band] - (to_db(0.5f) - 3.0103f)) < (band < 13 ? 0.5f : 0.02f));
        for (int other = 0; other < BANDS; other++)
            if (abs(other - band) > 1) assert_true(values[other] < -60);
    }
}

// White noise of uniform samples in [-0.5, 0.5): its power a hertz is the same everywhere, so a band of 23 % has 1 dB
// more than the one before. Smoothing over 0.3 s is a mean over T = 0.6 s, whose deviation is 4.34 / sqrt(BT) dB; four
// of them are allowed.
static void noise_rises_by_a_decibel_a_band(void **state)
{
    (void)state;
    const wt_setting slow[] = {{"time_ms", NULL, 300}, {"n_fft", NULL, 2048}, {"hop", NULL, 300}};
    float *x = noise_signal(SECOND, 5), values[BANDS], octaves[BANDS];
    levels_of(slow, 3, x, values);
    for (int band = 16; band < BANDS - 1; band++) {
        const double hz = 1000 * pow(10, (band - AT_1000_HZ) / 10.0), width = hz * (pow(10, 0.05) - pow(10, -0.05));
        const double want = 10 * log10(1 / 12.0 * width / 24000);
        assert_true(fabs(values[band] - want) < 4 * 4.34 / sqrt(width * 0.6));
    }
    const wt_setting wide[] = {
        {"time_ms", NULL, 300}, {"n_fft", NULL, 2048}, {"hop", NULL, 300}, {"width", "octave", 0}};
    levels_of(wide, 4, x, octaves);
    for (int band = 16; band < BANDS - 2; band++) {
        const double sum = pow(10, values[band - 1] / 10) + pow(10, values[band] / 10) + pow(10, values[band + 1] / 10);
        assert_true(fabs(octaves[band] - 10 * log10(sum)) < 0.01);
    }
    free(x);
}

static void silence_and_what_is_not_a_number_leave_no_trace(void **state)
{
    (void)state;
    static float x[SECOND], y[SECOND];
    float values[BANDS];
    levels_of(NULL, 0, x, values);
    for (int band = 0; band < BANDS; band++) assert_true(values[band] == -120);
    sine_signal(x, SECOND, 1000, RATE, 0.5, 0);
    x[SECOND / 4] = NAN;
    wt_chain *chain = node_chain("spectrum", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    assert_int_equal(wt_chain_faults(chain), 1);
    wt_chain_readings(chain, 0, values, BANDS);
    assert_true(fabsf(values[AT_1000_HZ] - (to_db(0.5f) - 3.0103f)) < 0.1f); // 0.75 s are 6 time constants
    wt_chain_destroy(chain);
}

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"n_fft", NULL, 512}, {"hop", NULL, 100}};
    check_node("spectrum", settings, 2);
    check_node("spectrum", NULL, 0);
}

static void cuda_agrees(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"n_fft", NULL, 512}, {"hop", NULL, 100}};
    check_node_cuda("spectrum", settings, 2, 0, 20, 200);
    check_node_cuda_readings("spectrum", settings, 2, 0.001f); // float sums of hundreds of bins in another order
    check_node_cuda_readings("spectrum", NULL, 0, 0.001f);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting odd[] = {{"n_fft", NULL, 1000}}, far[] = {{"n_fft", NULL, 512}, {"hop", NULL, 600}};
    check_refusal("spectrum", odd, 1, WT_ERR_BAD_ARG, "chain: spectrum: n_fft is 1000, want a power of two, 256..4096");
    check_refusal("spectrum", far, 2, WT_ERR_BAD_ARG, "chain: spectrum: hop is 600, want 0..512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sine_shows_in_its_band),
        cmocka_unit_test(noise_rises_by_a_decibel_a_band),
        cmocka_unit_test(silence_and_what_is_not_a_number_leave_no_trace),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("spectrum node", tests, NULL, NULL);
}
