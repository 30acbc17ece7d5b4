#include "support/testing.h"
#include "support/chain_check.h"

#include "biquad_kernel.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0
static const char *const shapes[] = {"lowpass", "highpass", "bandpass", "notch", "peak", "lowshelf", "highshelf",
                                     "allpass"};

static void run_one(const wt_chain_desc *desc, int channels, const float *x, float *y, int n_frames)
{
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = channels}, desc, &chain));
    process_blocks(chain, x, y, n_frames, 64, n_frames);
    wt_chain_destroy(chain);
}

// Every shape against the cookbook in double, low and high corners. 105 dB: float states; a 20 Hz corner at 48 kHz
// moves them by 1e-3 a frame, so 10 of their 24 bits are below what one step adds.
static void shapes_match_the_cookbook(void **state)
{
    (void)state;
    enum { FRAMES = 8000 };
    const double corners[] = {20, 200, 3000, 18000};
    float *x = noise_signal(FRAMES, 3), expected[FRAMES], y[FRAMES];
    for (int s = 0; s < 8; s++)
        for (int f = 0; f < 4; f++) {
            const wt_setting settings[] = {{"shape", shapes[s], 0}, {"frequency_hz", NULL, corners[f]},
                                           {"q", NULL, 1.3}, {"gain_db", NULL, -9}};
            const wt_node_desc node = {.type = "biquad", .settings = settings, .n_settings = 4};
            run_one(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 1, x, y, FRAMES);
            biquad_ref(s, RATE, corners[f], 1.3, -9, x, expected, FRAMES);
            double snr = snr_db(expected, y, FRAMES);
            if (snr < 105) fail_msg("%s at %g Hz: %.1f dB, want 105", shapes[s], corners[f], snr);
        }
    free(x);
}

static const wt_setting peak[] = {{"shape", "peak", 0}, {"frequency_hz", NULL, 900}, {"gain_db", NULL, 8}};
static const wt_node_desc peak_node = {.type = "biquad", .settings = peak, .n_settings = 3};
static const wt_chain_desc peak_chain = {.nodes = &peak_node, .n_nodes = 1};

static void blocks_and_odd_channels_change_nothing(void **state)
{
    (void)state;
    check_block_sizes(&peak_chain, 1, RATE);
    check_block_sizes(&peak_chain, 11, RATE);
}

static void gpu_agrees_while_the_corner_moves(void **state)
{
    (void)state;
    check_cuda(&peak_chain, 3, RATE, 0, 0, 5000, 100); // other order of sums, tanf and expf within 2 ulp
}

static const char *const from_input[] = {"in"};

static wt_node_desc band_node(const wt_setting *settings)
{
    return (wt_node_desc){.type = "crossover", .settings = settings, .n_settings = 4,
                          .inputs = from_input, .n_inputs = 1};
}

// The bands of a set add up to the all-pass of its splits.
static void crossover_bands_add_up_flat(void **state)
{
    (void)state;
    enum { FRAMES = 8000 };
    const wt_setting bands[3][4] = {
        {{"bands", "3", 0}, {"band", "1", 0}, {"split1_hz", NULL, 300}, {"split2_hz", NULL, 3000}},
        {{"bands", "3", 0}, {"band", "2", 0}, {"split1_hz", NULL, 300}, {"split2_hz", NULL, 3000}},
        {{"bands", "3", 0}, {"band", "3", 0}, {"split1_hz", NULL, 300}, {"split2_hz", NULL, 3000}}};
    const char *const all[] = {"low", "mid", "high"};
    wt_node_desc nodes[4] = {band_node(bands[0]), band_node(bands[1]), band_node(bands[2]),
                             {.type = "mix", .inputs = all, .n_inputs = 3}};
    for (int k = 0; k < 3; k++) nodes[k].id = all[k];
    float *x = noise_signal(FRAMES, 5), y[FRAMES], expected[FRAMES], between[FRAMES];
    run_one(&(wt_chain_desc){.nodes = nodes, .n_nodes = 4}, 1, x, y, FRAMES);
    biquad_ref(BIQUAD_ALLPASS, RATE, 300, sqrt(0.5), 0, x, between, FRAMES);
    biquad_ref(BIQUAD_ALLPASS, RATE, 3000, sqrt(0.5), 0, between, expected, FRAMES);
    assert_snr_db(expected, y, FRAMES, 105);
    check_block_sizes(&(wt_chain_desc){.nodes = nodes, .n_nodes = 4}, 2, RATE);
    free(x);
}

static void crossover_on_the_gpu_agrees(void **state)
{
    (void)state;
    const wt_setting low[] = {{"bands", "4", 0}, {"band", "2", 0}, {"split1_hz", NULL, 300}, {"split2_hz", NULL, 900}};
    wt_node_desc node = band_node(low);
    check_cuda(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 2, RATE, 0, 0, 500, 100);
}

static void crossover_refuses_falling_splits(void **state)
{
    (void)state;
    const wt_setting bad[] = {{"bands", "3", 0}, {"band", "1", 0}, {"split1_hz", NULL, 3000}, {"split2_hz", NULL, 300}};
    wt_node_desc node = band_node(bad);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                                 &(wt_chain_desc){.nodes = &node, .n_nodes = 1}, &chain),
                 WT_ERR_BAD_ARG, "chain: crossover: split1_hz is 3000 and split2_hz is 300, want rising splits");
}

static void dc_block_removes_an_offset(void **state)
{
    (void)state;
    enum { FRAMES = 48000 };
    float *x = malloc(sizeof *x * FRAMES), *y = malloc(sizeof *y * FRAMES), worst = 0;
    for (int n = 0; n < FRAMES; n++) x[n] = 0.25f;
    const wt_node_desc node = {.type = "dc_block"};
    run_one(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 1, x, y, FRAMES);
    for (int n = FRAMES / 2; n < FRAMES; n++) worst = fmaxf(worst, fabsf(y[n]));
    assert_true(worst < 1e-5f); // half a second is 31 time constants of a 10 Hz Butterworth
    free(x), free(y);
    check_cuda(&(wt_chain_desc){.nodes = &node, .n_nodes = 1}, 2, RATE, 0, 0, 30, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_match_the_cookbook),
        cmocka_unit_test(blocks_and_odd_channels_change_nothing),
        cmocka_unit_test(gpu_agrees_while_the_corner_moves),
        cmocka_unit_test(crossover_bands_add_up_flat),
        cmocka_unit_test(crossover_on_the_gpu_agrees),
        cmocka_unit_test(crossover_refuses_falling_splits),
        cmocka_unit_test(dc_block_removes_an_offset),
    };
    return cmocka_run_group_tests_name("biquad", tests, NULL, NULL);
}
