// Eight threads make calls of every noun of engine/ together, at random from a table, on things that they share and on
// things of their own. Every answer must be one that the header names; nothing may crash, hang or leak. The point is
// the run under ThreadSanitizer (scons tsan=1) and AddressSanitizer.
//   WARPTONE_ALL_CALLS=100000 ...       calls of each thread, default 600
//   WARPTONE_ALL_CALLS_SEED=7 ...       another order
#include "support/device_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/arena.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/cpu_executor.h>
#include <warptone/device_executor.h>
#include <warptone/dispatch.h>
#include <warptone/graph.h>
#include <warptone/histogram.h>
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

// ---- device, streams, events, memory

static void open_a_device(worker *me)
{
    wt_device *device;
    wt_device_info info;
    MAY(wt_device_query(-1, &info), WT_OK);
    if (!MAY(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device), WT_OK))
        wt_device_close(device);
}

static void synchronize(worker *me)
{
    MAY(wt_device_synchronize(me->w->device), WT_ERR_ARMED, WT_ERR_STATE);
    wt_device_get_info(me->w->device);
    wt_device_is_lost(me->w->device);
}

static void use_a_buffer(worker *me)
{
    wt_buffer *buffer;
    if (MAY(wt_buffer_create(me->w->device, (wt_memory)pick(me, 3), 1 + pick(me, BYTES), &buffer), WT_OK)) return;
    MAY(wt_stream_fill(me->w->stream, buffer, 0, 1, 1), WT_OK);
    wt_buffer_destroy(buffer);
}

static void copy(worker *me)
{
    MAY(wt_stream_upload(me->stream, me->buffer, 0, me->host, BYTES / 2), WT_OK);
    MAY(wt_stream_copy(me->stream, me->buffer, BYTES / 2, me->buffer, 0, BYTES / 2), WT_OK);
    MAY(wt_stream_download(me->stream, me->host, me->buffer, 0, BYTES), WT_OK);
    MAY(wt_stream_synchronize(me->stream), WT_OK);
}

static void use_a_stream(worker *me)
{
    wt_stream *stream;
    if (MAY(wt_stream_create(me->w->device, &(wt_stream_config){.priority = 1}, &stream), WT_OK)) return;
    MAY(count_on(me->w, stream), WT_OK);
    wt_stream_destroy(stream);
}

static void run(worker *me) { MAY(count_on(me->w, me->w->stream), WT_OK); }

static void use_events(worker *me)
{
    wt_event *begin = NULL, *end = NULL;
    double us;
    MAY(wt_event_create(me->w->device, &begin), WT_OK);
    MAY(wt_event_create(me->w->device, &end), WT_OK);
    MAY(wt_event_record(begin, me->w->stream), WT_OK);
    MAY(wt_stream_wait(me->stream, begin), WT_OK);
    MAY(wt_event_record(end, me->stream), WT_OK);
    wt_event_done(begin);
    MAY(wt_event_synchronize(end), WT_OK);
    MAY(wt_event_elapsed_us(begin, end, &us), WT_OK);
    wt_event_destroy(begin);
    wt_event_destroy(end);
}

static void ask_the_compiler(worker *me)
{
    wt_kernel_cache_info info;
    wt_module *module;
    wt_nvrtc_version();
    MAY(wt_kernel_cache_query(&info), WT_ERR_FILE, WT_ERR_NOT_FOUND);
    MAY(wt_module_create(me->w->device, &(wt_module_config){.name = "x.cu", .source = ""}, &module),
        WT_ERR_UNSUPPORTED);
}

// ---- partitions

static void ask_the_layout(worker *me)
{
    wt_layout_info layout;
    wt_partition_info partition;
    wt_layout_get_info(me->w->layout, &layout);
    wt_partition_get_info(wt_layout_at(me->w->layout, (int)pick(me, 2)), &partition);
    wt_partition_is_busy(wt_layout_find(me->w->layout, "llm"));
    wt_partition_n_variants(me->w->borrower);
    wt_partition_variant_stream(me->w->borrower, 0);
}

static void use_a_partition_stream(worker *me)
{
    wt_stream *stream;
    if (MAY(wt_partition_stream_create(me->w->borrower, NULL, &stream), WT_ERR_FULL)) return;
    MAY(count_on(me->w, stream), WT_OK);
    MAY(wt_stream_synchronize(stream), WT_OK);
    wt_stream_destroy(stream);
}

static void lend(worker *me) { MAY(wt_partition_idle(me->w->lender, pick(me, 2)), WT_ERR_STATE); }

static void step(worker *me)
{
    wt_partition_step step;
    if (MAY(wt_partition_step_begin(me->w->borrower, &step), WT_ERR_STATE)) return;
    MAY(count_on(me->w, step.stream), WT_OK);
    MAY(wt_partition_step_end(me->w->borrower), WT_OK);
}

static void use_a_layout(worker *me)
{
    wt_layout *layout;
    const wt_layout_config config = {.partitions = &(wt_partition_config){.name = "own"}, .n_partitions = 1};
    if (MAY(wt_layout_create(me->w->device, &config, &layout), WT_ERR_ARMED)) return;
    MAY(wt_layout_resize(layout, &config), WT_ERR_ARMED);
    while (MAY(wt_layout_destroy(layout), WT_ERR_ARMED)) {
    } // armed for a moment
}

// ---- pool

static void take_a_block(worker *me)
{
    wt_pool_block block;
    const wt_pool_request request = {.size_bytes = 1 + pick(me, 4 * BYTES),
                                     .memory = pick(me, 4) ? WT_MEMORY_DEVICE : WT_MEMORY_PINNED};
    if (MAY(wt_pool_allocate(me->w->pool, &request, me->stream, &block), WT_ERR_QUOTA, WT_ERR_FULL, WT_ERR_NO_MEMORY))
        return;
    // Of several streams the order of reads and writes is the caller's, so only who made a block writes it.
    MAY(wt_pool_upload(me->w->pool, block, me->stream, 0, me->host, 1), WT_ERR_QUOTA, WT_ERR_NO_MEMORY);
    MAY(wt_pool_download(me->w->pool, block, me->stream, 0, me->host, 1), WT_ERR_QUOTA, WT_ERR_NO_MEMORY);
    MAY(wt_stream_synchronize(me->stream), WT_OK);
    PUT(blocks, block);
}

static void use_a_block(worker *me)
{
    wt_pool_block block;
    wt_pool_block_info info;
    uintptr_t address;
    GET(blocks, &block);
    if (!MAY(wt_pool_access(me->w->pool, block, me->stream, &address), WT_ERR_BAD_ARG, WT_ERR_QUOTA,
             WT_ERR_NO_MEMORY)) {
        MAY(wt_pool_query_block(me->w->pool, block, &info), WT_OK); // nobody frees it while it is accessed
        MAY(wt_pool_release_access(me->w->pool, block, me->stream), WT_OK);
    }
    MAY(wt_pool_evict(me->w->pool, block), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_QUOTA, WT_ERR_NO_MEMORY);
}

static void free_a_block(worker *me)
{
    wt_pool_block block;
    GET(blocks, &block);
    MAY(wt_pool_free(me->w->pool, block, me->stream), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_FULL);
}

static void ask_the_pool(worker *me)
{
    wt_pool_stats stats;
    wt_pool_query(me->w->pool, &stats);
    if (pick(me, 4) == 0) wt_pool_trim(me->w->pool);
    MAY(wt_pool_detach_stream(me->w->pool, me->stream), WT_OK);
}

static void use_a_pool_arena(worker *me)
{
    wt_pool_arena *arena;
    uintptr_t address;
    if (MAY(wt_pool_arena_create(me->w->pool, BYTES, &arena), WT_ERR_QUOTA, WT_ERR_FULL, WT_ERR_NO_MEMORY)) return;
    if (!MAY(wt_pool_arena_take(arena, 100, 0, &address), WT_OK))
        MAY(wt_pool_arena_upload(arena, me->stream, address, me->host, 100), WT_OK),
            MAY(wt_pool_arena_download(arena, me->stream, address, me->host, 100), WT_OK);
    wt_pool_arena_seal(arena);
    wt_pool_arena_used_bytes(arena);
    wt_pool_arena_destroy(arena, me->stream);
    MAY(wt_stream_synchronize(me->stream), WT_OK);
}

static void use_a_pool(worker *me)
{
    wt_pool *pool;
    if (!MAY(wt_pool_create(me->w->device, &(wt_pool_config){.quota_bytes = 1 << 16, .soft = true}, &pool),
             WT_ERR_ARMED))
        wt_pool_destroy(pool);
}

// ---- transfer, dispatch, graphs

static void transfer(worker *me)
{
    wt_transfer_ticket mine, other;
    wt_transfer_info info;
    wt_transfer_stats stats;
    const wt_transfer_request request = {.direction = (wt_transfer_direction)pick(me, 2),
                                         .host = me->host,
                                         .device_address = wt_buffer_address(me->buffer),
                                         .size_bytes = BYTES,
                                         .priority = (int)pick(me, 3)};
    if (MAY(wt_transfer_submit(me->w->transfer, &request, &mine), WT_ERR_FULL)) return;
    PUT(transfers, mine);
    GET(transfers, &other);
    MAY(wt_transfer_query(me->w->transfer, other, &info), WT_ERR_BAD_ARG);
    if (pick(me, 2)) MAY(wt_transfer_cancel(me->w->transfer, other), WT_ERR_BAD_ARG, WT_ERR_STATE);
    wt_transfer_query_stats(me->w->transfer, request.direction, &stats);
    MAY(wt_transfer_set_chunk_bytes(me->w->transfer, pick(me, 2) ? 4096 : 0), WT_OK);
    MAY(wt_transfer_wait(me->w->transfer, mine), WT_ERR_CANCELLED, WT_ERR_BAD_ARG); // its memory is ours again
}

static void launch(worker *me)
{
    wt_dispatch_ticket ticket, after;
    atomic_int *n = &me->w->n_work;
    GET(launches, &after);
    wt_dispatch_request request = {.lane = me->w->lane,
                                   .function = count_item,
                                   .args = &WT_ARG(n),
                                   .n_args = 1,
                                   .n_items = 1,
                                   .timed = pick(me, 2),
                                   .priority = (int)pick(me, 3)};
    if (after.generation && pick(me, 2)) request.after = &after, request.n_after = 1;
    if (pick(me, 4) == 0) request.watchdog_us = 1000000;
    if (!MAY(wt_dispatch_submit(me->w->dispatch, &request, &ticket), WT_ERR_FULL, WT_ERR_CANCELLED, WT_ERR_NOT_FOUND))
        PUT(launches, ticket);
}

static void ask_the_dispatch(worker *me)
{
    wt_dispatch_ticket ticket;
    wt_dispatch_info info;
    wt_dispatch_stats stats;
    GET(launches, &ticket);
    MAY(wt_dispatch_query(me->w->dispatch, ticket, &info), WT_ERR_BAD_ARG, WT_ERR_NOT_FOUND);
    MAY(wt_dispatch_poll(me->w->dispatch), WT_OK);
    if (pick(me, 3) == 0)
        MAY(wt_dispatch_cancel(me->w->dispatch, ticket), WT_ERR_STATE, WT_ERR_BAD_ARG, WT_ERR_NOT_FOUND);
    MAY(wt_dispatch_wait(me->w->dispatch, ticket, 1000), WT_ERR_TIMEOUT, WT_ERR_BAD_ARG, WT_ERR_NOT_FOUND,
        WT_ERR_CANCELLED);
    wt_dispatch_get_stats(me->w->dispatch, &stats);
}

static void drain_the_dispatch(worker *me)
{
    int lane;
    if (!MAY(wt_dispatch_add_stream(me->w->dispatch, me->stream, NULL, &lane), WT_ERR_FULL))
        MAY(wt_dispatch_remove_stream(me->w->dispatch, lane), WT_OK);
}

static wt_graph *record(worker *me)
{
    wt_graph *graph;
    if (MAY(wt_graph_begin(me->stream, &graph), WT_OK)) return NULL;
    MAY(count_on(me->w, me->stream), WT_OK);
    MAY(wt_stream_fill(me->stream, me->buffer, 0, 3, 64), WT_OK);
    MAY(wt_graph_end(graph), WT_OK);
    return graph;
}

static void use_a_graph(worker *me)
{
    wt_graph_info info;
    wt_graph *graph = record(me), *clone;
    if (!graph) return;
    MAY(wt_graph_launch(graph, me->stream), WT_OK);
    if (!MAY(wt_graph_clone(me->w->graph, me->stream, &clone), WT_OK)) {
        MAY(wt_graph_launch(clone, me->stream), WT_OK);
        MAY(wt_stream_synchronize(me->stream), WT_OK);
        wt_graph_destroy(clone);
    }
    MAY(wt_graph_check(graph, me->stream, &me->buffer, 1), WT_OK);
    wt_graph_get_info(graph, &info);
    wt_graph_destroy(graph);
}

static void use_the_graph(worker *me)
{
    atomic_int *n = &me->w->n_work;
    wt_graph_info info;
    MAY(wt_graph_launch(me->w->graph, me->w->stream), WT_OK);
    MAY(wt_graph_set_args(me->w->graph, 0, &WT_ARG(n), 1), WT_OK);
    wt_graph_get_info(me->w->graph, &info);
}

// ---- scheduler and executors

static wt_status job(void *user, wt_job *j)
{
    world *w = user;
    wt_job_task(j);
    atomic_fetch_add(&w->n_work, 1);
    if (wt_job_should_stop(j) && !wt_job_is_cancelled(j)) wt_job_continue_later(j);
    return WT_OK;
}

static wt_status queue(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    return count_on(user, stream);
}

static wt_task_config task_config(worker *me)
{
    wt_task_config c = {.name = "task",
                        .partition = me->w->on_cpu,
                        .work = {.run = job, .user = me->w},
                        .tier = (wt_tier)pick(me, WT_N_TIERS),
                        .priority = (int)pick(me, 4),
                        .memory_bytes = pick(me, 4096),
                        .cost_ns = pick(me, 3) * 1000,
                        .kind = (int)pick(me, 4),
                        .held = pick(me, 8) == 0,
                        .timeout_ns = pick(me, 4) ? 0 : 1000000000};
    if (pick(me, 4) == 0) c.work = (wt_work){.graph = me->w->graph};
    if (pick(me, 8) == 0) c.period_ns = 1000000, c.n_jobs = 3;
    return c;
}

static void submit(worker *me)
{
    wt_task task, after;
    wt_admission admission;
    wt_task_config c = task_config(me);
    GET(tasks, &after);
    if (after.serial && pick(me, 3) == 0) c.after = &after, c.n_after = 1;
    MAY(wt_scheduler_evaluate(me->w->scheduler, &c, &admission), WT_ERR_BAD_ARG);
    if (!MAY(wt_scheduler_submit(me->w->scheduler, &c, &task, &admission), WT_ERR_REJECTED, WT_ERR_BAD_ARG))
        PUT(tasks, task);
}

static void submit_to_device(worker *me)
{
    if (me->task.serial)
        MAY(wt_scheduler_wait(me->w->scheduler, me->task, -1), WT_ERR_CANCELLED, WT_ERR_BAD_ARG, WT_ERR_TIMEOUT);
    me->work = (wt_device_work){.queue = queue, .user = me->w, .n_items = 20};
    MAY(wt_slicer_init(&me->work.slicer, &(wt_slicer_config){.bound_us = 100, .max_items = 4}), WT_OK);
    const wt_task_config c = {
        .partition = me->w->on_device, .work = {.device = &me->work}, .priority = (int)pick(me, 4)};
    if (!MAY(wt_scheduler_submit(me->w->scheduler, &c, &me->task, NULL), WT_ERR_REJECTED)) PUT(tasks, me->task);
}

static void ask_about_a_task(worker *me)
{
    wt_task task;
    wt_task_info info;
    int64_t start_ns;
    GET(tasks, &task);
    MAY(wt_scheduler_get_task(me->w->scheduler, task, &info), WT_ERR_BAD_ARG);
    MAY(wt_scheduler_predict(me->w->scheduler, task, &start_ns), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_NOT_FOUND);
    MAY(wt_telemetry_sample_task(me->w->row, me->w->scheduler, task), WT_ERR_BAD_ARG);
}

static void change_a_task(worker *me)
{
    wt_task task, after;
    GET(tasks, &task);
    GET(tasks, &after);
    MAY(wt_scheduler_depend(me->w->scheduler, task, after), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_FULL);
    MAY(wt_scheduler_release(me->w->scheduler, task), WT_ERR_BAD_ARG, WT_ERR_STATE);
    if (pick(me, 3) == 0) MAY(wt_scheduler_cancel(me->w->scheduler, task), WT_ERR_BAD_ARG, WT_ERR_STATE);
    MAY(wt_scheduler_wait(me->w->scheduler, task, 100000), WT_ERR_BAD_ARG, WT_ERR_TIMEOUT, WT_ERR_CANCELLED,
        WT_ERR_REJECTED);
}

static void ask_the_scheduler(worker *me)
{
    wt_scheduler_partition_stats stats;
    wt_kind_cost cost;
    wt_cpu_executor_info cpu;
    wt_device_executor_info device;
    MAY(wt_scheduler_poll(me->w->scheduler, NULL), WT_OK);
    MAY(wt_scheduler_get_partition(me->w->scheduler, me->w->on_device, &stats), WT_OK);
    MAY(wt_scheduler_get_cost(me->w->scheduler, me->w->on_cpu, 1, &cost), WT_OK);
    MAY(wt_telemetry_sample_scheduler(me->w->row, me->w->scheduler, me->w->on_cpu), WT_OK);
    wt_cpu_executor_get_info(me->w->workers, &cpu);
    wt_device_executor_get_info(me->w->executor, &device);
}

static void use_a_scheduler_partition(worker *me)
{
    int partition;
    const wt_scheduler_partition_config c = {.name = "own", .executor = wt_cpu_executor_callbacks(me->w->workers)};
    if (!MAY(wt_scheduler_add_partition(me->w->scheduler, &c, &partition), WT_ERR_FULL))
        MAY(wt_scheduler_remove_partition(me->w->scheduler, partition), WT_OK);
}

static void use_an_executor(worker *me)
{
    wt_cpu_executor *workers;
    wt_device_executor *executor;
    if (!MAY(wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = me->w->scheduler}, &workers), WT_OK))
        wt_cpu_executor_destroy(workers);
    const wt_device_executor_config c = {.scheduler = me->w->scheduler, .partition = me->w->borrower};
    if (!MAY(wt_device_executor_create(&c, &executor), WT_ERR_FULL)) wt_device_executor_destroy(executor);
}

// ---- telemetry, arming, small things

static void use_telemetry(worker *me)
{
    wt_telemetry_row *row;
    char text[256];
    wt_telemetry_view *view = malloc(sizeof *view);
    int64_t pids[4];
    if (!MAY(wt_telemetry_open_row(me->w->telemetry, &(wt_telemetry_row_config){.name = "own"}, &row), WT_ERR_FULL)) {
        wt_telemetry_add(row, WT_FIGURE_RUNS, 1);
        wt_telemetry_sample_partition(row, me->w->borrower);
        wt_telemetry_sample_pool(row, me->w->pool);
        wt_telemetry_close_row(row);
    }
    wt_telemetry_add(me->w->row, WT_FIGURE_LAUNCHES, 1);
    wt_telemetry_set(me->w->row, WT_FIGURE_SMS, 1);
    wt_telemetry_snapshot(me->w->telemetry, view);
    wt_telemetry_prometheus(view, text, sizeof text);
    wt_telemetry_list(pids, 4);
    if (me->index == 0) MAY(wt_telemetry_publish(me->w->telemetry), WT_ERR_FILE, WT_ERR_STATE); // one thread's call
    free(view);
}

static wt_status nothing(void *user) { return (void)user, WT_OK; }

static void arm(worker *me)
{
    wt_arm_counts counts;
    if (!MAY(wt_device_arm(me->w->device), WT_ERR_STATE)) {
        wt_device_is_armed(me->w->device);
        MAY(wt_quiesce(me->w->device, nothing, NULL, 10000), WT_ERR_TIMEOUT);
        MAY(wt_device_disarm(me->w->device), WT_OK);
    }
    MAY(wt_device_set_safe_point(me->w->device, NULL), WT_ERR_STATE);
    wt_arm_stats(me->w->device, &counts);
}

static void use_small_things(worker *me)
{
    wt_arena *arena;
    wt_histogram *histogram;
    void *memory;
    wt_clock_now_ns(NULL);
    if (!MAY(wt_arena_create(1000, &arena), WT_OK)) {
        MAY(wt_arena_alloc(arena, 100, 16, &memory), WT_OK);
        wt_arena_destroy(arena);
    }
    if (MAY(wt_histogram_create(&histogram), WT_OK)) return;
    wt_histogram_record(histogram, 5);
    wt_histogram_destroy(histogram);
}

static void (*const calls[])(worker *) = {
    open_a_device,
    synchronize,
    use_a_buffer,
    copy,
    use_a_stream,
    run,
    use_events,
    ask_the_compiler,
    ask_the_layout,
    use_a_partition_stream,
    lend,
    step,
    use_a_layout,
    take_a_block,
    use_a_block,
    free_a_block,
    ask_the_pool,
    use_a_pool_arena,
    use_a_pool,
    transfer,
    launch,
    ask_the_dispatch,
    drain_the_dispatch,
    use_a_graph,
    use_the_graph,
    submit,
    submit_to_device,
    ask_about_a_task,
    change_a_task,
    ask_the_scheduler,
    use_a_scheduler_partition,
    use_an_executor,
    use_telemetry,
    arm,
    use_small_things,
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static void *work(void *user)
{
    worker *me = user;
    for (int k = 0; k < me->w->n_calls && !me->failure[0]; k++) calls[pick(me, N_CALLS)](me);
    return NULL;
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

static void eight_threads_make_every_call(void **state)
{
    static world w;
    static worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    const char *seed = getenv("WARPTONE_ALL_CALLS_SEED");
    make_world(&w, wide_device_of(state));
    for (int k = 0; k < N_THREADS; k++) {
        workers[k] = (worker){.w = &w, .index = k, .seed = (seed ? strtoull(seed, NULL, 10) : 1) * 1000 + (uint64_t)k};
        assert_ok(wt_stream_create(w.device, NULL, &workers[k].stream));
        assert_ok(wt_buffer_create(w.device, WT_MEMORY_DEVICE, BYTES, &workers[k].buffer));
        workers[k].host = calloc(BYTES, 1);
        assert_non_null(workers[k].host);
    }
    for (int k = 0; k < N_THREADS; k++) assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    for (int k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
    end_tasks(&w);
    for (int k = 0; k < N_THREADS; k++) assert_ok(wt_pool_detach_stream(w.pool, workers[k].stream));
    end_world(&w);
    for (int k = 0; k < N_THREADS; k++) {
        wt_buffer_destroy(workers[k].buffer);
        wt_stream_destroy(workers[k].stream);
        free(workers[k].host);
    }
    for (int k = 0; k < N_THREADS; k++)
        if (workers[k].failure[0]) fail_msg("thread %d: %s", k, workers[k].failure);
    assert_true(atomic_load(&w.n_work) > 0);
}

int main(void)
{
    const struct CMUnitTest cpu[] = {cmocka_unit_test(eight_threads_make_every_call)};
    return cmocka_run_group_tests_name("all calls: CPU", cpu, open_cpu, close_device);
}
