#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0

static void run_one(const wt_chain_desc *desc, int channels, int out_channels, const float *x, float *y, int n_frames)
{
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels}, desc, &chain));
    assert_int_equal(wt_chain_out_channels(chain), out_channels);
    process_blocks(chain, x, y, n_frames, 64, n_frames);
    wt_chain_destroy(chain);
}

static void pan_keeps_the_power_of_a_mono_input(void **state)
{
    (void)state;
    for (double pan = -1; pan <= 1; pan += 0.25) {
        const wt_setting setting = {"pan", NULL, pan};
        const wt_node_desc node = {.type = "pan", .settings = &setting, .n_settings = 1};
        float x[64], y[128];
        for (int n = 0; n < 64; n++) x[n] = 1;
        run_one(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 1, 2, x, y, 64);
        assert_true(fabsf(y[0] * y[0] + y[64] * y[64] - 1) < 1e-6f);
        assert_true(pan <= 0 || y[64] > y[0]);
    }
}

static void pan_leaves_stereo_alone_in_the_middle(void **state)
{
    (void)state;
    const wt_node_desc node = {.type = "pan"};
    float *x = noise_signal(128, 2), y[128];
    run_one(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 2, 2, x, y, 64);
    assert_snr_db(x, y, 128, 120); // sqrt(2) cos(pi / 4) is one to an ulp
    free(x);
}

static void pan_refuses_more_than_stereo(void **state)
{
    (void)state;
    const wt_node_desc node = {.type = "pan"};
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 6},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: pan: input has 6 channels, want 1 or 2");
}

static void mono_is_the_mean(void **state)
{
    (void)state;
    const wt_setting same = {"channels", "same", 0};
    const wt_node_desc one = {.type = "mono"}, many = {.type = "mono", .settings = &same, .n_settings = 1};
    const float x[6] = {1, 2, 5, 6, 9, 1};
    float y[6];
    run_one(&(wt_chain_desc){.nodes = &one, .n_nodes = 1}, 3, 1, x, y, 2);
    assert_true(fabsf(y[0] - 5) < 1e-6f && fabsf(y[1] - 3) < 1e-6f);
    run_one(&(wt_chain_desc){.nodes = &many, .n_nodes = 1}, 3, 3, x, y, 2);
    for (int c = 0; c < 3; c++) assert_true(fabsf(y[2 * c] - 5) < 1e-6f && fabsf(y[2 * c + 1] - 3) < 1e-6f);
}

static const char *const three[] = {"middle", "sides", "in"};
static const wt_setting levels[] = {{"gain1_db", NULL, -6}, {"gain2_db", NULL, 3}, {"gain3_db", NULL, -120}};
static const wt_node_desc graph[] = {
    {.type = "mono", .id = "middle"},
    {.type = "pan", .id = "sides", .inputs = (const char *const[]){"in"}, .n_inputs = 1},
    {.type = "mix", .inputs = three, .n_inputs = 3, .settings = levels, .n_settings = 3},
};
static const wt_chain_desc graph_chain = {.nodes = graph, .n_nodes = 3};

static void mix_spreads_one_channel_over_all(void **state)
{
    (void)state;
    const float x[4] = {0.5f, 0.25f, 1.0f, -0.25f};
    float y[4];
    run_one(&graph_chain, 2, 2, x, y, 2);
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < 2; n++) {
            float mean = (x[n] + x[2 + n]) / 2, expected = mean * 0.5011872f + x[2 * c + n] * 1.4125375f;
            assert_true(fabsf(y[2 * c + n] - expected) < 1e-5f);
        }
    check_block_sizes(&graph_chain, 2, RATE);
}

static void gpu_agrees(void **state)
{
    (void)state;
    check_cuda(&graph_chain, 2, RATE, 1, 0, -0.5f, 110);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pan_keeps_the_power_of_a_mono_input),
        cmocka_unit_test(pan_leaves_stereo_alone_in_the_middle),
        cmocka_unit_test(pan_refuses_more_than_stereo),
        cmocka_unit_test(mono_is_the_mean),
        cmocka_unit_test(mix_spreads_one_channel_over_all),
        cmocka_unit_test(gpu_agrees),
    };
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}
