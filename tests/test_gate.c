#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>

#define RATE 48000.0
enum { SECOND = 48000 };

static const wt_setting quick[] = {{"threshold_db", NULL, -20}, {"hysteresis_db", NULL, 6}, {"attack_ms", NULL, 0},
                                   {"hold_ms", NULL, 10}, {"release_ms", NULL, 0}, {"range_db", NULL, 60}};

// Levels in steps of 1000 frames: closed, within the hysteresis (still closed), open, within (still open), below.
static void hysteresis_and_hold_are_exact(void **state)
{
    (void)state;
    const float levels_db[] = {-40, -23, -19, -23, -27, -23};
    const int opened[] = {0, 0, 1, 1, 0, 0};
    enum { STEP = 1000, HOLD = 480, END = 6 * STEP };
    float x[END], y[END];
    for (int n = 0; n < END; n++) x[n] = from_db(levels_db[n / STEP]);
    wt_chain *chain = node_chain("gate", quick, 6, 1, RATE);
    process_blocks(chain, x, y, END, 64, END);
    for (int n = 0; n < END; n++) {
        int held = n >= 4 * STEP && n < 4 * STEP + HOLD; // the last open frame was 4 * STEP - 1
        float want_db = opened[n / STEP] || held ? 0 : -60;
        assert_true(fabsf(to_db(y[n] / x[n]) - want_db) < 0.001f);
    }
    assert_true(fabsf(reading(chain, 0, 0) - 60) < 0.001f);
    wt_chain_destroy(chain);
}

static void opening_and_closing_take_their_time(void **state)
{
    (void)state;
    enum { UP = 1000, DOWN = SECOND / 2, END = SECOND };
    static float x[END], y[END];
    const wt_setting settings[] = {{"threshold_db", NULL, -20}, {"attack_ms", NULL, 5}, {"hold_ms", NULL, 0},
                                   {"release_ms", NULL, 80}, {"range_db", NULL, 50}};
    wt_chain *chain = node_chain("gate", settings, 5, 1, RATE);
    for (int n = 0; n < END; n++) x[n] = n >= UP && n < DOWN ? 1 : 0.001f;
    process_blocks(chain, x, y, END, 64, END);
    int up = UP, down = DOWN;
    while (up < END && to_db(y[up] / x[up]) < -50 * expf(-1)) up++;
    while (down < END && to_db(y[down] / x[down]) > -50 * (1 - expf(-1))) down++;
    assert_true(fabs((up - UP) * 1000 / RATE - 5) < 0.05);
    assert_true(fabs((down - DOWN) * 1000 / RATE - 85) < 1.5); // the attack's pole follows the release's: about +5 ms
    wt_chain_destroy(chain);
}

static void lookahead_is_the_latency(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"lookahead_ms", NULL, 2}, {"attack_ms", NULL, 0}};
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "gate", settings, 2);
    check_latency(&desc, RATE);
}

static const wt_setting busy[] = {{"threshold_db", NULL, -12}, {"hold_ms", NULL, 0.2}, {"release_ms", NULL, 1},
                                  {"attack_ms", NULL, 0.1}, {"lookahead_ms", NULL, 1}, {"link", "none", 0},
                                  {"detector", "rms", 0}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("gate", busy, 4);
    check_node("gate", busy, 7);
}

// With the peak detector both sides compare the same floats with thresholds that may differ in their last bit.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("gate", busy, 4, 0, -20, 100);
    check_node_cuda("gate", busy, 6, 0, -20, 100);
    check_node_cuda("gate", NULL, 0, 0, -20, 90); // what a slow release would keep of sums that round up
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting hold[] = {{"hold_ms", NULL, -1}};
    check_refusal("gate", hold, 1, WT_ERR_BAD_ARG, "chain: gate: hold_ms is -1, want 0..5000 ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hysteresis_and_hold_are_exact),
        cmocka_unit_test(opening_and_closing_take_their_time),
        cmocka_unit_test(lookahead_is_the_latency),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
