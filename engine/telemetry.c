// Figures are relaxed atomics: each is right by itself, none orders anything else. A row is a few cache lines that
// belong to nobody else. The table of rows (open, close, snapshot) has a mutex that writers never touch.
#include "telemetry_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { COUNTER, GAUGE };

static const struct {
    const char *name;
    int kind;
    const char *text;
} figures[WT_N_FIGURES] = {
#define FIGURE_ROW(code, name, kind, text) [code] = {name, kind, text},
    WT_FIGURE_LIST(FIGURE_ROW)
#undef FIGURE_ROW
};

const char *wt_figure_name(wt_figure figure)
{
    return (unsigned)figure < WT_N_FIGURES ? figures[figure].name : "";
}

bool wt_figure_is_counter(wt_figure figure)
{
    return (unsigned)figure < WT_N_FIGURES && figures[figure].kind == COUNTER;
}

// ---- rows

wt_status wt_telemetry_create(wt_telemetry **telemetry)
{
    *telemetry = aligned_alloc(_Alignof(wt_telemetry), sizeof **telemetry);
    if (!*telemetry) return wt_fail(WT_ERR_NO_MEMORY, "telemetry: no memory for %d rows", WT_TELEMETRY_ROWS);
    memset(*telemetry, 0, sizeof **telemetry);
    pthread_mutex_init(&(*telemetry)->mutex, NULL);
    for (int k = 0; k < WT_TELEMETRY_ROWS; k++) (*telemetry)->rows[k].telemetry = *telemetry;
    return WT_OK;
}

void wt_telemetry_destroy(wt_telemetry *telemetry)
{
    if (!telemetry) return;
    wt__telemetry_unpublish(telemetry);
    pthread_mutex_destroy(&telemetry->mutex);
    free(telemetry);
}

static wt_status check_row(const wt_telemetry_row_config *c)
{
    size_t length = c->name ? strlen(c->name) : 0;
    if (length < 1 || length >= WT_TELEMETRY_NAME_BYTES ||
        (c->partition && strlen(c->partition) >= WT_TELEMETRY_NAME_BYTES))
        return wt_fail(WT_ERR_BAD_ARG, "telemetry: row \"%.40s\" in \"%.40s\": want names of 1..%d bytes",
                       c->name ? c->name : "", c->partition ? c->partition : "", WT_TELEMETRY_NAME_BYTES - 1);
    if (c->kind != WT_TELEMETRY_PARTITION && c->kind != WT_TELEMETRY_TASK)
        return wt_fail(WT_ERR_BAD_ARG, "telemetry: row \"%s\" is of kind %d, want a partition or task", c->name,
                       (int)c->kind);
    return (unsigned)c->tier < WT_N_TIERS
               ? WT_OK
               : wt_fail(WT_ERR_BAD_ARG, "telemetry: row \"%s\": no tier %d", c->name, (int)c->tier);
}

wt_status wt_telemetry_open_row(wt_telemetry *telemetry, const wt_telemetry_row_config *config, wt_telemetry_row **row)
{
    *row = NULL;
    wt_status status = check_row(config);
    if (status) return status;
    pthread_mutex_lock(&telemetry->mutex);
    for (int k = 0; k < WT_TELEMETRY_ROWS && !*row; k++)
        if (!telemetry->rows[k].used) *row = &telemetry->rows[k];
    if (*row) {
        for (int k = 0; k < WT_N_FIGURES; k++) atomic_store_explicit(&(*row)->figures[k], 0, memory_order_relaxed);
        (*row)->used = true;
        (*row)->order = telemetry->n_opened++;
        (*row)->kind = config->kind;
        (*row)->tier = config->tier;
        snprintf((*row)->name, sizeof(*row)->name, "%s", config->name);
        snprintf((*row)->partition, sizeof(*row)->partition, "%s", config->partition ? config->partition : "");
    }
    pthread_mutex_unlock(&telemetry->mutex);
    return *row ? WT_OK : wt_fail(WT_ERR_FULL, "telemetry: has %d rows already", WT_TELEMETRY_ROWS);
}

void wt_telemetry_close_row(wt_telemetry_row *row)
{
    if (!row) return;
    pthread_mutex_lock(&row->telemetry->mutex);
    row->used = false;
    pthread_mutex_unlock(&row->telemetry->mutex);
}

WT_RT void wt_telemetry_add(wt_telemetry_row *row, wt_figure figure, int64_t amount)
{
    if (row) atomic_fetch_add_explicit(&row->figures[figure], amount, memory_order_relaxed);
}

WT_RT void wt_telemetry_set(wt_telemetry_row *row, wt_figure figure, int64_t value)
{
    if (row) atomic_store_explicit(&row->figures[figure], value, memory_order_relaxed);
}

// ---- sampling

void wt_telemetry_sample_partition(wt_telemetry_row *row, wt_partition *partition)
{
    wt_partition_info info;
    wt_partition_get_info(partition, &info);
    int n_sms = wt_device_get_info(wt_partition_device(partition))->n_sms;
    wt_telemetry_set(row, WT_FIGURE_SMS, info.n_sms);
    wt_telemetry_set(row, WT_FIGURE_SM_PERMILLE, n_sms ? 1000LL * info.n_sms / n_sms : 0);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_QUOTA, (int64_t)info.memory_quota_bytes);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_HELD, (int64_t)info.memory_used_bytes);
    wt_telemetry_set(row, WT_FIGURE_STREAMS, info.n_streams);
    wt_telemetry_set(row, WT_FIGURE_PENDING_KERNELS, info.n_pending_kernels);
    wt_telemetry_set(row, WT_FIGURE_PENDING_COPIES, info.n_pending_transfers);
    wt_telemetry_set(row, WT_FIGURE_COPIED_BYTES, (int64_t)info.copied_bytes);
    wt_telemetry_set(row, WT_FIGURE_COPIED_NS, (int64_t)(info.copied_us * 1e3));
    wt_telemetry_set(row, WT_FIGURE_COPY_THROTTLES, (int64_t)info.n_throttled);
}

void wt_telemetry_sample_pool(wt_telemetry_row *row, wt_pool *pool)
{
    wt_pool_stats stats;
    wt_pool_query(pool, &stats);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_USED, (int64_t)stats.used_bytes);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_PEAK, (int64_t)stats.peak_bytes);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_QUOTA, (int64_t)stats.quota_bytes);
    wt_telemetry_set(row, WT_FIGURE_MEMORY_EVICTED, (int64_t)stats.evicted_bytes);
    wt_telemetry_set(row, WT_FIGURE_EVICTIONS, (int64_t)stats.n_evictions);
    wt_telemetry_set(row, WT_FIGURE_RESTORES, (int64_t)stats.n_restores);
}

wt_status wt_telemetry_sample_scheduler(wt_telemetry_row *row, wt_scheduler *scheduler, int partition)
{
    wt_scheduler_partition_stats stats;
    wt_status status = wt_scheduler_get_partition(scheduler, partition, &stats);
    if (status) return status;
    wt_telemetry_set(row, WT_FIGURE_DEVICE_NS, stats.device_ns);
    wt_telemetry_set(row, WT_FIGURE_RUNS, (int64_t)stats.n_jobs);
    wt_telemetry_set(row, WT_FIGURE_FAILURES, (int64_t)stats.n_failed);
    wt_telemetry_set(row, WT_FIGURE_DEADLINE_MISSES, (int64_t)stats.n_missed);
    wt_telemetry_set(row, WT_FIGURE_THROTTLES, (int64_t)stats.n_throttled);
    wt_telemetry_set(row, WT_FIGURE_SLICES, (int64_t)(stats.n_yields + stats.n_jobs));
    wt_telemetry_set(row, WT_FIGURE_OVERDUE, (int64_t)stats.n_hangs);
    wt_telemetry_set(row, WT_FIGURE_HUNG, stats.n_hung);
    wt_telemetry_set(row, WT_FIGURE_QUEUED, stats.n_queued + stats.n_ready);
    wt_telemetry_set(row, WT_FIGURE_IN_FLIGHT, stats.n_running);
    wt_telemetry_set(row, WT_FIGURE_PREDICTION_MEAN, stats.prediction_error_ns);
    wt_telemetry_set(row, WT_FIGURE_PREDICTION_P99, stats.prediction_p99_ns);
    return WT_OK;
}

wt_status wt_telemetry_sample_task(wt_telemetry_row *row, wt_scheduler *scheduler, wt_task task)
{
    wt_task_info info;
    wt_status status = wt_scheduler_get_task(scheduler, task, &info);
    if (status) return status;
    wt_telemetry_set(row, WT_FIGURE_DEVICE_NS, info.device_ns);
    wt_telemetry_set(row, WT_FIGURE_RUNS, info.n_jobs);
    wt_telemetry_set(row, WT_FIGURE_DEADLINE_MISSES, info.n_missed);
    wt_telemetry_set(row, WT_FIGURE_THROTTLES, info.n_throttled);
    wt_telemetry_set(row, WT_FIGURE_SLICES, info.n_yields + info.n_jobs); // a run of n yields had n + 1 slices
    wt_telemetry_set(row, WT_FIGURE_QUEUE_POSITION, info.position);
    wt_telemetry_set(row, WT_FIGURE_IN_FLIGHT, info.state == WT_TASK_RUNNING);
    return WT_OK;
}

// ---- reading

static void read_row(const wt_telemetry_row *row, wt_telemetry_values *values)
{
    *values = (wt_telemetry_values){.kind = row->kind, .tier = row->tier};
    memcpy(values->name, row->name, sizeof values->name);
    memcpy(values->partition, row->partition, sizeof values->partition);
    for (int k = 0; k < WT_N_FIGURES; k++)
        values->figures[k] = atomic_load_explicit(&row->figures[k], memory_order_relaxed);
}

static int by_kind_and_order(const void *a, const void *b)
{
    const wt_telemetry_row *x = *(wt_telemetry_row *const *)a, *y = *(wt_telemetry_row *const *)b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void wt_telemetry_snapshot(wt_telemetry *telemetry, wt_telemetry_view *snapshot)
{
    const wt_telemetry_row *used[WT_TELEMETRY_ROWS];
    int n = 0;
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->pid = getpid();
    pthread_mutex_lock(&telemetry->mutex);
    for (int k = 0; k < WT_TELEMETRY_ROWS; k++)
        if (telemetry->rows[k].used) used[n++] = &telemetry->rows[k];
    qsort(used, (size_t)n, sizeof *used, by_kind_and_order);
    for (int k = 0; k < n; k++) read_row(used[k], &snapshot->rows[k]);
    pthread_mutex_unlock(&telemetry->mutex);
    snapshot->n_rows = n;
    snapshot->time_ns = wt_clock_now_ns(NULL);
}

// ---- Prometheus

typedef struct text_sink {
    char *text;
    size_t size, length; ///< length: of the whole, also beyond size
} text_sink;

static void put(text_sink *s, const char *text, size_t length)
{
    for (size_t k = 0; k < length; k++, s->length++)
        if (s->length + 1 < s->size) s->text[s->length] = text[k];
}

static void put_text(text_sink *s, const char *text)
{
    put(s, text, strlen(text));
}

/// A label's value, where a backslash, quote and line feed are escaped.
static void put_label(text_sink *s, const char *key, const char *value, const char *end)
{
    put_text(s, key);
    put_text(s, "=\"");
    for (; *value; value++) {
        if (*value == '\\' || *value == '"') put(s, "\\", 1);
        put_text(s, *value == '\n' ? "\\n" : (const char[]){*value, 0});
    }
    put_text(s, end);
}

static void put_sample(text_sink *s, const char *metric, const wt_telemetry_values *row, int64_t value)
{
    static const char *const tiers[WT_N_TIERS] = {"best_effort", "burstable", "guaranteed"};
    bool task = row->kind == WT_TELEMETRY_TASK;
    put_text(s, metric);
    put_label(s, "{kind", task ? "task" : "partition", "\",");
    put_label(s, "name", row->name, "\",");
    put_label(s, "partition", task ? row->partition : row->name, "\",");
    put_label(s, "tier", (unsigned)row->tier < WT_N_TIERS ? tiers[row->tier] : "", "\"} ");
    char number[32];
    snprintf(number, sizeof number, "%lld\n", (long long)value);
    put_text(s, number);
}

size_t wt_telemetry_prometheus(const wt_telemetry_view *snapshot, char *text, size_t text_bytes)
{
    text_sink s = {text, text_bytes, 0};
    for (int f = 0; f < WT_N_FIGURES; f++) {
        char metric[64], head[256];
        bool counter = figures[f].kind == COUNTER;
        snprintf(metric, sizeof metric, "warptone_%s%s", figures[f].name, counter ? "_total" : "");
        snprintf(head, sizeof head, "# HELP %s %s.\n# TYPE %s %s\n", metric, figures[f].text, metric,
                 counter ? "counter" : "gauge");
        put_text(&s, head);
        for (int k = 0; k < snapshot->n_rows; k++)
            put_sample(&s, metric, &snapshot->rows[k], snapshot->rows[k].figures[f]);
    }
    if (text_bytes) text[s.length < text_bytes ? s.length : text_bytes - 1] = 0;
    return s.length;
}
