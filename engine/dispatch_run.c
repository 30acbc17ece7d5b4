// Launching and noticing ends.
//
// Cost: a launch that has room takes a slot, a clock reading and the driver's launch; an event is recorded only behind
// every 16th launch, behind the one that fills a lane, and where a launch is timed, watched or asked for. Events of a
// lane are reached in order, so the oldest is looked at first, and only when room or an answer is wanted.
//
// Which launch lost the device: after a fault the driver answers every question with the fault, so nothing can be
// asked. What is known are the ends noticed before, and, for a traced lane, a word in host memory that the device
// itself writes after each launch.
#include "dispatch_internal.h"
#include "graph_internal.h"
#include "kernel_internal.h"

#include <stdio.h>
#include <warptone/clock.h>

// ---- ends

void wt__dispatch_end(wt_dispatch *d, int index, wt_dispatch_state state, wt_status status)
{
    wt__flight *f = &d->flights[index];
    f->info.state = state;
    f->info.status = status;
    f->info.ended_ns = wt_clock_now_ns(NULL);
    if (f->watchdog_ns) d->n_watched--;
    d->free_flights[d->last_free++ % (uint64_t)d->n_flights] = index;
    if (state == WT_DISPATCH_COMPLETED) {
        d->stats.n_completed++;
        d->stats.device_us += f->info.device_us;
        if (f->timed) wt_telemetry_add(d->config.telemetry, WT_FIGURE_DEVICE_NS, (int64_t)(f->info.device_us * 1e3));
        return;
    }
    bool failed = state == WT_DISPATCH_FAILED;
    d->stats.n_failed += failed;
    d->stats.n_cancelled += !failed;
    if (failed) wt_telemetry_add(d->config.telemetry, WT_FIGURE_FAILURES, 1);
}

static void leave_flight(wt_dispatch *d)
{
    d->n_in_flight--;
    wt__partition_give(d->config.partition, WT__USE_KERNELS, 1);
}

/// The launches of a lane up to `upto` have run.
static void advance(wt_dispatch *d, wt__lane *lane, uint64_t upto)
{
    while (lane->done < upto) {
        int index = lane->ring[++lane->done % (uint64_t)lane->max_in_flight];
        leave_flight(d);
        wt__dispatch_end(d, index, WT_DISPATCH_COMPLETED, WT_OK);
    }
}

static void measure(wt_dispatch *d, wt__lane *lane, const wt__marker *m)
{
    wt__flight *f = &d->flights[lane->ring[m->upto % (uint64_t)lane->max_in_flight]];
    double us = 0;
    if (f->timed && !wt_event_elapsed_us(m->begin, m->end, &us)) f->info.device_us = us;
}

/// Look at the lane's markers, oldest first.
static void notice(wt_dispatch *d, wt__lane *lane)
{
    while (lane->first_marker < lane->last_marker) {
        wt__marker *m = &lane->markers[lane->first_marker % (uint64_t)lane->n_markers];
        if (!wt_event_done(m->end)) break;
        if (wt_event_synchronize(m->end)) { // a lost device says "done" to everything
            wt__dispatch_lost(d);
            return;
        }
        measure(d, lane, m);
        advance(d, lane, m->upto);
        lane->first_marker++;
    }
    if (lane->done == lane->launched) return;
    wt__flight *f = &d->flights[lane->ring[(lane->done + 1) % (uint64_t)lane->max_in_flight]];
    if (f->watchdog_ns && !f->running_ns) f->running_ns = wt_clock_now_ns(NULL);
}

// ---- losing the device

/// "stray (task x)", or with more suspects "..., or one of 3 after it".
static size_t name_suspects(const wt_dispatch *d, const wt__lane *lane, char *text, size_t bytes)
{
    const wt_dispatch_info *info = &d->flights[lane->ring[(lane->done + 1) % (uint64_t)lane->max_in_flight]].info;
    int n_more = lane->trace ? 0 : (int)(lane->launched - lane->done - 1);
    int n = snprintf(text, bytes, "%s%s%s%s", info->name, info->task[0] ? " (task " : "", info->task,
                     info->task[0] ? ")" : "");
    if (n > 0 && (size_t)n < bytes && n_more)
        n += snprintf(text + n, bytes - (size_t)n, " or one of %d after it", n_more);
    return n > 0 && (size_t)n < bytes ? (size_t)n : bytes - 1;
}

static void believe_trace(wt_dispatch *d, wt__lane *lane)
{
    if (!lane->trace) return;
    uint32_t word = *(volatile uint32_t *)wt_buffer_host(lane->trace);
    uint64_t n_more = (uint32_t)(word - (uint32_t)lane->done); // the word holds the count's low 32 bits
    if (n_more <= lane->launched - lane->done) advance(d, lane, lane->done + n_more);
}

static void fail_lane(wt_dispatch *d, wt__lane *lane)
{
    while (lane->done < lane->launched) {
        int index = lane->ring[++lane->done % (uint64_t)lane->max_in_flight];
        leave_flight(d);
        wt__dispatch_end(d, index, WT_DISPATCH_FAILED, WT_ERR_DEVICE_LOST);
    }
    lane->first_marker = lane->last_marker;
    while (lane->head != WT__NONE) {
        int entry = lane->head;
        wt__dispatch_unqueue(d, entry);
        wt__dispatch_end(d, d->entries[entry].flight, WT_DISPATCH_CANCELLED, WT_ERR_DEVICE_LOST);
    }
}

wt_status wt__dispatch_lost(wt_dispatch *d)
{
    if (d->lost[0]) return WT_ERR_DEVICE_LOST;
    char why[160], who[256] = "";
    snprintf(why, sizeof why, "%s", wt_last_error());
    size_t used = 0;
    for (int k = 0; k < d->n_lanes; k++) {
        wt__lane *lane = &d->lanes[k];
        if (!lane->stream) continue;
        believe_trace(d, lane);
        if (lane->done == lane->launched || used + 8 > sizeof who) continue;
        if (used) used += (size_t)snprintf(who + used, sizeof who - used, ", ");
        used += name_suspects(d, lane, who + used, sizeof who - used);
    }
    snprintf(d->lost, sizeof d->lost, "dispatch %s: the device is lost; running was %s: %s", d->name,
             used ? who : "nothing of this dispatch", why);
    d->stats.lost = true;
    for (int k = 0; k < d->n_lanes; k++)
        if (d->lanes[k].stream) fail_lane(d, &d->lanes[k]);
    return WT_ERR_DEVICE_LOST;
}

// ---- markers

/// A stream of the CPU backend that is full holds its caller, who has the mutex here: so it is asked before.
static bool stream_takes(const wt__lane *lane, int n_commands, size_t args_bytes)
{
    const wt__device_ops *ops = lane->stream->device->ops;
    return !ops->stream_takes || ops->stream_takes(lane->stream, n_commands, args_bytes);
}

/// For `n` more.
static bool marker_room(const wt__lane *lane, int n)
{
    bool room = lane->last_marker - lane->first_marker + (uint64_t)n <= (uint64_t)lane->n_markers;
    for (int k = 0; k < n && room; k++)
        room = !lane->markers[(lane->last_marker + (uint64_t)k) % (uint64_t)lane->n_markers].n_waiters;
    return room;
}

/// Behind the lane's last launch. False when there is no room, or the driver refused.
static bool put_marker(wt_dispatch *d, wt__lane *lane)
{
    if (lane->marked == lane->launched || !marker_room(lane, 1)) return false;
    wt__marker *m = &lane->markers[lane->last_marker % (uint64_t)lane->n_markers];
    wt_status status = wt_event_record(m->end, lane->stream);
    if (status == WT_ERR_DEVICE_LOST) wt__dispatch_lost(d);
    if (status) return false;
    m->upto = lane->marked = lane->launched;
    lane->last_marker++;
    return true;
}

/// As put_marker, but the stream makes nobody wait.
static bool try_marker(wt_dispatch *d, wt__lane *lane)
{
    return stream_takes(lane, 1, 0) && put_marker(d, lane);
}

wt__marker *wt__dispatch_marker(wt_dispatch *d, wt__lane *lane, uint64_t sequence)
{
    if (lane->marked < sequence && !try_marker(d, lane)) return NULL;
    for (uint64_t k = lane->first_marker; k < lane->last_marker; k++) {
        wt__marker *m = &lane->markers[k % (uint64_t)lane->n_markers];
        if (m->upto >= sequence) return m;
    }
    return NULL;
}

/// The launch with what goes before and behind it: waits for an event and for others, two markers, a begin.
static bool stream_takes_all(const wt__lane *lane, const wt_dispatch_request *r)
{
    int n_commands = 1;
    size_t args_bytes = r->function && r->n_args ? r->args->size_bytes : 0;
    if (r->graph) wt__graph_load(r->graph, &n_commands, &args_bytes);
    return stream_takes(lane, n_commands + 1 + WT_DISPATCH_MAX_AFTER + 3, args_bytes);
}

/// As far as is known now.
static bool has_room(const wt_dispatch *d, const wt__lane *lane, const wt_dispatch_request *r)
{
    return !d->lost[0] && d->n_in_flight < d->max_in_flight &&
           lane->launched - lane->done < (uint64_t)lane->max_in_flight &&
           (!(r->timed || r->watchdog_us) || marker_room(lane, 1)) && stream_takes_all(lane, r);
}

static bool partition_full(const wt_dispatch *d) { return !wt__partition_left(d->config.partition, WT__USE_KERNELS); }

/// Notice what has ended on all lanes; with a marker behind the last of each when the dispatch or its partition is full,
/// and of a lane that is: the launch that filled it may have found no room for one.
static void notice_all(wt_dispatch *d)
{
    bool full = d->n_in_flight >= d->max_in_flight || partition_full(d);
    for (int k = 0; k < d->n_lanes && !d->lost[0]; k++) {
        wt__lane *lane = &d->lanes[k];
        if (!lane->stream) continue;
        if (full || lane->launched - lane->done >= (uint64_t)lane->max_in_flight) try_marker(d, lane);
        notice(d, lane);
    }
}

void wt__dispatch_yield(wt__member *self, wt__use use)
{
    wt_dispatch *d = (wt_dispatch *)self; // its first member
    if (use != WT__USE_KERNELS || pthread_mutex_trylock(&d->mutex)) return;
    notice_all(d);
    pthread_mutex_unlock(&d->mutex);
}

bool wt__dispatch_reserve(wt_dispatch *d) { return wt__partition_take(d->config.partition, WT__USE_KERNELS, 1); }

bool wt__dispatch_room(wt_dispatch *d, wt__lane *lane, const wt_dispatch_request *request)
{
    if (has_room(d, lane, request)) return true;
    if (d->n_in_flight >= d->max_in_flight)
        notice_all(d);
    else
        notice(d, lane);
    return has_room(d, lane, request);
}

// ---- order between lanes

bool wt__dispatch_ready(wt_dispatch *d, wt__lane *lane, const wt_dispatch_ticket *after, int n_after, bool *refused)
{
    *refused = false;
    for (int k = 0; k < n_after; k++) {
        wt__flight *f = &d->flights[after[k].slot];
        if (f->generation != after[k].generation) continue; // ended long ago
        if (f->info.state == WT_DISPATCH_FAILED || f->info.state == WT_DISPATCH_CANCELLED) *refused = true;
        if (f->info.state == WT_DISPATCH_QUEUED) return false;
        wt__lane *other = &d->lanes[f->info.lane];
        if (f->info.state == WT_DISPATCH_LAUNCHED && other != lane && !wt__dispatch_marker(d, other, f->sequence))
            return false;
    }
    return true;
}

static wt_status wait_for_others(wt_dispatch *d, wt__lane *lane, const wt_dispatch_request *r)
{
    wt_status status = r->wait ? wt_stream_wait(lane->stream, r->wait) : WT_OK;
    for (int k = 0; k < r->n_after && !status; k++) {
        const wt__flight *f = &d->flights[r->after[k].slot];
        wt__lane *other = &d->lanes[f->info.lane];
        if (f->generation != r->after[k].generation || f->info.state != WT_DISPATCH_LAUNCHED || other == lane) continue;
        const wt__marker *m = wt__dispatch_marker(d, other, f->sequence); // wt__dispatch_ready has made it
        if (m) status = wt_stream_wait(lane->stream, m->end);
    }
    return status;
}

// ---- launching

static wt_status hand_over(wt__lane *lane, const wt_dispatch_request *r)
{
    if (r->kernel) return wt_kernel_launch(r->kernel, lane->stream, &r->launch, r->args, r->n_args);
    if (r->graph) return wt_graph_launch(r->graph, lane->stream);
    const wt_arg none = {0}, *arg = r->n_args ? r->args : &none;
    return wt_stream_run(lane->stream, r->function, arg->data, arg->size_bytes, r->n_items);
}

static wt_status write_trace(wt__lane *lane)
{
    if (!lane->trace) return WT_OK;
    const wt__cuda *cuda = wt__cuda_device_of(lane->stream->device)->cuda;
    return wt__cu(cuda,
                  cuda->StreamWriteValue32(wt__cuda_stream_of(lane->stream), wt_buffer_address(lane->trace),
                                           (uint32_t)lane->launched, 0),
                  "dispatch: trace");
}

static void count_in(wt_dispatch *d, wt__lane *lane, int index)
{
    wt__flight *f = &d->flights[index];
    f->sequence = ++lane->launched;
    lane->ring[f->sequence % (uint64_t)lane->max_in_flight] = index;
    f->info.state = WT_DISPATCH_LAUNCHED;
    f->info.launched_ns = wt_clock_now_ns(NULL);
    if (f->watchdog_ns && lane->done + 1 == f->sequence) f->running_ns = f->info.launched_ns;
    d->n_in_flight++;
    d->stats.n_launched++;
    wt_telemetry_add(d->config.telemetry, WT_FIGURE_LAUNCHES, 1);
}

wt_status wt__dispatch_issue(wt_dispatch *d, wt__lane *lane, const wt_dispatch_request *r, int index)
{
    bool marked = r->timed || r->watchdog_us;
    wt_status status = r->wait || r->n_after ? wait_for_others(d, lane, r) : WT_OK;
    if (r->watchdog_us && marker_room(lane, 2)) put_marker(d, lane); // to know when its own time begins
    if (!status && r->timed)
        status = wt_event_record(lane->markers[lane->last_marker % (uint64_t)lane->n_markers].begin, lane->stream);
    if (!status) status = hand_over(lane, r);
    if (status) wt__partition_give(d->config.partition, WT__USE_KERNELS, 1);
    if (status == WT_ERR_DEVICE_LOST) return wt__dispatch_lost(d);
    if (status) return status;
    count_in(d, lane, index);
    status = write_trace(lane);
    uint64_t n_since = lane->launched - lane->marked, in_flight = lane->launched - lane->done;
    if (marked || n_since >= WT__MARKER_EVERY || in_flight == (uint64_t)lane->max_in_flight) put_marker(d, lane);
    return status == WT_ERR_DEVICE_LOST ? wt__dispatch_lost(d) : WT_OK; // launched it is, traced or not
}

// ---- the queue

void wt__dispatch_enqueue(wt_dispatch *d, int index)
{
    wt__entry *e = &d->entries[index];
    wt__lane *lane = &d->lanes[e->request.lane];
    int before = lane->tail;
    while (before != WT__NONE && d->entries[before].request.priority < e->request.priority)
        before = d->entries[before].before;
    e->before = before;
    e->next = before == WT__NONE ? lane->head : d->entries[before].next;
    *(e->before == WT__NONE ? &lane->head : &d->entries[e->before].next) = index;
    *(e->next == WT__NONE ? &lane->tail : &d->entries[e->next].before) = index;
    d->n_queued++;
    wt_telemetry_set(d->config.telemetry, WT_FIGURE_QUEUED, d->n_queued);
}

void wt__dispatch_unqueue(wt_dispatch *d, int index)
{
    wt__entry *e = &d->entries[index];
    wt__lane *lane = &d->lanes[e->request.lane];
    *(e->before == WT__NONE ? &lane->head : &d->entries[e->before].next) = e->next;
    *(e->next == WT__NONE ? &lane->tail : &d->entries[e->next].before) = e->before;
    e->next = d->free_entry;
    d->free_entry = index;
    d->flights[e->flight].entry = WT__NONE;
    d->n_queued--;
    wt_telemetry_set(d->config.telemetry, WT_FIGURE_QUEUED, d->n_queued);
}

/// The lane's first entry that waits for nobody; those whose others failed are cancelled on the way.
static int next_entry(wt_dispatch *d, wt__lane *lane)
{
    for (int k = lane->head, next; k != WT__NONE; k = next) {
        wt__entry *e = &d->entries[k];
        bool refused;
        bool ready = wt__dispatch_ready(d, lane, e->after, e->request.n_after, &refused);
        refused |= e->refused;
        next = e->next; // read after that call, which may have lost the device and emptied the queue
        if (d->lost[0]) return WT__NONE;
        if (refused) {
            wt__flight *f = &d->flights[e->flight];
            snprintf(f->error, sizeof f->error, "dispatch %s: %s: a launch before it failed or was cancelled", d->name,
                     f->info.name);
            int flight = e->flight;
            wt__dispatch_unqueue(d, k);
            wt__dispatch_end(d, flight, WT_DISPATCH_CANCELLED, WT_ERR_CANCELLED);
        } else if (ready) { // no room for it is no room for those behind it
            return has_room(d, lane, &e->request) ? k : WT__NONE;
        }
    }
    return WT__NONE;
}

static int best_entry(wt_dispatch *d)
{
    int best = WT__NONE;
    for (int k = 0; k < d->n_lanes && !d->lost[0]; k++) {
        int entry = d->lanes[k].stream ? next_entry(d, &d->lanes[k]) : WT__NONE;
        if (entry == WT__NONE) continue;
        const wt__entry *e = &d->entries[entry], *b = &d->entries[best == WT__NONE ? entry : best];
        int ahead = e->request.priority - b->request.priority;
        if (best == WT__NONE || ahead > 0 || (!ahead && d->flights[e->flight].order < d->flights[b->flight].order))
            best = entry;
    }
    return d->lost[0] ? WT__NONE : best;
}

static void launch_entry(wt_dispatch *d, int index)
{
    wt__entry *e = &d->entries[index];
    wt__flight *f = &d->flights[e->flight];
    wt__lane *lane = &d->lanes[e->request.lane];
    int flight = e->flight;
    wt__dispatch_unqueue(d, index);
    wt_status status = wt__dispatch_issue(d, lane, &e->request, flight);
    if (!status || wt__dispatch_over(f)) return;
    if (!d->lost[0])
        snprintf(f->error, sizeof f->error, "dispatch %s: %s for task \"%s\": %s", d->name, f->info.name, f->info.task,
                 wt_last_error());
    wt__dispatch_end(d, flight, WT_DISPATCH_FAILED, status);
}

static void look_at_watchdogs(wt_dispatch *d, const wt__lane *lane)
{
    if (lane->done == lane->launched) return;
    int index = lane->ring[(lane->done + 1) % (uint64_t)lane->max_in_flight];
    wt__flight *f = &d->flights[index];
    if (!f->watchdog_ns || f->info.overdue || !f->running_ns || d->n_reports == WT__MAX_REPORTS) return;
    if (wt_clock_now_ns(NULL) - f->running_ns < f->watchdog_ns) return;
    f->info.overdue = true;
    d->stats.n_overdue++;
    wt_telemetry_add(d->config.telemetry, WT_FIGURE_OVERDUE, 1);
    d->reports[d->n_reports].ticket = (wt_dispatch_ticket){d->id, (uint32_t)index, f->generation};
    d->reports[d->n_reports++].info = f->info;
}

// Ends are noticed between decisions, never within one: else a launch that found no room would be overtaken by one that
// was looked at a moment later.
void wt__dispatch_pump(wt_dispatch *d)
{
    if (d->n_queued && partition_full(d)) wt__partition_ask(d->config.partition, &d->member, WT__USE_KERNELS);
    notice_all(d);
    for (int k = 0; d->n_watched && k < d->n_lanes && !d->lost[0]; k++)
        if (d->lanes[k].stream) look_at_watchdogs(d, &d->lanes[k]);
    for (int entry; d->n_queued && (entry = best_entry(d)) != WT__NONE && wt__dispatch_reserve(d); notice_all(d))
        launch_entry(d, entry);
    wt_telemetry_set(d->config.telemetry, WT_FIGURE_IN_FLIGHT, d->n_in_flight);
}
