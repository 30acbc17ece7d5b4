/// What the threads of test_all_calls share, and how they note answers. Included by that test alone.
#ifndef WT_TEST_ALL_CALLS_WORLD_H
#define WT_TEST_ALL_CALLS_WORLD_H

#include "support/device_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/cpu_executor.h>
#include <warptone/device_executor.h>
#include <warptone/dispatch.h>
#include <warptone/graph.h>
#include <warptone/telemetry.h>
#include <warptone/transfer.h>

enum { N_THREADS = 8, N_SLOTS = 16, BYTES = 8192, DEFAULT_CALLS = 600 };

/// What one thread made and others may use.
typedef struct slots {
    pthread_mutex_t mutex;
    wt_task tasks[N_SLOTS];
    wt_pool_block blocks[N_SLOTS];
    wt_transfer_ticket transfers[N_SLOTS];
    wt_dispatch_ticket launches[N_SLOTS];
} slots;

typedef struct world {
    wt_device *device;
    wt_layout *layout;
    wt_partition *lender, *borrower;
    wt_stream *stream; ///< shared, as the graph is
    wt_graph *graph;
    wt_pool *pool;
    wt_transfer *transfer;
    wt_dispatch *dispatch;
    int lane;
    wt_scheduler *scheduler;
    wt_cpu_executor *workers;
    wt_device_executor *executor;
    int on_cpu, on_device;
    wt_telemetry *telemetry;
    wt_telemetry_row *row;
    slots slots;
    atomic_int n_work; ///< counted by all work
    int n_calls;
} world;

typedef struct worker {
    world *w;
    int index;
    uint64_t seed;
    wt_stream *stream;
    wt_buffer *buffer;
    unsigned char *host; ///< [BYTES]
    wt_device_work work; ///< in use while `task` has not ended
    wt_task task;
    char failure[512]; ///< the first answer that no header names
} worker;

static unsigned pick(worker *me, unsigned n)
{
    me->seed = me->seed * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
    return (unsigned)(me->seed >> 33) % n;
}

static wt_status may(worker *me, const char *call, wt_status got, const wt_status *allowed, size_t n)
{
    bool fine = false;
    for (size_t k = 0; k < n; k++) fine |= allowed[k] == got;
    if (!fine && !me->failure[0])
        snprintf(me->failure, sizeof me->failure, "%s: status %d: %s", call, (int)got, wt_last_error());
    return got;
}
#define MAY(call, ...)                                                                                                 \
    may(me, #call, (call), (const wt_status[]){WT_OK, __VA_ARGS__},                                                    \
        sizeof((const wt_status[]){WT_OK, __VA_ARGS__}) / sizeof(wt_status))

#define PUT(field, value)                                                                                              \
    do {                                                                                                               \
        pthread_mutex_lock(&me->w->slots.mutex);                                                                       \
        me->w->slots.field[pick(me, N_SLOTS)] = (value);                                                               \
        pthread_mutex_unlock(&me->w->slots.mutex);                                                                     \
    } while (0)
#define GET(field, to)                                                                                                 \
    do {                                                                                                               \
        pthread_mutex_lock(&me->w->slots.mutex);                                                                       \
        *(to) = me->w->slots.field[pick(me, N_SLOTS)];                                                                 \
        pthread_mutex_unlock(&me->w->slots.mutex);                                                                     \
    } while (0)

static void count_item(const void *args, int item)
{
    (void)item;
    atomic_fetch_add(*(atomic_int *const *)args, 1);
}

static wt_status count_on(world *w, wt_stream *stream)
{
    atomic_int *n = &w->n_work;
    return wt_stream_run(stream, count_item, &n, sizeof n, 2);
}

// ---- the world

static void make_world(world *w, wt_device *device)
{
    *w = (world){.device = device, .slots.mutex = PTHREAD_MUTEX_INITIALIZER};
    const char *n_calls = getenv("WARPTONE_ALL_CALLS");
    w->n_calls = n_calls ? atoi(n_calls) : DEFAULT_CALLS;
    w->layout = layout_of(device, &lending_config);
    w->lender = wt_layout_at(w->layout, 0);
    w->borrower = wt_layout_find(w->layout, "llm");
    assert_ok(wt_stream_create(device, NULL, &w->stream));
    assert_ok(wt_graph_begin(w->stream, &w->graph));
    assert_ok(count_on(w, w->stream));
    assert_ok(wt_graph_end(w->graph));
    assert_ok(wt_pool_create(device, &(wt_pool_config){.quota_bytes = 1 << 20, .max_streams = 63}, &w->pool));
    assert_ok(wt_transfer_create(device, NULL, &w->transfer));
    assert_ok(wt_dispatch_create(device, NULL, &w->dispatch));
    assert_ok(
        wt_dispatch_add_stream(w->dispatch, w->stream, &(wt_dispatch_stream_config){.max_in_flight = 4}, &w->lane));
    assert_ok(wt_scheduler_create(&(wt_scheduler_config){.timer_thread = true, .max_tasks = 256, .history = 64},
                                  &w->scheduler));
    assert_ok(
        wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = w->scheduler, .n_threads = 2}, &w->workers));
    assert_ok(wt_device_executor_create(
        &(wt_device_executor_config){.scheduler = w->scheduler, .partition = w->borrower, .only_slices = true},
        &w->executor));
    assert_ok(
        wt_scheduler_add_partition(w->scheduler,
                                   &(wt_scheduler_partition_config){.name = "cpu",
                                                                    .n_lanes = 2,
                                                                    .executor = wt_cpu_executor_callbacks(w->workers),
                                                                    .policy = WT_POLICY_PRIORITY,
                                                                    .memory_bytes = 1 << 16,
                                                                    .hang_ns = 1000000},
                                   &w->on_cpu));
    assert_ok(wt_scheduler_add_partition(
        w->scheduler,
        &(wt_scheduler_partition_config){.name = "device",
                                         .executor = wt_device_executor_callbacks(w->executor),
                                         .policy = WT_POLICY_WEIGHTED_FAIR,
                                         .pacing_share = 0.5,
                                         .blocking_ns = 1000000},
        &w->on_device));
    assert_ok(wt_telemetry_create(&w->telemetry));
    assert_ok(wt_telemetry_open_row(w->telemetry, &(wt_telemetry_row_config){.name = "shared"}, &w->row));
}

static bool is_quiet(world *w, int partition)
{
    wt_scheduler_partition_stats stats;
    assert_ok(wt_scheduler_get_partition(w->scheduler, partition, &stats));
    return !(stats.n_queued + stats.n_ready + stats.n_running + stats.n_waiting);
}

/// What still waits for a time or a lane must end before the executors go; what is held, and waits for that, stays.
static void end_tasks(world *w)
{
    for (int k = 0; k < N_SLOTS; k++) (void)!wt_scheduler_cancel(w->scheduler, w->slots.tasks[k]);
    for (int k = 0; k < 20000 && !(is_quiet(w, w->on_cpu) && is_quiet(w, w->on_device)); k++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(is_quiet(w, w->on_cpu) && is_quiet(w, w->on_device));
}

static void end_world(world *w)
{
    wt_cpu_executor_destroy(w->workers);
    wt_device_executor_destroy(w->executor);
    wt_scheduler_destroy(w->scheduler);
    wt_telemetry_destroy(w->telemetry);
    wt_dispatch_destroy(w->dispatch);
    wt_transfer_destroy(w->transfer);
    wt_pool_destroy(w->pool);
    wt_graph_destroy(w->graph);
    wt_stream_destroy(w->stream);
    assert_ok(wt_layout_destroy(w->layout));
}

#endif
