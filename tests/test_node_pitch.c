#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE 48000.0
enum { N = 12000 };

static float x[2 * N], y[2 * N];

static void pitch_of(const float *signal, float values[3])
{
    wt_chain *chain = node_chain("pitch", NULL, 0, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    process_blocks(chain, signal, y, N, 64, N);
    assert_memory_equal(signal, y, sizeof(float) * N);
    assert_int_equal(wt_chain_readings(chain, 0, values, 3), 3);
    wt_chain_destroy(chain);
}

static double cents_off(const float *signal, double hz)
{
    float values[3];
    pitch_of(signal, values);
    assert_true(values[1] > 0.95f);
    assert_true(fabs(values[2] - (69 + 12 * log2(values[0] / 440.0))) < 1e-4);
    return fabs(1200 * log2(values[0] / hz));
}

// Partials up to 6 kHz, falling as 1 / k, as 1 / sqrt(k), and without the fundamental.
static void tones_are_within_a_cent(void **state)
{
    (void)state;
    double worst = 0;
    for (double hz = 61; hz < 1000; hz *= 1.137)
        for (int kind = 0; kind < 4; kind++) {
            memset(x, 0, sizeof x);
            for (int k = kind == 3 ? 2 : 1; k * hz < 6000 && (kind || k == 1); k++)
                for (int n = 0; n < N; n++)
                    x[n] += (float)(0.1 * pow(k, kind == 2 ? -0.5 : -1) * sin(2 * M_PI * k * hz / RATE * n + k * k));
            const double cents = cents_off(x, hz);
            if (cents > 1) fail_msg("%g Hz, kind %d: %g cents off", hz, kind, cents);
            worst = fmax(worst, cents);
        }
    print_message("worst %.3f cents\n", worst);
}

static void noise_and_silence_have_no_pitch(void **state)
{
    (void)state;
    float values[3], *noise = noise_signal(N, 4);
    memset(x, 0, sizeof x);
    pitch_of(x, values);
    assert_true(values[0] == 0 && values[1] == 0 && values[2] == 0);
    pitch_of(noise, values);
    assert_true(values[0] == 0 && values[1] < 0.5f && values[2] == 0);
    free(noise);
}

static void what_is_not_a_number_leaves_no_trace(void **state)
{
    (void)state;
    float values[3];
    sine_signal(x, 2 * N, 300, RATE, 0.5, 0);
    x[N / 2] = NAN;
    wt_chain *chain = node_chain("pitch", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, 2 * N, 64, 2 * N);
    assert_int_equal(wt_chain_faults(chain), 1);
    wt_chain_readings(chain, 0, values, 3);
    assert_true(fabsf(values[0] - 300) < 0.05f);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"fmin_hz", NULL, 150}, {"hop", NULL, 100}, {"min_confidence", NULL, 0}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("pitch", busy, 3);
    check_node("pitch", NULL, 0);
}

// In noise the lowest trough is shown; sums of a thousand squares differ by some 1e-6 in another order.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("pitch", busy, 3, 0, 0.5f, 200);
    check_node_cuda_readings("pitch", busy, 3, 0.02f);
    const wt_setting all[] = {{"min_confidence", NULL, 0}};
    check_node_cuda_readings("pitch", all, 1, 0.02f);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting low[] = {{"fmin_hz", NULL, 10}}, turned[] = {{"fmin_hz", NULL, 300}, {"fmax_hz", NULL, 200}};
    check_refusal("pitch", low, 1, WT_ERR_BAD_ARG, "chain: pitch: fmin_hz is 10, want 20..6000");
    check_refusal("pitch", turned, 2, WT_ERR_BAD_ARG, "chain: pitch: fmax_hz is 200, want 300..12000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tones_are_within_a_cent),
        cmocka_unit_test(noise_and_silence_have_no_pitch),
        cmocka_unit_test(what_is_not_a_number_leaves_no_trace),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("pitch node", tests, NULL, NULL);
}
