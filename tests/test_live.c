#include "support/testing.h"
#include "support/chain_check.h"
#include "support/failing_alloc.h"
#include "support/live_check.h"
#include "support/node_check.h"
#include "support/realtime.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/clock.h>
#if defined(__x86_64__)
#    include <xmmintrin.h>
#endif

#define RATE 48000.0

static const wt_live_config stereo = {.rate_hz = RATE, .channels = 2};
static const wt_live_config mono = {.rate_hz = RATE, .channels = 1};

static wt_chain_desc gain_of(wt_node_desc *node, wt_setting *setting, double gain_db)
{
    *setting = (wt_setting){"gain_db", NULL, gain_db};
    return node_desc(node, "gain", setting, 1);
}

// ---- sound

static void live_equals_the_chain_to_the_bit_in_any_blocks(void **state)
{
    (void)state;
    enum { FRAMES = 6000 };
    const int sizes[] = {0, 16, 64, 1024};
    float *x = noise_signal(2 * FRAMES, 3), *want = calloc(2 * FRAMES, sizeof *want),
          *y = calloc(2 * FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_full_voice, &chain));
    process_blocks(chain, x, want, FRAMES, FRAMES, FRAMES);
    for (int k = 0; k < 4; k++) {
        wt_live *live = live_of(&stereo, &live_full_voice);
        assert_int_equal(wt_live_latency_frames(live), wt_chain_latency_frames(chain));
        live_blocks(live, x, y, FRAMES, sizes[k], FRAMES);
        assert_memory_equal(want, y, sizeof *y * 2 * FRAMES);
        wt_live_destroy(live);
    }
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void streams_are_copies_of_the_chain_side_by_side(void **state)
{
    (void)state;
    enum { FRAMES = 2000, STREAMS = 3 };
    float *x = noise_signal(2 * STREAMS * FRAMES, 5), *y = calloc(2 * STREAMS * FRAMES, sizeof *y);
    float *want = calloc(2 * FRAMES, sizeof *want);
    wt_live *live = live_of(&(wt_live_config){.rate_hz = RATE, .channels = 2, .n_streams = STREAMS}, &live_voice);
    live_blocks(live, x, y, FRAMES, 64, FRAMES);
    for (int s = 0; s < STREAMS; s++) {
        wt_chain *chain = NULL;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_voice, &chain));
        process_blocks(chain, x + 2 * s * FRAMES, want, FRAMES, 64, FRAMES);
        assert_memory_equal(want, y + 2 * s * FRAMES, sizeof *y * 2 * FRAMES);
        wt_chain_destroy(chain);
    }
    wt_live_destroy(live);
    free(x), free(y), free(want);
}

// Whoever computes a stream, its samples are the same; the blocks come at the pace of audio, so workers take some.
static void workers_take_streams_and_change_nothing(void **state)
{
    (void)state;
    enum { FRAMES = 64, STREAMS = 24, BLOCKS = 40000 };
    float *x = noise_signal(2 * STREAMS * FRAMES, 5), *y = calloc(2 * STREAMS * FRAMES, sizeof *y);
    float *want = calloc(2 * STREAMS * FRAMES, sizeof *want);
    const wt_live_config alone = {.rate_hz = RATE, .channels = 2, .n_streams = STREAMS};
    wt_live_config helped = alone;
    helped.n_workers = 2;
    wt_live *lives[2] = {live_of(&alone, &live_voice), live_of(&helped, &live_voice)};
    wt_live_stats stats = {0};
    const int64_t period_ns = (int64_t)(FRAMES * 1e9 / RATE);
    int n = 0;
    for (int64_t next_ns = wt_clock_now_ns(NULL); n < BLOCKS && stats.n_helped < 100; n++) {
        while (wt_clock_now_ns(NULL) < next_ns) nanosleep(&(struct timespec){0, 100000}, NULL);
        next_ns += period_ns;
        live_blocks(lives[0], x, want, FRAMES, FRAMES, FRAMES);
        RT_SECTION { live_blocks(lives[1], x, y, FRAMES, FRAMES, FRAMES); }
        assert_memory_equal(want, y, sizeof *y * 2 * STREAMS * FRAMES);
        wt_live_get_stats(lives[1], &stats);
    }
    assert_in_range(stats.n_helped, 100, STREAMS * BLOCKS);
    wt_live_get_stats(lives[0], &stats);
    assert_int_equal(stats.n_helped, 0);
    wt_live *refused;
    helped.n_workers = 65;
    assert_fails(wt_live_create(&helped, &refused), WT_ERR_BAD_ARG,
                 "live: 65 workers of priority 0, want 0..64, 0..99");
    for (int k = 0; k < 2; k++) wt_live_destroy(lives[k]);
    free(x), free(y), free(want);
}

static void without_a_chain_the_input_is_the_output(void **state)
{
    (void)state;
    float *x = noise_signal(2 * 500, 4), y[2 * 500];
    wt_live *live = live_of(&stereo, NULL);
    live_blocks(live, x, y, 500, 0, 500);
    assert_memory_equal(x, y, sizeof y);
    wt_live_destroy(live);
    free(x);
}

// The crossfade adds steps of its own below -90 dB (live_check.h); what a cut would do is tried beside it.
static void a_chain_is_swapped_without_a_step(void **state)
{
    (void)state;
    enum { FRAMES = 24000, BEFORE = 9984 };
    static float x[FRAMES], y[FRAMES], cut[FRAMES];
    wt_node_desc nodes[2];
    wt_setting settings[2];
    const wt_chain_desc loud = gain_of(&nodes[0], &settings[0], 0), quiet = gain_of(&nodes[1], &settings[1], -9);
    sine_signal(x, FRAMES, 200, RATE, 0.5, 1);
    wt_live *live = live_of(&mono, &loud);
    live_blocks(live, x, y, BEFORE, 64, FRAMES);
    assert_ok(wt_live_load(live, &quiet, NULL));
    live_blocks(live, x + BEFORE, y + BEFORE, FRAMES - BEFORE, 64, FRAMES);
    for (int n = 0; n < FRAMES; n++) cut[n] = x[n] * (n < BEFORE ? 1 : from_db(-9));
    assert_true(largest_step_db(y, FRAMES) < -80);
    assert_true(largest_step_db(cut, FRAMES) > -25);
    assert_true(fabsf(y[FRAMES - 1] - x[FRAMES - 1] * from_db(-9)) < 1e-6f);
    wt_live_stats stats;
    wt_live_get_stats(live, &stats);
    assert_int_equal(stats.n_misses, 0);
    assert_int_equal(stats.n_loads, 2);
    wt_live_destroy(live);
}

static void a_refused_chain_leaves_the_old_one_playing(void **state)
{
    (void)state;
    enum { FRAMES = 4096 };
    wt_node_desc node;
    wt_setting setting;
    wt_chain_desc desc = gain_of(&node, &setting, -6);
    float *x = noise_signal(2 * FRAMES, 8), *y = calloc(2 * FRAMES, sizeof *y);
    wt_live *live = live_of(&stereo, &desc);
    live_blocks(live, x, y, FRAMES / 2, 64, FRAMES);
    setting.value = 90;
    wt_chain_fault fault;
    assert_fails(wt_live_load(live, &desc, &fault), WT_ERR_BAD_ARG, "chain: gain: gain_db is 90, want -120..60 dB");
    assert_string_equal(fault.setting, "gain_db");
    live_blocks(live, x + FRAMES / 2, y + FRAMES / 2, FRAMES / 2, 64, FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(fabsf(y[n] - from_db(-6) * x[n]) < 1e-6f);
    wt_live_destroy(live);
    free(x), free(y);
}

static void bypass_fades_to_the_input_and_back(void **state)
{
    (void)state;
    enum { FRAMES = 24000, OFF = 8000, ON = 16000 };
    static float x[FRAMES], y[FRAMES];
    wt_node_desc node;
    wt_setting setting;
    const wt_chain_desc desc = gain_of(&node, &setting, -12);
    sine_signal(x, FRAMES, 200, RATE, 0.5, 0);
    wt_live *live = live_of(&mono, &desc);
    live_blocks(live, x, y, OFF, 64, FRAMES);
    wt_live_set_bypass(live, true);
    live_blocks(live, x + OFF, y + OFF, ON - OFF, 64, FRAMES);
    wt_live_set_bypass(live, false);
    live_blocks(live, x + ON, y + ON, FRAMES - ON, 64, FRAMES);
    assert_true(largest_step_db(y, FRAMES) < -80);
    assert_memory_equal(x + OFF + 400, y + OFF + 400, sizeof *x * (ON - OFF - 400));
    assert_true(fabsf(y[FRAMES - 1] - from_db(-12) * x[FRAMES - 1]) < 1e-6f);
    wt_live_destroy(live);
}

static void a_bypassed_chain_keeps_its_latency(void **state)
{
    (void)state;
    enum { FRAMES = 4000 };
    float x[FRAMES] = {0}, y[FRAMES];
    x[100] = 0.25f;
    wt_live *live = live_of(&mono, &(wt_chain_desc){.nodes = &(wt_node_desc){.type = "limiter"}, .n_nodes = 1});
    wt_live_set_bypass(live, true);
    live_blocks(live, x, y, FRAMES, 64, FRAMES);
    int latency = wt_live_latency_frames(live);
    assert_true(latency > 0);
    for (int n = 300; n < FRAMES; n++) assert_true(y[n] == (n == 100 + latency ? 0.25f : 0)); // 300: faded out
    wt_live_destroy(live);
}

// ---- misses

static void a_block_that_is_too_long_is_bypassed_and_counted(void **state)
{
    (void)state;
    enum { FRAMES = 3000 };
    static float x[FRAMES], y[FRAMES];
    wt_node_desc node;
    wt_setting setting;
    const wt_chain_desc desc = gain_of(&node, &setting, -12);
    sine_signal(x, FRAMES, 100, RATE, 0.5, 0);
    wt_live *live = live_of(&(wt_live_config){.rate_hz = RATE, .channels = 1, .max_frames = 256}, &desc);
    live_blocks(live, x, y, 1000, 250, FRAMES);
    const float *in[] = {x + 1000};
    float *out[] = {y + 1000};
    assert_int_equal(wt_live_process(live, in, out, 1000), WT_ERR_TIMEOUT);
    live_blocks(live, x + 2000, y + 2000, 1000, 250, FRAMES);
    assert_true(fabsf(y[1500] - x[1500]) < 1e-6f);
    assert_true(fabsf(y[2999] - x[2999] * from_db(-12)) < 1e-6f);
    for (int n = 1; n < FRAMES; n++) assert_true(fabsf(y[n] - y[n - 1]) < 0.02f); // a sine's own 0.0066, and the fade
    wt_live_stats stats;
    wt_live_get_stats(live, &stats);
    assert_int_equal(stats.misses[WT_LIVE_MISS_SIZE], 1);
    assert_int_equal(stats.n_misses, 1);
    assert_string_equal(wt_live_miss_name(WT_LIVE_MISS_SIZE), "size");
    wt_live_destroy(live);
}

// ---- parameters, formats

static void parameters_are_those_of_the_chain_that_plays(void **state)
{
    (void)state;
    wt_live *live = live_of(&mono, NULL);
    int node = -1, param = -1;
    assert_fails(wt_live_find(live, "gain", "gain_db", &node, &param), WT_ERR_NOT_FOUND,
                 "live: no chain is loaded, so no node 'gain'");
    assert_int_equal(wt_live_set(live, 0, 0, 1), WT_ERR_STATE);
    assert_ok(wt_live_load(live, &live_voice, NULL));
    assert_ok(wt_live_find(live, "presence", "gain_db", &node, &param));
    assert_int_equal(node, 1);
    assert_true(wt_live_get(live, node, param) == 6);
    assert_int_equal(wt_live_set(live, node, param, 3), WT_OK);
    assert_true(wt_live_get(live, node, param) == 3);
    assert_fails(wt_live_find(live, "presense", "gain_db", &node, &param), WT_ERR_NOT_FOUND,
                 "voice: no node 'presense'; the nearest is 'presence'");
    wt_live_destroy(live);
}

static void prepare_keeps_values_and_starts_anew(void **state)
{
    (void)state;
    enum { FRAMES = 3000 };
    float *x = noise_signal(FRAMES, 6), y[FRAMES], want[FRAMES];
    wt_chain *chain = NULL;
    wt_live *live = live_of(&mono, &live_voice);
    live_blocks(live, x, y, FRAMES, 64, FRAMES);
    assert_int_equal(wt_live_set(live, 2, 0, -3), WT_OK);
    assert_ok(wt_live_prepare(live, 44100, 3000));
    assert_true(wt_live_get(live, 2, 0) == -3);
    live_blocks(live, x, y, FRAMES, 3000, FRAMES);
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = 44100, .channels = 1}, &live_voice, &chain));
    assert_int_equal(wt_chain_set(chain, 2, 0, -3), WT_OK);
    assert_ok(wt_chain_reset(chain, 0));
    process_blocks(chain, x, want, FRAMES, FRAMES, FRAMES);
    assert_memory_equal(want, y, sizeof y);
    assert_fails(wt_live_prepare(live, 10, 64), WT_ERR_BAD_ARG, "live: rate 10 Hz, want 1000..768000");
    wt_chain_destroy(chain);
    wt_live_destroy(live);
    free(x);
}

static void one_channel_is_heard_on_all_and_others_are_refused(void **state)
{
    (void)state;
    float *x = noise_signal(2 * 256, 2), y[2 * 256];
    wt_live *live = live_of(&(wt_live_config){.rate_hz = RATE, .channels = 2, .out_channels = 2},
                            &(wt_chain_desc){.nodes = &(wt_node_desc){.type = "mono"}, .n_nodes = 1});
    live_blocks(live, x, y, 256, 64, 256);
    assert_memory_equal(y, y + 256, sizeof(float) * 256);
    wt_live_destroy(live);
    live = live_of(&(wt_live_config){.rate_hz = RATE, .channels = 2, .out_channels = 3}, NULL);
    assert_int_equal(wt_live_out_channels(live), 3);
    assert_fails(wt_live_load(live, &live_voice, NULL), WT_ERR_BAD_ARG,
                 "voice: gives 2 channels, want 1 or 3 as the output has");
    wt_live_destroy(live);
    free(x);
}

static void refusals_name_what_was_met_and_wanted(void **state)
{
    (void)state;
    wt_live *live;
    assert_fails(wt_live_create(&(wt_live_config){.rate_hz = RATE}, &live), WT_ERR_BAD_ARG,
                 "live: 0 channels, want 1..64");
    assert_fails(wt_live_create(&(wt_live_config){.rate_hz = RATE, .channels = 1, .max_frames = 9000}, &live),
                 WT_ERR_BAD_ARG, "live: blocks of 9000 frames, want 1..8192");
    assert_fails(wt_live_create(&(wt_live_config){.rate_hz = RATE, .channels = 1, .path = WT_LIVE_RESIDENT}, &live),
                 WT_ERR_UNSUPPORTED, "live: a resident kernel or a graph needs a device, none is given");
    live = live_of(&mono, &live_voice);
    assert_int_equal(wt_live_move(live, true), WT_ERR_STATE);
    wt_live_destroy(live);
}

// ---- taps and inserts

static void taps_hear_their_points(void **state)
{
    (void)state;
    enum { FRAMES = 4096 };
    static float x[2 * FRAMES], y[2 * FRAMES], want[2 * FRAMES], got[2 * FRAMES];
    for (int c = 0; c < 2; c++) sine_signal(x + c * FRAMES, FRAMES, 500 * (c + 1), RATE, 0.3, 0);
    wt_live *live = live_of(&stereo, &live_voice);
    wt_live_tap *in, *node, *out, *none;
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "in", .mono = true}, &in));
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "presence"}, &node));
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "out"}, &out));
    assert_fails(wt_live_tap_open(live, &(wt_live_tap_config){.point = "presense"}, &none), WT_ERR_NOT_FOUND,
                 "live: no point 'presense'; the nearest is 'presence'");
    assert_int_equal(wt_live_tap_channels(in), 1);
    assert_int_equal(wt_live_tap_channels(node), 2);
    live_blocks(live, x, y, FRAMES, 300, FRAMES);

    assert_int_equal(wt_live_tap_read(in, got, FRAMES, NULL), FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(got[n] == (x[n] + x[FRAMES + n]) / 2);
    assert_int_equal(wt_live_tap_read(out, got, FRAMES, NULL), FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(got[2 * n] == y[n] && got[2 * n + 1] == y[FRAMES + n]);
    wt_chain *chain = NULL; // the node's output: the chain without what follows it
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2},
                              &(wt_chain_desc){.nodes = live_voice.nodes, .n_nodes = 2}, &chain));
    process_blocks(chain, x, want, FRAMES, FRAMES, FRAMES);
    assert_int_equal(wt_live_tap_read(node, got, FRAMES, NULL), FRAMES);
    for (int n = 0; n < FRAMES; n++) assert_true(got[2 * n] == want[n] && got[2 * n + 1] == want[FRAMES + n]);
    wt_chain_destroy(chain);

    // another chain, without that node: silence; and a ring that nobody reads counts what it loses
    assert_ok(wt_live_load(live, &(wt_chain_desc){.nodes = live_voice.nodes, .n_nodes = 1}, NULL));
    live_blocks(live, x, y, FRAMES, 300, FRAMES);
    assert_int_equal(wt_live_tap_read(node, got, FRAMES, NULL), FRAMES);
    for (int n = 0; n < 2 * FRAMES; n++) assert_true(got[n] == 0);
    for (int k = 0; k < 40; k++) live_blocks(live, x, y, FRAMES, 64, FRAMES);
    uint64_t lost;
    (void)!wt_live_tap_read(out, got, 1, &lost);
    assert_int_equal(lost, 41 * FRAMES - 2 * 48000);
    wt_live_tap_close(in), wt_live_tap_close(node);
    wt_live_destroy(live); // with a tap open
}

static void a_tap_at_another_rate_is_decimated(void **state)
{
    (void)state;
    enum { FRAMES = 48000 };
    float *x = calloc(FRAMES, sizeof *x), *y = calloc(FRAMES, sizeof *y), *got = calloc(FRAMES, sizeof *got);
    sine_signal(x, FRAMES, 1000, RATE, 0.5, 0);
    wt_live *live = live_of(&mono, NULL);
    wt_live_tap *tap;
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "in", .mono = true, .rate_hz = 16000}, &tap));
    int n = 0;
    for (int done = 0; done < FRAMES; done += 480) { // little by little, as a worker does
        live_blocks(live, x + done, y, 480, 64, FRAMES);
        n += wt_live_tap_read(tap, got + n, 100, NULL);
    }
    n += wt_live_tap_read(tap, got + n, 16000, NULL);
    assert_in_range(n, 15900, 16000);
    sine_signal(y, n, 1000, 16000, 0.5, 0);
    assert_snr_db(y + 200, got + 200, (size_t)(n - 400), 90); // the fast filter's 100 dB, less float sums
    wt_live_destroy(live);
    free(x), free(y), free(got);
}

static void inserts_are_added_at_their_points(void **state)
{
    (void)state;
    enum { FRAMES = 1000 };
    float x[2 * FRAMES] = {0}, y[2 * FRAMES], voice[2 * FRAMES];
    wt_node_desc node;
    wt_setting setting;
    const wt_chain_desc desc = gain_of(&node, &setting, -6);
    for (int n = 0; n < 2 * FRAMES; n++) voice[n] = 0.01f * (float)(n % 50);
    wt_live *live = live_of(&stereo, &desc);
    wt_live_insert *before, *at, *after, *none;
    assert_ok(wt_live_insert_open(live, &(wt_live_insert_config){.point = "in", .channels = 2}, &before));
    assert_ok(wt_live_insert_open(live, &(wt_live_insert_config){.point = "gain", .channels = 1}, &at));
    assert_ok(wt_live_insert_open(live, &(wt_live_insert_config){.point = "out", .channels = 1}, &after));
    assert_fails(wt_live_insert_open(live, &(wt_live_insert_config){.point = "gain", .channels = 3}, &none),
                 WT_ERR_BAD_ARG, "live: an insert of 3 channels at 'gain', want 1 or 2");
    assert_int_equal(wt_live_insert_write(before, voice, FRAMES), FRAMES);
    assert_int_equal(wt_live_insert_write(at, voice, 700), 700);
    assert_int_equal(wt_live_insert_write(after, voice, 500), 500);
    live_blocks(live, x, y, FRAMES, 0, FRAMES);
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < FRAMES; n++) {
            float want = from_db(-6) * voice[2 * n + c] + (n < 700 ? voice[n] : 0) + (n < 500 ? voice[n] : 0);
            assert_true(fabsf(y[c * FRAMES + n] - want) < 1e-6f);
        }
    wt_live_insert_close(before), wt_live_insert_close(at), wt_live_insert_close(after);
    wt_live_destroy(live);
}

// ---- threads

static void the_callback_is_clean_in_a_real_time_section(void **state)
{
    (void)state;
    float *x = noise_signal(2 * 64, 1), y[2 * 64], readings[4];
    const float *in[] = {x, x + 64};
    float *out[] = {y, y + 64};
    wt_live *live = live_of(&stereo, &live_full_voice);
    wt_live_tap *tap;
    wt_live_insert *insert;
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "compressor", .rate_hz = 16000}, &tap));
    assert_ok(wt_live_insert_open(live, &(wt_live_insert_config){.point = "in", .channels = 1}, &insert));
    for (int k = 0; k < 60; k++) {
        if (k == 20) assert_ok(wt_live_load(live, &live_voice, NULL));
        if (k == 50) assert_ok(wt_live_prepare(live, RATE, 16)); // blocks are now too long
        RT_SECTION
        {
            (void)!wt_live_process(live, in, out, 64);
            (void)!wt_live_set(live, 0, 0, 100 + (float)k);
            (void)wt_live_get(live, 0, 0);
            (void)wt_live_readings(live, 1, readings, 4);
            wt_live_set_bypass(live, k == 30);
            wt_live_set_freewheel(live, k == 31);
        }
    }
    wt_live_destroy(live);
    free(x);
}

static void denormals_are_off_inside_and_as_they_were_outside(void **state)
{
    (void)state;
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    float x[64] = {1e-20f}, y[64];
    const float *in[] = {x};
    float *out[] = {y};
    wt_live *live = live_of(&mono, &live_voice);
    for (int k = 0; k < 3000; k++, x[0] = 0) (void)!wt_live_process(live, in, out, 64);
    for (int n = 0; n < 64; n++) assert_true(y[n] == 0 || fabsf(y[n]) >= 1.17549435e-38f);
    assert_int_equal(_mm_getcsr() & ~0x3fu, before & ~0x3fu); // but for the sticky exception flags
    wt_live_destroy(live);
#else
    (void)state;
    skip();
#endif
}

typedef struct crowd {
    wt_live *live;
    atomic_bool quit;
    atomic_int n_blocks, n_bad;
} crowd;

static void *play(void *user)
{
    crowd *c = user;
    float *x = noise_signal(2 * 64, 3), y[2 * 64];
    const float *in[] = {x, x + 64};
    float *out[] = {y, y + 64};
    while (!atomic_load(&c->quit)) {
        (void)!wt_live_process(c->live, in, out, 64);
        for (int n = 0; n < 2 * 64; n++)
            if (!isfinite(y[n])) atomic_fetch_add(&c->n_bad, 1);
        atomic_fetch_add(&c->n_blocks, 1);
    }
    free(x);
    return NULL;
}

static void *ask(void *user)
{
    crowd *c = user;
    float readings[4];
    wt_live_stats stats;
    int node, param;
    for (int k = 0; !atomic_load(&c->quit); k++) {
        (void)!wt_live_set(c->live, k % 3, 0, (float)(k % 40) - 30);
        (void)wt_live_get(c->live, k % 3, 0);
        (void)wt_live_readings(c->live, 1, readings, 4);
        (void)wt_live_latency_frames(c->live);
        (void)!wt_live_find(c->live, "low_cut", "q", &node, &param);
        wt_live_get_stats(c->live, &stats);
    }
    return NULL;
}

// What workers and controls do while the audio thread processes; ThreadSanitizer watches in `scons tsan=1`.
static void chains_points_and_parameters_change_while_audio_runs(void **state)
{
    (void)state;
    wt_node_desc node;
    wt_setting setting;
    const wt_chain_desc other = gain_of(&node, &setting, -12);
    crowd c = {.live = live_of(&stereo, &live_voice)};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, play, &c), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, ask, &c), 0);
    for (int k = 0; k < 60; k++) {
        wt_live_tap *tap;
        wt_live_insert *insert;
        float frames[2 * 64] = {0};
        assert_ok(wt_live_load(c.live, k & 1 ? &live_voice : &other, NULL));
        assert_ok(wt_live_tap_open(c.live, &(wt_live_tap_config){.point = "out"}, &tap));
        assert_ok(wt_live_insert_open(c.live, &(wt_live_insert_config){.point = "in", .channels = 2}, &insert));
        (void)wt_live_insert_write(insert, frames, 64);
        (void)wt_live_tap_read(tap, frames, 64, NULL);
        if (k % 8 == 7) assert_ok(wt_live_prepare(c.live, k & 8 ? RATE : 44100, 64 << (k & 1)));
        wt_live_tap_close(tap);
        wt_live_insert_close(insert);
    }
    atomic_store(&c.quit, true);
    for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    assert_int_equal(c.n_bad, 0);
    wt_live_stats stats;
    wt_live_get_stats(c.live, &stats);
    assert_int_equal(stats.n_blocks, c.n_blocks);
    assert_int_equal(stats.n_misses, stats.misses[WT_LIVE_MISS_FORMAT]);
    assert_int_equal(stats.n_loads, 61);
    wt_live_destroy(c.live);
}

// ---- memory

typedef struct made {
    wt_live *live;
    wt_live_tap *tap;
} made;

static wt_status create_all(void *user)
{
    made *m = user;
    wt_status status = wt_live_create(&stereo, &m->live);
    if (status) return status;
    status = wt_live_load(m->live, &live_voice, NULL);
    if (!status) status = wt_live_tap_open(m->live, &(wt_live_tap_config){.point = "low_cut"}, &m->tap);
    if (!status) status = wt_live_prepare(m->live, 44100, 128);
    if (status) wt_live_destroy(m->live);
    return status;
}

static void destroy_all(void *user) { wt_live_destroy(((made *)user)->live); }

static void live_survives_failing_allocations(void **state)
{
    (void)state;
    made m;
    (void)assert_survives_failing_alloc(create_all, destroy_all, &m);
    wt_live_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_equals_the_chain_to_the_bit_in_any_blocks),
        cmocka_unit_test(streams_are_copies_of_the_chain_side_by_side),
        cmocka_unit_test(workers_take_streams_and_change_nothing),
        cmocka_unit_test(without_a_chain_the_input_is_the_output),
        cmocka_unit_test(a_chain_is_swapped_without_a_step),
        cmocka_unit_test(a_refused_chain_leaves_the_old_one_playing),
        cmocka_unit_test(bypass_fades_to_the_input_and_back),
        cmocka_unit_test(a_bypassed_chain_keeps_its_latency),
        cmocka_unit_test(a_block_that_is_too_long_is_bypassed_and_counted),
        cmocka_unit_test(parameters_are_those_of_the_chain_that_plays),
        cmocka_unit_test(prepare_keeps_values_and_starts_anew),
        cmocka_unit_test(one_channel_is_heard_on_all_and_others_are_refused),
        cmocka_unit_test(refusals_name_what_was_met_and_wanted),
        cmocka_unit_test(taps_hear_their_points),
        cmocka_unit_test(a_tap_at_another_rate_is_decimated),
        cmocka_unit_test(inserts_are_added_at_their_points),
        cmocka_unit_test(the_callback_is_clean_in_a_real_time_section),
        cmocka_unit_test(denormals_are_off_inside_and_as_they_were_outside),
        cmocka_unit_test(chains_points_and_parameters_change_while_audio_runs),
        cmocka_unit_test(live_survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
