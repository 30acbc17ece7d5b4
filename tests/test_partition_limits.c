// What a partition limits, by its effect on pools, dispatches and transfers, on both backends.
#include "support/device_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <warptone/clock.h>
#include <warptone/dispatch.h>
#include <warptone/pool.h>
#include <warptone/telemetry.h>
#include <warptone/transfer.h>

enum { MB = 1 << 20, N_NOTES = 12 };

static const wt_partition_config limited[] = {
    {.name = "tight",
     .sm_share = 0.5,
     .memory_quota_bytes = 8 * MB,
     .bandwidth_share = 0.1,
     .max_pending_kernels = 3,
     .max_pending_transfers = 2},
    {.name = "loose"},
};
static const wt_layout_config limited_config = {.partitions = limited, .n_partitions = 2};

// ---- work that ends when the host says so

// gate: waits until the host opens a word, at most 5 s. nothing: ends.
static const char gate_text[] = "extern \"C\" __global__ void gate(volatile int *word)\n"
                                "{\n"
                                "    long long begin = clock64();\n"
                                "    while (!*word && clock64() - begin < 10000000000ll) ;\n"
                                "}\n"
                                "extern \"C\" __global__ void nothing(int *word) {}\n";

static void gate_item(const void *args, int item)
{
    (void)item;
    const atomic_int *word = *(atomic_int *const *)args;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    while (!atomic_load(word) && wt_clock_now_ns(NULL) - begin_ns < 5000000000)
        nanosleep(&(struct timespec){0, 50000}, NULL);
}

static void nothing_item(const void *args, int item)
{
    (void)args;
    (void)item;
}

typedef struct work {
    wt_device *device;
    wt_module *module; ///< NULL on the CPU
    wt_kernel *gate, *nothing;
    wt_buffer *word;
} work;

static work work_on(wt_device *device)
{
    work w = {.device = device};
    assert_ok(wt_buffer_create(device, WT_MEMORY_MAPPED, 64, &w.word));
    if (wt_device_get_info(device)->backend == WT_BACKEND_CPU) return w;
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "gate.cu", .source = gate_text}, &w.module));
    assert_ok(wt_module_get_kernel(w.module, "gate", &w.gate));
    assert_ok(wt_module_get_kernel(w.module, "nothing", &w.nothing));
    return w;
}

static void work_free(work *w)
{
    wt_buffer_destroy(w->word);
    wt_module_destroy(w->module);
}

static void open_gate(const work *w) { atomic_store((atomic_int *)wt_buffer_host(w->word), 1); }

static wt_status submit(const work *w, wt_dispatch *dispatch, int lane, bool gate, wt_dispatch_ticket *ticket)
{
    uintptr_t address = wt_buffer_address(w->word);
    wt_dispatch_request r = {.lane = lane, .args = &WT_ARG(address), .n_args = 1};
    if (w->module)
        r.kernel = gate ? w->gate : w->nothing;
    else
        r.function = gate ? gate_item : nothing_item, r.n_items = 1;
    return wt_dispatch_submit(dispatch, &r, ticket);
}

static wt_status queue_gate(const work *w, wt_stream *stream)
{
    uintptr_t address = wt_buffer_address(w->word);
    if (!w->module) return wt_stream_run(stream, gate_item, &address, sizeof address, 1);
    return wt_kernel_launch(w->gate, stream, &(wt_launch){0}, &WT_ARG(address), 1);
}

// ---- memory

static wt_status create_pool(wt_partition *partition, size_t quota_bytes, bool soft, wt_pool **pool)
{
    return wt_pool_create(wt_partition_device(partition),
                          &(wt_pool_config){.quota_bytes = quota_bytes, .soft = soft, .partition = partition}, pool);
}

static size_t quota_of(wt_pool *pool)
{
    wt_pool_stats stats;
    wt_pool_query(pool, &stats);
    return stats.quota_bytes;
}

static void hard_pools_share_the_quota(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight"), *loose = wt_layout_find(layout, "loose");
    wt_pool *first = NULL, *second = NULL, *rest = NULL;
    assert_fails(create_pool(tight, 8 * MB + 1, false, &first), WT_ERR_QUOTA,
                 "pool memory: quota of 8388609 bytes, partition tight has 8388608 of 8388608 left");
    assert_int_equal(create_pool(tight, 8 * MB + 1, true, &first), WT_ERR_QUOTA);
    assert_ok(create_pool(tight, 5 * MB, false, &first));
    assert_int_equal(info_of(tight).memory_used_bytes, 5 * MB);
    assert_fails(create_pool(tight, 4 * MB, false, &second), WT_ERR_QUOTA,
                 "pool memory: quota of 4194304 bytes, partition tight has 3145728 of 8388608 left");
    assert_null(second);
    assert_ok(create_pool(tight, 0, false, &rest)); // what is left
    assert_int_equal(quota_of(rest), 3 * MB);
    assert_int_equal(create_pool(tight, 1, false, &second), WT_ERR_QUOTA);
    assert_int_equal(create_pool(tight, 0, false, &second), WT_ERR_BAD_ARG); // nothing is left
    assert_int_equal(create_pool(loose, 0, false, &second), WT_ERR_BAD_ARG); // it has no quota to take from
    assert_ok(create_pool(loose, 16 * MB, false, &second));
    assert_int_equal(wt_layout_destroy(layout), WT_ERR_STATE);
    assert_non_null(strstr(wt_last_error(), "2 pools and dispatches and 0 transfers of partition tight exist"));
    wt_partition_config smaller[] = {limited[0], limited[1]};
    smaller[0].memory_quota_bytes = 4 * MB;
    assert_int_equal(wt_layout_resize(layout, &(wt_layout_config){.partitions = smaller, .n_partitions = 2}),
                     WT_ERR_QUOTA);
    wt_pool_destroy(first);
    assert_ok(wt_layout_resize(layout, &(wt_layout_config){.partitions = smaller, .n_partitions = 2}));
    assert_int_equal(create_pool(tight, 5 * MB, false, &first), WT_ERR_QUOTA); // 1 of 4 MB is left
    wt_pool_destroy(rest);
    wt_pool_destroy(second);
    assert_int_equal(info_of(tight).memory_used_bytes, 0);
    assert_ok(wt_layout_destroy(layout));
}

static void soft_pools_share_it_as_they_use_it(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    wt_stream *stream = stream_of(tight);
    wt_pool *a = NULL, *b = NULL;
    wt_pool_block blocks[3], other, small;
    const wt_pool_request two = {.size_bytes = 2 * MB}, kept = {.size_bytes = 2 * MB, .no_evict = true};
    assert_ok(create_pool(tight, 0, true, &a)); // each may use all of it
    assert_ok(create_pool(tight, 0, true, &b));
    assert_int_equal(info_of(tight).memory_used_bytes, 0);
    for (int k = 0; k < 3; k++) assert_ok(wt_pool_allocate(a, &two, stream, &blocks[k]));
    assert_ok(wt_pool_allocate(b, &kept, stream, &other));
    assert_int_equal(info_of(tight).memory_used_bytes, 8 * MB);
    assert_fails(wt_pool_allocate(b, &kept, stream, &small), WT_ERR_QUOTA,
                 "pool memory: 2097152 bytes do not fit: 0 of the quota of partition tight are left");
    wt_pool_block more;
    assert_ok(wt_pool_allocate(a, &two, stream, &more)); // a moves a block of its own out
    wt_pool_block_info info;
    assert_ok(wt_pool_query_block(a, blocks[0], &info));
    assert_false(info.resident);
    assert_int_equal(info_of(tight).memory_used_bytes, 8 * MB);
    assert_ok(wt_pool_free(a, more, stream)); // cached by a, and given up when b asks
    assert_ok(wt_pool_allocate(b, &kept, stream, &small));
    assert_int_equal(info_of(tight).memory_used_bytes, 8 * MB);
    wt_pool_destroy(a);
    assert_int_equal(info_of(tight).memory_used_bytes, 4 * MB);
    wt_pool_destroy(b);
    assert_int_equal(info_of(tight).memory_used_bytes, 0);
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

// ---- pending kernels

typedef struct pair {
    wt_stream *streams[2];
    wt_dispatch *dispatches[2];
    int lanes[2];
} pair;

static pair pair_of(wt_partition *partition, bool no_thread)
{
    pair p;
    for (int k = 0; k < 2; k++) {
        wt_dispatch_config config = {.partition = partition, .no_thread = no_thread, .max_queued = N_NOTES};
        p.streams[k] = stream_of(partition);
        assert_ok(wt_dispatch_create(wt_partition_device(partition), &config, &p.dispatches[k]));
        assert_ok(wt_dispatch_add_stream(p.dispatches[k], p.streams[k], NULL, &p.lanes[k]));
    }
    return p;
}

static void pair_free(pair *p)
{
    for (int k = 0; k < 2; k++) {
        wt_dispatch_destroy(p->dispatches[k]);
        wt_stream_destroy(p->streams[k]);
    }
}

static int in_flight_of(wt_dispatch *dispatch)
{
    wt_dispatch_stats stats;
    wt_dispatch_get_stats(dispatch, &stats);
    return stats.n_in_flight;
}

static void dispatches_share_the_pending_kernels(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    work w = work_on(wt_partition_device(tight));
    pair p = pair_of(tight, false);
    wt_dispatch_ticket last[2] = {{0}};
    for (int k = 0; k < 2; k++) assert_ok(submit(&w, p.dispatches[k], p.lanes[k], true, NULL));
    for (int n = 0; n < N_NOTES; n++) assert_ok(submit(&w, p.dispatches[n % 2], p.lanes[n % 2], false, &last[n % 2]));
    assert_int_equal(info_of(tight).n_pending_kernels, 3);
    assert_int_equal(in_flight_of(p.dispatches[0]) + in_flight_of(p.dispatches[1]), 3);
    assert_int_equal(wt_layout_destroy(layout), WT_ERR_STATE);
    open_gate(&w);
    for (int k = 0; k < 2; k++) {
        assert_ok(wt_dispatch_wait(p.dispatches[k], last[k], -1));
        assert_ok(wt_dispatch_drain(p.dispatches[k]));
    }
    assert_int_equal(info_of(tight).n_pending_kernels, 0);
    pair_free(&p);
    work_free(&w);
    assert_ok(wt_layout_destroy(layout));
}

static void a_resize_gives_a_dispatch_more_pending_kernels(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    work w = work_on(wt_partition_device(tight));
    pair p = pair_of(tight, false);
    wt_partition_config wide[] = {limited[0], limited[1]};
    wide[0].max_pending_kernels = 8;
    assert_ok(wt_layout_resize(layout, &(wt_layout_config){.partitions = wide, .n_partitions = 2}));
    assert_ok(submit(&w, p.dispatches[0], p.lanes[0], true, NULL));
    for (int n = 0; n < N_NOTES; n++) assert_ok(submit(&w, p.dispatches[0], p.lanes[0], false, NULL));
    assert_int_equal(in_flight_of(p.dispatches[0]), 8);
    open_gate(&w);
    assert_ok(wt_dispatch_drain(p.dispatches[0]));
    pair_free(&p);
    work_free(&w);
    assert_ok(wt_layout_destroy(layout));
}

static void ends_that_nobody_asked_for_hold_up_no_other_dispatch(void **state)
{
    wt_layout *layout = layout_of(wide_device_of(state), &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    work w = work_on(wt_partition_device(tight));
    pair p = pair_of(tight, true);
    wt_dispatch_ticket ticket;
    for (int n = 0; n < 3; n++) assert_ok(submit(&w, p.dispatches[0], p.lanes[0], false, NULL));
    assert_int_equal(info_of(tight).n_pending_kernels, 3);
    assert_ok(wt_stream_synchronize(p.streams[0])); // they have run, and the first dispatch does not know
    assert_ok(submit(&w, p.dispatches[1], p.lanes[1], false, &ticket));
    assert_ok(wt_dispatch_wait(p.dispatches[1], ticket, 5000000));
    assert_ok(submit(&w, p.dispatches[0], p.lanes[0], false, NULL));
    pair_free(&p); // with an end unnoticed
    assert_int_equal(info_of(tight).n_pending_kernels, 0);
    work_free(&w);
    assert_ok(wt_layout_destroy(layout));
}

// ---- transfers

typedef struct copies {
    wt_transfer *engine;
    wt_buffer *there, *here;
} copies;

static copies copies_of(wt_device *device, wt_transfer_config config, size_t size_bytes)
{
    copies c;
    assert_ok(wt_transfer_create(device, &config, &c.engine));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, size_bytes, &c.there));
    assert_ok(wt_buffer_create(device, WT_MEMORY_PINNED, size_bytes, &c.here));
    return c;
}

static void copies_free(copies *c)
{
    wt_transfer_destroy(c->engine);
    wt_buffer_destroy(c->there);
    wt_buffer_destroy(c->here);
}

static wt_status copy(const copies *c, wt_partition *partition, size_t size_bytes, wt_event *after,
                      wt_transfer_ticket *ticket)
{
    const wt_transfer_request r = {.device_address = wt_buffer_address(c->there),
                                   .host = wt_buffer_host(c->here),
                                   .size_bytes = size_bytes,
                                   .after = after,
                                   .partition = partition};
    return wt_transfer_submit(c->engine, &r, ticket);
}

static void pending_transfers_are_counted_until_they_are_final(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight"), *loose = wt_layout_find(layout, "loose");
    work w = work_on(device);
    copies c = copies_of(device, (wt_transfer_config){0}, 64), other = copies_of(device, (wt_transfer_config){0}, 64);
    wt_stream *stream = stream_of(loose);
    wt_event *event = NULL;
    wt_transfer_ticket tickets[3];
    assert_ok(wt_event_create(device, &event));
    assert_ok(queue_gate(&w, stream));
    assert_ok(wt_event_record(event, stream));
    assert_ok(copy(&c, tight, 64, event, &tickets[0]));
    assert_ok(copy(&other, tight, 64, event, &tickets[1])); // of another engine
    assert_fails(copy(&c, tight, 64, event, NULL), WT_ERR_FULL,
                 "transfer: partition tight has 2 requests on their way, its most");
    assert_int_equal(info_of(tight).n_pending_transfers, 2);
    assert_ok(copy(&c, loose, 64, event, NULL));
    assert_ok(copy(&c, NULL, 64, event, NULL));
    assert_ok(wt_transfer_cancel(c.engine, tickets[0]));
    assert_int_equal(info_of(tight).n_pending_transfers, 1);
    assert_ok(copy(&c, tight, 64, event, &tickets[2]));
    open_gate(&w);
    assert_ok(wt_transfer_wait(other.engine, tickets[1]));
    assert_ok(wt_transfer_wait(c.engine, tickets[2]));
    assert_int_equal(info_of(tight).n_pending_transfers, 0);
    copies_free(&c);
    copies_free(&other);
    wt_event_destroy(event);
    wt_stream_destroy(stream);
    work_free(&w);
    assert_int_equal(info_of(loose).n_pending_transfers, 0);
    assert_ok(wt_layout_destroy(layout));
}

/// Whatever else the machine does, the bucket gives no more link time than share * time + burst; it is looked at when a
/// later copy has started, since the debt of the last chunks is paid back before that.
static void copies_keep_to_the_bandwidth_share(void **state)
{
    enum { BURST_US = 1000 };
    wt_device *device = wide_device_of(state);
    const size_t bytes = wt_device_get_info(device)->backend == WT_BACKEND_CPU ? 8 * MB : 128 * MB; // some ms of link
    wt_layout *layout = layout_of(device, &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight"), *loose = wt_layout_find(layout, "loose");
    copies c = copies_of(device, (wt_transfer_config){.chunk_bytes = 1 << 18, .max_in_flight = 2}, bytes);
    wt_transfer_ticket ticket;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    for (int k = 0; k < 4; k++) {
        assert_ok(copy(&c, tight, bytes, NULL, &ticket));
        assert_ok(wt_transfer_wait(c.engine, ticket));
    }
    double used_us = info_of(tight).copied_us;
    assert_int_equal(info_of(tight).copied_bytes, 4 * bytes);
    assert_ok(copy(&c, tight, 1, NULL, &ticket));
    assert_ok(wt_transfer_wait(c.engine, ticket));
    double wall_us = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3;
    print_message("link time %.0f us in %.0f us, share 0.1: %.3f\n", used_us, wall_us, used_us / wall_us);
    assert_true(used_us > 0);
    assert_true(used_us <= 0.1 * wall_us + BURST_US + 1);
    if (used_us > 2 * BURST_US) assert_true(info_of(tight).n_throttled > 0);
    assert_ok(copy(&c, loose, bytes, NULL, &ticket));
    assert_ok(wt_transfer_wait(c.engine, ticket));
    assert_int_equal(info_of(loose).n_throttled, 0);
    assert_int_equal(info_of(loose).copied_bytes, bytes);
    copies_free(&c);
    assert_ok(wt_layout_destroy(layout));
}

static void a_resize_lifts_the_bandwidth_share(void **state)
{
    wt_device *device = wide_device_of(state);
    const size_t bytes = wt_device_get_info(device)->backend == WT_BACKEND_CPU ? 8 * MB : 128 * MB; // some ms of link
    wt_layout *layout = layout_of(device, &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    copies c = copies_of(device, (wt_transfer_config){.chunk_bytes = 1 << 18, .max_in_flight = 2}, bytes);
    wt_partition_config wide[] = {limited[0], limited[1]};
    wide[0].bandwidth_share = 0;
    assert_ok(wt_layout_resize(layout, &(wt_layout_config){.partitions = wide, .n_partitions = 2}));
    wt_transfer_ticket ticket;
    for (int k = 0; k < 8; k++) { // more than the burst of 1 ms
        assert_ok(copy(&c, tight, bytes, NULL, &ticket));
        assert_ok(wt_transfer_wait(c.engine, ticket));
    }
    assert_true(info_of(tight).copied_us > 1000);
    assert_int_equal(info_of(tight).n_throttled, 0);
    copies_free(&c);
    assert_ok(wt_layout_destroy(layout));
}

// ---- levels of isolation

static void each_level_has_its_priorities_and_all_keep_the_other_limits(void **state)
{
    wt_device *device = wide_device_of(state);
    static const int priorities[][2] = {{1, -1}, {1, -1}, {0, 0}}; // of SMS, PRIORITY, NONE
    for (int level = WT_ISOLATION_SMS; level <= WT_ISOLATION_NONE; level++) {
        if (level == WT_ISOLATION_SMS && wt_device_get_info(device)->backend == WT_BACKEND_CUDA &&
            !wt_device_get_info(device)->partition_sms)
            continue;
        wt_partition_config two[] = {limited[0], limited[1]};
        two[0].tier = WT_TIER_GUARANTEED;
        wt_layout_config config = {.partitions = two, .n_partitions = 2, .isolation = (wt_isolation)level};
        wt_layout *layout = layout_of(device, &config);
        wt_partition *tight = wt_layout_at(layout, 0), *loose = wt_layout_at(layout, 1);
        int all = wt_device_get_info(device)->n_sms;
        assert_int_equal(facts_of(layout).isolation, level);
        assert_int_equal(info_of(tight).priority, priorities[level - WT_ISOLATION_SMS][0]);
        assert_int_equal(info_of(loose).priority, priorities[level - WT_ISOLATION_SMS][1]);
        if (level == WT_ISOLATION_SMS)
            assert_true(info_of(tight).n_sms + info_of(loose).n_sms <= all);
        else
            assert_true(info_of(tight).n_sms == all && info_of(loose).n_sms == all);
        wt_pool *pool = NULL;
        assert_int_equal(create_pool(tight, 9 * MB, false, &pool), WT_ERR_QUOTA);
        assert_ok(wt_layout_destroy(layout));
    }
}

static void *open_on_one_processor(void *user)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, user));
    return NULL;
}

// Where each has all processors, one is enough for two; shares that add up to more than it are still refused.
static void one_processor_is_shared_by_priority_and_not_dealt_out(void **state)
{
    (void)state;
    wt_device *device = NULL;
    wt_layout *layout = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_on_one_processor, &device), 0);
    pthread_join(thread, NULL);
    wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .sm_share = 0.5}, {.name = "llm"}};
    wt_layout_config config = {.partitions = two, .n_partitions = 2};
    assert_int_equal(wt_layout_create(device, &config, &layout), WT_ERR_QUOTA); // no SMs of his own for each
    for (int level = WT_ISOLATION_PRIORITY; level <= WT_ISOLATION_NONE; level++) {
        config.isolation = (wt_isolation)level;
        two[1].sm_share = 0;
        layout = layout_of(device, &config);
        for (int k = 0; k < 2; k++) assert_int_equal(info_of(wt_layout_at(layout, k)).n_sms, 1);
        assert_ok(wt_layout_destroy(layout));
        two[1].sm_share = 0.7;
        assert_fails(wt_layout_create(device, &config, &layout), WT_ERR_QUOTA,
                     "layout: with partition llm the shares of 1 SMs add up to 1.2, want at most 1");
        config.overcommit = true;
        layout = layout_of(device, &config);
        assert_ok(wt_layout_destroy(layout));
        config.overcommit = false;
    }
    wt_device_close(device);
}

typedef struct seen {
    atomic_int n_allowed, nice;
} seen;

static void look_item(const void *args, int item)
{
    (void)item;
    seen *s = *(seen *const *)args;
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed)) atomic_store(&s->n_allowed, CPU_COUNT(&allowed));
    atomic_store(&s->nice, getpriority(PRIO_PROCESS, 0));
}

static void threads_are_pinned_and_nice_as_the_level_says(void **state)
{
    wt_device *device = wide_device_of(state);
    int own = getpriority(PRIO_PROCESS, 0), all = wt_device_get_info(device)->n_sms;
    for (int level = WT_ISOLATION_SMS; level <= WT_ISOLATION_NONE; level++) {
        wt_layout_config config = two_config;
        config.isolation = (wt_isolation)level;
        wt_layout *layout = layout_of(device, &config);
        wt_partition *llm = wt_layout_find(layout, "llm"); // best effort
        wt_stream *stream = stream_of(llm);
        seen s = {0}, *at = &s;
        assert_ok(wt_stream_run(stream, look_item, &at, sizeof at, 1));
        assert_ok(wt_stream_synchronize(stream));
        assert_int_equal(atomic_load(&s.n_allowed), level == WT_ISOLATION_SMS ? info_of(llm).n_sms : all);
        assert_int_equal(atomic_load(&s.nice), level == WT_ISOLATION_NONE || own > 10 ? own : 10);
        wt_stream_destroy(stream);
        assert_ok(wt_layout_destroy(layout));
    }
}

// ---- telemetry

static void a_row_shows_the_present_use(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_layout *layout = layout_of(device, &limited_config);
    wt_partition *tight = wt_layout_find(layout, "tight");
    wt_stream *stream = stream_of(tight);
    copies c = copies_of(device, (wt_transfer_config){0}, 4096);
    wt_pool *pool = NULL;
    wt_transfer_ticket ticket;
    wt_telemetry *telemetry = NULL;
    wt_telemetry_row *row = NULL;
    static wt_telemetry_view view;
    assert_ok(create_pool(tight, 5 * MB, false, &pool));
    assert_ok(copy(&c, tight, 4096, NULL, &ticket));
    assert_ok(wt_transfer_wait(c.engine, ticket));
    assert_ok(wt_telemetry_create(&telemetry));
    assert_ok(wt_telemetry_open_row(telemetry, &(wt_telemetry_row_config){.name = "tight"}, &row));
    wt_telemetry_sample_partition(row, tight);
    wt_telemetry_snapshot(telemetry, &view);
    const int64_t *f = view.rows[0].figures;
    assert_int_equal(f[WT_FIGURE_MEMORY_QUOTA], 8 * MB);
    assert_int_equal(f[WT_FIGURE_MEMORY_HELD], 5 * MB);
    assert_int_equal(f[WT_FIGURE_STREAMS], 1);
    assert_int_equal(f[WT_FIGURE_PENDING_KERNELS], 0);
    assert_int_equal(f[WT_FIGURE_PENDING_COPIES], 0);
    assert_int_equal(f[WT_FIGURE_COPIED_BYTES], 4096);
    assert_true(f[WT_FIGURE_COPIED_NS] > 0);
    assert_int_equal(f[WT_FIGURE_COPY_THROTTLES], 0); // the bucket was full
    wt_telemetry_destroy(telemetry);
    wt_pool_destroy(pool);
    copies_free(&c);
    wt_stream_destroy(stream);
    assert_ok(wt_layout_destroy(layout));
}

static void its_kernels_compile_for_every_architecture(void **state)
{
    (void)state;
    assert_compiles_everywhere("gate.cu", gate_text);
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(hard_pools_share_the_quota), cmocka_unit_test(soft_pools_share_it_as_they_use_it),                \
        cmocka_unit_test(dispatches_share_the_pending_kernels),                                                        \
        cmocka_unit_test(a_resize_gives_a_dispatch_more_pending_kernels),                                              \
        cmocka_unit_test(ends_that_nobody_asked_for_hold_up_no_other_dispatch),                                        \
        cmocka_unit_test(pending_transfers_are_counted_until_they_are_final),                                          \
        cmocka_unit_test(copies_keep_to_the_bandwidth_share), cmocka_unit_test(a_resize_lifts_the_bandwidth_share),    \
        cmocka_unit_test(each_level_has_its_priorities_and_all_keep_the_other_limits),                                 \
        cmocka_unit_test(a_row_shows_the_present_use)

int main(void)
{
    const struct CMUnitTest text[] = {cmocka_unit_test(its_kernels_compile_for_every_architecture)};
    const struct CMUnitTest cpu[] = {BOTH_BACKENDS,
                                     cmocka_unit_test(one_processor_is_shared_by_priority_and_not_dealt_out),
                                     cmocka_unit_test(threads_are_pinned_and_nice_as_the_level_says)};
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS};
    return cmocka_run_group_tests_name("limits: kernels", text, NULL, NULL) +
           cmocka_run_group_tests_name("limits: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("limits: CUDA", cuda, open_cuda, close_device);
}
