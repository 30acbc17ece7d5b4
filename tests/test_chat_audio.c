// `warptone chat --live`: a conversation while audio runs in the same process, on a server of jackd's dummy driver.
#include "support/audio_files.h"
#include "support/jack_server.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static jack_server server;
static char program[4096], model[1024], out[1 << 14], told[1 << 14];

static void need_model(void) { need_story_model(program, model, sizeof model); }

static void read_all(const char *path, char *text, size_t size)
{
    size_t length;
    char *read = test_slurp(path, &length);
    snprintf(text, size, "%.*s", (int)length, read);
    free(read);
}

/// Run `warptone chat ARGUMENTS` with two messages; stdout to `out`, stderr to `told`. Returns the exit code.
static int converse(void **state, const char *arguments)
{
    static char command[32768];
    char words[4096], errors[4096], template[4096];
    snprintf(words, sizeof words, "%s", test_path(state, "out"));
    snprintf(errors, sizeof errors, "%s", test_path(state, "told"));
    snprintf(template, sizeof template, "%s", test_path(state, "template"));
    static const char text[] = "{% for m in messages %}{{ m.content }} {% endfor %}";
    test_spill(template, text, strlen(text));
    snprintf(command, sizeof command,
             "(echo Once upon a time; sleep 0.2; echo there was) | JACK_DEFAULT_SERVER='%s' timeout 60 '%s' chat "
             "--model '%s' --template '%s' -n 8 --temperature 0 --backend cpu %s >'%s' 2>'%s'",
             server.name, program, model, template, arguments, words, errors);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    read_all(words, out, sizeof out);
    read_all(errors, told, sizeof told);
    return WEXITSTATUS(status);
}

/// The answers are those without audio, and blocks were played.
static void answers_come_while_audio_runs(void **state)
{
    char alone[1 << 14];
    need_model();
    if (!server.pid) jack_server_start(&server, 256);
    assert_int_equal(converse(state, ""), 0);
    snprintf(alone, sizeof alone, "%s", out);
    assert_true(strlen(alone) > 16);
    if (converse(state, "--live vocal-live --jack")) fail_msg("%s", told);
    assert_string_equal(out, alone);
    const char *line = strstr(told, "[audio: ");
    if (!line) fail_msg("no line of audio: %s", told);
    int n_blocks = 0, frames = 0;
    assert_int_equal(sscanf(line, "[audio: %d blocks of %d", &n_blocks, &frames), 2);
    assert_true(n_blocks > 0);
    assert_int_equal(frames, 256);
}

static void what_cannot_be_played_is_said(void **state)
{
    need_model();
    if (!server.pid) jack_server_start(&server, 256);
    assert_int_not_equal(converse(state, "--live no-such-preset --jack"), 0);
    assert_non_null(strstr(told, "no-such-preset"));
    assert_int_equal(converse(state, "--jack"), 2);
    assert_non_null(strstr(told, "--jack is given alone, want --live PRESET with it"));
}

static int end_server(void **state)
{
    jack_server_stop(&server);
    return test_folder_remove(state);
}

static int begin(void **state)
{
    (void)state;
    setenv("WARPTONE_PRESETS", "presets", 0);
    return !find_program(program, sizeof program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_come_while_audio_runs, test_folder_create, end_server),
        cmocka_unit_test_setup_teardown(what_cannot_be_played_is_said, test_folder_create, end_server),
    };
    return cmocka_run_group_tests_name("chat beside audio", tests, begin, NULL);
}
