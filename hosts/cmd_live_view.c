// The live view on a terminal: gather about 20 times a second what the page shows, draw it, take the keys.
#include "interrupt.h"
#include "live_view.h"
#include "terminal_screen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/clock.h>
#include <warptone/node.h>
#include <warptone/telemetry.h>

enum { FRAME_MS = 50, PAGE_BYTES = 1 << 18, MAX_READING_NAMES = 256 };

static const int64_t hold_ns = 2000000000, message_ns = 4000000000, slow_ns = 500000000, line_ns = 1000000000;
static const float small_step = 0.02f, large_step = 0.1f; // of a parameter's range

typedef struct view {
    live_session *session;
    live_view_page page;
    live_view_size size;
    int64_t held_in_ns[LIVE_VIEW_CHANNELS], held_out_ns[LIVE_VIEW_CHANNELS]; ///< since when
    int64_t start_ns, slow_due_ns, message_until_ns;
    wt_telemetry_view before; ///< the telemetry of half a second ago
    char message[128];
    char text[PAGE_BYTES];
} view;

// ---- gathering

static float db_of(float level) { return 20 * log10f(level); }

static int gather_levels(view *v, bool output, int64_t now_ns)
{
    live_view_level *levels = output ? v->page.out : v->page.in;
    int64_t *held_ns = output ? v->held_out_ns : v->held_in_ns;
    float peak[LIVE_VIEW_CHANNELS], rms[LIVE_VIEW_CHANNELS];
    int n = live_session_levels(v->session, output, peak, rms, LIVE_VIEW_CHANNELS);
    for (int c = 0; c < n; c++) {
        live_view_level *l = &levels[c];
        l->peak_db = db_of(peak[c]);
        l->rms_db = db_of(rms[c]);
        if (l->peak_db < l->held_db && now_ns - held_ns[c] < hold_ns && held_ns[c]) continue;
        l->held_db = l->peak_db;
        held_ns[c] = now_ns;
    }
    return n;
}

static void gather_params(view *v)
{
    live_view_page *page = &v->page;
    int n = live_session_n_params(v->session);
    page->n_params = 0;
    for (int k = 0; k < n && page->n_params < LIVE_VIEW_PARAMS; k++)
        if (!live_session_param(v->session, k, &page->params[page->n_params])) page->n_params++;
    if (page->selected >= page->n_params) page->selected = page->n_params - 1;
    if (page->selected < 0) page->selected = 0;
}

/// Names of all readings that any type of node shows, each once.
static int list_reading_names(const char *names[MAX_READING_NAMES])
{
    int n = 0;
    for (int t = 0; t < wt_n_node_types; t++)
        for (int r = 0; r < wt_node_types[t]->n_readings; r++) {
            int k = 0;
            while (k < n && strcmp(names[k], wt_node_types[t]->readings[r])) k++;
            if (k == n && n < MAX_READING_NAMES) names[n++] = wt_node_types[t]->readings[r];
        }
    return n;
}

/// Try them on every node that has parameters.
static void find_readings(view *v)
{
    const char *names[MAX_READING_NAMES];
    int n_names = list_reading_names(names);
    live_view_page *page = &v->page;
    page->n_readings = 0;
    for (int k = 0; k < page->n_params; k++) {
        if (k && !strcmp(page->params[k].node, page->params[k - 1].node)) continue;
        for (int i = 0; i < n_names && page->n_readings < LIVE_VIEW_READINGS; i++) {
            live_view_reading r;
            int n = snprintf(r.name, sizeof r.name, "%s/%s", page->params[k].node, names[i]);
            if (n < (int)sizeof r.name && !live_session_reading(v->session, r.name, &r.value))
                page->readings[page->n_readings++] = r;
        }
    }
}

static void gather_readings(view *v)
{
    for (int k = 0; k < v->page.n_readings; k++) {
        live_view_reading *r = &v->page.readings[k];
        if (live_session_reading(v->session, r->name, &r->value)) r->value = 0; // a new chain lacks it
    }
}

/// The axis: a power of ten at either end, around all values.
static void gather_histogram(view *v)
{
    const wt_histogram *h = live_session_histogram(v->session);
    live_view_page *page = &v->page;
    memset(page->bars, 0, sizeof page->bars);
    int64_t low = h ? wt_histogram_quantile(h, 0) : 0, high = h ? wt_histogram_quantile(h, 1) : 0;
    page->bar_from_ns = 1000;
    while (page->bar_from_ns * 10 <= low) page->bar_from_ns *= 10;
    page->bar_to_ns = page->bar_from_ns * 10;
    while (page->bar_to_ns < high) page->bar_to_ns *= 10;
    double below = 0, ratio = (double)page->bar_to_ns / (double)page->bar_from_ns;
    for (int k = 0; h && k < LIVE_VIEW_BARS; k++) {
        double edge_ns = (double)page->bar_from_ns * pow(ratio, (k + 1.0) / LIVE_VIEW_BARS);
        double share = k + 1 < LIVE_VIEW_BARS ? wt_histogram_share(h, (int64_t)edge_ns) : high > 0;
        page->bars[k] = share - below;
        below = share;
    }
}

static double busy_of(const wt_telemetry_values *row, const wt_telemetry_view *now, const wt_telemetry_view *before)
{
    for (int k = 0; k < before->n_rows; k++)
        if (before->rows[k].kind == row->kind && !strcmp(before->rows[k].name, row->name))
            return (double)(row->figures[WT_FIGURE_DEVICE_NS] - before->rows[k].figures[WT_FIGURE_DEVICE_NS]) /
                   (double)(now->time_ns - before->time_ns);
    return -1;
}

/// From what this process publishes of itself; nothing where it does not.
static void gather_partitions(view *v)
{
    static wt_telemetry_view now;
    live_view_page *page = &v->page;
    if (wt_telemetry_read(getpid(), &now)) {
        page->n_partitions = 0;
        return;
    }
    if (now.time_ns == v->before.time_ns) return;
    page->n_partitions = 0;
    for (int k = 0; k < now.n_rows && page->n_partitions < LIVE_VIEW_PARTITIONS; k++) {
        const wt_telemetry_values *row = &now.rows[k];
        if (row->kind != WT_TELEMETRY_PARTITION) continue;
        live_view_partition *part = &page->partitions[page->n_partitions++];
        snprintf(part->name, sizeof part->name, "%s", row->name);
        part->n_sms = (int)row->figures[WT_FIGURE_SMS];
        part->busy = busy_of(row, &now, &v->before);
    }
    v->before = now;
}

static void gather(view *v)
{
    int64_t now_ns = wt_clock_now_ns(NULL);
    live_session_get_stats(v->session, &v->page.stats);
    v->page.n_in = gather_levels(v, false, now_ns);
    v->page.n_out = gather_levels(v, true, now_ns);
    gather_params(v);
    if (now_ns >= v->slow_due_ns) {
        v->slow_due_ns = now_ns + slow_ns;
        find_readings(v);
        gather_histogram(v);
        gather_partitions(v);
    } else
        gather_readings(v);
    const char *error = v->page.stats.last_error;
    v->page.message = now_ns < v->message_until_ns ? v->message : *error ? error : NULL;
}

// ---- keys

static void say(view *v, const char *format, ...) WT_PRINTF(2, 3);
static void say(view *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(v->message, sizeof v->message, format, args);
    va_end(args);
    v->message_until_ns = wt_clock_now_ns(NULL) + message_ns;
}

static void set_selected(view *v, float value)
{
    char name[sizeof(live_param)];
    const live_param *p = &v->page.params[v->page.selected];
    if (!v->page.n_params) return;
    snprintf(name, sizeof name, "%s/%s", p->node, p->name);
    if (live_session_set(v->session, name, value)) say(v, "%s", wt_last_error());
}

/// Move by a share of the range, which is logarithmic where the parameter is.
static void change(view *v, float step)
{
    const live_param *p = &v->page.params[v->page.selected];
    if (p->logarithmic && p->min > 0)
        set_selected(v, p->value * powf(p->max / p->min, step));
    else
        set_selected(v, p->value + (p->max - p->min) * step);
}

/// On or off: the node whose parameter is selected.
static void toggle_node(view *v)
{
    char name[sizeof(live_param)];
    float on = 0;
    if (!v->page.n_params) return;
    snprintf(name, sizeof name, "%s/bypass", v->page.params[v->page.selected].node);
    wt_status status = live_session_get(v->session, name, &on);
    if (!status) status = live_session_set(v->session, name, on == 0);
    if (status)
        say(v, "%s", wt_last_error());
    else
        say(v, "%s is %s", v->page.params[v->page.selected].node, on == 0 ? "bypassed" : "heard");
}

static void save(view *v)
{
    if (live_session_save(v->session, NULL))
        say(v, "%s", wt_last_error());
    else
        say(v, "saved: %s", v->page.stats.preset);
}

/// False: the view is to end.
static bool take_key(view *v, int key)
{
    live_view_page *page = &v->page;
    switch (key) {
    case KEY_UP:
    case 'k':
        page->selected -= page->selected > 0;
        break;
    case KEY_DOWN:
    case 'j':
        page->selected += page->selected + 1 < page->n_params;
        break;
    case KEY_LEFT:
    case 'h':
        change(v, -small_step);
        break;
    case KEY_RIGHT:
    case 'l':
        change(v, small_step);
        break;
    case 'H':
        change(v, -large_step);
        break;
    case 'L':
        change(v, large_step);
        break;
    case 'r':
        set_selected(v, page->params[page->selected].standard);
        break;
    case 'b':
        live_session_set_bypass(v->session, !page->stats.live.bypass);
        break;
    case 'n':
        toggle_node(v);
        break;
    case 'p':
        memset(v->held_in_ns, 0, sizeof v->held_in_ns);
        memset(v->held_out_ns, 0, sizeof v->held_out_ns);
        break;
    case 's':
        save(v);
        break;
    case '?':
        page->help = !page->help;
        break;
    case 'q':
    case KEY_END:
        return false;
    default:
        break;
    }
    return true;
}

// ---- drawing

static bool speaks_utf8(void)
{
    const char *names[] = {getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")};
    for (int k = 0; k < 3; k++)
        if (names[k] && *names[k]) return strstr(names[k], "UTF-8") || strstr(names[k], "utf8");
    return false;
}

/// Each line over the old one, then what is left of the old page is cleared: no flicker.
static void draw(view *v)
{
    terminal_screen_size(&v->size.columns, &v->size.rows);
    v->size.rows--; // the last line's end would scroll
    live_view_text(&v->page, &v->size, v->text, sizeof v->text);
    fputs("\033[H", stdout);
    for (char *line = v->text, *end; (end = strchr(line, '\n')); line = end + 1)
        printf("%.*s\033[K\n", (int)(end - line), line);
    fputs("\033[J", stdout);
    fflush(stdout);
}

static bool is_over(const view *v, double seconds)
{
    double gone_s = (double)(wt_clock_now_ns(NULL) - v->start_ns) * 1e-9;
    return live_session_ended(v->session, NULL) || wt_interrupted() || (seconds > 0 && gone_s >= seconds);
}

static void watch_screen(view *v, double seconds)
{
    while (!is_over(v, seconds)) {
        gather(v);
        draw(v);
        int key = terminal_screen_key(FRAME_MS);
        if (key != KEY_NONE && !take_key(v, key)) return;
    }
}

/// One line at least.
static void print_lines(view *v, double seconds)
{
    int64_t due_ns = v->start_ns;
    do {
        if (wt_clock_now_ns(NULL) >= due_ns) {
            due_ns += line_ns;
            gather(v);
            live_view_line(&v->page, v->text, sizeof v->text);
            fputs(v->text, stdout);
            fflush(stdout);
        }
        terminal_screen_key(FRAME_MS);
    } while (!is_over(v, seconds));
}

wt_status live_view_run(live_session *session, double seconds)
{
    view *v = calloc(1, sizeof *v);
    if (!v) return wt_fail(WT_ERR_NO_MEMORY, "live: the view");
    v->session = session;
    v->start_ns = wt_clock_now_ns(NULL);
    v->size = (live_view_size){.utf8 = speaks_utf8(), .color = !getenv("NO_COLOR")};
    if (terminal_screen_enter()) {
        watch_screen(v, seconds);
        terminal_screen_leave();
    } else
        print_lines(v, seconds);
    bool lost = ferror(stdout);
    free(v);
    return lost ? wt_fail(WT_ERR_FILE, "cannot write to the standard output") : WT_OK;
}
