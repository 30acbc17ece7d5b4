/// The transfer engine's books (transfer.c) and its threads (transfer_run.c).
#ifndef WT_TRANSFER_INTERNAL_H
#define WT_TRANSFER_INTERNAL_H

#include "device_internal.h"

#include <pthread.h>
#include <warptone/transfer.h>

enum { WT__NO_JOB = -1 };

typedef struct wt__job {
    wt_transfer_request request;
    uint32_t generation;
    bool in_use;   ///< until another request takes the place
    bool cancel;
    bool throttled; ///< it waits for its partition's share, and was counted
    bool reported; ///< final, and its callback is over
    wt_transfer_state state;
    wt_status status;
    size_t issued, done; ///< bytes
    int n_waiters;
    int next; ///< in a queue by priority, in the list of finished ones, or in the list to call back
} wt__job;

typedef struct wt__chunk {
    int job;
    size_t bytes;
    wt__place to, from;
    wt_status status; ///< of its issue
} wt__chunk;

/// Chunks that were issued in one go, with one event behind them.
typedef struct wt__group {
    int n_chunks;
    wt_status status; ///< of its events
    bool chained;     ///< its time begins with the end of the group before, which was still under way
    wt_event *begin, *end;
} wt__group;

typedef struct wt__lane {
    struct wt_transfer *transfer;
    wt_transfer_direction direction;
    wt_stream *stream;
    pthread_t thread;
    bool started;
    pthread_cond_t wake;
    int first;         ///< jobs with bytes to issue, highest priority first
    wt__chunk *chunks; ///< [max_in_flight], a ring
    uint64_t n_issued, n_landed;
    wt__group *groups; ///< [max_in_flight + 1], a ring: the end of the last landed one is still wanted
    uint64_t n_groups_issued, n_groups_landed;
    wt_transfer_stats stats;
} wt__lane;

typedef struct wt__job_list {
    int first, last;
} wt__job_list;

struct wt_transfer {
    wt__handle handle;
    wt_device *device;
    pthread_mutex_t mutex;
    pthread_cond_t finished, to_report;
    uint64_t tag;
    atomic_size_t chunk_bytes;
    size_t default_chunk_bytes;
    int max_jobs;
    int max_in_flight; ///< of the rings
    bool by_bytes;     ///< the chunks in flight are limited by IN_FLIGHT_BYTES too
    bool quit;
    int n_lanes_running;
    wt__job *jobs;
    wt__job_list idle;    ///< final and reported, the oldest first: their places are taken next
    wt__job_list reports; ///< final, to be called back
    pthread_t reporter;
    bool reporter_started;
    wt__lane lanes[WT_N_TRANSFER_DIRECTIONS];
};

void wt__jobs_push(wt_transfer *transfer, wt__job_list *list, int job);
int wt__jobs_pop(wt_transfer *transfer, wt__job_list *list); ///< WT__NO_JOB when empty
/// The job is final: count it, wake who waits, and queue its callback. With the lock held.
void wt__transfer_finish(wt_transfer *transfer, int job, wt_transfer_state state, wt_status status);
bool wt__transfer_in_flight(const wt__lane *lane, int job); ///< With the lock held.
void *wt__transfer_lane(void *lane);         ///< A direction's thread.
void *wt__transfer_reporter(void *transfer); ///< The thread that calls back.

#endif
