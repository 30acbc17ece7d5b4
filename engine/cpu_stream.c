// A stream is a ring of 64 KB in which commands lie one after the other, each a header and, for a run, its arguments.
// The worker executes a command in place, so nothing is allocated or copied while a stream runs; a full ring makes the
// caller wait, which cannot deadlock because a command only ever waits for commands that were queued before it.
//
// A point of a stream is the pair (stream, number of the command), so an event that is recorded twice keeps earlier
// waits on the earlier point, as CUDA does. What outlives a stream (events, other streams' waits) holds its `progress`,
// which is counted.
//
// Locks, outer to inner: stream -> event -> progress. The worker takes the event's and the progress's only.
#include "cpu_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { RING_BYTES = 65536, LINE_BYTES = 64 };

typedef struct progress {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    _Atomic uint64_t done; ///< commands finished; stored with release under the mutex, read with acquire
    uint64_t wanted;       ///< the least that is waited for, so that nobody is woken in vain; under the mutex
    atomic_int n_owners;
} progress;

typedef struct point {
    progress *progress; ///< NULL = nowhere
    uint64_t number;
} point;

typedef struct cpu_event {
    wt_event base;
    pthread_mutex_t mutex;
    point last;      ///< of the last record
    int64_t time_ns; ///< when it was reached
    atomic_int n_owners;
} cpu_event;

typedef enum command_kind { SKIP, COPY, FILL, RUN, RECORD, WAIT } command_kind;

typedef struct command {
    command_kind kind;
    unsigned int bytes; ///< with the arguments, a multiple of LINE_BYTES
    union {
        struct {
            void *to;
            const void *from;
            size_t bytes;
        } copy;
        struct {
            void *to;
            size_t bytes;
            unsigned char value;
        } fill;
        struct {
            wt_cpu_function function;
            int n_items;
        } run;
        struct {
            cpu_event *event; ///< counted
            uint64_t number;
        } record;
        point wait; ///< counted
    };
} command;

_Static_assert(sizeof(command) <= LINE_BYTES, "a command's header is one line");

typedef struct wt__cpu_stream {
    wt_stream base;
    wt__pool *pool; ///< under the mutex
    bool moved;     ///< the thread has to go where the pool is
    progress *progress;
    pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    _Atomic uint64_t head, tail; ///< bytes ever pushed and popped; written under the mutex
    uint64_t n_queued;           ///< commands ever pushed
    bool quit;
    pthread_t thread;
    _Alignas(LINE_BYTES) unsigned char ring[RING_BYTES];
} wt__cpu_stream;

// ---- progress: how far a stream has come

static progress *progress_create(void)
{
    progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->wanted = UINT64_MAX;
    wt__mutex_init_brief(&p->mutex);
    pthread_cond_init(&p->moved, NULL);
    atomic_init(&p->n_owners, 1);
    return p;
}

static progress *progress_share(progress *p)
{
    atomic_fetch_add(&p->n_owners, 1);
    return p;
}

static void progress_release(progress *p)
{
    if (!p || atomic_fetch_sub(&p->n_owners, 1) > 1) return;
    pthread_cond_destroy(&p->moved);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

static bool reached(point at)
{
    return !at.progress || atomic_load(&at.progress->done) >= at.number;
}

static void wait_for(point at)
{
    progress *p = at.progress;
    if (reached(at)) return;
    pthread_mutex_lock(&p->mutex);
    while (!reached(at)) {
        if (at.number < p->wanted) p->wanted = at.number;
        pthread_cond_wait(&p->moved, &p->mutex);
    }
    pthread_mutex_unlock(&p->mutex);
}

static void advance(progress *p)
{
    pthread_mutex_lock(&p->mutex);
    if (atomic_fetch_add(&p->done, 1) + 1 >= p->wanted) {
        p->wanted = UINT64_MAX;
        pthread_cond_broadcast(&p->moved);
    }
    pthread_mutex_unlock(&p->mutex);
}

// ---- events

static cpu_event *cpu_event_of(const wt_event *event)
{
    return (cpu_event *)event;
}

static void event_release(cpu_event *e)
{
    if (atomic_fetch_sub(&e->n_owners, 1) > 1) return;
    progress_release(e->last.progress);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

/// The event's last point, counted, and its time when asked for.
static point event_point(cpu_event *e, int64_t *time_ns)
{
    pthread_mutex_lock(&e->mutex);
    point at = e->last;
    if (at.progress) progress_share(at.progress);
    if (time_ns) *time_ns = e->time_ns;
    pthread_mutex_unlock(&e->mutex);
    return at;
}

wt_status wt__cpu_event_create(wt_device *device, wt_event **event)
{
    cpu_event *e = calloc(1, sizeof *e);
    if (!e) return wt_fail(WT_ERR_NO_MEMORY, "event: no memory for a handle");
    e->base.device = device;
    pthread_mutex_init(&e->mutex, NULL);
    atomic_init(&e->n_owners, 1);
    *event = &e->base;
    return WT_OK;
}

void wt__cpu_event_destroy(wt_event *event)
{
    event_release(cpu_event_of(event));
}

bool wt__cpu_event_done(const wt_event *event)
{
    point at = event_point(cpu_event_of(event), NULL);
    bool done = reached(at);
    progress_release(at.progress);
    return done;
}

wt_status wt__cpu_event_synchronize(wt_event *event)
{
    point at = event_point(cpu_event_of(event), NULL);
    wait_for(at);
    progress_release(at.progress);
    return WT_OK;
}

wt_status wt__cpu_event_elapsed_us(const wt_event *begin, const wt_event *end, double *elapsed_us)
{
    const wt_event *events[] = {begin, end};
    int64_t times_ns[2];
    for (int k = 0; k < 2; k++) progress_release(event_point(cpu_event_of(events[k]), &times_ns[k]).progress);
    *elapsed_us = (double)(times_ns[1] - times_ns[0]) * 1e-3;
    return WT_OK;
}

// ---- the worker

/// To a count that is written under the mutex alone.
static void add(_Atomic uint64_t *count, uint64_t bytes)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + bytes, memory_order_release);
}

static void execute_record(wt__cpu_stream *s, const command *c)
{
    cpu_event *e = c->record.event;
    pthread_mutex_lock(&e->mutex);
    if (e->last.progress == s->progress && e->last.number == c->record.number) e->time_ns = wt_clock_now_ns(NULL);
    pthread_mutex_unlock(&e->mutex);
    event_release(e);
}

static void execute(wt__cpu_stream *s, wt__pool *pool, const command *c, bool followed)
{
    switch (c->kind) {
    case SKIP:
        break;
    case COPY:
        memcpy(c->copy.to, c->copy.from, c->copy.bytes);
        break;
    case FILL:
        memset(c->fill.to, c->fill.value, c->fill.bytes);
        break;
    case RUN:
        wt__pool_run(pool, c->run.function, (const unsigned char *)c + LINE_BYTES, c->run.n_items, followed);
        break;
    case RECORD:
        execute_record(s, c);
        break;
    case WAIT:
        wait_for(c->wait);
        progress_release(c->wait.progress);
        break;
    }
}

static void *stream_thread(void *user)
{
    wt__cpu_stream *s = user;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (s->head == s->tail && !s->quit) pthread_cond_wait(&s->not_empty, &s->mutex);
        if (s->head == s->tail) break;
        const command *c = (const command *)&s->ring[s->tail % RING_BYTES];
        wt__pool *pool = s->pool;
        const unsigned int bytes = c->bytes;
        const bool moved = s->moved, followed = s->head - s->tail > bytes;
        s->moved = false;
        pthread_mutex_unlock(&s->mutex);

        if (moved) wt__pool_place_thread(pool);
        bool counted = c->kind != SKIP;
        execute(s, pool, c, followed);
        if (counted) advance(s->progress);

        pthread_mutex_lock(&s->mutex);
        add(&s->tail, bytes);
        if (s->head - s->tail <= RING_BYTES / 2) pthread_cond_broadcast(&s->not_full); // not for each command
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

// ---- queueing

/// Lock the stream and wait for room; the command's number will be `n_queued + 1`. Fill it, then call end_push.
static command *begin_push(wt__cpu_stream *s, command_kind kind, size_t args_bytes)
{
    size_t bytes = LINE_BYTES + (args_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        size_t room = RING_BYTES - (size_t)(s->head - s->tail);
        size_t to_edge = RING_BYTES - (size_t)(s->head % RING_BYTES);
        size_t want = to_edge < bytes ? to_edge : bytes;
        if (room < want) {
            pthread_cond_wait(&s->not_full, &s->mutex);
            continue;
        }
        command *c = (command *)&s->ring[s->head % RING_BYTES];
        *c = (command){.kind = want < bytes ? SKIP : kind, .bytes = (unsigned int)want};
        if (want == bytes) return c;
        add(&s->head, want); // the ring's end is too short: skip it
    }
}

static void end_push(wt__cpu_stream *s, const command *c)
{
    add(&s->head, c->bytes);
    s->n_queued++;
    pthread_cond_signal(&s->not_empty);
    pthread_mutex_unlock(&s->mutex);
}

static wt__cpu_stream *cpu_stream_of(wt_stream *stream)
{
    return (wt__cpu_stream *)stream;
}

wt_status wt__cpu_stream_copy(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes)
{
    command *c = begin_push(cpu_stream_of(stream), COPY, 0);
    c->copy.to = (void *)to.address;
    c->copy.from = (const void *)from.address;
    c->copy.bytes = size_bytes;
    end_push(cpu_stream_of(stream), c);
    return WT_OK;
}

wt_status wt__cpu_stream_fill(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes)
{
    command *c = begin_push(cpu_stream_of(stream), FILL, 0);
    c->fill.to = (void *)address;
    c->fill.value = value;
    c->fill.bytes = size_bytes;
    end_push(cpu_stream_of(stream), c);
    return WT_OK;
}

wt_status wt__cpu_stream_run(wt_stream *stream, wt_cpu_function function, const void *args, size_t args_bytes,
                             int n_items)
{
    command *c = begin_push(cpu_stream_of(stream), RUN, args_bytes);
    c->run.function = function;
    c->run.n_items = n_items;
    if (args_bytes) memcpy((unsigned char *)c + LINE_BYTES, args, args_bytes);
    end_push(cpu_stream_of(stream), c);
    return WT_OK;
}

wt_status wt__cpu_event_record(wt_event *event, wt_stream *stream)
{
    cpu_event *e = cpu_event_of(event);
    wt__cpu_stream *s = cpu_stream_of(stream);
    command *c = begin_push(s, RECORD, 0);
    point at = {progress_share(s->progress), s->n_queued + 1};
    atomic_fetch_add(&e->n_owners, 1);
    c->record.event = e;
    c->record.number = at.number;
    pthread_mutex_lock(&e->mutex);
    progress *before = e->last.progress;
    e->last = at;
    pthread_mutex_unlock(&e->mutex);
    progress_release(before);
    end_push(s, c);
    return WT_OK;
}

wt_status wt__cpu_stream_wait(wt_stream *stream, wt_event *event)
{
    wt__cpu_stream *s = cpu_stream_of(stream);
    point at = event_point(cpu_event_of(event), NULL);
    if (at.progress == s->progress || reached(at)) { // a stream is in order by itself
        progress_release(at.progress);
        return WT_OK;
    }
    command *c = begin_push(s, WAIT, 0);
    c->wait = at;
    end_push(s, c);
    return WT_OK;
}

wt_status wt__cpu_stream_synchronize(wt_stream *stream)
{
    wt__cpu_stream *s = cpu_stream_of(stream);
    pthread_mutex_lock(&s->mutex);
    point end = {s->progress, s->n_queued};
    pthread_mutex_unlock(&s->mutex);
    wait_for(end);
    return WT_OK;
}

bool wt__cpu_stream_idle(const wt_stream *stream)
{
    wt__cpu_stream *s = (wt__cpu_stream *)stream; // only its mutex is written
    pthread_mutex_lock(&s->mutex);
    bool idle = reached((point){s->progress, s->n_queued});
    pthread_mutex_unlock(&s->mutex);
    return idle;
}

bool wt__cpu_stream_takes(const wt_stream *stream, int n_commands, size_t args_bytes)
{
    const wt__cpu_stream *s = (const wt__cpu_stream *)stream;
    // the tail first: what is pushed in between is counted
    const uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire),
                   used = atomic_load_explicit(&s->head, memory_order_relaxed) - tail;
    size_t bytes = (size_t)n_commands * LINE_BYTES;
    if (args_bytes) bytes += args_bytes + bytes + WT_MAX_ARGS_BYTES; // whole lines, and one skip at the ring's end
    return used + bytes <= RING_BYTES || !used;
}

wt_status wt__cpu_stream_move(wt_stream *stream, wt__pool *pool)
{
    wt__cpu_stream *s = cpu_stream_of(stream);
    pthread_mutex_lock(&s->mutex);
    bool idle = reached((point){s->progress, s->n_queued});
    if (idle) {
        s->pool = pool;
        s->moved = true;
    }
    pthread_mutex_unlock(&s->mutex);
    return idle ? WT_OK : wt_fail(WT_ERR_STATE, "stream: it has work queued and cannot be moved");
}

// ---- create, destroy

wt_status wt__cpu_stream_create(wt_device *device, wt__pool *pool, wt_stream **stream)
{
    *stream = NULL;
    wt__cpu_stream *s = aligned_alloc(LINE_BYTES, sizeof *s);
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "stream: no memory for a handle");
    memset(s, 0, sizeof *s);
    s->base.device = device;
    s->pool = pool;
    s->moved = true;
    s->progress = progress_create();
    wt__mutex_init_brief(&s->mutex);
    pthread_cond_init(&s->not_empty, NULL);
    pthread_cond_init(&s->not_full, NULL);
    if (s->progress && !pthread_create(&s->thread, NULL, stream_thread, s)) {
        *stream = &s->base;
        return WT_OK;
    }
    progress_release(s->progress);
    pthread_mutex_destroy(&s->mutex);
    free(s);
    return wt_fail(WT_ERR_NO_MEMORY, "stream: the system gives no memory or thread for it");
}

void wt__cpu_stream_destroy(wt_stream *stream)
{
    wt__cpu_stream *s = cpu_stream_of(stream);
    pthread_mutex_lock(&s->mutex);
    s->quit = true;
    pthread_cond_signal(&s->not_empty);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->not_full);
    pthread_cond_destroy(&s->not_empty);
    pthread_mutex_destroy(&s->mutex);
    progress_release(s->progress);
    free(s);
}
