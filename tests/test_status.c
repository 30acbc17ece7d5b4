#include "support/testing.h"

#include <string.h>
#include <warptone/names.h>

static void every_code_has_its_own_sentence(void **state)
{
    (void)state;
    for (int a = 0; a < WT_N_STATUS; a++)
        for (int b = 0; b < a; b++) assert_string_not_equal(wt_status_text(a), wt_status_text(b));
    assert_string_equal(wt_status_text(WT_N_STATUS), "unknown status");
}

static void fail_returns_its_code_and_keeps_the_sentence(void **state)
{
    (void)state;
    assert_fails(wt_fail(WT_ERR_BAD_ARG, "fir: %d taps, want 1..%d", 0, 65536), WT_ERR_BAD_ARG,
                 "fir: 0 taps, want 1..65536");
    assert_fails(wt_fail(WT_ERR_FILE, "chain: %s", wt_last_error()), WT_ERR_FILE, "chain: fir: 0 taps, want 1..65536");
}

// A name in a sentence moves no cursor, hides nothing and begins no line; a compiler's words keep theirs.
static void control_characters_of_a_name_are_shown(void **state)
{
    (void)state;
    char shown[16];
    assert_fails(wt_fail(WT_ERR_FILE, "%s: cannot be opened", "a\x1b[31m\n\tb\x7f\xc2\x9b\xc3\xa9.wav"), WT_ERR_FILE,
                 "a\\x1b[31m\\n\\tb\\x7f\\u009b\xc3\xa9.wav: cannot be opened");
    assert_fails(wt_fail(WT_ERR_COMPILE, "x.cu(1): error\n  y"), WT_ERR_COMPILE, "x.cu(1): error\n  y");
    for (size_t size = 1; size <= sizeof shown; size++) {
        memset(shown, 'X', sizeof shown);
        wt_show_text("ab\x1b" "c", shown, size);
        assert_string_equal(shown, size < 2   ? ""
                                   : size < 3 ? "a"
                                   : size < 7 ? "ab"
                                   : size < 8 ? "ab\\x1b"
                                              : "ab\\x1b"
                                                "c");
        for (size_t i = strlen(shown) + 1; i < sizeof shown; i++) assert_int_equal(shown[i], 'X');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_own_sentence),
        cmocka_unit_test(fail_returns_its_code_and_keeps_the_sentence),
        cmocka_unit_test(control_characters_of_a_name_are_shown),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
