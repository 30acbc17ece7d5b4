// Submitting launches, and asking for tickets: everything but waiting happens under the dispatch's mutex.
#include "dispatch_internal.h"
#include "kernel_internal.h"

#include <stdio.h>
#include <string.h>
#include <warptone/clock.h>

// ---- submitting

static const char *name_of(const wt_dispatch_request *r)
{
    if (r->name) return r->name;
    return r->kernel ? wt__kernel_name(r->kernel) : r->graph ? "graph" : "function";
}

static wt_status check_request(const wt_dispatch *d, const wt_dispatch_request *r)
{
    const char *name = name_of(r);
    if (!!r->kernel + !!r->function + !!r->graph != 1)
        return wt_fail(WT_ERR_BAD_ARG, "want one of kernel, function and graph");
    if (r->n_after < 0 || r->n_after > WT_DISPATCH_MAX_AFTER)
        return wt_fail(WT_ERR_BAD_ARG, "%s after %d others, want 0..%d", name, r->n_after, WT_DISPATCH_MAX_AFTER);
    if (r->watchdog_us < 0 || r->watchdog_us > INT64_MAX / 1000)
        return wt_fail(WT_ERR_BAD_ARG, "%s: watchdog %lld us, want 0 or more", name, (long long)r->watchdog_us);
    if (r->graph && r->n_args) return wt_fail(WT_ERR_BAD_ARG, "%d arguments, a graph takes none", r->n_args);
    if (!r->function) return WT_OK; // a kernel's launch is checked by itself, or before it is queued
    if (d->device->info.backend != WT_BACKEND_CPU)
        return wt_fail(WT_ERR_UNSUPPORTED, "%s: functions run on the CPU backend only", name);
    size_t bytes = r->n_args == 1 ? r->args->size_bytes : 0;
    if (r->n_args < 0 || r->n_args > 1 || bytes > WT_MAX_ARGS_BYTES || r->n_items < 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d arguments of %zu bytes, %d items; want 0 or 1 of 0..%d, 1 or more", name,
                       r->n_args, bytes, r->n_items, WT_MAX_ARGS_BYTES);
    return WT_OK;
}

/// Copy a name of 31 bytes at most.
static void put_name(char to[WT_DISPATCH_NAME_BYTES], const char *from)
{
    size_t length = strnlen(from, WT_DISPATCH_NAME_BYTES - 1);
    memcpy(to, from, length);
    to[length] = 0;
}

static bool waits_for(const wt__entry *e, int flight, uint32_t generation)
{
    for (int n = 0; n < e->request.n_after; n++)
        if ((int)e->after[n].slot == flight && e->after[n].generation == generation) return true;
    return false;
}

/// A launch that did not complete is forgotten: what waits for it is told before.
static void refuse_dependents(wt_dispatch *d, int flight)
{
    const uint32_t generation = d->flights[flight].generation;
    for (int l = 0; l < d->n_lanes; l++)
        for (int k = d->lanes[l].stream ? d->lanes[l].head : WT__NONE; k != WT__NONE; k = d->entries[k].next)
            d->entries[k].refused |= waits_for(&d->entries[k], flight, generation);
}

/// A slot for the launch; the oldest that ended forgets what it was. Never full: there are more slots than can be busy.
static int take_flight(wt_dispatch *d, const wt_dispatch_request *r)
{
    int index = d->free_flights[d->first_free++ % (uint64_t)d->n_flights];
    wt__flight *f = &d->flights[index];
    if (d->n_queued && f->generation && f->info.state != WT_DISPATCH_COMPLETED) refuse_dependents(d, index);
    f->generation++;
    f->info = (wt_dispatch_info){.state = WT_DISPATCH_QUEUED, .lane = r->lane, .priority = r->priority};
    put_name(f->info.name, name_of(r));
    put_name(f->info.task, r->task ? r->task : "");
    f->info.submitted_ns = wt_clock_now_ns(NULL);
    f->order = d->order++;
    f->sequence = 0;
    f->watchdog_ns = r->watchdog_us * 1000;
    f->running_ns = 0;
    f->timed = r->timed;
    f->entry = WT__NONE;
    f->error[0] = 0;
    if (f->watchdog_ns) d->n_watched++;
    return index;
}

/// Take back a slot that nobody has heard of.
static void give_back(wt_dispatch *d, int flight)
{
    wt__flight *f = &d->flights[flight];
    if (f->watchdog_ns) d->n_watched--;
    f->generation++;
    f->info.state = WT_DISPATCH_CANCELLED;
    d->free_flights[d->last_free++ % (uint64_t)d->n_flights] = flight;
}

static void keep_request(wt__entry *e, const wt_dispatch_request *r)
{
    e->request = *r;
    e->refused = false;
    size_t used = 0;
    for (int k = 0; k < r->n_args; k++) {
        e->args[k] = (wt_arg){e->values + used, r->args[k].size_bytes};
        if (r->args[k].size_bytes) memcpy(e->values + used, r->args[k].data, r->args[k].size_bytes);
        used += (r->args[k].size_bytes + 15) / 16 * 16;
    }
    for (int k = 0; k < r->n_after; k++) e->after[k] = r->after[k];
    e->request.args = e->args;
    e->request.after = e->after;
}

static wt_status queue_request(wt_dispatch *d, const wt_dispatch_request *r, int *flight)
{
    if (d->free_entry == WT__NONE) wt__dispatch_pump(d);
    if (d->lost[0]) return WT_ERR_DEVICE_LOST;
    wt__kernel_call call;
    wt_status status =
        r->kernel ? wt__kernel_prepare(r->kernel, d->device, &r->launch, r->args, r->n_args, &call) : WT_OK;
    if (status) return status;
    if (d->free_entry == WT__NONE) return wt_fail(WT_ERR_FULL, "%d launches are queued already", d->n_queued);
    int entry = d->free_entry;
    d->free_entry = d->entries[entry].next;
    *flight = take_flight(d, r);
    keep_request(&d->entries[entry], r);
    d->entries[entry].flight = *flight;
    d->flights[*flight].entry = entry;
    wt__dispatch_enqueue(d, entry);
    wt__dispatch_pump(d);
    if (d->thread_waits) pthread_cond_signal(&d->work);
    return WT_OK;
}

static wt_status launch_or_queue(wt_dispatch *d, const wt_dispatch_request *r, int *flight)
{
    if (d->lost[0]) return WT_ERR_DEVICE_LOST;
    if (!wt__dispatch_has_lane(d, r->lane)) return wt_fail(WT_ERR_BAD_ARG, "no stream %d", r->lane);
    wt__lane *lane = &d->lanes[r->lane];
    if (lane->stream->recording) return wt_fail(WT_ERR_STATE, "a graph is being recorded on stream %d", r->lane);
    wt_status status = WT_OK;
    bool refused = false;
    for (int k = 0; k < r->n_after; k++) {
        if (wt__dispatch_find(d, r->after[k], &status) == WT__NONE && status != WT_ERR_NOT_FOUND) return status;
    }
    bool direct = lane->head == WT__NONE && wt__dispatch_ready(d, lane, r->after, r->n_after, &refused) && !refused &&
                  wt__dispatch_room(d, lane, r) && wt__dispatch_reserve(d);
    if (d->lost[0]) return WT_ERR_DEVICE_LOST;
    if (!direct) return queue_request(d, r, flight);
    *flight = take_flight(d, r);
    status = wt__dispatch_issue(d, lane, r, *flight);
    if (status && !wt__dispatch_over(&d->flights[*flight])) give_back(d, *flight);
    if (d->n_watched && d->thread_waits) pthread_cond_signal(&d->work);
    return status;
}

static wt_status blame(wt_dispatch *d, const wt_dispatch_request *r, wt_status status)
{
    char why[768];
    snprintf(why, sizeof why, "%s", wt_last_error());
    return wt_fail(status, "dispatch %s: %s for task \"%s\": %s", d->name, name_of(r), r->task ? r->task : "", why);
}

wt_status wt_dispatch_submit(wt_dispatch *dispatch, const wt_dispatch_request *request, wt_dispatch_ticket *ticket)
{
    wt_dispatch *d = dispatch;
    if (ticket) *ticket = (wt_dispatch_ticket){0};
    wt_status status = check_request(d, request);
    int flight = WT__NONE;
    pthread_mutex_lock(&d->mutex);
    if (!status) status = launch_or_queue(d, request, &flight);
    if (status) d->stats.n_refused++;
    bool lost = d->lost[0];
    if (!status && ticket) *ticket = (wt_dispatch_ticket){d->id, (uint32_t)flight, d->flights[flight].generation};
    wt__dispatch_unlock(d);
    if (!status) return WT_OK;
    return lost ? wt__dispatch_say_lost(d) : blame(d, request, status); // once written the sentence stays
}

// ---- tickets

int wt__dispatch_find(wt_dispatch *d, wt_dispatch_ticket ticket, wt_status *status)
{
    const wt__flight *f = ticket.slot < (uint32_t)d->n_flights ? &d->flights[ticket.slot] : NULL;
    if (ticket.dispatch != d->id || !f || !ticket.generation || ticket.generation > f->generation) {
        *status = wt_fail(WT_ERR_BAD_ARG, "dispatch %s: this ticket is not one of its own", d->name);
        return WT__NONE;
    }
    if (ticket.generation < f->generation) {
        *status = wt_fail(WT_ERR_NOT_FOUND, "dispatch %s: the launch ended, and more than %d others since", d->name,
                          d->config.history ? d->config.history : 1024);
        return WT__NONE;
    }
    *status = WT_OK;
    return (int)ticket.slot;
}

wt_status wt_dispatch_cancel(wt_dispatch *dispatch, wt_dispatch_ticket ticket)
{
    wt_dispatch *d = dispatch;
    wt_status status;
    pthread_mutex_lock(&d->mutex);
    int flight = wt__dispatch_find(d, ticket, &status);
    if (flight != WT__NONE) {
        wt__flight *f = &d->flights[flight];
        if (f->entry == WT__NONE) {
            status = wt_fail(WT_ERR_STATE, "dispatch %s: %s is %s and cannot be cancelled", d->name, f->info.name,
                             wt_dispatch_state_text(f->info.state));
        } else {
            snprintf(f->error, sizeof f->error, "dispatch %s: %s was cancelled", d->name, f->info.name);
            wt__dispatch_unqueue(d, f->entry);
            wt__dispatch_end(d, flight, WT_DISPATCH_CANCELLED, WT_ERR_CANCELLED);
        }
    }
    wt__dispatch_unlock(d);
    return status;
}

static wt_status say_end(const wt_dispatch *d, const wt__flight *f)
{
    if (!f->info.status) return WT_OK;
    if (f->info.status == WT_ERR_DEVICE_LOST) return wt__dispatch_say_lost(d);
    return wt_fail(f->info.status, "%s", f->error[0] ? f->error : wt_status_text(f->info.status));
}

/// One look. True when it has ended, with *status; else `awaited` has the event to wait for, NULL when that is not
/// known yet or not wanted. What was waited for before is given back.
static bool look(wt_dispatch *d, wt_dispatch_ticket ticket, bool wants, wt_status *status, wt__marker **awaited)
{
    pthread_mutex_lock(&d->mutex);
    if (*awaited) (*awaited)->n_waiters--;
    *awaited = NULL;
    int flight = wt__dispatch_find(d, ticket, status);
    bool over = flight == WT__NONE;
    if (!over) {
        wt__flight *f = &d->flights[flight];
        wt__marker *m = NULL;
        if (f->info.state == WT_DISPATCH_LAUNCHED) m = wt__dispatch_marker(d, &d->lanes[f->info.lane], f->sequence);
        if (!wt__dispatch_over(f)) wt__dispatch_pump(d);
        over = wt__dispatch_over(f);
        if (over)
            *status = say_end(d, f);
        else if (m && wants && f->info.state == WT_DISPATCH_LAUNCHED)
            *awaited = m;
    }
    if (*awaited) (*awaited)->n_waiters++;
    wt__dispatch_unlock(d);
    return over;
}

wt_status wt_dispatch_wait(wt_dispatch *dispatch, wt_dispatch_ticket ticket, int64_t timeout_us)
{
    int64_t begin_ns = wt_clock_now_ns(NULL);
    wt_status status;
    wt__marker *awaited = NULL; // never with a limit, so none is held when that is reached
    for (int n = 0; !look(dispatch, ticket, timeout_us < 0, &status, &awaited); n++) {
        if (timeout_us >= 0 && (wt_clock_now_ns(NULL) - begin_ns) / 1000 >= timeout_us)
            return wt_fail(WT_ERR_TIMEOUT, "dispatch %s: the launch has not ended within %lld us", dispatch->name,
                           (long long)timeout_us);
        if (awaited && !wt_event_synchronize(awaited->end)) continue; // an error is met again by the next look
        wt__dispatch_rest(n);
    }
    return status;
}

wt_status wt_dispatch_query(wt_dispatch *dispatch, wt_dispatch_ticket ticket, wt_dispatch_info *info)
{
    wt_dispatch *d = dispatch;
    wt_status status;
    *info = (wt_dispatch_info){0};
    pthread_mutex_lock(&d->mutex);
    int flight = wt__dispatch_find(d, ticket, &status);
    if (flight != WT__NONE) {
        wt__flight *f = &d->flights[flight];
        if (f->info.state == WT_DISPATCH_LAUNCHED) wt__dispatch_marker(d, &d->lanes[f->info.lane], f->sequence);
        if (!wt__dispatch_over(f)) wt__dispatch_pump(d);
        *info = f->info;
    }
    wt__dispatch_unlock(d);
    return status;
}
