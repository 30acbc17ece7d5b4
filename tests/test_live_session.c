#include "support/live_session_check.h"

#include "../hosts/jack_api.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <warptone/device.h>
#include <warptone/node.h>

// A whole live session on a server of jackd's dummy driver: what comes out is compared with the offline chain. Content
// is compared in freewheel mode, and never time.

#ifdef WT_HAVE_JACK

static void a_chain_sounds_as_it_does_offline(void **state)
{
    (void)state;
    // Five seconds of silence: by then it no longer matters when the session began (dynamics have settled). 100 dB:
    // what is left of that; the same code runs on the same blocks.
    enum { SILENCE = 5 * RATE, FRAMES = 6 * RATE };
    need_server();
    const live_session_config config = config_of("voice-clean");
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = signal_of(SILENCE, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES);
    jack_wire_through(wire, "session");
    jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
    float *wanted = offline("voice-clean", x, FRAMES);
    for (int c = 0; c < 2; c++) assert_snr_db(wanted + c * FRAMES + SILENCE, y + c * FRAMES + SILENCE, RATE, 100);
    const live_session_stats s = stats_of(session);
    assert_int_equal(s.live.n_misses, 0);
    assert_true(s.live.n_frames >= FRAMES);
    assert_int_equal(s.live.block_frames, BLOCK);
    free(x), free(y), free(wanted);
    jack_wire_close(wire);
    live_session_close(session);
}

static void on_a_gpu_it_sounds_the_same(void **state)
{
    (void)state;
    enum { SILENCE = 5 * RATE, FRAMES = 6 * RATE };
    wt_device_info gpu;
    if (wt_device_query(0, &gpu)) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    need_server();
    live_session_config config = config_of("voice-clean");
    config.backend = "cuda";
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = signal_of(SILENCE, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES);
    jack_wire_through(wire, "session");
    jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
    const live_session_stats s = stats_of(session);
    print_message("path %d, %llu blocks, %llu missed, round trip p50 %.1f max %.1f us\n", (int)s.live.path,
                  (unsigned long long)s.live.n_blocks, (unsigned long long)s.live.n_misses,
                  (double)s.live.round_trip_ns.p50 * 1e-3, (double)s.live.round_trip_ns.max * 1e-3);
    float *wanted = offline("voice-clean", x, FRAMES);
    for (int c = 0; c < 2; c++) // 90 dB: sums in another order, as test_backends has it
        assert_snr_db(wanted + c * FRAMES + SILENCE, y + c * FRAMES + SILENCE, RATE, 90);
    free(x), free(y), free(wanted);
    jack_wire_close(wire);
    live_session_close(session);
}

static void another_block_length_is_taken_up_while_it_plays(void **state)
{
    enum { SILENCE = RATE, FRAMES = 2 * RATE };
    need_server();
    const char *path = write_preset(state, "low-cut.yaml", "  - {node: biquad, shape: highpass, frequency_hz: 500}\n");
    const live_session_config config = config_of(path);
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = signal_of(SILENCE, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES), *wanted = offline(path, x, FRAMES);
    static const int blocks[] = {64, 2048, BLOCK}; // below and above what the session has room for
    for (int k = 0; k < 3; k++) {
        jack_wire_set_block(wire, blocks[k]);
        await(session, s.live.block_frames == blocks[k]);
        jack_wire_through(wire, "session");
        jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
        assert_snr_db(wanted + SILENCE, y + SILENCE, RATE, 100);
    }
    free(x), free(y), free(wanted);
    jack_wire_close(wire);
    live_session_close(session);
}

static void copies_of_a_chain_have_channels_of_their_own(void **state)
{
    enum { SILENCE = RATE, FRAMES = 2 * RATE };
    need_server();
    const char *path = write_preset(state, "copies.yaml", "  - {node: biquad, shape: highpass, frequency_hz: 500}\n");
    live_session_config config = config_of(path);
    config.host.channels = 1;
    config.n_streams = 2;
    config.n_workers = 1;
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = signal_of(SILENCE, FRAMES), *y = malloc(sizeof *y * 2 * FRAMES), *wanted = offline(path, x, FRAMES);
    jack_wire_through(wire, "session");
    jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
    for (int c = 0; c < 2; c++) assert_snr_db(wanted + c * FRAMES + SILENCE, y + c * FRAMES + SILENCE, RATE, 100);
    free(x), free(y), free(wanted);
    jack_wire_close(wire);
    live_session_close(session);
    live_session *none;
    config.n_streams = 65;
    assert_fails(live_session_open(&config, &none), WT_ERR_BAD_ARG, "live: 65 channels in, 65 out, want at most 64");
}

/// How many of this process's files are the one that keeps processors awake.
static int n_awake_files(void)
{
    char link[64], path[64];
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, path, sizeof path - 1);
        if (length < 0) continue;
        path[length] = 0;
        n += !strcmp(path, "/dev/cpu_dma_latency");
    }
    return n;
}

static void processors_stay_awake_as_long_as_the_session(void **state)
{
    need_server();
    live_session_config config = config_of(write_preset(state, "awake.yaml", "  - {node: gain, gain_db: 0}\n"));
    config.awake = true;
    live_session *session;
    if (live_session_open(&config, &session)) {
        assert_non_null(strstr(wt_last_error(), "to keep processors awake put"));
        return;
    }
    assert_int_equal(n_awake_files(), 1);
    live_session_close(session);
    assert_int_equal(n_awake_files(), 0);
}

static void two_sessions_play_one_after_the_other(void **state)
{
    need_server();
    const char *half = write_preset(state, "half.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    live_session_config config = config_of(half);
    live_session *first = started(&config);
    config.host.client_name = "second";
    live_session *second = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_between(wire, "player", "session");
    jack_wire_between(wire, "session", "second");
    jack_wire_between(wire, "second", "recorder");
    assert_float_equal(gain_of(wire), 0.25, 1e-4);
    jack_wire_close(wire);
    live_session_close(second);
    live_session_close(first);
}

// ---- a node that sleeps

static void (*gain_process)(const struct wt_node_io *io, const void *plan, const void *coeffs, void *state);
static atomic_int nap_ms;

static void sleep_and_process(const struct wt_node_io *io, const void *plan, const void *coeffs, void *state)
{
    const int ms = atomic_exchange(&nap_ms, 0);
    if (ms) pause_ms(ms);
    gain_process(io, plan, coeffs, state);
}

/// From here on the gain of this process sleeps when it is told to. Node types cannot be registered, and lie in memory
/// that is not written: so that is permitted for the moment.
static void replace_gain(void)
{
    wt_node_type *gain = (wt_node_type *)wt_node_type_find("gain");
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)&gain->process / page * page;
    const size_t bytes = (uintptr_t)(&gain->process + 1) - begin;
    assert_int_equal(mprotect((void *)begin, bytes, PROT_READ | PROT_WRITE), 0);
    gain_process = gain->process;
    gain->process = sleep_and_process;
    assert_int_equal(mprotect((void *)begin, bytes, PROT_READ), 0);
}

/// The session's count, another client's, and the lines that the server printed.
typedef struct xruns {
    int session, client, printed;
} xruns;

static atomic_int n_client_xruns;

static int count_xrun(void *user)
{
    (void)user;
    atomic_fetch_add(&n_client_xruns, 1);
    return 0;
}

static int do_nothing(jack_nframes_t n_frames, void *user)
{
    (void)n_frames, (void)user;
    return 0;
}

static jack_client_t *open_counter(const jack_api *jack)
{
    jack_client_t *client = jack->client_open("counter", JackNoStartServer | JackServerName, NULL, live_server.name);
    assert_non_null(client);
    jack->set_process_callback(client, do_nothing, NULL);
    jack->set_xrun_callback(client, count_xrun, NULL);
    assert_int_equal(jack->activate(client), 0);
    return client;
}

static xruns xruns_of(live_session *session)
{
    return (xruns){(int)stats_of(session).host.n_xruns, atomic_load(&n_client_xruns),
                   jack_server_n_printed(&live_server, "XRun")};
}

/// Once no count has moved for a while: each of the server's clients is told in its turn.
static xruns settled(live_session *session)
{
    xruns before = xruns_of(session), now = before;
    for (int tries = 0, still = 0; tries < 1000 && still < 10; tries++) {
        pause_ms(10);
        now = xruns_of(session);
        still = memcmp(&now, &before, sizeof now) ? 0 : still + 1;
        before = now;
    }
    return now;
}

static void a_node_that_sleeps_makes_an_xrun_that_all_count_alike(void **state)
{
    need_server();
    const jack_api *jack;
    assert_ok(jack_api_open(&jack));
    replace_gain();
    const live_session_config config = config_of(write_preset(state, "sleeps.yaml", "  - {node: gain}\n"));
    live_session *session = started(&config);
    jack_client_t *counter = open_counter(jack);
    await(session, s.live.n_blocks > 2);
    const xruns first = settled(session);
    atomic_store(&nap_ms, 300); // 56 periods: late on any machine
    await(session, (int)s.host.n_xruns > first.session);
    const xruns last = settled(session);
    assert_true(last.session > first.session);
    assert_int_equal(last.client - first.client, last.session - first.session);
    assert_int_equal(last.printed - first.printed, last.session - first.session);
    assert_true(stats_of(session).live.process_ns.max >= 300000000); // and whose it was is told
    jack->client_close(counter);
    live_session_close(session);
}

static void the_latency_that_is_told_is_the_one_measured(void **state)
{
    enum { FRAMES = 8192 };
    need_server();
    const char *late = write_preset(state, "late.yaml", "  - {node: limiter, lookahead_ms: 3}\n");
    const char *prompt = write_preset(state, "prompt.yaml", "  - {node: gain}\n");
    const live_session_config config = config_of(late);
    live_session *session = started(&config);
    jack_wire *wire = jack_wire_open(&live_server);
    float *x = calloc(4 * FRAMES, sizeof *x), *y = x + 2 * FRAMES;
    jack_wire_through(wire, "session");
    for (int round = 0; round < 2; round++) {
        if (round) assert_ok(live_session_load(session, prompt));
        const int wanted = stats_of(session).live.latency_frames;
        int min = -1, max = -1, loudest = 0;
        for (int k = 0; k < 3000 && max != wanted; k++) {
            pause_ms(10);
            jack_wire_latency(wire, &min, &max);
        }
        x[1000] = 0.1f;
        jack_wire_run(wire, true, x, NULL, 0, y, FRAMES);
        for (int n = 0; n < FRAMES; n++)
            if (fabsf(y[n]) > fabsf(y[loudest])) loudest = n;
        assert_int_equal(loudest - 1000, max);
        assert_int_equal(min, max);
        assert_true(round ? max == 0 : max > 100);
    }
    free(x);
    jack_wire_close(wire);
    live_session_close(session);
}

// ---- the server goes

static void without_a_server_the_session_ends_with_a_sentence(void **state)
{
    need_server();
    const char *half = write_preset(state, "half.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    const live_session_config config = config_of(half);
    live_session *session = started(&config);
    const char *why = "";
    await(session, s.live.n_blocks > 0);
    jack_server_kill(&live_server);
    await(session, live_session_ended(session, &why));
    assert_non_null(strstr(why, "jack: the server ended the connection"));
    assert_false(stats_of(session).host.running);
    live_session_close(session);
    jack_server_restart(&live_server);
}

static void a_session_that_waits_plays_on_when_the_server_comes_back(void **state)
{
    need_server();
    const char *half = write_preset(state, "half.yaml", "  - {node: gain, gain_db: -6.0205999}\n");
    live_session_config config = config_of(half);
    config.wait = true;
    live_session *session = started(&config);
    await(session, s.live.n_blocks > 0);
    jack_server_kill(&live_server);
    await(session, !s.host.running);
    jack_server_restart(&live_server);
    await(session, s.n_reconnects == 1 && s.host.running);
    assert_false(live_session_ended(session, NULL));
    jack_wire *wire = jack_wire_open(&live_server);
    jack_wire_through(wire, "session");
    assert_float_equal(gain_of(wire), 0.5, 1e-4);
    jack_wire_close(wire);
    live_session_close(session);
}

static void refusals_come_before_anything_is_touched(void **state)
{
    need_server();
    live_session *session;
    live_session_config config = config_of("voice-claen");
    assert_fails(live_session_open(&config, &session), WT_ERR_NOT_FOUND,
                 "no preset 'voice-claen'; the nearest is 'voice-clean'");
    assert_null(session);
    config = config_of(write_preset(state, "one.yaml", "  - {node: gain}\nchannels: 1\n"));
    config.host.channels = 2;
    assert_int_equal(live_session_open(&config, &session), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "takes 1 channel, the input has 2"));
    config = config_of("voice-clean");
    config.host.device = "wt-nobody";
    assert_fails(live_session_open(&config, &session), WT_ERR_UNSUPPORTED,
                 "jack: no server 'wt-nobody' is running, want one: start jackd or PipeWire");
    config = config_of("voice-clean");
    config.backend = "gpu";
    assert_fails(live_session_open(&config, &session), WT_ERR_BAD_ARG, "--backend is \"gpu\", want auto, cuda or cpu");
    config = config_of("voice-clean");
    config.record_out = "/nowhere/take.wav";
    assert_ok(live_session_open(&config, &session));
    assert_int_equal(live_session_start(session), WT_ERR_FILE);
    live_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_sounds_as_it_does_offline),
        cmocka_unit_test(on_a_gpu_it_sounds_the_same),
        cmocka_unit_test(another_block_length_is_taken_up_while_it_plays),
        cmocka_unit_test(copies_of_a_chain_have_channels_of_their_own),
        cmocka_unit_test(processors_stay_awake_as_long_as_the_session),
        cmocka_unit_test(two_sessions_play_one_after_the_other),
        cmocka_unit_test(a_node_that_sleeps_makes_an_xrun_that_all_count_alike),
        cmocka_unit_test(the_latency_that_is_told_is_the_one_measured),
        cmocka_unit_test(without_a_server_the_session_ends_with_a_sentence),
        cmocka_unit_test(a_session_that_waits_plays_on_when_the_server_comes_back),
        cmocka_unit_test(refusals_come_before_anything_is_touched),
    };
    return cmocka_run_group_tests_name("live_session", tests, live_check_begin, live_check_end);
}

#else

int main(void)
{
    print_message("skipped: this build has no JACK\n");
    return 0;
}

#endif
