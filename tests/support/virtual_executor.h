/// A scheduler in virtual time: an executor whose tasks take the time their job says, and a clock that jumps from one
/// event to the next.
#ifndef WT_VIRTUAL_EXECUTOR_H
#define WT_VIRTUAL_EXECUTOR_H

#include <warptone/scheduler.h>

enum { VIRTUAL_MAX_RUNNING = 256, VIRTUAL_MAX_LOG = 1 << 16 };

/// What `work.user` of a task points to.
typedef struct virtual_job {
    int64_t cost_ns, left_ns; ///< left: of a run that was interrupted; 0 = none
    int id;                   ///< goes into the log at each start
    wt_status status;         ///< what its runs end with
} virtual_job;

typedef struct virtual_executor {
    wt_manual_clock clock;
    wt_scheduler *scheduler;
    struct {
        wt_task task;
        virtual_job *job;
        int64_t begin_ns, stop_ns; ///< stop: gives its lane back then, INT64_MAX = was not asked
    } running[VIRTUAL_MAX_RUNNING];
    int n_running;
    int log[VIRTUAL_MAX_LOG], n_log; ///< ids in order of start
    int64_t log_ns[VIRTUAL_MAX_LOG];
    int64_t slice_ns;       ///< how long a task keeps its lane when asked for it
    wt_status start_status; ///< what start answers
} virtual_executor;

/// `config` may be NULL; its clock is set. Fails the test when something goes wrong, as all of these do.
virtual_executor *virtual_create(const wt_scheduler_config *config);
void virtual_destroy(virtual_executor *v);
/// Add a partition; the executor of `config` is set. `preempts`: with a yield callback.
int virtual_partition(virtual_executor *v, wt_scheduler_partition_config config, bool preempts);
/// What the scheduler answers to these, which must not fail.
wt_task virtual_submit(virtual_executor *v, const wt_task_config *config);
wt_task_info virtual_info(virtual_executor *v, wt_task task);
wt_scheduler_partition_stats virtual_stats(virtual_executor *v, int partition);
/// Play until nothing is left to happen, or until the clock would pass `until_ns`; then the clock stands there.
void virtual_play(virtual_executor *v, int64_t until_ns);

#endif
