// Making a dispatch and its streams, its thread, and the calls that concern all of it.
#include "dispatch_internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/clock.h>

enum {
    MAX_IN_FLIGHT = 4096,
    MAX_QUEUED = 65536,
    MAX_HISTORY = 1 << 20,
    DEFAULT_IN_FLIGHT = 1024,
    POLL_NS = 50000, // of the thread, and of those who wait in the queue or with a limit
    TRACE_BYTES = 64,
    YIELDS = 64,
};

const char *wt_dispatch_state_text(wt_dispatch_state state)
{
    static const char *const texts[] = {"queued", "launched", "completed", "failed", "cancelled"};
    return (unsigned)state <= WT_DISPATCH_CANCELLED ? texts[state] : "unknown";
}

void wt__dispatch_rest(int n_looks)
{
    if (n_looks < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
}

void wt__dispatch_unlock(wt_dispatch *d)
{
    int n = d->n_reports;
    if (!n) {
        pthread_mutex_unlock(&d->mutex);
        return;
    }
    wt_dispatch_ticket tickets[WT__MAX_REPORTS];
    wt_dispatch_info infos[WT__MAX_REPORTS];
    for (int k = 0; k < n; k++) tickets[k] = d->reports[k].ticket, infos[k] = d->reports[k].info;
    d->n_reports = 0;
    pthread_mutex_unlock(&d->mutex);
    for (int k = 0; k < n && d->config.on_watchdog; k++) d->config.on_watchdog(d->config.user, tickets[k], &infos[k]);
}

wt_status wt__dispatch_say_lost(const wt_dispatch *d)
{
    return wt_fail(WT_ERR_DEVICE_LOST, "%s", d->lost);
}

// ---- the thread: moves the queue and the watchdogs while there are any

static void *run_thread(void *user)
{
    wt_dispatch *d = user;
    pthread_mutex_lock(&d->mutex);
    while (!d->quit) {
        if (d->lost[0] || (!d->n_queued && !d->n_watched)) {
            d->thread_waits = true;
            pthread_cond_wait(&d->work, &d->mutex);
            d->thread_waits = false;
            continue;
        }
        wt__dispatch_pump(d);
        wt__dispatch_unlock(d);
        wt__dispatch_rest(YIELDS);
        pthread_mutex_lock(&d->mutex);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

// ---- create, destroy

static wt_status check_config(const wt_dispatch_config *c)
{
    if (c->max_in_flight < 0 || c->max_queued < 0 || c->max_queued > MAX_QUEUED || c->history < 0 ||
        c->history > MAX_HISTORY || c->max_in_flight > MAX_HISTORY)
        return wt_fail(WT_ERR_BAD_ARG, "dispatch: %d in flight, %d queued, history %d; want 0..%d, 0..%d, 0..%d",
                       c->max_in_flight, c->max_queued, c->history, MAX_HISTORY, MAX_QUEUED, MAX_HISTORY);
    return WT_OK;
}

static int limit_of(const wt_dispatch_config *c)
{
    if (c->max_in_flight) return c->max_in_flight;
    if (!c->partition) return DEFAULT_IN_FLIGHT;
    wt_partition_info info;
    wt_partition_get_info(c->partition, &info);
    if (info.max_pending_kernels < DEFAULT_IN_FLIGHT) return DEFAULT_IN_FLIGHT; // a resize may give the partition more
    return info.max_pending_kernels < MAX_HISTORY ? info.max_pending_kernels : MAX_HISTORY;
}

/// Unlike that of any other dispatch: two at one time have different addresses, two at one address different times.
static uint64_t make_id(const wt_dispatch *d)
{
    return (uint64_t)wt_clock_now_ns(NULL) ^ (uint64_t)(uintptr_t)d << 20;
}

static wt_status take_memory(wt_dispatch *d)
{
    int max_queued = d->config.max_queued ? d->config.max_queued : 256;
    d->n_flights = d->max_in_flight + max_queued + (d->config.history ? d->config.history : 1024);
    d->flights = calloc((size_t)d->n_flights, sizeof *d->flights);
    d->free_flights = calloc((size_t)d->n_flights, sizeof *d->free_flights);
    d->entries = calloc((size_t)max_queued, sizeof *d->entries);
    if (!d->flights || !d->free_flights || !d->entries)
        return wt_fail(WT_ERR_NO_MEMORY, "dispatch: no memory for %d launches", d->n_flights);
    for (int k = 0; k < d->n_flights; k++) {
        d->free_flights[k] = k;
        d->flights[k].entry = WT__NONE;
        d->flights[k].info.state = WT_DISPATCH_CANCELLED;
    }
    d->last_free = (uint64_t)d->n_flights;
    for (int k = 0; k < max_queued; k++) d->entries[k].next = k + 1 < max_queued ? k + 1 : WT__NONE;
    return WT_OK;
}

static void free_lane(wt__lane *lane)
{
    for (int k = 0; k < lane->n_markers; k++) {
        wt_event_destroy(lane->markers[k].begin);
        wt_event_destroy(lane->markers[k].end);
    }
    wt_buffer_destroy(lane->trace);
    free(lane->ring);
    *lane = (wt__lane){0};
}

static void cancel_all(wt_dispatch *d)
{
    pthread_mutex_lock(&d->mutex);
    for (int k = 0; k < d->n_lanes; k++)
        while (d->lanes[k].stream && d->lanes[k].head != WT__NONE) {
            int entry = d->lanes[k].head, flight = d->entries[entry].flight;
            wt__dispatch_unqueue(d, entry);
            wt__dispatch_end(d, flight, WT_DISPATCH_CANCELLED, WT_ERR_CANCELLED);
        }
    d->quit = true;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->mutex);
}

static void free_dispatch(wt_dispatch *d)
{
    wt__partition_leave(d->config.partition, &d->member);
    cancel_all(d);
    if (d->threaded) pthread_join(d->thread, NULL);
    for (int k = 0; k < d->n_lanes; k++)
        if (d->lanes[k].stream) {
            wt_status status = wt_stream_synchronize(d->lanes[k].stream);
            (void)status; // it ends also when the device is lost
            free_lane(&d->lanes[k]);
        }
    wt__partition_give(d->config.partition, WT__USE_KERNELS, (size_t)d->n_in_flight);
    free(d->entries);
    free(d->free_flights);
    free(d->flights);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

wt_status wt_dispatch_create(wt_device *device, const wt_dispatch_config *config, wt_dispatch **dispatch)
{
    *dispatch = NULL;
    wt_dispatch_config c = config ? *config : (wt_dispatch_config){0};
    wt_status status = check_config(&c);
    if (!status && c.partition && wt_partition_device(c.partition) != device)
        status = wt_fail(WT_ERR_BAD_ARG, "dispatch: partition %s belongs to another device",
                         wt__partition_name(c.partition));
    if (status) return status;
    wt_dispatch *d = calloc(1, sizeof *d);
    if (!d) return wt_fail(WT_ERR_NO_MEMORY, "dispatch: no memory for a handle");
    d->device = device;
    d->id = make_id(d);
    d->config = c;
    d->max_in_flight = limit_of(&c);
    snprintf(d->name, sizeof d->name, "%s", c.name ? c.name : "work");
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->work, NULL);
    d->member.yield = wt__dispatch_yield;
    wt__partition_join(c.partition, &d->member);
    status = take_memory(d);
    if (!status && !c.no_thread) {
        d->threaded = !pthread_create(&d->thread, NULL, run_thread, d);
        if (!d->threaded) status = wt_fail(WT_ERR_NO_MEMORY, "dispatch: the system gives no thread");
    }
    if (status) {
        free_dispatch(d);
        return status;
    }
    wt__handle_open(&d->handle, d, WT__A_DISPATCH);
    *dispatch = d;
    return WT_OK;
}

void wt_dispatch_destroy(wt_dispatch *dispatch)
{
    if (dispatch && !wt__handle_close(dispatch, WT__A_DISPATCH)) free_dispatch(dispatch);
}

// ---- streams

static wt_status make_trace(wt__lane *lane)
{
    wt_device *device = lane->stream->device;
    if (device->info.backend != WT_BACKEND_CUDA) return WT_OK; // nothing is lost there
    if (!wt__cuda_device_of(device)->cuda->StreamWriteValue32)
        return wt_fail(WT_ERR_UNSUPPORTED, "dispatch: traced streams need CUDA 11.7 or newer");
    return wt_buffer_create(device, WT_MEMORY_MAPPED, TRACE_BYTES, &lane->trace);
}

static wt_status make_lane(wt__lane *lane, wt_stream *stream, const wt_dispatch_stream_config *c)
{
    *lane = (wt__lane){.stream = stream, .max_in_flight = c->max_in_flight, .head = WT__NONE, .tail = WT__NONE};
    lane->ring = calloc((size_t)lane->max_in_flight, sizeof *lane->ring);
    if (!lane->ring) return wt_fail(WT_ERR_NO_MEMORY, "dispatch: no memory for a stream");
    int n_markers = c->max_in_flight < WT__MAX_MARKERS ? c->max_in_flight : WT__MAX_MARKERS;
    wt_status status = c->traced ? make_trace(lane) : WT_OK;
    for (; lane->n_markers < n_markers && !status; lane->n_markers++) {
        wt__marker *m = &lane->markers[lane->n_markers];
        status = wt_event_create(stream->device, &m->begin);
        if (!status) status = wt_event_create(stream->device, &m->end);
        if (status) wt_event_destroy(m->begin);
    }
    if (status && lane->n_markers) lane->n_markers--; // the last one was not made
    return status;
}

wt_status wt_dispatch_add_stream(wt_dispatch *dispatch, wt_stream *stream, const wt_dispatch_stream_config *config,
                                 int *lane)
{
    *lane = WT__NONE;
    wt_dispatch_stream_config c = config ? *config : (wt_dispatch_stream_config){0};
    if (!c.max_in_flight) c.max_in_flight = 64;
    if (stream->device != dispatch->device)
        return wt_fail(WT_ERR_BAD_ARG, "dispatch %s: the stream belongs to another device", dispatch->name);
    if (c.max_in_flight < 1 || c.max_in_flight > MAX_IN_FLIGHT)
        return wt_fail(WT_ERR_BAD_ARG, "dispatch %s: %d in flight, want 0..%d", dispatch->name, c.max_in_flight,
                       MAX_IN_FLIGHT);
    wt__lane made;
    wt_status status = make_lane(&made, stream, &c);
    pthread_mutex_lock(&dispatch->mutex);
    int k = 0;
    while (k < WT_DISPATCH_MAX_STREAMS && dispatch->lanes[k].stream) k++;
    if (!status && k == WT_DISPATCH_MAX_STREAMS)
        status = wt_fail(WT_ERR_FULL, "dispatch %s: has %d streams already", dispatch->name, k);
    if (!status) {
        dispatch->lanes[k] = made;
        if (k == dispatch->n_lanes) dispatch->n_lanes++;
        *lane = k;
    }
    pthread_mutex_unlock(&dispatch->mutex);
    if (status) free_lane(&made);
    return status;
}

bool wt__dispatch_has_lane(const wt_dispatch *d, int lane)
{
    return lane >= 0 && lane < d->n_lanes && d->lanes[lane].stream;
}

/// Threads wait for launches of a lane, all of which have ended: they are about to notice.
static bool is_awaited(const wt__lane *lane)
{
    for (int k = 0; k < lane->n_markers; k++)
        if (lane->markers[k].n_waiters) return true;
    return false;
}

/// One try, into `gone`; false: again, later.
static bool take_lane(wt_dispatch *d, int lane, wt__lane *gone, wt_status *status)
{
    *status = WT_OK;
    if (!wt__dispatch_has_lane(d, lane)) {
        *status = wt_fail(WT_ERR_BAD_ARG, "dispatch %s: no stream %d", d->name, lane);
        return true;
    }
    wt__lane *l = &d->lanes[lane];
    wt__dispatch_marker(d, l, l->launched);
    wt__dispatch_pump(d);
    if (l->launched > l->done || l->head != WT__NONE) {
        *status = wt_fail(WT_ERR_STATE, "dispatch %s: stream %d has %d launches that have not ended", d->name, lane,
                          (int)(l->launched - l->done) + (l->head != WT__NONE));
        return true;
    }
    if (is_awaited(l)) return false;
    *gone = *l, *l = (wt__lane){0};
    return true;
}

wt_status wt_dispatch_remove_stream(wt_dispatch *dispatch, int lane)
{
    wt_status status;
    wt__lane gone = {0};
    for (int n = 0, over = 0; !over; n++) {
        if (n) wt__dispatch_rest(n);
        pthread_mutex_lock(&dispatch->mutex);
        over = take_lane(dispatch, lane, &gone, &status);
        wt__dispatch_unlock(dispatch);
    }
    free_lane(&gone);
    return status;
}

// ---- all of it

wt_status wt_dispatch_poll(wt_dispatch *dispatch)
{
    pthread_mutex_lock(&dispatch->mutex);
    wt__dispatch_pump(dispatch);
    bool lost = dispatch->lost[0];
    wt__dispatch_unlock(dispatch);
    return lost ? wt__dispatch_say_lost(dispatch) : WT_OK;
}

wt_status wt_dispatch_drain(wt_dispatch *dispatch)
{
    wt_dispatch *d = dispatch;
    for (int n = 0;; n++) {
        pthread_mutex_lock(&d->mutex);
        for (int k = 0; k < d->n_lanes; k++)
            if (d->lanes[k].stream) wt__dispatch_marker(d, &d->lanes[k], d->lanes[k].launched);
        wt__dispatch_pump(d);
        bool busy = d->n_in_flight || d->n_queued, lost = d->lost[0];
        wt__dispatch_unlock(d);
        if (lost) return wt__dispatch_say_lost(d);
        if (!busy) return WT_OK;
        wt__dispatch_rest(n);
    }
}

void wt_dispatch_get_stats(wt_dispatch *dispatch, wt_dispatch_stats *stats)
{
    wt_dispatch *d = dispatch;
    pthread_mutex_lock(&d->mutex);
    *stats = d->stats;
    stats->n_queued = d->n_queued;
    stats->n_in_flight = d->n_in_flight;
    wt__dispatch_unlock(d);
}
