/// A partition of the CPU: pinned worker threads that run a scheduler's tasks as plain functions.
///
///     wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = s, .n_threads = 2}, &workers);
///     wt_scheduler_add_partition(s, &(wt_scheduler_partition_config){
///         .name = "speech", .executor = wt_cpu_executor_callbacks(workers), .n_lanes = 2}, &partition);
///
/// A function that runs long looks at wt_job_should_stop between pieces of its work; when that is true it keeps its own
/// progress in `user`, calls wt_job_continue_later and returns: it is called again when its turn comes.
/// A task may also be a graph of the CPU backend: its nodes run on the worker, one by one; between two of them it gives
/// way or is cancelled. A graph that was cancelled half-way begins anew when it is submitted again. Tasks may share a
/// graph: each runs all of it, and their nodes come in any order among each other, as launches on two streams do.
#ifndef WARPTONE_CPU_EXECUTOR_H
#define WARPTONE_CPU_EXECUTOR_H

#include <warptone/scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_cpu_executor wt_cpu_executor;

typedef struct wt_cpu_executor_config {
    wt_scheduler *scheduler; ///< borrowed until destroy
    int n_threads;           ///< 0 = 1, at most WT_SCHEDULER_MAX_LANES; the partition's n_lanes must not be more
    const int *cpus;         ///< [n_cpus] processors the threads may use, taken in turn; copied; NULL = any
    int n_cpus;
    int nice;                ///< -20 .. 19; where the system does not permit it, threads stay as they are
    int realtime_priority;   ///< 1 .. 99 = SCHED_FIFO, likewise; 0 = ordinary
} wt_cpu_executor_config;

/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY (or no more threads).  [any but rt]
WT_CHECKED wt_status wt_cpu_executor_create(const wt_cpu_executor_config *config, wt_cpu_executor **executor);
/// Ask running functions to stop, wait for them, end the threads; what is ready ends as cancelled. Before the
/// scheduler's destroy, after the last submit, and after what still waits for a time or for other tasks was cancelled:
/// it would be started later. NULL is allowed.  [any but rt]
void wt_cpu_executor_destroy(wt_cpu_executor *executor);
/// What goes into the partition's config; borrows the executor.  [any]
wt_executor wt_cpu_executor_callbacks(wt_cpu_executor *executor);

typedef struct wt_cpu_executor_info {
    int n_threads;
    int n_pinned;   ///< threads whose processor was accepted by the system
    int n_priority; ///< and whose nice or real-time priority was
} wt_cpu_executor_info;
void wt_cpu_executor_get_info(const wt_cpu_executor *executor, wt_cpu_executor_info *info); ///< [any]

/// Inside a running function: should it return soon, because it was cancelled or more urgent work waits?  [worker]
WT_RT bool wt_job_should_stop(const wt_job *job);
/// Was it cancelled? Then there is no later.  [worker]
WT_RT bool wt_job_is_cancelled(const wt_job *job);
/// This call returns before the end of the work: call again.  [worker]
void wt_job_continue_later(wt_job *job);
/// The scheduler's handle of this task.  [worker]
wt_task wt_job_task(const wt_job *job);

#ifdef __cplusplus
}
#endif
#endif
