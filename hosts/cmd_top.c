// warptone top: watch the figures that a running engine publishes.
#include "cmd_top.h"
#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "terminal_screen.h"

#include <unistd.h>

enum { MAX_PIDS = 64, MIN_MS = 50, MAX_LOOKS = 20 };

typedef struct top {
    int pid;
    bool json, once, demo;
    double interval_s, seconds;
    top_demo *load;
    wt_telemetry_view before, now; ///< the last two
    int n_views;                   ///< ever seen
    bool screen;                   ///< the terminal is ours
} top;

/// Wait for the next page; true when q was pressed or a signal came.
static bool rest(const top *t)
{
    int left_ms = (int)(t->interval_s * 1e3);
    int key = terminal_screen_key(left_ms < MIN_MS ? MIN_MS : left_ms);
    return key == KEY_END || key == 'q' || key == 'Q' || wt_interrupted();
}

// ---- pages

static wt_status choose_process(top *t)
{
    if (t->pid) return WT_OK;
    int64_t pids[MAX_PIDS];
    int n = wt_telemetry_list(pids, MAX_PIDS);
    if (n > MAX_PIDS) n = MAX_PIDS;
    if (!n) return wt_fail(WT_ERR_NOT_FOUND, "no running warptone publishes figures; start one, or look at --demo");
    if (n > 1) {
        char list[256] = "";
        for (int k = 0, used = 0; k < n && used < (int)sizeof list - 16; k++)
            used += snprintf(list + used, sizeof list - (size_t)used, " %lld", (long long)pids[k]);
        return wt_fail(WT_ERR_BAD_ARG, "%d processes publish figures, choose one with --pid:%s", n, list);
    }
    t->pid = (int)pids[0];
    return WT_OK;
}

/// Read what is published. A view that was seen already changes nothing, so rates go from one to the next.
static wt_status look(top *t)
{
    wt_telemetry_view view;
    wt_status status = t->load ? top_demo_publish(t->load) : WT_OK;
    if (!status) status = wt_telemetry_read(t->pid, &view);
    if (status || (t->n_views && view.time_ns == t->now.time_ns)) return status;
    t->before = t->now;
    t->now = view;
    t->n_views++;
    return WT_OK;
}

static wt_status show(top *t)
{
    wt_status status = look(t);
    if (status) return status;
    if (t->json) return top_json(stdout, &t->now) ? WT_OK : wt_fail(WT_ERR_FILE, "cannot write to the standard output");
    int columns = 0, rows;
    if (t->screen) terminal_screen_size(&columns, &rows);
    if (t->screen) fputs("\033[H\033[2J", stdout);
    top_page(stdout, &t->now, t->n_views > 1 ? &t->before : NULL, columns);
    if (t->screen) fputs("\nq leaves\n", stdout);
    return fflush(stdout) ? wt_fail(WT_ERR_FILE, "cannot write to the standard output") : WT_OK;
}

/// One page has no rates without an earlier view, so wait for a second one (JSON has no rates).
static wt_status show_once(top *t)
{
    wt_status status = look(t);
    for (int k = 0; k < MAX_LOOKS && !status && t->n_views < (t->json ? 1 : 2) && !rest(t); k++) status = look(t);
    return status ? status : show(t);
}

static wt_status watch(top *t)
{
    if (t->once || (!t->json && !t->screen)) return show_once(t);
    for (double seconds = 0;; seconds += t->interval_s) {
        wt_status status = show(t);
        if (status || (t->seconds > 0 && seconds + t->interval_s > t->seconds) || rest(t)) return status;
    }
}

static void print_help(const wt_option *options, int n_options)
{
    printf("usage: warptone top [options]\n\n"
           "Live figures of a running warptone: device time, SMs, memory, queues, misses; q leaves.\n"
           "Without a terminal one page is printed.\n");
    wt_options_print(stdout, options, n_options);
    printf("\nexamples:\n"
           "  warptone top                  the one warptone that runs\n"
           "  warptone top --demo           a load to look at\n"
           "  warptone top --json --pid 77  a line of JSON a second\n");
}

int cmd_top(int argc, char **argv)
{
    top t = {.interval_s = 1};
    const wt_option options[] = {
        OPTION_INT("pid", 'p', &t.pid, "N", 1, 4194304, "the process to watch"),
        OPTION_FLAG("json", 'j', &t.json, "a line of JSON each time"),
        OPTION_FLAG("once", '1', &t.once, "look once and leave"),
        OPTION_FLAG("demo", 'd', &t.demo, "run a mixed load here and watch it"),
        OPTION_NUMBER("interval", 'i', &t.interval_s, "S", 0.05, 3600, "seconds between looks, 1"),
        OPTION_NUMBER("seconds", 's', &t.seconds, "S", 0.05, 1e6, "leave after so long"),
    };
    const int n_options = (int)(sizeof options / sizeof *options);
    bool help = false;
    if (wt_options_parse(options, n_options, &argc, argv, &help)) return command_fail("top", WT_ERR_BAD_ARG);
    if (help) {
        print_help(options, n_options);
        return EXIT_OK;
    }
    if (argc > 1) return command_fail("top", wt_fail(WT_ERR_BAD_ARG, "unexpected argument \"%s\"", argv[1]));
    if (t.demo && t.pid) return command_fail("top", wt_fail(WT_ERR_BAD_ARG, "--demo watches itself: leave out --pid"));
    wt_status status = wt_interrupt_install();
    if (!status && t.demo) {
        t.pid = (int)getpid();
        status = top_demo_start(&t.load);
    }
    if (!status) status = choose_process(&t);
    if (!status) {
        t.screen = !t.json && !t.once && terminal_screen_enter();
        status = watch(&t);
        terminal_screen_leave();
    }
    int code = status ? command_fail("top", status) : EXIT_OK;
    top_demo_stop(t.load);
    return code == EXIT_OK && wt_interrupted() ? 128 + wt_interrupt_signal() : code;
}
