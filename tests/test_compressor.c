#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0
enum { SECOND = 48000 };

// Soft knee of Giannoulis, Massberg and Reiss, equation 4, in double.
static double curve_db(double in_db, double threshold_db, double ratio, double knee_db)
{
    double over = in_db - threshold_db;
    if (2 * over < -knee_db) return in_db;
    if (2 * fabs(over) <= knee_db) return in_db + (1 / ratio - 1) * pow(over + knee_db / 2, 2) / (2 * knee_db);
    return threshold_db + over / ratio;
}

static void the_static_curve_is_the_papers(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"threshold_db", NULL, -24}, {"ratio", NULL, 4}, {"knee_db", NULL, 12},
                                   {"attack_ms", NULL, 1}, {"release_ms", NULL, 10}};
    float x[SECOND / 4], y[SECOND / 4];
    for (int level = -60; level <= 0; level += 3) {
        wt_chain *chain = node_chain("compressor", settings, 5, 1, RATE);
        for (int n = 0; n < SECOND / 4; n++) x[n] = from_db((float)level) * (n & 1 ? -1 : 1);
        process_blocks(chain, x, y, SECOND / 4, 64, SECOND / 4);
        double want = curve_db(level, -24, 4, 12), got = to_db(fabsf(y[SECOND / 4 - 1]));
        assert_true(fabs(got - want) < 0.001); // log2 and exp2 in float are within 1e-5 dB
        assert_true(fabs(reading(chain, 0, 0) - (level - want)) < 0.001);
        wt_chain_destroy(chain);
    }
}

// Frames until the gain reduction of a step reaches 1 - 1/e of its end.
static void attack_and_release_take_their_time(void **state)
{
    (void)state;
    enum { UP = 1000, DOWN = UP + SECOND / 2, END = DOWN + SECOND };
    static float x[END], y[END];
    const float step_db = 20 * (1 - 1 / 5.0f);
    for (int pass = 0; pass < 2; pass++) { // attack alone, then release alone
        const wt_setting settings[] = {{"threshold_db", NULL, -20}, {"ratio", NULL, 5}, {"knee_db", NULL, 0},
                                       {"attack_ms", NULL, pass ? 0 : 30}, {"release_ms", NULL, pass ? 200 : 0}};
        wt_chain *chain = node_chain("compressor", settings, 5, 1, RATE);
        for (int n = 0; n < END; n++) x[n] = n >= UP && n < DOWN ? 1 : 0.01f;
        process_blocks(chain, x, y, END, 64, END);
        int n = pass ? DOWN : UP;
        const float mark_db = step_db * (pass ? expf(-1) : 1 - expf(-1));
        while (n < END && (pass ? -to_db(y[n] / x[n]) > mark_db : -to_db(y[n] / x[n]) < mark_db)) n++;
        double ms = (n - (pass ? DOWN : UP)) * 1000.0 / RATE;
        assert_true(fabs(ms - (pass ? 200 : 30)) < (pass ? 0.2 : 0.05)); // a frame is 0.02 ms
        wt_chain_destroy(chain);
    }
}

static void rms_reads_a_sine_three_decibels_lower(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"threshold_db", NULL, -30}, {"ratio", NULL, 2}, {"knee_db", NULL, 0},
                                   {"attack_ms", NULL, 50}, {"release_ms", NULL, 50}, {"detector", "rms", 0}};
    static float x[SECOND], y[SECOND];
    sine_signal(x, SECOND, 4000, RATE, 0.5, 0);
    wt_chain *chain = node_chain("compressor", settings, 6, 1, RATE);
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    double want = (20 * log10(0.5 / sqrt(2)) + 30) / 2;
    assert_true(fabs(reading(chain, 0, 0) - want) < 0.05); // ripple of 4 kHz through 10 ms: 0.01 dB
    wt_chain_destroy(chain);
}

static void mix_and_make_up_add_to_the_curve(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"threshold_db", NULL, -20}, {"ratio", NULL, 100}, {"knee_db", NULL, 0},
                                   {"makeup_db", NULL, 6}, {"mix", NULL, 0.25}};
    static float x[SECOND], y[SECOND];
    for (int n = 0; n < SECOND; n++) x[n] = 1;
    wt_chain *chain = node_chain("compressor", settings, 5, 1, RATE);
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    assert_true(fabsf(y[SECOND - 1] - (0.75f + 0.25f * from_db(-20 * 0.99f + 6))) < 1e-5f);
    wt_chain_destroy(chain);
}

static void below_the_threshold_not_a_bit_changes(void **state)
{
    (void)state;
    float *x = noise_signal(5000, 3), y[5000];
    const wt_setting settings[] = {{"threshold_db", NULL, 10}};
    wt_chain *chain = node_chain("compressor", settings, 1, 1, RATE);
    process_blocks(chain, x, y, 5000, 64, 5000);
    assert_memory_equal(x, y, sizeof y);
    wt_chain_destroy(chain);
    free(x);
}

static void links_decide_whether_a_quiet_channel_follows(void **state)
{
    (void)state;
    static float x[2 * SECOND], y[2 * SECOND];
    for (int n = 0; n < SECOND; n++) x[n] = 1, x[SECOND + n] = 0.01f;
    for (int linked = 0; linked < 2; linked++) {
        const wt_setting settings[] = {{"link", linked ? "channels" : "none", 0}, {"knee_db", NULL, 0}};
        wt_chain *chain = node_chain("compressor", settings, 2, 2, RATE);
        process_blocks(chain, x, y, SECOND, 64, SECOND);
        float loud_db = to_db(y[SECOND - 1]), quiet_db = to_db(y[2 * SECOND - 1] / 0.01f);
        assert_true(fabsf(loud_db + 20 * (1 - 1 / 3.0f)) < 0.001f);
        assert_true(fabsf(quiet_db - (linked ? loud_db : 0)) < 0.001f);
        wt_chain_destroy(chain);
    }
}

static void a_side_chain_drives_the_gain(void **state)
{
    (void)state;
    static float x[2 * SECOND], y[2 * SECOND];
    const wt_setting quiet[] = {{"gain_db", NULL, -40}}, knee[] = {{"knee_db", NULL, 0}};
    const wt_node_desc nodes[] = {
        {.type = "gain", .id = "quiet", .settings = quiet, .n_settings = 1},
        {.type = "compressor", .side = "in", .settings = knee, .n_settings = 1},
    };
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = 2}, &chain));
    for (int n = 0; n < 2 * SECOND; n++) x[n] = 1;
    process_blocks(chain, x, y, SECOND, 64, SECOND);
    assert_true(fabsf(to_db(y[SECOND - 1]) - (-40 - 20 * (1 - 1 / 3.0f))) < 0.001f);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"threshold_db", NULL, -30}, {"ratio", NULL, 6}, {"attack_ms", NULL, 0.5},
                                  {"release_ms", NULL, 20}, {"lookahead_ms", NULL, 3}, {"mix", NULL, 0.8},
                                  {"detector", "rms", 0}, {"link", "none", 0}};

static void lookahead_is_the_latency(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "compressor", &busy[4], 1);
    check_latency(&desc, RATE);
    wt_chain *chain = node_chain("compressor", &busy[4], 1, 1, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), 144);
    wt_chain_destroy(chain);
}

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("compressor", busy, 4);
    check_node("compressor", busy, 8);
}

// Scans add in another order, and log2 and exp2 are contracted otherwise: errors of 1e-6 dB in the gain.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("compressor", busy, 4, 0, -10, 100);
    check_node_cuda("compressor", busy, 8, 0, -10, 100);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting late[] = {{"lookahead_ms", NULL, 21}}, ratio[] = {{"ratio", NULL, 0.5}},
                     detector[] = {{"detector", "loud", 0}};
    check_refusal("compressor", late, 1, WT_ERR_BAD_ARG, "chain: compressor: lookahead_ms is 21, want 0..20");
    check_refusal("compressor", ratio, 1, WT_ERR_BAD_ARG, "chain: compressor: ratio is 0.5, want 1..100");
    check_refusal("compressor", detector, 1, WT_ERR_BAD_ARG, "chain: compressor: detector is 'loud', want peak|rms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_static_curve_is_the_papers),
        cmocka_unit_test(attack_and_release_take_their_time),
        cmocka_unit_test(rms_reads_a_sine_three_decibels_lower),
        cmocka_unit_test(mix_and_make_up_add_to_the_curve),
        cmocka_unit_test(below_the_threshold_not_a_bit_changes),
        cmocka_unit_test(links_decide_whether_a_quiet_channel_follows),
        cmocka_unit_test(a_side_chain_drives_the_gain),
        cmocka_unit_test(lookahead_is_the_latency),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("compressor", tests, NULL, NULL);
}
