#include "support/realtime.h"
#include "support/testing.h"

#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

static void the_default_clock_is_the_monotonic_one(void **state)
{
    (void)state;
    struct timespec before, after;
    wt_clock zeroed = {0};
    for (int k = 0; k < 2; k++) {
        clock_gettime(CLOCK_MONOTONIC, &before);
        int64_t now_ns = wt_clock_now_ns(k ? &zeroed : NULL);
        clock_gettime(CLOCK_MONOTONIC, &after);
        assert_true(now_ns >= before.tv_sec * INT64_C(1000000000) + before.tv_nsec);
        assert_true(now_ns <= after.tv_sec * INT64_C(1000000000) + after.tv_nsec);
    }
}

static void the_default_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t last_ns = wt_clock_now_ns(NULL), first_ns = last_ns;
    for (int k = 0; k < 100000; k++) {
        int64_t now_ns = wt_clock_now_ns(NULL);
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
    usleep(2000);
    assert_true(wt_clock_now_ns(NULL) - first_ns >= 2000000); // and it does go on, in nanoseconds
}

static void a_manual_clock_moves_only_by_hand(void **state)
{
    (void)state;
    wt_manual_clock manual;
    wt_manual_clock_init(&manual, -5);
    assert_int_equal(wt_clock_now_ns(&manual.clock), -5);
    usleep(1000);
    assert_int_equal(wt_clock_now_ns(&manual.clock), -5);
    wt_manual_clock_advance(&manual, INT64_C(5000000000));
    assert_true(wt_clock_now_ns(&manual.clock) == INT64_C(4999999995));
}

static int64_t count_calls(void *user) { return ++*(int64_t *)user; }

static void any_function_can_be_a_clock(void **state)
{
    (void)state;
    int64_t calls = 0;
    wt_clock clock = {count_calls, &calls};
    assert_int_equal(wt_clock_now_ns(&clock), 1);
    assert_int_equal(wt_clock_now_ns(&clock), 2);
}

static void reading_a_clock_is_clean_in_a_real_time_section(void **state)
{
    (void)state;
    wt_manual_clock manual;
    wt_manual_clock_init(&manual, 0);
    RT_SECTION
    {
        wt_clock_now_ns(NULL);
        wt_clock_now_ns(&manual.clock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_clock_is_the_monotonic_one),
        cmocka_unit_test(the_default_clock_never_goes_back),
        cmocka_unit_test(a_manual_clock_moves_only_by_hand),
        cmocka_unit_test(any_function_can_be_a_clock),
        cmocka_unit_test(reading_a_clock_is_clean_in_a_real_time_section),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
