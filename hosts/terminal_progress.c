// processing  3/12  [==========>             ]  41 %  182x real time  8.1 s left  take-04.wav
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t redraw_ns = 50000000; // 20 a second
enum { BAR_COLUMNS = 24, LINE_BYTES = 1024 };

void wt_progress_begin(wt_progress *p)
{
    if (!p->fd && isatty(STDERR_FILENO)) p->fd = STDERR_FILENO;
    p->start_ns = wt_clock_now_ns(&p->clock);
    p->drawn_ns = p->start_ns - redraw_ns;
    p->shown = 0;
}

static void put(const wt_progress *p, const char *text)
{
    // a terminal that takes no text is no reason to stop the work
    ssize_t written = write(p->fd, text, strlen(text));
    (void)written;
}

static int columns_of(const wt_progress *p)
{
    struct winsize size;
    if (p->columns > 0) return p->columns;
    return ioctl(p->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void format_time(double seconds, char text[32])
{
    const long whole = lround(seconds);
    if (seconds < 9.95)
        snprintf(text, 32, "%.1f s", seconds);
    else if (whole < 60)
        snprintf(text, 32, "%ld s", whole);
    else if (whole < 3600)
        snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

/// Text is appended while it fits; a part that does not fit is left out whole.
static void append(char *line, int room, const char *part)
{
    const int length = (int)strlen(line), gap = length ? 2 : 0;
    if (length + gap + (int)strlen(part) <= room)
        snprintf(line + length, (size_t)(room - length + 1), "%*s%s", gap, "", part);
}

static void append_bar(char *line, int room, double fraction)
{
    char bar[BAR_COLUMNS + 16];
    const int full = (int)(fraction * BAR_COLUMNS);
    bar[0] = '[';
    for (int k = 0; k < BAR_COLUMNS; k++) bar[1 + k] = k < full ? '=' : k == full ? '>' : ' ';
    snprintf(bar + 1 + BAR_COLUMNS, 15, "] %3d %%", (int)(100 * fraction));
    append(line, room, bar);
}

void wt_progress_format(const wt_progress *p, int64_t items, double done, double seconds, const char *current,
                        int columns, char *line, int line_bytes)
{
    const int room = columns < line_bytes ? columns : line_bytes - 1;
    char part[128], left[32];
    line[0] = 0;
    append(line, room, p->verb ? p->verb : "working");
    snprintf(part, sizeof part, "%lld/%lld", (long long)items, (long long)p->n_items);
    if (p->n_items > 1) append(line, room, part);

    const double total = p->total > 0 ? p->total : (double)p->n_items, at = p->total > 0 ? done : (double)items;
    const double fraction = total > 0 ? fmin(fmax(at / total, 0), 1) : 0;
    if (total > 0) append_bar(line, room, fraction);
    if (seconds > 0.2 && done > 0) {
        const bool audio = p->unit && !strcmp(p->unit, "s");
        snprintf(part, sizeof part, audio ? "%.*fx real time" : "%.*f %s/s", done / seconds < 10, done / seconds,
                 p->unit ? p->unit : "items");
        append(line, room, part);
    }
    if (seconds > 0.5 && fraction > 0.005) {
        format_time(seconds * (1 - fraction) / fraction, left);
        snprintf(part, sizeof part, "%s left", left);
        append(line, room, part);
    }
    const int free_columns = room - (int)strlen(line) - 2, length = current ? (int)strlen(current) : 0;
    if (length > 0 && free_columns >= 8) {
        const char *tail = length > free_columns ? current + length - free_columns + 2 : current;
        snprintf(part, sizeof part, "%s%.100s", tail == current ? "" : "..", tail);
        append(line, room, part);
    }
}

void wt_progress_move(wt_progress *p, int64_t items, double done, const char *current)
{
    if (!p->fd) return;
    const int64_t now = wt_clock_now_ns(&p->clock);
    if (now - p->drawn_ns < redraw_ns) return;
    p->drawn_ns = now;
    char line[LINE_BYTES], drawn[LINE_BYTES + 16];
    // the last column stays free: some terminals begin a new line after it
    wt_progress_format(p, items, done, (double)(now - p->start_ns) * 1e-9, current, columns_of(p) - 1, line,
                       LINE_BYTES);
    snprintf(drawn, sizeof drawn, "\r%s\x1b[K", line); // return, text, erase to the end of the line
    put(p, drawn);
    p->shown = (int)strlen(line);
}

void wt_progress_clear(wt_progress *p)
{
    if (!p->fd || !p->shown) return;
    put(p, "\r\x1b[K");
    p->shown = 0;
    p->drawn_ns = wt_clock_now_ns(&p->clock) - redraw_ns;
}

void wt_progress_end(wt_progress *p)
{
    wt_progress_clear(p);
    p->fd = 0;
}
