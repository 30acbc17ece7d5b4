#include "support/testing.h"
#include "support/chain_check.h"
#include "support/realtime.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <warptone/chain.h>

#define RATE 48000.0

static wt_chain *build(const wt_chain_config *config, const wt_chain_desc *desc)
{
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(config, desc, &chain));
    return chain;
}

static const wt_setting highpass[] = {{"shape", "highpass", 0}, {"frequency_hz", NULL, 80}};
static const wt_setting presence[] = {{"shape", "peak", 0}, {"frequency_hz", "3000", 0}, {"gain_db", "6", 0}};
static const wt_setting quieter[] = {{"gain_db", NULL, -6}};

static const wt_node_desc voice_nodes[] = {
    {.type = "biquad", .id = "low_cut", .settings = highpass, .n_settings = 2},
    {.type = "biquad", .id = "presence", .settings = presence, .n_settings = 3},
    {.type = "gain", .settings = quieter, .n_settings = 1},
};
static const wt_chain_desc voice = {.name = "voice", .nodes = voice_nodes, .n_nodes = 3};

static void block_size_does_not_change_a_bit(void **state)
{
    (void)state;
    check_block_sizes(&voice, 2, RATE);
}

static void a_moving_parameter_does_not_depend_on_blocks(void **state)
{
    (void)state;
    enum { FRAMES = 6000 };
    float *reference = NULL;
    for (int pass = 0; pass < 3; pass++) {
        const int sizes[] = {FRAMES, 64, 7};
        wt_chain *chain = build(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &voice);
        int node, param;
        assert_ok(wt_chain_find(chain, "presence", "frequency_hz", &node, &param));
        float *x = noise_signal(FRAMES, 1), *y = calloc(FRAMES, sizeof *y);
        process_blocks(chain, x, y, 1000, sizes[pass], FRAMES); // the change is at frame 1000
        assert_int_equal(wt_chain_set(chain, node, param, 9000), WT_OK);
        process_blocks(chain, x + 1000, y + 1000, FRAMES - 1000, sizes[pass], FRAMES);
        if (reference) assert_memory_equal(reference, y, sizeof *y * FRAMES);
        else reference = y;
        if (y != reference) free(y);
        free(x);
        wt_chain_destroy(chain);
    }
    free(reference);
}

static void a_gain_change_makes_no_click(void **state)
{
    (void)state;
    enum { FRAMES = 4800 };
    wt_chain *chain = build(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                            &(wt_chain_desc){.nodes = &(wt_node_desc){.type = "gain"}, .n_nodes = 1});
    float x[FRAMES], y[FRAMES], worst = 0;
    for (int n = 0; n < FRAMES; n++) x[n] = 1;
    process_blocks(chain, x, y, 480, 64, FRAMES);
    assert_int_equal(wt_chain_set(chain, 0, 0, -20), WT_OK);
    process_blocks(chain, x + 480, y + 480, FRAMES - 480, 64, FRAMES);
    for (int n = 1; n < FRAMES; n++) worst = fmaxf(worst, fabsf(y[n] - y[n - 1]));
    assert_true(worst < 2.5f / 960); // 20 ms of 48 kHz; straight in dB, so steeper than 0.9 / 960 where it is loud
    assert_true(fabsf(y[FRAMES - 1] - 0.1f) < 1e-6f);
    wt_chain_destroy(chain);
}

static void parallel_paths_of_different_latency_are_aligned(void **state)
{
    (void)state;
    const char *const both[] = {"dry", "late"};
    const wt_node_desc nodes[] = {
        {.type = "gain", .id = "dry", .inputs = (const char *const[]){"in"}, .n_inputs = 1},
        {.type = "gain", .id = "late", .inputs = (const char *const[]){"in"}, .n_inputs = 1},
        {.type = "mix", .inputs = both, .n_inputs = 2},
    };
    wt_chain *chain = build(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                            &(wt_chain_desc){.nodes = nodes, .n_nodes = 3});
    float x[100] = {1}, y[100];
    process_blocks(chain, x, y, 100, 100, 100);
    assert_true(y[0] == 2);
    wt_chain_destroy(chain);
}

static void a_bad_sample_resets_the_instance_and_is_counted(void **state)
{
    (void)state;
    wt_chain *chain = build(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &voice);
    float x[512], y[512];
    for (int n = 0; n < 512; n++) x[n] = n == 10 ? NAN : 0.5f;
    process_blocks(chain, x, y, 512, 512, 512);
    for (int n = 0; n < 512; n++) assert_true(isfinite(y[n]));
    assert_int_equal(wt_chain_faults(chain), 1);
    wt_chain_destroy(chain);
}

static void *turn_knobs(void *user)
{
    wt_chain *chain = user;
    float readings[4];
    for (int k = 0; k < 20000; k++) {
        (void)!wt_chain_set(chain, k % 3, 0, k % 3 == 2 ? (float)(k % 40) - 30 : 100 + (float)(k % 5000));
        (void)wt_chain_get(chain, k % 3, 0);
        (void)wt_chain_readings(chain, 1, readings, 4);
    }
    return NULL;
}

// What a control thread may do while the audio thread processes; ThreadSanitizer watches in `scons tsan=1`.
static void knobs_may_be_turned_while_audio_runs(void **state)
{
    (void)state;
    enum { FRAMES = 64 };
    wt_chain *chain = build(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &voice);
    float *x = noise_signal(2 * FRAMES, 9), y[2 * FRAMES];
    const float *in[] = {x, x + FRAMES};
    float *out[] = {y, y + FRAMES};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, turn_knobs, chain), 0);
    for (int k = 0; k < 3000; k++) {
        RT_SECTION { assert_int_equal(wt_chain_process(chain, in, out, FRAMES), WT_OK); }
        for (int n = 0; n < 2 * FRAMES; n++) assert_true(isfinite(y[n]));
    }
    pthread_join(thread, NULL);
    assert_int_equal(wt_chain_faults(chain), 0);
    free(x);
    wt_chain_destroy(chain);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    wt_chain *chain;
    wt_chain_fault fault;
    const wt_chain_config config = {.rate_hz = RATE, .channels = 2, .fault = &fault};
    const struct {
        wt_node_desc nodes[2];
        int n_nodes;
        wt_status status;
        const char *sentence, *setting;
    } cases[] = {
        {{{.type = "biqad"}}, 1, WT_ERR_NOT_FOUND,
         "chain: node 1 has the unknown type 'biqad'; the nearest is 'biquad'", "type"},
        {{{.type = "gain", .settings = &(wt_setting){"gain_bd", NULL, 1}, .n_settings = 1}}, 1, WT_ERR_NOT_FOUND,
         "chain: gain: a gain has no 'gain_bd'; the nearest is 'gain_db'", "gain_bd"},
        {{{.type = "gain", .settings = &(wt_setting){"gain_db", NULL, 90}, .n_settings = 1}}, 1, WT_ERR_BAD_ARG,
         "chain: gain: gain_db is 90, want -120..60 dB", "gain_db"},
        {{{.type = "gain", .settings = &(wt_setting){"gain_db", "loud", 0}, .n_settings = 1}}, 1, WT_ERR_BAD_ARG,
         "chain: gain: gain_db is 'loud', want a number", "gain_db"},
        {{{.type = "biquad", .settings = &(wt_setting){"shape", "bell", 0}, .n_settings = 1}}, 1, WT_ERR_BAD_ARG,
         "chain: biquad: shape is 'bell', want lowpass|highpass|bandpass|notch|peak|lowshelf|highshelf|allpass",
         "shape"},
        {{{.type = "gain", .inputs = (const char *const[]){"gain2"}, .n_inputs = 1},
          {.type = "gain", .inputs = (const char *const[]){"gain"}, .n_inputs = 1}}, 2, WT_ERR_BAD_ARG,
         "chain: gain stands in a cycle, want a graph without feedback between nodes", "inputs"},
        {{{.type = "gain", .inputs = (const char *const[]){"inn"}, .n_inputs = 1}}, 1, WT_ERR_NOT_FOUND,
         "chain: gain: inputs names 'inn', which is no node; the nearest is 'in'", "inputs"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_chain_desc desc = {.nodes = cases[k].nodes, .n_nodes = cases[k].n_nodes};
        assert_fails(wt_chain_create(&config, &desc, &chain), cases[k].status, cases[k].sentence);
        assert_null(chain);
        assert_string_equal(fault.setting, cases[k].setting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_size_does_not_change_a_bit),
        cmocka_unit_test(a_moving_parameter_does_not_depend_on_blocks),
        cmocka_unit_test(a_gain_change_makes_no_click),
        cmocka_unit_test(parallel_paths_of_different_latency_are_aligned),
        cmocka_unit_test(a_bad_sample_resets_the_instance_and_is_counted),
        cmocka_unit_test(knobs_may_be_turned_while_audio_runs),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
