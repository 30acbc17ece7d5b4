#include "support/testing.h"
#include "support/chain_check.h"

#include <math.h>

#define RATE 48000.0

static wt_chain_desc delay_chain(const wt_setting *settings, int n, wt_node_desc *node)
{
    *node = (wt_node_desc){.type = "delay", .settings = settings, .n_settings = n};
    return (wt_chain_desc){.nodes = node, .n_nodes = 1};
}

static void run_one(const wt_chain_desc *desc, const float *x, float *y, int n_frames)
{
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, desc, &chain));
    process_blocks(chain, x, y, n_frames, 64, n_frames);
    wt_chain_destroy(chain);
}

static void an_echo_comes_after_its_time_and_halves(void **state)
{
    (void)state;
    enum { FRAMES = 2000 };
    const wt_setting settings[] = {{"time_ms", NULL, 10}, {"feedback", NULL, 0.5}, {"mix", NULL, 1}};
    wt_node_desc node;
    wt_chain_desc desc = delay_chain(settings, 3, &node);
    float x[FRAMES] = {1}, y[FRAMES];
    run_one(&desc, x, y, FRAMES);
    for (int n = 0; n < FRAMES; n++) {
        float expected = n == 480 ? 1 : n == 960 ? 0.5f : n == 1440 ? 0.25f : n == 1920 ? 0.125f : 0;
        assert_true(fabsf(y[n] - expected) < 1e-4f); // 10 ms is 480.0000114 frames in float: the neighbours get 1e-5
    }
}

// A sine delayed by 100.5 frames. Lagrange of fifth order at half a frame: error (w/2)^6 * 1.07 at w = 2 pi f / rate,
// -100 dB at 1 kHz.
static void a_fraction_of_a_frame_is_kept(void **state)
{
    (void)state;
    enum { FRAMES = 4000 };
    const wt_setting settings[] = {{"time_ms", NULL, 100.5 / 48}, {"mix", NULL, 1}};
    wt_node_desc node;
    wt_chain_desc desc = delay_chain(settings, 2, &node);
    float x[FRAMES], y[FRAMES], expected[FRAMES];
    for (int n = 0; n < FRAMES; n++) {
        x[n] = (float)sin(2 * M_PI * 1000 / RATE * n);
        expected[n] = (float)sin(2 * M_PI * 1000 / RATE * (n - 100.5));
    }
    run_one(&desc, x, y, FRAMES);
    assert_snr_db(expected + 200, y + 200, FRAMES - 200, 98);
}

static const wt_setting short_loop[] = {{"time_ms", NULL, 0.4}, {"feedback", NULL, -0.7}, {"mix", NULL, 0.6}};

static void blocks_change_nothing(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_chain_desc desc = delay_chain(short_loop, 3, &node);
    check_block_sizes(&desc, 2, RATE);
}

static void gpu_agrees_while_the_time_glides(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_chain_desc desc = delay_chain(short_loop, 3, &node);
    check_cuda(&desc, 2, RATE, 0, 0, 3, 90); // the glide's position is float: 1e-5 frames after 100 frames
}

static void a_time_beyond_the_line_is_refused(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"time_ms", NULL, 500}, {"max_ms", NULL, 100}};
    wt_node_desc node;
    wt_chain_desc desc = delay_chain(settings, 2, &node);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &desc, &chain), WT_ERR_BAD_ARG,
                 "chain: delay: time_ms is 500, want at most max_ms, which is 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_echo_comes_after_its_time_and_halves),
        cmocka_unit_test(a_fraction_of_a_frame_is_kept),
        cmocka_unit_test(blocks_change_nothing),
        cmocka_unit_test(gpu_agrees_while_the_time_glides),
        cmocka_unit_test(a_time_beyond_the_line_is_refused),
    };
    return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
