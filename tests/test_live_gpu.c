// The live engine on a device: the same tests on the CPU backend, where a C function stands for the resident kernel,
// and on a GPU. Nothing here depends on how fast a machine is, unless it says so: blocks are played in freewheel, which
// waits for every answer.
#include "support/testing.h"
#include "support/chain_check.h"
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/live_check.h"
#include "support/node_check.h"
#include "support/realtime.h"

#include "../dsp/live/live_far.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/arm.h>
#include <warptone/clock.h>

#define RATE 48000.0

static bool on_gpu(wt_device *device) { return wt_device_get_info(device)->backend == WT_BACKEND_CUDA; }

static wt_live_config config_of(wt_device *device, wt_live_path path, int channels)
{
    return (wt_live_config){.rate_hz = RATE, .channels = channels, .max_frames = 256, .device = device, .path = path};
}

// The test's chain, so that one that fails leaves no kernel behind.
static wt_live *playing;

static wt_live *patient(const wt_live_config *config, const wt_chain_desc *desc)
{
    playing = live_of(config, NULL);
    wt_live_set_freewheel(playing, true);
    if (desc) assert_ok(wt_live_load(playing, desc, NULL));
    return playing;
}

static void finish(wt_live *live)
{
    wt_live_destroy(live);
    playing = NULL;
}

static int finish_what_failed(void **state)
{
    (void)state;
    wt_live_destroy(playing);
    playing = NULL;
    return 0;
}

static wt_live_stats stats_of(const wt_live *live)
{
    wt_live_stats stats;
    wt_live_get_stats(live, &stats);
    return stats;
}

static void wait_for_path(const wt_live *live, wt_live_path path)
{
    for (int k = 0; k < 5000 && stats_of(live).path != path; k++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(stats_of(live).path, path);
}

// Equal to the bit on the CPU backend; on a GPU sums run in another order, and a compressor's level detector feeds
// that back: 90 dB.
static void assert_same(wt_device *device, const float *want, const float *got, int n_frames, int channels, int stride)
{
    for (int c = 0; c < channels; c++) {
        const float *w = want + c * stride, *g = got + c * stride;
        if (!on_gpu(device) && memcmp(w, g, sizeof *w * (size_t)n_frames)) {
            int n = 0;
            while (w[n] == g[n]) n++;
            fail_msg("channel %d frame %d is %.9g, want %.9g", c, n, (double)g[n], (double)w[n]);
        }
        if (!on_gpu(device)) continue;
        int worst = 0;
        for (int n = 0; n < n_frames; n++)
            if (!(fabsf(w[n] - g[n]) <= fabsf(w[worst] - g[worst]))) worst = n;
        const double snr = snr_db(w, g, (size_t)n_frames);
        if (snr < 90)
            fail_msg("channel %d of %d frames: %.1f dB, want 90; worst frame %d is %.9g, want %.9g", c, n_frames, snr,
                     worst, (double)g[worst], (double)w[worst]);
    }
}

// ---- chains

static const wt_node_desc hall_nodes[] = {{.type = "reverb"}};
static const wt_node_desc wide_nodes[] = {{.type = "chorus"}, {.type = "delay"}, {.type = "saturation"}};
static const char *const both[] = {"low", "high"};
static const wt_setting low_band[] = {{"band", "1", 0}}, high_band[] = {{"band", "2", 0}};
static const wt_node_desc split_nodes[] = {
    {.type = "crossover",
     .id = "low",
     .inputs = (const char *const[]){"in"},
     .n_inputs = 1,
     .settings = low_band,
     .n_settings = 1},
    {.type = "crossover",
     .id = "high",
     .inputs = (const char *const[]){"in"},
     .n_inputs = 1,
     .settings = high_band,
     .n_settings = 1},
    {.type = "mix", .inputs = both, .n_inputs = 2},
    {.type = "meter"},
};
static const wt_setting long_room[] = {{"synthetic_ms", "400", 0}, {"mix", NULL, 0.5}};
static const wt_node_desc room_nodes[] = {{.type = "convolution", .settings = long_room, .n_settings = 2}};

// Their readings come a block later from a device, so of a hop that ends long before the test does.
static const wt_setting slowly[] = {{"hop", NULL, 1024}};
static const wt_node_desc look_nodes[] = {
    {.type = "spectrum"}, {.type = "pitch"}, {.type = "cqt", .settings = slowly, .n_settings = 1}};

static const struct {
    const char *name;
    wt_chain_desc desc;
} chains[] = {
    {"hall", {.name = "hall", .nodes = hall_nodes, .n_nodes = 1}},
    {"wide", {.name = "wide", .nodes = wide_nodes, .n_nodes = 3}},
    {"split", {.name = "split", .nodes = split_nodes, .n_nodes = 4}},
    {"room", {.name = "room", .nodes = room_nodes, .n_nodes = 1}},
    {"look", {.name = "look", .nodes = look_nodes, .n_nodes = 3}},
};
enum { N_CHAINS = sizeof chains / sizeof *chains, FRAMES = 12000 };

static void check_chain(wt_device *device, wt_live_path path, const wt_chain_desc *desc, int block)
{
    float *x = noise_signal(2 * FRAMES, 11), *want = calloc(2 * FRAMES, sizeof *want),
          *y = calloc(2 * FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, desc, &chain));
    const wt_live_config config = config_of(device, path, 2);
    wt_live *live = patient(&config, desc);
    assert_int_equal(stats_of(live).path, path);
    process_blocks(chain, x, want, FRAMES / 2, 64, FRAMES);
    live_blocks(live, x, y, FRAMES / 2, block, FRAMES);
    assert_int_equal(wt_chain_set(chain, 0, 0, wt_chain_get(chain, 0, 0) * 0.9f), WT_OK);
    assert_int_equal(wt_live_set(live, 0, 0, wt_live_get(live, 0, 0) * 0.9f), WT_OK);
    process_blocks(chain, x + FRAMES / 2, want + FRAMES / 2, FRAMES / 2, 64, FRAMES);
    live_blocks(live, x + FRAMES / 2, y + FRAMES / 2, FRAMES / 2, block, FRAMES);
    assert_same(device, want, y, FRAMES, 2, FRAMES);
    const int last = wt_chain_n_nodes(chain) - 1;
    float a[16], b[16];
    const int n = wt_chain_readings(chain, last, a, 16);
    assert_int_equal(wt_live_readings(live, last, b, 16), n);
    for (int k = 0; k < n; k++)
        if (!(fabsf(a[k] - b[k]) <= 0.01f * (1 + fabsf(a[k])) || a[k] == b[k]))
            fail_msg("%s: reading %d is %g, want %g", desc->name, k, (double)b[k], (double)a[k]);
    assert_int_equal(stats_of(live).n_misses, 0);
    const wt_live_times times = wt_live_last_times(live);
    assert_true(times.round_trip_ns > 0 && times.away_ns >= 0 && times.away_ns <= times.round_trip_ns);
    assert_true(on_gpu(device) ? times.device_ns >= 0 && times.device_ns <= times.round_trip_ns
                               : times.device_ns == -1);
    assert_true(times.n_launches > 0);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void the_resident_path_equals_the_chain(void **state)
{
    wt_device *device = device_of(state);
    const int blocks[] = {16, 64, 256, 0};
    for (int k = 0; k < 4; k++) check_chain(device, WT_LIVE_RESIDENT, &live_full_voice, blocks[k]);
    for (int k = 0; k < N_CHAINS; k++) check_chain(device, WT_LIVE_RESIDENT, &chains[k].desc, 64);
    assert_false(wt_device_is_armed(device));
}

static void the_graph_path_equals_the_chain(void **state)
{
    wt_device *device = device_of(state);
    check_chain(device, WT_LIVE_GRAPH, &live_full_voice, 64);
    check_chain(device, WT_LIVE_GRAPH, &chains[0].desc, 0);
}

// The text of a short longest block has ways of its own; and at a pace the kernel asks for blocks before they come, and
// rehearses between two, which must change nothing, above all where a parameter moves next.
static void check_paced(wt_device *device, double rate_hz, int channels, int block)
{
    enum { N = 4800 };
    float *x = noise_signal(channels * N, 12), *want = calloc((size_t)channels * N, sizeof *want),
          *y = calloc((size_t)channels * N, sizeof *y);
    wt_live_config config = config_of(device, WT_LIVE_RESIDENT, channels);
    wt_chain *chain = NULL;
    config.rate_hz = rate_hz, config.max_frames = block;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = rate_hz, .channels = channels}, &live_full_voice, &chain));
    wt_live *live = patient(&config, &live_full_voice);
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
    assert_same(device, want, y, N, channels, N);
    assert_int_equal(stats_of(live).n_misses, 0);
    finish(live);
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

// Nodes are bypassed one after the other and come back, so that lines fill, fade and rest; at first one is already.
static void check_bypass(wt_device *device, wt_live_path path, int block)
{
    enum { N = 14400, EACH = 1440 };
    float *x = noise_signal(2 * N, 15), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
    wt_live_config config = config_of(device, path, 2);
    config.max_frames = block ? block : 256;
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_full_voice, &chain));
    const int n_nodes = wt_chain_n_nodes(chain);
    wt_live *live = patient(&config, &live_full_voice);
    for (int done = 0, turn = 0; done < N; done += EACH, turn++) {
        for (int k = 0; k < n_nodes; k++) {
            const float on = (turn + k) % 3 == 0;
            assert_int_equal(wt_chain_set(chain, k, wt_chain_node_type(chain, k)->n_params, on), WT_OK);
            assert_int_equal(wt_live_set(live, k, wt_chain_node_type(chain, k)->n_params, on), WT_OK);
        }
        process_blocks(chain, x + done, want + done, EACH, block ? block : 64, N);
        live_blocks(live, x + done, y + done, EACH, block, N);
    }
    assert_same(device, want, y, N, 2, N);
    assert_int_equal(stats_of(live).n_misses, 0);
    assert_ok(wt_live_move(live, true)); // what a line holds goes along
    process_blocks(chain, x, want, EACH, 64, N);
    live_blocks(live, x, y, EACH / 2, block, N);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x + EACH / 2, y + EACH / 2, EACH / 2, block, N);
    assert_same(device, want, y, EACH, 2, N);
    finish(live);
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
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    wt_chain *chain = NULL;
    wt_live *live = patient(&config, &desc);
    for (int n = 0; n < N; n++) x[n] = 1;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &desc, &chain));
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
    finish(live);
}

// The whole block of all channels, and the chain begins anew behind it.
static void a_block_that_is_not_finite_is_silence(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 4096, AT = 2100 };
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 2);
    float *x = noise_signal(2 * N, 13), *want = calloc(2 * N, sizeof *want), *y = calloc(2 * N, sizeof *y);
    wt_chain *chain = NULL;
    x[AT] = NAN;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_voice, &chain));
    process_blocks(chain, x, want, N, 64, N);
    wt_live *live = patient(&config, &live_voice);
    live_blocks(live, x, y, N, 64, N);
    assert_same(device, want, y, N, 2, N);
    for (int n = AT / 64 * 64; n < AT / 64 * 64 + 64; n++) assert_true(y[n] == 0 && y[N + n] == 0);
    assert_true(y[AT - 64] != 0 && y[2 * N - 1] != 0);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

static void pipelined_blocks_come_later_and_whole(void **state)
{
    wt_device *device = device_of(state);
    wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 2);
    config.mode = WT_LIVE_PIPELINED;
    config.pipeline_blocks = 2;
    float *x = noise_signal(2 * FRAMES, 12), *want = calloc(2 * FRAMES, sizeof *want),
          *y = calloc(2 * FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_full_voice, &chain));
    process_blocks(chain, x, want, FRAMES, 64, FRAMES);
    wt_live *live = patient(&config, &live_full_voice);
    const int delay = wt_live_latency_frames(live) - wt_chain_latency_frames(chain);
    assert_int_equal(delay, 512);
    live_blocks(live, x, y, FRAMES, 0, FRAMES);
    for (int n = 0; n < delay; n++) assert_true(y[n] == 0 && y[FRAMES + n] == 0);
    assert_same(device, want, y + delay, FRAMES - delay, 2, FRAMES);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

// Several lives, one after the other, while audio runs: the same sound, no block lost.
static void a_kernel_that_left_is_followed_by_the_next(void **state)
{
    wt_device *device = device_of(state);
    wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    config.life_s = 0.02;
    enum { N = 48000 };
    float *x = calloc(N, sizeof *x), *want = calloc(N, sizeof *want), *y = calloc(N, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &live_full_voice, &chain));
    sine_signal(x, N, 200, RATE, 0.1, 1);
    process_blocks(chain, x, want, N, 64, N);
    wt_live *live = patient(&config, &live_full_voice);
    for (int done = 0; done < N; done += 64) {
        live_blocks(live, x + done, y + done, 64, 64, N);
        if (done % 2048 == 0) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_same(device, want, y, N, 1, N);
    assert_in_range(stats_of(live).n_launches, 3, 1000);
    assert_int_equal(stats_of(live).n_misses, 0);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

// ---- hand-over

typedef struct mover {
    wt_live *live;
    wt_device *device;
    atomic_bool quit;
    atomic_int n_moves; // or blocks
    wt_status status;
} mover;

static wt_status nothing(void *user)
{
    (void)user;
    return WT_OK;
}

static void *move_about(void *user)
{
    mover *m = user;
    for (int k = 0; k < 12 && !m->status; k++) {
        if (k % 4 == 3) {
            m->status = wt_quiesce(m->device, nothing, NULL, 0);
            continue;
        }
        m->status = wt_live_move(m->live, true);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (!m->status) m->status = wt_live_move(m->live, false);
    }
    if (m->status) fprintf(stderr, "moving: %s\n", wt_last_error());
    atomic_store(&m->quit, true);
    return NULL;
}

// A sine through a chain with filters, dynamics and 400 ms of convolution, while another thread hands it to the CPU and
// back and quiesces the device.
static void check_moves(wt_device *device, wt_live_path path, const wt_chain_desc *desc)
{
    enum { N = 1 << 19 };
    const wt_live_config config = config_of(device, path, 1);
    float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y), *want = calloc(N, sizeof *want);
    sine_signal(x, N, 150, RATE, 0.4, 0);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, desc, &chain));
    wt_live *live = patient(&config, desc);
    mover m = {.live = live, .device = device};
    pthread_t thread;
    live_blocks(live, x, y, 24000, 64, N); // past the transients
    assert_int_equal(pthread_create(&thread, NULL, move_about, &m), 0);
    int done = 24000, settled = 0;
    for (; done + 64 <= N && settled < 100; done += 64) {
        live_blocks(live, x + done, y + done, 64, 64, N);
        if (atomic_load(&m.quit)) settled++;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    pthread_join(thread, NULL);
    assert_int_equal(m.status, WT_OK);
    assert_int_equal(settled, 100);
    process_blocks(chain, x, want, done, 64, N);
    assert_same(device, want, y, done, 1, N);
    const double step = largest_step_db(y + 20000, done - 20000);
    if (step > -80) fail_msg("%s: a step of %.1f dB, want none above -80", desc->name, step);
    assert_in_range(stats_of(live).n_moves, 19, 1000);
    assert_int_equal(stats_of(live).n_misses, 0);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(y), free(want);
}

static void moves_and_quiesces_make_no_step(void **state)
{
    wt_device *device = device_of(state);
    check_moves(device, WT_LIVE_RESIDENT, &live_full_voice);
    // on the CPU backend nothing depends on the chain: both owners work in the same memory
    for (int k = 0; k < N_CHAINS && on_gpu(device); k++) check_moves(device, WT_LIVE_RESIDENT, &chains[k].desc);
    check_moves(device, WT_LIVE_GRAPH, &live_full_voice);
}

static void *play_sine(void *user)
{
    mover *m = user;
    enum { N = 48 };
    float x[N], y[N];
    const float *in[] = {x};
    float *out[] = {y};
    sine_signal(x, N, 1000, RATE, 0.5, 0);
    while (!atomic_load(&m->quit)) {
        const wt_status status = wt_live_process(m->live, in, out, N);
        if (status) m->status = status;
        for (int n = 0; n < N; n++)
            if (!isfinite(y[n])) m->status = WT_ERR_FORMAT;
        atomic_fetch_add(&m->n_moves, 1);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

static void chains_and_formats_change_while_audio_runs(void **state)
{
    wt_device *device = device_of(state);
    for (int graph = 0; graph < 2; graph++) {
        const wt_live_config config = config_of(device, graph ? WT_LIVE_GRAPH : WT_LIVE_RESIDENT, 1);
        mover m = {.live = patient(&config, &live_voice), .device = device};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, play_sine, &m), 0);
        while (!atomic_load(&m.n_moves)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // blocks come
        for (int k = 0; k < 4; k++) {
            assert_ok(wt_live_load(m.live, k & 1 ? &live_voice : &chains[1].desc, NULL));
            wait_for_path(m.live, config.path);
        }
        wt_chain_fault fault;
        assert_int_equal(
            wt_live_load(m.live, &(wt_chain_desc){.nodes = &(wt_node_desc){.type = "gian"}, .n_nodes = 1}, &fault),
            WT_ERR_NOT_FOUND);
        wait_for_path(m.live, config.path);
        atomic_store(&m.quit, true);
        pthread_join(thread, NULL);
        assert_int_equal(m.status, WT_OK);
        assert_int_equal(stats_of(m.live).n_misses, 0);
        assert_ok(wt_live_prepare(m.live, 44100, 128));
        wait_for_path(m.live, config.path);
        float x[128] = {0}, y[128];
        live_blocks(m.live, x, y, 128, 64, 128);
        finish(m.live);
        assert_false(wt_device_is_armed(device));
    }
}

// ---- trouble

// The kernel is stopped without its state, as when the device is lost: blocks are late at first, then the CPU goes on.
static void a_killed_kernel_is_noticed_and_the_cpu_goes_on(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    float x[640] = {0}, y[640];
    wt_live *live = patient(&config, &live_voice);
    live_blocks(live, x, y, 640, 64, 640);
    wt__live_far_kill(live->far);
    wait_for_path(live, WT_LIVE_CPU);
    for (int n = 0; n < 640; n++) x[n] = 0.25f;
    live_blocks(live, x, y, 640, 64, 640);
    assert_true(y[320] != 0);
    assert_ok(wt_live_move(live, false)); // and again on the device
    wait_for_path(live, WT_LIVE_RESIDENT);
    live_blocks(live, x, y, 640, 64, 640);
    assert_true(y[639] != 0);
    finish(live);
}

// Nobody answers: the keeper is held off by its mutex, so the loss is not noticed.
static void blocks_without_an_answer_are_late_then_full(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    float x[64], y[64], last = 0, largest = 0;
    const float *in[] = {x};
    float *out[] = {y};
    wt_live *live = patient(&config, &live_voice);
    for (int n = 0; n < 64; n++) x[n] = 0.25f;
    for (int k = 0; k < 200; k++) assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    last = y[63]; // the low cut has taken the constant away
    wt_live_set_freewheel(live, false);
    wt__live_far_kill(live->far);
    pthread_mutex_lock(&live->far->mutex);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    const uint64_t before = stats_of(live).n_misses;
    for (int k = 0; k < 40; k++) {
        RT_SECTION { assert_int_equal(wt_live_process(live, in, out, 64), WT_ERR_TIMEOUT); }
        for (int n = 0; n < 64; n++) {
            largest = fmaxf(largest, fabsf(y[n] - last));
            last = y[n];
        }
    }
    assert_int_equal(stats_of(live).n_misses, before + 40);
    assert_int_equal(stats_of(live).misses[WT_LIVE_MISS_LATE] + stats_of(live).misses[WT_LIVE_MISS_FULL], before + 40);
    assert_in_range(stats_of(live).misses[WT_LIVE_MISS_FULL], 20, 40);
    assert_true(largest < 0.01f); // 0.25 within 5 ms, not at once
    assert_true(fabsf(last - 0.25f) < 1e-6f);
    pthread_mutex_unlock(&live->far->mutex);
    wait_for_path(live, WT_LIVE_CPU);
    wt_live_set_freewheel(live, true);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    finish(live);
}

static void turns_wrap_without_a_gap(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    float *x = noise_signal(FRAMES, 13), *want = calloc(FRAMES, sizeof *want), *y = calloc(FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 1}, &live_voice, &chain));
    process_blocks(chain, x, want, FRAMES, 64, FRAMES);
    wt_live *live = patient(&config, &live_voice);
    assert_ok(wt_live_move(live, true));
    live->far->turn = live->far->heard = live->far->served[0] = UINT32_MAX - 20;
    atomic_store(&live->far->posted, UINT32_MAX - 20);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x, y, FRAMES, 64, FRAMES);
    assert_same(device, want, y, FRAMES, 1, FRAMES);
    assert_in_range(live->far->turn, 1, 1000);
    finish(live);
    wt_chain_destroy(chain);
    free(x), free(want), free(y);
}

// ---- beside the chain

static void points_work_through_the_device(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 2000 };
    float x[2 * N], y[2 * N], voice[N], got[2 * N];
    const wt_setting down[] = {{"gain_db", NULL, -6}}, up[] = {{"gain_db", NULL, 6}};
    const wt_node_desc nodes[] = {{.type = "gain", .id = "down", .settings = down, .n_settings = 1},
                                  {.type = "gain", .id = "up", .settings = up, .n_settings = 1}};
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 2);
    wt_live *live = patient(&config, &(wt_chain_desc){.nodes = nodes, .n_nodes = 2});
    wt_live_tap *tap;
    wt_live_insert *insert;
    for (int n = 0; n < 2 * N; n++) x[n] = 0.001f * (float)(n % 100);
    for (int n = 0; n < N; n++) voice[n] = 0.002f * (float)(n % 37);
    assert_ok(wt_live_tap_open(live, &(wt_live_tap_config){.point = "down"}, &tap));
    assert_ok(wt_live_insert_open(live, &(wt_live_insert_config){.point = "down", .channels = 1}, &insert));
    assert_int_equal(wt_live_insert_write(insert, voice, N), N);
    live_blocks(live, x, y, N, 0, N);
    assert_int_equal(wt_live_tap_read(tap, got, N, NULL), N);
    for (int c = 0; c < 2; c++)
        for (int n = 0; n < N; n++) {
            const float heard = from_db(-6) * x[c * N + n] + voice[n];
            if (!(fabsf(got[2 * n + c] - heard) < 1e-5f && fabsf(y[c * N + n] - from_db(6) * heard) < 2e-5f))
                fail_msg("channel %d frame %d: tap %g, want %g; out %g", c, n, (double)got[2 * n + c], (double)heard,
                         (double)y[c * N + n]);
        }
    finish(live);
}

static void many_streams_run_side_by_side(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 3000, STREAMS = 24 };
    wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 2);
    config.n_streams = STREAMS;
    float *x = noise_signal(2 * STREAMS * N, 14), *y = calloc(2 * STREAMS * N, sizeof *y);
    float *want = calloc(2 * N, sizeof *want);
    wt_live *live = patient(&config, &live_full_voice);
    live_blocks(live, x, y, N, 64, N);
    for (int s = 0; s < STREAMS; s++) {
        wt_chain *chain = NULL;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = RATE, .channels = 2}, &live_full_voice, &chain));
        process_blocks(chain, x + 2 * s * N, want, N, 64, N);
        assert_same(device, want, y + 2 * s * N, N, 2, N);
        wt_chain_destroy(chain);
    }
    assert_ok(wt_live_move(live, true)); // streams may have left one turn apart
    live_blocks(live, x, y, N, 64, N);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x, y, N, 64, N);
    finish(live);
    free(x), free(y), free(want);
}

static void the_callback_is_clean_beside_a_device(void **state)
{
    wt_device *device = device_of(state);
    for (int graph = 0; graph < 2; graph++) {
        const wt_live_config config = config_of(device, graph ? WT_LIVE_GRAPH : WT_LIVE_RESIDENT, 2);
        float x[128] = {0}, y[128];
        const float *in[] = {x, x + 64};
        float *out[] = {y, y + 64};
        wt_live *live = patient(&config, &live_full_voice);
        for (int k = 0; k < 100; k++) {
            if (k == 50) assert_ok(wt_live_move(live, true));
            RT_SECTION
            {
                assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
                (void)!wt_live_set(live, 0, 0, 100 + (float)k);
            }
        }
        assert_in_range(stats_of(live).round_trip_ns.count, 50, 51);
        finish(live);
    }
}

static wt_status create_all(void *user)
{
    const wt_live_config config = config_of(user, WT_LIVE_RESIDENT, 1);
    wt_status status = wt_live_create(&config, &playing);
    if (!status) status = wt_live_load(playing, &live_voice, NULL);
    if (status) finish(playing);
    return status;
}

static void destroy_all(void *user)
{
    (void)user;
    finish(playing);
}

static void the_device_path_survives_failing_allocations(void **state)
{
    wt_device *device = device_of(state);
    if (on_gpu(device)) skip(); // the driver's own allocations would fail too
    (void)assert_survives_failing_alloc(create_all, destroy_all, device);
    assert_false(wt_device_is_armed(device));
}

// One audio chain a device may be resident; another takes the graph, and AUTO finds that by itself.
static void a_second_resident_chain_is_refused(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = config_of(device, WT_LIVE_RESIDENT, 1);
    wt_live *first = patient(&config, &live_voice), *second = live_of(&config, NULL);
    assert_fails(wt_live_load(second, &live_voice, NULL), WT_ERR_STATE,
                 "live: the device has another's resident kernel, want the graph path");
    wt_live_destroy(second);
    const wt_live_config free_to_choose = config_of(device, WT_LIVE_AUTO, 1);
    float x[640] = {0}, y[640];
    x[0] = 0.5f;
    second = live_of(&free_to_choose, &live_voice);
    assert_int_equal(stats_of(second).path, on_gpu(device) ? WT_LIVE_GRAPH : WT_LIVE_CPU);
    assert_int_equal(stats_of(first).path, WT_LIVE_RESIDENT);
    wt_live_set_freewheel(second, true);
    live_blocks(second, x, y, 640, 64, 640);
    live_blocks(first, x, y, 640, 64, 640);
    assert_true(y[0] != 0);
    wt_live_destroy(second);
    finish(first);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish_what_failed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_resident_path_equals_the_chain),
        TEST(the_graph_path_equals_the_chain),
        TEST(short_blocks_at_a_pace_equal_the_chain),
        TEST(a_bypassed_node_is_heard_as_on_the_cpu),
        TEST(a_parameter_changes_with_its_block),
        TEST(a_block_that_is_not_finite_is_silence),
        TEST(pipelined_blocks_come_later_and_whole),
        TEST(a_kernel_that_left_is_followed_by_the_next),
        TEST(moves_and_quiesces_make_no_step),
        TEST(chains_and_formats_change_while_audio_runs),
        TEST(a_killed_kernel_is_noticed_and_the_cpu_goes_on),
        TEST(blocks_without_an_answer_are_late_then_full),
        TEST(turns_wrap_without_a_gap),
        TEST(points_work_through_the_device),
        TEST(many_streams_run_side_by_side),
        TEST(the_callback_is_clean_beside_a_device),
        TEST(the_device_path_survives_failing_allocations),
        TEST(a_second_resident_chain_is_refused),
    };
    int failed = cmocka_run_group_tests_name("live, CPU backend", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("live, GPU", tests, open_cuda, close_device);
}
