/// The scheduler: which task runs next in which partition, and which work is accepted at all.
///
/// It decides and keeps account; executors act. An executor is a struct of callbacks (a CPU worker group, CUDA streams,
/// the simulator); it starts tasks when told and reports back with wt_scheduler_finish or wt_scheduler_yield. The clock
/// can be a virtual one: nothing here sleeps unless `timer_thread` is set, so the same code plans in virtual time.
///
///     pending --> queued --> admitted <--> running --> completed | failed
///        |           |          |             |
///        +-----------+----------+-------------+------> cancelled, failed       docs/scheduler.md has the whole picture
///
/// Threads: every call may come from any thread but the audio callback. One mutex guards a scheduler; it is held for
/// a decision (O(log n)), never while a callback of an executor or a `done` callback runs. Those callbacks come one at
/// a time, in the order of the decisions, on whichever thread made them possible, and may call the scheduler again.
/// Memory: all of it is taken in wt_scheduler_create and wt_scheduler_add_partition.
#ifndef WARPTONE_SCHEDULER_H
#define WARPTONE_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/clock.h>
#include <warptone/status.h>
#include <warptone/tier.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WT_SCHEDULER_MAX_LANES = 64, ///< tasks one partition runs at once
    WT_SCHEDULER_MAX_FLOWS = 64, ///< shares of the weighted-fair policy in one partition
    WT_SCHEDULER_MAX_KINDS = 64, ///< measured kinds of work in one partition
    WT_SCHEDULER_NAME_BYTES = 32,
};

typedef struct wt_scheduler wt_scheduler;

/// A task's handle, a value: copy it freely. It never names another task: `serial` counts up in one scheduler from 1,
/// and `salt` differs between schedulers (by chance alike once in 2^32). Serial 0 = no task.
typedef struct wt_task {
    uint64_t serial;
    uint32_t slot, salt;
} wt_task;

/// The order of burstable, and of best-effort, tasks in one partition; equal ones in order of submission. Guaranteed
/// tasks always go by earliest deadline (and preempt), since that is what their admission test proves.
typedef enum wt_policy {
    WT_POLICY_FIFO,
    WT_POLICY_SHORTEST_JOB,      ///< smallest expected cost first
    WT_POLICY_PRIORITY,          ///< highest priority first; preempts
    WT_POLICY_EARLIEST_DEADLINE, ///< earliest absolute deadline first, those without one last; preempts
    WT_POLICY_WEIGHTED_FAIR,     ///< flows share device time by weight: start-time fair queueing (Goyal et al. 1996)
    WT_N_POLICIES
} wt_policy;

typedef enum wt_task_state {
    WT_TASK_PENDING,  ///< waits for its dependencies, or is held
    WT_TASK_QUEUED,   ///< waits for memory, bandwidth or time to be reserved
    WT_TASK_ADMITTED, ///< has its reservation; waits for a lane, its next period, or its turn after a yield
    WT_TASK_RUNNING,  ///< handed to the executor
    WT_TASK_COMPLETED,
    WT_TASK_FAILED,
    WT_TASK_CANCELLED,
    WT_N_TASK_STATES
} wt_task_state;

typedef enum wt_outcome { WT_ADMITTED, WT_QUEUED, WT_REJECTED } wt_outcome;

// clang-format off
#define WT_REASON_LIST(X)                                                                        \
    X(WT_REASON_NONE,         "none")                                                            \
    X(WT_REASON_FULL,         "the scheduler holds as many tasks as it has room for")            \
    X(WT_REASON_MEMORY,       "memory quota")                                                    \
    X(WT_REASON_BANDWIDTH,    "bandwidth share")                                                 \
    X(WT_REASON_TIME,         "device time: the deadlines could not all be met")                 \
    X(WT_REASON_COST_UNKNOWN, "a guarantee needs a cost, given or measured")                     \
    X(WT_REASON_BLOCKING,     "it, or the partition, may block others longer than blocking_ns")  \
    X(WT_REASON_DEPENDENCY,   "dependencies")                                                    \
    X(WT_REASON_TURN,         "others wait before it")                                           \
    X(WT_REASON_HUNG,         "work that does not end holds all lanes of the partition")
// clang-format on

/// Why a task was rejected, or what a queued one waits for. HUNG also stands in the line of an admitted task.
typedef enum wt_reason {
#define WT_REASON_ENUM(code, text) code,
    WT_REASON_LIST(WT_REASON_ENUM)
#undef WT_REASON_ENUM
        WT_N_REASONS
} wt_reason;

const char *wt_reason_text(wt_reason reason);         ///< Never NULL.  [any]
const char *wt_task_state_text(wt_task_state state);  ///< "pending", "queued", ... Never NULL.  [any]

/// What the executor runs; the scheduler only hands it on. Set one of the first three, which the executor of the
/// partition takes: `run` the CPU executor, `device` the device executor, `graph` both.
typedef struct wt_job wt_job;
typedef struct wt_work {
    wt_status (*run)(void *user, wt_job *job); ///< a function
    struct wt_device_work *device;             ///< a function that queues on a stream (device_executor.h); borrowed
    struct wt_graph *graph;                    ///< a recorded graph (graph.h); borrowed, and not updated meanwhile
    void *user;                                ///< of `run`; all are borrowed until the task ended
} wt_work;

/// How tasks of one partition are run. Callbacks must be short: others wait behind them.
typedef struct wt_executor {
    void *user; ///< borrowed until the partition is removed or the scheduler destroyed
    /// Begin (or, after a yield, go on with) the task; `work` is borrowed for the call. An error fails the task.
    wt_status (*start)(void *user, wt_task task, const wt_work *work);
    /// Give the lane back soon: answer with wt_scheduler_yield, or finish. NULL = tasks cannot be interrupted.
    void (*yield)(void *user, wt_task task);
    /// The task is no longer wanted: finish it soon, with any status. NULL = running tasks run to their end.
    void (*cancel)(void *user, wt_task task);
    /// Name what the running task has on the device, such as "kernel conv", for the report of a hang. NULL = nothing.
    void (*describe)(void *user, wt_task task, char *text, size_t text_bytes);
} wt_executor;

/// A run that does not give its lane back. It cannot be ended by force: it keeps the lane, in case it ends after all.
typedef struct wt_hang {
    wt_task task;
    int partition;
    char name[WT_SCHEDULER_NAME_BYTES]; ///< of the task
    char what[64];                      ///< as the executor describes it, "" = it does not
    int64_t running_ns;                 ///< since it went on the lane
} wt_hang;

/// One line of the decision log.
typedef struct wt_trace {
    int64_t time_ns;
    uint64_t serial; ///< a rejected task has one too, that no handle carries
    int partition;
    wt_task_state from, to; ///< equal for a task that was just made (PENDING), a yield request or a hang (RUNNING)
    wt_reason reason;       ///< of a rejected task (PENDING to PENDING), of a hang, or what a queued one waits for
    wt_status status;       ///< of a task that ended or was rejected
} wt_trace;

typedef struct wt_scheduler_config {
    const wt_clock *clock;  ///< NULL = CLOCK_MONOTONIC; borrowed until destroy
    int max_tasks;          ///< that have not ended, 0 = 16384, at most 2^20
    int max_dependencies;   ///< edges between them, 0 = 4 * max_tasks
    int history;            ///< ended tasks that can still be asked about, 0 = 1024, at most 2^20
    int max_partitions;     ///< 0 = 16, at most 1024
    size_t memory_bytes;    ///< of the device: quotas may not sum above it; 0 = not checked
    bool overcommit;        ///< let quotas and shares of partitions sum above the whole
    bool timer_thread;      ///< keep a thread that calls wt_scheduler_poll in time; needs the real clock
    void (*trace)(void *user, const wt_trace *line); ///< called inside the lock: must not call the scheduler
    void *trace_user;
} wt_scheduler_config;

/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_scheduler_create(const wt_scheduler_config *config, wt_scheduler **scheduler);
/// Stop the executors first: nothing may be running or call any more. NULL is allowed.  [any but rt]
void wt_scheduler_destroy(wt_scheduler *scheduler);

typedef struct wt_scheduler_partition_config {
    const char *name;       ///< copied, at most 31 bytes are kept; NULL = ""
    wt_executor executor;   ///< copied; `start` is required
    wt_policy policy;
    int n_lanes;            ///< tasks at once, 0 = 1; more than one are taken to be independent processors
    size_t memory_bytes;    ///< quota, 0 = no limit
    double bandwidth_share; ///< of the device's memory bandwidth, that tasks may reserve; 0 = not managed, none counted
    double time_share;      ///< of each lane, that tasks may reserve, 0 = 1
    int64_t blocking_ns;    ///< longest stretch a running task keeps its lane after being asked to yield (its slice),
                            ///< or runs at all without a `yield` callback (then longer tasks are rejected); enters the
                            ///< admission test. 0 = yields at once, or, without the callback, no guarantees are given
    double pacing_share;    ///< burstable and best-effort work gets this share of one lane's time, 0 = all
    double pacing_burst_us; ///< as wt_pacer_config
    int64_t hang_ns; ///< who keeps a lane longer, without yield or end, is hung; 0 = no watchdog. While all lanes
                     ///< are hung the partition is blocked: guaranteed tasks are rejected, others queued or held
                     ///< in their line, with WT_REASON_HUNG; other partitions go on
    void (*hung)(void *user, const wt_hang *hang); ///< told once a hang, like an executor's callbacks; NULL = no one
    void *hung_user;                               ///< borrowed like the executor
} wt_scheduler_partition_config;

/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_QUOTA (more than is left), WT_ERR_FULL.  [any but rt]
WT_CHECKED wt_status wt_scheduler_add_partition(wt_scheduler *scheduler, const wt_scheduler_partition_config *config,
                                                int *partition);
/// Waits until the executor's callbacks under way on other threads are over; then the executor is no longer used.
/// Errors: WT_ERR_BAD_ARG (none of that number), WT_ERR_STATE (tasks that have not ended are in it, or called from a
/// callback).  [any but rt]
WT_CHECKED wt_status wt_scheduler_remove_partition(wt_scheduler *scheduler, int partition);

typedef struct wt_task_config {
    const char *name; ///< copied, at most 31 bytes are kept; NULL = ""
    int partition;
    wt_tier tier;           ///< 0 = best effort
    wt_work work;           ///< copied
    size_t memory_bytes;    ///< held from admission to the end
    double bandwidth_share; ///< 0 .. 1, held likewise (not for best effort)
    int64_t cost_ns;        ///< worst-case device time of one run, 0 = the largest measured of its kind, or unknown
    int kind;               ///< 1 .. 63: runs of one kind in one partition share a measured cost; 0 = none
    int64_t deadline_ns;    ///< after release (dependencies met, or the period's start); 0 = the period, or none
    int64_t period_ns;      ///< 0 = once
    int64_t start_ns;       ///< periodic: first release on the clock, 0 = when admitted
    int64_t n_jobs;         ///< periodic: periods to run, 0 = until cancelled
    bool skip_missed;       ///< periodic: after an overrun go on with the next period, do not catch up
    int64_t timeout_ns;     ///< a run that lasts longer is cancelled and fails with WT_ERR_TIMEOUT; 0 = no watchdog
    int priority;           ///< higher is sooner, under WT_POLICY_PRIORITY
    double weight;          ///< of its flow, 0 = 1
    int flow;               ///< 0 .. 63: whose share, under WT_POLICY_WEIGHTED_FAIR
    bool held;              ///< stay pending until wt_scheduler_release
    const wt_task *after;   ///< [n_after] tasks that must complete first; copied
    int n_after;
    /// Told once when the task has ended; NULL = no one. Outside the lock, like an executor's callbacks.
    void (*done)(void *user, wt_task task, wt_task_state state, wt_status status);
    void *done_user; ///< borrowed until then
} wt_task_config;

typedef struct wt_admission {
    wt_outcome outcome;
    wt_reason reason;
    int64_t position; ///< tasks before it: in the partition's queue, or among the admitted; -1 = pending or rejected
} wt_admission;

/// Offer a task. What happens to it depends on nothing but the calls and clock readings so far. `admission` may be
/// NULL. If one of `after` fails or is cancelled, so does this task (with WT_ERR_CANCELLED, or the failure's status).
/// Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_REJECTED with the reason; then `*task` has serial 0.  [any but rt]
WT_CHECKED wt_status wt_scheduler_submit(wt_scheduler *scheduler, const wt_task_config *config, wt_task *task,
                                         wt_admission *admission);
/// The same decision, with nothing done. Errors: WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt_scheduler_evaluate(wt_scheduler *scheduler, const wt_task_config *config,
                                           wt_admission *admission);

/// Let `task` (pending: held or waiting) wait for `after` as well. Searches what waits for `task`: O(edges).
/// Errors: WT_ERR_BAD_ARG (unknown task, or it would close a cycle), WT_ERR_STATE (not pending, or `after` failed or
/// was cancelled), WT_ERR_FULL.  [any but rt]
WT_CHECKED wt_status wt_scheduler_depend(wt_scheduler *scheduler, wt_task task, wt_task after);
/// End the hold of a held task. Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (it was not held).  [any but rt]
WT_CHECKED wt_status wt_scheduler_release(wt_scheduler *scheduler, wt_task task);

/// End a task that has not ended. A running one ends when its executor reports it; it is cancelled even if the work
/// came to its end. Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (it has ended).  [any but rt]
WT_CHECKED wt_status wt_scheduler_cancel(wt_scheduler *scheduler, wt_task task);

/// Executors: the run ended with `status` after `device_ns` of device time since the last start.
/// Errors: WT_ERR_BAD_ARG (unknown task, negative time), WT_ERR_STATE (not running, or not yet started).  [any but rt]
WT_CHECKED wt_status wt_scheduler_finish(wt_scheduler *scheduler, wt_task task, wt_status status, int64_t device_ns);
/// Executors: the run is not at its end but gives its lane back; it will be started again.  Errors: as finish.
/// [any but rt]
WT_CHECKED wt_status wt_scheduler_yield(wt_scheduler *scheduler, wt_task task, int64_t device_ns);

/// Do what has become due: releases of periods, paced work, watchdogs. `*next_ns` (may be NULL): when to call again,
/// INT64_MAX = never by itself; any other call may move it. Errors: none yet.  [any but rt]
wt_status wt_scheduler_poll(wt_scheduler *scheduler, int64_t *next_ns);

/// Wait in real time until the task has ended and `done` has returned; gives how it ended (WT_OK, WT_ERR_CANCELLED, its
/// failure). `timeout_ns` < 0 = forever.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (called from a callback: it would never end), WT_ERR_TIMEOUT: not over by then.
/// A task that ran longer than its own `timeout_ns` gives WT_ERR_TIMEOUT as well, since so it ended: that one is
/// WT_TASK_FAILED for wt_scheduler_get_task, and the sentence of wt_last_error says "ended".  [worker]
WT_CHECKED wt_status wt_scheduler_wait(wt_scheduler *scheduler, wt_task task, int64_t timeout_ns);

// ---- figures

typedef struct wt_task_info {
    char name[WT_SCHEDULER_NAME_BYTES];
    wt_task_state state;
    wt_status status; ///< of a task that has ended
    wt_tier tier;
    int partition;
    wt_reason waits_for;      ///< of a pending or queued task; WT_REASON_HUNG of a ready one in a blocked partition
    bool hung;                ///< it runs longer than the partition's hang_ns
    int64_t position;         ///< tasks before it, -1 when it does not stand in a line
    int64_t submitted_ns, admitted_ns, started_ns, ended_ns; ///< 0 = not yet; started: the first run
    int64_t predicted_ns;     ///< its first start as it was foretold last, 0 = it was not (wt_scheduler_predict)
    int64_t handed_ns;        ///< its first start as it was: the executor had taken it (without a prediction: was told)
    int64_t wait_ns;          ///< over all runs: from ready (released) to started
    int64_t device_ns;        ///< measured, over all runs
    int64_t worst_device_ns;  ///< of one run
    int64_t worst_response_ns; ///< release to end of one run
    int64_t n_jobs;           ///< runs that ended
    int64_t n_missed;         ///< that ended after their deadline, or were skipped
    int64_t n_overruns;       ///< that took longer than the cost they were admitted with
    int64_t n_yields;
    int64_t n_throttled;      ///< times it was first in line and had to wait for the pacer
} wt_task_info;

/// Errors: WT_ERR_BAD_ARG: foreign, never made, or ended and out of the history.  [any but rt]
WT_CHECKED wt_status wt_scheduler_get_task(wt_scheduler *scheduler, wt_task task, wt_task_info *info);

/// When the task will start if costs are as expected (the mean of its kind, else the stated cost), nothing more arrives
/// (releases of periods count as arrivals), what runs now runs to its end and nothing is paced. Submit makes the same
/// prediction where it is O(log n) and nothing is paced. The last one before the first start is compared with that
/// start: wt_task_info, and the sums in wt_scheduler_partition_stats.
/// O(log n) for admitted tasks of a partition with one lane, else O(n log lanes) in the tasks before it.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (pending, ended, or before its next period), WT_ERR_NOT_FOUND (it waits behind
/// a cost that is unknown, or for room that no running task gives back).  [any but rt]
WT_CHECKED wt_status wt_scheduler_predict(wt_scheduler *scheduler, wt_task task, int64_t *start_ns);

typedef struct wt_scheduler_partition_stats {
    char name[WT_SCHEDULER_NAME_BYTES];
    int n_pending, n_queued, n_ready, n_running; ///< now; ready: admitted and released
    int n_waiting;                               ///< admitted, before their next period
    uint64_t n_submitted, n_rejected, n_completed, n_failed, n_cancelled;
    uint64_t n_jobs, n_missed, n_overruns, n_yields, n_throttled, n_timeouts;
    size_t memory_bytes, peak_memory_bytes; ///< reserved
    double bandwidth_share;                 ///< reserved
    double time_share;                      ///< reserved by periodic and dated tasks, of one lane
    int64_t device_ns;                      ///< measured
    int64_t wait_ns, worst_wait_ns, worst_response_ns;
    int n_hung;                 ///< lanes held by runs that hang, now; all of them = the partition is blocked
    uint64_t n_hangs;           ///< ever reported
    uint64_t n_predicted;       ///< tasks that started with a prediction made while they stood in a line
    int64_t prediction_bias_ns; ///< mean of start - prediction
    int64_t prediction_error_ns, prediction_p99_ns, prediction_worst_ns; ///< of its size: mean, 99 %, largest
} wt_scheduler_partition_stats;

/// Errors: WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt_scheduler_get_partition(wt_scheduler *scheduler, int partition,
                                                wt_scheduler_partition_stats *stats);

typedef struct wt_kind_cost {
    int64_t worst_ns, mean_ns, n_runs;
} wt_kind_cost;
/// The largest and mean device time measured for a kind of work, and how many runs; zeros before the first.
/// Errors: WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt_scheduler_get_cost(wt_scheduler *scheduler, int partition, int kind, wt_kind_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
