#include "support/testing.h"
#include "support/audio_files.h"
#include "support/jack_server.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// `warptone live` as scripts use it, on a server of jackd's dummy driver.

static jack_server server;
static char program[4096], out[1 << 16];

static pid_t running; // 0 = none

/// Start the program; its stdout and stderr go to `path`.
static pid_t start(const char *path, const char *const *arguments)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid) return running = pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char folder[4096]; // of the control socket, or a session beside this one has it
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    const char *argv[32] = {program, "live"};
    for (int k = 0; arguments[k]; k++) argv[k + 2] = arguments[k];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(fd, 1), dup2(fd, 2);
    execv(program, (char *const *)argv);
    _exit(127);
}

/// Wait for its end; what it wrote goes to `out`. Returns the exit code.
static int finish(pid_t pid, const char *path)
{
    int status;
    pid_t ended = 0;
    for (int k = 0; k < 6000 && !(ended = waitpid(pid, &status, WNOHANG)); k++) // a minute: machines may be busy
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    if (ended != pid) fail_msg("the program does not end");
    running = 0;
    size_t length;
    char *text = test_slurp(path, &length);
    if (length >= sizeof out) length = sizeof out - 1;
    memcpy(out, text, length);
    out[length] = 0;
    free(text);
    if (!WIFEXITED(status)) fail_msg("status 0x%x: %s", status, out);
    return WEXITSTATUS(status);
}

/// After each test, also one that failed.
static int end_program(void **state)
{
    (void)state;
    if (!running) return 0;
    kill(running, SIGKILL);
    waitpid(running, NULL, 0);
    running = 0;
    return 0;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

/// Wait until the program has printed a line of figures, half a minute at most: then audio runs.
static void await_output(const char *path)
{
    char text[4096] = "";
    for (int k = 0; k < 3000 && !strstr(text, "\"line\":\"second\"") && !has_ended(running); k++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        FILE *file = fopen(path, "rb");
        if (!file) continue;
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    if (!strstr(text, "\"line\":\"second\"")) fail_msg("no figures within half a minute: %s", text);
}

static void need_all(void)
{
    if (access(program, X_OK)) {
        print_message("skipped: %s is not built\n", program);
        skip();
    }
    if (!server.pid) jack_server_start(&server, 1024);
}

static json_t *last_line(void)
{
    json_error_t error;
    char *end = out + strlen(out);
    while (end > out && end[-1] == '\n') *--end = 0;
    char *line = strrchr(out, '\n');
    json_t *json = json_loads(line ? line + 1 : out, 0, &error);
    if (!json) fail_msg("not JSON: %s: %s", error.text, out);
    return json;
}

static json_int_t integer(const json_t *json, const char *a, const char *b)
{
    const json_t *found = json_object_get(json, a);
    if (b) found = json_object_get(found, b);
    assert_true(json_is_integer(found));
    return json_integer_value(found);
}

static void totals_are_the_last_line(void **state)
{
    need_all();
    const char *path = test_path(state, "totals.txt"), *take = test_path(state, "take.flac");
    pid_t pid =
        start(path, (const char *const[]){"-p", "voice-clean", "--jack", "--device", server.name, "--backend", "cpu",
                                          "--duration", "0.5", "--json", "--quiet", "--record", take, NULL});
    if (finish(pid, path)) fail_msg("%s", out);
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1); // one line
    json_t *total = last_line();
    assert_string_equal(json_string_value(json_object_get(total, "line")), "total");
    assert_string_equal(json_string_value(json_object_get(total, "path")), "cpu");
    assert_true(integer(total, "blocks", NULL) > 0);
    assert_int_equal(integer(total, "frames", NULL), integer(total, "blocks", NULL) * 1024);
    assert_int_equal(integer(total, "misses", "total"), 0);
    assert_int_equal(integer(total, "misses", "late"), 0);
    assert_true(integer(total, "xruns", NULL) >= 0);
    assert_true(integer(total, "latency_frames", NULL) > 0);
    assert_int_equal(integer(total, "round_trip", "count"), 0); // no GPU, no round trip
    assert_true(integer(total, "process", "count") > 0);
    assert_true(json_real_value(json_object_get(total, "bpm")) == 0); // nobody leads the server's time
    assert_true(json_real_value(json_object_get(json_object_get(total, "process"), "p99_us")) > 0);
    json_decref(total);
    int64_t n_frames;
    float *got = test_read(take, NULL, 4096, &n_frames);
    assert_true(n_frames > 0);
    free(got);
}

/// The control socket of a program that writes to `path`.
static struct sockaddr_un socket_beside(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.*s/warptone.sock", (int)(strrchr(path, '/') - path), path);
    return address;
}

/// To a socket that is there soon, within half a minute.
static int connect_to(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 30}, sizeof(struct timeval));
    for (int k = 0; k < 3000 && connect(fd, (const struct sockaddr *)address, sizeof *address); k++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    return fd;
}

// SIGHUP as well: a terminal that is closed must not take the take along.
static void signals_end_it_in_good_order(void **state)
{
    need_all();
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int k = 0; k < 3; k++) {
        const char *path = test_path(state, "signal.txt"), *take = test_path(state, "signal.wav");
        pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend",
                                                      "cpu", "--json", "--record", take, NULL});
        const struct sockaddr_un address = socket_beside(path);
        close(connect_to(&address)); // it is there when audio runs
        kill(pid, signals[k]);
        if (signals[k] == SIGHUP) kill(pid, SIGHUP); // the kernel tells it, and so does the shell
        if (finish(pid, path)) fail_msg("%s", out);
        json_t *total = last_line();
        assert_string_equal(json_string_value(json_object_get(total, "line")), "total");
        json_decref(total);
        int64_t n_frames;
        free(test_read(take, NULL, 4096, &n_frames));
        assert_true(n_frames > 0);
        unlink(path), unlink(take);
    }
}

/// One line to the control socket, and its answer.
static void ask(int fd, const char *line, char answer[4096])
{
    size_t n = 0;
    assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    while (n < 4095 && recv(fd, answer + n, 1, 0) == 1 && answer[n++] != '\n') continue;
    answer[n] = 0;
}

static void it_is_controlled_by_its_socket(void **state)
{
    need_all();
    const char *path = test_path(state, "control.txt");
    const struct sockaddr_un address = socket_beside(path);
    char answer[4096];
    pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend", "cpu",
                                                  "--json", NULL});
    int fd = connect_to(&address);
    ask(fd, "bypass 1\n", answer);
    assert_string_equal(answer, "resp 0\n");
    ask(fd, "bypass\n", answer);
    assert_string_equal(answer, "resp 0 1\n");
    ask(fd, "preset_load no-such-preset\n", answer);
    assert_int_equal(strncmp(answer, "resp -1 ", 8), 0);
    ask(fd, "preset_load voice-clean\n", answer);
    assert_string_equal(answer, "resp 0\n");
    ask(fd, "param_set nowhere/nothing 1\n", answer);
    assert_int_equal(strncmp(answer, "resp -1 live: no parameter 'nowhere/nothing'; the nearest is ", 60), 0);
    ask(fd, "quit\n", answer);
    assert_string_equal(answer, "resp 0\n");
    if (finish(pid, path)) fail_msg("%s", out);
    json_t *total = last_line();
    assert_string_equal(json_string_value(json_object_get(total, "preset")), "voice-clean");
    json_decref(total);
    close(fd);
    assert_int_equal(access(address.sun_path, F_OK), -1);
}

// As nohup starts it.
static void a_hang_up_that_was_ignored_does_not_end_it(void **state)
{
    need_all();
    const char *path = test_path(state, "nohup.txt");
    const struct sockaddr_un address = socket_beside(path);
    char answer[4096];
    signal(SIGHUP, SIG_IGN); // which the program inherits
    pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend", "cpu",
                                                  "--json", NULL});
    signal(SIGHUP, SIG_DFL);
    int fd = connect_to(&address);
    kill(pid, SIGHUP);
    await_output(path); // it looks at the signal 20 times a second, and prints once
    ask(fd, "bypass\n", answer);
    assert_string_equal(answer, "resp 0 0\n");
    ask(fd, "quit\n", answer);
    if (finish(pid, path)) fail_msg("%s", out);
    close(fd);
}

static void it_plays_where_its_socket_cannot_be_made(void **state)
{
    need_all();
    const char *path = test_path(state, "taken.txt");
    const struct sockaddr_un address = socket_beside(path);
    test_spill(address.sun_path, "x", 1);
    pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend", "cpu",
                                                  "--duration", "0.2", "--quiet", NULL});
    int code = finish(pid, path);
    unlink(address.sun_path);
    if (code) fail_msg("%s", out);
    assert_non_null(strstr(out, "warptone.sock is there and is no socket; choose another path with --control"));
}

static void without_a_terminal_it_prints_lines(void **state)
{
    need_all();
    const char *path = test_path(state, "lines.txt");
    pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend", "cpu",
                                                  "--duration", "0.2", NULL});
    assert_int_equal(finish(pid, path), 0);
    assert_non_null(strstr(out, "xruns"));
    assert_null(strchr(out, '\033'));
}

static void refusals_say_what_was_wanted(void **state)
{
    need_all();
    char long_name[65] = "";
    memset(long_name, 'n', 64);
    const struct {
        const char *arguments[10];
        int code;
        const char *sentence;
    } cases[] = {
        {{"--jack"}, 2, "warptone live: no preset was named, want -p PRESET"},
        {{"-p", "hall", "extra"}, 2, "\"extra\" is not expected"},
        {{"-p", "hall", "--host", "alsa"}, 2, "--host is 'alsa', want jack or portaudio"},
        {{"-p", "hall", "--jack", "--mode", "later"}, 2, "--mode is \"later\", want immediate or pipelined"},
        {{"-p", "hall", "--jack", "--gpu-path", "cpu"}, 2, "--gpu-path is \"cpu\", want auto, resident or graph"},
        {{"-p", "hall", "--jack", "--latency", "9"}, 2, "--latency is for PortAudio, want it without --jack"},
        {{"-p", "hall", "--jack", "--input-device", "1"}, 2, "--input-device is for PortAudio"},
        {{"-p", "hall", "--jack", "--no-adapter"}, 2, "--no-adapter is for PortAudio, want it without --jack"},
        {{"-p", "hall", "--host", "portaudio", "--no-adapter", "--block", "64"},
         2,
         "--no-adapter and --block 64 are given, want one"},
        {{"-p", "hall", "--jack", "--connect", "system:,"}, 2, "--connect has an empty pattern"},
        {{"-p", "hall", "--jack", "--record", "a.wav", "--record-in", "a.wav"},
         2,
         "input and output are to be recorded to a.wav, want two files"},
        {{"-p", "hall", "--jack", "-d", server.name, "-n", ""}, 2, "jack: the client's name has 0 bytes, want 1..63"},
        {{"-p", "hall", "--jack", "-d", server.name, "-n", long_name},
         2,
         "jack: the client's name has 64 bytes, want 1..63"},
        {{"-p", "hall", "--jack", "--bind", "0.0.0.0"}, 2, "--bind is given alone, want --tcp or --osc with it"},
        {{"-p", "hall", "--jack", "-d", server.name, "--backend", "cpu", "--mode", "pipelined"},
         4,
         "--mode pipelined is for a GPU: on the CPU each block is answered at once"},
        {{"-p", "hall", "--jack", "-d", server.name, "--backend", "cpu", "--gpu-path", "graph"},
         4,
         "--gpu-path is for a GPU, and here the chain runs on the CPU"},
        {{"-p", "hlal", "--jack"}, 3, "no preset 'hlal'; the nearest is 'hall'"},
        {{"-p", "hall", "--jack", "-d", "wt-nobody"}, 4, "jack: no server 'wt-nobody' is running"},
        {{"-p", "hall", "--jack", "-d", server.name, "--connect", "nobody"}, 3, "jack: no port matches 'nobody'"},
    };
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        const char *path = test_path(state, "refusal.txt");
        int code = finish(start(path, cases[k].arguments), path);
        if (code != cases[k].code || !strstr(out, cases[k].sentence))
            fail_msg("%d: \"%s\", want %d: \"%s\"", code, out, cases[k].code, cases[k].sentence);
    }
}

static void a_server_that_dies_ends_it_with_an_error(void **state)
{
    need_all();
    const char *path = test_path(state, "dies.txt");
    pid_t pid = start(path, (const char *const[]){"-p", "telephone", "--jack", "-d", server.name, "--backend", "cpu",
                                                  "--json", NULL});
    await_output(path);
    jack_server_kill(&server);
    assert_int_equal(finish(pid, path), 1);
    assert_non_null(strstr(out, "\"line\":\"total\""));
    assert_non_null(strstr(out, "warptone live: jack: the server ended the connection"));
}

static int begin(void **state)
{
    return find_program(program, sizeof program) ? test_folder_create(state) : 1;
}

static int end_all(void **state)
{
    jack_server_stop(&server);
    return test_folder_remove(state);
}

int main(void)
{
    setenv("WARPTONE_PRESETS", "presets", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(totals_are_the_last_line, end_program),
        cmocka_unit_test_teardown(signals_end_it_in_good_order, end_program),
        cmocka_unit_test_teardown(it_is_controlled_by_its_socket, end_program),
        cmocka_unit_test_teardown(a_hang_up_that_was_ignored_does_not_end_it, end_program),
        cmocka_unit_test_teardown(it_plays_where_its_socket_cannot_be_made, end_program),
        cmocka_unit_test_teardown(without_a_terminal_it_prints_lines, end_program),
        cmocka_unit_test_teardown(refusals_say_what_was_wanted, end_program),
        cmocka_unit_test_teardown(a_server_that_dies_ends_it_with_an_error, end_program),
    };
    return cmocka_run_group_tests_name("live_program", tests, begin, end_all);
}
