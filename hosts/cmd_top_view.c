// What a view looks like, for people and for programs.
#include "cmd_top.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

static const char *tier_name(wt_tier tier)
{
    static const char *const names[WT_N_TIERS] = {"best-effort", "burstable", "guaranteed"};
    return (unsigned)tier < WT_N_TIERS ? names[tier] : "?";
}

/// Names come from another process: nothing that moves the cursor gets through.
static void clean_name(char to[WT_TELEMETRY_NAME_BYTES], const char *from)
{
    size_t k = 0;
    for (; k + 1 < WT_TELEMETRY_NAME_BYTES && from[k]; k++) to[k] = isprint((unsigned char)from[k]) ? from[k] : '?';
    to[k] = 0;
}

static void put_bytes(char *text, size_t size, int64_t bytes)
{
    static const char units[] = "BKMGT";
    double value = (double)bytes;
    int k = 0;
    for (; value >= 1000 && k < 4; k++) value /= 1024;
    snprintf(text, size, k ? "%.1f%c" : "%.0f%c", value, units[k]);
}

static const wt_telemetry_values *same_row(const wt_telemetry_view *before, const wt_telemetry_values *row)
{
    for (int k = 0; before && k < before->n_rows; k++)
        if (before->rows[k].kind == row->kind && !strcmp(before->rows[k].name, row->name) &&
            !strcmp(before->rows[k].partition, row->partition))
            return &before->rows[k];
    return NULL;
}

/// A counter's growth a second, 0 when it is not known.
static double rate(const wt_telemetry_values *row, const wt_telemetry_values *earlier, wt_figure figure, double seconds)
{
    return earlier && seconds > 0 ? (double)(row->figures[figure] - earlier->figures[figure]) / seconds : 0;
}

static void put_row(FILE *out, const wt_telemetry_values *row, const wt_telemetry_values *earlier, double seconds,
                    int width)
{
    const int64_t *f = row->figures;
    char name[WT_TELEMETRY_NAME_BYTES], used[16], quota[16], position[24] = "-", line[512];
    clean_name(name, row->name);
    put_bytes(used, sizeof used, f[WT_FIGURE_MEMORY_USED]);
    put_bytes(quota, sizeof quota, f[WT_FIGURE_MEMORY_QUOTA]);
    if (f[WT_FIGURE_QUEUE_POSITION] > 0)
        snprintf(position, sizeof position, "%lld", (long long)f[WT_FIGURE_QUEUE_POSITION]);
    bool task = row->kind == WT_TELEMETRY_TASK;
    int n = snprintf(
        line, sizeof line, "%s%-*s %-11s %4lld %5.1f %6.1f %9.0f %6lld %6lld %5s %8s %8s %7.0f %6lld %6lld %6lld",
        task ? "  " : "", task ? 14 : 16, name, tier_name(row->tier), (long long)f[WT_FIGURE_SMS],
        (double)f[WT_FIGURE_SM_PERMILLE] * 0.1,
        rate(row, earlier, WT_FIGURE_DEVICE_NS, seconds) * 1e-7, // ns a second in percent
        rate(row, earlier, WT_FIGURE_LAUNCHES, seconds), (long long)f[WT_FIGURE_QUEUED],
        (long long)f[WT_FIGURE_IN_FLIGHT], position, used, quota, rate(row, earlier, WT_FIGURE_EVICTIONS, seconds),
        (long long)f[WT_FIGURE_DEADLINE_MISSES], (long long)f[WT_FIGURE_THROTTLES], (long long)f[WT_FIGURE_SLICES]);
    if (n < 0) return;
    fprintf(out, "%.*s\n", width > 0 ? width : (int)sizeof line, line);
}

void top_page(FILE *out, const wt_telemetry_view *view, const wt_telemetry_view *before, int width)
{
    char title[96], heads[256];
    double seconds = before ? (double)(view->time_ns - before->time_ns) * 1e-9 : 0;
    int kept = width > 0 ? width : (int)sizeof heads;
    snprintf(title, sizeof title, "warptone process %lld, %d rows", (long long)view->pid, view->n_rows);
    snprintf(heads, sizeof heads, "%-16s %-11s %4s %5s %6s %9s %6s %6s %5s %8s %8s %7s %6s %6s %6s", "PARTITION, task",
             "TIER", "SMS", "SM%", "BUSY%", "LAUNCH/S", "QUEUED", "FLIGHT", "POS", "MEMORY", "QUOTA", "EVICT/S",
             "MISSED", "THROTT", "SLICES");
    fprintf(out, "%.*s\n\n%.*s\n", kept, title, kept, heads);
    bool placed[WT_TELEMETRY_ROWS] = {false};
    for (int p = 0; p < view->n_rows; p++) {
        const wt_telemetry_values *row = &view->rows[p];
        if (placed[p]) continue;
        put_row(out, row, same_row(before, row), seconds, width);
        for (int k = p + 1; row->kind == WT_TELEMETRY_PARTITION && k < view->n_rows; k++) // its tasks below it
            if (view->rows[k].kind == WT_TELEMETRY_TASK && !placed[k] && !strcmp(view->rows[k].partition, row->name)) {
                put_row(out, &view->rows[k], same_row(before, &view->rows[k]), seconds, width);
                placed[k] = true;
            }
    }
}

static json_t *row_json(const wt_telemetry_values *row)
{
    bool task = row->kind == WT_TELEMETRY_TASK;
    char name[WT_TELEMETRY_NAME_BYTES], partition[WT_TELEMETRY_NAME_BYTES];
    clean_name(name, row->name); // JSON wants UTF-8, which a foreign name may not be
    clean_name(partition, task ? row->partition : row->name);
    json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "kind", task ? "task" : "partition", "name", name, "partition",
                               partition, "tier", tier_name(row->tier));
    for (int k = 0; k < WT_N_FIGURES; k++)
        json_object_set_new(object, wt_figure_name((wt_figure)k), json_integer((json_int_t)row->figures[k]));
    return object;
}

bool top_json(FILE *out, const wt_telemetry_view *view)
{
    json_t *rows = json_array();
    for (int k = 0; k < view->n_rows; k++) json_array_append_new(rows, row_json(&view->rows[k]));
    json_t *all =
        json_pack("{s:I, s:I, s:o}", "time_ns", (json_int_t)view->time_ns, "pid", (json_int_t)view->pid, "rows", rows);
    bool written = all && !json_dumpf(all, out, JSON_COMPACT | JSON_PRESERVE_ORDER) && fputc('\n', out) != EOF;
    json_decref(all);
    return written && !fflush(out);
}
