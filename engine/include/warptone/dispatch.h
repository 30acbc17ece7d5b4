/// Dispatch: launches over several streams, each with a limit of what may be in flight, a priority, a life that can be
/// followed, and a name to blame.
///
///     wt_dispatch_create(device, &(wt_dispatch_config){.partition = llm}, &dispatch);
///     wt_dispatch_add_stream(dispatch, stream, NULL, &lane);
///     wt_dispatch_submit(dispatch, &(wt_dispatch_request){.lane = lane, .kernel = k, .launch = l, .args = a,
///                        .n_args = 2, .task = "decode"}, &ticket);
///     wt_dispatch_wait(dispatch, ticket, -1);
///
/// A launch goes to its stream at once when there is room, else it waits in a queue: higher priority first, then first
/// come; one that waits for others is overtaken meanwhile. Launches of one stream that are in flight end in order.
///
/// The end of a launch is noticed by events, one for every few launches (every one that is timed or watched), so it may
/// be noticed late by the others; asking for a ticket makes it exact. Ended tickets can be asked about, as often as
/// wanted, until `history` later ones have ended.
///
/// A fault on a GPU (a kernel that writes to a wrong address) loses the device for this process. Every later call
/// returns WT_ERR_DEVICE_LOST with a sentence that names the launches which may have been running: exactly one when one
/// was in flight or all busy streams but one were idle and that one is `traced`.
#ifndef WARPTONE_DISPATCH_H
#define WARPTONE_DISPATCH_H

#include <warptone/graph.h>
#include <warptone/partition.h>
#include <warptone/telemetry.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_dispatch wt_dispatch;

/// A handle; copy it freely. {0} is no launch of any dispatch.
typedef struct wt_dispatch_ticket {
    uint64_t dispatch;
    uint32_t slot, generation;
} wt_dispatch_ticket;

typedef enum wt_dispatch_state {
    WT_DISPATCH_QUEUED,   ///< waits for room in its stream
    WT_DISPATCH_LAUNCHED, ///< on its stream: running, or behind what runs
    WT_DISPATCH_COMPLETED,
    WT_DISPATCH_FAILED, ///< refused by the driver, or the device was lost
    WT_DISPATCH_CANCELLED,
} wt_dispatch_state;
const char *wt_dispatch_state_text(wt_dispatch_state state); ///< "queued", "launched", ... Never NULL.  [any]

enum { WT_DISPATCH_NAME_BYTES = 32, WT_DISPATCH_MAX_STREAMS = 64, WT_DISPATCH_MAX_AFTER = 4 };

typedef struct wt_dispatch_info {
    char name[WT_DISPATCH_NAME_BYTES]; ///< of the kernel
    char task[WT_DISPATCH_NAME_BYTES];
    wt_dispatch_state state;
    wt_status status; ///< of one that ended: WT_OK, WT_ERR_CANCELLED, WT_ERR_CUDA, WT_ERR_DEVICE_LOST ...
    int lane, priority;
    int64_t submitted_ns, launched_ns, ended_ns; ///< on the monotonic clock, 0 = not yet; ended: when it was noticed
    double device_us;                            ///< of one that was `timed` and completed, else 0
    bool overdue;                                ///< it ran longer than its watchdog time
} wt_dispatch_info;

typedef struct wt_dispatch_config {
    const char *name;              ///< stands in sentences, "dispatch NAME: ..."; NULL = "work"; copied, 31 bytes kept
    wt_partition *partition;       ///< its max_pending_kernels holds for all its dispatches together: what is above it
                                   ///< is queued. NULL = no such limit. Borrowed until destroy
    int max_in_flight;             ///< of all streams of this dispatch, 0 = the partition's limit as it is now, and
                                   ///< 1024 at least
    int max_queued;                ///< 0 = 256, at most 65536; each keeps 5 KB
    int history;                   ///< ended tickets that can be asked about, 0 = 1024, at most 2^20
    bool no_thread;                ///< do not keep a thread: the queue and the watchdogs move in calls only
    /// A launch has run longer than its watchdog time; told once, outside the lock, by the thread or whoever calls.
    void (*on_watchdog)(void *user, wt_dispatch_ticket ticket, const wt_dispatch_info *info);
    void *user;
    wt_telemetry_row *telemetry; ///< counts launches, device time, failures here; NULL = nowhere; borrowed
} wt_dispatch_config;

/// Errors: WT_ERR_BAD_ARG (sizes, a partition of another device), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_dispatch_create(wt_device *device, const wt_dispatch_config *config, wt_dispatch **dispatch);
/// Cancels what is queued and waits for what is in flight. No other thread may be in a call. NULL is allowed.  [worker]
void wt_dispatch_destroy(wt_dispatch *dispatch);

typedef struct wt_dispatch_stream_config {
    int max_in_flight; ///< 0 = 64, at most 4096
    bool traced; ///< on a GPU: a memory write after each launch says which one a fault hit; costs 1 us of device time
} wt_dispatch_stream_config;

/// Dispatch to `stream` too, which is borrowed until it is removed. Work that others queue on it is waited for like
/// ours. Errors: WT_ERR_BAD_ARG, WT_ERR_FULL, WT_ERR_UNSUPPORTED (traced: old driver), WT_ERR_NO_MEMORY.  [worker]
WT_CHECKED wt_status wt_dispatch_add_stream(wt_dispatch *dispatch, wt_stream *stream,
                                            const wt_dispatch_stream_config *config, int *lane);
/// Waits until threads that wait for its launches, all of which have ended, have noticed.
/// Errors: WT_ERR_STATE (work is queued or in flight), WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_dispatch_remove_stream(wt_dispatch *dispatch, int lane);

/// What to launch: one of kernel, function and graph.
typedef struct wt_dispatch_request {
    int lane;
    wt_kernel *kernel; ///< a GPU's
    wt_launch launch;
    const wt_arg *args; ///< [n_args]; values are copied during the call
    int n_args;
    wt_cpu_function function; ///< the CPU backend's, as wt_stream_run; `args` has one or none
    int n_items;
    wt_graph *graph;     ///< borrowed until it ended
    const char *name;    ///< NULL = the kernel's, "function" or "graph"; copied, as `task` is, 31 bytes kept
    const char *task;    ///< on whose behalf; NULL = ""
    int priority;        ///< in the queue: higher is sooner
    bool timed;          ///< measure its device time
    int64_t watchdog_us; ///< report it when it runs longer; 0 = never. Its time begins when all before it has ended
    const wt_dispatch_ticket *after; ///< [n_after] launches, of any lane, that must have run; copied
    int n_after;                     ///< 0 .. WT_DISPATCH_MAX_AFTER
    wt_event *wait; ///< the stream waits for its last record made when this is launched; borrowed until then
} wt_dispatch_request;

/// Launch or queue. `ticket` may be NULL. If one of `after` fails or is cancelled, so is this one; one that is
/// forgotten by then counts as completed.
/// Errors, all naming kernel and task, and no ticket is given: WT_ERR_BAD_ARG, WT_ERR_FULL (the queue), WT_ERR_STATE (a
/// graph is being recorded on the stream), WT_ERR_CUDA, WT_ERR_DEVICE_LOST. What fails later, coming out of the queue,
/// is told by wait and query.  [worker]
WT_CHECKED wt_status wt_dispatch_submit(wt_dispatch *dispatch, const wt_dispatch_request *request,
                                        wt_dispatch_ticket *ticket);

/// Cancel a launch that is still queued. Errors: WT_ERR_STATE (launched, or ended), WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_dispatch_cancel(wt_dispatch *dispatch, wt_dispatch_ticket ticket);

/// Wait until it has ended, at most `timeout_us` (< 0 = without limit); returns how it ended, each time it is asked.
/// Errors: WT_ERR_TIMEOUT; WT_ERR_BAD_ARG (another dispatch's, never given); WT_ERR_NOT_FOUND (it ended, too long ago
/// to be remembered how).  [worker]
WT_CHECKED wt_status wt_dispatch_wait(wt_dispatch *dispatch, wt_dispatch_ticket ticket, int64_t timeout_us);
/// Errors: WT_ERR_BAD_ARG, WT_ERR_NOT_FOUND.  [worker]
WT_CHECKED wt_status wt_dispatch_query(wt_dispatch *dispatch, wt_dispatch_ticket ticket, wt_dispatch_info *info);

/// Notice what has ended, launch what has room, look at the watchdogs. Needed only with `no_thread`.
/// Errors: WT_ERR_DEVICE_LOST, with the launches to blame.  [worker]
wt_status wt_dispatch_poll(wt_dispatch *dispatch);

/// Wait until nothing is queued or in flight. Errors: WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_dispatch_drain(wt_dispatch *dispatch);

typedef struct wt_dispatch_stats {
    int n_queued, n_in_flight;                                                     ///< now
    uint64_t n_launched, n_completed, n_failed, n_cancelled, n_overdue, n_refused; ///< refused: by submit
    double device_us;                                                              ///< of timed launches
    bool lost;
} wt_dispatch_stats;
void wt_dispatch_get_stats(wt_dispatch *dispatch, wt_dispatch_stats *stats); ///< [worker]

#ifdef __cplusplus
}
#endif
#endif
