#include "support/testing.h"
#include "support/jack_server.h"
#include "support/jack_wire.h"
#include "../hosts/audio_host.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The JACK host alone, around a process that hands its input on. Servers are jackd's dummy driver; what is compared is
// content, never time. tests/test_live_session.c has the same with a chain in it.

#ifdef WT_HAVE_JACK

static jack_server server;

typedef struct probe {
    atomic_int n_blocks, n_midi, max_frames, n_formats, n_lost, n_xruns, beats, latency_frames;
    atomic_int freewheel;
    atomic_bool rolling;
    _Atomic double bpm;
    char why[256];
} probe;

static probe p;
static atomic_int n_processors, first_processor; ///< of the callback's thread
static audio_host *host;
static jack_wire *wire; // only where a test needs one

static void process(void *user, const float *const *in, float *const *out, int n_frames)
{
    probe *p = user;
    for (int c = 0; c < 2; c++) memcpy(out[c], in[c], sizeof(float) * (size_t)n_frames);
    if (n_frames > atomic_load(&p->max_frames)) atomic_store(&p->max_frames, n_frames);
    atomic_fetch_add(&p->n_blocks, 1);
}

static void on_midi(void *user, int frame, const uint8_t *bytes, int n_bytes)
{
    probe *p = user;
    if (n_bytes == 3 && bytes[0] == 0xb0) atomic_store(&p->n_midi, 1000 * bytes[1] + frame);
}

static void on_transport(void *user, const audio_transport *transport)
{
    probe *p = user;
    atomic_store(&p->bpm, transport->bpm);
    atomic_store(&p->beats, (int)transport->beats_per_bar);
    atomic_store(&p->rolling, transport->rolling);
}

static void on_format(void *user, double rate_hz, int max_frames)
{
    (void)rate_hz, (void)max_frames;
    atomic_fetch_add(&((probe *)user)->n_formats, 1);
}

static void on_xrun(void *user) { atomic_fetch_add(&((probe *)user)->n_xruns, 1); }
static void on_freewheel(void *user, bool on) { atomic_fetch_add(&((probe *)user)->freewheel, on ? 1 : 100); }
static int on_latency(void *user) { return atomic_load(&((probe *)user)->latency_frames); }

static void on_lost(void *user, const char *why)
{
    probe *p = user;
    snprintf(p->why, sizeof p->why, "%s", why);
    atomic_fetch_add(&p->n_lost, 1);
}

static audio_host_config config_of_probe(void)
{
    return (audio_host_config){.device = server.name,
                               .client_name = "passes",
                               .midi = true,
                               .callbacks = {.user = &p,
                                             .process = process,
                                             .midi = on_midi,
                                             .transport = on_transport,
                                             .format = on_format,
                                             .xrun = on_xrun,
                                             .freewheel = on_freewheel,
                                             .lost = on_lost,
                                             .latency = on_latency}};
}

/// Open and start; `end` closes it.
static void begin(const audio_host_config *config)
{
    assert_ok(jack_host_type.open(config, &host));
    assert_ok(jack_host_type.start(host));
}

/// A server, and on it the host between player and recorder.
static void begin_wired(void)
{
    if (!server.pid) jack_server_start(&server, 256);
    const audio_host_config config = config_of_probe();
    begin(&config);
    wire = jack_wire_open(&server);
    jack_wire_through(wire, "passes");
}

static void close_host(void)
{
    if (!host) return;
    jack_host_type.stop(host);
    jack_host_type.close(host);
    host = NULL;
}

/// After each test, also one that failed.
static int end(void **state)
{
    (void)state;
    jack_wire_close(wire);
    wire = NULL;
    close_host();
    memset(&p, 0, sizeof p);
    return 0;
}

/// Wait until `*value` is at least `wanted`; fails after half a minute.
static void await(atomic_int *value, int wanted)
{
    for (int k = 0; k < 30000 && atomic_load(value) < wanted; k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(atomic_load(value) >= wanted);
}

static void what_is_played_is_recorded_bit_for_bit(void **state)
{
    (void)state;
    enum { FRAMES = 20000 };
    begin_wired();
    float *signal = malloc(sizeof *signal * 4 * FRAMES), *got = signal + 2 * FRAMES;
    uint64_t seed = 1;
    for (int n = 0; n < 2 * FRAMES; n++) signal[n] = noise(&seed);
    jack_wire_run(wire, true, signal, NULL, 0, got, FRAMES);
    assert_memory_equal(signal, got, sizeof *signal * 2 * FRAMES);
    await(&p.freewheel, 101); // on, and off again
    free(signal);
}

static void a_midi_message_comes_with_its_frame_before_its_block(void **state)
{
    (void)state;
    enum { FRAMES = 4096 };
    begin_wired();
    float *signal = calloc(4 * FRAMES, sizeof *signal);
    jack_wire_run(wire, true, signal, &(wire_event){1024 + 17, {0xb0, 7, 100}}, 1, signal + 2 * FRAMES, FRAMES);
    assert_int_equal(atomic_load(&p.n_midi), 7017); // controller 7, frame 17 of its block
    free(signal);
}

static void another_block_length_is_told_and_played(void **state)
{
    (void)state;
    begin_wired();
    await(&p.max_frames, 256);
    assert_int_equal(atomic_load(&p.n_formats), 0);
    jack_wire_set_block(wire, 1024);
    await(&p.max_frames, 1024);
    assert_int_equal(atomic_load(&p.n_formats), 1);
    audio_host_stats stats;
    jack_host_type.stats(host, &stats);
    assert_int_equal(stats.block_frames, 1024);
    assert_true(stats.rate_hz == 48000);
    jack_wire_set_block(wire, 256);
}

/// Clients are told of latencies in their own time: wait for these, half a minute at most.
static void await_latency(void (*ask)(jack_wire *, int *, int *), int wanted_min, int wanted_max)
{
    int min = -1, max = -1;
    for (int k = 0; k < 3000; k++) {
        ask(wire, &min, &max);
        if (min == wanted_min && max == wanted_max) return;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    fail_msg("latency %d..%d, want %d..%d", min, max, wanted_min, wanted_max);
}

static void latency_is_told_as_a_range_in_both_directions(void **state)
{
    (void)state;
    begin_wired();
    atomic_store(&p.latency_frames, 100);
    jack_host_type.latency_changed(host);
    await_latency(jack_wire_latency, 100, 100);
    await_latency(jack_wire_playback_latency, 100, 100);
    atomic_store(&p.latency_frames, 333);
    jack_host_type.latency_changed(host);
    await_latency(jack_wire_latency, 333, 333);
    // a second way around the host: the recorder now hears both 0 and 333 frames late
    assert_false(jack_wire_connect(wire, "player:port_1", "recorder:port_1"));
    jack_host_type.latency_changed(host);
    await_latency(jack_wire_latency, 0, 333);
}

static void ports_are_connected_by_pattern_and_named_after_the_preset(void **state)
{
    (void)state;
    if (!server.pid) jack_server_start(&server, 256);
    const char *patterns[] = {"player:port_[12]", "recorder:"};
    wire = jack_wire_open(&server);
    audio_host_config config = config_of_probe();
    config.connect = patterns, config.n_connect = 2;
    begin(&config);
    assert_true(jack_wire_connect(wire, "player:port_2", "passes:in_2"));
    assert_true(jack_wire_connect(wire, "passes:out_1", "recorder:port_1"));
    jack_host_type.label(host, "voice");
    assert_true(jack_wire_has_port(wire, "passes:voice in_1"));
    jack_host_type.label(host, "hall");
    assert_true(jack_wire_has_port(wire, "passes:hall out_2"));
    assert_false(jack_wire_has_port(wire, "passes:voice in_1"));
    close_host();
    config.connect = NULL, config.n_connect = 0, config.auto_connect = true;
    begin(&config);
    assert_true(jack_wire_connect(wire, "system:capture_1", "passes:in_1"));
    assert_true(jack_wire_connect(wire, "passes:out_2", "system:playback_2"));
    close_host();
}

static void refusals_say_what_is_missing(void **state)
{
    (void)state;
    if (!server.pid) jack_server_start(&server, 256);
    const char *pattern = "nobody:";
    audio_host_config config = config_of_probe();
    config.connect = &pattern, config.n_connect = 1;
    assert_ok(jack_host_type.open(&config, &host));
    assert_fails(jack_host_type.start(host), WT_ERR_NOT_FOUND,
                 "jack: no port matches 'nobody:'; `jack_lsp` lists those there are");
    jack_host_type.close(host);
    config = config_of_probe();
    config.rate_hz = 44100;
    assert_fails(jack_host_type.open(&config, &host), WT_ERR_UNSUPPORTED,
                 "jack: the server runs at 48000 Hz, want 44100; its rate is set when it starts");
    assert_null(host);
    config = config_of_probe();
    config.channels = 65;
    assert_fails(jack_host_type.open(&config, &host), WT_ERR_BAD_ARG, "jack: 65 channels in, 65 out, want 1..64");
    config = config_of_probe();
    config.device = "wt-nobody";
    assert_fails(jack_host_type.open(&config, &host), WT_ERR_UNSUPPORTED,
                 "jack: no server 'wt-nobody' is running, want one: start jackd or PipeWire");
}

static void the_transport_is_followed(void **state)
{
    (void)state;
    begin_wired();
    jack_wire_transport(wire, 90);
    await(&p.beats, 3);
    for (int k = 0; k < 30000 && !atomic_load(&p.rolling); k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(atomic_load(&p.rolling));
    assert_true(atomic_load(&p.bpm) == 90);
    jack_wire_transport(wire, 0);
}

static void a_client_that_sleeps_makes_an_xrun_that_is_counted(void **state)
{
    (void)state;
    begin_wired();
    await(&p.n_blocks, 2);
    jack_wire_oversleep(wire, 200); // 37 periods: late on any machine
    await(&p.n_xruns, 1);
    audio_host_stats stats;
    jack_host_type.stats(host, &stats);
    assert_true(stats.n_xruns >= 1);
}

static void note_processors(void *user, const float *const *in, float *const *out, int n_frames)
{
    static cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) atomic_store(&n_processors, CPU_COUNT(&set));
    atomic_store(&first_processor, -1);
    for (int cpu = CPU_SETSIZE; cpu-- > 0;)
        if (CPU_ISSET((size_t)cpu, &set)) atomic_store(&first_processor, cpu);
    process(user, in, out, n_frames);
}

static void the_callback_has_the_processor_that_was_chosen(void **state)
{
    (void)state;
    if (!server.pid) jack_server_start(&server, 256);
    audio_host_config config = config_of_probe();
    config.callbacks.process = note_processors;
    config.processor.chosen = true;
    config.processor.cpu = sched_getcpu();
    CPU_SET((size_t)config.processor.cpu, &config.processor.own);
    begin(&config);
    await(&p.n_blocks, 1);
    const int n = atomic_load(&p.n_blocks);
    await(&p.n_blocks, n + 2); // it may have been in one when it was placed
    assert_int_equal(atomic_load(&n_processors), 1);
    assert_int_equal(atomic_load(&first_processor), config.processor.cpu);
}

static void the_end_of_the_server_is_told_once(void **state)
{
    (void)state;
    if (!server.pid) jack_server_start(&server, 256);
    audio_host_config config = config_of_probe();
    begin(&config);
    await(&p.n_blocks, 1);
    jack_server_kill(&server);
    await(&p.n_lost, 1);
    assert_non_null(strstr(p.why, "jack: the server ended the connection: "));
    audio_host_stats stats;
    jack_host_type.stats(host, &stats);
    assert_false(stats.running);
    jack_host_type.latency_changed(host); // nothing to tell, and no harm
    jack_host_type.label(host, "voice");
    close_host();
    assert_int_equal(atomic_load(&p.n_lost), 1);
}

static int end_server(void **state)
{
    (void)state;
    jack_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_played_is_recorded_bit_for_bit, end),
        cmocka_unit_test_teardown(a_midi_message_comes_with_its_frame_before_its_block, end),
        cmocka_unit_test_teardown(another_block_length_is_told_and_played, end),
        cmocka_unit_test_teardown(latency_is_told_as_a_range_in_both_directions, end),
        cmocka_unit_test_teardown(ports_are_connected_by_pattern_and_named_after_the_preset, end),
        cmocka_unit_test_teardown(refusals_say_what_is_missing, end),
        cmocka_unit_test_teardown(the_transport_is_followed, end),
        cmocka_unit_test_teardown(a_client_that_sleeps_makes_an_xrun_that_is_counted, end),
        cmocka_unit_test_teardown(the_callback_has_the_processor_that_was_chosen, end),
        cmocka_unit_test_teardown(the_end_of_the_server_is_told_once, end),
    };
    return cmocka_run_group_tests_name("jack", tests, NULL, end_server);
}

#else

int main(void)
{
    print_message("skipped: this build has no JACK\n");
    return 0;
}

#endif
