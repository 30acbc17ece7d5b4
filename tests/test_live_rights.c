// What a live program asks of the machine.
#include "support/audio_files.h"
#include "support/testing.h"

#include "../hosts/live_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static void processors_are_kept_awake_while_the_file_is_open(void **state)
{
    const char *path = test_path(state, "cpu_dma_latency");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), held;
    assert_true(fd >= 0);
    close(fd);
    assert_ok(live_rights_awake(path, &held));
    assert_true(fcntl(held, F_GETFD) & FD_CLOEXEC); // a program that we start does not hold it
    int32_t latency_us = -1;
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, &latency_us, sizeof latency_us),
                     sizeof latency_us); // the kernel wants 4 bytes, or a text
    assert_int_equal(latency_us, 0);
    close(fd), close(held);
}

static void what_is_not_permitted_is_told(void **state)
{
    int fd = 5;
    const char *path = test_path(state, "nothing/cpu_dma_latency");
    assert_int_equal(live_rights_awake(path, &fd), WT_ERR_UNSUPPORTED);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(wt_last_error(), "cpu_dma_latency: No such file or directory; to keep processors awake put "
                                            "KERNEL==\"cpu_dma_latency\", GROUP=\"audio\""));
}

static void memory_and_priority_are_tried(void **state)
{
    (void)state;
    char sentence[512] = "old";
    const bool all = live_rights(sentence, sizeof sentence);
    if (all)
        assert_string_equal(sentence, "");
    else
        assert_non_null(strstr(sentence, "expect dropouts under load; put \"@audio - rtprio 95\""));
}

static void a_refused_priority_has_its_reason(void **state)
{
    (void)state;
    assert_int_equal(live_rights_try_fifo(100), EINVAL); // 99 is the highest
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_are_kept_awake_while_the_file_is_open),
        cmocka_unit_test(what_is_not_permitted_is_told),
        cmocka_unit_test(a_refused_priority_has_its_reason),
        cmocka_unit_test(memory_and_priority_are_tried),
    };
    return cmocka_run_group_tests_name("live_rights", tests, test_folder_create, test_folder_remove);
}
