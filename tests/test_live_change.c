// One chain gives way to another while audio runs on a device: on the CPU backend, where a C function stands for the
// resident kernel, and on a GPU.
#include "support/testing.h"
#include "support/device_check.h"
#include "support/live_check.h"
#include "support/model_check.h"
#include "support/node_check.h"

#include "../dsp/live/live_far.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/arm.h>
#include <warptone/clock.h>

#define RATE 48000.0
enum { MAX_BLOCK = 256, MAX_STREAMS = 64, LOUD = 1 << 20 };

static wt_live_stats stats_of(const wt_live *live)
{
    wt_live_stats stats;
    wt_live_get_stats(live, &stats);
    return stats;
}

// An audio thread: a sine, block after block, to every stream, and what came of it in the last one as long as there is
// room.
typedef struct player {
    wt_live *live;
    int block, n_streams;
    bool paced; // in real time; else as fast as it goes, with a rest after each block
    atomic_bool quit;
    atomic_int n_blocks;
    float *heard;
    wt_status status;
    pthread_t thread;
    bool runs;
} player;

static void sleep_until(int64_t due_ns)
{
    int64_t left = due_ns - wt_clock_now_ns(NULL);
    if (left > 200000) nanosleep(&(struct timespec){.tv_nsec = (long)(left - 200000)}, NULL);
    while (wt_clock_now_ns(NULL) < due_ns) {
    }
}

static void *play(void *user)
{
    player *p = user;
    float x[MAX_BLOCK], all[MAX_STREAMS][MAX_BLOCK], *out[MAX_STREAMS];
    const float *in[MAX_STREAMS], *y = all[p->n_streams - 1];
    for (int s = 0; s < MAX_STREAMS; s++) in[s] = x, out[s] = all[s];
    const int64_t period_ns = (int64_t)(1e9 * p->block / RATE), begin_ns = wt_clock_now_ns(NULL);
    for (int k = 0; !atomic_load(&p->quit); k++) {
        for (int n = 0; n < p->block; n++) x[n] = 0.4f * (float)sin(2 * M_PI * 150 / RATE * (k * p->block + n));
        const wt_status status = wt_live_process(p->live, in, out, p->block);
        if (status && status != WT_ERR_TIMEOUT) p->status = status;
        for (int n = 0; n < p->block && (k + 1) * p->block <= LOUD; n++) p->heard[k * p->block + n] = y[n];
        atomic_store(&p->n_blocks, k + 1);
        if (p->paced)
            sleep_until(begin_ns + (k + 1) * period_ns);
        else
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return NULL;
}

static void let_play(const player *p, int n_blocks)
{
    const int until = atomic_load(&p->n_blocks) + n_blocks;
    while (atomic_load(&p->n_blocks) < until) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// The test's player, so that one that fails leaves no kernel and no thread behind.
static player *playing;

static void begin_fading(player *p, wt_device *device, const wt_chain_desc *desc, int n_streams, int block, bool paced,
                         float fade_ms)
{
    const wt_live_config config = {.rate_hz = RATE,
                                   .channels = 1,
                                   .n_streams = n_streams,
                                   .max_frames = block,
                                   .device = device,
                                   .fade_ms = fade_ms,
                                   .path = WT_LIVE_RESIDENT};
    *p = (player){.live = live_of(&config, desc), .n_streams = n_streams, .block = block, .paced = paced};
    p->heard = calloc(LOUD, sizeof *p->heard);
    assert_non_null(p->heard);
    wt_live_set_freewheel(p->live, !paced);
    assert_int_equal(pthread_create(&p->thread, NULL, play, p), 0);
    p->runs = true;
    playing = p;
    let_play(p, 40);
}

static void begin(player *p, wt_device *device, const wt_chain_desc *desc, int n_streams, int block, bool paced)
{
    begin_fading(p, device, desc, n_streams, block, paced, 0);
}

typedef struct disturber {
    wt_device *device;
    atomic_bool quit;
    int n;
    wt_status status;
    pthread_t thread;
    bool runs;
} disturber;

static void *disturb(void *user)
{
    disturber *d = user;
    for (; !atomic_load(&d->quit) && !d->status; d->n++) {
        d->status = wt_quiesce(d->device, NULL, NULL, 0);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return NULL;
}

static disturber disturbing;

static void stop_disturbing(void)
{
    atomic_store(&disturbing.quit, true);
    if (disturbing.runs) pthread_join(disturbing.thread, NULL);
    disturbing.runs = false;
}

static void stop(player *p)
{
    atomic_store(&p->quit, true);
    if (p->runs) pthread_join(p->thread, NULL);
    p->runs = false;
}

static int end(void **state)
{
    (void)state;
    stop_disturbing();
    if (!playing) return 0;
    stop(playing);
    wt_live_destroy(playing->live);
    free(playing->heard);
    playing = NULL;
    return 0;
}

static void finish(player *p)
{
    stop(p);
    assert_int_equal(p->status, WT_OK);
    (void)end(NULL);
}

static const wt_setting half_gain[] = {{"gain_db", NULL, -6}};
static const wt_node_desc whole_nodes[] = {{.type = "gain"}};
static const wt_node_desc half_nodes[] = {{.type = "gain", .settings = half_gain, .n_settings = 1}};
static const wt_chain_desc whole = {.name = "whole", .nodes = whole_nodes, .n_nodes = 1};
static const wt_chain_desc half = {.name = "half", .nodes = half_nodes, .n_nodes = 1};

// Others' quiesces fall before, into and after the fades, in which two kernels run. Then the same with several streams.
static void chains_fade_on_the_device_without_a_step(void **state)
{
    wt_device *device = device_of(state);
    for (int k = 0; k < 3; k++) {
        static player p;
        const bool disturbed = k == 1;
        disturbing = (disturber){.device = device};
        begin(&p, device, &whole, k == 2 ? 3 : 1, 64, false);
        if (disturbed) assert_int_equal(pthread_create(&disturbing.thread, NULL, disturb, &disturbing), 0);
        disturbing.runs = disturbed;
        for (int change = 0; change < 6; change++) {
            assert_ok(wt_live_load(p.live, change & 1 ? &whole : &half, NULL));
            let_play(&p, 20);
        }
        stop_disturbing();
        assert_int_equal(disturbing.status, WT_OK);
        const wt_live_stats s = stats_of(p.live);
        assert_int_equal(s.path, WT_LIVE_RESIDENT);
        assert_int_equal(s.n_loads, 7);
        // A thread that gets no processor for 200 ms is taken for one that has ended, and shut out: bypassed, not
        // faded.
        const uint64_t n_shut_out = s.misses[WT_LIVE_MISS_FORMAT];
        if (n_shut_out) print_message("the audio thread had no processor for 200 ms, its steps are not judged\n");
        assert_int_equal(s.n_misses - n_shut_out, 0);
        int n = 64 * atomic_load(&p.n_blocks);
        if (n > LOUD) n = LOUD;
        const double step = largest_step_db(p.heard + 1024, n - 1024);
        if (step > -80 && !n_shut_out) fail_msg("a step of %.1f dB, want none above -80", step);
        assert_true(fabsf(p.heard[n - 1]) <= 0.4001f);
        wt_arm_counts counts;
        wt_arm_stats(device, &counts);
        assert_int_equal(counts.n_refused, 0);
        assert_int_equal(counts.n_waiting, 0); // all that was put aside has been given back
        finish(&p);
    }
    assert_false(wt_device_is_armed(device));
}

// ---- a quiesce that falls between two steps of a load

typedef wt_status quiesce(wt_device *device, wt_quiesce_function function, void *user, int64_t timeout_us);
typedef wt_status disarm(wt_device *device);

// What the functions below stand before.
static quiesce *library_quiesce(void)
{
    void *found = dlsym(RTLD_NEXT, "wt_quiesce");
    quiesce *call;
    memcpy(&call, &found, sizeof call);
    return call;
}

static disarm *library_disarm(void)
{
    void *found = dlsym(RTLD_NEXT, "wt_device_disarm");
    disarm *call;
    memcpy(&call, &found, sizeof call);
    return call;
}

// Another's, which begins behind the next one that does something. The load goes on when it holds the device, or
// (`holds_ms` = 0) when it has ended or stands still.
static struct intruder {
    wt_device *device; // NULL = none comes
    const wt_live *live;
    int holds_ms;
    atomic_bool holds, ended;
    bool disturbed; // a kernel ran when it let the device go
    wt_status status;
    pthread_t thread;
} intruder;

static wt_status hold(void *user)
{
    (void)user;
    atomic_store(&intruder.holds, true);
    nanosleep(&(struct timespec){.tv_nsec = intruder.holds_ms * 1000000L}, NULL);
    intruder.disturbed = stats_of(intruder.live).path == WT_LIVE_RESIDENT;
    return WT_OK;
}

static void *intrude(void *user)
{
    (void)user;
    intruder.status = library_quiesce()(intruder.device, hold, NULL, 0);
    atomic_store(&intruder.ended, true);
    return NULL;
}

// Stands before the library's function for the library's own calls as well.
wt_status wt_quiesce(wt_device *device, wt_quiesce_function function, void *user, int64_t timeout_us)
{
    const wt_status status = library_quiesce()(device, function, user, timeout_us);
    if (!function || device != intruder.device || atomic_load(&intruder.holds)) return status;
    if (pthread_create(&intruder.thread, NULL, intrude, NULL)) return WT_ERR_STATE;
    while (!atomic_load(&intruder.holds)) sched_yield();
    for (int ms = 0; ms < 500 && !intruder.holds_ms && !atomic_load(&intruder.ended); ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return status;
}

// Another's, before the one who has stopped the kernel for good comes to disarm.
wt_status wt_device_disarm(wt_device *device)
{
    if (device == intruder.device) {
        intruder.status = library_quiesce()(device, NULL, NULL, 0);
        intruder.disturbed = stats_of(intruder.live).path == WT_LIVE_RESIDENT;
        intruder.device = NULL;
    }
    return library_disarm()(device);
}

// The new chain has been loaded and its kernel begun, and the audio thread has not heard of it: nobody answers for it
// while the device is away, and nobody can be asked to give it back.
static void a_quiesce_may_fall_before_the_new_chain_is_shown(void **state)
{
    wt_device *device = device_of(state);
    for (int holds_ms = 0; holds_ms <= 50; holds_ms += 50) {
        static player p;
        begin(&p, device, &whole, 1, 64, false);
        intruder = (struct intruder){.device = device, .live = p.live, .holds_ms = holds_ms};
        const wt_status status = wt_live_load(p.live, &half, NULL);
        intruder.device = NULL;
        assert_true(atomic_load(&intruder.holds));
        pthread_join(intruder.thread, NULL);
        assert_int_equal(status, WT_OK);
        assert_int_equal(intruder.status, WT_OK);
        assert_false(intruder.disturbed);
        let_play(&p, 20);
        const wt_live_stats s = stats_of(p.live);
        assert_int_equal(s.n_loads, 2);
        assert_int_equal(s.path, WT_LIVE_RESIDENT);
        assert_int_equal(s.n_misses - s.misses[WT_LIVE_MISS_FORMAT], 0);
        if (s.misses[WT_LIVE_MISS_FORMAT]) print_message("the audio thread had no processor for 200 ms\n");
        finish(&p);
    }
}

// Chains that the device does not take come between those that it does, faster than they fade: each is put away before
// the next comes in, and no quiesce waits for one that cannot be taken up as long as another lies in its way.
static void a_fade_under_way_is_seen_out(void **state)
{
    wt_device *device = device_of(state);
    static player p;
    begin_fading(&p, device, &whole, 1, 64, false, 500); // 375 blocks
    p.live->config.path = WT_LIVE_CPU;
    assert_ok(wt_live_load(p.live, &half, NULL));
    let_play(&p, 5);
    p.live->config.path = WT_LIVE_RESIDENT;
    assert_ok(wt_live_load(p.live, &whole, NULL));
    intruder = (struct intruder){.device = device, .live = p.live, .holds_ms = 20};
    const wt_status status = wt_live_load(p.live, &half, NULL);
    const bool fades = atomic_load(&p.live->fading), left = atomic_load(&p.live->left);
    intruder.device = NULL;
    assert_true(atomic_load(&intruder.holds));
    pthread_join(intruder.thread, NULL);
    assert_int_equal(status, WT_OK);
    assert_int_equal(intruder.status, WT_OK);
    assert_false(fades || left);
    assert_int_equal(stats_of(p.live).path, WT_LIVE_RESIDENT);
    finish(&p);
}

typedef struct loading {
    player *player;
    atomic_bool ended;
    wt_status status;
} loading;

static void *load_half(void *user)
{
    loading *l = user;
    l->status = wt_live_load(l->player->live, &half, NULL);
    atomic_store(&l->ended, true);
    return NULL;
}

// The old chain is one that no CPU can play, and in freewheel the audio thread waits for it however long it is away: it
// is not asked for the new one before the old one is back.
static void a_chain_of_the_device_alone_fades_out_among_quiesces(void **state)
{
    wt_device *device = device_of(state);
    static player p;
    begin_fading(&p, device, &whole, 1, 64, false, 500);
    live_far *old = p.live->far;
    wt__live_close_gate(p.live);
    old->runs_on_cpu = false;
    wt__live_open_gate(p.live);
    disturbing = (disturber){.device = device};
    assert_int_equal(pthread_create(&disturbing.thread, NULL, disturb, &disturbing), 0);
    disturbing.runs = true;
    loading l = {.player = &p};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, load_half, &l), 0);
    for (int still = 0, last = 0; !atomic_load(&l.ended) && still < 3000; still++) {
        const int now = atomic_load(&p.n_blocks);
        if (now != last) still = 0;
        last = now;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    const bool stuck = !atomic_load(&l.ended);
    if (stuck) old->runs_on_cpu = true; // who waits is answered
    pthread_join(thread, NULL);
    stop_disturbing();
    assert_false(stuck);
    assert_int_equal(l.status, WT_OK);
    assert_int_equal(disturbing.status, WT_OK);
    assert_int_equal(stats_of(p.live).n_loads, 2);
    finish(&p);
}

// What is stopped by another's quiesce stays so until that one ends.
static void no_kernel_begins_in_another_s_quiesce(void **state)
{
    wt_device *device = device_of(state);
    static player p;
    begin(&p, device, &whole, 1, 64, false);
    intruder = (struct intruder){.device = device, .live = p.live, .holds_ms = 50};
    const wt_status status = wt_live_prepare(p.live, RATE, 64);
    intruder.device = NULL;
    assert_true(atomic_load(&intruder.holds));
    pthread_join(intruder.thread, NULL);
    assert_int_equal(status, WT_OK);
    assert_int_equal(intruder.status, WT_OK);
    assert_false(intruder.disturbed);
    assert_int_equal(stats_of(p.live).path, WT_LIVE_RESIDENT);
    finish(&p);
}

static void no_kernel_begins_in_an_engine_that_goes(void **state)
{
    wt_device *device = device_of(state);
    static player p;
    begin(&p, device, &whole, 1, 64, false);
    intruder = (struct intruder){.device = device, .live = p.live};
    finish(&p);
    assert_null(intruder.device);
    assert_int_equal(intruder.status, WT_OK);
    assert_false(intruder.disturbed);
    assert_false(wt_device_is_armed(device));
}

static void the_model_holds_and_fails_when_it_is_broken(void **state)
{
    (void)state;
    skip_without_spin("change.pml");
    assert_true(model_says("change.pml", "BROKEN=0", false, "errors: 0"));
    assert_true(model_says("change.pml", "BROKEN=1", false, "invalid end state (at"));
    assert_true(model_says("change.pml", "BROKEN=2", false, "assertion violated"));
    assert_true(model_says("change.pml", "BROKEN=3", false, "invalid end state (at"));
}

// Without callbacks nobody fades: the new chain is there at once, and the old one's kernel has left.
static void a_chain_is_exchanged_while_no_audio_comes(void **state)
{
    wt_device *device = device_of(state);
    static player p;
    begin(&p, device, &whole, 1, 64, false);
    stop(&p);
    assert_ok(wt_live_load(p.live, &half, NULL));
    assert_int_equal(stats_of(p.live).path, WT_LIVE_RESIDENT);
    float x[4096], y[4096];
    for (int n = 0; n < 4096; n++) x[n] = 1;
    live_blocks(p.live, x, y, 4096, 64, 4096);
    assert_float_equal(y[4095], from_db(-6), 1e-5);
    finish(&p);
}

static const char *const texts[] = {
    "__device__ void process(const wt_node_io *io, const float *, float *)\n"
    "{\n    for_each_sample(io, [&](int c, int n) { io->out[c * io->stride + n] = 0.5f * "
    "io->in[0][c * io->stride + n]; });\n}\n",
    "__device__ void process(const wt_node_io *io, const float *, float *)\n"
    "{\n    for_each_sample(io, [&](int c, int n) { io->out[c * io->stride + n] = 0.25f * "
    "io->in[0][c * io->stride + n]; });\n}\n",
    "__device__ void process(const wt_node_io *io) { nonsense }\n"};

static wt_status load_text(wt_live *live, const char *text)
{
    const wt_setting setting = {"text", text, 0};
    const wt_node_desc node = {.type = "cuda", .settings = &setting, .n_settings = 1};
    return wt_live_load(live, &(wt_chain_desc){.name = "mine", .nodes = &node, .n_nodes = 1}, NULL);
}

// No CPU can stand in for a user's kernel: blocks wait for the device, within their bound, while the next one is
// loaded.
static void a_users_kernel_gives_way_without_a_miss(void **state)
{
    wt_device *device = device_of(state);
    if (wt_device_get_info(device)->backend != WT_BACKEND_CUDA) {
        print_message("skipped: the CPU backend has no user's kernels\n");
        skip();
    }
    for (int block = 256; block >= 64; block /= 2) {
        static player p;
        begin(&p, device, &whole, 1, block, true);
        assert_ok(load_text(p.live, texts[0]));
        let_play(&p, 20);
        const wt_live_stats before = stats_of(p.live);
        for (int k = 1; k <= 10; k++) {
            assert_ok(load_text(p.live, texts[k & 1]));
            let_play(&p, 20);
        }
        const wt_live_stats after = stats_of(p.live);
        wt_arm_counts counts;
        wt_arm_stats(device, &counts);
        print_message(
            "10 changes of a user's kernel at %d frames: %d blocks missed; the longest round trip %.0f us, the "
            "last quiesce %.0f us\n",
            block, (int)(after.n_misses - before.n_misses), (double)after.round_trip_ns.max * 1e-3,
            counts.quiesce_last_us);
        assert_int_equal(load_text(p.live, texts[2]), WT_ERR_COMPILE);
        let_play(&p, 20);
        assert_int_equal(stats_of(p.live).path, WT_LIVE_RESIDENT);
        if (block == 256) assert_int_equal(stats_of(p.live).n_misses - before.n_misses, 0); // 4.3 ms to wait
        finish(&p);
    }
}

// Kernels of more streams have no room beside each other: the old chain plays on the CPU while the new one is loaded,
// fades into it there, and the new one moves to the device.
static void many_streams_give_way_by_the_cpu(void **state)
{
    wt_device *device = device_of(state);
    if (wt_device_get_info(device)->backend != WT_BACKEND_CUDA) {
        print_message("skipped: in real time, which takes a device of its own\n");
        skip();
    }
    static const int n_streams[] = {8, 64};
    for (int k = 0; k < 2; k++)
        for (int block = 256; block >= 64; block /= 4) {
            static player p;
            begin(&p, device, &live_full_voice, n_streams[k], block, true);
            const wt_live_stats before = stats_of(p.live);
            for (int change = 0; change < 6; change++) {
                assert_ok(wt_live_load(p.live, change & 1 ? &live_full_voice : &live_voice, NULL));
                let_play(&p, 30);
            }
            const wt_live_stats after = stats_of(p.live);
            assert_int_equal(after.path, WT_LIVE_RESIDENT);
            assert_true(after.n_moves > before.n_moves);
            print_message("6 changes of %d streams at %d frames: %d blocks missed; the longest took %.0f us of %.0f\n",
                          n_streams[k], block, (int)(after.n_misses - before.n_misses),
                          (double)after.process_ns.max * 1e-3, block / RATE * 1e6);
            if (block == 256) assert_int_equal(after.n_misses - before.n_misses, 0); // 4.3 ms to wait
            finish(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(chains_fade_on_the_device_without_a_step, end),
        cmocka_unit_test_teardown(a_quiesce_may_fall_before_the_new_chain_is_shown, end),
        cmocka_unit_test_teardown(a_fade_under_way_is_seen_out, end),
        cmocka_unit_test_teardown(a_chain_of_the_device_alone_fades_out_among_quiesces, end),
        cmocka_unit_test_teardown(no_kernel_begins_in_another_s_quiesce, end),
        cmocka_unit_test_teardown(no_kernel_begins_in_an_engine_that_goes, end),
        cmocka_unit_test_teardown(a_chain_is_exchanged_while_no_audio_comes, end),
        cmocka_unit_test_teardown(a_users_kernel_gives_way_without_a_miss, end),
        cmocka_unit_test_teardown(many_streams_give_way_by_the_cpu, end),
    };
    const struct CMUnitTest model[] = {cmocka_unit_test(the_model_holds_and_fails_when_it_is_broken)};
    int failed = cmocka_run_group_tests_name("live change, model", model, NULL, NULL);
    failed += cmocka_run_group_tests_name("live change, CPU backend", tests, open_cpu, close_device);
    return failed + cmocka_run_group_tests_name("live change, GPU", tests, open_cuda, close_device);
}
