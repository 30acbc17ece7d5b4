#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <string.h>
#include <warptone/agc.h>

#define RATE 48000.0
enum { N = 4 * 48000 };

static float x[2][N], y[2][N], want[2][N];

// A voice that swells, pauses and gets louder by 20 dB half-way.
static void make_voice(void)
{
    uint64_t seed = 4;
    for (int n = 0; n < N; n++) {
        const float swell = sinf((float)(2 * M_PI * 1.3 / RATE * n)), level = n < N / 2 ? 0.02f : 0.2f;
        x[0][n] = level * (swell > 0 ? swell : 0) * noise(&seed) + 1e-4f * noise(&seed);
        x[1][n] = 0.5f * x[0][n];
    }
}

static void it_is_the_offline_control(void **state)
{
    (void)state;
    make_voice();
    wt_agc *offline;
    assert_ok(wt_agc_create(&(wt_agc_config){.target_db = -18, .max_gain_db = 20, .fall_db_per_s = 50}, &offline));
    const wt_setting settings[] = {{"target_db", NULL, -18}, {"max_gain_db", NULL, 20}, {"fall_db_s", NULL, 50}};
    wt_chain *chain = node_chain("agc", settings, 3, 2, RATE);
    process_blocks(chain, x[0], y[0], N, 100, N);
    wt_agc_process(offline, (const float *[]){x[0], x[1]}, (float *[]){want[0], want[1]}, N);
    // fall_db_s moves in the logarithm: exp(log(50)) in float is off by 1e-7
    assert_snr_db(want[0], y[0], 2 * (size_t)N, 110);
    assert_int_equal(wt_chain_latency_frames(chain), 0);
    assert_true(fabs(reading(chain, 0, 0) - wt_agc_gain_db(offline)) < 0.1);
    wt_agc_destroy(offline);
    wt_chain_destroy(chain);
}

static void level_and_gain_are_shown(void **state)
{
    (void)state;
    sine_signal(x[0], N, 1000, RATE, 0.01, 0); // -43 dB
    wt_chain *chain = node_chain("agc", NULL, 0, 1, RATE);
    process_blocks(chain, x[0], y[0], N, 64, N);
    assert_true(fabsf(reading(chain, 0, 1) + 43.01f) < 0.1f);
    assert_true(fabsf(reading(chain, 0, 0) - 23.01f) < 0.1f); // 6 dB a second for four, to -20 dB
    memset(x, 0, sizeof x);
    process_blocks(chain, x[0], y[0], N, 64, N);
    assert_true(reading(chain, 0, 1) == -120);
    const float gain_db =
        reading(chain, 0, 0); // it rose until the level's 50 ms had fallen to the gate, and stands still
    assert_true(gain_db > 22.9f && gain_db < 23.6f);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"rise_db_s", NULL, 900}, {"fall_db_s", NULL, 900}, {"target_db", NULL, -10}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    check_node("agc", busy, 3);
}

// Sums in double in another order, rounded to float once.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("agc", busy, 3, 0, -30, 120);
    check_node_cuda_readings("agc", busy, 3, 0.001f);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting loud[] = {{"target_db", NULL, 3}};
    check_refusal("agc", loud, 1, WT_ERR_BAD_ARG, "chain: agc: target_db is 3, want -60..0 dB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_offline_control),
        cmocka_unit_test(level_and_gain_are_shown),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("agc node", tests, NULL, NULL);
}
