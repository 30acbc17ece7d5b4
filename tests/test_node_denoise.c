#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <string.h>
#include <warptone/denoise.h>

#define RATE 48000.0
enum { N = 2 * 48000 };

static float x[N], y[N], want[N];

// Noise, and half of the time a swelling tone.
static void make_voice(void)
{
    uint64_t seed = 9;
    for (int n = 0; n < N; n++) {
        const float swell = sinf((float)(2 * M_PI * 2 / RATE * n));
        x[n] = 0.02f * noise(&seed) + (swell > 0 ? 0.3f * swell * sinf((float)(2 * M_PI * 700 / RATE * n)) : 0);
    }
}

// The same windows, transforms of another library's order, the same rule: all three modes, strength and cut.
static void it_is_the_offline_reduction(void **state)
{
    (void)state;
    make_voice();
    const char *const modes[] = {"lsa", "wiener", "gate"};
    for (int mode = 0; mode < 3; mode++) {
        const wt_setting settings[] = {
            {"mode", modes[mode], 0}, {"strength", NULL, mode == 1 ? 0.7 : 1}, {"max_cut_db", NULL, 24}};
        wt_denoise *offline;
        assert_ok(wt_denoise_create(
            &(wt_denoise_config){
                .channels = 1, .mode = (wt_denoise_mode)mode, .max_cut_db = 24, .frame_ms = 1024 / 48.0},
            &offline));
        assert_int_equal(wt_denoise_window_frames(offline), 1024);
        wt_denoise_set_strength(offline, settings[1].value);
        wt_chain *chain = node_chain("denoise", settings, 3, 1, RATE);
        assert_int_equal(wt_chain_latency_frames(chain), wt_denoise_latency_frames(offline));
        process_blocks(chain, x, y, N, 64, N);
        wt_denoise_process(offline, (const float *[]){x}, (float *[]){want}, N);
        assert_snr_db(want, y, N, 100);
        wt_denoise_destroy(offline);
        wt_chain_destroy(chain);
    }
}

static void strength_0_gives_the_sound_back_at_the_latency(void **state)
{
    (void)state;
    make_voice();
    const wt_setting settings[] = {{"strength", NULL, 0}, {"latency_ms", NULL, 5.3}};
    wt_chain *chain = node_chain("denoise", settings, 2, 1, RATE);
    const int latency = wt_chain_latency_frames(chain);
    assert_int_equal(latency, 254);
    process_blocks(chain, x, y, N, 100, N);
    for (int n = 0; n < latency; n++) assert_true(fabsf(y[n]) < 1e-6f);
    assert_snr_db(x, y + latency, (size_t)(N - latency), 120); // float transforms give 130 to 140
    wt_chain_destroy(chain);
}

static void silence_stays_silence_and_what_is_not_a_number_goes(void **state)
{
    (void)state;
    memset(x, 0, sizeof x);
    wt_chain *chain = node_chain("denoise", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, N, 64, N);
    for (int n = 0; n < N; n++) assert_true(y[n] == 0);
    make_voice();
    x[N / 4] = NAN;
    process_blocks(chain, x, y, N, 64, N);
    assert_true(wt_chain_faults(chain) > 0);
    float loudest = 0;
    for (int n = N / 2; n < N; n++) loudest = fmaxf(loudest, fabsf(y[n]));
    assert_true(loudest > 0.25f && loudest < 0.35f);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"latency_ms", NULL, 3.1}, {"n_fft", NULL, 512}, {"mode", "gate", 0}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("denoise", busy, 3);
    check_node("denoise", NULL, 0);
}

// Gains follow powers smoothly, and powers differ by 1e-7 of the spectrum's peak.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("denoise", busy, 3, 0, 0.5f, 90);
    check_node_cuda("denoise", NULL, 0, 1, 12, 90);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting shorter[] = {{"latency_ms", NULL, 20}, {"n_fft", NULL, 512}};
    check_refusal("denoise", shorter, 2, WT_ERR_BAD_ARG,
                  "chain: denoise: latency_ms 20 is 960 frames, want at most n_fft, which is 512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_offline_reduction),
        cmocka_unit_test(strength_0_gives_the_sound_back_at_the_latency),
        cmocka_unit_test(silence_stays_silence_and_what_is_not_a_number_goes),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("denoise node", tests, NULL, NULL);
}
