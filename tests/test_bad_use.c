// Misuse of the runtime's objects, as tables: what is asked, and the status and words it gives; and loops of create and
// destroy that must leave nothing. On both backends.
#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/dispatch.h>
#include <warptone/pool.h>
#include <warptone/transfer.h>

enum { MB = 1 << 20 };

typedef struct rig {
    wt_device *device;
    wt_layout *layout;
    wt_stream *stream;
    wt_buffer *buffer; ///< 4096 bytes
    wt_pool *pool;     ///< of 1 MB
    wt_transfer *transfer;
    wt_dispatch *dispatch;
    wt_graph *graph; ///< a fill
} rig;

static rig rig_on(wt_device *device)
{
    rig r = {.device = device};
    r.layout = layout_of(device, &two_config);
    assert_ok(wt_stream_create(device, NULL, &r.stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_DEVICE, 4096, &r.buffer));
    assert_ok(wt_pool_create(device, &(wt_pool_config){.quota_bytes = MB}, &r.pool));
    assert_ok(wt_transfer_create(device, NULL, &r.transfer));
    assert_ok(wt_dispatch_create(device, NULL, &r.dispatch));
    assert_ok(wt_graph_begin(r.stream, &r.graph));
    assert_ok(wt_stream_fill(r.stream, r.buffer, 0, 1, 4096));
    assert_ok(wt_graph_end(r.graph));
    return r;
}

static void rig_free(rig *r)
{
    wt_graph_destroy(r->graph);
    wt_dispatch_destroy(r->dispatch);
    wt_transfer_destroy(r->transfer);
    wt_pool_destroy(r->pool);
    wt_buffer_destroy(r->buffer);
    wt_stream_destroy(r->stream);
    assert_ok(wt_layout_destroy(r->layout));
}

// ---- sizes and shares out of range

static wt_status buffer_bytes(rig *r, size_t size_bytes)
{
    wt_buffer *b = NULL;
    wt_status status = wt_buffer_create(r->device, WT_MEMORY_DEVICE, size_bytes, &b);
    assert_null(b);
    return status;
}
static wt_status pool_config(rig *r, wt_pool_config config)
{
    wt_pool *p = NULL;
    wt_status status = wt_pool_create(r->device, &config, &p);
    assert_null(p);
    return status;
}
static wt_status block_bytes(rig *r, size_t size_bytes)
{
    wt_pool_block block;
    return wt_pool_allocate(r->pool, &(wt_pool_request){.size_bytes = size_bytes}, r->stream, &block);
}
static wt_status arena_bytes(rig *r, size_t size_bytes)
{
    wt_pool_arena *a = NULL;
    return wt_pool_arena_create(r->pool, size_bytes, &a);
}
static wt_status layout_config(rig *r, wt_partition_config first, wt_partition_config second)
{
    wt_layout *l = NULL;
    first.name = "first", second.name = "second";
    const wt_partition_config two[] = {first, second};
    wt_status status = wt_layout_create(r->device, &(wt_layout_config){.partitions = two, .n_partitions = 2}, &l);
    assert_null(l);
    return status;
}
static wt_status one_partition(rig *r, wt_partition_config first)
{
    return layout_config(r, first, (wt_partition_config){.name = "second"});
}
static wt_status transfer_config(rig *r, wt_transfer_config config)
{
    wt_transfer *t = NULL;
    return wt_transfer_create(r->device, &config, &t);
}
static wt_status transfer_bytes(rig *r, size_t size_bytes)
{
    char host[16];
    return wt_transfer_submit(
        r->transfer,
        &(wt_transfer_request){.device_address = wt_buffer_address(r->buffer), .host = host, .size_bytes = size_bytes},
        NULL);
}
static wt_status dispatch_config(rig *r, wt_dispatch_config config)
{
    wt_dispatch *d = NULL;
    return wt_dispatch_create(r->device, &config, &d);
}
static wt_status stream_priority(rig *r, int priority)
{
    wt_stream *s = NULL;
    return wt_stream_create(r->device, &(wt_stream_config){priority}, &s);
}
static size_t memory_of(const rig *r) { return wt_device_get_info(r->device)->memory_bytes; }

#define CASES(X)                                                                                                       \
    X(BAD_ARG, buffer_bytes(r, 0), "0 bytes, want 1 or more")                                                          \
    X(BAD_ARG, buffer_bytes(r, SIZE_MAX), "want 1..")                                                                  \
    X(BAD_ARG, buffer_bytes(r, memory_of(r) + 1), "the memory of")                                                     \
    X(BAD_ARG, wt_stream_fill(r->stream, r->buffer, SIZE_MAX, 0, 2), "do not fit a buffer of 4096 bytes")              \
    X(BAD_ARG, wt_stream_fill(r->stream, r->buffer, 1, 0, SIZE_MAX), "do not fit a buffer of 4096 bytes")              \
    X(BAD_ARG, wt_stream_upload(r->stream, r->buffer, 4096, "", 1), "at offset 4096 do not fit")                       \
    X(BAD_ARG, wt_stream_copy(r->stream, r->buffer, 0, r->buffer, 100, 200), "overlap")                                \
    X(BAD_ARG, stream_priority(r, 2), "priority 2, want -1, 0 or 1")                                                   \
    X(BAD_ARG, stream_priority(r, INT_MIN), "want -1, 0 or 1")                                                         \
    X(BAD_ARG, pool_config(r, (wt_pool_config){0}), "quota of 0 bytes")                                                \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = SIZE_MAX}), "the memory of")                             \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = memory_of(r) + 1}), "the memory of")                     \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = 1, .pinned_bytes = SIZE_MAX}), "of pinned memory")       \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = 1, .max_blocks = INT_MIN}), "blocks")                    \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = 1, .max_blocks = INT_MAX}), "blocks")                    \
    X(BAD_ARG, pool_config(r, (wt_pool_config){.quota_bytes = 1, .max_streams = -1}), "streams")                       \
    X(BAD_ARG, block_bytes(r, 0), "want 1..1048576, its quota")                                                        \
    X(BAD_ARG, block_bytes(r, MB + 1), "want 1..1048576, its quota")                                                   \
    X(BAD_ARG, block_bytes(r, SIZE_MAX), "want 1..1048576, its quota")                                                 \
    X(BAD_ARG, arena_bytes(r, 0), "an arena of 0 bytes")                                                               \
    X(BAD_ARG, arena_bytes(r, SIZE_MAX), "want 1..1048576, its quota")                                                 \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.n_sms = INT_MIN}), "want 0 or more")                            \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.sm_share = -0.5}), "share 0..1")                                \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.sm_share = 1.01}), "share 0..1")                                \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.sm_share = NAN}), "share 0..1")                                 \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.bandwidth_share = NAN}), "want 0..1")                           \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.max_pending_kernels = -1}), "want 0 or more")                   \
    X(BAD_ARG, one_partition(r, (wt_partition_config){.max_pending_transfers = INT_MIN}), "want 0 or more")            \
    X(QUOTA, one_partition(r, (wt_partition_config){.n_sms = INT_MAX}), "are left")                                    \
    X(QUOTA, one_partition(r, (wt_partition_config){.memory_quota_bytes = SIZE_MAX}), "bytes of memory")               \
    X(QUOTA, one_partition(r, (wt_partition_config){.sm_share = 1}), "nothing is left for partition second")           \
    X(QUOTA, layout_config(r, (wt_partition_config){.sm_share = 0.7}, (wt_partition_config){.sm_share = 0.7}),         \
      "are left")                                                                                                      \
    X(QUOTA,                                                                                                           \
      layout_config(r, (wt_partition_config){.bandwidth_share = 0.7}, (wt_partition_config){.bandwidth_share = 0.7}),  \
      "add up to 1.4, want at most 1")                                                                                 \
    X(BAD_ARG, transfer_config(r, (wt_transfer_config){.chunk_bytes = 1}), "want 4096 or more")                        \
    X(BAD_ARG, transfer_config(r, (wt_transfer_config){.max_requests = INT_MAX}), "want at most")                      \
    X(BAD_ARG, transfer_config(r, (wt_transfer_config){.max_in_flight = -1}), "want at most")                          \
    X(BAD_ARG, transfer_bytes(r, 0), "0 bytes, want 1..")                                                              \
    X(BAD_ARG, transfer_bytes(r, SIZE_MAX), "want 1..")                                                                \
    X(BAD_ARG, wt_transfer_set_chunk_bytes(r->transfer, 1), "want 4096 or more")                                       \
    X(BAD_ARG, dispatch_config(r, (wt_dispatch_config){.max_in_flight = -1}), "in flight")                             \
    X(BAD_ARG, dispatch_config(r, (wt_dispatch_config){.max_queued = INT_MAX}), "queued")                              \
    X(BAD_ARG, dispatch_config(r, (wt_dispatch_config){.history = INT_MIN}), "history")                                \
    X(BAD_ARG, wt_quiesce(r->device, NULL, NULL, INT64_MIN), "timeout")

static void assert_refused(wt_status status, wt_status want, const char *call, const char *words)
{
    if (status != want || !strstr(wt_last_error(), words))
        fail_msg("%s: %s \"%s\", want %s with \"%s\"", call, wt_status_text(status), status ? wt_last_error() : "",
                 wt_status_text(want), words);
}

static void sizes_and_shares_out_of_range_are_refused(void **state)
{
    rig on = rig_on(wide_device_of(state)), *r = &on;
#define RUN_CASE(want, call, words) assert_refused((call), WT_ERR_##want, #call, words);
    CASES(RUN_CASE)
#undef RUN_CASE
    rig_free(r);
}

static void what_is_too_much_is_given_only_when_asked_for(void **state)
{
    wt_device *device = wide_device_of(state);
    const size_t most = wt_device_get_info(device)->memory_bytes / 4 * 3;
    const wt_partition_config two[] = {{"a", .sm_share = 0.7, .memory_quota_bytes = most, .bandwidth_share = 0.7},
                                       {"b", .sm_share = 0.7, .memory_quota_bytes = most, .bandwidth_share = 0.7}};
    wt_layout *layout = NULL;
    wt_layout_config config = {.partitions = two, .n_partitions = 2};
    assert_int_equal(wt_layout_create(device, &config, &layout), WT_ERR_QUOTA);
    config.overcommit = true;
    assert_ok(wt_layout_create(device, &config, &layout));
    assert_true(info_of(wt_layout_at(layout, 0)).n_sms + info_of(wt_layout_at(layout, 1)).n_sms >
                facts_of(layout).n_sms);
    assert_ok(wt_layout_destroy(layout));
}

// ---- handles that are not live

static void a_second_destroy_does_nothing_and_says_so(void **state)
{
    rig once = rig_on(wide_device_of(state)), twice = once;
    rig_free(&once);
    static const char *const names[] = {"graph", "dispatch", "transfer", "pool", "buffer", "stream", "layout"};
    for (int k = 0; k < 7; k++) {
        wt_fail(WT_OK, "nothing");
        if (k == 0) wt_graph_destroy(twice.graph);
        if (k == 1) wt_dispatch_destroy(twice.dispatch);
        if (k == 2) wt_transfer_destroy(twice.transfer);
        if (k == 3) wt_pool_destroy(twice.pool);
        if (k == 4) wt_buffer_destroy(twice.buffer);
        if (k == 5) wt_stream_destroy(twice.stream);
        if (k == 6) assert_int_equal(wt_layout_destroy(twice.layout), WT_ERR_BAD_ARG);
        char want[128];
        snprintf(want, sizeof want, "%s: this handle was destroyed already, or is not one of a %s", names[k], names[k]);
        assert_string_equal(wt_last_error(), want);
    }
}

static void a_use_after_destroy_is_refused(void **state)
{
    rig live = rig_on(wide_device_of(state)), gone = rig_on(live.device), *r = &gone;
    rig_free(&gone);
    wt_graph *clone = NULL;
    assert_refused(wt_stream_synchronize(r->stream), WT_ERR_BAD_ARG, "synchronize", "stream: this handle");
    assert_refused(wt_stream_fill(live.stream, r->buffer, 0, 0, 1), WT_ERR_BAD_ARG, "fill", "buffer: this handle");
    assert_refused(wt_stream_fill(r->stream, live.buffer, 0, 0, 1), WT_ERR_BAD_ARG, "fill", "stream: this handle");
    assert_refused(wt_stream_copy(live.stream, live.buffer, 0, r->buffer, 0, 1), WT_ERR_BAD_ARG, "copy",
                   "buffer: this handle");
    assert_refused(block_bytes(r, 1), WT_ERR_BAD_ARG, "allocate", "pool: this handle");
    assert_refused(wt_transfer_submit(r->transfer, &(wt_transfer_request){0}, NULL), WT_ERR_BAD_ARG, "submit",
                   "transfer: this handle");
    assert_refused(wt_graph_launch(r->graph, live.stream), WT_ERR_BAD_ARG, "launch", "graph: this handle");
    assert_refused(wt_graph_clone(r->graph, live.stream, &clone), WT_ERR_BAD_ARG, "clone", "graph: this handle");
    assert_refused(wt_layout_resize(r->layout, &two_config), WT_ERR_BAD_ARG, "resize", "layout: this handle");
    rig_free(&live);
}

static void a_handle_of_another_kind_is_refused(void **state)
{
    rig on = rig_on(wide_device_of(state)), *r = &on;
    wt_stream_destroy((wt_stream *)r->buffer);
    assert_string_equal(wt_last_error(), "stream: this handle was destroyed already, or is not one of a stream");
    wt_buffer_destroy((wt_buffer *)r->pool);
    wt_pool_destroy((wt_pool *)r->transfer);
    wt_transfer_destroy((wt_transfer *)r->graph);
    wt_graph_destroy((wt_graph *)r->stream);
    assert_int_equal(wt_layout_destroy((wt_layout *)r->dispatch), WT_ERR_BAD_ARG);
    int on_the_stack = 0;
    wt_buffer_destroy((wt_buffer *)&on_the_stack);
    assert_int_equal(wt_stream_synchronize((wt_stream *)&on_the_stack), WT_ERR_BAD_ARG);
    assert_ok(wt_stream_fill(r->stream, r->buffer, 0, 1, 4096)); // all of them are as they were
    assert_ok(wt_graph_launch(r->graph, r->stream));
    assert_ok(wt_stream_synchronize(r->stream));
    rig_free(r);
}

// ---- destroying in the middle

static void a_pool_destroyed_while_armed_is_given_back_later(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_pool *pool = NULL;
    wt_stream *stream = NULL;
    wt_pool_block block;
    wt_arm_counts counts;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_pool_create(device, &(wt_pool_config){.quota_bytes = 4 * MB, .pinned_now = true}, &pool));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = MB}, stream, &block));
    assert_ok(wt_device_arm(device));
    wt_arm_stats(device, &counts);
    uint64_t n_refused = counts.n_refused;
    wt_pool_destroy(pool);
    wt_arm_stats(device, &counts);
    assert_int_equal(counts.n_waiting, 2); // the slab of pinned memory, and the memory of the device
    assert_int_equal(counts.n_refused, n_refused);
    assert_ok(wt_device_disarm(device));
    wt_arm_stats(device, &counts);
    assert_int_equal(counts.n_waiting, 0);
    wt_stream_destroy(stream);
}

static void recorded_uploads_run_with_the_graph(void **state)
{
    wt_device *device = wide_device_of(state);
    wt_pool *pool = NULL;
    wt_stream *stream = NULL;
    wt_graph *graph = NULL;
    wt_pool_block block, out;
    uintptr_t address;
    wt_buffer *host = NULL;
    unsigned char got[64] = {0};
    wt_graph_info info;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_buffer_create(device, WT_MEMORY_PINNED, 128, &host));
    unsigned char *ones = wt_buffer_host(host), *twos = ones + 64;
    memset(ones, 1, 64), memset(twos, 2, 64);
    assert_ok(wt_pool_create(device, &(wt_pool_config){.quota_bytes = MB}, &pool));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 64}, stream, &block));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 64}, stream, &out));
    assert_ok(wt_pool_upload(pool, block, stream, 0, ones, 64));
    assert_ok(wt_pool_evict(pool, out));
    assert_ok(wt_pool_access(pool, block, stream, &address)); // for as long as the graph lives
    assert_ok(wt_stream_synchronize(stream));
    assert_ok(wt_graph_begin(stream, &graph));
    assert_ok(wt_pool_upload(pool, block, stream, 0, twos, 64));
    assert_fails(wt_pool_access(pool, out, stream, &address), WT_ERR_STATE,
                 "pool memory: the block is moved out, and a graph is being recorded on the stream");
    assert_ok(wt_graph_end(graph));
    wt_graph_get_info(graph, &info);
    assert_int_equal(info.n_copies, 1);
    assert_int_equal(info.n_foreign, 0);
    assert_ok(wt_pool_download(pool, block, stream, 0, got, 64));
    assert_ok(wt_stream_synchronize(stream));
    assert_memory_equal(got, ones, 64); // it was recorded, and did not run
    assert_ok(wt_graph_launch(graph, stream));
    assert_ok(wt_pool_download(pool, block, stream, 0, got, 64));
    assert_ok(wt_stream_synchronize(stream));
    assert_memory_equal(got, twos, 64);
    assert_ok(wt_pool_release_access(pool, block, stream));
    wt_graph_destroy(graph);
    wt_pool_destroy(pool);
    wt_buffer_destroy(host);
    wt_stream_destroy(stream);
}

// ---- ten thousand of each

typedef struct kind {
    const char *name;
    int n_cpu, n_cuda; ///< a GPU's pools and streams take longer
    void (*make_and_destroy)(rig *r);
} kind;

static void loop_buffer(rig *r)
{
    wt_buffer *b = NULL;
    assert_ok(wt_buffer_create(r->device, WT_MEMORY_DEVICE, 4096, &b));
    wt_buffer_destroy(b);
}
static void loop_stream(rig *r)
{
    wt_stream *s = NULL;
    assert_ok(wt_stream_create(r->device, NULL, &s));
    wt_stream_destroy(s);
}
static void loop_event(rig *r)
{
    wt_event *e = NULL;
    assert_ok(wt_event_create(r->device, &e));
    wt_event_destroy(e);
}
static void loop_graph(rig *r)
{
    wt_graph *g = NULL;
    assert_ok(wt_graph_begin(r->stream, &g));
    assert_ok(wt_stream_fill(r->stream, r->buffer, 0, 1, 64));
    assert_ok(wt_graph_end(g));
    wt_graph_destroy(g);
}
static void loop_block(rig *r)
{
    wt_pool_block b;
    assert_ok(wt_pool_allocate(r->pool, &(wt_pool_request){.size_bytes = 1000}, r->stream, &b));
    assert_ok(wt_pool_free(r->pool, b, r->stream));
}
static void loop_arena(rig *r)
{
    wt_pool_arena *a = NULL;
    assert_ok(wt_pool_arena_create(r->pool, 1000, &a));
    wt_pool_arena_destroy(a, NULL);
}
static void loop_pool(rig *r)
{
    wt_pool *p = NULL;
    assert_ok(
        wt_pool_create(r->device, &(wt_pool_config){.quota_bytes = 65536, .max_blocks = 4, .max_streams = 2}, &p));
    wt_pool_destroy(p);
}
static void loop_transfer(rig *r)
{
    wt_transfer *t = NULL;
    assert_ok(wt_transfer_create(r->device, &(wt_transfer_config){.max_requests = 2, .max_in_flight = 1}, &t));
    wt_transfer_destroy(t);
}
static void loop_dispatch(rig *r)
{
    wt_dispatch *d = NULL;
    assert_ok(wt_dispatch_create(
        r->device, &(wt_dispatch_config){.max_queued = 1, .max_in_flight = 1, .history = 1, .no_thread = true}, &d));
    wt_dispatch_destroy(d);
}
static void loop_layout(rig *r)
{
    wt_layout *l = NULL;
    assert_ok(wt_layout_create(r->device, &lending_config, &l));
    assert_ok(wt_layout_destroy(l));
}

/// To other shares and back.
static void loop_resize(rig *r)
{
    const wt_partition_config other[] = {
        {two_config.partitions[0].name, .tier = two_config.partitions[0].tier},
        {two_config.partitions[1].name, .tier = two_config.partitions[1].tier, .n_sms = 1}};
    assert_ok(wt_layout_resize(r->layout, &(wt_layout_config){.partitions = other, .n_partitions = 2}));
    assert_ok(wt_layout_resize(r->layout, &two_config));
}

static size_t free_bytes(wt_device *device)
{
    wt_device_info info;
    assert_ok(wt_device_query(wt_device_get_info(device)->ordinal, &info));
    return info.memory_free_bytes;
}

#ifdef WT_SANITIZED
enum { N_CPU_MOST = 500 }; // threads cost more there
#else
enum { N_CPU_MOST = 10000 };
#endif

static void thousands_of_each_leave_nothing(void **state)
{
    static const kind kinds[] = {
        {"buffer", 10000, 10000, loop_buffer},     {"stream", 10000, 2000, loop_stream},
        {"event", 10000, 10000, loop_event},       {"graph", 10000, 10000, loop_graph},
        {"block", 10000, 10000, loop_block},       {"arena", 10000, 10000, loop_arena},
        {"pool", 10000, 300, loop_pool},           {"transfer", 10000, 300, loop_transfer},
        {"dispatch", 10000, 10000, loop_dispatch}, {"layout", 10000, 1000, loop_layout},
        {"resize", 10000, 1000, loop_resize},
    };
    rig r = rig_on(wide_device_of(state));
    bool cuda = wt_device_get_info(r.device)->backend == WT_BACKEND_CUDA;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int64_t begin_ns = wt_clock_now_ns(NULL);
        int n = cuda ? kinds[k].n_cuda : kinds[k].n_cpu < N_CPU_MOST ? kinds[k].n_cpu : N_CPU_MOST;
        for (int warm = 0; warm < 10; warm++) kinds[k].make_and_destroy(&r); // what is made once
        size_t before = cuda ? free_bytes(r.device) : 0;
        failing_alloc_start(-1);
        for (int loop = 0; loop < n; loop++) kinds[k].make_and_destroy(&r);
        failing_alloc_counts counts = failing_alloc_stop();
        print_message("%d of %s: %.2f s\n", n, kinds[k].name, (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-9);
        if (!cuda && counts.n_live)
            fail_msg("%d of %s leave %ld blocks of memory", n, kinds[k].name, counts.n_live);
        size_t after = cuda ? free_bytes(r.device) : 0; // the driver keeps a little by itself, and takes 2 MB at a time
        if (cuda && after + 32 * MB < before)
            fail_msg("%d of %s leave %zu bytes of device memory", n, kinds[k].name, before - after);
    }
    rig_free(&r);
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(sizes_and_shares_out_of_range_are_refused),                                                       \
        cmocka_unit_test(what_is_too_much_is_given_only_when_asked_for),                                               \
        cmocka_unit_test(a_second_destroy_does_nothing_and_says_so), cmocka_unit_test(a_use_after_destroy_is_refused), \
        cmocka_unit_test(a_handle_of_another_kind_is_refused),                                                         \
        cmocka_unit_test(a_pool_destroyed_while_armed_is_given_back_later),                                            \
        cmocka_unit_test(recorded_uploads_run_with_the_graph), cmocka_unit_test(thousands_of_each_leave_nothing)

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_BACKENDS};
    return cmocka_run_group_tests_name("bad use: CPU", tests, open_cpu, close_device) +
           cmocka_run_group_tests_name("bad use: CUDA", tests, open_cuda, close_device);
}
