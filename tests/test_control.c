// The line protocol over real sockets on this machine, on a session without audio.
#include "control_fixture.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// ---- one line, without sockets

static char *ask(live_session *session, const char *text)
{
    static char out[65536], line[CONTROL_LINE_BYTES];
    control_caller caller = {.session = session, .out = {.bytes = out, .size = sizeof out}, .end = '\n'};
    snprintf(line, sizeof line, "%s", text);
    *out = 0;
    control_line(&caller, line, strlen(line));
    return out;
}

#define assert_answer(session, line, answer) assert_string_equal(ask(session, line), answer "\n")

static void commands_do_what_they_say(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    assert_answer(&s, "param_set gain gain_db -3.5", "resp 0");
    assert_answer(&s, "param_get gain/gain_db\r", "resp 0 -3.5");
    assert_answer(&s, "  param_set\tlow_cut/frequency_hz  120 ", "resp 0");
    assert_answer(&s, "param_get low_cut frequency_hz", "resp 0 120");
    assert_answer(&s, "param_set gain gain_db 1e9", "resp 0"); // held at its range
    assert_answer(&s, "param_get gain gain_db", "resp 0 24");
    assert_answer(&s, "bypass", "resp 0 0");
    assert_answer(&s, "bypass 1", "resp 0");
    assert_answer(&s, "bypass", "resp 0 1");
    assert_answer(&s, "bypass gain", "resp 0 0");
    assert_answer(&s, "bypass gain 1", "resp 0");
    assert_answer(&s, "bypass gain", "resp 0 1");
    assert_answer(&s, "param_get gain bypass", "resp 0 1");
    assert_answer(&s, "bypass gain 0", "resp 0");
    assert_answer(&s, "monitor", "resp 0 in 0.0 -6.0 -inf -inf out -6.0 -12.0 -6.0 -12.0");
    assert_answer(&s, "monitor gain gain_reduction_db", "resp 0 4.5");
    assert_answer(&s, "cpu_load", "resp 0 12.5000");
    assert_answer(&s, "max_cpu_load", "resp 0 13.5000");
    assert_answer(&s, "preset_load \"a \\\"b\\\" \\\\ c\"", "resp 0");
    assert_string_equal(s.preset, "a \"b\" \\ c");
    assert_answer(&s, "preset_save", "resp 0");
    assert_string_equal(s.saved, s.preset);
    assert_answer(&s, "preset_save /tmp/x.yaml", "resp 0");
    assert_string_equal(s.saved, "/tmp/x.yaml");
    assert_answer(&s, "midi_learn gain gain_db", "resp 0");
    assert_string_equal(s.map, "learn gain/gain_db");
    assert_answer(&s, "midi_learn gain gain_db -12 3", "resp 0");
    assert_string_equal(s.map, "learn gain/gain_db -12 3");
    assert_answer(&s, "midi_learn gain/gain_db -12", "resp -1 midi_learn: a minimum alone, want both ends");
    assert_answer(&s, "midi_map gain gain_db 0 7 -60 0", "resp 0");
    assert_string_equal(s.map, "map gain/gain_db 1 7 -60 0 linear");
    assert_answer(&s, "midi_map gain/gain_db any 127 -60 0 pick-up", "resp 0");
    assert_string_equal(s.map, "map gain/gain_db 0 127 -60 0 pick-up");
    assert_answer(&s, "midi_unmap gain gain_db", "resp 0");
    assert_string_equal(s.map, "unmap gain/gain_db");
    assert_answer(&s, "midi_map gain/gain_db 15 131 -60 0", "resp 0"); // mod-host's number of the pitch wheel
    assert_string_equal(s.map, "map gain/gain_db 16 131 -60 0 linear");
    assert_answer(&s, "list",
                  "resp 0 4\nlow_cut frequency_hz 120 10 20000 100 log Hz\n"
                  "gain gain_db 24 -60 24 0 linear dB\ngain balance 0 -1 1 0 linear -\n"
                  "gain bypass 0 0 1 0 linear -");
    assert_answer(&s, "help param_get", "resp 0 1\nparam_get NODE PARAM: its present value");
    assert_false(s.ended);
    assert_answer(&s, "quit", "resp 0");
    assert_true(s.ended);
    assert_string_equal(ask(&s, ""), "");
    assert_string_equal(ask(&s, " \t "), "");
}

static void what_is_wrong_is_said_in_one_line(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    assert_answer(&s, "param_sett gain gain_db 1",
                  "resp -1 no command is named \"param_sett\"; the nearest is param_set");
    assert_answer(&s, "param_set gain", "resp -1 param_set: 1 words after it, want: param_set NODE PARAM VALUE");
    assert_answer(&s, "param_set gain gain_db", "resp -1 param_set: 0 words after the parameter, want 1");
    assert_answer(&s, "param_get gain nothing", "resp -1 no parameter \"gain/nothing\"");
    assert_answer(&s, "param_set gain gain_db loud",
                  "resp -1 gain/gain_db is \"loud\", want a number in -3.4e+38..3.4e+38");
    assert_answer(&s, "param_set gain gain_db nan",
                  "resp -1 gain/gain_db is \"nan\", want a number in -3.4e+38..3.4e+38");
    assert_answer(&s, "bypass maybe", "resp -1 no parameter \"maybe/bypass\"");
    assert_answer(&s, "bypass maybe 1", "resp -1 no parameter \"maybe/bypass\"");
    assert_answer(&s, "bypass gain on", "resp -1 gain/bypass is \"on\", want a number in 0..1");
    assert_answer(&s, "bypass 2", "resp -1 bypass is \"2\", want a number in 0..1");
    assert_answer(&s, "bypass 0.5", "resp -1 bypass is \"0.5\", want a whole number");
    assert_answer(&s, "midi_map gain gain_db 16 7 0 1", "resp -1 midi_map: channel is \"16\", want a number in 0..15");
    assert_answer(&s, "midi_map gain gain_db 1 7 0",
                  "resp -1 midi_map: 3 words after the parameter, want 4 or one more");
    assert_answer(&s, "preset_load broken", "resp -1 broken.yaml:3:\\nno node is named \"x\"");
    assert_string_equal(s.preset, "voice");
    assert_answer(&s, "preset_load \"x", "resp -1 a quote has no end");
    assert_answer(&s, "a b c d e f g h i j k l m", "resp -1 the line has more than 12 words");
    assert_answer(&s, "param_get gain \x01", "resp -1 the line has byte 0x01, want text");
    assert_answer(&s, "subscribe all", "resp -1 subscribe: \"all\", want params, levels [SECONDS] or stats [SECONDS]");
    assert_answer(&s, "subscribe levels 0.001",
                  "resp -1 subscribe: interval is \"0.001\", want a number in 0.02..3600");
    assert_answer(&s, "stats xml", "resp -1 stats: \"xml\" is no format, want json");
    char line[CONTROL_LINE_BYTES];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    memcpy(line, "param_get ", 10);
    line[1000] = '/';
    assert_answer(&s, line, "resp -1 param_get: no parameter has so long a name");
}

// A client of mod-host numbers what we name.
static void a_number_stands_for_the_node_at_that_place(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    assert_answer(&s, "param_set 1 \"gain_db\" -3.5", "resp 0");
    assert_answer(&s, "param_get gain gain_db", "resp 0 -3.5");
    assert_answer(&s, "param_get 0/frequency_hz", "resp 0 80");
    assert_answer(&s, "bypass 1 1", "resp 0");
    assert_answer(&s, "bypass gain", "resp 0 1");
    assert_answer(&s, "monitor 1 gain_reduction_db", "resp 0 4.5");
    assert_answer(&s, "midi_map 1 gain_db 0 7 -60 0", "resp 0");
    assert_string_equal(s.map, "map gain/gain_db 1 7 -60 0 linear");
    assert_answer(&s, "param_get 2 gain_db", "resp -1 no parameter \"2/gain_db\"");
    assert_answer(&s, "param_get 1x gain_db", "resp -1 no parameter \"1x/gain_db\"");
    strcpy(s.params[0].node, "1"); // a node that is called so comes first
    assert_answer(&s, "param_get 1 frequency_hz", "resp 0 80");
    assert_answer(&s, "param_get 1 gain_db", "resp -1 no parameter \"1/gain_db\"");
}

// Its README at aee8aba.
static void every_command_of_mod_host_has_an_answer(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    static const char *const names[] = {
        "add", "remove", "activate", "preload", "preset_load", "preset_save", "preset_show", "connect",
        "connect_matching", "connect_safe", "disconnect", "disconnect_all", "disconnect_safe", "bypass", "param_set",
        "param_get", "param_monitor", "params_flush", "pre_run", "patch_set", "patch_get", "licensee", "monitor",
        "monitor_output", "monitor_output_off", "midi_learn", "midi_map", "midi_unmap", "monitor_audio_levels",
        "monitor_midi_control", "monitor_midi_program", "cc_map", "cc_unmap", "cc_value_set", "cv_map", "cv_unmap",
        "cpu_load", "max_cpu_load", "load", "save", "bundle_add", "bundle_remove", "feature_enable", "set_bpm",
        "set_bpb", "transport", "transport_sync", "output_data_ready", "multi_add", "multi_remove", "multi_activate",
        "multi_preload", "multi_bypass", "multi_param_set", "multi_params_flush", "multi_pre_run", "wait_audio_cycle",
        "help", "quit"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *answer = ask(&s, names[k]);
        if (strncmp(answer, "resp ", 5) || strstr(answer, "no command is named"))
            fail_msg("%s: %s", names[k], answer);
    }
    assert_answer(&s, "add http://x 0",
                  "resp -1 add is not here: the preset has the nodes: preset_load, or edit its file, which is watched");
    assert_answer(&s, "set_bpm 120", "resp -1 set_bpm is not here: JACK's transport is followed, never led");
    assert_answer(&s, "multi", "resp -1 no command is named \"multi\"; the nearest is quit"); // whole words
}

static void help_lists_every_command(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    static const char *const names[] = {"param_set", "param_get",  "bypass",      "monitor",     "midi_learn",
                                        "midi_map",  "midi_unmap", "preset_load", "preset_save", "cpu_load",
                                        "list",      "stats",      "subscribe",   "unsubscribe", "help",
                                        "close",     "quit",       "max_cpu_load"};
    const char *text = ask(&s, "help");
    int n_lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++) n_lines++;
    assert_int_equal(n_lines, 1 + (int)(sizeof names / sizeof *names));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) assert_non_null(strstr(text, names[k]));
}

static void stats_are_json(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    const char *text = ask(&s, "stats json");
    assert_memory_equal(text, "resp 0 {", 8);
    json_t *stats = json_loads(text + 7, 0, NULL);
    assert_non_null(stats);
    assert_string_equal(json_string_value(json_object_get(stats, "path")), "cpu");
    assert_int_equal(json_integer_value(json_object_get(stats, "latency_frames")), 96);
    assert_int_equal(json_integer_value(json_object_get(stats, "threads")), 512);
    assert_int_equal(json_integer_value(json_object_get(stats, "threads_wanted")), 512);
    assert_int_equal(json_integer_value(json_object_get(stats, "blocks")), 1000);
    assert_int_equal(json_integer_value(json_object_get(stats, "xruns")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(stats, "misses"), "late")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(stats, "misses"), "total")), 3);
    assert_true(json_real_value(json_object_get(json_object_get(stats, "process"), "p99_us")) == 150);
    json_decref(stats);
    strcpy(s.preset, "\xff.yaml"); // a file's name may be no UTF-8, which JSON must be
    stats = json_loads(ask(&s, "stats") + 7, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(stats, "preset")), "?.yaml");
    json_decref(stats);
}

// ---- sockets

static int connect_local(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int connect_tcp(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void put(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/// One line with its end, '\n' or NUL as given; "" when the other side closed.
static const char *take(int fd, char end)
{
    static char line[4096];
    size_t n = 0;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (n + 1 < sizeof line) {
        if (poll(&wait, 1, WAIT_MS) != 1) fail_msg("no answer");
        if (recv(fd, line + n, 1, 0) != 1) break;
        if (line[n++] == end) break;
    }
    line[n] = 0;
    return line;
}

static void a_local_client_is_answered(void **state)
{
    (void)state;
    fixture f;
    struct stat info;
    open_control(&f, NULL);
    assert_int_equal(stat(f.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_string_equal(control_socket_path(f.control), f.path);
    assert_int_equal(control_tcp_port(f.control), 0);
    int fd = connect_local(f.path);
    put(fd, "param_set gain gain_db 3\nparam_get gain ", 40); // a line in two pieces
    assert_string_equal(take(fd, '\n'), "resp 0\n");
    put(fd, "gain_db\n", 8);
    assert_string_equal(take(fd, '\n'), "resp 0 3\n");
    put(fd, "param_get gain gain_db", 23); // with its NUL, as mod-host's clients end a line
    assert_memory_equal(take(fd, 0), "resp 0 3", 9);
    put(fd, "close\nparam_set gain gain_db 9\n", 31);
    assert_string_equal(take(fd, '\n'), "resp 0\n");
    assert_string_equal(take(fd, '\n'), ""); // closed, and nothing after it was carried out
    assert_true(f.session.params[1].value == 3);
    close(fd);
    close_control(&f);
}

static void lines_that_are_none_are_refused_and_the_next_is_heard(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, NULL);
    int fd = connect_local(f.path);
    static char flood[3 * CONTROL_LINE_BYTES];
    memset(flood, 'y', sizeof flood);
    put(fd, flood, sizeof flood);
    put(fd, "\nbypass\n", 8);
    assert_string_equal(take(fd, '\n'), "resp -1 a line has more than 4095 bytes\n");
    assert_string_equal(take(fd, '\n'), "resp 0 0\n");
    put(fd, "\x7f\xff\x02\n", 4);
    assert_string_equal(take(fd, '\n'), "resp -1 the line has byte 0x7f, want text\n");
    memset(flood, 'y', CONTROL_LINE_BYTES);
    flood[CONTROL_LINE_BYTES - 1] = '\n'; // just fits
    put(fd, flood, CONTROL_LINE_BYTES);
    assert_memory_equal(take(fd, '\n'), "resp -1 no command", 18);
    put(fd, "bypass\n", 7);
    assert_string_equal(take(fd, '\n'), "resp 0 0\n");
    close(fd);
    close_control(&f);
}

static void subscribers_are_told(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, NULL);
    int watcher = connect_local(f.path), actor = connect_local(f.path);
    put(watcher, "subscribe params\n", 17);
    assert_string_equal(take(watcher, '\n'), "resp 0\n");
    put(actor, "param_set gain gain_db 3\n", 25);
    assert_string_equal(take(actor, '\n'), "resp 0\n");
    assert_string_equal(take(watcher, '\n'), "param_set gain gain_db 3\n");
    live_session_set_bypass(&f.session, true); // from this thread, as MIDI would
    assert_string_equal(take(watcher, '\n'), "bypass 1\n");
    assert_ok(live_session_load(&f.session, "other"));
    assert_string_equal(take(watcher, '\n'), "preset_load other\n");
    assert_ok(live_session_load(&f.session, "an \"a\"\\\n"));
    assert_string_equal(take(watcher, '\n'), "preset_load \"an \\\"a\\\"\\\\?\"\n");
    put(watcher, "unsubscribe\n", 12);
    assert_string_equal(take(watcher, '\n'), "resp 0\n");
    put(actor, "bypass 0\n", 9);
    assert_string_equal(take(actor, '\n'), "resp 0\n");
    put(watcher, "subscribe levels 0.02\n", 22);
    assert_string_equal(take(watcher, '\n'), "resp 0\n"); // and nothing of the bypass before it
    for (int k = 0; k < 3; k++)
        assert_string_equal(take(watcher, '\n'), "levels in 0.0 -6.0 -inf -inf out -6.0 -12.0 -6.0 -12.0\n");
    close(watcher);
    close(actor);
    close_control(&f);
}

static void who_does_not_read_is_dropped_and_holds_up_nobody(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, NULL);
    int lazy = connect_local(f.path), actor = connect_local(f.path);
    put(lazy, "subscribe params\n", 17);
    assert_string_equal(take(lazy, '\n'), "resp 0\n");
    char line[64], byte;
    struct pollfd gone = {.fd = lazy, .events = POLLRDHUP};
    int k = 0;
    for (; k < 200000 && poll(&gone, 1, 0) == 0; k++) {
        put(actor, line, (size_t)snprintf(line, sizeof line, "param_set gain gain_db %d\n", k % 20));
        assert_string_equal(take(actor, '\n'), "resp 0\n");
    }
    assert_true(gone.revents & (POLLRDHUP | POLLHUP));
    while (recv(lazy, &byte, 1, 0) == 1) continue; // it ends
    put(actor, "bypass\n", 7);
    assert_string_equal(take(actor, '\n'), "resp 0 0\n");
    close(lazy);
    close(actor);
    close_control(&f);
}

static void who_asks_and_does_not_read_waits(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, NULL);
    int greedy = connect_local(f.path), other = connect_local(f.path);
    int n_sent = 0, n_answers = 0; // until nothing more is taken
    while (send(greedy, "param_get gain gain_db\n", 23, MSG_DONTWAIT) == 23 && n_sent < 1000000) n_sent++;
    assert_true(n_sent < 1000000);
    put(other, "bypass\n", 7);
    assert_string_equal(take(other, '\n'), "resp 0 0\n");
    for (; n_answers < n_sent; n_answers++) assert_string_equal(take(greedy, '\n'), "resp 0 -6\n");
    close(greedy);
    close(other);
    close_control(&f);
}

static void who_says_no_more_still_gets_all_answers(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, NULL);
    int fd = connect_local(f.path);
    for (int k = 0; k < 500; k++) put(fd, "help\nbypass\n", 12);
    assert_int_equal(shutdown(fd, SHUT_WR), 0); // as `printf ... | nc -U` does
    usleep(20000);
    int n_answers = 0;
    for (const char *line; *(line = take(fd, '\n'));) n_answers += !strcmp(line, "resp 0 0\n");
    assert_int_equal(n_answers, 500);
    close(fd);
    fd = connect_local(f.path);
    put(fd, "subscribe params\n", 17);
    assert_string_equal(take(fd, '\n'), "resp 0\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    usleep(20000);
    live_session_set_bypass(&f.session, true);
    assert_string_equal(take(fd, '\n'), "bypass 1\n"); // it listens on
    close(fd);
    fd = connect_local(f.path);
    put(fd, "bypass 0\n", 9);
    close(fd); // without waiting for the answer
    fd = connect_local(f.path);
    do put(fd, "bypass\n", 7); // which is soon
    while (strcmp(take(fd, '\n'), "resp 0 0\n"));
    close(fd);
    close_control(&f);
}

static void many_clients_and_no_more(void **state)
{
    (void)state;
    fixture f;
    int fds[33];
    open_control(&f, NULL);
    for (int k = 0; k < 32; k++) {
        fds[k] = connect_local(f.path);
        put(fds[k], "bypass\n", 7);
        assert_string_equal(take(fds[k], '\n'), "resp 0 0\n");
    }
    fds[32] = connect_local(f.path);
    assert_string_equal(take(fds[32], '\n'), "resp -1 no room for another client\n");
    assert_string_equal(take(fds[32], '\n'), "");
    close(fds[0]);
    for (int k = 0; k < 10000; k++) { // its place is free again, once the thread has seen it
        close(fds[32]);
        fds[32] = connect_local(f.path);
        put(fds[32], "bypass\n", 7);
        if (!strcmp(take(fds[32], '\n'), "resp 0 0\n")) break;
        assert_true(k < 9999);
    }
    for (int k = 1; k < 33; k++) close(fds[k]);
    close_control(&f);
}

static void tcp_is_this_machine_only_and_no_web_server(void **state)
{
    (void)state;
    fixture f;
    open_control(&f, &(control_config){.tcp_port = -1});
    int port = control_tcp_port(f.control), fd = connect_tcp(port);
    put(fd, "bypass\n", 7);
    assert_string_equal(take(fd, '\n'), "resp 0 0\n");
    close(fd);
    fd = connect_tcp(port);
    static const char page[] = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nbypass 1\n";
    put(fd, page, sizeof page - 1);
    assert_string_equal(take(fd, '\n'), "resp -1 this is no HTTP server\n");
    assert_string_equal(take(fd, '\n'), "");
    assert_false(f.session.bypass);
    close(fd);
    control *second = NULL;
    assert_int_equal(
        control_open(&(control_config){.session = &f.session, .no_socket = true, .tcp_port = port}, &second),
        WT_ERR_STATE);
    assert_null(second);
    assert_int_equal(
        control_open(&(control_config){.session = &f.session, .no_socket = true, .tcp_port = -1, .bind = "localhost"},
                     &second),
        WT_ERR_BAD_ARG);
    assert_string_equal(wt_last_error(), "control: \"localhost\" is no IPv4 address");
    assert_int_equal(
        control_open(&(control_config){.session = &f.session, .no_socket = true, .tcp_port = 70000}, &second),
        WT_ERR_BAD_ARG);
    close_control(&f);
}

typedef struct opening {
    control_config config;
    control *control;
} opening;

static wt_status open_again(void *user)
{
    opening *o = user;
    return control_open(&o->config, &o->control);
}

static void close_again(void *user)
{
    opening *o = user;
    control_close(o->control);
}

static void opening_survives_a_lack_of_memory(void **state)
{
    (void)state;
    live_session s;
    fake_session_init(&s);
    opening o = {.config = {.session = &s, .no_socket = true, .tcp_port = -1}};
#ifdef WT_HAVE_LIBLO
    o.config.osc_port = -1;
#endif
    assert_true(assert_survives_failing_alloc(open_again, close_again, &o) >= 1);
    for (int k = 0; k < FAKE_LISTENERS; k++) assert_null(s.listeners[k]);
}

static void the_default_path_has_the_name_of_the_client(void **state)
{
    (void)state;
    char path[256];
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    control_default_path(NULL, path, sizeof path);
    assert_string_equal(path, "/run/user/7/warptone.sock");
    control_default_path("a/b", path, sizeof path);
    assert_string_equal(path, "/run/user/7/a_b.sock");
    unsetenv("XDG_RUNTIME_DIR");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "/tmp/warptone-%d.sock", (int)getuid());
    control_default_path(NULL, path, sizeof path);
    assert_string_equal(path, wanted);
}

static void a_path_that_is_taken_is_refused_and_one_that_was_left_is_not(void **state)
{
    (void)state;
    fixture f;
    char message[256];
    open_control(&f, NULL);
    control *second = NULL;
    control_config config = {.session = &f.session, .socket_path = f.path};
    snprintf(message, sizeof message, "control: another process listens at %s", f.path);
    assert_fails(control_open(&config, &second), WT_ERR_STATE, message);
    assert_null(second);
    int fd = connect_local(f.path); // the first is unharmed
    close(fd);
    close_control(&f);

    // as a killed process leaves it: bound, but nobody listens
    open_control(&f, NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s.left", f.path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    config.socket_path = address.sun_path;
    assert_ok(control_open(&config, &second));
    control_close(second);
    assert_int_equal(access(address.sun_path, F_OK), -1);

    FILE *file = fopen(address.sun_path, "w"); // what is no socket is never removed
    fclose(file);
    assert_int_equal(control_open(&config, &second), WT_ERR_FILE);
    assert_int_equal(access(address.sun_path, F_OK), 0);
    unlink(address.sun_path);
    close_control(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_do_what_they_say),
        cmocka_unit_test(what_is_wrong_is_said_in_one_line),
        cmocka_unit_test(a_number_stands_for_the_node_at_that_place),
        cmocka_unit_test(every_command_of_mod_host_has_an_answer),
        cmocka_unit_test(help_lists_every_command),
        cmocka_unit_test(stats_are_json),
        cmocka_unit_test(a_local_client_is_answered),
        cmocka_unit_test(lines_that_are_none_are_refused_and_the_next_is_heard),
        cmocka_unit_test(subscribers_are_told),
        cmocka_unit_test(who_does_not_read_is_dropped_and_holds_up_nobody),
        cmocka_unit_test(who_asks_and_does_not_read_waits),
        cmocka_unit_test(who_says_no_more_still_gets_all_answers),
        cmocka_unit_test(many_clients_and_no_more),
        cmocka_unit_test(tcp_is_this_machine_only_and_no_web_server),
        cmocka_unit_test(opening_survives_a_lack_of_memory),
        cmocka_unit_test(the_default_path_has_the_name_of_the_client),
        cmocka_unit_test(a_path_that_is_taken_is_refused_and_one_that_was_left_is_not),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
