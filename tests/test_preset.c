#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/preset.h>

static wt_status parse(const char *text, wt_preset **preset)
{
    return wt_preset_parse("p.yaml", text, strlen(text), preset);
}

static void a_preset_becomes_a_chain(void **state)
{
    (void)state;
    wt_preset *preset;
    wt_chain *chain;
    assert_ok(parse("name: two\n"
                    "description: a cut and a lift\n"
                    "nodes:\n"
                    "  - {node: biquad, id: cut, shape: highpass, frequency_hz: 80}\n"
                    "  - node: gain\n"
                    "    gain_db: 6\n", &preset));
    assert_string_equal(wt_preset_name(preset), "two");
    assert_string_equal(wt_preset_description(preset), "a cut and a lift");
    assert_int_equal(wt_preset_channels(preset), 0);
    assert_false(wt_preset_needs_gpu(preset));
    assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = 2}, &chain));
    assert_string_equal(wt_chain_node_id(chain, 0), "cut");
    assert_true(wt_chain_get(chain, 1, 0) == 6);
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
}

static void what_yaml_gets_wrong_has_a_line(void **state)
{
    (void)state;
    const struct {
        const char *text, *sentence;
    } cases[] = {
        {"name: a\nnodes:\n  - {node: gain}\n  - {node: gain, gain_bd: 3}\n",
         "p.yaml:4: unknown key 'gain_bd'; the nearest is 'gain_db'"},
        {"name: a\nnodse: []\n", "p.yaml:2: unknown key 'nodse'; the nearest is 'nodes'"},
        {"name: a\n", "p.yaml:1: Missing required mapping field: nodes"},
        {"", "p.yaml: holds no preset, want name and nodes"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_preset *preset;
        assert_fails(parse(cases[k].text, &preset), WT_ERR_FORMAT, cases[k].sentence);
        assert_null(preset);
    }
}

static void what_the_chain_refuses_has_a_line(void **state)
{
    (void)state;
    const struct {
        const char *text, *sentence;
        wt_status status;
    } cases[] = {
        {"name: a\nnodes:\n  - node: gain\n    gain_db: 90\n", "p.yaml:4: a: gain: gain_db is 90, want -120..60 dB",
         WT_ERR_BAD_ARG},
        {"name: a\nnodes:\n  - {node: gian}\n",
         "p.yaml:3: a: node 1 has the unknown type 'gian'; the nearest is 'gain'", WT_ERR_NOT_FOUND},
        {"name: a\nnodes:\n  - {node: gain, id: x, inputs: [y]}\n  - {node: gain, id: y, inputs: [x]}\n",
         "p.yaml:3: a: x stands in a cycle, want a graph without feedback between nodes", WT_ERR_BAD_ARG},
        {"name: a\nnodes:\n  - {node: gain, q: 2}\n", "p.yaml:3: a: gain: a gain has no 'q'; the nearest is 'bypass'",
         WT_ERR_NOT_FOUND},
        {"name: a\nchannels: 1\nnodes:\n  - {node: gain}\n", "p.yaml:2: a takes 1 channel, the input has 2",
         WT_ERR_BAD_ARG},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_preset *preset;
        wt_chain *chain;
        assert_ok(parse(cases[k].text, &preset));
        assert_fails(wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = 2}, &chain),
                     cases[k].status, cases[k].sentence);
        assert_null(chain);
        wt_preset_destroy(preset);
    }
}

static void aliases_and_huge_texts_are_refused(void **state)
{
    (void)state;
    wt_preset *preset;
    assert_int_equal(parse("name: &a x\ndescription: *a\nnodes: [{node: gain}]\n", &preset), WT_ERR_FORMAT);
    char *huge = calloc(1, WT_PRESET_MAX_BYTES + 2);
    memset(huge, '#', WT_PRESET_MAX_BYTES + 1);
    assert_fails(parse(huge, &preset), WT_ERR_FORMAT,
                 "p.yaml: 1048577 bytes, want a preset of at most 1048576");
    free(huge);
}

static void the_midi_map_is_read(void **state)
{
    (void)state;
    wt_preset *preset;
    wt_chain *chain;
    int n;
    assert_ok(parse("name: a\nnodes:\n  - {node: gain}\n  - {node: biquad, id: cut, shape: highpass}\nmidi:\n"
                    "  - {cc: 7, channel: 1, param: gain/gain_db, min: -60, max: 6, curve: linear}\n"
                    "  - note: any\n"
                    "    param: cut.frequency_hz\n"
                    "  - {nrpn: 16382, channel: any, param: cut/q, curve: pick-up}\n"
                    "  - {bend: any, param: gain/gain_db, max: 0}\n"
                    "  - {program: 3, preset: hall}\n",
                    &preset));
    const wt_midi_row *rows = wt_preset_midi(preset, &n);
    assert_int_equal(n, 5);
    assert_int_equal(rows[0].source, WT_MIDI_CC);
    assert_int_equal(rows[0].number, 7);
    assert_int_equal(rows[0].channel, 1);
    assert_string_equal(rows[0].param, "gain/gain_db");
    assert_true(rows[0].min == -60 && rows[0].max == 6);
    assert_int_equal(rows[0].curve, WT_MIDI_LINEAR);
    assert_int_equal(rows[1].source, WT_MIDI_NOTE);
    assert_int_equal(rows[1].number, WT_MIDI_ANY);
    assert_int_equal(rows[1].channel, 0);
    assert_true(isnan(rows[1].min) && isnan(rows[1].max));
    assert_int_equal(rows[2].number, 16382);
    assert_int_equal(rows[2].curve, WT_MIDI_PICK_UP);
    assert_int_equal(rows[3].source, WT_MIDI_BEND);
    assert_int_equal(rows[4].source, WT_MIDI_PROGRAM);
    assert_string_equal(rows[4].preset, "hall");
    assert_null(rows[4].param);
    assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = 2}, &chain));
    assert_ok(wt_preset_check_midi(preset, chain));
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
}

#define MIDI_HEAD "name: a\nnodes:\n  - {node: gain}\nmidi:\n"

static void what_the_midi_map_gets_wrong_has_a_line(void **state)
{
    (void)state;
    const struct {
        const char *text, *sentence;
    } cases[] = {
        {"  - {cc: 7, param: gain/gain_db}\n  - {cc: 200, param: gain/gain_db}\n",
         "p.yaml:6: midi: cc is '200', want 0..119"},
        {"  - {note: c4, param: gain/gain_db}\n", "p.yaml:5: midi: note is 'c4', want 0..127 or any"},
        {"  - {bend: 3, param: gain/gain_db}\n", "p.yaml:5: midi: bend is '3', want any"},
        {"  - cc: 7\n    param: gain/gain_db\n    channel: 17\n",
         "p.yaml:7: midi: channel is '17', want 1..16 or any"},
        {"  - {param: gain/gain_db}\n", "p.yaml:5: midi: a row says not what moves it, want one of cc, cc14, nrpn, "
                                        "note, velocity, bend, pressure, program"},
        {"  - {cc: 1, note: 3, param: gain/gain_db}\n", "p.yaml:5: midi: a row has both cc and note, want one"},
        {"  - {cc: 1}\n", "p.yaml:5: midi: a row of cc has no param"},
        {"  - {cc: 1, param: gain_db}\n", "p.yaml:5: midi: param is 'gain_db', want NODE/PARAMETER"},
        {"  - {cc: 1, param: gain/gain_db, preset: hall}\n", "p.yaml:5: midi: a row of cc takes no preset"},
        {"  - {program: 1}\n", "p.yaml:5: midi: a row of program has no preset"},
        {"  - {program: 1, preset: hall, min: 3}\n", "p.yaml:5: midi: a row of program takes no min"},
        {"  - {cc: 1, param: gain/gain_db, min: loud}\n", "p.yaml:5: midi: min is 'loud', want a number"},
        {"  - {cc: 1, param: gain/gain_db, max: inf}\n", "p.yaml:5: midi: max is 'inf', want a number"},
        {"  - {cc: 1, param: gain/gain_db, curve: lineal}\n",
         "p.yaml:5: midi: unknown curve 'lineal'; the nearest is 'linear'"},
        {"  - {cc: 1, parm: gain/gain_db}\n", "p.yaml:5: unknown key 'parm'; the nearest is 'param'"},
        {"  - {cc: 1, name: gain/gain_db}\n", "p.yaml:5: unknown key 'name'; the nearest is 'note'"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_preset *preset;
        char text[512];
        snprintf(text, sizeof text, "%s%s", MIDI_HEAD, cases[k].text);
        assert_fails(parse(text, &preset), WT_ERR_FORMAT, cases[k].sentence);
        assert_null(preset);
    }
}

static void a_midi_map_that_does_not_fit_the_chain_has_a_line(void **state)
{
    (void)state;
    const struct {
        const char *text, *sentence;
        wt_status status;
    } cases[] = {
        {"  - {cc: 1, param: gian/gain_db}\n", "p.yaml:5: midi: a: no node 'gian'; the nearest is 'gain'",
         WT_ERR_NOT_FOUND},
        {"  - cc: 1\n    param: gain/gain\n",
         "p.yaml:6: midi: a: gain has no parameter 'gain'; the nearest is 'gain_db'", WT_ERR_NOT_FOUND},
        {"  - cc: 1\n    param: gain/gain_db\n    max: 90\n",
         "p.yaml:7: midi: max is 90, want -120..60 dB of gain_db", WT_ERR_BAD_ARG},
        {"  - {cc: 1, param: gain/gain_db, min: -6, max: 6, curve: log}\n",
         "p.yaml:5: midi: curve is log from -6 to 6, want both above 0", WT_ERR_BAD_ARG},
        {"  - {program: 1, preset: hal}\n", "p.yaml:5: midi: no preset 'hal'; the nearest is 'hall'",
         WT_ERR_NOT_FOUND},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_preset *preset;
        wt_chain *chain;
        char text[512];
        snprintf(text, sizeof text, "%s%s", MIDI_HEAD, cases[k].text);
        assert_ok(parse(text, &preset));
        assert_ok(wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = 2}, &chain));
        assert_fails(wt_preset_check_midi(preset, chain), cases[k].status, cases[k].sentence);
        wt_chain_destroy(chain);
        wt_preset_destroy(preset);
    }
}

// Every preset that comes with Warptone is there by name, builds for the channels it takes and makes sound that is
// finite and not silent out of noise.
static void every_preset_in_the_folder_runs(void **state)
{
    (void)state;
    char **names;
    int n_names;
    assert_ok(wt_preset_names(&names, &n_names));
    assert_true(n_names >= 1);
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        wt_chain *chain;
        assert_ok(wt_preset_load(names[k], &preset));
        assert_string_equal(wt_preset_name(preset), names[k]);
        assert_true(strlen(wt_preset_description(preset)) > 20);
        int channels = wt_preset_channels(preset) ? wt_preset_channels(preset) : 2;
        wt_chain_config config = {.rate_hz = 48000, .channels = channels};
        if (wt_preset_needs_gpu(preset)) {
            assert_int_equal(wt_preset_build(preset, &config, &chain), WT_ERR_UNSUPPORTED);
        } else {
            enum { FRAMES = 24000 };
            static float x[FRAMES], y[8][FRAMES];
            const float *in[64];
            float *out[64];
            double power = 0;
            uint64_t seed = 5;
            assert_ok(wt_preset_build(preset, &config, &chain));
            assert_true(wt_chain_out_channels(chain) <= 8);
            assert_ok(wt_preset_check_midi(preset, chain));
            for (int n = 0; n < FRAMES; n++) x[n] = 0.25f * noise(&seed);
            for (int c = 0; c < 64; c++) in[c] = x, out[c] = y[c % 8];
            for (int done = 0; done < wt_chain_latency_frames(chain) + FRAMES; done += FRAMES)
                assert_int_equal(wt_chain_process(chain, in, out, FRAMES), WT_OK);
            for (int n = FRAMES / 2; n < FRAMES; n++) power += (double)y[0][n] * y[0][n];
            assert_true(power > 1e-3 && power < 1e5); // mean power between -71 and +9 dB of full scale
            assert_int_equal(wt_chain_faults(chain), 0);
            wt_chain_destroy(chain);
        }
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
}

// From a telephone's rate to that of a studio.
static void every_preset_builds_at_every_common_rate(void **state)
{
    (void)state;
    static const double rates_hz[] = {8000, 11025, 16000, 44100, 96000, 192000};
    char **names;
    int n_names;
    assert_ok(wt_preset_names(&names, &n_names));
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        assert_ok(wt_preset_load(names[k], &preset));
        for (size_t r = 0; r < sizeof rates_hz / sizeof *rates_hz && !wt_preset_needs_gpu(preset); r++) {
            wt_chain *chain;
            const int channels = wt_preset_channels(preset) ? wt_preset_channels(preset) : 1;
            assert_ok(
                wt_preset_build(preset, &(wt_chain_config){.rate_hz = rates_hz[r], .channels = channels}, &chain));
            wt_chain_destroy(chain);
        }
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
}

// `warptone presets show room-reverb > mine.yaml`, then `-p mine.yaml`: its impulse response stays where it was.
static void a_copy_finds_the_files_of_its_origin(void **state)
{
    (void)state;
    wt_preset *preset, *copy;
    wt_chain *chain;
    char folder[] = "/tmp/warptone-preset-XXXXXX", path[64];
    const wt_chain_config config = {.rate_hz = 48000, .channels = 2};
    assert_ok(wt_preset_load("room-reverb", &preset));
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.yaml", folder);
    assert_ok(wt_preset_parse(path, wt_preset_text(preset), strlen(wt_preset_text(preset)), &copy));
    assert_ok(wt_preset_build(copy, &config, &chain));
    wt_chain_destroy(chain);
    wt_preset_destroy(copy);
    wt_preset_destroy(preset);

    // What is nowhere is told as beside the preset, and what is beside it comes first.
    static const char text[] = "name: a\nnodes:\n  - {node: convolution, file: ir/small-room.flac}\n";
    char wanted[256];
    assert_ok(wt_preset_parse(path, "name: a\nnodes:\n  - {node: convolution, file: no.wav}\n", 53, &preset));
    snprintf(wanted, sizeof wanted, "%s:3: a: convolution: %s/no.wav: cannot be opened: No such file or directory",
             path, folder);
    assert_fails(wt_preset_build(preset, &config, &chain), WT_ERR_FILE, wanted);
    wt_preset_destroy(preset);
    char command[256];
    snprintf(command, sizeof command, "mkdir '%s/ir' && echo no audio >'%s/ir/small-room.flac'", folder, folder);
    assert_int_equal(system(command), 0);
    assert_ok(wt_preset_parse(path, text, sizeof text - 1, &preset));
    assert_int_equal(wt_preset_build(preset, &config, &chain), WT_ERR_FORMAT);
    wt_preset_destroy(preset);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

// docs/nodes.md is made from the table (docs/make_nodes.py); what it lacks was not made anew.
static void the_reference_names_every_type_and_setting(void **state)
{
    (void)state;
    FILE *file = fopen("docs/nodes.md", "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20), key[128];
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    for (int t = 0; t < wt_n_node_types; t++) {
        const wt_node_type *type = wt_node_types[t];
        if (type->flags & WT_NODE_INTERNAL) continue;
        snprintf(key, sizeof key, "\n### %s\n", type->name);
        const char *section = strstr(text, key);
        if (!section) fail_msg("docs/nodes.md has no section on %s", type->name);
        const char *next = strstr(section + 1, "\n### ");
        for (int k = 0; k < type->n_params + type->n_options; k++) {
            const char *name = k < type->n_params ? type->params[k].name : type->options[k - type->n_params].name;
            snprintf(key, sizeof key, "| `%s` |", name);
            const char *row = strstr(section, key);
            if (!row || (next && row > next)) fail_msg("docs/nodes.md does not tell of %s of %s", name, type->name);
        }
    }
    free(text);
}

static void an_unknown_name_gets_the_nearest(void **state)
{
    (void)state;
    wt_preset *preset;
    assert_fails(wt_preset_load("telefone", &preset), WT_ERR_NOT_FOUND,
                 "no preset 'telefone'; the nearest is 'telephone'");
    assert_int_equal(wt_preset_load("/nowhere/at/all.yaml", &preset), WT_ERR_FILE);
    assert_fails(wt_preset_load(NULL, &preset), WT_ERR_BAD_ARG, "preset: the name is empty"); // as getenv may give it
    assert_fails(wt_preset_load("", &preset), WT_ERR_BAD_ARG, "preset: the name is empty");
}

int main(void)
{
    setenv("WARPTONE_PRESETS", "presets", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_preset_becomes_a_chain),
        cmocka_unit_test(what_yaml_gets_wrong_has_a_line),
        cmocka_unit_test(what_the_chain_refuses_has_a_line),
        cmocka_unit_test(aliases_and_huge_texts_are_refused),
        cmocka_unit_test(the_midi_map_is_read),
        cmocka_unit_test(what_the_midi_map_gets_wrong_has_a_line),
        cmocka_unit_test(a_midi_map_that_does_not_fit_the_chain_has_a_line),
        cmocka_unit_test(every_preset_in_the_folder_runs),
        cmocka_unit_test(every_preset_builds_at_every_common_rate),
        cmocka_unit_test(a_copy_finds_the_files_of_its_origin),
        cmocka_unit_test(the_reference_names_every_type_and_setting),
        cmocka_unit_test(an_unknown_name_gets_the_nearest),
    };
    return cmocka_run_group_tests_name("preset", tests, NULL, NULL);
}
