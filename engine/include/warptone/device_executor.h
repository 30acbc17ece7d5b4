/// Runs a scheduler's tasks on a device: a task is a function that queues work on a stream of its partition, or a graph
/// recorded there (then `.work = {.graph = graph}`).
///
///     wt_device_executor_create(&(wt_device_executor_config){.scheduler = s, .partition = llm}, &executor);
///     wt_scheduler_add_partition(s, &(wt_scheduler_partition_config){
///         .name = "llm", .executor = wt_device_executor_callbacks(executor), .pacing_share = 0.5}, &partition);
///     wt_device_work work = {.queue = queue_layer, .user = &layer};
///     wt_scheduler_submit(s, &(wt_task_config){.partition = partition, .work = {.device = &work}}, &task, NULL);
///
/// Events before and after the work measure its device time; a thread of the executor sees the end and reports it to
/// the scheduler, whose pacer, costs and fair shares are so fed by the device's own clock. Work with an offset range is
/// launched in slices; after every slice the task yields, so pacing, cancelling and the order of others act between
/// slices. What is launched cannot be taken back: cancel waits for the end of the slice, or of the whole work.
#ifndef WARPTONE_DEVICE_EXECUTOR_H
#define WARPTONE_DEVICE_EXECUTOR_H

#include <warptone/pacing.h>
#include <warptone/partition.h>
#include <warptone/scheduler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_device_executor wt_device_executor;

/// What a task names as its `work.device`: zero it and set the first four; borrowed until the task ended. One task at a
/// time may use it. After a cancelled or failed task the progress must be set to 0 before it is submitted again.
typedef struct wt_device_work {
    /// Queue items offset_item .. offset_item + n_items - 1 on the stream and return; 0 and 0 when n_items below is 0.
    /// Called inside a scheduler's callback, on any thread: it must not wait. An error fails the task after what was
    /// queued has run.
    wt_status (*queue)(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items);
    void *user;
    int64_t n_items;   ///< 0 = one piece
    /// The same on a stream of the CPU backend, for fall_back_to_cpu. It must not need what lies on the lost device,
    /// and must bear that a slice is done twice. NULL = there is none: then the task fails with WT_ERR_DEVICE_LOST.
    wt_status (*queue_cpu)(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items);
    wt_slicer slicer;  ///< wt_slicer_init, when n_items is above 0; it learns from every slice
    int64_t done_items; ///< progress; back to 0 at the end of a run, as a periodic task wants it
    int64_t n_slices;      ///< measured so far
    double worst_slice_us; ///< and the longest of them
} wt_device_work;

typedef struct wt_device_executor_config {
    wt_scheduler *scheduler; ///< borrowed until destroy
    wt_partition *partition; ///< likewise
    int n_streams;  ///< 0 = 1, at most WT_SCHEDULER_MAX_LANES; the scheduler partition's n_lanes must not be more
    bool only_slices; ///< refuse work in one piece; then tasks can be asked to yield, within blocking_ns = a slice
    double poll_us;   ///< pause between looks at the device while work runs, at most 1e6; 0 = 20
    /// When the device is lost go on with a CPU device of the executor's own. The slice that was under way is run again
    /// from its first item, later ones and later tasks follow there; limits of the partition hold no longer, costs are
    /// the CPU's. Tasks without queue_cpu, and graphs, fail with WT_ERR_DEVICE_LOST at once, as all do without the
    /// flag.
    bool fall_back_to_cpu;
} wt_device_executor_config;

/// Streams, events and the thread. Errors: WT_ERR_BAD_ARG naming the field, WT_ERR_NO_MEMORY, and those of
/// wt_partition_stream_create.  [worker, not armed]
WT_CHECKED wt_status wt_device_executor_create(const wt_device_executor_config *config, wt_device_executor **executor);
/// Wait for what is launched (without end for a launch that never ends), end the thread; what is ready ends as
/// cancelled. Before the scheduler's destroy, after the last submit, and after what still waits for a time or for
/// other tasks was cancelled. NULL is allowed.  [worker, not armed]
void wt_device_executor_destroy(wt_device_executor *executor);
/// What goes into the scheduler partition's config; borrows the executor.  [any]
wt_executor wt_device_executor_callbacks(wt_device_executor *executor);

typedef struct wt_device_executor_info {
    int n_running;       ///< launches under way
    uint64_t n_launches; ///< pieces and slices that ended
    double device_us;    ///< measured over all launches
    bool lost;           ///< a launch met the loss of the device
    char why_lost[400];  ///< then: the tasks and kernels that were under way, and what the driver said
} wt_device_executor_info;
void wt_device_executor_get_info(wt_device_executor *executor, wt_device_executor_info *info); ///< [any but rt]

#ifdef __cplusplus
}
#endif
#endif
