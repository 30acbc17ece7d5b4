// The page of the live view as text, and the view itself on a terminal of its own. Both parts belong to the program and
// not to the library, so what draws is compiled in here.
#include "fake_session.h"

#include "../hosts/cmd_live_view.c"
#include "../hosts/terminal_screen.c"

#include "support/testing.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>

/// A page with something in every part.
static void fill(live_view_page *page, live_session *s)
{
    fake_session_init(s);
    *page = (live_view_page){
        .in = {{-3.6f, -1, -9.6f}, {-INFINITY, -INFINITY, -INFINITY}},
        .out = {{-20, 0, -30}},
        .n_in = 2,
        .n_out = 1,
        .n_params = FAKE_PARAMS,
        .selected = 1,
        .readings = {{"limiter/gain_reduction_db", 6}, {"meter/loudness_lufs", -23.5f}, {"gate/open", -1e-9f}},
        .n_readings = 3,
        .bar_from_ns = 10000,
        .bar_to_ns = 1000000,
        .bars = {[3] = 0.9, [4] = 0.0899, [5] = 0.01, [23] = 0.0001},
        .partitions = {{"audio", 8, 0.12}, {"llm", 124, -1}, {"files", 0, 1}},
        .n_partitions = 3,
    };
    memcpy(page->params, s->params, sizeof s->params);
    live_session_get_stats(s, &page->stats);
}

static const char *text_of(const live_view_page *page, const live_view_size *size)
{
    static char text[PAGE_BYTES];
    assert_true(live_view_text(page, size, text, sizeof text) < sizeof text);
    return text;
}

static void the_page_in_ascii(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    assert_string_equal(text_of(&page, &(live_view_size){.columns = 80, .rows = 30}),
                        "warptone live  voice\n"
                        "fake  48000 Hz  64 frames  latency 96 frames, 2.00 ms  path cpu  not real-time\n"
                        "load 12.5 %  server 25.0 %  blocks 1000  misses 3 (late 2, size 1)  xruns 4\n"
                        "\n"
                        "in   1 [##########################################===== | ]  -9.6  -1.0 dBFS\n"
                        "in   2 [                                                  ]  -inf  -inf dBFS\n"
                        "out  1 [#########################========                |] -30.0   0.0 dBFS\n"
                        "\n"
                        "limiter/gain_reduction_db                 6 dB  #####\n"
                        "meter/loudness_lufs                   -23.5 \n"
                        "gate/open                                 0 \n"
                        "  low_cut/frequency_hz                   80 Hz     -----o--------------\n"
                        "> gain/gain_db                           -6 dB     ------------o-------\n"
                        "  gain/balance                            0        ----------o---------\n"
                        "  gain/bypass                             0        o-------------------\n"
                        "\n"
                        "process us  p50 90.0  p99 150.0  p99.9 160.0  p99.99 170.0  max 180.0\n"
                        "   10 us |      %%****                                  ==| 1 ms\n"
                        "partitions  audio 8 SMs 12 %  llm 124 SMs  files 100 %\n"
                        "\n"
                        "arrows choose and change  r reset  b bypass  s save  ? help  q quit\n");
}

static void the_page_in_utf8_and_colour(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    const char *text = text_of(&page, &(live_view_size){.columns = 80, .rows = 30, .utf8 = true});
    assert_non_null(strstr(text, "\xe2\x96\x88\xe2\x96\x92")); // a full block, then a shaded one
    assert_non_null(strstr(text, "\xe2\x94\x82]"));            // the held peak
    assert_non_null(strstr(text, "\xe2\x94\x80\xe2\x97\x8f\xe2\x94\x80"));
    assert_non_null(strstr(text, "\xe2\x96\x87\xe2\x96\x87\xe2\x96\x86\xe2\x96\x86"));
    assert_null(strchr(text, 27));
    page.stats.live.bypass = true;
    text = text_of(&page, &(live_view_size){.columns = 80, .rows = 30, .color = true});
    assert_non_null(strstr(text, "\033[7mBYPASS\033[0m"));
    assert_non_null(strstr(text, "\033[31mmisses 3"));
    assert_non_null(strstr(text, "\033[32m#"));
}

/// A kernel that has fewer threads than its chain wants is slower, and nothing else would tell.
static void threads_that_are_missing_are_told(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    page.stats.live.n_threads = 384;
    assert_non_null(strstr(text_of(&page, &(live_view_size){.columns = 120, .rows = 30}),
                           "  path cpu with 384 of 512 threads  not real-time\n"));
}

/// Cells of the widest line, and lines, where every character is one byte.
static void measure(const char *text, int *columns, int *rows)
{
    *columns = *rows = 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, ++*rows)
        if (end - line > *columns) *columns = (int)(end - line);
}

static void the_page_fits_every_terminal(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    for (int k = FAKE_PARAMS; k < 100; k++) page.params[k] = page.params[0];
    page.n_params = 100;
    for (int help = 0; help < 2; help++)
        for (int rows = 0; rows < 60; rows++)
            for (int columns = 0; columns < 200; columns += 7) {
                int n_columns, n_rows;
                page.help = help;
                page.selected = (rows * 13 + columns) % 100;
                measure(text_of(&page, &(live_view_size){.columns = columns, .rows = rows}), &n_columns, &n_rows);
                assert_true(n_columns <= columns && n_rows <= rows);
            }
    page.help = false;
    char small[100];
    size_t whole = live_view_text(&page, &(live_view_size){.columns = 80, .rows = 30}, small, sizeof small);
    assert_true(whole > sizeof small && strlen(small) == sizeof small - 1);
}

static void the_chosen_parameter_is_in_sight(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    page.n_params = 100;
    for (int k = 0; k < 100; k++) {
        page.params[k] = page.params[0];
        snprintf(page.params[k].name, sizeof page.params[k].name, "number_%02d", k);
    }
    for (int k = 0; k < 100; k++) {
        char name[32];
        page.selected = k;
        snprintf(name, sizeof name, "> low_cut/number_%02d ", k);
        assert_non_null(strstr(text_of(&page, &(live_view_size){.columns = 80, .rows = 24}), name));
    }
}

static void names_cannot_move_the_cursor(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    fill(&page, &s);
    page.stats.preset = "a\033[2J\nb";
    page.message = "c\rd";
    const char *text = text_of(&page, &(live_view_size){.columns = 80, .rows = 30});
    assert_non_null(strstr(text, "a?[2J?b\n"));
    assert_non_null(strstr(text, "c?d\n"));
}

static void one_line_for_what_is_no_terminal(void **state)
{
    (void)state;
    live_session s;
    live_view_page page;
    char line[512];
    fill(&page, &s);
    live_view_line(&page, line, sizeof line);
    assert_string_equal(line, "2 s  in -9.6 out -30.0 dBFS  load 12.5 %  p99 150.0 us  misses 3  xruns 4\n");
    strcpy(page.stats.last_error, "voice.yaml:3: no");
    live_view_line(&page, line, sizeof line);
    assert_non_null(strstr(line, "  misses 3  xruns 4  voice.yaml:3: no\n"));
    strcpy(page.stats.last_error, "voice.yaml:3: no");
    live_view_line(&page, line, sizeof line);
    assert_non_null(strstr(line, "  misses 3  xruns 4  voice.yaml:3: no\n"));
}

static void what_went_wrong_stands_at_the_foot(void **state)
{
    (void)state;
    static live_session s;
    static view v = {.session = &s};
    fake_session_init(&s);
    assert_ok(wt_histogram_create(&s.histogram));
    gather(&v);
    assert_null(v.page.message);
    strcpy(s.error, "voice.yaml:3: no");
    gather(&v);
    assert_string_equal(v.page.message, "voice.yaml:3: no");
    say(&v, "saved");
    gather(&v);
    assert_string_equal(v.page.message, "saved"); // for a while
    wt_histogram_destroy(s.histogram);
}

// ---- on a terminal

typedef struct screen {
    int fd;
    pid_t child;
    char seen[1 << 20];
    size_t n_seen;
} screen;

/// The view of a fake session in a process of its own; its exit code says what its keys did.
static void open_screen(screen *t)
{
    t->n_seen = 0;
    t->child = forkpty(&t->fd, NULL, NULL, &(struct winsize){.ws_row = 30, .ws_col = 90});
    assert_true(t->child >= 0);
    if (t->child) return;
    static live_session s;
    fake_session_init(&s);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    setenv("NO_COLOR", "1", 1);
    if (wt_interrupt_install() || wt_histogram_create(&s.histogram)) _exit(100);
    wt_histogram_record(s.histogram, 50000);
    wt_status status = live_view_run(&s, 0);
    bool turned = s.params[1].value > -6 && s.params[0].value == 100 && s.bypass && !strcmp(s.saved, "voice");
    _exit(status ? 101 : turned ? 42 : 0);
}

/// Read until `text` is on the screen's stream, from the beginning of it.
static void await(screen *t, const char *text)
{
    struct pollfd wait = {.fd = t->fd, .events = POLLIN};
    while (!memmem(t->seen, t->n_seen, text, strlen(text))) {
        if (poll(&wait, 1, 60000) != 1) fail_msg("\"%s\" does not come", text);
        ssize_t n = read(t->fd, t->seen + t->n_seen, sizeof t->seen - t->n_seen);
        if (n <= 0) fail_msg("the terminal was closed before \"%s\"", text);
        t->n_seen += (size_t)n;
    }
    t->n_seen = 0;
}

static int close_screen(screen *t)
{
    int status;
    char rest[4096];
    while (read(t->fd, rest, sizeof rest) > 0) continue; // an error when the other side is gone
    assert_int_equal(waitpid(t->child, &status, 0), t->child);
    close(t->fd);
    return status;
}

static void type(screen *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static void keys_turn_what_they_say_and_the_screen_is_put_back(void **state)
{
    (void)state;
    static screen t;
    open_screen(&t);
    await(&t, "\033[?1049h\033[?25l");
    await(&t, "> low_cut/frequency_hz");
    type(&t, "r"); // 80 -> 100, its standard
    await(&t, "100 Hz");
    type(&t, "\033[B");
    await(&t, "> gain/gain_db");
    type(&t, "\033[C");
    await(&t, "-4.32 dB"); // a fiftieth of 84 dB up
    type(&t, "n");
    await(&t, "gain is bypassed");
    type(&t, "n");
    await(&t, "gain is heard");
    type(&t, "b");
    await(&t, "BYPASS");
    type(&t, "?");
    await(&t, "choose a parameter");
    type(&t, "?s");
    await(&t, "saved: voice");
    type(&t, "q");
    await(&t, "\033[0m\033[?25h\033[?1049l");
    int status = close_screen(&t);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void a_signal_leaves_a_clean_screen(void **state)
{
    (void)state;
    static screen t;
    static const int numbers[] = {SIGTERM, SIGHUP, SIGABRT};
    for (int k = 0; k < 3; k++) {
        open_screen(&t);
        await(&t, "q quit");
        kill(t.child, numbers[k]);
        await(&t, "\033[0m\033[?25h\033[?1049l");
        int status = close_screen(&t);
        if (numbers[k] == SIGABRT)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[k]);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0); // the program goes on to its end
    }
}

static void a_new_size_is_followed(void **state)
{
    (void)state;
    static screen t;
    open_screen(&t);
    await(&t, "q quit");
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &(struct winsize){.ws_row = 30, .ws_col = 20}), 0);
    await(&t, "arrows choose and ch\033[K");
    type(&t, "q");
    assert_true(WIFEXITED(close_screen(&t)));
}

static void without_a_terminal_lines_are_printed(void **state)
{
    (void)state;
    int ends[2];
    live_session s;
    char text[4096];
    fake_session_init(&s);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    wt_status status = live_view_run(&s, 0.01);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(status, WT_OK);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(n > 0);
    text[n] = 0;
    assert_string_equal(text, "2 s  in -6.0 out -12.0 dBFS  load 12.5 %  p99 150.0 us  misses 3  xruns 4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_in_ascii),
        cmocka_unit_test(the_page_in_utf8_and_colour),
        cmocka_unit_test(threads_that_are_missing_are_told),
        cmocka_unit_test(the_page_fits_every_terminal),
        cmocka_unit_test(the_chosen_parameter_is_in_sight),
        cmocka_unit_test(names_cannot_move_the_cursor),
        cmocka_unit_test(one_line_for_what_is_no_terminal),
        cmocka_unit_test(what_went_wrong_stands_at_the_foot),
        cmocka_unit_test(keys_turn_what_they_say_and_the_screen_is_put_back),
        cmocka_unit_test(a_signal_leaves_a_clean_screen),
        cmocka_unit_test(a_new_size_is_followed),
        cmocka_unit_test(without_a_terminal_lines_are_printed),
    };
    return cmocka_run_group_tests_name("live view", tests, NULL, NULL);
}
