#include "support/llm_files.h"
#include "support/testing.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The program as scripts use it: what stands on stdout, and the exit code.

static char program[4096], folder[] = "/tmp/warptone-program-XXXXXX";
static char out[1 << 17];

/// Run the program with `arguments`; stdout goes to `out`, stderr after it when `with_errors`.
static int run(const char *environment, const char *arguments, bool with_errors)
{
    return run_command(out, sizeof out, "%s '%s' %s 2>%s", environment, program, arguments,
                       with_errors ? "&1" : "/dev/null");
}

static void need_program(void)
{
    if (access(program, X_OK) == 0) return;
    print_message("skipped: %s is not built\n", program);
    skip();
}

static json_t *parsed(void)
{
    json_error_t error;
    json_t *json = json_loads(out, 0, &error);
    if (!json) fail_msg("not JSON: %s: %s", error.text, out);
    return json;
}

static void help_and_version_go_to_stdout(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("", "--help", false), 0);
    assert_non_null(strstr(out, "exit codes:"));
    assert_non_null(strstr(out, "\n  info "));
    assert_int_equal(run("", "help", false), 0);
    assert_non_null(strstr(out, "exit codes:"));
    assert_int_equal(run("", "help info", false), 0);
    assert_int_equal(strncmp(out, "usage: warptone info", 20), 0);
    assert_int_equal(run("", "help inof", true), 2);
    assert_int_equal(run("", "--version", false), 0);
    assert_int_equal(strncmp(out, "warptone ", 9), 0);
    assert_int_equal(run("", "info --help", false), 0);
    assert_non_null(strstr(out, "--json"));
    assert_int_equal(run("", "kernels -h", false), 0);
    assert_non_null(strstr(out, "pack FOLDER"));
}

static void each_help_lists_its_options_once(void **state)
{
    (void)state;
    need_program();
    static const char *const commands[] = {"process", "live",   "analyze",  "info", "kernels",
                                           "presets", "doctor", "simulate", "top"};
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --help", commands[k]);
        assert_int_equal(run("", arguments, false), 0);
        const char *first = strstr(out, "\noptions:\n");
        if (!first || strstr(first + 2, "options:\n")) fail_msg("warptone %s: %s", arguments, out);
    }
}

// A file's name may hold anything: shown, it moves no cursor and begins no line.
static void names_are_shown_without_control_characters(void **state)
{
    (void)state;
    need_program();
    static const char *const calls[] = {"analyze -f mel", "process -p telephone"};
    char file[sizeof folder + 16], arguments[256];
    snprintf(file, sizeof file, "%s/a\x1b[1m\nb.wav", folder);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        snprintf(arguments, sizeof arguments, "%s '%s' %s/o.npy", calls[k], file, folder);
        assert_int_not_equal(run("", arguments, true), 0);
        assert_non_null(strstr(out, "/a\\x1b[1m\\nb.wav: "));
        if (strchr(out, '\x1b') || strchr(out, '\n') != out + strlen(out) - 1) fail_msg("%s: %s", calls[k], out);
    }
    assert_int_equal(run("", "'a\x1b'", true), 2);
    assert_null(strchr(out, '\x1b'));
    assert_int_equal(remove(file), 0);
}

static void mistakes_on_the_command_line_give_2(void **state)
{
    (void)state;
    need_program();
    static const struct {
        const char *arguments, *sentence;
    } cases[] = {
        {"", "usage: warptone COMMAND"},
        {"inof", "unknown command \"inof\"; the nearest is \"info\""},
        {"info --jso", "warptone info: unknown option --jso; the nearest is --json"},
        {"info extra", "warptone info: \"extra\" is not expected"},
        {"models", "warptone models: want inspect PATH"},
        {"presets lits", "warptone presets: want list, show NAME, check FILE... or nodes [TYPE]"},
        {"analyze -f mel - x.npy", "warptone analyze: - as IN is not taken, want the names of audio files"},
        {"simulate", "warptone simulate: no plan was named, want one PLAN.yaml"},
        {"generate --prompt x", "warptone generate: no model was named, want --model PATH"},
        {"generate --model m x", "warptone generate: \"x\" is not expected, want --prompt TEXT"},
        {"generate --model m --strategy draft", "--strategy draft is given alone, want --draft PATH with it"},
        {"chat", "warptone chat: no model was named, want --model PATH"},
        {"kernels", "warptone kernels: want list, warm, pack, unpack or clear"},
        {"kernels lits", "warptone kernels: unknown \"lits\"; the nearest is \"list\""},
        {"kernels pack", "warptone kernels: pack: 0 arguments, want one, the folder"},
        {"kernels list more", "warptone kernels: list: 1 arguments, want none"},
        {"kernels warm --arch 75", "option --arch is \"75\", want integers in 80..999"},
    };
    assert_int_equal(run("", "presets nodes limitre --json", true), 3);
    assert_string_equal(out, "warptone presets: no node type 'limitre'; the nearest is 'limiter' (`warptone presets nodes` "
                             "lists them)\n");
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        assert_int_equal(run("", cases[k].arguments, true), 2);
        if (!strstr(out, cases[k].sentence) || (*cases[k].arguments && strchr(out, '\n')[1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[k].arguments, out, cases[k].sentence);
        run("", cases[k].arguments, false);
        assert_string_equal(out, ""); // nothing for scripts
    }
}

static void info_is_one_json_object(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("WARPTONE_BACKEND=cpu WARPTONE_CACHE=/nowhere/cache", "info --json", false), 0);
    json_t *info = parsed();
    assert_string_equal(json_string_value(json_object_get(json_object_get(info, "backend"), "name")), "cpu");
    const json_t *devices = json_object_get(info, "devices");
    const json_t *last = json_array_get(devices, json_array_size(devices) - 1); // the CPU stands after the GPUs
    assert_string_equal(json_string_value(json_object_get(last, "backend")), "cpu");
    assert_true(json_integer_value(json_object_get(last, "processors")) >= 1);
    assert_true(json_integer_value(json_object_get(last, "memory_bytes")) > 1 << 20);
    assert_int_equal(json_array_size(json_object_get(info, "parts")), 4);
    assert_true(json_is_string(json_object_get(json_object_get(info, "versions"), "libsndfile")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(info, "kernel_cache"), "folder")),
                        "/nowhere/cache");
    size_t k;
    const json_t *absent;
    json_array_foreach(json_object_get(info, "absent"), k, absent)
    {
        assert_true(json_string_length(json_object_get(absent, "name")) > 0);
        assert_true(json_string_length(json_object_get(absent, "why")) > 20); // a sentence
    }
    json_decref(info);
    assert_int_equal(run("", "info", false), 0);
    assert_non_null(strstr(out, "\ndevices\n"));
}

// What there is depends on the machine; that it is two lists, and that libraries print nothing beside them, does not.
static void info_lists_audio_devices_and_midi_ports(void **state)
{
    (void)state;
    need_program();
    if (run("", "info --audio --midi --json", true)) {
        print_message("skipped: %s", out); // PortAudio or RtMidi is not there
        skip();
    }
    json_t *lists = parsed();
    size_t k;
    json_t *item;
    assert_true(json_is_array(json_object_get(lists, "audio")));
    json_array_foreach(json_object_get(lists, "audio"), k, item)
        assert_true(json_integer_value(json_object_get(item, "number")) == (json_int_t)k);
    assert_true(json_is_array(json_object_get(lists, "midi")));
    json_array_foreach(json_object_get(lists, "midi"), k, item)
        assert_non_null(json_string_value(json_object_get(item, "name")));
    json_decref(lists);
}

static void simulate_is_one_json_object_and_tells_what_is_wrong(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("", "simulate presets/plans/studio.yaml --seconds 0.5 --json", false), 0);
    json_t *report = parsed();
    assert_string_equal(json_string_value(json_object_get(report, "name")), "studio");
    const json_t *first = json_array_get(json_object_get(report, "loads"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "missed")), 0);
    assert_true(json_real_value(json_object_get(json_object_get(first, "response_us"), "p99")) > 30);
    json_decref(report);
    assert_int_equal(run("", "simulate presets/plans/studio.yaml -s 0.5", false), 0);
    assert_non_null(strstr(out, "p99.9 us"));
    assert_int_equal(run("", "simulate /nowhere/plan.yaml", true), 1);
    assert_string_equal(out, "warptone simulate: /nowhere/plan.yaml: cannot be read: No such file or directory\n");
    assert_int_equal(run("", "simulate presets/hall.yaml", true), 3);
    assert_non_null(strstr(out, "presets/hall.yaml:"));
    assert_int_equal(run("", "simulate presets/plans/studio.yaml --seconds 0", true), 2);
    assert_int_equal(run("", "simulate", true), 2);
}

static void an_absent_nvrtc_is_told_and_gives_4(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("WARPTONE_NVRTC=/nowhere/libnvrtc.so", "info --json", false), 0);
    json_t *info = parsed();
    assert_true(json_is_null(json_object_get(json_object_get(info, "versions"), "nvrtc")));
    assert_non_null(strstr(out, "NVRTC JIT compiler not available: WARPTONE_NVRTC is set, but"));
    json_decref(info);
    assert_int_equal(run("WARPTONE_NVRTC=/nowhere/libnvrtc.so", "kernels warm --arch 90", true), 4);
    assert_non_null(strstr(out, "NVRTC JIT compiler not available"));
}

static void a_wrong_backend_is_told(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("WARPTONE_BACKEND=gpu", "info --json", false), 0);
    json_t *info = parsed();
    const json_t *backend = json_object_get(info, "backend");
    assert_true(json_is_null(json_object_get(backend, "name")));
    assert_string_equal(json_string_value(json_object_get(backend, "why")),
                        "WARPTONE_BACKEND is \"gpu\", want auto, cuda or cpu");
    json_decref(info);
}

static void kernels_are_listed_packed_and_cleared(void **state)
{
    (void)state;
    need_program();
    char environment[128], arguments[128];
    snprintf(environment, sizeof environment, "WARPTONE_CACHE=%s/cache", folder);
    assert_int_equal(run(environment, "kernels list --json", false), 0);
    json_t *list = parsed();
    assert_true(json_is_array(json_object_get(list, "kernels")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(list, "cache"), "entries")), 0);
    json_decref(list);
    snprintf(arguments, sizeof arguments, "kernels pack %s/pack --json", folder);
    assert_int_equal(run(environment, arguments, false), 0);
    assert_string_equal(out, "{\"entries\": 0}\n");
    snprintf(arguments, sizeof arguments, "kernels unpack %s/absent", folder);
    assert_int_equal(run(environment, arguments, true), 1);
    assert_non_null(strstr(out, "cannot read"));
    assert_int_equal(run(environment, "kernels clear", false), 0);
    assert_string_equal(out, "0 entries removed\n");
}

static void top_shows_a_load_and_tells_what_is_not_there(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("WARPTONE_BACKEND=cpu", "top --demo --json --once --interval 0.1", false), 0);
    json_t *view = parsed(), *rows = json_object_get(view, "rows");
    assert_int_equal(json_array_size(rows), 4);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 1), "name")), "llm");
    assert_true(json_integer_value(json_object_get(json_array_get(rows, 1), "memory_used_bytes")) > 0);
    json_decref(view);
    assert_int_equal(run("WARPTONE_BACKEND=cpu", "top --demo --interval 0.1", false), 0); // no terminal: one page
    assert_non_null(strstr(out, "\n  decode         best-effort"));
    assert_null(strchr(out, '\033'));
    assert_int_equal(run("", "top --pid 1", true), 3);
    assert_non_null(strstr(out, "telemetry: process 1 publishes no figures"));
    assert_int_equal(run("", "top --demo --pid 1", true), 2);
    assert_int_equal(run("", "top extra", true), 2);
}

static void models_are_inspected(void **state)
{
    (void)state;
    need_program();
    const char *golden = getenv("WARPTONE_TEST_GOLDEN") ? getenv("WARPTONE_TEST_GOLDEN") : "tests/golden";
    char arguments[4096];
    snprintf(arguments, sizeof arguments, "models inspect '%s/weights.gguf' --json", golden);
    assert_int_equal(run("", arguments, false), 0);
    json_t *all = parsed(), *config = json_object_get(all, "config"), *tensors = json_object_get(all, "tensors");
    assert_string_equal(json_string_value(json_object_get(config, "family")), "qwen3");
    assert_int_equal(json_integer_value(json_object_get(config, "head_width")), 16);
    assert_true(json_is_null(json_object_get(config, "quantization")));
    assert_int_equal(json_integer_value(json_object_get(all, "bytes")), 584);
    assert_int_equal(json_array_size(tensors), 4);
    const json_t *last = json_array_get(tensors, 3);
    assert_string_equal(json_string_value(json_object_get(last, "dtype")), "Q8_0");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(last, "shape"), 1)), 64);
    json_decref(all);
    snprintf(arguments, sizeof arguments, "models inspect '%s/weights.safetensors'", golden);
    assert_int_equal(run("", arguments, false), 0);
    assert_non_null(strstr(out, "safetensors, 5 tensors, 28 elements, 70 bytes"));
    assert_non_null(strstr(out, "safetensors carry no config, want config.json beside"));
    assert_non_null(strstr(out, "\n  scalar  F32      [] "));
    assert_int_equal(run("", "models inspect /absent", true), 1);
    assert_non_null(strstr(out, "warptone models: /absent: No such file or directory"));
    assert_int_equal(run("", "models inspect", true), 2);
}

static void quantised_models_are_inspected(void **state)
{
    (void)state;
    need_program();
    static llm_file file;
    char path[64], arguments[128];
    llm_llama_add(&file, NULL, NULL, 5);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    llm_file_write(&file, path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    llm_config_write(path, "{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":"
                           "{\"group_0\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\"},"
                           "\"input_activations\":{\"num_bits\":8,\"type\":\"float\",\"dynamic\":true}}}}");
    snprintf(arguments, sizeof arguments, "models inspect %s", folder);
    assert_int_equal(run("", arguments, false), 0);
    assert_non_null(strstr(out, "\"method\": \"compressed-tensors\", \"bits\": 8, \"type\": \"float\""));
    assert_non_null(strstr(out, "\"activations\": true"));
}

static void the_doctor_looks_and_measures(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("", "doctor --json --seconds 0.02", false), 0);
    json_t *all = parsed(), *jitter = json_array_get(json_object_get(all, "jitter"), 0);
    assert_true(json_array_size(json_object_get(all, "findings")) >= 6);
    assert_true(json_is_false(json_object_get(jitter, "cuda")));
    assert_true(json_integer_value(json_object_get(json_object_get(jitter, "late"), "count")) > 0);
    json_decref(all);
    assert_int_equal(run("", "doctor --seconds 0.02", false), 0);
    assert_non_null(strstr(out, "findings have an advice"));
    assert_int_equal(run("", "doctor --seconds 0", true), 2);
    if (run("", "doctor --json --awake --seconds 0.02", true))
        assert_non_null(strstr(out, "to keep processors awake put"));
    else
        assert_non_null(strstr(out, "\"awake\": true"));
}

static void a_full_standard_output_is_an_error(void **state)
{
    (void)state;
    need_program();
    assert_int_equal(run("", "info >/dev/full", false), 1);
}

static int begin(void **state)
{
    (void)state;
    return !find_program(program, sizeof program) || !mkdtemp(folder);
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_and_version_go_to_stdout),
        cmocka_unit_test(each_help_lists_its_options_once),
        cmocka_unit_test(names_are_shown_without_control_characters),
        cmocka_unit_test(mistakes_on_the_command_line_give_2),
        cmocka_unit_test(info_is_one_json_object),
        cmocka_unit_test(info_lists_audio_devices_and_midi_ports),
        cmocka_unit_test(simulate_is_one_json_object_and_tells_what_is_wrong),
        cmocka_unit_test(an_absent_nvrtc_is_told_and_gives_4),
        cmocka_unit_test(a_wrong_backend_is_told),
        cmocka_unit_test(kernels_are_listed_packed_and_cleared),
        cmocka_unit_test(top_shows_a_load_and_tells_what_is_not_there),
        cmocka_unit_test(models_are_inspected),
        cmocka_unit_test(quantised_models_are_inspected),
        cmocka_unit_test(the_doctor_looks_and_measures),
        cmocka_unit_test(a_full_standard_output_is_an_error),
    };
    return cmocka_run_group_tests_name("program", tests, begin, remove_folder);
}
