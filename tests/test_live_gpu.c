// The live engine on a device: the same tests on the CPU backend, where a C function stands for the resident kernel,
// and on a GPU. Nothing here depends on how fast a machine is, unless it says so: blocks are played in freewheel, which
// waits for every answer.
#include "support/testing.h"
#include "support/chain_check.h"
#include "support/device_check.h"
#include "support/live_check.h"
#include "support/live_device.h"
#include "support/node_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/arm.h>

// ---- chains

static void check_chain_within(wt_device *device, wt_live_path path, const wt_chain_desc *desc, int block,
                               double want_db)
{
    float *x = noise_signal(2 * LIVE_FRAMES, 11), *want = calloc(2 * LIVE_FRAMES, sizeof *want),
          *y = calloc(2 * LIVE_FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, desc, &chain));
    const wt_live_config config = live_config_on(device, path, 2);
    wt_live *live = patient_live(&config, desc);
    const wt_live_stats begun = live_stats_of(live);
    assert_int_equal(begun.path, path);
    assert_int_equal(begun.n_threads, begun.n_threads_wanted);
    assert_int_equal(begun.n_threads > 0, live_on_gpu(device));
    process_blocks(chain, x, want, LIVE_FRAMES / 2, 64, LIVE_FRAMES);
    live_blocks(live, x, y, LIVE_FRAMES / 2, block, LIVE_FRAMES);
    assert_int_equal(wt_chain_set(chain, 0, 0, wt_chain_get(chain, 0, 0) * 0.9f), WT_OK);
    assert_int_equal(wt_live_set(live, 0, 0, wt_live_get(live, 0, 0) * 0.9f), WT_OK);
    process_blocks(chain, x + LIVE_FRAMES / 2, want + LIVE_FRAMES / 2, LIVE_FRAMES / 2, 64, LIVE_FRAMES);
    live_blocks(live, x + LIVE_FRAMES / 2, y + LIVE_FRAMES / 2, LIVE_FRAMES / 2, block, LIVE_FRAMES);
    assert_near_audio(device, want, y, LIVE_FRAMES, 2, LIVE_FRAMES, want_db);
    const int last = wt_chain_n_nodes(chain) - 1;
    float a[16], b[16];
    const int n = wt_chain_readings(chain, last, a, 16);
    assert_int_equal(wt_live_readings(live, last, b, 16), n);
    for (int k = 0; k < n; k++)
        if (!(fabsf(a[k] - b[k]) <= 0.01f * (1 + fabsf(a[k])) || a[k] == b[k]))
            fail_msg("%s: reading %d is %g, want %g", desc->name, k, (double)b[k], (double)a[k]);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    const wt_live_times times = wt_live_last_times(live);
    assert_true(times.round_trip_ns > 0 && times.away_ns >= 0 && times.away_ns <= times.round_trip_ns);
    assert_true(live_on_gpu(device) ? times.device_ns >= 0 && times.device_ns <= times.round_trip_ns &&
                                          times.look_ns <= times.device_ns
                                    : times.device_ns == -1);
    assert_true(times.n_launches > 0);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void check_chain(wt_device *device, wt_live_path path, const wt_chain_desc *desc, int block)
{
    check_chain_within(device, path, desc, block, 90);
}

static void the_resident_path_equals_the_chain(void **state)
{
    wt_device *device = device_of(state);
    const int blocks[] = {16, 64, 256, 0};
    for (int k = 0; k < 4; k++) check_chain(device, WT_LIVE_RESIDENT, &live_full_voice, blocks[k]);
    for (int k = 0; k < N_LIVE_CHAINS; k++) check_chain(device, WT_LIVE_RESIDENT, &live_chains[k].desc, 64);
    assert_false(wt_device_is_armed(device));
}

static void the_graph_path_equals_the_chain(void **state)
{
    wt_device *device = device_of(state);
    check_chain(device, WT_LIVE_GRAPH, &live_full_voice, 64);
    check_chain(device, WT_LIVE_GRAPH, &live_chains[0].desc, 0);
}

// The types that no chain of live_device.c has. Openness of a gate and an expander rounds to 1.4e-6, of the 80 dB that
// they close by -97 dB each, and `turned` feeds differences back into what it adapts to: 80 dB.
static const wt_setting lowpass[] = {{"design", "lowpass", 0}};
static const wt_node_desc levels[] = {{.type = "dc_block"}, {.type = "gate"},    {.type = "expander"},
                                      {.type = "deesser"},  {.type = "leveler"}, {.type = "agc"}};
static const wt_node_desc places[] = {{.type = "fir", .settings = lowpass, .n_settings = 1},
                                      {.type = "flanger"},
                                      {.type = "gain"},
                                      {.type = "mono"},
                                      {.type = "pan"},
                                      {.type = "vad"}};
static const wt_node_desc spectra[] = {{.type = "denoise"}, {.type = "hpss"}};
static const wt_node_desc turned[] = {{.type = "echo_cancel"}, {.type = "pitch_shift"}};
static const wt_chain_desc other_chains[] = {{.name = "levels", .nodes = levels, .n_nodes = 6},
                                             {.name = "places", .nodes = places, .n_nodes = 6},
                                             {.name = "spectra", .nodes = spectra, .n_nodes = 2},
                                             {.name = "turned", .nodes = turned, .n_nodes = 2}};
enum { N_OTHER_CHAINS = sizeof other_chains / sizeof *other_chains };

static bool has_type(const wt_chain_desc *desc, const char *type)
{
    for (int k = 0; k < desc->n_nodes; k++)
        if (!strcmp(desc->nodes[k].type, type)) return true;
    return false;
}

static void every_other_node_equals_the_chain(void **state)
{
    wt_device *device = device_of(state);
    for (int k = 0; k < N_OTHER_CHAINS; k++)
        check_chain_within(device, WT_LIVE_RESIDENT, &other_chains[k], 64, 80);
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        bool played = type->flags & (WT_NODE_INTERNAL | WT_NODE_CUDA_ONLY); // a user's kernel: test_live_change
        played |= has_type(&live_full_voice, type->name);
        for (int k = 0; k < N_LIVE_CHAINS; k++) played |= has_type(&live_chains[k].desc, type->name);
        for (int k = 0; k < N_OTHER_CHAINS; k++) played |= has_type(&other_chains[k], type->name);
        if (!played) fail_msg("no chain of this test plays a %s", type->name);
    }
}

// The text of a short longest block has ways of its own; and at a pace the kernel asks for blocks before they come, and
// rehearses between two, which must change nothing, above all where a parameter moves next.
static void check_paced(wt_device *device, double rate_hz, int channels, int block)
{
    enum { N = 4800 };
    float *x = noise_signal(channels * N, 12), *want = calloc((size_t)channels * N, sizeof *want),
          *y = calloc((size_t)channels * N, sizeof *y);
    wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, channels);
    wt_chain *chain = NULL;
    config.rate_hz = rate_hz, config.max_frames = block;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = rate_hz, .channels = channels}, &live_full_voice, &chain));
    wt_live *live = patient_live(&config, &live_full_voice);
    for (int done = 0, n; done < N; done += n) {
        n = N - done < block ? N - done : block;
        const int moves = done / 1500, before = (done - block) / 1500; // ramps of 20 ms, then some blocks at rest
        for (int node = 0; node < 3 && moves > before; node++) { // two filters and what else the chain begins with
            const float value = wt_chain_get(chain, node, 0) * (moves % 2 ? 0.8f : 1.25f);
            assert_int_equal(wt_chain_set(chain, node, 0, value), WT_OK);
            assert_int_equal(wt_live_set(live, node, 0, value), WT_OK);
        }
        process_blocks(chain, x + done, want + done, n, block, N);
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        live_blocks(live, x + done, y + done, n, block, N);
    }
    assert_same_audio(device, want, y, N, channels, N);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void short_blocks_at_a_pace_equal_the_chain(void **state)
{
    wt_device *device = device_of(state);
    check_paced(device, 48000, 2, 64);
    check_paced(device, 48000, 2, 16);
    check_paced(device, 48000, 1, 48);
    check_paced(device, 44100, 2, 64); // the limiter's window is shorter than the block
    check_paced(device, 96000, 2, 31);
}

// Responses of fewer taps than a tick has frames, in larger partitions, of true stereo, of one channel for all. A block
// of fours hears what was known before it came; others, those after one, and the first on a device do not.
static void convolutions_of_all_shapes_equal_the_chain(void **state)
{
    enum { N = 4800 };
    static const wt_setting shapes[][3] = {
        {{"synthetic_ms", "0.2", 0}, {"mix", NULL, 0.5}},
        {{"synthetic_ms", "30", 0}, {"mix", NULL, 0.5}, {"partitions", "256", 0}},
        {{"synthetic_ms", "8", 0}, {"mix", NULL, 0.5}, {"synthetic_channels", "4", 0}},
        {{"synthetic_ms", "8", 0}, {"mix", NULL, 0.5}, {"synthetic_channels", "1", 0}},
    };
    wt_device *device = device_of(state);
    float *x = noise_signal(2 * N, 16), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
    for (int k = 0; k < 4; k++) {
        const wt_node_desc nodes[] = {{.type = "convolution", .settings = shapes[k], .n_settings = k ? 3 : 2},
                                      {.type = "gain"}};
        const wt_chain_desc desc = {.name = "shapes", .nodes = nodes, .n_nodes = 2};
        wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 2);
        config.max_frames = 64;
        wt_chain *chain = NULL;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, &desc, &chain));
        wt_live *live = patient_live(&config, &desc);
        for (int done = 0, n, turn = 0; done < N; done += n, turn++) {
            n = turn % 9 == 8 ? 64 - turn % 50 : turn % 4 == 3 ? 48 : 64;
            n = N - done < n ? N - done : n;
            if (turn % 20 == 19) assert_ok(wt_live_move(live, turn % 40 == 19));
            process_blocks(chain, x + done, want + done, n, 64, N);
            live_blocks(live, x + done, y + done, n, 64, N);
        }
        assert_same_audio(device, want, y, N, 2, N);
        finish_live(live);
        wt_chain_destroy(chain);
    }
    free(x), free(want), free(y);
}

// Nodes are bypassed one after the other and come back, so that lines fill, fade and rest; at first one is already.
static void check_bypass(wt_device *device, wt_live_path path, int block)
{
    enum { N = 14400, EACH = 1440 };
    float *x = noise_signal(2 * N, 15), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
    wt_live_config config = live_config_on(device, path, 2);
    config.max_frames = block ? block : 256;
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, &live_full_voice, &chain));
    const int n_nodes = wt_chain_n_nodes(chain);
    wt_live *live = patient_live(&config, &live_full_voice);
    for (int done = 0, turn = 0; done < N; done += EACH, turn++) {
        for (int k = 0; k < n_nodes; k++) {
            const float on = (turn + k) % 3 == 0;
            assert_int_equal(wt_chain_set(chain, k, wt_chain_node_type(chain, k)->n_params, on), WT_OK);
            assert_int_equal(wt_live_set(live, k, wt_chain_node_type(chain, k)->n_params, on), WT_OK);
        }
        process_blocks(chain, x + done, want + done, EACH, block ? block : 64, N);
        live_blocks(live, x + done, y + done, EACH, block, N);
    }
    assert_same_audio(device, want, y, N, 2, N);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    assert_ok(wt_live_move(live, true)); // what a line holds goes along
    process_blocks(chain, x, want, EACH, 64, N);
    live_blocks(live, x, y, EACH / 2, block, N);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x + EACH / 2, y + EACH / 2, EACH / 2, block, N);
    assert_same_audio(device, want, y, EACH, 2, N);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void a_bypassed_node_is_heard_as_on_the_cpu(void **state)
{
    wt_device *device = device_of(state);
    check_bypass(device, WT_LIVE_RESIDENT, 64);
    check_bypass(device, WT_LIVE_RESIDENT, 0);
    check_bypass(device, WT_LIVE_GRAPH, 64);
}

// ---- time

static void a_parameter_changes_with_its_block(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 4096, AT = 2048 };
    float x[N], want[N], y[N];
    const wt_chain_desc desc = {.nodes = &(wt_node_desc){.type = "gain"}, .n_nodes = 1};
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    wt_chain *chain = NULL;
    wt_live *live = patient_live(&config, &desc);
    for (int n = 0; n < N; n++) x[n] = 1;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 1}, &desc, &chain));
    process_blocks(chain, x, want, AT, 64, N);
    live_blocks(live, x, y, AT, 64, N);
    assert_int_equal(wt_chain_set(chain, 0, 0, -20), WT_OK);
    assert_int_equal(wt_live_set(live, 0, 0, -20), WT_OK);
    process_blocks(chain, x + AT, want + AT, N - AT, 64, N);
    live_blocks(live, x + AT, y + AT, N - AT, 64, N);
    for (int n = 0; n < N; n++)
        if (!(fabsf(want[n] - y[n]) < 1e-5f)) fail_msg("frame %d is %g, want %g", n, (double)y[n], (double)want[n]);
    assert_true(y[AT - 1] == 1 && y[AT + 63] < 1);
    wt_chain_destroy(chain);
    finish_live(live);
}

// The whole block of all channels, and the chain begins anew behind it.
static void a_block_that_is_not_finite_is_silence(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 4096, AT = 2100 };
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 2);
    float *x = noise_signal(2 * N, 13), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
    wt_chain *chain = NULL;
    x[AT] = NAN;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, &live_voice, &chain));
    process_blocks(chain, x, want, N, 64, N);
    wt_live *live = patient_live(&config, &live_voice);
    live_blocks(live, x, y, N, 64, N);
    assert_same_audio(device, want, y, N, 2, N);
    for (int n = AT / 64 * 64; n < AT / 64 * 64 + 64; n++) assert_true(y[n] == 0 && y[N + n] == 0);
    assert_true(y[AT - 64] != 0 && y[2 * N - 1] != 0);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void pipelined_blocks_come_later_and_whole(void **state)
{
    wt_device *device = device_of(state);
    wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 2);
    config.mode = WT_LIVE_PIPELINED;
    config.pipeline_blocks = 2;
    float *x = noise_signal(2 * LIVE_FRAMES, 12), *want = calloc(2 * LIVE_FRAMES, sizeof *want),
          *y = calloc(2 * LIVE_FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, &live_full_voice, &chain));
    process_blocks(chain, x, want, LIVE_FRAMES, 64, LIVE_FRAMES);
    wt_live *live = patient_live(&config, &live_full_voice);
    const int delay = wt_live_latency_frames(live) - wt_chain_latency_frames(chain);
    assert_int_equal(delay, 512);
    live_blocks(live, x, y, LIVE_FRAMES, 0, LIVE_FRAMES);
    for (int n = 0; n < delay; n++) assert_true(y[n] == 0 && y[LIVE_FRAMES + n] == 0);
    assert_same_audio(device, want, y + delay, LIVE_FRAMES - delay, 2, LIVE_FRAMES);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

// Several lives, one after the other, while audio runs: the same sound, no block lost.
static void a_kernel_that_left_is_followed_by_the_next(void **state)
{
    wt_device *device = device_of(state);
    wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    config.life_s = 0.02;
    enum { N = 48000 };
    float *x = calloc(N, sizeof *x), *want = calloc(N, sizeof *want), *y = calloc(N, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 1}, &live_full_voice, &chain));
    sine_signal(x, N, 200, LIVE_RATE, 0.1, 1);
    process_blocks(chain, x, want, N, 64, N);
    wt_live *live = patient_live(&config, &live_full_voice);
    for (int done = 0; done < N; done += 64) {
        live_blocks(live, x + done, y + done, 64, 64, N);
        if (done % 2048 == 0) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_same_audio(device, want, y, N, 1, N);
    assert_in_range(live_stats_of(live).n_launches, 3, 1000);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_TEST(the_resident_path_equals_the_chain),     LIVE_TEST(the_graph_path_equals_the_chain),
        LIVE_TEST(every_other_node_equals_the_chain),      LIVE_TEST(convolutions_of_all_shapes_equal_the_chain),
        LIVE_TEST(short_blocks_at_a_pace_equal_the_chain), LIVE_TEST(a_bypassed_node_is_heard_as_on_the_cpu),
        LIVE_TEST(a_parameter_changes_with_its_block),     LIVE_TEST(a_block_that_is_not_finite_is_silence),
        LIVE_TEST(pipelined_blocks_come_later_and_whole),  LIVE_TEST(a_kernel_that_left_is_followed_by_the_next),
    };
    int failed = cmocka_run_group_tests_name("live, CPU backend", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("live, GPU", tests, open_cuda, close_device);
}
