// Numbers as text in a program that has called setlocale, where a comma stands for the point.
#include "support/testing.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/chat.h>
#include <warptone/model_config.h>
#include <warptone/number.h>
#include <warptone/preset.h>

static char folder[] = "/tmp/warptone-number-XXXXXX";

// The locale is made here, since few machines have one installed.
static void use_comma(void)
{
    char out[256], text[16];
    setenv("LOCPATH", folder, 1);
    run_command(out, sizeof out, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' 2>&1", folder);
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
        print_message("skipped: localedef makes no de_DE.UTF-8: %s\n", out);
        skip();
    }
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5"); // else nothing here tells anything
}

static void they_are_read_and_written_with_a_point(void **state)
{
    (void)state;
    char text[32], *end;
    use_comma();
    assert_true(wt_number_read("1.5 dB", &end) == 1.5);
    assert_string_equal(end, " dB");
    assert_true(wt_number_read("2,5", &end) == 2);
    assert_string_equal(end, ",5");
    assert_true(wt_number_read("-1e-3", NULL) == -1e-3);
    assert_int_equal(wt_number_write(text, sizeof text, 6, 0.1), 3);
    assert_string_equal(text, "0.1");
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5"); // the program's locale is as it was
}

static void every_preset_builds(void **state)
{
    (void)state;
    char **names;
    int n_names;
    use_comma();
    assert_ok(wt_preset_names(&names, &n_names));
    assert_true(n_names > 10);
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        wt_chain *chain;
        assert_ok(wt_preset_load(names[k], &preset));
        const int channels = wt_preset_channels(preset) ? wt_preset_channels(preset) : 2;
        if (!wt_preset_needs_gpu(preset)) {
            assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = channels}, &chain));
            assert_ok(wt_preset_check_midi(preset, chain));
            wt_chain_destroy(chain);
        }
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
}

static void models_are_read(void **state)
{
    (void)state;
    const char *golden = getenv("WARPTONE_TEST_GOLDEN") ? getenv("WARPTONE_TEST_GOLDEN") : "tests/golden";
    char path[4096], *text;
    wt_model_config plain, comma;
    wt_chat_template *chat;
    snprintf(path, sizeof path, "%s/weights.gguf", golden);
    setlocale(LC_ALL, "C");
    assert_ok(wt_model_config_open(path, &plain));
    use_comma();
    assert_ok(wt_model_config_open(path, &comma));
    assert_true(comma.norm_eps == plain.norm_eps && comma.rope.theta == plain.rope.theta);
    assert_ok(wt_chat_template_create("{{ 1.5 }} {{ '2.5' | float }} {{ '3.5' | int }}", &chat));
    assert_ok(wt_chat_render(chat, &(wt_chat_options){.messages_json = "[]"}, &text));
    assert_string_equal(text, "1.5 2.5 3");
    free(text);
    wt_chat_template_destroy(chat);
}

static int end(void **state)
{
    (void)state;
    char command[128];
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static int begin(void **state)
{
    (void)state;
    setenv("WARPTONE_PRESETS", "presets", 0);
    return !mkdtemp(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_read_and_written_with_a_point),
        cmocka_unit_test(every_preset_builds),
        cmocka_unit_test(models_are_read),
    };
    return cmocka_run_group_tests_name("number", tests, begin, end);
}
