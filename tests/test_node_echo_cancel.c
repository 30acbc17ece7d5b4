#include "support/testing.h"
#include "support/chain_check.h"
#include "support/node_check.h"

#include <math.h>
#include <string.h>
#include <warptone/echo.h>

#define RATE 16000.0
enum { N = 4 * 16000, SECOND = 16000, BLOCK = 256, TAPS = 600 };

static float heard[2][N], y[N], want[N]; // a microphone, playback

// White playback, and a microphone in a small room: 5 ms of way, then noise that falls by 60 dB in 37 ms, 6 dB below.
static void make_scene(float mic_noise)
{
    static float room[TAPS];
    uint64_t seed = 3;
    double energy = 0;
    for (int k = 0; k < TAPS; k++) {
        room[k] = k < 80 ? 0 : noise(&seed) * (float)pow(10, -3.0 * k / TAPS);
        energy += (double)room[k] * room[k];
    }
    for (int n = 0; n < N; n++) heard[1][n] = 0.3f * noise(&seed);
    for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int k = 0; k < TAPS && k <= n; k++) sum += (double)room[k] * heard[1][n - k];
        heard[0][n] = (float)(0.5 / sqrt(energy) * sum) + mic_noise * noise(&seed);
    }
}

static double power_db(const float *x, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)x[k] * x[k];
    return 10 * log10(sum / n + 1e-30);
}

static const wt_setting room_sized[] = {{"tail_ms", NULL, 48}, {"block", NULL, BLOCK}};

// The same blocks and formulas, transforms in another order; the filter learns from its own rounding errors.
static void it_is_the_offline_canceller(void **state)
{
    (void)state;
    make_scene(0.002f);
    wt_echo *offline;
    assert_ok(wt_echo_create(
        &(wt_echo_config){.rate_hz = SECOND, .channels = 1, .tail_ms = 48, .latency_ms = BLOCK / RATE * 1e3},
        &offline));
    assert_int_equal(wt_echo_latency_frames(offline), BLOCK);
    wt_chain *chain = node_chain("echo_cancel", room_sized, 2, 2, RATE);
    assert_int_equal(wt_chain_latency_frames(chain), BLOCK);
    assert_int_equal(wt_chain_out_channels(chain), 1);
    process_blocks(chain, heard[0], y, N, 64, N);
    wt_echo_process(offline, (const float *[]){heard[0]}, heard[1], (float *[]){want}, N);
    assert_snr_db(want, y, N, 90);
    const double down_db =
        power_db(heard[0] + 3 * SECOND, SECOND - BLOCK) - power_db(y + 3 * SECOND + BLOCK, SECOND - BLOCK);
    print_message("echo %.1f dB down, shown as %.1f; playback %.1f dB\n", down_db, (double)reading(chain, 0, 0),
                  (double)reading(chain, 0, 1));
    assert_true(down_db > 25);
    assert_true(fabs(reading(chain, 0, 0) - down_db) < 3);
    assert_true(fabs(reading(chain, 0, 1) - power_db(heard[1], N)) < 1);
    wt_echo_destroy(offline);
    wt_chain_destroy(chain);
}

// Playback by the side chain: a delay is the room, what comes in is played.
static void playback_may_come_by_the_side_chain(void **state)
{
    (void)state;
    make_scene(0);
    const wt_setting way[] = {{"time_ms", NULL, 20}, {"mix", NULL, 1}, {"feedback", NULL, 0}};
    const char *const from_room[] = {"room"};
    const wt_node_desc nodes[] = {
        {.type = "delay", .id = "room", .settings = way, .n_settings = 3},
        {.type = "echo_cancel",
         .inputs = from_room,
         .n_inputs = 1,
         .side = "in",
         .settings = room_sized,
         .n_settings = 2},
    };
    wt_chain *chain;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1},
                              &(wt_chain_desc){.nodes = nodes, .n_nodes = 2}, &chain));
    process_blocks(chain, heard[1], y, N, 100, N);
    assert_true(power_db(y + 3 * SECOND, SECOND) < power_db(heard[1], N) - 35);
    wt_chain_destroy(chain);
}

static void silent_playback_and_no_amount_pass_the_microphone(void **state)
{
    (void)state;
    make_scene(0.002f);
    const wt_setting none[] = {{"amount", NULL, 0}, {"block", NULL, 64}};
    wt_chain *chain = node_chain("echo_cancel", none, 2, 2, RATE);
    process_blocks(chain, heard[0], y, N, 64, N);
    assert_memory_equal(heard[0], y + 64, sizeof *y * (N - 64));
    wt_chain_destroy(chain);
    memset(heard[1], 0, sizeof heard[1]);
    chain = node_chain("echo_cancel", NULL, 0, 2, RATE);
    const int latency = wt_chain_latency_frames(chain);
    assert_int_equal(latency, 128); // the power of two near 10 ms
    process_blocks(chain, heard[0], y, N, 64, N);
    assert_memory_equal(heard[0], y + latency, sizeof *y * (size_t)(N - latency));
    wt_chain_destroy(chain);
}

static void what_is_not_a_number_counts_as_0(void **state)
{
    (void)state;
    make_scene(0);
    heard[0][1000] = NAN, heard[1][2000] = INFINITY, heard[1][3000] = NAN;
    wt_chain *chain = node_chain("echo_cancel", room_sized, 2, 2, RATE);
    process_blocks(chain, heard[0], y, N, 64, N);
    assert_int_equal(wt_chain_faults(chain), 0);
    assert_true(power_db(y + 3 * SECOND, SECOND) < power_db(heard[0] + 3 * SECOND, SECOND) - 35);
    wt_chain_destroy(chain);
}

static const wt_setting busy[] = {{"tail_ms", NULL, 12}, {"block", NULL, 64}};

static void blocks_change_no_bit_and_processing_is_real_time(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "echo_cancel", busy, 2);
    check_block_sizes(&desc, 2, RATE);
    check_block_sizes(&desc, 11, RATE);
    check_node_runs("echo_cancel", busy, 2);
}

// 80 dB: a filter that learns from its own rounding errors.
static void cuda_agrees(void **state)
{
    (void)state;
    check_node_cuda("echo_cancel", busy, 2, 0, 0.5f, 80);
    check_node_cuda("echo_cancel", NULL, 0, 0, 0.5f, 80);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    const wt_setting odd[] = {{"block", NULL, 100}};
    check_refusal("echo_cancel", odd, 1, WT_ERR_BAD_ARG,
                  "chain: echo_cancel: block is 100, want a power of two, 64..2048");
    wt_node_desc node;
    wt_chain_desc desc = node_desc(&node, "echo_cancel", NULL, 0);
    wt_chain *chain;
    assert_fails(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &desc, &chain), WT_ERR_BAD_ARG,
                 "chain: echo_cancel: 1 channel and no side chain, want a side chain or playback in the last of 2 or "
                 "more channels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_offline_canceller),
        cmocka_unit_test(playback_may_come_by_the_side_chain),
        cmocka_unit_test(silent_playback_and_no_amount_pass_the_microphone),
        cmocka_unit_test(what_is_not_a_number_counts_as_0),
        cmocka_unit_test(blocks_change_no_bit_and_processing_is_real_time),
        cmocka_unit_test(cuda_agrees),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
    };
    return cmocka_run_group_tests_name("echo_cancel node", tests, NULL, NULL);
}
