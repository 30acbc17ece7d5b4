// `warptone process` as people and scripts use it: real files in, real files out, and everything that can go wrong.
#include "support/testing.h"
#include "support/audio_files.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char program[4096], out[1 << 18];

/// Run `warptone ARGUMENTS` with stderr behind stdout; returns the exit code.
static int run(const char *arguments)
{
    return run_command(out, sizeof out, "'%s' %s 2>&1", program, arguments);
}

static int runf(const char *format, const char *a, const char *b)
{
    char arguments[6000];
    snprintf(arguments, sizeof arguments, format, a, b);
    return run(arguments);
}

static void write_file(const char *path, int rate_hz, int channels, const float *x, int n_frames)
{
    test_write(path, &(wt_audio_writer_config){.rate_hz = rate_hz, .channels = channels, .sample = WT_SAMPLE_F32}, x,
               n_frames, 1000);
}

static void write_preset(const char *path, const char *nodes)
{
    char text[4000];
    int length = snprintf(text, sizeof text, "name: test\ndescription: made by a test\nnodes:\n%s", nodes);
    test_spill(path, text, (size_t)length);
}

static void skip_without_program(void)
{
    if (access(program, X_OK) == 0) return;
    print_message("skipped: %s is not built\n", program);
    skip();
}

// A look-ahead limiter far above the signal is a pure delay: compensated, the output is the input, of the same length.
static void latency_is_compensated_and_the_length_kept(void **state)
{
    enum { FRAMES = 10007 };
    skip_without_program();
    float *x = test_noise(2, FRAMES, 0.25f);
    write_preset(test_path(state, "late.yaml"), "  - {node: compressor, threshold_db: 0, ratio: 1, lookahead_ms: 5}\n");
    write_file(test_path(state, "in.wav"), 48000, 2, x, FRAMES);
    char arguments[4000];
    snprintf(arguments, sizeof arguments, "process -p %s --backend cpu %s %s", test_path(state, "late.yaml"),
             test_path(state, "in.wav"), test_path(state, "out.wav"));
    if (run(arguments)) fail_msg("%s", out);
    int64_t n_frames;
    float *y = test_read(test_path(state, "out.wav"), NULL, 777, &n_frames);
    assert_int_equal(n_frames, FRAMES);
    assert_snr_db(x, y, 2 * FRAMES, 120);
    free(x), free(y);
}

static void one_frame_is_enough(void **state)
{
    skip_without_program();
    const float x[1] = {0.5f};
    write_file(test_path(state, "one.wav"), 48000, 1, x, 1);
    assert_int_equal(
        runf("process -p mono-fold --backend cpu %s %s", test_path(state, "one.wav"), test_path(state, "one-out.wav")),
        0);
    int64_t n_frames;
    float *y = test_read(test_path(state, "one-out.wav"), NULL, 100, &n_frames);
    assert_int_equal(n_frames, 1);
    free(y);
}

static void the_tail_is_kept_on_request(void **state)
{
    enum { FRAMES = 4800 };
    skip_without_program();
    float *x = test_noise(1, FRAMES, 0.5f);
    write_preset(test_path(state, "echo.yaml"), "  - {node: delay, time_ms: 250, feedback: 0.5, mix: 0.5}\n");
    write_file(test_path(state, "dry.wav"), 48000, 1, x, FRAMES);
    char arguments[4000];
    snprintf(arguments, sizeof arguments, "process -p %s --tail --backend cpu %s %s", test_path(state, "echo.yaml"),
             test_path(state, "dry.wav"), test_path(state, "wet.wav"));
    if (run(arguments)) fail_msg("%s", out);
    int64_t n_frames;
    float *y = test_read(test_path(state, "wet.wav"), NULL, 4096, &n_frames), echo = 0, last = 0;
    assert_true(n_frames > FRAMES + 48000);
    for (int n = 0; n < 2000; n++)
        echo = fmaxf(echo, fabsf(y[12000 + n])), last = fmaxf(last, fabsf(y[n_frames - 1 - n]));
    assert_true(echo > 0.1f);
    assert_true(last < 1e-5f); // -100 dB: what is left when the tail ends
    free(x), free(y);
}

static void folders_are_mirrored_and_resumed(void **state)
{
    skip_without_program();
    char folder[4096], arguments[9000];
    float *x = test_noise(1, 3000, 0.2f);
    snprintf(folder, sizeof folder, "%s", test_path(state, "many"));
    mkdir(folder, 0777);
    mkdir(test_path(state, "many/deep"), 0777);
    write_file(test_path(state, "many/a.wav"), 16000, 1, x, 3000);
    write_file(test_path(state, "many/deep/b.wav"), 22050, 1, x, 3000);
    test_spill(test_path(state, "many/broken.wav"), "RIFF", 4);
    test_spill(test_path(state, "many/notes.txt"), "no audio", 8);
    snprintf(arguments, sizeof arguments, "process -p telephone --backend cpu --json %s %s", folder,
             test_path(state, "results"));
    assert_int_equal(run(arguments), 1); // one file failed
    json_t *report = json_loads(out, 0, NULL);
    if (!report) fail_msg("no JSON: %s", out);
    assert_int_equal(json_integer_value(json_object_get(report, "done")), 2);
    assert_int_equal(json_integer_value(json_object_get(report, "failed")), 1);
    json_decref(report);
    assert_int_equal(access(test_path(state, "results/deep/b.wav"), R_OK), 0);
    assert_int_not_equal(access(test_path(state, "results/broken.wav"), F_OK), 0);
    snprintf(arguments, sizeof arguments, "process -p telephone --backend cpu --resume --json %s %s", folder,
             test_path(state, "results"));
    assert_int_equal(run(arguments), 1);
    report = json_loads(out, 0, NULL);
    assert_non_null(report);
    assert_int_equal(json_integer_value(json_object_get(report, "skipped")), 2);
    assert_int_equal(json_integer_value(json_object_get(report, "done")), 0);
    json_decref(report);
    assert_int_equal(test_folder_count(state, "results/."), 0);
    free(x);
}

static void jobs_do_not_change_the_result(void **state)
{
    enum { FRAMES = 20000 };
    skip_without_program();
    char arguments[9000];
    float *x = test_noise(2, FRAMES, 0.3f);
    mkdir(test_path(state, "set"), 0777);
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "set/%d.wav", k);
        write_file(test_path(state, name), 44100, 2, x, FRAMES);
    }
    for (int jobs = 1; jobs <= 3; jobs += 2) {
        snprintf(arguments, sizeof arguments, "process -p voice-clean -j %d -q --backend cpu %s %s/", jobs,
                 test_path(state, "set"), test_path(state, jobs == 1 ? "one" : "three"));
        if (run(arguments)) fail_msg("%s", out);
    }
    for (int k = 0; k < 4; k++) {
        char name[32];
        size_t a, b;
        snprintf(name, sizeof name, "one/%d.wav", k);
        char *first = test_slurp(test_path(state, name), &a);
        snprintf(name, sizeof name, "three/%d.wav", k);
        char *second = test_slurp(test_path(state, name), &b);
        assert_int_equal(a, b);
        assert_memory_equal(first, second, a);
        free(first), free(second);
    }
    free(x);
}

static void raw_audio_goes_through_a_pipe(void **state)
{
    skip_without_program();
    char command[9000];
    size_t size;
    int16_t x[8000];
    for (int n = 0; n < 8000; n++) x[n] = (int16_t)(8000 * sin(0.05 * n));
    test_spill(test_path(state, "in.raw"), x, sizeof x);
    write_preset(test_path(state, "half.yaml"), "  - {node: gain, gain_db: -6.0206}\n");
    snprintf(command, sizeof command,
             "'%s' process -p %s -q --backend cpu --no-dither --raw s16 --raw-rate 16000 --raw-channels 1 - - <%s >%s",
             program, test_path(state, "half.yaml"), test_path(state, "in.raw"), test_path(state, "out.raw"));
    assert_int_equal(system(command), 0);
    int16_t *y = (int16_t *)test_slurp(test_path(state, "out.raw"), &size);
    assert_int_equal(size, sizeof x);
    for (int n = 0; n < 8000; n++) assert_true(abs(y[n] - x[n] / 2) <= 1);
    free(y);
}

static void a_file_in_a_pipe_is_no_raw_audio(void **state)
{
    skip_without_program();
    float *x = test_noise(1, 1000, 0.2f);
    write_file(test_path(state, "piped.wav"), 48000, 1, x, 1000);
    free(x);
    assert_int_equal(runf("process -p telephone --backend cpu - %s/x.wav <%s/piped.wav", test_path(state, "."),
                          test_path(state, ".")), 3);
    assert_non_null(strstr(out, "-: begins with RIFF, as an audio file does; want raw PCM, or the file by name"));
    assert_int_not_equal(access(test_path(state, "x.wav"), F_OK), 0);
}

static void mistakes_get_one_sentence(void **state)
{
    skip_without_program();
    char arguments[9000];
    float *x = test_noise(1, 1000, 0.2f);
    write_file(test_path(state, "good.wav"), 48000, 1, x, 1000);
    test_spill(test_path(state, "empty.wav"), "", 0);
    write_preset(test_path(state, "typo.yaml"), "  - {node: gian}\n");
    free(x);
    const struct {
        const char *format, *a, *b, *sentence;
        int code;
    } cases[] = {
        {"process -p telefone %s %s", "good.wav", "x.wav", "no preset 'telefone'; the nearest is 'telephone'", 3},
        {"process %s %s", "good.wav", "x.wav", "no preset was named", 2},
        {"process -p telephone %s", "good.wav", "", "an input or the output is missing", 2},
        {"process -p telephone %s %s", "nothing.wav", "x.wav", "nothing.wav", 1},
        {"process -p telephone %s %s", "empty.wav", "x.wav", "empty.wav", 3},
        {"process -p telephone %s %s", "good.wav", "good.wav", "good.wav", 2},
        {"process -p telephone %s %s", "good.wav", "no/such/folder.wav", "no/such", 1},
        {"process -p telephone --set honk.gian_db=3 %s %s", "good.wav", "x.wav", "the nearest is 'gain_db'", 3},
        {"process -p telephone --set honk.gain_db=300 %s %s", "good.wav", "x.wav", "want -48..48", 2},
        {"process -p telephone --set honk %s %s", "good.wav", "x.wav", "want NODE.PARAM=NUMBER", 2},
        {"process -p telephone %s %s", "good.wav", "x", "x: no extension says the format, want wav", 2},
        {"process -p conference --backend cpu %s %s", "good.wav", "x.wav", "good.wav: ", 2},
        {"process -p telephone --backend gpu %s %s", "good.wav", "x.wav", "want auto, cuda or cpu", 2},
        {"process -p telephone --sample s17 %s %s", "good.wav", "x.wav", "want s16, s24, s32 or f32", 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(arguments, sizeof arguments, cases[k].format, test_path(state, cases[k].a),
                 *cases[k].b ? test_path(state, cases[k].b) : "");
        int code = run(arguments);
        if (code != cases[k].code || !strstr(out, cases[k].sentence))
            fail_msg("warptone %s: exit %d, want %d with \"%s\"; printed: %s", arguments, code, cases[k].code,
                     cases[k].sentence, out);
        assert_int_not_equal(access(test_path(state, "x.wav"), F_OK), 0); // nothing is left behind
    }
    snprintf(arguments, sizeof arguments, "process -p %s %s %s", test_path(state, "typo.yaml"),
             test_path(state, "good.wav"), test_path(state, "x.wav"));
    assert_int_equal(run(arguments), 3);
    assert_non_null(strstr(out, "typo.yaml:4: test: node 1 has the unknown type 'gian'; the nearest is 'gain'"));
}

// Before anything is written, or made.
static void outputs_that_cannot_be_are_told_once(void **state)
{
    skip_without_program();
    char path[4096];
    float *x = test_noise(1, 1000, 0.2f);
    write_file(test_path(state, "first.wav"), 48000, 1, x, 1000);
    snprintf(path, sizeof path, "%s", test_path(state, "second.wav"));
    write_file(path, 48000, 1, x, 1000);
    free(x);
    char arguments[9000];
    snprintf(arguments, sizeof arguments, "process -p telephone %s %s %s", test_path(state, "first.wav"), path, path);
    assert_int_equal(run(arguments), 2);
    assert_non_null(strstr(out, "second.wav: is a file, want a folder for what several inputs give"));
    assert_null(strstr(strstr(out, "want"), "\nwarptone")); // one sentence
    assert_int_equal(runf("process -p telephone --dry-run %s %s/", path, test_path(state, "dry")), 0);
    assert_non_null(strstr(out, "/dry/second.wav\n"));
    assert_null(strstr(out, "//"));
    assert_int_not_equal(access(test_path(state, "dry"), F_OK), 0);
}

// NODE/PARAM is how the control socket, OSC and MIDI name a parameter; --set takes it as well.
static void parameters_have_one_name_everywhere(void **state)
{
    skip_without_program();
    float *x = test_noise(1, 1000, 0.2f);
    size_t size[2];
    write_file(test_path(state, "set.wav"), 48000, 1, x, 1000);
    free(x);
    assert_int_equal(runf("process -p telephone --backend cpu --set honk.gain_db=6 %s %s", test_path(state, "set.wav"),
                          test_path(state, "dot.wav")), 0);
    assert_int_equal(runf("process -p telephone --backend cpu --set honk/gain_db=6 %s %s", test_path(state, "set.wav"),
                          test_path(state, "slash.wav")), 0);
    char *dot = test_slurp(test_path(state, "dot.wav"), &size[0]);
    char *slash = test_slurp(test_path(state, "slash.wav"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(dot, slash, size[0]);
    free(dot), free(slash);
}

static void broken_samples_are_repaired_and_told(void **state)
{
    skip_without_program();
    const float bad[3] = {NAN, INFINITY, 1e-41f};
    float x[2000];
    size_t size;
    for (int n = 0; n < 2000; n++) x[n] = 0.1f;
    write_file(test_path(state, "nan.wav"), 48000, 1, x, 2000);
    char *bytes = test_slurp(test_path(state, "nan.wav"), &size); // the writer itself would repair them
    memcpy(bytes + size - 4000, bad, sizeof bad);
    test_spill(test_path(state, "nan.wav"), bytes, size);
    free(bytes);
    assert_int_equal(
        runf("process -p mono-fold --backend cpu %s %s", test_path(state, "nan.wav"), test_path(state, "nan-out.wav")),
        0);
    assert_non_null(strstr(out, "2 samples were not finite and became 0"));
    int64_t n_frames;
    float *y = test_read(test_path(state, "nan-out.wav"), NULL, 100, &n_frames);
    for (int n = 0; n < 2000; n++) assert_true(isfinite(y[n]));
    free(y);
}

// A full disk, played by a limit on the size of files: the sentence, and neither a partial nor a temporary file.
static void a_full_disk_leaves_nothing(void **state)
{
    skip_without_program();
    float *x = test_noise(2, 200000, 0.3f);
    char command[9000];
    write_file(test_path(state, "long.wav"), 48000, 2, x, 200000);
    snprintf(command, sizeof command, "ulimit -f 100; exec '%s' process -p telephone --backend cpu %s %s 2>/dev/null",
             program, test_path(state, "long.wav"), test_path(state, "full.wav"));
    int status = system(command);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_int_not_equal(access(test_path(state, "full.wav"), F_OK), 0);
    assert_int_equal(test_folder_count(state, ".full"), 0);
    free(x);
}

static void an_interrupt_leaves_no_partial_file(void **state)
{
    skip_without_program();
    float *x = test_noise(2, 3000000, 0.3f);
    char input[4096], output[4096];
    snprintf(input, sizeof input, "%s", test_path(state, "minute.wav"));
    snprintf(output, sizeof output, "%s", test_path(state, "stopped.wav"));
    write_file(input, 48000, 2, x, 3000000);
    free(x);
    pid_t child = fork();
    if (child == 0) {
        execl(program, "warptone", "process", "-p", "voice-clean", "-q", "--backend", "cpu", input, output, (char *)0);
        _exit(127);
    }
    while (test_folder_count(state, ".stopped") == 0) { // until its temporary file is there
        int status;
        if (waitpid(child, &status, WNOHANG) == child) fail_msg("ended by itself with %d", status);
        usleep(500);
    }
    kill(child, SIGINT);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 130);
    assert_int_not_equal(access(output, F_OK), 0);
    assert_int_equal(test_folder_count(state, ".stopped"), 0);
}

/// `warptone process` of half a minute into a pipe.
static pid_t start_into_pipe(const char *input, int writer)
{
    const pid_t child = fork();
    if (child) return child;
    dup2(writer, STDOUT_FILENO);
    execl(program, "warptone", "process", "-p", "telephone", "-q", "--backend", "cpu", input, "-", (char *)0);
    _exit(127);
}

static void wait_until_full(int writer, pid_t child)
{
    struct pollfd room = {.fd = writer, .events = POLLOUT};
    for (int status; poll(&room, 1, 0) > 0; usleep(500)) assert_int_equal(waitpid(child, &status, WNOHANG), 0);
}

// Whoever writes then waits in a thread that no signal wakes, unless it writes no more than there is room for.
static void a_reader_that_stopped_holds_up_no_interrupt(void **state)
{
    static const size_t n_read[] = {0, 1, 5000, 20000};
    skip_without_program();
    float *x = test_noise(2, 1500000, 0.3f);
    char input[4096];
    snprintf(input, sizeof input, "%s", test_path(state, "piped.wav"));
    write_file(input, 48000, 2, x, 1500000);
    free(x);
    for (size_t k = 0; k < sizeof n_read / sizeof *n_read; k++) {
        int ends[2], status;
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        const pid_t child = start_into_pipe(input, ends[1]);
        wait_until_full(ends[1], child);
        if (n_read[k]) assert_true(read(ends[0], out, n_read[k]) > 0);
        wait_until_full(ends[1], child);
        kill(child, SIGTERM);
        pid_t ended = 0;
        for (int ms = 0; ms < 20000 && !(ended = waitpid(child, &status, WNOHANG)); ms++) usleep(1000);
        if (!ended) kill(child, SIGKILL);
        close(ends[0]), close(ends[1]);
        if (!ended) fail_msg("after %zu bytes it waits for the reader", n_read[k]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
    }
}

static void a_picture_is_drawn(void **state)
{
    skip_without_program();
    float *x = test_noise(1, 30000, 0.3f);
    char arguments[9000];
    size_t size;
    write_file(test_path(state, "shown.wav"), 48000, 1, x, 30000);
    free(x);
    snprintf(arguments, sizeof arguments, "process -p telephone -q --backend cpu --plot %s %s %s",
             test_path(state, "shown.png"), test_path(state, "shown.wav"), test_path(state, "shown-out.wav"));
    assert_int_equal(run(arguments), 0);
    char *png = test_slurp(test_path(state, "shown.png"), &size);
    assert_true(size > 10000 && memcmp(png, "\x89PNG", 4) == 0);
    free(png);
}

static int remove_folders(void **state)
{
    char command[9000];
    snprintf(command, sizeof command, "cd '%s' && rm -rf many results set one three", test_path(state, "."));
    return system(command) || test_folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_compensated_and_the_length_kept),
        cmocka_unit_test(one_frame_is_enough),
        cmocka_unit_test(the_tail_is_kept_on_request),
        cmocka_unit_test(folders_are_mirrored_and_resumed),
        cmocka_unit_test(jobs_do_not_change_the_result),
        cmocka_unit_test(raw_audio_goes_through_a_pipe),
        cmocka_unit_test(a_file_in_a_pipe_is_no_raw_audio),
        cmocka_unit_test(mistakes_get_one_sentence),
        cmocka_unit_test(outputs_that_cannot_be_are_told_once),
        cmocka_unit_test(parameters_have_one_name_everywhere),
        cmocka_unit_test(broken_samples_are_repaired_and_told),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(an_interrupt_leaves_no_partial_file),
        cmocka_unit_test(a_reader_that_stopped_holds_up_no_interrupt),
        cmocka_unit_test(a_picture_is_drawn),
    };
    setenv("WARPTONE_PRESETS", "presets", 0);
    if (!find_program(program, sizeof program)) return 1;
    return cmocka_run_group_tests_name("process", tests, test_folder_create, remove_folders);
}
