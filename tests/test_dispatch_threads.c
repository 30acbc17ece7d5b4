// A dispatch that many threads use at once, on devices that work, fail, and are watched.
#include "support/dispatch_check.h"
#include "support/testing.h"
#include "../engine/device_internal.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

typedef struct crowd {
    const rig *r;
    int tag;
} crowd;

static void *submit_many(void *user)
{
    const crowd *c = user;
    for (int k = 0; k < 100; k++) {
        wt_dispatch_ticket ticket;
        wt_dispatch_info info;
        wt_dispatch_request like = {.lane = c->r->lanes[k % 2], .timed = k % 3 == 0, .priority = k % 4};
        if (submit_note(c->r, c->tag, like, &ticket)) return user;
        if (k % 10 == 0 && wt_dispatch_wait(c->r->dispatch, ticket, -1)) return user;
        if (k % 10 == 5 && wt_dispatch_query(c->r->dispatch, ticket, &info)) return user;
    }
    return NULL;
}

static void share(wt_device *device)
{
    rig r = rig_on(device, &(wt_dispatch_config){.max_queued = 1000, .history = 4096},
                   &(wt_dispatch_stream_config){.max_in_flight = 8});
    pthread_t threads[8];
    crowd crowds[8];
    for (int k = 0; k < 8; k++) {
        crowds[k] = (crowd){&r, k};
        assert_int_equal(pthread_create(&threads[k], NULL, submit_many, &crowds[k]), 0);
    }
    for (int k = 0; k < 8; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        assert_null(failed);
    }
    assert_ok(wt_dispatch_drain(r.dispatch));
    int counts[8] = {0};
    assert_int_equal(atomic_load(log_of(&r)), 800);
    for (int k = 0; k < 800; k++) counts[atomic_load(&log_of(&r)[k + 1])]++;
    for (int k = 0; k < 8; k++) assert_int_equal(counts[k], 100);
    rig_free(&r);
}

// Waiters hold markers, so the launch that fills a lane may find none: 3 of 100 such crowds stood still for ever.
static void eight_threads_share_a_dispatch(void **state)
{
    for (int k = 0; k < 100; k++) share(device_of(state));
}

// A device that records only four of five events, whoever asks.
static struct {
    const wt__device_ops *real;
    atomic_int n_records;
} poor;

static wt_status poor_record(wt_event *event, wt_stream *stream)
{
    if (atomic_fetch_add(&poor.n_records, 1) % 5 == 4) return wt_fail(WT_ERR_NO_MEMORY, "no event");
    return poor.real->record(event, stream);
}

/// As submit_many, whatever is refused or fails.
static void *submit_what_goes(void *user)
{
    const crowd *c = user;
    for (int k = 0; k < 100; k++) {
        wt_dispatch_ticket ticket;
        const wt_dispatch_request like = {.lane = c->r->lanes[k % 2], .timed = k % 3 == 0, .priority = k % 4};
        if (!submit_note(c->r, c->tag, like, &ticket) && k % 10 == 0)
            (void)!wt_dispatch_wait(c->r->dispatch, ticket, -1);
    }
    return NULL;
}

static void share_poor(wt_device *device)
{
    rig r = rig_on(device, &(wt_dispatch_config){.max_queued = 1000, .history = 4096},
                   &(wt_dispatch_stream_config){.max_in_flight = 8});
    const wt__device_ops *real = poor.real = device->ops;
    wt__device_ops ops = *real;
    ops.record = poor_record;
    device->ops = &ops;
    pthread_t threads[8];
    const crowd all = {&r, 0};
    for (int k = 0; k < 8; k++) assert_int_equal(pthread_create(&threads[k], NULL, submit_what_goes, (void *)&all), 0);
    for (int k = 0; k < 8; k++) pthread_join(threads[k], NULL);
    assert_ok(wt_dispatch_drain(r.dispatch));
    device->ops = real;
    wt_dispatch_stats stats;
    wt_dispatch_get_stats(r.dispatch, &stats);
    assert_int_equal(stats.n_completed + stats.n_failed + stats.n_refused, 800);
    assert_int_equal(atomic_load(log_of(&r)), stats.n_completed);
    assert_true(stats.n_failed + stats.n_refused > 0);
    rig_free(&r);
}

// No end is told but by an event: those that the driver does not record are made good for by later ones.
static void a_crowd_gets_through_where_events_fail(void **state)
{
    for (int k = 0; k < 10; k++) share_poor(device_of(state));
}

// A device whose events are looked at: whether one goes, or is recorded again, while a thread waits for it.
static struct {
    const wt__device_ops *real;
    const wt_event *awaited;
    pthread_t waiter;
    atomic_int n_inside, n_touched; ///< inside: 0 = not yet, 1 = now, 2 = no more
} watch;

static void touch(const wt_event *event)
{
    if (atomic_load(&watch.n_inside) == 1 && event == watch.awaited) atomic_fetch_add(&watch.n_touched, 1);
}

static wt_status watched_synchronize(wt_event *event)
{
    if (atomic_load(&watch.n_inside) || !pthread_equal(pthread_self(), watch.waiter))
        return watch.real->event_synchronize(event);
    watch.awaited = event;
    atomic_store(&watch.n_inside, 1);
    for (int k = 0; k < 100 && !atomic_load(&watch.n_touched); k++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    atomic_store(&watch.n_inside, 2);
    return atomic_load(&watch.n_touched) ? WT_OK : watch.real->event_synchronize(event);
}

static wt_status watched_record(wt_event *event, wt_stream *stream)
{
    touch(event);
    return watch.real->record(event, stream);
}

static void watched_destroy(wt_event *event)
{
    touch(event);
    watch.real->event_destroy(event);
}

typedef struct listener {
    const rig *r;
    wt_dispatch_ticket ticket;
} listener;

static void *wait_for_ticket(void *user)
{
    const listener *l = user;
    watch.waiter = pthread_self();
    return wt_dispatch_wait(l->r->dispatch, l->ticket, -1) ? user : NULL;
}

static void what_a_thread_waits_for_is_neither_recorded_again_nor_destroyed(void **state)
{
    for (int removes = 0; removes < 2; removes++) {
        rig r = rig_on(device_of(state), NULL, &(wt_dispatch_stream_config){.max_in_flight = 1});
        const wt__device_ops *real = r.device->ops;
        wt__device_ops ops = *real;
        ops.event_synchronize = watched_synchronize;
        ops.record = watched_record;
        ops.event_destroy = watched_destroy;
        memset(&watch, 0, sizeof watch);
        watch.real = real;
        r.device->ops = &ops;
        listener l = {.r = &r};
        pthread_t thread;
        void *failed;
        assert_ok(submit_gate(&r, (wt_dispatch_request){.lane = r.lanes[0]}, &l.ticket));
        assert_int_equal(pthread_create(&thread, NULL, wait_for_ticket, &l), 0);
        while (!atomic_load(&watch.n_inside)) sched_yield();
        open_gate(&r);
        assert_ok(wt_stream_synchronize(r.streams[0]));
        if (removes)
            assert_ok(wt_dispatch_remove_stream(r.dispatch, r.lanes[0]));
        else
            assert_ok(submit_note(&r, 2, (wt_dispatch_request){.lane = r.lanes[0]}, NULL));
        pthread_join(thread, &failed);
        assert_null(failed);
        assert_ok(wt_dispatch_drain(r.dispatch));
        r.device->ops = real;
        assert_int_equal(watch.n_touched, 0);
        rig_free(&r);
    }
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(eight_threads_share_a_dispatch), cmocka_unit_test(a_crowd_gets_through_where_events_fail),        \
        cmocka_unit_test(what_a_thread_waits_for_is_neither_recorded_again_nor_destroyed)

int main(void)
{
    const struct CMUnitTest cpu[] = {BOTH_BACKENDS};
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS};
    return cmocka_run_group_tests_name("dispatch of many threads: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("dispatch of many threads: CUDA", cuda, open_cuda, close_device);
}
