// The live engine on a device, on both backends as in test_live_gpu.c: hand-over to the CPU and back, changes while
// audio runs, trouble, and what stands beside the chain.
#include "support/testing.h"
#include "support/chain_check.h"
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/live_check.h"
#include "support/live_device.h"
#include "support/node_check.h"
#include "support/realtime.h"

#include "../dsp/live/live_far.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/arm.h>
#include <warptone/clock.h>

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
    const wt_live_config config = live_config_on(device, path, 1);
    float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y), *want = calloc(N, sizeof *want);
    sine_signal(x, N, 150, LIVE_RATE, 0.4, 0);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 1}, desc, &chain));
    wt_live *live = patient_live(&config, desc);
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
    assert_same_audio(device, want, y, done, 1, N);
    const double step = largest_step_db(y + 20000, done - 20000);
    if (step > -80) fail_msg("%s: a step of %.1f dB, want none above -80", desc->name, step);
    assert_in_range(live_stats_of(live).n_moves, 19, 1000);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    finish_live(live);
    wt_chain_destroy(chain);
    free(x), free(y), free(want);
}

static void moves_and_quiesces_make_no_step(void **state)
{
    wt_device *device = device_of(state);
    check_moves(device, WT_LIVE_RESIDENT, &live_full_voice);
    // on the CPU backend nothing depends on the chain: both owners work in the same memory
    for (int k = 0; k < N_LIVE_CHAINS && live_on_gpu(device); k++)
        check_moves(device, WT_LIVE_RESIDENT, &live_chains[k].desc);
    check_moves(device, WT_LIVE_GRAPH, &live_full_voice);
}

static void *play_sine(void *user)
{
    mover *m = user;
    enum { N = 48 };
    float x[N], y[N];
    const float *in[] = {x};
    float *out[] = {y};
    sine_signal(x, N, 1000, LIVE_RATE, 0.5, 0);
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
        const wt_live_config config = live_config_on(device, graph ? WT_LIVE_GRAPH : WT_LIVE_RESIDENT, 1);
        mover m = {.live = patient_live(&config, &live_voice), .device = device};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, play_sine, &m), 0);
        while (!atomic_load(&m.n_moves)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // blocks come
        for (int k = 0; k < 4; k++) {
            assert_ok(wt_live_load(m.live, k & 1 ? &live_voice : &live_chains[1].desc, NULL));
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
        assert_int_equal(live_stats_of(m.live).n_misses, 0);
        assert_ok(wt_live_prepare(m.live, 44100, 128));
        wait_for_path(m.live, config.path);
        float x[128] = {0}, y[128];
        live_blocks(m.live, x, y, 128, 64, 128);
        finish_live(m.live);
        assert_false(wt_device_is_armed(device));
    }
}

// ---- what is on the stream

static bool is_alone(const live_far *far)
{
    const uint32_t launched = wt_block_data(__atomic_load_n(&far_control(far)->launched, __ATOMIC_RELAXED));
    return atomic_load(&far->owner) == FAR_DEVICE && wt__live_far_launches(far) == launched;
}

// Nothing is queued behind a kernel until it has lived, and then it leaves at once: neighbours would pay for it.
static void a_kernel_has_nothing_behind_it(void **state)
{
    wt_live_config config = live_config_on(device_of(state), WT_LIVE_RESIDENT, 1);
    config.life_s = 0.1;
    float x[64] = {0}, y[64];
    wt_live *live = patient_live(&config, &live_voice);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    int n_alone = 0, n = 0;
    for (; n < 1000; n++) {
        live_blocks(live, x, y, 64, 64, 64);
        n_alone += is_alone(live->far);
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    }
    const double lives = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9 / config.life_s;
    assert_in_range(live_stats_of(live).n_launches, 3, (uint64_t)lives + 2);
    assert_in_range(n_alone, n * 3 / 4, n);
    assert_int_equal(live_stats_of(live).n_misses, 0);
    finish_live(live);
}

// ---- trouble

static void *play_one_block(void *user)
{
    mover *m = user;
    float x[64] = {0}, y[64];
    const float *in[] = {x};
    float *out[] = {y};
    m->status = wt_live_process(m->live, in, out, 64);
    atomic_store(&m->quit, true);
    return NULL;
}

// The block is posted to a kernel that has just been killed, and no CPU can answer in its stead.
static void freewheel_does_not_wait_for_a_lost_device(void **state)
{
    const wt_live_config config = live_config_on(device_of(state), WT_LIVE_RESIDENT, 1);
    float x[64] = {0}, y[64];
    mover m = {.live = patient_live(&config, &live_voice)};
    pthread_t thread;
    live_blocks(m.live, x, y, 64, 64, 64);
    m.live->far->runs_on_cpu = false;
    wt__live_far_kill(m.live->far);
    assert_int_equal(pthread_create(&thread, NULL, play_one_block, &m), 0);
    for (int ms = 0; ms < 2000 && !atomic_load(&m.quit); ms++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const bool waits = !atomic_load(&m.quit);
    m.live->far->runs_on_cpu = true; // who still waits is answered
    pthread_join(thread, NULL);
    assert_false(waits);
    assert_int_equal(m.status, WT_ERR_DEVICE_LOST);
    finish_live(m.live);
}

// The chain is moved away, to where nobody can play it, and comes back some day: until then blocks are bypassed.
static void freewheel_does_not_wait_for_what_was_moved_away(void **state)
{
    const wt_live_config config = live_config_on(device_of(state), WT_LIVE_RESIDENT, 1);
    float x[64] = {0}, y[64];
    mover m = {.live = patient_live(&config, &live_voice)};
    pthread_t thread;
    live_blocks(m.live, x, y, 64, 64, 64);
    m.live->far->runs_on_cpu = false;
    assert_ok(wt_live_move(m.live, true));
    assert_int_equal(pthread_create(&thread, NULL, play_one_block, &m), 0);
    for (int ms = 0; ms < 2000 && !atomic_load(&m.quit); ms++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const bool waits = !atomic_load(&m.quit);
    assert_ok(wt_live_move(m.live, false)); // who still waits is answered
    pthread_join(thread, NULL);
    assert_false(waits);
    assert_int_equal(m.status, WT_ERR_TIMEOUT);
    live_blocks(m.live, x, y, 64, 64, 64);
    assert_int_equal(live_stats_of(m.live).misses[WT_LIVE_MISS_LATE], 1);
    m.live->far->runs_on_cpu = true;
    finish_live(m.live);
}

static void *play_too_long(void *user)
{
    mover *m = user;
    enum { N = 300 };
    static float x[N];
    float y[N];
    const float *in[] = {x};
    float *out[] = {y};
    while (!atomic_load(&m->quit)) {
        (void)!wt_live_process(m->live, in, out, N);
        atomic_fetch_add(&m->n_moves, 1);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

// Blocks come, but in none of them does the audio thread see to its chains: nobody waits for more than 200 ms for it.
static void blocks_that_are_too_long_hold_nobody_up(void **state)
{
    const wt_live_config config = live_config_on(device_of(state), WT_LIVE_RESIDENT, 1);
    float x[64] = {0}, y[64];
    mover m = {.live = patient_live(&config, &live_voice)};
    pthread_t thread;
    live_blocks(m.live, x, y, 64, 64, 64);
    assert_ok(wt_live_move(m.live, true));
    assert_int_equal(pthread_create(&thread, NULL, play_too_long, &m), 0);
    while (!atomic_load(&m.n_moves)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    const wt_status moved = wt_live_move(m.live, false);
    const double seconds = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9;
    atomic_store(&m.quit, true);
    pthread_join(thread, NULL);
    assert_int_equal(moved, WT_OK);
    assert_int_equal(live_stats_of(m.live).path, WT_LIVE_RESIDENT);
    if (seconds > 3) fail_msg("the move took %.1f s, want 0.2", seconds); // of a loaded machine; 5 s is the last bound
    finish_live(m.live);
}

// A change of format and another's quiesce, say, each of which goes behind the gate and does not ask for the other.
static void the_gate_opens_when_all_have_let_go(void **state)
{
    const wt_live_config config = live_config_on(device_of(state), WT_LIVE_RESIDENT, 1);
    float x[64] = {0}, y[64];
    const float *in[] = {x};
    float *out[] = {y};
    wt_live *live = patient_live(&config, &live_voice);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    wt__live_close_gate(live);
    wt__live_close_gate(live);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_ERR_TIMEOUT);
    wt__live_open_gate(live);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_ERR_TIMEOUT);
    wt__live_open_gate(live);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    assert_int_equal(live_stats_of(live).misses[WT_LIVE_MISS_FORMAT], 2);
    finish_live(live);
}

// The kernel is stopped without its state, as when the device is lost: blocks are late at first, then the CPU goes on.
static void a_killed_kernel_is_noticed_and_the_cpu_goes_on(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    float x[640] = {0}, y[640];
    wt_live *live = patient_live(&config, &live_voice);
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
    finish_live(live);
}

// Nobody answers: the keeper is held off by its mutex, so the loss is not noticed.
static void blocks_without_an_answer_are_late_then_full(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    float x[64], y[64], last = 0, largest = 0;
    const float *in[] = {x};
    float *out[] = {y};
    wt_live *live = patient_live(&config, &live_voice);
    for (int n = 0; n < 64; n++) x[n] = 0.25f;
    for (int k = 0; k < 200; k++) assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    last = y[63]; // the low cut has taken the constant away
    wt_live_set_freewheel(live, false);
    wt__live_far_kill(live->far);
    pthread_mutex_lock(&live->far->mutex);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    const uint64_t before = live_stats_of(live).n_misses;
    for (int k = 0; k < 40; k++) {
        RT_SECTION { assert_int_equal(wt_live_process(live, in, out, 64), WT_ERR_TIMEOUT); }
        for (int n = 0; n < 64; n++) {
            largest = fmaxf(largest, fabsf(y[n] - last));
            last = y[n];
        }
    }
    assert_int_equal(live_stats_of(live).n_misses, before + 40);
    assert_int_equal(live_stats_of(live).misses[WT_LIVE_MISS_LATE] + live_stats_of(live).misses[WT_LIVE_MISS_FULL],
                     before + 40);
    assert_in_range(live_stats_of(live).misses[WT_LIVE_MISS_FULL], 20, 40);
    assert_true(largest < 0.01f); // 0.25 within 5 ms, not at once
    assert_true(fabsf(last - 0.25f) < 1e-6f);
    pthread_mutex_unlock(&live->far->mutex);
    wait_for_path(live, WT_LIVE_CPU);
    wt_live_set_freewheel(live, true);
    assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
    finish_live(live);
}

static void turns_wrap_without_a_gap(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    float *x = noise_signal(LIVE_FRAMES, 13), *want = calloc(LIVE_FRAMES, sizeof *want),
          *y = calloc(LIVE_FRAMES, sizeof *y);
    wt_chain *chain = NULL;
    assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 1}, &live_voice, &chain));
    process_blocks(chain, x, want, LIVE_FRAMES, 64, LIVE_FRAMES);
    wt_live *live = patient_live(&config, &live_voice);
    assert_ok(wt_live_move(live, true));
    live->far->turn = live->far->heard = live->far->served[0] = UINT32_MAX - 20;
    atomic_store(&live->far->posted, UINT32_MAX - 20);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x, y, LIVE_FRAMES, 64, LIVE_FRAMES);
    assert_same_audio(device, want, y, LIVE_FRAMES, 1, LIVE_FRAMES);
    assert_in_range(live->far->turn, 1, 1000);
    finish_live(live);
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
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 2);
    wt_live *live = patient_live(&config, &(wt_chain_desc){.nodes = nodes, .n_nodes = 2});
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
    finish_live(live);
}

static void many_streams_run_side_by_side(void **state)
{
    wt_device *device = device_of(state);
    enum { N = 3000, STREAMS = 24 };
    wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 2);
    config.n_streams = STREAMS;
    float *x = noise_signal(2 * STREAMS * N, 14), *y = calloc(2 * STREAMS * N, sizeof *y);
    float *want = calloc(2 * N, sizeof *want);
    wt_live *live = patient_live(&config, &live_full_voice);
    live_blocks(live, x, y, N, 64, N);
    for (int s = 0; s < STREAMS; s++) {
        wt_chain *chain = NULL;
        assert_ok(wt_chain_create(&(wt_chain_config){.rate_hz = LIVE_RATE, .channels = 2}, &live_full_voice, &chain));
        process_blocks(chain, x + 2 * s * N, want, N, 64, N);
        assert_same_audio(device, want, y + 2 * s * N, N, 2, N);
        wt_chain_destroy(chain);
    }
    assert_ok(wt_live_move(live, true)); // streams may have left one turn apart
    live_blocks(live, x, y, N, 64, N);
    assert_ok(wt_live_move(live, false));
    live_blocks(live, x, y, N, 64, N);
    finish_live(live);
    free(x), free(y), free(want);
}

static void the_callback_is_clean_beside_a_device(void **state)
{
    wt_device *device = device_of(state);
    for (int graph = 0; graph < 2; graph++) {
        const wt_live_config config = live_config_on(device, graph ? WT_LIVE_GRAPH : WT_LIVE_RESIDENT, 2);
        float x[128] = {0}, y[128];
        const float *in[] = {x, x + 64};
        float *out[] = {y, y + 64};
        wt_live *live = patient_live(&config, &live_full_voice);
        for (int k = 0; k < 100; k++) {
            if (k == 50) assert_ok(wt_live_move(live, true));
            RT_SECTION
            {
                assert_int_equal(wt_live_process(live, in, out, 64), WT_OK);
                (void)!wt_live_set(live, 0, 0, 100 + (float)k);
            }
        }
        assert_in_range(live_stats_of(live).round_trip_ns.count, 50, 51);
        finish_live(live);
    }
}

static wt_status create_all(void *user)
{
    const wt_live_config config = live_config_on(user, WT_LIVE_RESIDENT, 1);
    wt_status status = wt_live_create(&config, &live_playing);
    if (!status) status = wt_live_load(live_playing, &live_voice, NULL);
    if (status) finish_live(live_playing);
    return status;
}

static void destroy_all(void *user)
{
    (void)user;
    finish_live(live_playing);
}

static void the_device_path_survives_failing_allocations(void **state)
{
    wt_device *device = device_of(state);
    if (live_on_gpu(device)) skip(); // the driver's own allocations would fail too
    (void)assert_survives_failing_alloc(create_all, destroy_all, device);
    assert_false(wt_device_is_armed(device));
}

// One audio chain a device may be resident; another takes the graph, and AUTO finds that by itself.
static void a_second_resident_chain_is_refused(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    wt_live *first = patient_live(&config, &live_voice), *second = live_of(&config, NULL);
    assert_fails(wt_live_load(second, &live_voice, NULL), WT_ERR_STATE,
                 "live: the device has another's resident kernel, want the graph path");
    wt_live_destroy(second);
    const wt_live_config free_to_choose = live_config_on(device, WT_LIVE_AUTO, 1);
    float x[640] = {0}, y[640];
    x[0] = 0.5f;
    second = live_of(&free_to_choose, &live_voice);
    assert_int_equal(live_stats_of(second).path, live_on_gpu(device) ? WT_LIVE_GRAPH : WT_LIVE_CPU);
    assert_int_equal(live_stats_of(first).path, WT_LIVE_RESIDENT);
    wt_live_set_freewheel(second, true);
    live_blocks(second, x, y, 640, 64, 640);
    live_blocks(first, x, y, 640, 64, 640);
    assert_true(y[0] != 0);
    wt_live_destroy(second);
    finish_live(first);
}

typedef struct rival {
    pthread_barrier_t *start;
    wt_live *live;
    wt_status status;
} rival;

static void *load_at_once(void *user)
{
    rival *r = user;
    pthread_barrier_wait(r->start);
    r->status = wt_live_load(r->live, &live_voice, NULL);
    return NULL;
}

static wt_status note_owner(void *user)
{
    rival *winner = user;
    winner->status = atomic_load(&winner->live->far->owner) == FAR_DEVICE ? WT_ERR_STATE : WT_OK;
    return WT_OK;
}

// Two that load at the same moment: one has the device, and is the one that a quiesce stops; the other is told.
static void of_two_at_once_one_has_the_device(void **state)
{
    wt_device *device = device_of(state);
    const wt_live_config config = live_config_on(device, WT_LIVE_RESIDENT, 1);
    for (int k = 0; k < (live_on_gpu(device) ? 4 : 40); k++) {
        pthread_barrier_t start;
        pthread_t threads[2];
        rival rivals[2];
        assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
        for (int i = 0; i < 2; i++) rivals[i] = (rival){.start = &start, .live = live_of(&config, NULL)};
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, load_at_once, &rivals[i]), 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        const int loser = rivals[0].status == WT_OK;
        assert_int_equal(rivals[!loser].status, WT_OK);
        assert_int_equal(rivals[loser].status, WT_ERR_STATE);
        assert_int_equal(live_stats_of(rivals[!loser].live).path, WT_LIVE_RESIDENT);
        assert_ok(wt_quiesce(device, note_owner, &rivals[!loser], 0));
        assert_int_equal(rivals[!loser].status, WT_OK);
        for (int i = 0; i < 2; i++) wt_live_destroy(rivals[i].live);
        assert_false(wt_device_is_armed(device));
        pthread_barrier_destroy(&start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_TEST(moves_and_quiesces_make_no_step),
        LIVE_TEST(chains_and_formats_change_while_audio_runs),
        LIVE_TEST(a_kernel_has_nothing_behind_it),
        LIVE_TEST(blocks_that_are_too_long_hold_nobody_up),
        LIVE_TEST(freewheel_does_not_wait_for_a_lost_device),
        LIVE_TEST(freewheel_does_not_wait_for_what_was_moved_away),
        LIVE_TEST(the_gate_opens_when_all_have_let_go),
        LIVE_TEST(a_killed_kernel_is_noticed_and_the_cpu_goes_on),
        LIVE_TEST(blocks_without_an_answer_are_late_then_full),
        LIVE_TEST(turns_wrap_without_a_gap),
        LIVE_TEST(points_work_through_the_device),
        LIVE_TEST(many_streams_run_side_by_side),
        LIVE_TEST(the_callback_is_clean_beside_a_device),
        LIVE_TEST(the_device_path_survives_failing_allocations),
        LIVE_TEST(a_second_resident_chain_is_refused),
        LIVE_TEST(of_two_at_once_one_has_the_device),
    };
    int failed = cmocka_run_group_tests_name("live moves, CPU backend", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("live moves, GPU", tests, open_cuda, close_device);
}
