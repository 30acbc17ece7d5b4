#include "support/testing.h"
#include "../hosts/preset_edit.h"
#include <warptone/preset.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_edit(const char *before, int node, const char *setting, const char *value, const char *after)
{
    size_t length = strlen(before);
    char *text = strdup(before);
    assert_ok(preset_edit_set(&text, &length, node, setting, value));
    assert_string_equal(text, after);
    assert_int_equal(length, strlen(after));
    wt_preset *preset;
    assert_ok(wt_preset_parse("edited.yaml", text, length, &preset)); // still a preset
    wt_preset_destroy(preset);
    free(text);
}

static void a_value_is_replaced_and_all_else_stays(void **state)
{
    (void)state;
    assert_edit("name: a  # the name\nnodes:\n  - {node: gain,   gain_db: -3 } # quiet\n  - node: pan\n", 0, "gain_db",
                "1.5", "name: a  # the name\nnodes:\n  - {node: gain,   gain_db: 1.5 } # quiet\n  - node: pan\n");
    assert_edit("name: a\nnodes:\n  - node: gain\n    gain_db: \"-3\" # dB\n  - {node: mono}\n", 0, "gain_db", "2",
                "name: a\nnodes:\n  - node: gain\n    gain_db: 2 # dB\n  - {node: mono}\n");
}

static void a_value_that_is_absent_is_added_in_the_nodes_own_style(void **state)
{
    (void)state;
    assert_edit("name: a\nnodes:\n  - {node: mono}\n  - {node: gain} # here\n", 1, "gain_db", "-6",
                "name: a\nnodes:\n  - {node: mono}\n  - {node: gain, gain_db: -6} # here\n");
    assert_edit("name: a\nnodes:\n  - {node: gain, # first\n     id: loud # last\n    }\n", 0, "gain_db", "-6",
                "name: a\nnodes:\n  - {node: gain, # first\n     id: loud, gain_db: -6 # last\n    }\n");
    assert_edit("name: a\nnodes:\n  - id: b # name\n    node: gain # type\n    inputs:\n      - in\n", 0, "gain_db",
                "-6",
                "name: a\nnodes:\n  - id: b # name\n    node: gain # type\n    gain_db: -6\n    inputs:\n      - in\n");
    assert_edit("name: a\nnodes:\n- node: gain", 0, "gain_db", "-6", "name: a\nnodes:\n- node: gain\n  gain_db: -6");
}

static void characters_of_several_bytes_do_not_move_the_place(void **state)
{
    (void)state;
    assert_edit(
        "\xef\xbb\xbfname: caf\xc3\xa9\ndescription: \xe2\x82\xac\xe2\x82\xac\nnodes: [{node: gain, gain_db: 1}]\n", 0,
        "gain_db", "22",
        "\xef\xbb\xbfname: caf\xc3\xa9\ndescription: \xe2\x82\xac\xe2\x82\xac\nnodes: [{node: gain, gain_db: 22}]\n");
    assert_edit("name: a\r\nnodes:\r\n  - {node: gain, gain_db: 1}\r\n", 0, "gain_db", "3",
                "name: a\r\nnodes:\r\n  - {node: gain, gain_db: 3}\r\n");
}

static void a_node_that_is_not_there_is_refused(void **state)
{
    (void)state;
    const char *before = "name: a\nnodes:\n  - {node: gain}\n";
    size_t length = strlen(before);
    char *text = strdup(before);
    assert_fails(preset_edit_set(&text, &length, 1, "gain_db", "1"), WT_ERR_FORMAT,
                 "preset: no place for gain_db of node 2 in its text");
    assert_string_equal(text, before);
    free(text);
}

static void numbers_read_back_as_they_were(void **state)
{
    (void)state;
    static const float values[] = {0, -0.1f, 1.0f / 3, 20000, 1e-9f, 16777217.0f, 440.00003f};
    char text[32];
    for (int k = 0; k < (int)(sizeof values / sizeof *values); k++) {
        preset_edit_number(values[k], text);
        assert_true(strtof(text, NULL) == values[k]);
    }
    preset_edit_number(-0.1f, text);
    assert_string_equal(text, "-0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_replaced_and_all_else_stays),
        cmocka_unit_test(a_value_that_is_absent_is_added_in_the_nodes_own_style),
        cmocka_unit_test(characters_of_several_bytes_do_not_move_the_place),
        cmocka_unit_test(a_node_that_is_not_there_is_refused),
        cmocka_unit_test(numbers_read_back_as_they_were),
    };
    return cmocka_run_group_tests_name("preset_edit", tests, NULL, NULL);
}
