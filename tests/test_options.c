#include "support/testing.h"
#include "../hosts/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    bool verbose;
    const char *preset;
    int jobs;
    double gain;
} values;

enum { MAX_ARGS = 16 };

typedef struct line {
    int argc;
    char *argv[MAX_ARGS + 1];
    bool help;
    values v;
    char text[256];
} line;

/// Parse words with blanks between, after a command's name.
static wt_status parse(line *l, const char *words)
{
    *l = (line){.argc = 1, .argv = {"command"}};
    snprintf(l->text, sizeof l->text, "%s", words);
    char *rest = NULL;
    for (char *word = strtok_r(l->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) l->argv[l->argc++] = word;
    const wt_option options[] = {
        OPTION_FLAG("verbose", 'v', &l->v.verbose, "say more"),
        OPTION_TEXT("preset", 'p', &l->v.preset, "NAME", "the chain"),
        OPTION_INT("jobs", 'j', &l->v.jobs, "N", 1, 64, "files at once"),
        OPTION_NUMBER("gain", 0, &l->v.gain, "DB", 0, 0, "level"),
    };
    return wt_options_parse(options, 4, &l->argc, l->argv, &l->help);
}

static void options_stand_anywhere_and_in_every_form(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "in.wav --verbose --preset voice --jobs 4 --gain -6.5 out.wav",
        "--verbose --preset=voice in.wav --jobs=4 out.wav --gain=-6.5",
        "-v -p voice -j 4 in.wav out.wav --gain -6.5",
        "-vpvoice in.wav -j4 --gain -6.5 out.wav",
        "-vj4 -p voice --gain -6.5 -- in.wav out.wav",
    };
    for (int k = 0; k < 5; k++) {
        line l;
        assert_ok(parse(&l, forms[k]));
        assert_true(l.v.verbose);
        assert_string_equal(l.v.preset, "voice");
        assert_int_equal(l.v.jobs, 4);
        assert_true(l.v.gain == -6.5);
        assert_false(l.help);
        assert_int_equal(l.argc, 3);
        assert_string_equal(l.argv[0], "command");
        assert_string_equal(l.argv[1], "in.wav");
        assert_string_equal(l.argv[2], "out.wav");
        assert_null(l.argv[3]);
    }
}

static void a_dash_alone_and_what_follows_two_are_arguments(void **state)
{
    (void)state;
    line l;
    assert_ok(parse(&l, "- -v -- --verbose -x --"));
    assert_int_equal(l.argc, 5);
    assert_string_equal(l.argv[1], "-");
    assert_string_equal(l.argv[2], "--verbose");
    assert_string_equal(l.argv[3], "-x");
    assert_string_equal(l.argv[4], "--");
}

static void help_is_always_known(void **state)
{
    (void)state;
    line l;
    assert_ok(parse(&l, "--help"));
    assert_true(l.help);
    assert_ok(parse(&l, "-vh"));
    assert_true(l.help && l.v.verbose);
    assert_fails(parse(&l, "--help=all"), WT_ERR_BAD_ARG, "option --help takes no value, but \"all\" is given");
}

static void mistakes_are_named_with_what_was_wanted(void **state)
{
    (void)state;
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        {"--prset voice", "unknown option --prset; the nearest is --preset"},
        {"--=3", "unknown option --; the nearest is --jobs"},
        {"-x", "unknown option -x; --help lists what there is"},
        {"--preset", "option --preset needs a value: --preset NAME"},
        {"-j", "option --jobs needs a value: --jobs N"},
        {"--jobs four", "option --jobs is \"four\", want an integer in 1..64"},
        {"--jobs 4.5", "option --jobs is \"4.5\", want an integer in 1..64"},
        {"--jobs 0", "option --jobs is \"0\", want an integer in 1..64"},
        {"--jobs 65", "option --jobs is \"65\", want an integer in 1..64"},
        {"--jobs 99999999999999999999", "option --jobs is \"99999999999999999999\", want an integer in 1..64"},
        {"--gain loud", "option --gain is \"loud\", want a number"},
        {"--gain nan", "option --gain is \"nan\", want a number"},
        {"--gain=", "option --gain is \"\", want a number"},
        {"--verbose=yes", "option --verbose takes no value, but \"yes\" is given"},
    };
    for (int k = 0; k < (int)(sizeof cases / sizeof *cases); k++) {
        line l;
        assert_fails(parse(&l, cases[k].words), WT_ERR_BAD_ARG, cases[k].sentence);
    }
}

static void the_help_has_a_line_an_option(void **state)
{
    (void)state;
    int jobs;
    bool json;
    const wt_option options[] = {
        OPTION_INT("jobs", 'j', &jobs, "N", 1, 64, "files at once"),
        OPTION_FLAG("json", 0, &json, "for programs"),
    };
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    wt_options_print(out, options, 2);
    fclose(out);
    assert_string_equal(text, "\noptions:\n"
                              "  -j, --jobs N            files at once\n"
                              "      --json              for programs\n"
                              "  -h, --help              this text\n");
    free(text);
}

static void lists_of_integers_are_read_whole_or_refused(void **state)
{
    (void)state;
    int values[3], n_values = 0;
    assert_ok(wt_options_list("--arch", "80,90,120", 80, 999, values, 3, &n_values));
    assert_int_equal(n_values, 3);
    assert_true(values[0] == 80 && values[1] == 90 && values[2] == 120);
    static const char *const bad[] = {"", ",", "80,", ",80", "80 90", "75", "1000", "sm_80", "80,,90", "80x"};
    for (int k = 0; k < 10; k++)
        assert_int_equal(wt_options_list("--arch", bad[k], 80, 999, values, 3, &n_values), WT_ERR_BAD_ARG);
    assert_fails(wt_options_list("--arch", "80,90,100,120", 80, 999, values, 3, &n_values), WT_ERR_BAD_ARG,
                 "--arch is \"80,90,100,120\", want at most 3 values");
}

static void a_word_is_one_of_a_row(void **state)
{
    (void)state;
    const char *const words = "full hybrid";
    wt_status status = WT_OK;
    assert_int_equal(wt_options_word("mode", NULL, words, &status), 0);
    assert_int_equal(wt_options_word("mode", "full", words, &status), 0);
    assert_int_equal(wt_options_word("mode", "hybrid", words, &status), 1);
    assert_ok(status);
    const char *const bad[] = {"", "hybri", "hybrids", "full hybrid", " "};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        status = WT_OK;
        assert_int_equal(wt_options_word("mode", bad[k], words, &status), 0);
        assert_int_equal(status, WT_ERR_BAD_ARG);
    }
    status = WT_OK;
    (void)wt_options_word("by", "b", "loudness rms peak", &status);
    (void)wt_options_word("mode", "b", words, &status); // the first stays
    assert_fails(status, WT_ERR_BAD_ARG, "--by is \"b\", want loudness, rms or peak");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_anywhere_and_in_every_form),
        cmocka_unit_test(a_dash_alone_and_what_follows_two_are_arguments),
        cmocka_unit_test(help_is_always_known),
        cmocka_unit_test(mistakes_are_named_with_what_was_wanted),
        cmocka_unit_test(the_help_has_a_line_an_option),
        cmocka_unit_test(lists_of_integers_are_read_whole_or_refused),
        cmocka_unit_test(a_word_is_one_of_a_row),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
