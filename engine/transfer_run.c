// The threads of the transfer engine.
//
// A lane issues chunks in groups of a quarter of what may be in flight, with one event behind each group, and waits for
// the oldest group when there is no room: so of small chunks three quarters are still queued on the device while the
// host looks at the next quarter. It waits awake for a short while, since a group lands within microseconds, then
// napping. The queue is looked at anew for every chunk.
#include "transfer_internal.h"

#include <time.h>
#include <warptone/clock.h>

enum {
    SPIN_NS = 50000,
    ASK_NS = 1000,
    NAP_NS = 20000,
    POLL_NS = 100000,
    IN_FLIGHT_BYTES = 1 << 20, // 20 us at 50 GB/s
    MIN_IN_FLIGHT = 2,
    GROUPS_IN_FLIGHT = 4,
};

static size_t chunk_bytes(wt_transfer *t)
{
    size_t bytes = atomic_load(&t->chunk_bytes);
    bool small = bytes > WT_TRANSFER_ARMED_CHUNK_BYTES && wt_device_is_armed(t->device);
    return small ? WT_TRANSFER_ARMED_CHUNK_BYTES : bytes;
}

/// Chunks that may be in flight, at their present size.
static unsigned int most_in_flight(wt_transfer *t)
{
    size_t n = IN_FLIGHT_BYTES / chunk_bytes(t), most = (size_t)t->max_in_flight;
    if (!t->by_bytes) return (unsigned)most;
    return (unsigned)(n < MIN_IN_FLIGHT ? MIN_IN_FLIGHT : n > most ? most : n);
}

static void remove_first(wt__lane *lane, int *link) { *link = lane->transfer->jobs[*link].next; }

/// Does the job's partition have to wait for its share of the link? Counted once until it goes on.
static bool is_throttled(wt__lane *lane, wt__job *job, int64_t now_ns)
{
    wt_partition *partition = job->request.partition;
    bool waits = partition && wt__partition_copy_at(partition, (int)lane->direction, now_ns) > now_ns;
    if (waits && !job->throttled) wt__partition_throttled(partition);
    job->throttled = waits;
    return waits;
}

/// The link to the first job that may run now; `held` when one waits for its event or its share.
static int *first_ready(wt__lane *lane, bool *held)
{
    wt_transfer *t = lane->transfer;
    int64_t now_ns = wt_clock_now_ns(NULL);
    *held = false;
    for (int *link = &lane->first; *link != WT__NO_JOB; link = &t->jobs[*link].next) {
        wt__job *job = &t->jobs[*link];
        const wt_event *after = job->request.after;
        if ((!after || wt_event_done(after)) && !is_throttled(lane, job, now_ns)) return link;
        *held = true;
    }
    return NULL;
}

/// Behind one that waits, a second look: the event of both may have come between the two.
static int *next_job(wt__lane *lane, bool *held)
{
    int *link = first_ready(lane, held);
    return link && *held ? first_ready(lane, held) : link;
}

/// The next chunk of the job at `link` joins the ring.
static void add_chunk(wt__lane *lane, int *link)
{
    wt_transfer *t = lane->transfer;
    wt__job *job = &t->jobs[*link];
    const wt_transfer_request *r = &job->request;
    wt__chunk *c = &lane->chunks[lane->n_issued++ % (unsigned)t->max_in_flight];
    size_t left = r->size_bytes - job->issued, most = chunk_bytes(t);
    wt__place device = {true, r->device_address + job->issued}, host = {false, (uintptr_t)r->host + job->issued};
    bool up = r->direction == WT_TRANSFER_TO_DEVICE;
    *c = (wt__chunk){*link, left < most ? left : most, up ? device : host, up ? host : device, WT_OK};
    if (job->state == WT_TRANSFER_QUEUED) {
        job->state = WT_TRANSFER_RUNNING;
        job->request.after = NULL;
        lane->stats.n_queued--;
        lane->stats.n_running++;
    }
    job->issued += c->bytes;
    if (job->issued == r->size_bytes) remove_first(lane, link);
}

static wt__group *group_at(const wt__lane *lane, uint64_t number)
{
    return &lane->groups[number % ((unsigned)lane->transfer->max_in_flight + 1)];
}

/// Choose the chunks of the next group; NULL when there is no room or no job that may run.
static wt__group *choose_group(wt__lane *lane, bool *held)
{
    unsigned int most = most_in_flight(lane->transfer), in_flight = (unsigned)(lane->n_issued - lane->n_landed);
    unsigned int size = most / GROUPS_IN_FLIGHT ? most / GROUPS_IN_FLIGHT : 1;
    wt__group *g = group_at(lane, lane->n_groups_issued);
    const wt__group *before = group_at(lane, lane->n_groups_issued - 1);
    g->n_chunks = 0;
    for (int *link; size-- && in_flight < most && (link = next_job(lane, held)); in_flight++, g->n_chunks++)
        add_chunk(lane, link);
    if (!g->n_chunks) return NULL;
    g->chained = lane->n_groups_issued != lane->n_groups_landed && !before->status;
    lane->n_groups_issued++;
    return g;
}

/// Queue the group's copies, without the lock: of a job whose chunks are in flight nothing changes that is read here.
static void issue(wt__lane *lane, wt__group *g)
{
    wt_transfer *t = lane->transfer;
    uint64_t first = lane->n_issued - (unsigned)g->n_chunks;
    pthread_mutex_unlock(&t->mutex);
    g->status = g->chained ? WT_OK : wt_event_record(g->begin, lane->stream);
    for (int k = 0; k < g->n_chunks; k++) {
        wt__chunk *c = &lane->chunks[(first + (unsigned)k) % (unsigned)t->max_in_flight];
        c->status = t->device->ops->copy(lane->stream, c->to, c->from, c->bytes);
    }
    wt_status ended = wt_event_record(g->end, lane->stream);
    if (!g->status) g->status = ended;
    pthread_mutex_lock(&t->mutex);
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
    for (uint64_t n = lane->n_landed; n != lane->n_issued; n++)
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

/// Asking costs the driver's lock, which the other direction needs to issue: so not at every turn.
static void wait_for(wt_event *event)
{
    int64_t begin_ns = wt_clock_now_ns(NULL), now_ns = begin_ns;
    while (!wt_event_done(event)) {
        int64_t next_ns = now_ns + ASK_NS;
        if (now_ns - begin_ns > SPIN_NS) nanosleep(&(struct timespec){0, NAP_NS}, NULL);
        while ((now_ns = wt_clock_now_ns(NULL)) < next_ns) continue;
    }
}

/// A chunk of a group that took `us` has landed, or failed with `status`.
static void land_chunk(wt__lane *lane, wt_status status, double us)
{
    const wt__chunk c = lane->chunks[lane->n_landed++ % (unsigned)lane->transfer->max_in_flight];
    wt__job *job = &lane->transfer->jobs[c.job];
    if (c.status) status = c.status;
    if (status && !job->status) job->status = status;
    if (!status) {
        job->done += c.bytes;
        lane->stats.n_bytes += c.bytes;
        lane->stats.n_chunks++;
        wt__partition_copied(job->request.partition, (int)lane->direction, wt_clock_now_ns(NULL), c.bytes, us);
    }
    settle(lane, c.job);
}

/// Wait for the oldest group in flight, without the lock. One whose events failed has no end to wait for.
static void land(wt__lane *lane)
{
    wt_transfer *t = lane->transfer;
    const wt__group *g = group_at(lane, lane->n_groups_landed), *before = group_at(lane, lane->n_groups_landed - 1);
    double us = 0, bytes = 0;
    for (int k = 0; k < g->n_chunks; k++)
        bytes += (double)lane->chunks[(lane->n_landed + (unsigned)k) % (unsigned)t->max_in_flight].bytes;
    pthread_mutex_unlock(&t->mutex);
    wt_status status = g->status;
    if (status) {
        wt_status ended = wt_stream_synchronize(lane->stream);
        (void)ended; // the first error is the one to tell
    } else {
        wait_for(g->end);
        status = wt_event_elapsed_us(g->chained ? before->end : g->begin, g->end, &us);
    }
    pthread_mutex_lock(&t->mutex);
    lane->n_groups_landed++;
    lane->stats.busy_us += us;
    for (int k = 0; k < g->n_chunks; k++) {
        double part = (double)lane->chunks[lane->n_landed % (unsigned)t->max_in_flight].bytes / bytes;
        land_chunk(lane, status, us * part);
    }
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
        bool held = false;
        wt__group *group = choose_group(lane, &held);
        if (group)
            issue(lane, group);
        else if (lane->n_groups_issued != lane->n_groups_landed)
            land(lane);
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
