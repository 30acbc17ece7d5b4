// The threads of the transfer engine. A lane issues chunks while fewer than max_in_flight are on its stream and
// otherwise waits for the oldest: awake for a short while, since a small chunk lands within microseconds, then napping.
#include "transfer_internal.h"

#include <time.h>
#include <warptone/clock.h>

enum { SPIN_NS = 50000, NAP_NS = 20000, POLL_NS = 100000 };

static wt__place device_place(const wt_transfer_request *r, size_t offset)
{
    return (wt__place){true, r->device_address + offset};
}

static wt__place host_place(const wt_transfer_request *r, size_t offset)
{
    return (wt__place){false, (uintptr_t)r->host + offset};
}

static void remove_first(wt__lane *lane, int *link) { *link = lane->transfer->jobs[*link].next; }

/// The link to the first job that may run now; `held` when one waits for its event.
static int *next_job(wt__lane *lane, bool *held)
{
    wt_transfer *t = lane->transfer;
    *held = false;
    for (int *link = &lane->first; *link != WT__NO_JOB; link = &t->jobs[*link].next) {
        const wt_transfer_request *r = &t->jobs[*link].request;
        if (!r->after || wt_event_done(r->after)) return link;
        *held = true;
    }
    return NULL;
}

static wt_status queue_chunk(wt__lane *lane, const wt_transfer_request *r, size_t offset, const wt__chunk *c)
{
    wt__place device = device_place(r, offset), host = host_place(r, offset);
    bool up = r->direction == WT_TRANSFER_TO_DEVICE;
    wt_status status = wt_event_record(c->begin, lane->stream);
    if (!status)
        status = lane->transfer->device->ops->copy(lane->stream, up ? device : host, up ? host : device, c->bytes);
    return status ? status : wt_event_record(c->end, lane->stream);
}

/// Issue the next chunk of the job at `link`; the lock is given up during the driver's calls.
static void issue(wt__lane *lane, int *link)
{
    wt_transfer *t = lane->transfer;
    wt__job *job = &t->jobs[*link];
    wt__chunk *c = &lane->chunks[lane->n_issued % (unsigned)t->max_in_flight];
    size_t left = job->request.size_bytes - job->issued, most = atomic_load(&t->chunk_bytes);
    size_t offset = job->issued;
    c->job = *link;
    c->status = WT_OK;
    c->bytes = left < most ? left : most;
    if (job->state == WT_TRANSFER_QUEUED) {
        job->state = WT_TRANSFER_RUNNING;
        job->request.after = NULL;
        lane->stats.n_queued--;
        lane->stats.n_running++;
    }
    job->issued += c->bytes;
    if (job->issued == job->request.size_bytes) remove_first(lane, link);
    lane->n_issued++;
    wt_transfer_request request = job->request;
    pthread_mutex_unlock(&t->mutex);
    wt_status status = queue_chunk(lane, &request, offset, c);
    pthread_mutex_lock(&t->mutex);
    c->status = status;
    if (status && !job->status) job->status = status;
}

/// Take a job that stops early out of the queue, wherever it is.
static void unlink_job(wt__lane *lane, int job)
{
    wt_transfer *t = lane->transfer;
    for (int *link = &lane->first; *link != WT__NO_JOB; link = &t->jobs[*link].next) {
        if (*link != job) continue;
        remove_first(lane, link);
        return;
    }
}

bool wt__transfer_in_flight(const wt__lane *lane, int job)
{
    for (unsigned n = lane->n_landed; n != lane->n_issued; n++)
        if (lane->chunks[n % (unsigned)lane->transfer->max_in_flight].job == job) return true;
    return false;
}

/// After a chunk landed, or its issue failed: is the job over?
static void settle(wt__lane *lane, int k)
{
    wt_transfer *t = lane->transfer;
    wt__job *job = &t->jobs[k];
    bool complete = job->done == job->request.size_bytes && !job->status;
    if (!complete && !job->cancel && !job->status) return;
    unlink_job(lane, k);
    if (wt__transfer_in_flight(lane, k)) return;
    lane->stats.n_running--;
    if (job->status) wt__transfer_finish(t, k, WT_TRANSFER_FAILED, job->status);
    else if (complete) wt__transfer_finish(t, k, WT_TRANSFER_COMPLETED, WT_OK);
    else wt__transfer_finish(t, k, WT_TRANSFER_CANCELLED, WT_ERR_CANCELLED);
}

static void wait_for(wt_event *event)
{
    int64_t begin_ns = wt_clock_now_ns(NULL);
    while (!wt_event_done(event))
        if (wt_clock_now_ns(NULL) - begin_ns > SPIN_NS) nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

/// Wait for the oldest chunk in flight, without the lock. One whose issue failed half-way has no end to wait for.
static void land(wt__lane *lane)
{
    wt_transfer *t = lane->transfer;
    wt__chunk *c = &lane->chunks[lane->n_landed % (unsigned)t->max_in_flight];
    double elapsed_us = 0;
    wt_status status = c->status;
    pthread_mutex_unlock(&t->mutex);
    if (status) {
        wt_status ended = wt_stream_synchronize(lane->stream);
        (void)ended; // the first error is the one to tell
    } else {
        wait_for(c->end);
        status = wt_event_elapsed_us(c->begin, c->end, &elapsed_us);
    }
    pthread_mutex_lock(&t->mutex);
    wt__job *job = &t->jobs[c->job];
    lane->n_landed++;
    if (status && !job->status) job->status = status;
    if (!status) {
        job->done += c->bytes;
        lane->stats.n_bytes += c->bytes;
        lane->stats.busy_us += elapsed_us;
        lane->stats.n_chunks++;
    }
    settle(lane, c->job);
}

/// Nothing to issue and nothing in flight: until a submit, or for a moment when jobs wait for their events.
static void sleep_lane(wt__lane *lane, bool held)
{
    wt_transfer *t = lane->transfer;
    if (!held) {
        pthread_cond_wait(&lane->wake, &t->mutex);
        return;
    }
    pthread_mutex_unlock(&t->mutex);
    nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    pthread_mutex_lock(&t->mutex);
}

void *wt__transfer_lane(void *user)
{
    wt__lane *lane = user;
    wt_transfer *t = lane->transfer;
    pthread_mutex_lock(&t->mutex);
    for (;;) {
        bool held = false, any_in_flight = lane->n_issued != lane->n_landed;
        int *link = lane->n_issued - lane->n_landed < (unsigned)t->max_in_flight ? next_job(lane, &held) : NULL;
        if (link) issue(lane, link);
        else if (any_in_flight) land(lane);
        else if (t->quit && lane->first == WT__NO_JOB) break;
        else sleep_lane(lane, held);
    }
    t->n_lanes_running--;
    pthread_cond_broadcast(&t->to_report);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

void *wt__transfer_reporter(void *user)
{
    wt_transfer *t = user;
    pthread_mutex_lock(&t->mutex);
    for (;;) {
        int k = wt__jobs_pop(t, &t->reports);
        if (k == WT__NO_JOB) {
            if (t->quit && !t->n_lanes_running) break;
            pthread_cond_wait(&t->to_report, &t->mutex);
            continue;
        }
        wt__job *job = &t->jobs[k];
        wt_transfer_request request = job->request;
        wt_transfer_ticket ticket = {t->tag, (uint32_t)k, job->generation};
        wt_status status = job->state == WT_TRANSFER_COMPLETED ? WT_OK : job->status;
        pthread_mutex_unlock(&t->mutex);
        if (request.done) request.done(request.user, ticket, status);
        pthread_mutex_lock(&t->mutex);
        job->reported = true;
        if (!job->n_waiters) wt__jobs_push(t, &t->idle, k);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}
