/// The calls of test_all_calls on devices: streams, events, memory, partitions, pools, transfers, launches and graphs.
#ifndef WT_TEST_ALL_CALLS_DEVICE_H
#define WT_TEST_ALL_CALLS_DEVICE_H

#include "all_calls_world.h"

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

#endif
