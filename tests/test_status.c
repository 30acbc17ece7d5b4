#include "support/testing.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_own_sentence),
        cmocka_unit_test(fail_returns_its_code_and_keeps_the_sentence),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
