#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>

#define RATE 48000.0
enum { SECOND = 48000 };

static void the_static_curve_bends_down_and_stops_at_the_range(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"threshold_db", NULL, -40}, {"ratio", NULL, 3}, {"knee_db", NULL, 10},
                                   {"attack_ms", NULL, 1}, {"release_ms", NULL, 5}, {"range_db", NULL, 30}};
    static float x[SECOND / 4], y[SECOND / 4];
    for (int level = -80; level <= -10; level += 2) {
        wt_chain *chain = node_chain("expander", settings, 6, 1, RATE);
        for (int n = 0; n < SECOND / 4; n++) x[n] = from_db((float)level);
        process_blocks(chain, x, y, SECOND / 4, 64, SECOND / 4);
        double under = -40 - level, reduction = under <= -5 ? 0 : under < 5 ? 2 * pow(under + 5, 2) / 20 : 2 * under;
        if (reduction > 30) reduction = 30;
        assert_true(fabs(to_db(y[SECOND / 4 - 1]) - (level - reduction)) < 0.001);
        assert_true(fabs(reading(chain, 0, 0) - reduction) < 0.001);
        wt_chain_destroy(chain);
    }
}

static void opening_and_closing_take_their_time(void **state)
{
    (void)state;
    enum { UP = SECOND / 2, DOWN = SECOND, END = 2 * SECOND };
    static float x[END], y[END];
    for (int pass = 0; pass < 2; pass++) { // attack alone, then release alone
        const wt_setting settings[] = {{"threshold_db", NULL, -20}, {"ratio", NULL, 20}, {"knee_db", NULL, 0},
                                       {"attack_ms", NULL, pass ? 0 : 20}, {"release_ms", NULL, pass ? 100 : 0},
                                       {"range_db", NULL, 40}};
        wt_chain *chain = node_chain("expander", settings, 6, 1, RATE);
        for (int n = 0; n < END; n++) x[n] = n >= UP && n < DOWN ? 1 : 0.001f;
        process_blocks(chain, x, y, END, 64, END);
        int n = pass ? DOWN : UP;
        const float mark_db = -40 * (pass ? 1 - expf(-1) : expf(-1));
        while (n < END && (pass ? to_db(y[n] / x[n]) > mark_db : to_db(y[n] / x[n]) < mark_db)) n++;
        double ms = (n - (pass ? DOWN : UP)) * 1000.0 / RATE;
        assert_true(fabs(ms - (pass ? 100 : 20)) < (pass ? 0.1 : 0.05));
        wt_chain_destroy(chain);
    }
}

static const wt_setting busy[] = {{"threshold_db", NULL, -12}, {"ratio", NULL, 4}, {"attack_ms", NULL, 0.5},
                                  {"release_ms", NULL, 10}, {"lookahead_ms", NULL, 1}, {"link", "none", 0}};

static void lookahead_is_the_latency(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"lookahead_ms", NULL, 2}, {"attack_ms", NULL, 0}};
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "expander", settings, 2);
    check_latency(&desc, RATE);
}

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("expander", busy, 6);
}

// Errors of 1e-6 dB in the level are multiplied by the ratio, less one.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("expander", busy, 4, 0, -20, 95);
    check_node_cuda("expander", busy, 6, 0, -20, 95);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting range[] = {{"range_db", NULL, 0}}, typo[] = {{"treshold_db", NULL, 0}};
    check_refusal("expander", range, 1, WT_ERR_BAD_ARG, "chain: expander: range_db is 0, want 1..120 dB");
    check_refusal("expander", typo, 1, WT_ERR_NOT_FOUND,
                  "chain: expander: a expander has no 'treshold_db'; the nearest is 'threshold_db'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_static_curve_bends_down_and_stops_at_the_range),
        cmocka_unit_test(opening_and_closing_take_their_time),
        cmocka_unit_test(lookahead_is_the_latency),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("expander", tests, NULL, NULL);
}
