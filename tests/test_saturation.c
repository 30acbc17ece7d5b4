#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>

#define RATE 48000.0
enum { SECOND = 48000, DELAY = 31 };

// Steady DC has no harmonics to alias, so the curve shows: the filters' gain at DC is 1.
static void shapes_follow_their_formulae(void **state)
{
    (void)state;
    const char *const shapes[] = {"tanh", "soft", "hard", "asymmetric"};
    for (int shape = 0; shape < 4; shape++)
        for (double in = -0.95; in < 1; in += 0.1) {
            const wt_setting settings[] = {{"shape", shapes[shape], 0}, {"drive_db", NULL, 12}};
            double d = pow(10, 12 / 20.0) * in, r = pow(10, 12 / 20.0) * 0.25, f[3], at[3] = {d, r, -r};
            for (int k = 0; k < 3; k++) {
                double u = at[k], c = fmax(fmin(u, 1.5), -1.5);
                f[k] = shape == 0 ? tanh(u) : shape == 1 ? c - c * c * c * 4 / 27 : shape == 2 ? fmax(fmin(u, 1), -1)
                       : u < 0 ? u / (1 - u) : tanh(u);
            }
            float x[200], y[200];
            for (int n = 0; n < 200; n++) x[n] = (float)in;
            wt_chain *chain = node_chain("saturation", settings, 2, 1, RATE);
            process_blocks(chain, x, y, 200, 64, 200);
            assert_true(fabs(y[199] - f[0] * 0.5 / (f[1] - f[2])) < 1e-4); // a branch's own sum is 1 within 5e-5
            wt_chain_destroy(chain);
        }
}

// Level of one line of the spectrum in dB; whole periods.
static double line_db(const float *y, double frequency_hz)
{
    double re = 0, im = 0;
    for (int n = SECOND; n < 2 * SECOND; n++) {
        re += y[n] * cos(2 * M_PI * frequency_hz / RATE * n);
        im += y[n] * sin(2 * M_PI * frequency_hz / RATE * n);
    }
    return 20 * log10(2 * hypot(re, im) / SECOND);
}

static void oversampling_holds_aliases_down(void **state)
{
    (void)state;
    // 9 kHz: the fifth harmonic, 45 kHz, folds to 3 kHz; at 4 x 48 kHz it is filtered away
    static float x[2 * SECOND], y[2 * SECOND];
    double alias_db[2];
    sine_signal(x, 2 * SECOND, 9000, RATE, 0.9, 0.3);
    for (int pass = 0; pass < 2; pass++) {
        const wt_setting settings[] = {{"shape", "tanh", 0}, {"drive_db", NULL, 12},
                                       {"oversampling", pass ? "4" : "1", 0}};
        wt_chain *chain = node_chain("saturation", settings, 3, 1, RATE);
        process_blocks(chain, x, y, 2 * SECOND, 64, 2 * SECOND);
        alias_db[pass] = line_db(y, 3000) - line_db(y, 9000);
        wt_chain_destroy(chain);
    }
    assert_true(alias_db[0] > -25); // the fifth harmonic itself
    assert_true(alias_db[1] < -60); // the 21st, which folds at 192 kHz already, and what passes the filters
}

static void a_sine_of_minus_12_db_keeps_its_level(void **state)
{
    (void)state;
    static float x[2 * SECOND], y[2 * SECOND];
    const wt_setting settings[] = {{"shape", "soft", 0}, {"drive_db", NULL, 15}};
    sine_signal(x, 2 * SECOND, 100, RATE, 0.25, 0);
    wt_chain *chain = node_chain("saturation", settings, 2, 1, RATE);
    process_blocks(chain, x, y, 2 * SECOND, 64, 2 * SECOND);
    float worst = 0;
    for (int n = SECOND; n < 2 * SECOND; n++) worst = fmaxf(worst, y[n]);
    assert_true(fabsf(worst - 0.25f) < 1e-4f);
    wt_chain_destroy(chain);
}

static void latency_is_the_filters_and_dry_is_delayed_alike(void **state)
{
    (void)state;
    const wt_setting dry[] = {{"mix", NULL, 0}}, clean[] = {{"shape", "hard", 0}, {"drive_db", NULL, 0}},
                     direct[] = {{"oversampling", "1", 0}};
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "saturation", dry, 1);
    check_latency(&desc, RATE);
    float x[400] = {0}, y[400];
    x[100] = 0.5f;
    wt_chain *chain = node_chain("saturation", clean, 2, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), DELAY);
    process_blocks(chain, x, y, 400, 64, 400);
    for (int k = 1; k < DELAY; k++) assert_true(fabsf(y[100 + DELAY - k] - y[100 + DELAY + k]) < 1e-6f); // linear phase
    assert_true(y[100 + DELAY] > 0.4f);
    wt_chain_destroy(chain);
    chain = node_chain("saturation", direct, 1, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"drive_db", NULL, 18}, {"bias", NULL, 0.2}, {"mix", NULL, 0.7},
                                  {"shape", "asymmetric", 0}, {"oversampling", "2", 0}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("saturation", busy, 3);
    check_node("saturation", busy, 5);
}

static void cuda_agrees(void **state) // sums of 32 taps in the same order, contracted otherwise
{
    (void)state;
    check_node_cuda("saturation", busy, 3, 0, 6, 100);
    check_node_cuda("saturation", busy, 5, 1, -0.3f, 100);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting over[] = {{"oversampling", "3", 0}}, bias[] = {{"bias", NULL, 2}};
    check_refusal("saturation", over, 1, WT_ERR_BAD_ARG, "chain: saturation: oversampling is '3', want 4|2|1");
    check_refusal("saturation", bias, 1, WT_ERR_BAD_ARG, "chain: saturation: bias is 2, want -1..1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_their_formulae),
        cmocka_unit_test(oversampling_holds_aliases_down),
        cmocka_unit_test(a_sine_of_minus_12_db_keeps_its_level),
        cmocka_unit_test(latency_is_the_filters_and_dry_is_delayed_alike),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("saturation", tests, NULL, NULL);
}
