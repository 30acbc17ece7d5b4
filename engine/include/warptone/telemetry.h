/// Telemetry: live figures a partition or task, written without locks by whoever does the work, read as snapshots.
///
///     wt_telemetry_open_row(t, &(wt_telemetry_row_config){.kind = WT_TELEMETRY_PARTITION, .name = "llm"}, &row);
///     wt_telemetry_add(row, WT_FIGURE_LAUNCHES, 1);               // anywhere, also in the audio thread
///     wt_telemetry_snapshot(t, &snapshot);                        // values of all rows
///
/// A snapshot can be published in shared memory ("warptone.PID"), where another process, such as `warptone top`, reads
/// it; and written as Prometheus text.
#ifndef WARPTONE_TELEMETRY_H
#define WARPTONE_TELEMETRY_H

#include <stddef.h>
#include <stdint.h>
#include <warptone/partition.h>
#include <warptone/pool.h>
#include <warptone/scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
/// X(code, name as in JSON and Prometheus, kind, text). COUNTERs only grow (their Prometheus names end with _total);
/// GAUGEs are the present value.
#define WT_FIGURE_LIST(X)                                                                                 \
    X(WT_FIGURE_DEVICE_NS,       "device_ns",           COUNTER, "Measured device time in nanoseconds")   \
    X(WT_FIGURE_LAUNCHES,        "launches",            COUNTER, "Launches handed to the device")         \
    X(WT_FIGURE_FAILURES,        "failures",            COUNTER, "Launches or runs that failed")          \
    X(WT_FIGURE_RUNS,            "runs",                COUNTER, "Runs that ended")                       \
    X(WT_FIGURE_DEADLINE_MISSES, "deadline_misses",     COUNTER, "Runs that ended after their deadline")  \
    X(WT_FIGURE_THROTTLES,       "throttles",           COUNTER, "Times that work waited for the pacer")  \
    X(WT_FIGURE_SLICES,          "slices",              COUNTER, "Slices of sliced work")                 \
    X(WT_FIGURE_OVERDUE,         "overdue",             COUNTER, "Launches that outran their watchdog")   \
    X(WT_FIGURE_EVICTIONS,       "evictions",           COUNTER, "Memory blocks moved to the host")       \
    X(WT_FIGURE_RESTORES,        "restores",            COUNTER, "Memory blocks brought back")            \
    X(WT_FIGURE_SMS,             "sms",                 GAUGE,   "SMs, or processors, of the partition")  \
    X(WT_FIGURE_SM_PERMILLE,     "sm_permille",         GAUGE,   "The same in thousandths of the device") \
    X(WT_FIGURE_MEMORY_USED,     "memory_used_bytes",   GAUGE,   "Memory in use")                         \
    X(WT_FIGURE_MEMORY_PEAK,     "memory_peak_bytes",   GAUGE,   "Most memory in use so far")             \
    X(WT_FIGURE_MEMORY_QUOTA,    "memory_quota_bytes",  GAUGE,   "Memory quota")                          \
    X(WT_FIGURE_MEMORY_EVICTED,  "memory_evicted_bytes",GAUGE,   "Memory moved to the host")              \
    X(WT_FIGURE_MEMORY_HELD,     "memory_held_bytes",   GAUGE,   "Of a partition's quota, by its pools") \
    X(WT_FIGURE_STREAMS,         "streams",             GAUGE,   "Streams of a partition")               \
    X(WT_FIGURE_PENDING_KERNELS, "pending_kernels",     GAUGE,   "Launches of a partition in flight")    \
    X(WT_FIGURE_PENDING_COPIES,  "pending_transfers",   GAUGE,   "Transfers of a partition on their way") \
    X(WT_FIGURE_COPIED_BYTES,    "copied_bytes",        COUNTER, "Bytes that transfers of it copied")    \
    X(WT_FIGURE_COPIED_NS,       "copied_ns",           COUNTER, "Link time that they took")             \
    X(WT_FIGURE_COPY_THROTTLES,  "copy_throttles",      COUNTER, "Times that one waited for its share")  \
    X(WT_FIGURE_QUEUED,          "queued",              GAUGE,   "Launches or tasks that wait")           \
    X(WT_FIGURE_IN_FLIGHT,       "in_flight",           GAUGE,   "Launches on the device, or running")    \
    X(WT_FIGURE_QUEUE_POSITION,  "queue_position",      GAUGE,   "Tasks before it; -1 = not in a line")   \
    X(WT_FIGURE_HUNG,            "hung",                GAUGE,   "Lanes held by runs that do not end")    \
    X(WT_FIGURE_PREDICTION_MEAN, "prediction_error_ns", GAUGE,   "Mean error of foretold starts")         \
    X(WT_FIGURE_PREDICTION_P99,  "prediction_p99_ns",   GAUGE,   "99 % of those errors are smaller")
// clang-format on

typedef enum wt_figure {
#define WT_FIGURE_ENUM(code, name, kind, text) code,
    WT_FIGURE_LIST(WT_FIGURE_ENUM)
#undef WT_FIGURE_ENUM
        WT_N_FIGURES
} wt_figure;

const char *wt_figure_name(wt_figure figure); ///< "device_ns"; "" for no figure.  [any]
bool wt_figure_is_counter(wt_figure figure);  ///< [any]

typedef struct wt_telemetry wt_telemetry;
typedef struct wt_telemetry_row wt_telemetry_row;

enum { WT_TELEMETRY_ROWS = 64, WT_TELEMETRY_NAME_BYTES = 32 };

/// Room for WT_TELEMETRY_ROWS rows. Errors: WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_telemetry_create(wt_telemetry **telemetry);
/// Removes what was published; nobody may write any more. NULL is allowed.  [any but rt]
void wt_telemetry_destroy(wt_telemetry *telemetry);

typedef enum wt_telemetry_kind { WT_TELEMETRY_PARTITION, WT_TELEMETRY_TASK } wt_telemetry_kind;

typedef struct wt_telemetry_row_config {
    wt_telemetry_kind kind;
    const char *name;      ///< 1 .. 31 bytes, copied
    const char *partition; ///< of a task, likewise; NULL = ""
    wt_tier tier;
} wt_telemetry_row_config;

/// A row of zeros. Errors: WT_ERR_BAD_ARG (name), WT_ERR_FULL.  [any but rt]
WT_CHECKED wt_status wt_telemetry_open_row(wt_telemetry *telemetry, const wt_telemetry_row_config *config,
                                           wt_telemetry_row **row);
/// Its figures leave the next snapshot; nobody may write it any more. NULL is allowed.  [any but rt]
void wt_telemetry_close_row(wt_telemetry_row *row);

/// Add to a counter, set a gauge. Rows lie on cache lines of their own. NULL row is allowed.  [rt]
WT_RT void wt_telemetry_add(wt_telemetry_row *row, wt_figure figure, int64_t amount);
WT_RT void wt_telemetry_set(wt_telemetry_row *row, wt_figure figure, int64_t value);

/// Fill a row from the engine's own figures; call before a snapshot. A figure of a row has one source.  [any but rt]
void wt_telemetry_sample_partition(wt_telemetry_row *row, wt_partition *partition);
void wt_telemetry_sample_pool(wt_telemetry_row *row, wt_pool *pool);
/// Of a scheduler's partition: device time, runs, misses, throttles, slices, hangs (as overdue), what waits and runs,
/// and how well starts were foretold. Errors: as wt_scheduler_get_partition; then nothing is written.  [any but rt]
WT_CHECKED wt_status wt_telemetry_sample_scheduler(wt_telemetry_row *row, wt_scheduler *scheduler, int partition);
/// Errors: as wt_scheduler_get_task; then nothing is written.  [any but rt]
WT_CHECKED wt_status wt_telemetry_sample_task(wt_telemetry_row *row, wt_scheduler *scheduler, wt_task task);

typedef struct wt_telemetry_values {
    wt_telemetry_kind kind;
    wt_tier tier;
    char name[WT_TELEMETRY_NAME_BYTES], partition[WT_TELEMETRY_NAME_BYTES];
    int64_t figures[WT_N_FIGURES];
} wt_telemetry_values;

typedef struct wt_telemetry_view {
    int64_t time_ns; ///< monotonic
    int64_t pid;
    int n_rows;
    wt_telemetry_values rows[WT_TELEMETRY_ROWS]; ///< [n_rows], partitions before tasks, in the order of opening
} wt_telemetry_view;

/// Read all rows: each figure is as it was at some time during the call.  [any but rt]
void wt_telemetry_snapshot(wt_telemetry *telemetry, wt_telemetry_view *snapshot);

/// Write `snapshot` as Prometheus text (version 0.0.4) into `text` [text_bytes], with a NUL, as far as it fits; returns
/// the bytes of the whole without the NUL. Metrics are "warptone_" + name; labels kind, name, partition, tier.  [any]
size_t wt_telemetry_prometheus(const wt_telemetry_view *snapshot, char *text, size_t text_bytes);

// ---- other processes

/// Take a snapshot and put it into shared memory, "warptone.PID", readable by this user; made by the first call.
/// Call it a few times a second. Errors: WT_ERR_FILE, WT_ERR_STATE (another telemetry of this process publishes).
/// [any but rt, one thread]
WT_CHECKED wt_status wt_telemetry_publish(wt_telemetry *telemetry);

/// What process `pid` published last. Reads at most the size of a snapshot, whatever lies there.
/// Errors: WT_ERR_NOT_FOUND (nothing, or the process is gone), WT_ERR_FORMAT (another version, damaged), WT_ERR_TIMEOUT
/// (it died while writing).  [any but rt]
WT_CHECKED wt_status wt_telemetry_read(int64_t pid, wt_telemetry_view *snapshot);

/// Processes of this user that publish, into `pids` [max]; returns how many. Segments of dead processes are removed.
/// [any but rt]
int wt_telemetry_list(int64_t *pids, int max);

#ifdef __cplusplus
}
#endif
#endif
