// The progress line belongs to the program and not to the library, so it is compiled in here.
#include "../hosts/terminal_progress.c"

#include "support/testing.h"

#include <fcntl.h>

static void the_line_says_what_is_known(void **state)
{
    (void)state;
    const wt_progress audio = {.verb = "processing", .n_items = 12, .total = 600, .unit = "s"};
    char line[256];
    wt_progress_format(&audio, 3, 150, 2, "take-04.wav", 120, line, sizeof line);
    assert_string_equal(line,
                        "processing  3/12  [======>                 ]  25 %  75x real time  6.0 s left  take-04.wav");
    wt_progress_format(&audio, 12, 600, 3700, NULL, 120, line, sizeof line);
    assert_string_equal(line, "processing  12/12  [========================] 100 %  0.2x real time  0.0 s left");
    wt_progress_format(&audio, 0, 1, 0, NULL, 120, line, sizeof line); // no rate before there is time to measure
    assert_string_equal(line, "processing  0/12  [>                       ]   0 %");

    const wt_progress unknown = {.verb = "reading", .unit = "MB"};
    wt_progress_format(&unknown, 0, 42, 4, NULL, 120, line, sizeof line);
    assert_string_equal(line, "reading  10 MB/s");
    const wt_progress items = {.verb = "checking", .n_items = 4};
    wt_progress_format(&items, 1, 0, 1000, NULL, 120, line, sizeof line);
    assert_string_equal(line, "checking  1/4  [======>                 ]  25 %  50:00 left");
}

static void the_line_fits_every_terminal(void **state)
{
    (void)state;
    const wt_progress p = {.verb = "processing", .n_items = 1000000, .total = 1e9, .unit = "s"};
    char line[256];
    for (int columns = 0; columns < 300; columns++) {
        wt_progress_format(&p, 999999, 3e8, 1e5, "a/very/long/path/to/a/file/with/a/name/that/goes/on.wav", columns,
                           line, sizeof line);
        assert_true((int)strlen(line) <= columns);
    }
}

static void at_most_twenty_redraws_a_second_and_a_clean_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    wt_manual_clock clock;
    wt_manual_clock_init(&clock, 0);
    wt_progress p = {
        .verb = "processing", .total = 100, .unit = "s", .fd = ends[1], .columns = 80, .clock = clock.clock};
    wt_progress_begin(&p);
    for (int k = 0; k < 10000; k++) { // one second
        wt_progress_move(&p, 0, k * 0.01, "x.wav");
        wt_manual_clock_advance(&clock, 100000);
    }
    wt_progress_end(&p);
    wt_progress_move(&p, 0, 100, "x.wav"); // after the end: nothing
    static char text[65536];
    const ssize_t size = read(ends[0], text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = 0;
    int n_redraws = 0;
    for (char *at = text; (at = strchr(at, '\r')); at++) n_redraws++;
    assert_int_equal(n_redraws, 21); // and the one that removes the line
    assert_string_equal(text + size - 4, "\r\x1b[K");
    assert_null(strchr(text, '\n'));
    close(ends[0]);
    close(ends[1]);
}

static void nothing_is_drawn_where_no_terminal_is(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    wt_progress p = {.verb = "processing", .total = 100, .unit = "s"};
    wt_progress_begin(&p);
    wt_progress_move(&p, 0, 50, NULL);
    wt_progress_end(&p);
    dup2(saved, STDERR_FILENO);
    close(saved);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), -1);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_says_what_is_known),
        cmocka_unit_test(the_line_fits_every_terminal),
        cmocka_unit_test(at_most_twenty_redraws_a_second_and_a_clean_end),
        cmocka_unit_test(nothing_is_drawn_where_no_terminal_is),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
