// A memory pool between threads and between streams, with work in flight, and without memory.
#include "support/failing_alloc.h"
#include "support/pool_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <warptone/kernel.h>

// ---- many threads

enum { N_THREADS = 8, N_ROUNDS = 300, N_HELD = 6 };

typedef struct worker {
    wt_device *device;
    wt_pool *pool;
    int key, n_wrong;
} worker;

/// Blocks of random sizes, filled, moved out by the others' pressure, checked. cmocka's asserts belong to the main
/// thread, so what goes wrong is counted.
static void *use_pool(void *user)
{
    worker *w = user;
    wt_stream *stream = NULL;
    wt_pool_block blocks[N_HELD] = {0};
    size_t sizes[N_HELD] = {0};
    static _Thread_local unsigned char want[16 * KB], got[16 * KB];
    uint64_t seed = (uint64_t)w->key + 1;
    if (wt_stream_create(w->device, NULL, &stream)) w->n_wrong++;
    for (int round = 0; stream && round < N_ROUNDS; round++) {
        int k = round % N_HELD;
        int key = w->key * N_HELD + k;
        if (sizes[k]) {
            pool_fill_pattern(want, sizes[k], key);
            if (wt_pool_download(w->pool, blocks[k], stream, 0, got, sizes[k])) w->n_wrong++;
            if (wt_stream_synchronize(stream) || memcmp(want, got, sizes[k])) w->n_wrong++;
            if (wt_pool_free(w->pool, blocks[k], stream)) w->n_wrong++;
        }
        sizes[k] = 1 + (size_t)((noise(&seed) + 1) * 0.5f * (16 * KB - 2));
        wt_status status = wt_pool_allocate(w->pool, &(wt_pool_request){.size_bytes = sizes[k]}, stream, &blocks[k]);
        if (status) {
            if (status != WT_ERR_QUOTA) w->n_wrong++;
            sizes[k] = 0;
            continue;
        }
        pool_fill_pattern(want, sizes[k], key);
        if (wt_pool_upload(w->pool, blocks[k], stream, 0, want, sizes[k])) w->n_wrong++;
        if (wt_stream_synchronize(stream)) w->n_wrong++;
    }
    if (stream && wt_pool_detach_stream(w->pool, stream)) w->n_wrong++;
    wt_stream_destroy(stream);
    return NULL;
}

static void eight_threads_share_a_pool(void **state)
{
    wt_device *device = device_of(state);
    // Room for half of what the threads hold, so most blocks travel.
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = N_THREADS * N_HELD * 4 * KB,
                                                     .pinned_bytes = 4 * MB});
    pthread_t threads[N_THREADS];
    worker workers[N_THREADS];
    for (int k = 0; k < N_THREADS; k++) {
        workers[k] = (worker){device, pool, k, 0};
        assert_int_equal(pthread_create(&threads[k], NULL, use_pool, &workers[k]), 0);
    }
    for (int k = 0; k < N_THREADS; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(workers[k].n_wrong, 0);
    }
    wt_pool_stats stats = pool_stats_of(pool);
    assert_true(stats.n_evictions > N_THREADS);
    assert_true(stats.n_restores > N_THREADS);
    assert_true(stats.peak_bytes <= stats.quota_bytes);
    wt_pool_destroy(pool);
}

// ---- order between streams, on the CPU, where a stream can be held up

static void hold(const void *args, int item)
{
    (void)item;
    atomic_int *gate;
    memcpy(&gate, args, sizeof gate);
    while (!atomic_load(gate)) usleep(100);
}

static void another_stream_gets_a_block_only_after_its_event(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *slow = pool_stream(device), *quick = pool_stream(device);
    wt_event *event = NULL;
    assert_ok(wt_event_create(device, &event));
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = 128 * KB});
    atomic_int gate = 0, *address = &gate;
    wt_pool_block a = pool_block_of(pool, 64 * KB, slow);
    assert_ok(wt_stream_run(slow, hold, &address, sizeof address, 1));
    assert_ok(wt_pool_free(pool, a, slow));
    pool_block_of(pool, 64 * KB, quick); // there is room: new memory rather than waiting
    assert_ok(wt_stream_synchronize(quick));
    assert_int_equal(pool_stats_of(pool).n_fresh, 2);
    pool_block_of(pool, 64 * KB, quick); // now the held-up one
    assert_int_equal(pool_stats_of(pool).n_reuses, 1);
    assert_int_equal(pool_stats_of(pool).n_evictions, 0);
    assert_ok(wt_event_record(event, quick));
    usleep(2000);
    assert_false(wt_event_done(event));
    atomic_store(&gate, 1);
    assert_ok(wt_stream_synchronize(quick));
    wt_event_destroy(event);
    wt_pool_destroy(pool);
    wt_stream_destroy(slow);
    wt_stream_destroy(quick);
}

static void add_one(const void *args, int item)
{
    uintptr_t address;
    memcpy(&address, args, sizeof address);
    ((unsigned char *)address)[item]++;
}

static void a_block_moves_out_only_after_its_last_use(void **state)
{
    enum { BYTES = 4096 };
    wt_device *device = device_of(state);
    wt_stream *slow = pool_stream(device), *quick = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = BYTES});
    atomic_int gate = 0, *at = &gate;
    unsigned char bytes[BYTES] = {0};
    uintptr_t address;
    wt_pool_block a = pool_block_of(pool, BYTES, slow);
    assert_ok(wt_pool_upload(pool, a, slow, 0, bytes, BYTES));
    assert_ok(wt_stream_run(slow, hold, &at, sizeof at, 1));
    assert_ok(wt_pool_access(pool, a, slow, &address));
    assert_ok(wt_stream_run(slow, add_one, &address, sizeof address, BYTES));
    assert_ok(wt_pool_release_access(pool, a, slow));
    wt_pool_block b = pool_block_of(pool, BYTES, quick); // a is moved out, in order, although nothing has run
    assert_false(pool_has_resident(pool, a));
    unsigned char other[BYTES];
    memset(other, 99, BYTES);
    assert_ok(wt_pool_upload(pool, b, quick, 0, other, BYTES));
    assert_ok(wt_pool_download(pool, a, quick, 0, bytes, BYTES)); // back, and b out
    assert_false(pool_has_resident(pool, b));
    atomic_store(&gate, 1);
    assert_ok(wt_stream_synchronize(quick));
    for (int n = 0; n < BYTES; n++) assert_int_equal(bytes[n], 1);
    assert_ok(wt_pool_download(pool, b, slow, 0, bytes, BYTES));
    assert_ok(wt_stream_synchronize(slow));
    assert_memory_equal(bytes, other, BYTES);
    wt_pool_destroy(pool);
    wt_stream_destroy(slow);
    wt_stream_destroy(quick);
}

static void destroy_waits_for_work_in_flight(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB, .soft = true});
    uintptr_t address;
    wt_pool_block block = pool_block_of(pool, 64 * KB, stream);
    assert_ok(wt_pool_access(pool, block, stream, &address));
    for (int k = 0; k < 50; k++) assert_ok(wt_stream_run(stream, add_one, &address, sizeof address, 64 * KB));
    wt_pool_destroy(pool); // under the address sanitizer a write after this would show
    wt_stream_destroy(stream);
}

// ---- running out of memory

typedef struct creation {
    wt_device *device;
    wt_pool *pool;
} creation;

static wt_status create_pool(void *user)
{
    creation *c = user;
    wt_pool_config config = {.quota_bytes = 64 * KB, .max_streams = 2, .max_blocks = 4, .pinned_now = true};
    return wt_pool_create(c->device, &config, &c->pool);
}

static void destroy_pool(void *user) { wt_pool_destroy(((creation *)user)->pool); }

static void create_survives_every_failing_allocation(void **state)
{
    creation c = {device_of(state), NULL};
    assert_survives_failing_alloc(create_pool, destroy_pool, &c);
}

static void a_machine_without_memory_gives_a_status(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = pool_stream(device);
    wt_pool *pool = pool_of(device, (wt_pool_config){.quota_bytes = MB, .soft = true});
    wt_pool_block kept = pool_block_of(pool, 4096, stream), block;
    pool_put_pattern(pool, kept, stream, 4096, 1);
    failing_alloc_start(0);
    wt_status status = wt_pool_allocate(pool, &(wt_pool_request){.size_bytes = 8192}, stream, &block);
    failing_alloc_stop();
    assert_ok(status); // moving the other block out made room
    failing_alloc_start(0);
    status = wt_pool_allocate(pool, &(wt_pool_request){MB, WT_MEMORY_PINNED, false}, stream, &block);
    failing_alloc_stop();
    assert_int_equal(status, WT_ERR_NO_MEMORY);
    pool_assert_pattern(pool, kept, stream, 4096, 1);
    pool_close(pool, stream);
}

int main(void)
{
    const struct CMUnitTest both[] = {
        cmocka_unit_test(eight_threads_share_a_pool),
    };
    const struct CMUnitTest cpu[] = {
        cmocka_unit_test(another_stream_gets_a_block_only_after_its_event),
        cmocka_unit_test(a_block_moves_out_only_after_its_last_use),
        cmocka_unit_test(destroy_waits_for_work_in_flight),
        cmocka_unit_test(create_survives_every_failing_allocation),
        cmocka_unit_test(a_machine_without_memory_gives_a_status),
    };
    return cmocka_run_group_tests_name("shared pool: CPU", both, open_cpu, close_device) +
           cmocka_run_group_tests_name("shared pool: streams", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("shared pool: CUDA", both, open_cuda, close_device);
}
