#include "support/testing.h"
#include "support/jack_server.h"
#include "support/jack_wire.h"
#include "../hosts/audio_host.h"
#include "../hosts/jack_api.h"
#include "../hosts/optional_library.h"
#include "../hosts/portaudio_api.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// The PortAudio host through PortAudio's JACK interface on jackd's dummy driver, whose clients are its devices: what a
// player plays goes through our process to a recorder. What is compared is content, never time.

#if defined(WT_HAVE_JACK) && defined(WT_HAVE_PORTAUDIO)

enum { FRAMES = 6000 };

static jack_server server;
static audio_host *host;
static jack_wire *wire;

typedef struct probe {
    atomic_int n_calls, min_frames, max_frames, n_lost, n_xruns;
    atomic_int only_processor; ///< that the callback's thread may use; -1 = there are several
    int channels, out_channels;
    char why[256];
} probe;

// Output c is input c doubled.
static void process(void *user, const float *const *in, float *const *out, int n_frames)
{
    probe *p = user;
    for (int c = 0; c < p->out_channels; c++)
        for (int n = 0; n < n_frames; n++) out[c][n] = 2 * in[c % p->channels][n];
    if (n_frames > atomic_load(&p->max_frames)) atomic_store(&p->max_frames, n_frames);
    if (n_frames < atomic_load(&p->min_frames)) atomic_store(&p->min_frames, n_frames);
    cpu_set_t set;
    if (!pthread_getaffinity_np(pthread_self(), sizeof set, &set))
        atomic_store(&p->only_processor, CPU_COUNT(&set) == 1 ? sched_getcpu() : -1);
    atomic_fetch_add(&p->n_calls, 1);
}

static void on_xrun(void *user) { atomic_fetch_add(&((probe *)user)->n_xruns, 1); }

static void on_lost(void *user, const char *why)
{
    probe *p = user;
    snprintf(p->why, sizeof p->why, "%s", why);
    atomic_fetch_add(&p->n_lost, 1);
}

static audio_host_config config_of(probe *p, int channels, int out_channels)
{
    *p = (probe){.channels = channels, .out_channels = out_channels, .min_frames = 1 << 30, .only_processor = -1};
    return (audio_host_config){.device = "recorder",
                               .input_device = "player",
                               .channels = channels,
                               .out_channels = out_channels,
                               .callbacks = {.user = p, .process = process, .xrun = on_xrun, .lost = on_lost}};
}

static void need_server(void)
{
    if (server.pid) return;
    jack_server_start(&server, 256);
    setenv("JACK_DEFAULT_SERVER", server.name, 1);
    portaudio_device *devices;
    int n;
    if (portaudio_devices(&devices, &n) == WT_ERR_NO_LIBRARY) {
        print_message("skipped: %s\n", wt_last_error());
        jack_server_stop(&server);
        skip();
    }
    free(devices);
}

static void await(atomic_int *value, int wanted)
{
    for (int k = 0; k < 30000 && atomic_load(value) < wanted; k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(atomic_load(value) >= wanted);
}

/// Open it as `wanted` says, WT_OK or a refusal with that sentence. Servers of a machine share one registry: while
/// another starts or ends, this one may refuse PortAudio's client, and then PortAudio knows no JACK. So it is asked
/// again.
static void assert_opens(const audio_host_config *config, wt_status wanted, const char *sentence)
{
    wt_status got = WT_OK;
    for (int k = 0; k < 20; k++) {
        if (k) nanosleep(&(struct timespec){0, 200000000}, NULL);
        got = portaudio_host_type.open(config, &host);
        if (got == wanted && (!got || strstr(wt_last_error(), sentence))) {
            if (got) assert_null(host);
            return;
        }
        portaudio_host_type.close(host);
        host = NULL;
    }
    fail_msg("status %d, \"%s\", want %d, \"%s\"", (int)got, got ? wt_last_error() : "", (int)wanted, sentence);
}

/// Some calls in: the server takes new connections into its order within a cycle or two.
static void begin(const audio_host_config *config)
{
    probe *p = config->callbacks.user;
    assert_opens(config, WT_OK, "");
    assert_ok(portaudio_host_type.start(host));
    await(&p->n_calls, 8);
}

static void end(void)
{
    if (host) portaudio_host_type.stop(host);
    portaudio_host_type.close(host);
    host = NULL;
}

/// After each test, also one that failed.
static int end_all(void **state)
{
    (void)state;
    end();
    jack_wire_close(wire);
    wire = NULL;
    return 0;
}

static float signal[2 * FRAMES], got[2 * FRAMES];

static void play(void)
{
    uint64_t seed = 1;
    for (int n = 0; n < 2 * FRAMES; n++) signal[n] = 0.25f * noise(&seed);
    memset(got, 0, sizeof got);
    jack_wire_run(wire, true, signal, NULL, 0, got, FRAMES);
}

/// Output `c` of the recorder is twice input `from`, `latency` frames later.
static void check(int c, int from, int latency)
{
    for (int n = latency; n < FRAMES; n++)
        if (got[c * FRAMES + n] != 2 * signal[from * FRAMES + n - latency])
            fail_msg("channel %d, frame %d: %.9g, want %.9g", c, n, (double)got[c * FRAMES + n],
                     (double)(2 * signal[from * FRAMES + n - latency]));
}

/// How many of the wire's two clients are listed as they should be.
static int count_listed(void)
{
    portaudio_device *devices;
    int n, n_found = 0;
    assert_ok(portaudio_devices(&devices, &n));
    for (int k = 0; k < n; k++) {
        assert_int_equal(devices[k].number, k);
        if (!strcmp(devices[k].name, "player"))
            n_found += devices[k].in_channels == 2 && devices[k].out_channels == 0 && devices[k].rate_hz == 48000;
        if (!strcmp(devices[k].name, "recorder"))
            n_found += devices[k].in_channels == 0 && devices[k].out_channels == 2 && strstr(devices[k].api, "JACK");
    }
    free(devices);
    return n_found;
}

static void devices_are_listed(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    int n_found = 0;
    for (int k = 0; k < 20 && n_found != 2; k++) { // see assert_opens
        if (k) nanosleep(&(struct timespec){0, 200000000}, NULL);
        n_found = count_listed();
    }
    assert_int_equal(n_found, 2);
}

static void blocks_of_the_device_pass_through_bit_for_bit(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    config.no_adapter = true;
    begin(&config);
    play();
    check(0, 0, 0), check(1, 1, 0);
    assert_int_equal(atomic_load(&p.max_frames), 256);
    audio_host_stats stats;
    portaudio_host_type.stats(host, &stats);
    assert_true(stats.running);
    assert_true(stats.rate_hz == 48000);
    assert_int_equal(stats.block_frames, 0);
    assert_int_equal(stats.block_latency_frames, 0);
    end();
}

static void blocks_have_one_length_and_the_latency_that_is_told(void **state)
{
    (void)state;
    need_server();
    static const struct {
        int wanted, block, latency;
    } cases[] = {{0, 64, 0}, // which is the standard
                 {64, 64, 0},
                 {100, 100, 96}, // 256 frames come: 100 - gcd(100, 256), 480 - gcd(480, 256)
                 {480, 480, 448}};
    wire = jack_wire_open(&server);
    for (int k = 0; k < 4; k++) {
        static probe p;
        audio_host_config config = config_of(&p, 2, 2);
        config.block_frames = cases[k].wanted;
        begin(&config);
        play();
        check(0, 0, cases[k].latency), check(1, 1, cases[k].latency);
        assert_int_equal(atomic_load(&p.min_frames), cases[k].block);
        assert_int_equal(atomic_load(&p.max_frames), cases[k].block);
        audio_host_stats stats;
        portaudio_host_type.stats(host, &stats);
        assert_int_equal(stats.block_frames, cases[k].block);
        assert_int_equal(stats.block_latency_frames, cases[k].latency);
        end();
    }
}

static void one_output_is_heard_on_both_sides(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 1);
    config.rate_hz = 44100; // which the device cannot
    begin(&config);
    play();
    check(0, 0, 0), check(1, 0, 0);
    audio_host_stats stats;
    portaudio_host_type.stats(host, &stats);
    assert_true(stats.rate_hz == 48000);
    end();
}

typedef struct mono_client {
    const jack_api *jack;
    jack_client_t *client;
    jack_port_t *out;
} mono_client;

static int hum(jack_nframes_t n_frames, void *user)
{
    const mono_client *m = user;
    float *out = m->jack->port_get_buffer(m->out, n_frames);
    for (jack_nframes_t n = 0; n < n_frames; n++) out[n] = 0.25f;
    return 0;
}

static void one_input_goes_to_all_channels(void **state)
{
    (void)state;
    need_server();
    mono_client m;
    assert_ok(jack_api_open(&m.jack));
    m.client = m.jack->client_open("one", JackNoStartServer | JackServerName, NULL, server.name);
    assert_non_null(m.client);
    m.out = m.jack->port_register(m.client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    assert_non_null(m.jack->port_register(m.client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0));
    m.jack->set_process_callback(m.client, hum, &m);
    assert_int_equal(m.jack->activate(m.client), 0);
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    config.input_device = "one";
    (void)jack_wire_connect(wire, "player:port_1", "one:in"); // the player comes before the recorder in each cycle
    begin(&config);
    play();
    for (int n = 0; n < 2 * FRAMES; n++)
        if (got[n] != 0.5f) fail_msg("frame %d: %g, want 0.5", n, (double)got[n]);
    end();
    config.device = "one", config.input_device = "player";
    assert_opens(&config, WT_ERR_UNSUPPORTED, "portaudio: output 'one' has 1 channel, want 2");
    jack_wire_close(wire);
    wire = NULL;
    m.jack->client_close(m.client);
}

static void a_device_is_found_by_part_of_its_name_and_by_number(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    portaudio_device *devices;
    int n;
    char number[16] = "";
    assert_ok(portaudio_devices(&devices, &n));
    for (int k = 0; k < n; k++)
        if (!strcmp(devices[k].name, "recorder")) snprintf(number, sizeof number, "%d", k);
    free(devices);
    const char *const names[] = {"RECORD", "kit: recorder", number};
    for (int k = 0; k < 3; k++) {
        static probe p;
        audio_host_config config = config_of(&p, 2, 2);
        config.device = names[k];
        assert_opens(&config, WT_OK, "");
        end();
    }
}

static void refusals_say_what_is_there(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    config.device = "recoder";
    assert_opens(&config, WT_ERR_NOT_FOUND,
                 "portaudio: no output device 'recoder'; the nearest is 'recorder' (`warptone info --audio` lists "
                 "all)");
    assert_null(host);
    config.device = "9999";
    assert_opens(&config, WT_ERR_NOT_FOUND, "portaudio: no device 9999, there are ");
    config = config_of(&p, 2, 4);
    assert_opens(&config, WT_ERR_UNSUPPORTED, "portaudio: output 'recorder' has 2 channels, want 4");
    config = config_of(&p, 3, 2);
    assert_opens(&config, WT_ERR_UNSUPPORTED, "portaudio: input 'player' has 2 channels, want 3");
    config = config_of(&p, 65, 2);
    assert_opens(&config, WT_ERR_BAD_ARG, "portaudio: 65 channels in, 2 out, want 1..64");
    config = config_of(&p, 2, 2);
    config.input_device = "recorder";
    assert_opens(&config, WT_ERR_NOT_FOUND, "portaudio: no input device 'recorder'; the nearest is ");
    portaudio_host_type.close(NULL);
}

// ALSA and JACK print pages about what is not there; the terminal belongs to the program.
static void nothing_is_printed(void **state)
{
    (void)state;
    need_server();
    char path[] = "/tmp/wt-quiet-XXXXXX";
    struct stat facts;
    portaudio_device *devices;
    int n;
    const int file = mkstemp(path), before = dup(STDERR_FILENO);
    assert_true(file >= 0 && before >= 0);
    dup2(file, STDERR_FILENO);
    wt_status status = portaudio_devices(&devices, &n);
    const bool measured = fstat(file, &facts) == 0;
    quiet_begin();
    (void)!write(STDERR_FILENO, "lost", 4);
    quiet_begin(), quiet_end(); // nests
    (void)!write(STDERR_FILENO, "lost", 4);
    quiet_end();
    (void)!write(STDERR_FILENO, "kept", 4);
    char text[16] = "";
    (void)!pread(file, text, sizeof text - 1, facts.st_size);
    dup2(before, STDERR_FILENO);
    close(before), close(file);
    unlink(path);
    assert_ok(status);
    free(devices);
    assert_true(measured);
    assert_int_equal(facts.st_size, 0);
    assert_string_equal(text, "kept");
}

static void it_starts_again_after_a_stop(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    begin(&config);
    portaudio_host_type.stop(host);
    const int n_calls = atomic_load(&p.n_calls);
    nanosleep(&(struct timespec){0, 50000000}, NULL); // ten periods, in which nothing may come
    assert_int_equal(atomic_load(&p.n_calls), n_calls);
    assert_ok(portaudio_host_type.start(host));
    await(&p.n_calls, n_calls + 2);
    end();
    assert_int_equal(atomic_load(&p.n_lost), 0);
}

static void the_callback_has_the_processor_that_was_chosen(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    cpu_set_t all;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) {
        print_message("skipped: there is one processor\n");
        skip();
    }
    int cpu = CPU_SETSIZE - 1; // the last one: the system gives the first oftener
    while (!CPU_ISSET((size_t)cpu, &all)) cpu--;
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    config.processor = (live_processor){.chosen = true, .cpu = cpu, .others = all};
    CPU_SET((size_t)cpu, &config.processor.own);
    begin(&config);
    for (int k = 0; k < 30000 && atomic_load(&p.only_processor) != cpu; k++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(atomic_load(&p.only_processor), cpu);
    end();
}

static void a_client_that_sleeps_sets_flags_that_are_counted(void **state)
{
    (void)state;
    need_server();
    wire = jack_wire_open(&server);
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    begin(&config);
    const int before = atomic_load(&p.n_xruns);
    jack_wire_oversleep(wire, 200); // 37 periods: late on any machine
    await(&p.n_xruns, before + 1);
    portaudio_host_type.stop(host);
    audio_host_stats stats;
    portaudio_host_type.stats(host, &stats);
    assert_int_equal(stats.n_xruns, atomic_load(&p.n_xruns));
    assert_true(stats.n_in_overflow + stats.n_in_underflow + stats.n_out_overflow + stats.n_out_underflow >=
                stats.n_xruns);
}

// The last test: PortAudio cannot leave a dead server.
static void the_end_of_the_device_is_told_once(void **state)
{
    (void)state;
    need_server();
    static probe p;
    audio_host_config config = config_of(&p, 2, 2);
    config.device = config.input_device = "system";
    begin(&config);
    jack_server_kill(&server);
    await(&p.n_lost, 1);
    assert_string_equal(p.why, "portaudio: device 'system' stopped: it or its server is gone");
    audio_host_stats stats;
    portaudio_host_type.stats(host, &stats);
    assert_false(stats.running);
    end(); // and does not wait for the dead
    assert_int_equal(atomic_load(&p.n_lost), 1);
    assert_opens(&config, WT_ERR_STATE,
                 "portaudio: its JACK server died, and it cannot open another in this process; the jack host can");
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
        cmocka_unit_test_teardown(devices_are_listed, end_all),
        cmocka_unit_test_teardown(blocks_of_the_device_pass_through_bit_for_bit, end_all),
        cmocka_unit_test_teardown(blocks_have_one_length_and_the_latency_that_is_told, end_all),
        cmocka_unit_test_teardown(one_output_is_heard_on_both_sides, end_all),
        cmocka_unit_test_teardown(one_input_goes_to_all_channels, end_all),
        cmocka_unit_test_teardown(a_device_is_found_by_part_of_its_name_and_by_number, end_all),
        cmocka_unit_test_teardown(refusals_say_what_is_there, end_all),
        cmocka_unit_test_teardown(nothing_is_printed, end_all),
        cmocka_unit_test_teardown(it_starts_again_after_a_stop, end_all),
        cmocka_unit_test_teardown(the_callback_has_the_processor_that_was_chosen, end_all),
        cmocka_unit_test_teardown(a_client_that_sleeps_sets_flags_that_are_counted, end_all),
        cmocka_unit_test_teardown(the_end_of_the_device_is_told_once, end_all),
    };
    return cmocka_run_group_tests_name("portaudio", tests, NULL, end_server);
}

#else

int main(void)
{
    print_message("skipped: this build lacks JACK or PortAudio\n");
    return 0;
}

#endif
