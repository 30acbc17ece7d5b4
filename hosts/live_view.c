// The page of the live view, top to bottom: what plays and how, levels, readings, parameters, round trips, partitions,
// keys. The parameters get the rows that the others leave, and scroll.
#include "live_view.h"
#include "live_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MIN_PARAM_ROWS = 3, SLIDER_CELLS = 20, HIST_CELLS = 2, MIN_METER_CELLS = 8, LABEL_CELLS = 34 };

static const float meter_floor_db = -60, reduction_span_db = 24;

// ---- a pen that stays within the rows and columns

typedef struct pen {
    const live_view_size *size;
    char *text;
    size_t room, used; ///< used counts on when the room is over
    int row, column;
} pen;

typedef enum style { PLAIN, BOLD, DIM, GREEN, YELLOW, RED, INVERSE } style;

static void put_bytes(pen *p, const char *bytes, size_t n)
{
    for (size_t k = 0; k < n; k++, p->used++)
        if (p->used + 1 < p->room) p->text[p->used] = bytes[k];
}

static bool has_cell(const pen *p) { return p->row < p->size->rows && p->column < p->size->columns; }

static void set_style(pen *p, style s)
{
    static const char *const escapes[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[32m",
                                          "\033[33m", "\033[31m", "\033[7m"};
    if (p->size->color && has_cell(p)) put_bytes(p, escapes[s], strlen(escapes[s]));
}

/// ASCII text, cut at the last column; what could move the cursor is shown as '?'.
static void put(pen *p, const char *format, ...) WT_PRINTF(2, 3);
static void put(pen *p, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (const char *at = line; *at && has_cell(p); at++, p->column++)
        put_bytes(p, *at >= ' ' && *at <= '~' ? at : "?", 1);
}

/// One cell: a UTF-8 character, or an ASCII one for terminals without.
static void put_cell(pen *p, const char *utf8, char ascii)
{
    if (!has_cell(p)) return;
    if (p->size->utf8)
        put_bytes(p, utf8, strlen(utf8));
    else
        put_bytes(p, &ascii, 1);
    p->column++;
}

static void end_row(pen *p)
{
    if (p->row < p->size->rows) {
        if (p->size->color) put_bytes(p, "\033[0m", 4);
        put_bytes(p, "\n", 1);
    }
    p->row++;
    p->column = 0;
}

// ---- the head

static void put_head(pen *p, const live_view_page *page)
{
    const live_session_stats *s = &page->stats;
    const wt_live_stats *l = &s->live;
    double latency_ms = l->rate_hz > 0 ? l->latency_frames * 1e3 / l->rate_hz : 0;
    set_style(p, BOLD);
    put(p, "warptone live  %s", s->preset ? s->preset : "-");
    set_style(p, PLAIN);
    if (l->bypass) {
        put(p, "  ");
        set_style(p, INVERSE);
        put(p, "BYPASS");
    }
    end_row(p);
    put(p, "%s  %.0f Hz  %d frames  latency %d frames, %.2f ms  path %s", s->host_name ? s->host_name : "-", l->rate_hz,
        l->block_frames, l->latency_frames, latency_ms, live_path_name(l->path));
    if (l->n_threads < l->n_threads_wanted) put(p, " with %d of %d threads", l->n_threads, l->n_threads_wanted);
    put(p, "%s%s", s->host.realtime ? "" : "  not real-time", s->host.freewheel ? "  freewheel" : "");
    end_row(p);
}

static void put_counts(pen *p, const live_view_page *page)
{
    const live_session_stats *s = &page->stats;
    const wt_live_stats *l = &s->live;
    const char *before = " (";
    put(p, "load %.1f %%  server %.1f %%  blocks %llu  ", l->load * 100, s->host.cpu_load * 100,
        (unsigned long long)l->n_blocks);
    if (l->n_misses) set_style(p, RED);
    put(p, "misses %llu", (unsigned long long)l->n_misses);
    for (int k = 0; k < WT_N_LIVE_MISSES; k++)
        if (l->misses[k]) {
            put(p, "%s%s %llu", before, wt_live_miss_name((wt_live_miss)k), (unsigned long long)l->misses[k]);
            before = ", ";
        }
    if (l->n_misses) put(p, ")");
    set_style(p, PLAIN);
    if (s->host.n_xruns) set_style(p, RED);
    put(p, "  xruns %llu", (unsigned long long)s->host.n_xruns);
    end_row(p);
}

// ---- levels and readings

static int cell_of_db(float db, int n_cells)
{
    float share = (db - meter_floor_db) / -meter_floor_db;
    return share > 0 ? (int)lrintf((share < 1 ? share : 1) * (float)n_cells) : 0;
}

static style style_of_cell(int k, int n_cells)
{
    return k >= cell_of_db(-3, n_cells) ? RED : k >= cell_of_db(-12, n_cells) ? YELLOW : GREEN;
}

/// Full blocks to the RMS, shaded ones to the peak, a line at the peak that is held.
static void put_meter(pen *p, const live_view_level *level, int n_cells)
{
    int rms = cell_of_db(level->rms_db, n_cells), peak = cell_of_db(level->peak_db, n_cells),
        held = cell_of_db(level->held_db, n_cells) - 1;
    style now = PLAIN;
    put(p, "[");
    for (int k = 0; k < n_cells; k++) {
        style wanted = k < peak || k == held ? style_of_cell(k, n_cells) : PLAIN;
        if (wanted != now) set_style(p, now = wanted);
        if (k == held && k >= rms)
            put_cell(p, "\xe2\x94\x82", '|'); // U+2502
        else if (k < rms)
            put_cell(p, "\xe2\x96\x88", '#'); // U+2588
        else if (k < peak)
            put_cell(p, "\xe2\x96\x92", '='); // U+2592
        else
            put(p, " ");
    }
    if (now != PLAIN) set_style(p, PLAIN);
    put(p, "]");
}

static void put_db(pen *p, float db)
{
    if (db < -99.9f)
        put(p, "  -inf");
    else
        put(p, " %5.1f", (double)db);
}

static void put_levels(pen *p, const char *side, const live_view_level *levels, int n)
{
    int n_cells = p->size->columns - 30;
    for (int c = 0; c < n; c++) {
        const live_view_level *l = &levels[c];
        put(p, "%-3s %2d ", side, c + 1);
        put_meter(p, l, n_cells > MIN_METER_CELLS ? n_cells : MIN_METER_CELLS);
        put_db(p, l->rms_db);
        if (l->held_db > -0.1f) set_style(p, RED);
        put_db(p, l->held_db);
        set_style(p, PLAIN);
        put(p, " dBFS");
        end_row(p);
    }
}

static void put_reading(pen *p, const live_view_reading *r)
{
    double value = fabsf(r->value) < 1e-3f ? 0 : (double)r->value; // no "-0"
    put(p, "%-*.*s %8.3g ", LABEL_CELLS, LABEL_CELLS, r->name, value);
    if (strstr(r->name, "gain_reduction")) {
        int n_cells = (int)lrintf(fabsf(r->value) / reduction_span_db * SLIDER_CELLS);
        put(p, "dB  ");
        set_style(p, YELLOW);
        for (int k = 0; k < n_cells && k < SLIDER_CELLS; k++) put_cell(p, "\xe2\x96\x88", '#');
        set_style(p, PLAIN);
    }
    end_row(p);
}

// ---- parameters

static void put_param(pen *p, const live_param *param, bool selected)
{
    char label[sizeof param->node + sizeof param->name];
    bool log = param->logarithmic && param->min > 0;
    float span = log ? logf(param->max / param->min) : param->max - param->min;
    float share = log ? logf(param->value / param->min) : param->value - param->min;
    int knob = span > 0 ? (int)lrintf(share / span * (SLIDER_CELLS - 1)) : 0;
    snprintf(label, sizeof label, "%s/%s", param->node, param->name);
    if (selected) set_style(p, INVERSE);
    put(p, "%s%-*.*s %8.5g %-6.6s ", selected ? "> " : "  ", LABEL_CELLS - 2, LABEL_CELLS - 2, label,
        (double)param->value, param->unit);
    for (int k = 0; k < SLIDER_CELLS; k++)
        if (k == knob)
            put_cell(p, "\xe2\x97\x8f", 'o'); // U+25CF
        else
            put_cell(p, "\xe2\x94\x80", '-'); // U+2500
    end_row(p);
}

/// A window of n_rows around the selected one.
static void put_params(pen *p, const live_view_page *page, int n_rows)
{
    int first = page->selected - n_rows / 2, last = page->n_params - n_rows;
    if (first > last) first = last;
    if (first < 0) first = 0;
    for (int k = first; k < page->n_params && k < first + n_rows; k++)
        put_param(p, &page->params[k], k == page->selected);
}

// ---- round trips

/// Heights are logarithmic, so that one late block among a million shows: full = all of them, one step a factor of 10.
static int height_of(double share)
{
    int height = share > 0 ? 8 + (int)floor(log10(share)) : 0;
    return share > 0 && height < 1 ? 1 : height;
}

/// A power of ten, 1 us or more.
static void put_power(pen *p, int width, int64_t ns)
{
    bool ms = ns >= 1000000;
    put(p, "%*lld %s", width, (long long)(ns / (ms ? 1000000 : 1000)), ms ? "ms" : "us");
}

static void put_histogram(pen *p, const live_view_page *page)
{
    static const char *const utf8[] = {" ",
                                       "\xe2\x96\x81",
                                       "\xe2\x96\x82",
                                       "\xe2\x96\x83",
                                       "\xe2\x96\x84",
                                       "\xe2\x96\x85",
                                       "\xe2\x96\x86",
                                       "\xe2\x96\x87",
                                       "\xe2\x96\x88"};
    static const char ascii[] = " .:-=+*%#";
    bool gpu = page->stats.live.path != WT_LIVE_CPU;
    const wt_histogram_summary *s = gpu ? &page->stats.live.round_trip_ns : &page->stats.live.process_ns;
    put(p, "%s us  p50 %.1f  p99 %.1f  p99.9 %.1f  p99.99 %.1f  max %.1f", gpu ? "round trip" : "process",
        (double)s->p50 * 1e-3, (double)s->p99 * 1e-3, (double)s->p99_9 * 1e-3, (double)s->p99_99 * 1e-3,
        (double)s->max * 1e-3);
    end_row(p);
    put_power(p, 5, page->bar_from_ns);
    put(p, " |");
    for (int k = 0; k < LIVE_VIEW_BARS * HIST_CELLS; k++) {
        int height = height_of(page->bars[k / HIST_CELLS]);
        put_cell(p, utf8[height], ascii[height]);
    }
    put(p, "| ");
    put_power(p, 0, page->bar_to_ns);
    end_row(p);
}

static void put_partitions(pen *p, const live_view_page *page)
{
    put(p, "partitions");
    for (int k = 0; k < page->n_partitions; k++) {
        const live_view_partition *part = &page->partitions[k];
        put(p, "  %s", part->name);
        if (part->n_sms) put(p, " %d SMs", part->n_sms);
        if (part->busy >= 0) put(p, " %.0f %%", part->busy * 100);
    }
    end_row(p);
}

// ---- the page

static void put_help(pen *p)
{
    static const char *const lines[] = {
        "up, down     choose a parameter        k, j",
        "left, right  change it                 h, l; H, L in large steps",
        "r            put it back to its standard value",
        "b            bypass on and off",
        "n            that of the chosen parameter's node",
        "p            forget the peaks that are held",
        "s            write the preset with the present values",
        "?            this text on and off",
        "q            end",
        "meters: full blocks to the RMS, shaded to the peak, a line at the highest peak",
        "histogram: each step of height is a factor of 10, so single blocks show",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        put(p, "%s", lines[k]);
        end_row(p);
    }
}

static void put_foot(pen *p, const live_view_page *page)
{
    if (page->message)
        put(p, "%s", page->message);
    else {
        set_style(p, DIM);
        put(p, "arrows choose and change  r reset  b bypass  s save  ? help  q quit");
    }
    end_row(p);
}

size_t live_view_text(const live_view_page *page, const live_view_size *size, char *text, size_t text_bytes)
{
    pen p = {.size = size, .text = text, .room = text_bytes};
    put_head(&p, page);
    put_counts(&p, page);
    end_row(&p);
    put_levels(&p, "in", page->in, page->n_in);
    put_levels(&p, "out", page->out, page->n_out);
    end_row(&p);
    for (int k = 0; k < page->n_readings; k++) put_reading(&p, &page->readings[k]);
    if (page->help)
        put_help(&p);
    else {
        int n_below = 5 + (page->n_partitions > 0), n_rows = size->rows - p.row - n_below;
        put_params(&p, page, n_rows > MIN_PARAM_ROWS ? n_rows : MIN_PARAM_ROWS);
        end_row(&p);
        put_histogram(&p, page);
        if (page->n_partitions) put_partitions(&p, page);
    }
    end_row(&p);
    put_foot(&p, page);
    if (text_bytes) text[p.used < text_bytes ? p.used : text_bytes - 1] = 0;
    return p.used;
}

/// The loudest channel of a side.
static live_view_level loudest(const live_view_level *levels, int n)
{
    live_view_level top = {-INFINITY, -INFINITY, -INFINITY};
    for (int c = 0; c < n; c++) {
        top.rms_db = fmaxf(top.rms_db, levels[c].rms_db);
        top.held_db = fmaxf(top.held_db, levels[c].held_db);
    }
    return top;
}

size_t live_view_line(const live_view_page *page, char *text, size_t text_bytes)
{
    const live_session_stats *s = &page->stats;
    live_view_level in = loudest(page->in, page->n_in), out = loudest(page->out, page->n_out);
    int n = snprintf(text, text_bytes,
                     "%.0f s  in %.1f out %.1f dBFS  load %.1f %%  p99 %.1f us  misses %llu  xruns %llu%s%s%s\n",
                     s->seconds, (double)in.rms_db, (double)out.rms_db, s->live.load * 100,
                     (double)(s->live.path == WT_LIVE_CPU ? s->live.process_ns.p99 : s->live.round_trip_ns.p99) * 1e-3,
                     (unsigned long long)s->live.n_misses, (unsigned long long)s->host.n_xruns,
                     s->live.bypass ? "  bypass" : "", s->last_error[0] ? "  " : "", s->last_error);
    return n > 0 ? (size_t)n : 0;
}
