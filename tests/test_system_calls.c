// The guard that a kernel gives: a section in which the audio thread makes a system call is seen, whoever makes it.
#include "support/testing.h"
#include "support/live_check.h"

#include "../bench/support/system_calls.c"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 64, BLOCKS = 2000 };

static void calls_are_seen_and_made(void **state)
{
    (void)state;
    if (!system_calls_watch()) skip();
    const long pid = getpid();
    system_calls_begin();
    assert_false(system_calls_end());
    assert_int_equal(system_calls_last(), -1);
    system_calls_begin();
    const long told = syscall(SYS_getpid), again = syscall(SYS_getpid);
    assert_true(system_calls_end());
    assert_int_equal(system_calls_last(), SYS_getpid);
    assert_int_equal(told, pid);
    assert_int_equal(again, pid);
    system_calls_begin();
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL); // from inside the C library
    assert_true(system_calls_end());
    assert_int_equal(system_calls_last(), SYS_clock_nanosleep);
}

static void a_callback_makes_none(void **state)
{
    (void)state;
    if (!system_calls_watch()) skip();
    float audio[4][BLOCK] = {{0}};
    const float *in[] = {audio[0], audio[1]};
    float *out[] = {audio[2], audio[3]};
    wt_live *live = live_of(&(wt_live_config){.rate_hz = 48000, .channels = 2, .max_frames = BLOCK}, &live_full_voice);
    for (int k = 0; k < BLOCKS; k++) {
        for (int n = 0; n < BLOCK; n++) audio[0][n] = audio[1][n] = (float)((k * BLOCK + n) % 97) / 97 - 0.5f;
        if (k == BLOCKS / 2) assert_int_equal(wt_live_set(live, 0, 0, wt_live_get(live, 0, 0) * 1.1f), WT_OK);
        system_calls_begin();
        const wt_status status = wt_live_process(live, in, out, BLOCK);
        if (system_calls_end()) fail_msg("block %d made system call %d", k, system_calls_last());
        assert_int_equal(status, WT_OK);
    }
    wt_live_destroy(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_seen_and_made),
        cmocka_unit_test(a_callback_makes_none),
    };
    return cmocka_run_group_tests_name("system calls", tests, NULL, NULL);
}
