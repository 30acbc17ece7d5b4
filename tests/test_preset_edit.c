#include "support/testing.h"
#include "../hosts/preset_edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRESET_ROWS = 32 };

static wt_preset *parsed(const char *text)
{
    wt_preset *preset;
    assert_ok(wt_preset_parse("presets/p.yaml", text, strlen(text), &preset));
    return preset;
}

/// Settings as text, without the one of `node` that is called `param`.
static char *settings_of(const wt_preset *preset, int node, const char *param)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    const wt_chain_desc *chain = wt_preset_chain(preset);
    fprintf(out, "%s %s %d %s\n", wt_preset_name(preset), wt_preset_description(preset), wt_preset_channels(preset),
            chain->output ? chain->output : "");
    for (int n = 0; n < chain->n_nodes; n++) {
        const wt_node_desc *d = &chain->nodes[n];
        fprintf(out, "%s %s %s\n", d->type, d->id ? d->id : "", d->side ? d->side : "");
        for (int k = 0; k < d->n_inputs; k++) fprintf(out, "  %s\n", d->inputs[k]);
        for (int k = 0; k < d->n_settings; k++)
            if (n != node || strcmp(d->settings[k].name, param))
                fprintf(out, "  %s: %s\n", d->settings[k].name, d->settings[k].text);
    }
    fclose(out);
    return text;
}

static const char *setting_of(const wt_preset *preset, int node, const char *param)
{
    const wt_node_desc *d = &wt_preset_chain(preset)->nodes[node];
    for (int k = 0; k < d->n_settings; k++)
        if (!strcmp(d->settings[k].name, param)) return d->settings[k].text;
    return NULL;
}

/// Lines of `after` that are new; fails when one of `before` went or moved.
static int n_new_lines(const char *before, const char *after)
{
    int n_new = 0;
    while (*after) {
        const size_t a = strcspn(after, "\n"), b = strcspn(before, "\n");
        const bool same = a == b && !strncmp(before, after, a);
        if (same) before += b + (before[b] != 0);
        n_new += !same;
        after += a + (after[a] != 0);
    }
    assert_int_equal(*before, 0);
    return n_new;
}

static void check_edit(const wt_preset *preset, int node, const wt_param_info *info)
{
    const float value = info->min + 0.37f * (info->max - info->min);
    char *text = strdup(wt_preset_text(preset));
    const char *old = setting_of(preset, node, info->name);
    assert_ok(preset_edit_param("p.yaml", &text, node, info->name, value));
    wt_preset *edited = parsed(text);
    const char *got = setting_of(edited, node, info->name);
    assert_non_null(got);
    assert_true(strtof(got, NULL) == value);
    char *a = settings_of(preset, node, info->name), *b = settings_of(edited, node, info->name);
    assert_string_equal(a, b);
    free(a), free(b);
    // back again: a value that stood there is written as it was where it was in its shortest form
    if (old) {
        char *back = strdup(text), shortest[32];
        assert_ok(preset_edit_param("p.yaml", &back, node, info->name, strtof(old, NULL)));
        snprintf(shortest, sizeof shortest, "%g", (double)strtof(old, NULL));
        if (!strcmp(shortest, old)) assert_string_equal(back, wt_preset_text(preset));
        free(back);
    }
    wt_preset_destroy(edited);
    free(text);
}

static void every_parameter_of_every_preset_is_edited_and_nothing_else(void **state)
{
    (void)state;
    char **names;
    int n_names, n_edits = 0;
    assert_ok(wt_preset_names(&names, &n_names));
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        assert_ok(wt_preset_load(names[k], &preset));
        const wt_chain_desc *chain = wt_preset_chain(preset);
        for (int n = 0; n < chain->n_nodes; n++) {
            const wt_node_type *type = wt_node_type_find(chain->nodes[n].type);
            for (int p = 0; p < type->n_params; p++, n_edits++) check_edit(preset, n, &type->params[p]);
        }
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
    assert_true(n_edits > 100);
}

static void comments_and_forms_stay(void **state)
{
    (void)state;
    static const struct {
        const char *before, *param, *after;
        int node;
        float value;
    } cases[] = {
        {"# mine\nname: \"h\xc3\xa4ll\" # \xe2\x99\xaa\nnodes:\n  - {node: gain, gain_db: -3.0 } # low\n", "gain_db",
         "# mine\nname: \"h\xc3\xa4ll\" # \xe2\x99\xaa\nnodes:\n  - {node: gain, gain_db: 4.5 } # low\n", 0, 4.5f},
        {"name: a\r\nnodes:\r\n  - node: gain # here\r\n    id: x\r\n", "gain_db",
         "name: a\r\nnodes:\r\n  - node: gain # here\r\n    gain_db: 2\r\n    id: x\r\n", 0, 2},
        {"name: a\nnodes:\n- node: gain", "gain_db", "name: a\nnodes:\n- node: gain\n  gain_db: 2\n", 0, 2},
        {"{name: a, nodes: [{node: gain}, {node: gain, gain_db: '3'}]}", "gain_db",
         "{name: a, nodes: [{node: gain}, {node: gain, gain_db: 0.1}]}", 1, 0.1f},
        {"{name: a, nodes: [{node: gain,}, {node: gain}]}", "gain_db",
         "{name: a, nodes: [{node: gain, gain_db: -7,}, {node: gain}]}", 0, -7},
        {"\xef\xbb\xbfname: a\nnodes:\n  - {node: gain, gain_db: 1}\n", "gain_db",
         "\xef\xbb\xbfname: a\nnodes:\n  - {node: gain, gain_db: 0.30000004}\n", 0, 0.30000004f},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char *text = strdup(cases[k].before);
        const float value = cases[k].value;
        assert_ok(preset_edit_param("p.yaml", &text, cases[k].node, cases[k].param, value));
        assert_string_equal(text, cases[k].after);
        wt_preset *edited = parsed(text);
        assert_true(strtof(setting_of(edited, cases[k].node, cases[k].param), NULL) == value);
        wt_preset_destroy(edited);
        free(text);
    }
}

static void what_cannot_be_edited_stays_and_is_told(void **state)
{
    (void)state;
    const char *before = "name: a\nnodes:\n  - {node: gain}\n";
    char *text = strdup(before);
    assert_fails(preset_edit_param("p.yaml", &text, 1, "gain_db", 1), WT_ERR_NOT_FOUND, "p.yaml: no node 2 to edit");
    assert_fails(preset_edit_param("p.yaml", &text, 0, "no_such", 1), WT_ERR_FORMAT,
                 "p.yaml: no_such cannot be written into this text; write it by hand");
    assert_string_equal(text, before);
    free(text);
    before = "name: a\nnodes:\n  - {node: gain}\n...\n";
    text = strdup(before);
    const wt_midi_row row = {.number = 7, .param = "gain/gain_db", .min = NAN, .max = NAN};
    assert_fails(preset_edit_midi("p.yaml", &text, &row, 1), WT_ERR_FORMAT,
                 "p.yaml: the MIDI map cannot be written into this text; write it by hand");
    assert_string_equal(text, before);
    free(text);
}

// ---- the MIDI map

static const wt_midi_row
    volume = {.source = WT_MIDI_CC,
              .number = 7,
              .channel = 1,
              .param = "gain/gain_db",
              .min = -60,
              .max = 6.5f,
              .curve = WT_MIDI_PICK_UP},
    wheel = {.source = WT_MIDI_BEND, .number = WT_MIDI_ANY, .param = "gain/gain_db", .min = NAN, .max = NAN},
    program = {.source = WT_MIDI_PROGRAM, .number = 3, .preset = "my \"hall\"", .min = NAN, .max = NAN};

#define VOLUME  "{cc: 7, channel: 1, param: gain/gain_db, min: -60, max: 6.5, curve: pick-up}"
#define WHEEL   "{bend: any, param: gain/gain_db}"
#define PROGRAM "{program: 3, preset: \"my \\\"hall\\\"\"}"

static void the_midi_map_is_added_changed_and_taken_away(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        wt_midi_row rows[3];
        int n_rows;
    } cases[] = {
        {"name: a\nnodes: [{node: gain}] # end",
         "name: a\nnodes: [{node: gain}] # end\nmidi:\n  - " VOLUME "\n  - " PROGRAM "\n",
         {volume, program},
         2},
        {"name: a\nmidi:\n# one\n- " WHEEL
         " # wheel\n# two\n- cc: 7\n  param: gain/gain_db # seven\n\nnodes: [{node: gain}]\n",
         "name: a\nmidi:\n# one\n- " WHEEL " # wheel\n# two\n- " VOLUME "\n\nnodes: [{node: gain}]\n",
         {volume, wheel},
         2},
        {"name: a\nnodes: [{node: gain}]\nmidi:\n  - " VOLUME "\n  - " WHEEL " # stays\n  - " PROGRAM "\n",
         "name: a\nnodes: [{node: gain}]\nmidi:\n  - " WHEEL " # stays\n",
         {wheel},
         1},
        {"name: a\nmidi:\n  - " VOLUME "\n  -\n    bend: any\n    param: gain/gain_db\nnodes: [{node: gain}]\n",
         "name: a\nnodes: [{node: gain}]\n",
         {{0}},
         0},
        {"name: a\nmidi: [] # none yet\nnodes: [{node: gain}]\n",
         "name: a\nmidi: [" WHEEL ", " VOLUME "] # none yet\nnodes: [{node: gain}]\n",
         {wheel, volume},
         2},
        {"{name: a, nodes: [{node: gain}]}", "{name: a, nodes: [{node: gain}], midi: [" WHEEL "]}", {wheel}, 1},
        {"name: a\r\nnodes: [{node: gain}]\r\nmidi:\r\n  - " WHEEL "\r\n",
         "name: a\r\nnodes: [{node: gain}]\r\nmidi:\r\n  - " WHEEL "\r\n  - " PROGRAM "\r\n",
         {program, wheel},
         2},
        {"name: a\nnodes: [{node: gain}]\nmidi:\n  - {bend: any,   param: gain/gain_db}", // nothing changes
         "name: a\nnodes: [{node: gain}]\nmidi:\n  - {bend: any,   param: gain/gain_db}",
         {wheel},
         1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char *text = strdup(cases[k].before);
        assert_ok(preset_edit_midi("p.yaml", &text, cases[k].rows, cases[k].n_rows));
        assert_string_equal(text, cases[k].after);
        free(text);
    }
}

static void every_preset_takes_a_midi_map_and_gives_it_back(void **state)
{
    (void)state;
    char **names;
    int n_names, n;
    assert_ok(wt_preset_names(&names, &n_names));
    for (int k = 0; k < n_names; k++) {
        wt_preset *preset;
        assert_ok(wt_preset_load(names[k], &preset));
        wt_midi_row rows[PRESET_ROWS];
        const wt_midi_row *old = wt_preset_midi(preset, &n);
        assert_true(n + 3 <= PRESET_ROWS);
        if (n) memcpy(rows, old, sizeof *rows * (size_t)n);
        rows[n] = volume, rows[n + 1] = wheel, rows[n + 2] = program;
        char *text = strdup(wt_preset_text(preset));
        assert_ok(preset_edit_midi("p.yaml", &text, rows, n + 3));
        assert_int_equal(n_new_lines(wt_preset_text(preset), text), n ? 3 : 4);
        wt_preset *edited = parsed(text);
        char *a = settings_of(preset, -1, ""), *b = settings_of(edited, -1, "");
        assert_string_equal(a, b);
        free(a), free(b);
        wt_preset_destroy(edited);
        assert_ok(preset_edit_midi("p.yaml", &text, rows, n));
        assert_string_equal(text, wt_preset_text(preset));
        free(text);
        wt_preset_destroy(preset);
    }
    wt_preset_names_free(names, n_names);
}

int main(void)
{
    setenv("WARPTONE_PRESETS", "presets", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_of_every_preset_is_edited_and_nothing_else),
        cmocka_unit_test(comments_and_forms_stay),
        cmocka_unit_test(what_cannot_be_edited_stays_and_is_told),
        cmocka_unit_test(the_midi_map_is_added_changed_and_taken_away),
        cmocka_unit_test(every_preset_takes_a_midi_map_and_gives_it_back),
    };
    return cmocka_run_group_tests_name("preset_edit", tests, NULL, NULL);
}
