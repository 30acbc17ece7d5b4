// A memory pool on both backends: classes, quotas, what is moved out, limits.
#include "support/pool_check.h"
#include "support/testing.h"

#include <string.h>

static void classes_waste_at_most_a_quarter(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = 8 * MB, .soft = true});
    for (size_t size = 256; size <= 4 * MB; size += size / 7 + 1) {
        for (int step = -1; step <= 1; step++) {
            size_t asked = size + (size_t)step;
            wt_pool_block block = pool_block_of(pool, asked, stream);
            wt_pool_block_info info;
            assert_ok(wt_pool_query_block(pool, block, &info));
            assert_int_equal(info.size_bytes, asked);
            assert_true(info.class_bytes >= asked);
            if (asked >= 256) assert_true((info.class_bytes - asked) * 4 <= asked);
            if (asked == 320 || asked == 1280 || asked == 7168) assert_int_equal(info.class_bytes, asked);
            uintptr_t address;
            assert_ok(wt_pool_access(pool, block, stream, &address));
            assert_int_equal(address % 64, 0);
            assert_ok(wt_pool_release_access(pool, block, stream));
            assert_ok(wt_pool_free(pool, block, stream));
        }
    }
    pool_close(pool, stream);
}

static void a_freed_block_is_reused_at_once_on_its_stream(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB});
    uintptr_t first = 0, second = 0;
    wt_pool_block block = pool_block_of(pool, 1000, stream);
    assert_ok(wt_pool_access(pool, block, stream, &first));
    assert_ok(wt_pool_release_access(pool, block, stream));
    assert_ok(wt_pool_free(pool, block, stream));
    wt_pool_block again = pool_block_of(pool, 900, stream); // the same class, 1024
    assert_ok(wt_pool_access(pool, again, stream, &second));
    assert_ok(wt_pool_release_access(pool, again, stream));
    assert_int_equal(first, second);
    wt_pool_stats stats = pool_stats_of(pool);
    assert_int_equal(stats.n_reuses, 1);
    assert_int_equal(stats.n_fresh, 1);
    assert_int_equal(stats.used_bytes, 1024);
    assert_int_equal(stats.asked_bytes, 900);
    assert_int_equal(stats.peak_bytes, 1024);
    assert_int_equal(stats.cached_bytes, 0);
    pool_close(pool, stream);
}

static void a_hard_quota_is_reserved_and_a_soft_one_is_not(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *hard = pool_of(device, (wt_pool_config){.quota_bytes = 8 * MB}),
            *soft = pool_of(device, (wt_pool_config){.quota_bytes = 8 * MB, .soft = true});
    assert_true(pool_stats_of(hard).reserved_bytes >= 8 * MB); // a driver takes memory in units of its own
    assert_int_equal(pool_stats_of(soft).reserved_bytes, 0);
    pool_block_of(soft, 1 * MB, stream);
    assert_true(pool_stats_of(soft).reserved_bytes >= 1 * MB);
    wt_pool_destroy(hard);
    pool_close(soft, stream);
}

static void bad_handles_are_refused(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB}),
            *other = pool_of(device, (wt_pool_config){.name = "other", .quota_bytes = MB});
    wt_pool_block block = pool_block_of(pool, 1000, stream);
    uintptr_t address;
    wt_pool_block_info info;
    assert_fails(wt_pool_free(other, block, stream), WT_ERR_BAD_ARG, "pool other: the block belongs to another pool");
    assert_fails(wt_pool_access(pool, (wt_pool_block){0}, stream, &address), WT_ERR_BAD_ARG,
                 "pool test: the block belongs to another pool");
    assert_fails(wt_pool_release_access(pool, block, stream), WT_ERR_STATE, "pool test: the block is not accessed");
    assert_ok(wt_pool_access(pool, block, stream, &address));
    assert_fails(wt_pool_free(pool, block, stream), WT_ERR_STATE,
                 "pool test: the block has 1 accesses that were not released");
    assert_fails(wt_pool_evict(pool, block), WT_ERR_STATE,
                 "pool test: the block has 1 accesses that were not released");
    assert_ok(wt_pool_release_access(pool, block, stream));
    assert_fails(wt_pool_free(pool, block, NULL), WT_ERR_BAD_ARG, "pool test: no stream given");
    assert_fails(wt_pool_upload(pool, block, stream, 990, &info, 11), WT_ERR_BAD_ARG,
                 "pool test: 11 bytes at offset 990 do not fit a block of 1000 bytes");
    assert_ok(wt_pool_free(pool, block, stream));
    assert_fails(wt_pool_free(pool, block, stream), WT_ERR_BAD_ARG, "pool test: the block was freed already");
    wt_pool_block next = pool_block_of(pool, 1000, stream); // lies in the same memory
    assert_int_equal(wt_pool_free(pool, block, stream), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_access(pool, block, stream, &address), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_evict(pool, block), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_query_block(pool, block, &info), WT_ERR_BAD_ARG);
    block.slot = UINT32_MAX;
    assert_int_equal(wt_pool_free(pool, block, stream), WT_ERR_BAD_ARG);
    assert_ok(wt_pool_free(pool, next, stream));
    wt_pool_destroy(other);
    pool_close(pool, stream);
    pool = pool_of(device, (wt_pool_config){.quota_bytes = MB}); // likely where the old one lay
    assert_int_equal(wt_pool_query_block(pool, next, &info), WT_ERR_BAD_ARG);
    wt_pool_destroy(pool);
    wt_pool_destroy(NULL);
}

static void sizes_out_of_range_are_refused(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = NULL;
    wt_pool_block block;
    assert_int_equal(wt_pool_create(device, &(wt_pool_config){0}, &pool), WT_ERR_BAD_ARG);
    assert_non_null(strstr(wt_last_error(), "pool memory: quota of 0 bytes, want 1.."));
    assert_int_equal(wt_pool_create(device, &(wt_pool_config){.quota_bytes = SIZE_MAX}, &pool), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_create(device, &(wt_pool_config){.quota_bytes = MB, .max_streams = 64}, &pool),
                     WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_create(device, &(wt_pool_config){.quota_bytes = MB, .max_blocks = -1}, &pool),
                     WT_ERR_BAD_ARG);
    assert_null(pool);
    pool = pool_of(device, (wt_pool_config){.quota_bytes = 1000000, .pinned_bytes = 4096});
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){0}, stream, &block), WT_ERR_BAD_ARG,
                 "pool test: a block of 0 bytes, want 1..1000000, its quota");
    assert_int_equal(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = SIZE_MAX}, stream, &block),
                     WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 1000001}, stream, &block),
                     WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_allocate(pool, &(wt_pool_request){4097, WT_MEMORY_PINNED, false}, stream, &block),
                     WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_allocate(pool, &(wt_pool_request){1, WT_MEMORY_MAPPED, false}, stream, &block),
                     WT_ERR_BAD_ARG);
    block = pool_block_of(pool, 1000000, stream); // the quota itself is a class, although no power of two
    assert_int_equal(pool_stats_of(pool).used_bytes, 1000000);
    assert_int_equal(wt_pool_evict(pool, block), WT_ERR_QUOTA); // its copy does not fit 4096 bytes of pinned memory
    assert_ok(wt_pool_free(pool, block, stream));
    pool_close(pool, stream);
}

static void the_quota_refuses_with_figures_and_moves_nothing(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB});
    wt_pool_block kept, block, movable = pool_block_of(pool, 256 * KB, stream);
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){512 * KB, WT_MEMORY_DEVICE, true}, stream, &kept));
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 640 * KB}, stream, &block), WT_ERR_QUOTA,
                 "pool test: 655360 bytes do not fit: 786432 of the quota of 1048576 are in use, 262144 of them can be "
                 "moved out");
    assert_true(pool_has_resident(pool, movable));
    assert_int_equal(block.pool, 0);
    uintptr_t address;
    assert_ok(wt_pool_access(pool, movable, stream, &address)); // what is accessed is not moved either
    assert_int_equal(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 320 * KB}, stream, &block), WT_ERR_QUOTA);
    assert_ok(wt_pool_release_access(pool, movable, stream));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 320 * KB}, stream, &block));
    assert_false(pool_has_resident(pool, movable));
    assert_int_equal(pool_stats_of(pool).n_refusals, 2);
    wt_pool_destroy(pool);
    pool = pool_of(device, (wt_pool_config){.quota_bytes = MB, .no_eviction = true});
    pool_block_of(pool, 512 * KB, stream);
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 640 * KB}, stream, &block), WT_ERR_QUOTA,
                 "pool test: 655360 bytes do not fit: 524288 of the quota of 1048576 are in use, 0 of them can be "
                 "moved out");
    pool_close(pool, stream);
}

static void eviction_takes_the_least_recently_used(void **state)
{
    enum { N = 8, BYTES = 64 * KB };
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = N * BYTES});
    wt_pool_block blocks[N];
    uintptr_t address;
    for (int k = 0; k < N; k++) blocks[k] = pool_block_of(pool, BYTES, stream);
    static const int uses[] = {3, 0, 7, 3, 5, 1, 0}; // so 2, 4, 6 are oldest, then 7, 3, 5, 1, 0
    for (size_t k = 0; k < sizeof uses / sizeof *uses; k++) {
        assert_ok(wt_pool_access(pool, blocks[uses[k]], stream, &address));
        assert_ok(wt_pool_release_access(pool, blocks[uses[k]], stream));
    }
    static const int order[N] = {2, 4, 6, 7, 3, 5, 1, 0};
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < N; k++) assert_int_equal(pool_has_resident(pool, blocks[order[k]]), k >= n);
        wt_pool_block block;
        assert_ok(wt_pool_allocate(pool, &(wt_pool_request){BYTES, WT_MEMORY_DEVICE, true}, stream, &block));
        assert_int_equal(pool_stats_of(pool).n_evictions, n + 1);
        assert_int_equal(pool_stats_of(pool).evicted_bytes, (n + 1) * BYTES);
    }
    pool_close(pool, stream);
}

static void what_was_moved_out_comes_back_bit_for_bit(void **state)
{
    enum { N = 12 };
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = 512 * KB});
    static const size_t sizes[N] = {1, 63, 64, 65, 4097, 100000, 131072, 99999, 320, 200000, 77777, 250000};
    wt_pool_block blocks[N];
    for (int k = 0; k < N; k++) {
        blocks[k] = pool_block_of(pool, sizes[k], stream);
        pool_put_pattern(pool, blocks[k], stream, sizes[k], k);
    }
    assert_true(pool_stats_of(pool).n_evicted > 0);
    for (int round = 0; round < 3; round++)
        for (int k = 0; k < N; k++) {
            int n = (k * 5 + round) % N;
            pool_assert_pattern(pool, blocks[n], stream, sizes[n], n);
        }
    wt_pool_stats stats = pool_stats_of(pool);
    assert_true(stats.n_restores > 10);
    assert_true(stats.used_bytes + stats.cached_bytes <= stats.quota_bytes);
    assert_int_equal(stats.n_evictions - stats.n_restores, stats.n_evicted);
    for (int k = 0; k < N; k++) assert_ok(wt_pool_free(pool, blocks[k], stream));
    stats = pool_stats_of(pool);
    assert_int_equal(stats.n_blocks, 0);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(stats.asked_bytes, 0);
    assert_int_equal(stats.evicted_bytes, 0);
    assert_int_equal(stats.pinned_used_bytes, 0);
    wt_pool_trim(pool);
    assert_int_equal(pool_stats_of(pool).cached_bytes, 0);
    pool_close(pool, stream);
}

static void pinned_blocks_have_their_own_limit(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB, .pinned_bytes = 64 * KB, .pinned_now = true});
    wt_pool_block a, b;
    uintptr_t address;
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){40 * KB, WT_MEMORY_PINNED, false}, stream, &a));
    assert_ok(wt_pool_access(pool, a, stream, &address));
    memset((void *)address, 7, 40 * KB); // host memory
    assert_ok(wt_pool_release_access(pool, a, stream));
    assert_fails(wt_pool_evict(pool, a), WT_ERR_STATE, "pool test: the block is never moved out");
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){40 * KB, WT_MEMORY_PINNED, false}, stream, &b), WT_ERR_QUOTA,
                 "pool test: 40960 bytes do not fit: 40960 of 65536 bytes of pinned memory are in use");
    assert_int_equal(pool_stats_of(pool).pinned_reserved_bytes, 64 * KB);
    assert_int_equal(pool_stats_of(pool).used_bytes, 0);
    assert_ok(wt_pool_free(pool, a, stream));
    assert_ok(wt_pool_allocate(pool, &(wt_pool_request){60 * KB, WT_MEMORY_PINNED, false}, stream, &b));
    pool_close(pool, stream);
}

typedef struct levels {
    int n;
    wt_pool_level seen[16];
    wt_pool *pool;
} levels;

static void note_level(void *user, wt_pool_level level)
{
    levels *l = user;
    l->seen[l->n++] = level;
    assert_int_equal(pool_stats_of(l->pool).level, level); // no lock is held: the pool may be asked
}

static void pressure_is_reported_at_80_and_95_percent(void **state)
{
    enum { PART = 10240 }; // one percent; a class (5 * 2^11)
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    levels seen = {0};
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = 100 * PART, .on_pressure = note_level,
                                                     .user = &seen});
    seen.pool = pool;
    wt_pool_block blocks[100];
    static const int at[] = {80, 95};
    int want = 0;
    for (int k = 0; k < 100; k++) {
        blocks[k] = pool_block_of(pool, PART, stream);
        if (want < 2 && k + 1 == at[want]) want++;
        assert_int_equal(seen.n, want);
    }
    for (int k = 0; k < 100; k++) assert_ok(wt_pool_free(pool, blocks[k], stream));
    static const wt_pool_level order[] = {WT_POOL_SOFT, WT_POOL_HARD, WT_POOL_SOFT, WT_POOL_CALM};
    assert_int_equal(seen.n, 4);
    assert_memory_equal(seen.seen, order, sizeof order);
    pool_close(pool, stream);
}

static void an_arena_is_exact_whole_and_never_moved(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB});
    wt_pool_arena *arena = NULL, *second = NULL;
    unsigned char weights[1000];
    pool_fill_pattern(weights, sizeof weights, 1);
    assert_ok(wt_pool_arena_create(pool, 600000, &arena));
    assert_true(pool_stats_of(pool).used_bytes < 600000 + 256);
    uintptr_t a, b, c;
    assert_ok(wt_pool_arena_take(arena, 1000, 64, &a));
    assert_ok(wt_pool_arena_take(arena, 1, 1, &b));
    assert_ok(wt_pool_arena_take(arena, 1000, 64, &c));
    assert_int_equal(b, a + 1000);
    assert_int_equal(c, a + 1024);
    assert_ok(wt_pool_arena_upload(arena, stream, c, weights, sizeof weights));
    assert_fails(wt_pool_arena_upload(arena, stream, c, weights, 1001), WT_ERR_BAD_ARG,
                 "pool test: 1001 bytes lie outside of what was taken of the arena");
    assert_int_equal(wt_pool_arena_upload(arena, stream, a - 1, weights, 1), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_arena_download(arena, stream, c, weights, 1001), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_arena_take(arena, 1, 3, &b), WT_ERR_BAD_ARG);
    assert_int_equal(wt_pool_arena_take(arena, 0, 0, &b), WT_ERR_BAD_ARG);
    assert_fails(wt_pool_arena_take(arena, 600000, 64, &b), WT_ERR_FULL,
                 "pool test: 600000 bytes aligned to 64, 597976 of the arena's 600000 are left");
    wt_pool_arena_seal(arena);
    assert_fails(wt_pool_arena_take(arena, 1, 0, &b), WT_ERR_STATE, "pool test: the arena is sealed");
    assert_int_equal(wt_pool_arena_upload(arena, stream, c, weights, 1), WT_ERR_STATE);
    unsigned char back[sizeof weights];
    assert_ok(wt_pool_arena_download(arena, stream, c, back, sizeof back)); // a sealed one is read
    assert_ok(wt_stream_synchronize(stream));
    assert_memory_equal(back, weights, sizeof back);
    assert_int_equal(wt_pool_arena_create(pool, 600000, &second), WT_ERR_QUOTA);
    assert_int_equal(wt_pool_arena_create(pool, 0, &second), WT_ERR_BAD_ARG);
    assert_null(second);
    wt_pool_block moved = pool_block_of(pool, 320 * KB, stream), block = pool_block_of(pool, 256 * KB, stream);
    assert_false(pool_has_resident(pool, moved)); // pressure moves blocks, not weights
    assert_ok(wt_pool_free(pool, block, stream));
    assert_int_equal(wt_pool_arena_used_bytes(arena), 2024);
    wt_pool_arena_destroy(arena, stream);
    assert_ok(wt_pool_arena_create(pool, MB, &arena));
    wt_pool_arena_destroy(arena, NULL);
    pool_close(pool, stream);
}

static void limits_of_blocks_and_streams_hold(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *streams[3];
    for (int k = 0; k < 3; k++) streams[k] = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB, .max_blocks = 2, .max_streams = 2});
    wt_pool_block a = pool_block_of(pool, 100, streams[0]), b = pool_block_of(pool, 100, streams[1]), c;
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 100}, streams[2], &c), WT_ERR_FULL,
                 "pool test: 2 streams are in use; detach one first");
    assert_ok(wt_pool_detach_stream(pool, streams[1]));
    assert_ok(wt_pool_detach_stream(pool, streams[1]));
    assert_fails(wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 100}, streams[2], &c), WT_ERR_FULL,
                 "pool test: 2 blocks are in use, its most");
    assert_ok(wt_pool_free(pool, a, streams[2]));
    assert_ok(wt_pool_free(pool, b, streams[2]));
    for (int k = 0; k < 40; k++) { // free blocks of many classes must not use up the slots
        c = pool_block_of(pool, (size_t)300 << k % 10, streams[2]);
        assert_ok(wt_pool_free(pool, c, streams[2]));
    }
    wt_pool_destroy(pool);
    for (int k = 0; k < 3; k++) wt_stream_destroy(streams[k]);
}

static void thousands_of_pools_come_and_go(void **state)
{
    wt_device *device = device_of(state);
    bool cuda = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    wt_stream *stream = pool_stream(device);
    wt_device_info before, after;
    int ordinal = cuda ? wt_device_get_info(device)->ordinal : -1;
    assert_ok(wt_device_query(ordinal, &before));
    int n_pools = cuda ? 1000 : 10000; // a driver's pool takes a millisecond or two
    for (int k = 0; k < n_pools; k++) {
        wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = 64 * KB, .soft = k % 2, .max_streams = 2,
                                                         .max_blocks = 8});
        wt_pool_block block = pool_block_of(pool, 1000, stream);
        if (k % 3 == 0) assert_ok(wt_pool_evict(pool, block));
        if (k % 2) assert_ok(wt_pool_free(pool, block, stream));
        wt_pool_destroy(pool);
    }
    assert_ok(wt_device_query(ordinal, &after));
    // A leaked driver pool is 2 MB: a thousand would be 2 GB. What a leak of host memory is, `scons debug=1` tells.
    if (cuda) assert_true(after.memory_free_bytes + 64 * MB > before.memory_free_bytes);
    wt_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_waste_at_most_a_quarter),
        cmocka_unit_test(a_freed_block_is_reused_at_once_on_its_stream),
        cmocka_unit_test(a_hard_quota_is_reserved_and_a_soft_one_is_not),
        cmocka_unit_test(bad_handles_are_refused),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(the_quota_refuses_with_figures_and_moves_nothing),
        cmocka_unit_test(eviction_takes_the_least_recently_used),
        cmocka_unit_test(what_was_moved_out_comes_back_bit_for_bit),
        cmocka_unit_test(pinned_blocks_have_their_own_limit),
        cmocka_unit_test(pressure_is_reported_at_80_and_95_percent),
        cmocka_unit_test(an_arena_is_exact_whole_and_never_moved),
        cmocka_unit_test(limits_of_blocks_and_streams_hold),
        cmocka_unit_test(thousands_of_pools_come_and_go),
    };
    return cmocka_run_group_tests_name("pool: CPU", tests, open_cpu, close_device) +
           cmocka_run_group_tests_name("pool: CUDA", tests, open_cuda, close_device);
}
