#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>

#define RATE 48000.0
enum { FRAMES = 12000, HALF = 48 };

// True peak by 16 times oversampling: a sinc of 96 samples, Blackman's window. Flat to 0.47 of the rate.
static float oversampled_peak_db(const float *x, int n_frames)
{
    static float h[16][2 * HALF];
    float peak = 0;
    for (int p = 0; p < 16; p++)
        for (int k = 0; k < 2 * HALF; k++) {
            double t = k - HALF + 1 - p / 16.0, w = M_PI * t / HALF;
            h[p][k] = (float)((t == 0 ? 1 : sin(M_PI * t) / (M_PI * t)) * (0.42 + 0.5 * cos(w) + 0.08 * cos(2 * w)));
        }
    for (int n = HALF; n < n_frames - HALF; n++)
        for (int p = 0; p < 16; p++) {
            float sum = 0;
            for (int k = 0; k < 2 * HALF; k++) sum += h[p][k] * x[n - HALF + 1 + k];
            peak = fmaxf(peak, fabsf(sum));
        }
    return to_db(peak);
}

enum { QUARTER_RATE, TONE, CLIPPED_NOISE, BURSTS, IMPULSES, N_NASTY };

static void nasty_signal(int kind, float *x)
{
    uint64_t seed = 5;
    float low = 0;
    switch (kind) {
    case QUARTER_RATE: sine_signal(x, FRAMES, RATE / 4, RATE, 2, M_PI / 4); break;
    case TONE: sine_signal(x, FRAMES, 9973, RATE, 3, 1); break;
    default:
        for (int n = 0; n < FRAMES; n++) {
            low += 0.5f * (noise(&seed) - low); // 7 kHz one-pole
            x[n] = kind == CLIPPED_NOISE ? fmaxf(fminf(20 * low, 1.5f), -1.5f)
                   : kind == BURSTS      ? (float)(4 * sin(0.9 * n)) * (n / 700 % 2)
                                         : n % 977 < 2 ? 5 : 0.1f;
        }
    }
}

// Measured over the ceiling: quarter-rate sine 0.05 dB (three decibels of it between the samples), tone at 0.21 of the
// rate -0.01, bursts 0.07, impulses 0.02. Clipped noise 0.63: it has power up to the Nyquist frequency, and the
// interpolator's 24 taps end at 0.46 of the rate.
static void the_true_peak_stays_below_the_ceiling(void **state)
{
    (void)state;
    static const float over_db[N_NASTY] = {0.1f, 0, 0.7f, 0.1f, 0.05f};
    const wt_setting settings[] = {{"ceiling_db", NULL, -1}, {"release_ms", NULL, 20}};
    static float x[FRAMES], y[FRAMES];
    for (int kind = 0; kind < N_NASTY; kind++) {
        nasty_signal(kind, x);
        wt_chain *chain = node_chain("limiter", settings, 2, 1, RATE);
        process_blocks(chain, x, y, FRAMES, 64, FRAMES);
        float worst = 0;
        for (int n = 0; n < FRAMES; n++) worst = fmaxf(worst, fabsf(y[n]));
        assert_true(oversampled_peak_db(y, FRAMES) < -1 + over_db[kind]);
        assert_true(worst <= from_db(-1) * 1.000001f);
        wt_chain_destroy(chain);
    }
}

static void a_steady_tone_comes_out_at_the_ceiling(void **state)
{
    (void)state;
    static float x[FRAMES], y[FRAMES];
    sine_signal(x, FRAMES, 1000, RATE, 2, 0);
    wt_chain *chain = node_chain("limiter", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    float worst = 0;
    for (int n = FRAMES / 2; n < FRAMES; n++) worst = fmaxf(worst, fabsf(y[n]));
    assert_true(fabsf(to_db(worst) + 1) < 0.02); // released 0.5 ms between peaks with 80 ms: under 0.05 dB of 7
    assert_true(fabsf(reading(chain, 0, 0) - 7.02f) < 0.05f);
    wt_chain_destroy(chain);
}

static void a_quiet_signal_is_delayed_and_nothing_else(void **state)
{
    (void)state;
    float *x = noise_signal(FRAMES, 9), *y = calloc(FRAMES, sizeof *y);
    for (int n = 0; n < FRAMES; n++) x[n] *= 0.5f;
    wt_chain *chain = node_chain("limiter", NULL, 0, 1, RATE);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    int latency = wt_chain_latency_frames(chain);
    assert_int_equal(latency, 72);
    assert_memory_equal(x, y + latency, sizeof *x * (size_t)(FRAMES - latency));
    wt_chain_destroy(chain);
    free(x), free(y);
}

static void the_gain_lets_go_with_its_time_constant(void **state)
{
    (void)state;
    enum { DOWN = 4800 };
    const wt_setting settings[] = {{"ceiling_db", NULL, 0}, {"release_ms", NULL, 50}};
    static float x[FRAMES], y[FRAMES];
    for (int n = 0; n < FRAMES; n++) x[n] = n < DOWN ? 4 : 0.25f;
    wt_chain *chain = node_chain("limiter", settings, 2, 1, RATE);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    int latency = wt_chain_latency_frames(chain), n = DOWN + 200; // both ends of the 1/e are past the window
    float begin_db = to_db(y[n + latency] / 0.25f);
    while (to_db(y[n + latency] / 0.25f) < begin_db * expf(-1)) n++;
    assert_true(fabs((n - DOWN - 200) * 1000 / RATE - 50) < 0.5); // 1 %
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"ceiling_db", NULL, -12}, {"release_ms", NULL, 5}, {"lookahead_ms", NULL, 2}};

static void lookahead_is_the_latency(void **state)
{
    (void)state;
    const char *const ms[] = {"0.4", "1.5", "5"};
    for (int k = 0; k < 3; k++) {
        wt_setting setting = {"lookahead_ms", ms[k], 0};
        wt_node_desc node;
        wt_chain_desc desc = node_desc(&node, "limiter", &setting, 1);
        check_latency(&desc, RATE);
    }
}

// The standard 1.5 ms are 12 frames at a telephone's rate, where the interpolator wants 17.
static void low_rates_have_the_least_lookahead(void **state)
{
    (void)state;
    static float x[FRAMES], y[FRAMES];
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "limiter", NULL, 0);
    check_latency(&desc, 8000);
    wt_chain *chain = node_chain("limiter", NULL, 0, 1, 8000);
    assert_int_equal(wt_chain_latency_frames(chain), 17);
    nasty_signal(BURSTS, x);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    assert_true(oversampled_peak_db(y, FRAMES) < -1 + 0.1f);
    wt_chain_destroy(chain);
}

static void channels_share_one_gain(void **state)
{
    (void)state;
    static float x[2 * FRAMES], y[2 * FRAMES];
    sine_signal(x, FRAMES, 997, RATE, 2, 0);
    for (int n = 0; n < FRAMES; n++) x[FRAMES + n] = 0.01f * x[n];
    wt_chain *chain = node_chain("limiter", busy, 3, 2, RATE);
    process_blocks(chain, x, y, FRAMES, 64, FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(fabsf(y[FRAMES + n] - 0.01f * y[n]) < 1e-8f);
    wt_chain_destroy(chain);
}

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("limiter", busy, 3);
}

// Peaks are summed in another order; smoothing is in integers.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("limiter", busy, 3, 0, -20, 100);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting early[] = {{"lookahead_ms", NULL, 0.1}}, ceiling[] = {{"ceiling_db", NULL, 3}};
    check_refusal("limiter", early, 1, WT_ERR_BAD_ARG, "chain: limiter: lookahead_ms is 0.1, want 0.4..40");
    check_refusal("limiter", ceiling, 1, WT_ERR_BAD_ARG, "chain: limiter: ceiling_db is 3, want -60..0 dBTP");
    const wt_setting late[] = {{"lookahead_ms", "40", 0}};
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "limiter", late, 1);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = 192000, .channels = 1}, &desc, &chain), WT_ERR_BAD_ARG,
                 "chain: limiter: lookahead_ms is 40, want at most 21.3333 at 192000 Hz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_true_peak_stays_below_the_ceiling),
        cmocka_unit_test(a_steady_tone_comes_out_at_the_ceiling),
        cmocka_unit_test(a_quiet_signal_is_delayed_and_nothing_else),
        cmocka_unit_test(the_gain_lets_go_with_its_time_constant),
        cmocka_unit_test(lookahead_is_the_latency),
        cmocka_unit_test(low_rates_have_the_least_lookahead),
        cmocka_unit_test(channels_share_one_gain),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("limiter", tests, NULL, NULL);
}
