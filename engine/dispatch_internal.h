/// What a dispatch holds. One mutex guards all of it; the driver is called inside it, so launches of one dispatch go
/// out one after the other, and a partition has its own dispatch.
#ifndef WT_DISPATCH_INTERNAL_H
#define WT_DISPATCH_INTERNAL_H

#include "device_cuda.h"

#include <warptone/dispatch.h>

enum {
    WT__MAX_MARKERS = 32, ///< of a lane
    WT__MARKER_EVERY = 16,
    WT__NONE = -1,
    WT__ERROR_BYTES = 192,
    WT__MAX_REPORTS = 8, ///< watchdogs told by one call
};

/// A launch, from submit until it is forgotten.
typedef struct wt__flight {
    uint32_t generation;
    wt_dispatch_info info;
    uint64_t order;    ///< of submission
    uint64_t sequence; ///< in its lane, from 1, when launched
    int64_t watchdog_ns;
    int64_t running_ns; ///< since when all before it have ended, as noticed; 0 = not yet
    bool timed;
    int entry; ///< of the queue, WT__NONE when not queued
    char error[WT__ERROR_BYTES];
} wt__flight;

/// A queued request with copies of what it points to.
typedef struct wt__entry {
    wt_dispatch_request request;
    wt_dispatch_ticket after[WT_DISPATCH_MAX_AFTER];
    int flight;
    int before, next; ///< in the lane's list, sorted
    bool refused;     ///< one of `after` failed or was cancelled, and is forgotten
    wt_arg args[64];
    _Alignas(16) unsigned char values[WT_MAX_ARGS_BYTES + 64 * 16]; ///< each argument at a multiple of 16
} wt__entry;

/// An event behind launch `upto` of a lane; `begin` stands before that launch when it is timed.
typedef struct wt__marker {
    wt_event *begin, *end;
    uint64_t upto;
    int n_waiters; ///< threads that wait for `end` without the mutex: it is neither recorded again nor destroyed
} wt__marker;

typedef struct wt__lane {
    wt_stream *stream; ///< NULL = free
    int max_in_flight, n_markers;
    int *ring;                       ///< [max_in_flight] flights, launch s at s % max_in_flight
    uint64_t launched, done, marked; ///< launches ever, known to have ended, behind which a marker stands
    wt__marker markers[WT__MAX_MARKERS];
    uint64_t first_marker, last_marker; ///< ever taken and given back
    int head, tail;                     ///< queue
    wt_buffer *trace; ///< a word that the device sets to the number of launches done; NULL = not traced
} wt__lane;

struct wt_dispatch {
    wt__member member; ///< of the partition
    wt__handle handle;
    wt_device *device;
    uint64_t id;
    char name[WT_DISPATCH_NAME_BYTES];
    pthread_mutex_t mutex;
    pthread_cond_t work; ///< for the thread
    bool threaded, quit, thread_waits;
    pthread_t thread;
    wt_dispatch_config config;
    wt__lane lanes[WT_DISPATCH_MAX_STREAMS];
    int n_lanes; ///< ever used
    int max_in_flight, n_in_flight, n_queued, n_watched;
    wt__flight *flights; ///< [n_flights]
    int n_flights;
    int *free_flights; ///< [n_flights] a ring: ended ones wait here until they are needed again
    uint64_t first_free, last_free;
    wt__entry *entries; ///< [max_queued]
    int free_entry;     ///< list through `next`
    uint64_t order;
    wt_dispatch_stats stats;
    char lost[512]; ///< the sentence, "" = the device is well
    struct {
        wt_dispatch_ticket ticket;
        wt_dispatch_info info;
    } reports[WT__MAX_REPORTS]; ///< watchdogs to tell when the mutex is free
    int n_reports;
};

// All of these are called with the mutex held.
/// For a launch like this one; notices what has ended on the way.
bool wt__dispatch_room(wt_dispatch *dispatch, wt__lane *lane, const wt_dispatch_request *request);
bool wt__dispatch_ready(wt_dispatch *dispatch, wt__lane *lane, const wt_dispatch_ticket *after, int n_after,
                        bool *refused);
WT_CHECKED wt_status wt__dispatch_issue(wt_dispatch *dispatch, wt__lane *lane, const wt_dispatch_request *request,
                                        int flight);
void wt__dispatch_end(wt_dispatch *dispatch, int flight, wt_dispatch_state state, wt_status status);
void wt__dispatch_pump(wt_dispatch *dispatch);
/// One more launch of the partition, or false: it has its most. wt__dispatch_issue gives it back when it fails.
bool wt__dispatch_reserve(wt_dispatch *dispatch);
void wt__dispatch_yield(wt__member *self, wt__use use); ///< without the mutex, which it only tries
void wt__dispatch_enqueue(wt_dispatch *dispatch, int entry);
void wt__dispatch_unqueue(wt_dispatch *dispatch, int entry);
/// A marker behind launch `sequence`, made now where there is none; NULL when there is no room for one.
wt__marker *wt__dispatch_marker(wt_dispatch *dispatch, wt__lane *lane, uint64_t sequence);
/// The flight of a ticket, or WT__NONE with the sentence in *status.
int wt__dispatch_find(wt_dispatch *dispatch, wt_dispatch_ticket ticket, wt_status *status);
wt_status wt__dispatch_lost(wt_dispatch *dispatch); ///< Device lost: end everything. Returns WT_ERR_DEVICE_LOST.

bool wt__dispatch_has_lane(const wt_dispatch *dispatch, int lane);

// And these without it.
void wt__dispatch_unlock(wt_dispatch *dispatch); ///< Give the mutex back, and tell what the watchdogs found.
wt_status wt__dispatch_say_lost(const wt_dispatch *dispatch);
void wt__dispatch_rest(int n_looks); ///< Between two looks at something that has not ended.

static inline bool wt__dispatch_over(const wt__flight *flight)
{
    return flight->info.state >= WT_DISPATCH_COMPLETED;
}

#endif
