// Requests, tickets and figures; the threads are in transfer_run.c.
#include "transfer_internal.h"

#include <stdlib.h>
#include <warptone/clock.h>

enum { DEFAULT_REQUESTS = 1024, MAX_REQUESTS = 1 << 16, DEFAULT_IN_FLIGHT = 16, MAX_IN_FLIGHT = 64, MIN_CHUNK = 4096 };

// ---- lists

void wt__jobs_push(wt_transfer *t, wt__job_list *list, int k)
{
    t->jobs[k].next = WT__NO_JOB;
    if (list->first == WT__NO_JOB) list->first = k;
    else t->jobs[list->last].next = k;
    list->last = k;
}

int wt__jobs_pop(wt_transfer *t, wt__job_list *list)
{
    int k = list->first;
    if (k != WT__NO_JOB) list->first = t->jobs[k].next;
    return k;
}

void wt__transfer_finish(wt_transfer *t, int k, wt_transfer_state state, wt_status status)
{
    wt__job *job = &t->jobs[k];
    wt_transfer_stats *stats = &t->lanes[job->request.direction].stats;
    job->state = state;
    job->status = status;
    if (state == WT_TRANSFER_COMPLETED) stats->n_completed++;
    else if (state == WT_TRANSFER_FAILED) stats->n_failed++;
    else stats->n_cancelled++;
    wt__partition_give(job->request.partition, WT__USE_TRANSFERS, 1);
    wt__jobs_push(t, &t->reports, k);
    pthread_cond_broadcast(&t->finished);
    pthread_cond_signal(&t->to_report);
}

// ---- create, destroy

static wt_status check_config(const wt_transfer_config *c)
{
    if (c->chunk_bytes && c->chunk_bytes < MIN_CHUNK)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: chunks of %zu bytes, want %d or more", c->chunk_bytes, MIN_CHUNK);
    if (c->max_requests < 0 || c->max_requests > MAX_REQUESTS || c->max_in_flight < 0 ||
        c->max_in_flight > MAX_IN_FLIGHT)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: %d requests and %d chunks in flight, want at most %d and %d",
                       c->max_requests, c->max_in_flight, MAX_REQUESTS, MAX_IN_FLIGHT);
    return WT_OK;
}

static wt_status open_lane(wt_transfer *t, wt__lane *lane)
{
    lane->chunks = calloc((size_t)t->max_in_flight, sizeof *lane->chunks);
    lane->groups = calloc((size_t)t->max_in_flight + 1, sizeof *lane->groups);
    if (!lane->chunks || !lane->groups) return wt_fail(WT_ERR_NO_MEMORY, "transfer: no memory for its lists");
    wt_status status = wt_stream_create(t->device, NULL, &lane->stream);
    for (int k = 0; k <= t->max_in_flight && !status; k++) {
        status = wt_event_create(t->device, &lane->groups[k].begin);
        if (!status) status = wt_event_create(t->device, &lane->groups[k].end);
    }
    return status;
}

static void close_lane(wt_transfer *t, wt__lane *lane)
{
    if (lane->started) pthread_join(lane->thread, NULL);
    for (int k = 0; lane->groups && k <= t->max_in_flight; k++) {
        wt_event_destroy(lane->groups[k].begin);
        wt_event_destroy(lane->groups[k].end);
    }
    free(lane->groups);
    free(lane->chunks);
    wt_stream_destroy(lane->stream);
    pthread_cond_destroy(&lane->wake);
}

static wt_status start_threads(wt_transfer *t)
{
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) {
        wt__lane *lane = &t->lanes[d];
        pthread_mutex_lock(&t->mutex);
        lane->started = !pthread_create(&lane->thread, NULL, wt__transfer_lane, lane);
        if (lane->started) t->n_lanes_running++;
        pthread_mutex_unlock(&t->mutex);
        if (!lane->started) return wt_fail(WT_ERR_NO_MEMORY, "transfer: the system gives no thread");
    }
    t->reporter_started = !pthread_create(&t->reporter, NULL, wt__transfer_reporter, t);
    return t->reporter_started ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "transfer: the system gives no thread");
}

static wt_status set_up(wt_transfer *t)
{
    t->jobs = calloc((size_t)t->max_jobs, sizeof *t->jobs);
    if (!t->jobs) return wt_fail(WT_ERR_NO_MEMORY, "transfer: no memory for %d requests", t->max_jobs);
    for (int k = 0; k < t->max_jobs; k++) wt__jobs_push(t, &t->idle, k);
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) {
        wt_status status = open_lane(t, &t->lanes[d]);
        if (status) return status;
    }
    return start_threads(t);
}

/// With the lock held. A job with chunks in flight is over when they have landed, any other now.
static void cancel_job(wt_transfer *t, int k)
{
    wt__job *job = &t->jobs[k];
    wt__lane *lane = &t->lanes[job->request.direction];
    job->cancel = true;
    for (int *link = &lane->first; *link != WT__NO_JOB; link = &t->jobs[*link].next) {
        if (*link != k) continue;
        *link = job->next;
        break;
    }
    if (wt__transfer_in_flight(lane, k)) return;
    if (job->state == WT_TRANSFER_QUEUED) lane->stats.n_queued--;
    else lane->stats.n_running--;
    wt__transfer_finish(t, k, WT_TRANSFER_CANCELLED, WT_ERR_CANCELLED);
}

static void free_engine(wt_transfer *t)
{
    pthread_mutex_lock(&t->mutex);
    t->quit = true;
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) {
        while (t->lanes[d].first != WT__NO_JOB) cancel_job(t, t->lanes[d].first);
        pthread_cond_signal(&t->lanes[d].wake);
    }
    pthread_cond_broadcast(&t->to_report);
    pthread_mutex_unlock(&t->mutex);
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) close_lane(t, &t->lanes[d]);
    if (t->reporter_started) pthread_join(t->reporter, NULL);
    pthread_cond_destroy(&t->to_report);
    pthread_cond_destroy(&t->finished);
    pthread_mutex_destroy(&t->mutex);
    free(t->jobs);
    free(t);
}

wt_status wt_transfer_create(wt_device *device, const wt_transfer_config *config, wt_transfer **transfer)
{
    *transfer = NULL;
    wt_transfer_config c = config ? *config : (wt_transfer_config){0};
    wt_status status = check_config(&c);
    if (status) return status;
    wt_transfer *t = calloc(1, sizeof *t);
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "transfer: no memory for a handle");
    t->device = device;
    // Two engines of one process differ in the address or, one after the other, in the time.
    t->tag = ((uint64_t)(uintptr_t)t * 0x9e3779b97f4a7c15u ^ (uint64_t)wt_clock_now_ns(NULL)) | 1;
    t->default_chunk_bytes = c.chunk_bytes ? c.chunk_bytes : WT_TRANSFER_CHUNK_BYTES;
    atomic_init(&t->chunk_bytes, t->default_chunk_bytes);
    t->max_jobs = c.max_requests ? c.max_requests : DEFAULT_REQUESTS;
    t->max_in_flight = c.max_in_flight ? c.max_in_flight : DEFAULT_IN_FLIGHT;
    t->by_bytes = !c.max_in_flight;
    t->idle.first = t->reports.first = WT__NO_JOB;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->finished, NULL);
    pthread_cond_init(&t->to_report, NULL);
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) {
        t->lanes[d] = (wt__lane){.transfer = t, .direction = (wt_transfer_direction)d, .first = WT__NO_JOB};
        pthread_cond_init(&t->lanes[d].wake, NULL);
    }
    status = set_up(t);
    if (status) {
        free_engine(t);
        return status;
    }
    wt__handle_open(&t->handle, t, WT__A_TRANSFER);
    *transfer = t;
    return WT_OK;
}

void wt_transfer_destroy(wt_transfer *t)
{
    if (t && !wt__handle_close(t, WT__A_TRANSFER)) free_engine(t);
}

// ---- requests

static wt_status check_request(const wt_transfer *t, const wt_transfer_request *r)
{
    if ((unsigned)r->direction >= WT_N_TRANSFER_DIRECTIONS)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: direction %d, want to the device or to the host", (int)r->direction);
    size_t most = t->device->info.memory_bytes;
    if (r->size_bytes < 1 || r->size_bytes > most)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: %zu bytes, want 1..%zu", r->size_bytes, most);
    if (!r->host || !r->device_address)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: no address at the %s's end", r->host ? "device" : "host");
    if (r->after && r->after->device != t->device)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: the event belongs to another device");
    if (r->partition && wt_partition_device(r->partition) != t->device)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: partition %s belongs to another device",
                       wt__partition_name(r->partition));
    return WT_OK;
}

/// Behind all of its priority and above.
static void enqueue(wt_transfer *t, int k)
{
    wt__job *job = &t->jobs[k];
    wt__lane *lane = &t->lanes[job->request.direction];
    int *link = &lane->first;
    while (*link != WT__NO_JOB && t->jobs[*link].request.priority >= job->request.priority) link = &t->jobs[*link].next;
    job->next = *link;
    *link = k;
    lane->stats.n_submitted++;
    lane->stats.n_queued++;
    pthread_cond_signal(&lane->wake);
}

wt_status wt_transfer_submit(wt_transfer *t, const wt_transfer_request *request, wt_transfer_ticket *ticket)
{
    if (ticket) *ticket = (wt_transfer_ticket){0};
    wt_status status = wt__handle_check(t, WT__A_TRANSFER);
    if (!status) status = check_request(t, request);
    if (status) return status;
    if (!wt__partition_take(request->partition, WT__USE_TRANSFERS, 1))
        return wt_fail(WT_ERR_FULL, "transfer: partition %s has %zu requests on their way, its most",
                       wt__partition_name(request->partition),
                       wt__partition_limit(request->partition, WT__USE_TRANSFERS));
    pthread_mutex_lock(&t->mutex);
    int k = t->quit ? WT__NO_JOB : wt__jobs_pop(t, &t->idle);
    if (k != WT__NO_JOB) {
        wt__job *job = &t->jobs[k];
        *job = (wt__job){.request = *request, .generation = job->generation + 1, .in_use = true};
        if (ticket) *ticket = (wt_transfer_ticket){t->tag, (uint32_t)k, job->generation};
        enqueue(t, k);
    }
    pthread_mutex_unlock(&t->mutex);
    if (k != WT__NO_JOB) return WT_OK;
    wt__partition_give(request->partition, WT__USE_TRANSFERS, 1);
    return wt_fail(WT_ERR_FULL, "transfer: %d requests are on their way, its most", t->max_jobs);
}

static wt_status find_job(wt_transfer *t, wt_transfer_ticket ticket, wt__job **job)
{
    *job = NULL;
    if (ticket.engine != t->tag) return wt_fail(WT_ERR_BAD_ARG, "transfer: the ticket belongs to another engine");
    wt__job *j = ticket.slot < (uint32_t)t->max_jobs ? &t->jobs[ticket.slot] : NULL;
    if (!j || !j->in_use || j->generation != ticket.generation)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: the ticket is no longer known, the last %d are", t->max_jobs);
    *job = j;
    return WT_OK;
}

wt_status wt_transfer_cancel(wt_transfer *t, wt_transfer_ticket ticket)
{
    wt__job *job;
    pthread_mutex_lock(&t->mutex);
    wt_status status = find_job(t, ticket, &job);
    if (!status && job->state >= WT_TRANSFER_COMPLETED)
        status = wt_fail(WT_ERR_STATE, "transfer: the request is over already");
    if (!status) cancel_job(t, (int)ticket.slot);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

wt_status wt_transfer_wait(wt_transfer *t, wt_transfer_ticket ticket)
{
    wt__job *job;
    pthread_mutex_lock(&t->mutex);
    wt_status status = find_job(t, ticket, &job);
    if (!status) {
        bool kept = job->reported && !job->n_waiters; // its place is in the idle list already
        if (!kept) job->n_waiters++;
        while (job->state < WT_TRANSFER_COMPLETED) pthread_cond_wait(&t->finished, &t->mutex);
        status = job->state == WT_TRANSFER_COMPLETED ? WT_OK : job->status;
        if (!kept && !--job->n_waiters && job->reported) wt__jobs_push(t, &t->idle, (int)ticket.slot);
        if (status) wt_fail(status, "transfer: %s", wt_status_text(status));
    }
    pthread_mutex_unlock(&t->mutex);
    return status;
}

// ---- facts

wt_status wt_transfer_query(wt_transfer *t, wt_transfer_ticket ticket, wt_transfer_info *info)
{
    *info = (wt_transfer_info){0};
    wt__job *job;
    pthread_mutex_lock(&t->mutex);
    wt_status status = find_job(t, ticket, &job);
    if (!status) {
        const wt_transfer_request *r = &job->request;
        *info = (wt_transfer_info){job->state, r->direction, r->size_bytes, job->done, 0};
        if (job->state == WT_TRANSFER_QUEUED)
            for (int k = t->lanes[r->direction].first; k != (int)ticket.slot; k = t->jobs[k].next) info->position++;
    }
    pthread_mutex_unlock(&t->mutex);
    return status;
}

wt_status wt_transfer_set_chunk_bytes(wt_transfer *t, size_t chunk_bytes)
{
    if (chunk_bytes && chunk_bytes < MIN_CHUNK)
        return wt_fail(WT_ERR_BAD_ARG, "transfer: chunks of %zu bytes, want %d or more", chunk_bytes, MIN_CHUNK);
    atomic_store(&t->chunk_bytes, chunk_bytes ? chunk_bytes : t->default_chunk_bytes);
    return WT_OK;
}

void wt_transfer_query_stats(wt_transfer *t, wt_transfer_direction direction, wt_transfer_stats *stats)
{
    *stats = (wt_transfer_stats){0};
    if ((unsigned)direction >= WT_N_TRANSFER_DIRECTIONS) return;
    const wt__lane *lane = &t->lanes[direction];
    pthread_mutex_lock(&t->mutex);
    *stats = lane->stats;
    stats->n_in_flight = (int)(lane->n_issued - lane->n_landed);
    pthread_mutex_unlock(&t->mutex);
    stats->rate_gbps = stats->busy_us > 0 ? (double)stats->n_bytes / stats->busy_us * 1e-3 : 0;
}
