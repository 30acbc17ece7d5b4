#include "support/testing.h"
#include "support/chain_check.h"

#include "lfo_kernel.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0

static wt_chain *build(const char *type, const wt_setting *settings, int n, int channels)
{
    const wt_node_desc node = {.type = type, .settings = settings, .n_settings = n};
    const wt_chain_desc desc = {.nodes = &node, .n_nodes = 1};
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels}, &desc, &chain));
    return chain;
}

static void the_sine_is_a_sine(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 100000; k++) {
        unsigned phase = k * 42949u;
        assert_true(fabs((double)lfo_sine(phase) - sin(2 * M_PI * phase / LFO_TURN)) < 4e-6); // the series' next term
    }
}

// One voice of a sine's chorus against the formula in double, over two turns of the LFO and the second channel's half
// turn of offset. 95 dB: the delay is cut to 2^-16 of a frame (1.5e-5 * 2 pi 1000 / 48000, -114 dB), the sine is within
// 4e-6 of 96 frames (-86 dB of the swing's own, -94 dB rms at 1 kHz), Lagrange -100 dB.
static void a_voice_swings_as_told(void **state)
{
    (void)state;
    enum { FRAMES = 24000 };
    const double turn_hz = RATE / 8192; // a whole number of phase steps a frame
    const wt_setting settings[] = {{"voices", "1", 0}, {"rate_hz", NULL, turn_hz}, {"depth_ms", NULL, 2},
                                   {"delay_ms", NULL, 8}, {"mix", NULL, 1}};
    wt_chain *chain = build("chorus", settings, 5, 2);
    float *x = calloc(2 * FRAMES, sizeof *x), *y = calloc(2 * FRAMES, sizeof *y), *e = calloc(2 * FRAMES, sizeof *e);
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < FRAMES; n++) {
            double delay = 384 + 96 * sin(2 * M_PI * (turn_hz * n / RATE + 0.5 * c));
            x[c * FRAMES + n] = (float)sin(2 * M_PI * 1000 / RATE * n);
            e[c * FRAMES + n] = (float)sin(2 * M_PI * 1000 / RATE * (n - delay));
        }
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    for (int c = 0; c < 2; c++) assert_snr_db(e + c * FRAMES + 600, y + c * FRAMES + 600, FRAMES - 600, 92);
    wt_chain_destroy(chain);
    free(x), free(y), free(e);
}

// What a jump of the phase would do: at the turn of rate_hz the swing's delay leaps by up to 192 frames. The largest
// step between two frames stays what a 100 Hz sine in a swing makes by itself.
static void a_new_rate_does_not_jump(void **state)
{
    (void)state;
    enum { FRAMES = 48000 };
    const wt_setting settings[] = {{"voices", "1", 0}, {"rate_hz", NULL, 5}, {"depth_ms", NULL, 2},
                                   {"delay_ms", NULL, 8}, {"mix", NULL, 1}};
    wt_chain *chain = build("chorus", settings, 5, 1);
    float *x = calloc(FRAMES, sizeof *x), *y = calloc(FRAMES, sizeof *y), worst = 0;
    for (int n = 0; n < FRAMES; n++) x[n] = (float)sin(2 * M_PI * 100 / RATE * n);
    for (int done = 0; done < FRAMES; done += 4800) {
        process_blocks(chain, x + done, y + done, 4800, 64, 4800);
        assert_int_equal(wt_chain_set(chain, 0, 0, done % 9600 ? 5.0f : 0.37f), WT_OK);
    }
    for (int n = 1000; n < FRAMES; n++) worst = fmaxf(worst, fabsf(y[n] - y[n - 1]));
    assert_true(worst < 0.0140f); // 2 pi 100 / 48000 * (1 + 96 * 2 pi 5 / 48000) = 0.01391 at most
    wt_chain_destroy(chain);
    free(x), free(y);
}

static void channels_differ_and_the_level_stays(void **state)
{
    (void)state;
    enum { FRAMES = 48000 };
    const wt_setting settings[] = {{"voices", "4", 0}};
    wt_chain *chain = build("chorus", settings, 1, 2);
    float *x = noise_signal(2 * FRAMES, 3), *y = calloc(2 * FRAMES, sizeof *y);
    double in = 0, left = 0, right = 0, both = 0;
    for (int n = 0; n < FRAMES; n++) x[FRAMES + n] = x[n];
    process_blocks(chain, x, y, FRAMES, 512, FRAMES);
    for (int n = 2000; n < FRAMES; n++) {
        double l = (double)y[n], r = (double)y[FRAMES + n];
        in += (double)x[n] * x[n], left += l * l, right += r * r, both += l * r;
    }
    // half the amplitude of dry, half of four unrelated voices at half amplitude: 1/4 + 1/4 of the power; only the dry
    // part is common to both channels
    assert_true(fabs(left / in - 0.5) < 0.05 && fabs(right / in - 0.5) < 0.05);
    assert_true(fabs(both / sqrt(left * right) - 0.5) < 0.06);
    wt_chain_destroy(chain);
    free(x), free(y);
}

// With depth 0 a flanger is a comb of one fixed delay: a dirac comes back after 24 frames, each time by the feedback.
static void a_still_flanger_is_a_comb(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"depth_ms", NULL, 0}, {"delay_ms", NULL, 0.5}, {"feedback", NULL, -0.5},
                                   {"mix", NULL, 1}};
    float x[100] = {1}, y[100];
    wt_chain *chain = build("flanger", settings, 4, 1);
    process_blocks(chain, x, y, 100, 7, 100);
    for (int n = 0; n < 100; n++) {
        float expected = n == 24 ? 1 : n == 48 ? -0.5f : n == 72 ? 0.25f : n == 96 ? -0.125f : 0;
        assert_true(fabsf(y[n] - expected) < 4e-5f); // the delay is cut to 2^-16 of a frame
    }
    wt_chain_destroy(chain);
}

static void a_flanger_at_its_extremes_stays_finite(void **state)
{
    (void)state;
    enum { FRAMES = 48000 };
    const wt_setting settings[] = {{"rate_hz", NULL, 20}, {"depth_ms", NULL, 10}, {"delay_ms", NULL, 0.1},
                                   {"feedback", NULL, 0.97}};
    float *x = noise_signal(FRAMES, 9), *y = calloc(FRAMES, sizeof *y);
    wt_chain *chain = build("flanger", settings, 4, 1);
    process_blocks(chain, x, y, FRAMES, 256, FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(fabsf(y[n]) < 20); // 0.5 / (1 - 0.97) = 17 for a steady tone
    assert_int_equal(wt_chain_faults(chain), 0);
    wt_chain_destroy(chain);
    free(x), free(y);
}

static const wt_setting chorus_settings[] = {{"voices", "3", 0}, {"rate_hz", NULL, 3.3}};
static const wt_node_desc chorus_node = {.type = "chorus", .settings = chorus_settings, .n_settings = 2};
static const wt_chain_desc chorus_chain = {.nodes = &chorus_node, .n_nodes = 1};
static const wt_setting flanger_settings[] = {{"rate_hz", NULL, 3.3}, {"delay_ms", NULL, 0.1},
                                              {"feedback", NULL, -0.8}};
static const wt_node_desc flanger_node = {.type = "flanger", .settings = flanger_settings, .n_settings = 3};
static const wt_chain_desc flanger_chain = {.nodes = &flanger_node, .n_nodes = 1};

static void blocks_change_nothing(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 2; channels++) {
        check_block_sizes(&chorus_chain, channels, RATE);
        check_block_sizes(&flanger_chain, channels, RATE);
    }
}

static void chorus_on_the_gpu_agrees_while_the_depth_moves(void **state)
{
    (void)state;
    check_cuda(&chorus_chain, 2, RATE, 0, 1, 5, 110); // delays are equal to the bit, sums round differently
}

static void chorus_on_the_gpu_agrees_while_the_rate_moves(void **state)
{
    (void)state;
    check_cuda(&chorus_chain, 11, RATE, 0, 0, 0.2f, 110);
}

static void flanger_on_the_gpu_agrees_while_the_delay_moves(void **state)
{
    (void)state;
    check_cuda(&flanger_chain, 3, RATE, 0, 2, 4, 110);
}

static void five_voices_are_refused(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"voices", "5", 0}};
    const wt_node_desc node = {.type = "chorus", .settings = settings, .n_settings = 1};
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: chorus: voices is '5', want 1|2|3|4");
}

static void a_runaway_flanger_is_refused(void **state)
{
    (void)state;
    const wt_setting settings[] = {{"feedback", NULL, 1.1}};
    const wt_node_desc node = {.type = "flanger", .settings = settings, .n_settings = 1};
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: flanger: feedback is 1.1, want -0.97..0.97");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sine_is_a_sine),
        cmocka_unit_test(a_voice_swings_as_told),
        cmocka_unit_test(a_new_rate_does_not_jump),
        cmocka_unit_test(channels_differ_and_the_level_stays),
        cmocka_unit_test(a_still_flanger_is_a_comb),
        cmocka_unit_test(a_flanger_at_its_extremes_stays_finite),
        cmocka_unit_test(blocks_change_nothing),
        cmocka_unit_test(chorus_on_the_gpu_agrees_while_the_depth_moves),
        cmocka_unit_test(chorus_on_the_gpu_agrees_while_the_rate_moves),
        cmocka_unit_test(flanger_on_the_gpu_agrees_while_the_delay_moves),
        cmocka_unit_test(five_voices_are_refused),
        cmocka_unit_test(a_runaway_flanger_is_refused),
    };
    return cmocka_run_group_tests_name("chorus", tests, NULL, NULL);
}
