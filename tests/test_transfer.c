#include "support/device_check.h"
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/kernel.h>
#include <warptone/transfer.h>

enum { KB = 1024, MB = 1024 * 1024 };

// The tests of the first list run once on the CPU and once on a GPU; `state` holds the device, NULL without a GPU.

static wt_transfer *engine_of(wt_device *device, wt_transfer_config config)
{
    wt_transfer *transfer = NULL;
    assert_ok(wt_transfer_create(device, &config, &transfer));
    return transfer;
}

static wt_transfer_ticket submit(wt_transfer *transfer, wt_transfer_request request)
{
    wt_transfer_ticket ticket;
    assert_ok(wt_transfer_submit(transfer, &request, &ticket));
    return ticket;
}

static wt_transfer_info query_of(wt_transfer *transfer, wt_transfer_ticket ticket)
{
    wt_transfer_info info;
    assert_ok(wt_transfer_query(transfer, ticket, &info));
    return info;
}

static wt_transfer_stats stats_of(wt_transfer *transfer, wt_transfer_direction direction)
{
    wt_transfer_stats stats;
    wt_transfer_query_stats(transfer, direction, &stats);
    return stats;
}

static void fill_pattern(unsigned char *bytes, size_t count, uint64_t seed)
{
    for (size_t n = 0; n < count; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[n] = (unsigned char)(seed >> 56);
    }
}

static void bytes_survive_the_way_there_and_back(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.chunk_bytes = 4096, .max_in_flight = 3});
    static const size_t sizes[] = {1, 63, 64, 4095, 4096, 4097, 3 * 4096, 100001, 300000};
    wt_buffer *device_buffer = buffer_of(device, WT_MEMORY_DEVICE, 300000),
              *in = buffer_of(device, WT_MEMORY_PINNED, 300000);
    unsigned char *out = malloc(300000); // ordinary memory works too
    fill_pattern(wt_buffer_host(in), 300000, 1);
    uint64_t n_chunks = 0, n_bytes = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        memset(out, 0, 300000);
        wt_transfer_request request = {WT_TRANSFER_TO_DEVICE,
                                       wt_buffer_address(device_buffer),
                                       wt_buffer_host(in),
                                       sizes[k],
                                       0,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL};
        wt_transfer_ticket up = submit(transfer, request);
        assert_ok(wt_transfer_wait(transfer, up));
        request.direction = WT_TRANSFER_TO_HOST;
        request.host = out;
        wt_transfer_ticket down = submit(transfer, request);
        assert_ok(wt_transfer_wait(transfer, down));
        assert_memory_equal(out, wt_buffer_host(in), sizes[k]);
        if (sizes[k] < 300000) assert_int_equal(out[sizes[k]], 0);
        wt_transfer_info info = query_of(transfer, down);
        assert_int_equal(info.state, WT_TRANSFER_COMPLETED);
        assert_int_equal(info.done_bytes, sizes[k]);
        n_chunks += (sizes[k] + 4095) / 4096;
        n_bytes += sizes[k];
    }
    for (int d = 0; d < WT_N_TRANSFER_DIRECTIONS; d++) {
        wt_transfer_stats stats = stats_of(transfer, (wt_transfer_direction)d);
        assert_int_equal(stats.n_chunks, n_chunks);
        assert_int_equal(stats.n_bytes, n_bytes);
        assert_int_equal(stats.n_completed, 9);
        assert_int_equal(stats.n_queued + stats.n_running + stats.n_in_flight, 0);
        assert_true(stats.rate_gbps > 0);
    }
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(device_buffer);
    wt_buffer_destroy(in);
    free(out);
}

static void the_chunk_size_can_be_switched_while_it_runs(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){0});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 5 * MB), *from = buffer_of(device, WT_MEMORY_PINNED, 5 * MB);
    wt_transfer_request request = {.device_address = wt_buffer_address(to), .host = wt_buffer_host(from),
                                   .size_bytes = 5 * MB};
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_chunks, 2);
    assert_ok(wt_transfer_set_chunk_bytes(transfer, WT_TRANSFER_ARMED_CHUNK_BYTES));
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_chunks, 2 + 80);
    assert_ok(wt_transfer_set_chunk_bytes(transfer, 0));
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_chunks, 2 + 80 + 2);
    assert_fails(wt_transfer_set_chunk_bytes(transfer, 4095), WT_ERR_BAD_ARG,
                 "transfer: chunks of 4095 bytes, want 4096 or more");
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
    wt_buffer_destroy(from);
}

static void chunks_are_small_while_the_device_is_armed(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){0});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 5 * MB), *from = buffer_of(device, WT_MEMORY_PINNED, 5 * MB);
    wt_transfer_request request = {
        .device_address = wt_buffer_address(to), .host = wt_buffer_host(from), .size_bytes = 5 * MB};
    assert_ok(wt_device_arm(device));
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_ok(wt_device_disarm(device));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_chunks, 80);
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_chunks, 80 + 2);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
    wt_buffer_destroy(from);
}

static void several_small_chunks_are_in_flight_but_no_more_than_a_megabyte(void **state)
{
    enum { BYTES = 64 * MB, MOST = MB / WT_TRANSFER_ARMED_CHUNK_BYTES, ROUNDS = 100 };
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.chunk_bytes = WT_TRANSFER_ARMED_CHUNK_BYTES});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, BYTES), *from = buffer_of(device, WT_MEMORY_PINNED, BYTES);
    wt_transfer_request request = {
        .device_address = wt_buffer_address(to), .host = wt_buffer_host(from), .size_bytes = BYTES};
    int most = 0;
    for (int round = 0; round < ROUNDS && most < 2; round++) { // a busy machine may let us look too seldom
        wt_transfer_ticket ticket = submit(transfer, request);
        while (query_of(transfer, ticket).state < WT_TRANSFER_COMPLETED) {
            int n = stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_in_flight;
            if (n > most) most = n;
        }
    }
    assert_true(most >= 2 && most <= MOST);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
    wt_buffer_destroy(from);
}

static void nonsense_is_refused(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = NULL;
    assert_int_equal(wt_transfer_create(device, &(wt_transfer_config){.chunk_bytes = 1}, &transfer), WT_ERR_BAD_ARG);
    assert_int_equal(wt_transfer_create(device, &(wt_transfer_config){.max_requests = -1}, &transfer), WT_ERR_BAD_ARG);
    assert_int_equal(wt_transfer_create(device, &(wt_transfer_config){.max_in_flight = 65}, &transfer),
                     WT_ERR_BAD_ARG);
    assert_null(transfer);
    transfer = engine_of(device, (wt_transfer_config){0});
    wt_transfer *other = engine_of(device, (wt_transfer_config){0});
    unsigned char host[16] = {0};
    wt_buffer *buffer = buffer_of(device, WT_MEMORY_DEVICE, 16);
    wt_transfer_request request = {.device_address = wt_buffer_address(buffer), .host = host};
    assert_int_equal(wt_transfer_submit(transfer, &request, NULL), WT_ERR_BAD_ARG);
    request.size_bytes = SIZE_MAX;
    assert_int_equal(wt_transfer_submit(transfer, &request, NULL), WT_ERR_BAD_ARG);
    request.size_bytes = 16;
    request.host = NULL;
    assert_fails(wt_transfer_submit(transfer, &request, NULL), WT_ERR_BAD_ARG,
                 "transfer: no address at the host's end");
    request.host = host;
    request.direction = (wt_transfer_direction)2;
    assert_fails(wt_transfer_submit(transfer, &request, NULL), WT_ERR_BAD_ARG,
                 "transfer: direction 2, want to the device or to the host");
    request.direction = WT_TRANSFER_TO_DEVICE;
    wt_transfer_ticket ticket = submit(transfer, request);
    assert_ok(wt_transfer_wait(transfer, ticket));
    assert_fails(wt_transfer_cancel(transfer, ticket), WT_ERR_STATE, "transfer: the request is over already");
    assert_fails(wt_transfer_wait(other, ticket), WT_ERR_BAD_ARG, "transfer: the ticket belongs to another engine");
    ticket.generation++;
    assert_fails(wt_transfer_cancel(transfer, ticket), WT_ERR_BAD_ARG,
                 "transfer: the ticket is no longer known, the last 1024 are");
    ticket.slot = UINT32_MAX;
    assert_int_equal(wt_transfer_wait(transfer, ticket), WT_ERR_BAD_ARG);
    wt_transfer_destroy(NULL);
    wt_transfer_destroy(other);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(buffer);
}

static void ten_thousand_requests_and_a_thousand_engines_leave_nothing(void **state)
{
    wt_device *device = device_of(state);
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 64), *from = buffer_of(device, WT_MEMORY_PINNED, 64);
    wt_transfer_request request = {.device_address = wt_buffer_address(to), .host = wt_buffer_host(from),
                                   .size_bytes = 64};
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.max_requests = 16});
    int n_full = 0;
    for (int k = 0; k < 10000; k++) {
        wt_transfer_ticket ticket;
        wt_status status = wt_transfer_submit(transfer, &request, &ticket);
        if (status == WT_ERR_FULL) {
            n_full++;
            usleep(50);
        } else {
            assert_ok(status);
        }
        if (k % 10 == 0 && !status) assert_ok(wt_transfer_wait(transfer, ticket));
    }
    wt_transfer_destroy(transfer);
    for (int k = 0; k < 1000; k++) { // with work in flight
        transfer = engine_of(device, (wt_transfer_config){.max_requests = 2, .max_in_flight = 1});
        submit(transfer, request);
        wt_transfer_destroy(transfer);
    }
    assert_true(n_full < 10000);
    wt_buffer_destroy(to);
    wt_buffer_destroy(from);
}

typedef struct user {
    wt_device *device;
    wt_transfer *transfer;
    int key, n_wrong;
    atomic_int n_done;
} user;

static void count_done(void *data, wt_transfer_ticket ticket, wt_status status)
{
    user *u = data;
    (void)ticket;
    if (status && status != WT_ERR_CANCELLED) u->n_wrong++;
    atomic_fetch_add(&u->n_done, 1);
}

/// Up and down with a check, now and then cancelled. cmocka's asserts belong to the main thread: wrongs are counted.
static void *use_engine(void *data)
{
    enum { BYTES = 20000, N = 60 };
    user *u = data;
    wt_buffer *there = NULL, *in = NULL, *out = NULL;
    if (wt_buffer_create(u->device, WT_MEMORY_DEVICE, BYTES, &there) ||
        wt_buffer_create(u->device, WT_MEMORY_PINNED, BYTES, &in) ||
        wt_buffer_create(u->device, WT_MEMORY_PINNED, BYTES, &out))
        u->n_wrong++;
    int n_submitted = 0;
    for (int k = 0; k < N && !u->n_wrong; k++) {
        wt_transfer_ticket ticket;
        wt_transfer_request request = {WT_TRANSFER_TO_DEVICE,
                                       wt_buffer_address(there),
                                       wt_buffer_host(in),
                                       BYTES,
                                       k % 3,
                                       NULL,
                                       count_done,
                                       u,
                                       NULL};
        fill_pattern(wt_buffer_host(in), BYTES, (uint64_t)(u->key * N + k));
        if (wt_transfer_submit(u->transfer, &request, &ticket)) u->n_wrong++;
        else n_submitted++;
        bool cancel = k % 7 == 6;
        if (cancel) {
            wt_status status = wt_transfer_cancel(u->transfer, ticket);
            if (status && status != WT_ERR_STATE) u->n_wrong++;
        }
        wt_status status = wt_transfer_wait(u->transfer, ticket);
        if (status && !(cancel && status == WT_ERR_CANCELLED)) u->n_wrong++;
        if (status) continue;
        request.direction = WT_TRANSFER_TO_HOST;
        request.host = wt_buffer_host(out);
        if (wt_transfer_submit(u->transfer, &request, &ticket) || wt_transfer_wait(u->transfer, ticket)) u->n_wrong++;
        else n_submitted++;
        if (memcmp(wt_buffer_host(in), wt_buffer_host(out), BYTES)) u->n_wrong++;
    }
    for (int k = 0; k < 5000 && atomic_load(&u->n_done) < n_submitted; k++) usleep(1000);
    if (atomic_load(&u->n_done) != n_submitted) u->n_wrong++;
    wt_buffer_destroy(there);
    wt_buffer_destroy(in);
    wt_buffer_destroy(out);
    return NULL;
}

static void eight_threads_share_an_engine(void **state)
{
    enum { N_THREADS = 8 };
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.chunk_bytes = 4096, .max_requests = 64});
    pthread_t threads[N_THREADS];
    user users[N_THREADS];
    for (int k = 0; k < N_THREADS; k++) {
        users[k] = (user){.device = device, .transfer = transfer, .key = k};
        assert_int_equal(pthread_create(&threads[k], NULL, use_engine, &users[k]), 0);
    }
    for (int k = 0; k < N_THREADS; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(users[k].n_wrong, 0);
    }
    wt_transfer_destroy(transfer);
}

// ---- order, on the CPU, where an event can be held back

static void hold(const void *args, int item)
{
    (void)item;
    atomic_int *gate;
    memcpy(&gate, args, sizeof gate);
    while (!atomic_load(gate)) usleep(100);
}

typedef struct gate {
    wt_stream *stream;
    wt_event *event;
    atomic_int open;
} gate;

/// An event that is reached when `open` is set.
static void close_gate(gate *g, wt_device *device)
{
    *g = (gate){0};
    atomic_int *address = &g->open;
    assert_ok(wt_stream_create(device, NULL, &g->stream));
    assert_ok(wt_event_create(device, &g->event));
    assert_ok(wt_stream_run(g->stream, hold, &address, sizeof address, 1));
    assert_ok(wt_event_record(g->event, g->stream));
}

static void remove_gate(gate *g)
{
    atomic_store(&g->open, 1);
    wt_event_destroy(g->event);
    wt_stream_destroy(g->stream);
}

typedef struct diary {
    atomic_int n;
    wt_transfer_ticket tickets[16];
    wt_status statuses[16];
    pthread_t thread;
} diary;

static void note(void *data, wt_transfer_ticket ticket, wt_status status)
{
    diary *d = data;
    int n = atomic_load(&d->n);
    d->tickets[n] = ticket;
    d->statuses[n] = status;
    d->thread = pthread_self();
    atomic_store(&d->n, n + 1);
}

static void wait_until(diary *d, int n)
{
    for (int k = 0; k < 5000 && atomic_load(&d->n) < n; k++) usleep(1000);
    assert_int_equal(atomic_load(&d->n), n);
}

static void the_urgent_goes_first_and_equals_in_order(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.max_in_flight = 1});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 64 * KB);
    static unsigned char host[64 * KB];
    gate g;
    close_gate(&g, device);
    diary d = {0};
    static const int priorities[] = {0, 5, 0, -3, 9, 5}, order[] = {4, 1, 5, 0, 2, 3};
    wt_transfer_ticket tickets[6];
    for (int k = 0; k < 6; k++)
        tickets[k] = submit(transfer, (wt_transfer_request){WT_TRANSFER_TO_DEVICE, wt_buffer_address(to), host, 64 * KB,
                                                            priorities[k], g.event, note, &d, NULL});
    for (int k = 0; k < 6; k++) assert_int_equal(query_of(transfer, tickets[order[k]]).position, k);
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_queued, 6);
    atomic_store(&g.open, 1);
    wait_until(&d, 6);
    for (int k = 0; k < 6; k++) {
        assert_memory_equal(&d.tickets[k], &tickets[order[k]], sizeof tickets[0]);
        assert_int_equal(d.statuses[k], WT_OK);
    }
    assert_false(pthread_equal(d.thread, pthread_self()));
    remove_gate(&g);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
}

static void a_held_request_lets_others_pass(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){0});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 16);
    unsigned char host[16] = {0};
    gate g;
    close_gate(&g, device);
    wt_transfer_request request = {
        WT_TRANSFER_TO_DEVICE, wt_buffer_address(to), host, 16, 9, g.event, NULL, NULL, NULL};
    wt_transfer_ticket held = submit(transfer, request);
    request.after = NULL;
    request.priority = 0;
    assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
    assert_int_equal(query_of(transfer, held).state, WT_TRANSFER_QUEUED);
    atomic_store(&g.open, 1);
    assert_ok(wt_transfer_wait(transfer, held));
    remove_gate(&g);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
}

static void cancelling_frees_the_place(void **state)
{
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.max_requests = 2});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, 16);
    unsigned char host[16] = {0};
    gate g;
    close_gate(&g, device);
    diary d = {0};
    wt_transfer_request request = {WT_TRANSFER_TO_DEVICE, wt_buffer_address(to), host, 16, 0, g.event, note, &d, NULL};
    wt_transfer_ticket a = submit(transfer, request), b = submit(transfer, request);
    assert_fails(wt_transfer_submit(transfer, &request, NULL), WT_ERR_FULL,
                 "transfer: 2 requests are on their way, its most");
    assert_ok(wt_transfer_cancel(transfer, a));
    assert_int_equal(query_of(transfer, a).state, WT_TRANSFER_CANCELLED);
    assert_int_equal(wt_transfer_wait(transfer, a), WT_ERR_CANCELLED);
    wait_until(&d, 1);
    assert_int_equal(d.statuses[0], WT_ERR_CANCELLED);
    wt_transfer_ticket c = {0};
    for (int k = 0; k < 1000 && wt_transfer_submit(transfer, &request, &c); k++) usleep(1000); // reported is soon over
    assert_int_equal(wt_transfer_wait(transfer, a), WT_ERR_BAD_ARG); // its place is c's now
    atomic_store(&g.open, 1);
    assert_ok(wt_transfer_wait(transfer, b));
    assert_ok(wt_transfer_wait(transfer, c));
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_cancelled, 1);
    remove_gate(&g);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
}

static void a_running_request_stops_at_the_next_chunk(void **state)
{
    enum { BYTES = 64 * MB };
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){.chunk_bytes = 4096, .max_in_flight = 2});
    wt_buffer *to = buffer_of(device, WT_MEMORY_DEVICE, BYTES);
    unsigned char *host = calloc(1, BYTES);
    wt_transfer_ticket ticket = submit(
        transfer, (wt_transfer_request){.device_address = wt_buffer_address(to), .host = host, .size_bytes = BYTES});
    while (query_of(transfer, ticket).done_bytes == 0) usleep(100);
    assert_ok(wt_transfer_cancel(transfer, ticket));
    size_t done = query_of(transfer, ticket).done_bytes;
    assert_int_equal(wt_transfer_wait(transfer, ticket), WT_ERR_CANCELLED);
    wt_transfer_info info = query_of(transfer, ticket);
    assert_int_equal(info.state, WT_TRANSFER_CANCELLED);
    assert_true(info.done_bytes <= done + 3 * 4096); // those in flight and one that landed meanwhile
    assert_true(info.done_bytes < BYTES);
    assert_int_equal(stats_of(transfer, WT_TRANSFER_TO_DEVICE).n_running, 0);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(to);
    free(host);
}

// ---- on a GPU: the copy engines work beside the kernels

static const char spin_text[] = "extern \"C\" __global__ void spin(long long cycles)\n"
                                "{\n"
                                "    long long begin = clock64();\n"
                                "    while (clock64() - begin < cycles) continue;\n"
                                "}\n";

static double ms_since(int64_t begin_ns) { return (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-6; }

static void a_copy_overlaps_with_a_kernel(void **state)
{
    enum { BYTES = 256 * MB };
    wt_device *device = device_of(state);
    wt_transfer *transfer = engine_of(device, (wt_transfer_config){0});
    wt_module *module = NULL;
    wt_kernel *spin = NULL;
    wt_stream *stream = NULL;
    assert_ok(wt_module_create(device, &(wt_module_config){.name = "spin", .source = spin_text}, &module));
    assert_ok(wt_module_get_kernel(module, "spin", &spin));
    assert_ok(wt_stream_create(device, NULL, &stream));
    wt_buffer *there = buffer_of(device, WT_MEMORY_DEVICE, BYTES), *here = buffer_of(device, WT_MEMORY_PINNED, BYTES);
    wt_transfer_request request = {.device_address = wt_buffer_address(there), .host = wt_buffer_host(here),
                                   .size_bytes = BYTES};
    long long cycles = 10000000; // 5 to 10 ms at 1 to 2 GHz, as the copy takes at 25 to 50 GB/s
    wt_launch launch = {.grid = {1}, .block = {1}};
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        int64_t begin_ns = wt_clock_now_ns(NULL);
        assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
        double copy_ms = ms_since(begin_ns);
        begin_ns = wt_clock_now_ns(NULL);
        assert_ok(wt_kernel_launch(spin, stream, &launch, (wt_arg[]){WT_ARG(cycles)}, 1));
        assert_ok(wt_stream_synchronize(stream));
        double kernel_ms = ms_since(begin_ns);
        begin_ns = wt_clock_now_ns(NULL);
        assert_ok(wt_kernel_launch(spin, stream, &launch, (wt_arg[]){WT_ARG(cycles)}, 1));
        assert_ok(wt_transfer_wait(transfer, submit(transfer, request)));
        assert_ok(wt_stream_synchronize(stream));
        double both_ms = ms_since(begin_ns);
        double share = both_ms / (copy_ms + kernel_ms);
        if (round && share < best) best = share; // the first round warms up
        cycles = (long long)((double)cycles * copy_ms / kernel_ms); // the same length: one after the other would be 1.0
    }
    print_message("copy and kernel together: %.2f of one after the other\n", best);
    assert_true(best < 0.7);
    wt_transfer_destroy(transfer);
    wt_buffer_destroy(there);
    wt_buffer_destroy(here);
    wt_stream_destroy(stream);
    wt_module_destroy(module);
}

// ---- running out of memory

typedef struct creation {
    wt_device *device;
    wt_transfer *transfer;
} creation;

static wt_status create_engine(void *data)
{
    creation *c = data;
    wt_transfer_config config = {.max_requests = 2, .max_in_flight = 1};
    return wt_transfer_create(c->device, &config, &c->transfer);
}

static void destroy_engine(void *data) { wt_transfer_destroy(((creation *)data)->transfer); }

static void create_survives_every_failing_allocation(void **state)
{
    creation c = {device_of(state), NULL};
    assert_survives_failing_alloc(create_engine, destroy_engine, &c);
}

// ---- the program

#define ON_BOTH                                                                                                        \
    cmocka_unit_test(bytes_survive_the_way_there_and_back),                                                            \
        cmocka_unit_test(the_chunk_size_can_be_switched_while_it_runs), cmocka_unit_test(nonsense_is_refused),         \
        cmocka_unit_test(chunks_are_small_while_the_device_is_armed),                                                  \
        cmocka_unit_test(several_small_chunks_are_in_flight_but_no_more_than_a_megabyte),                              \
        cmocka_unit_test(ten_thousand_requests_and_a_thousand_engines_leave_nothing),                                  \
        cmocka_unit_test(eight_threads_share_an_engine)

int main(void)
{
    const struct CMUnitTest cpu[] = {
        ON_BOTH,
        cmocka_unit_test(the_urgent_goes_first_and_equals_in_order),
        cmocka_unit_test(a_held_request_lets_others_pass),
        cmocka_unit_test(cancelling_frees_the_place),
        cmocka_unit_test(a_running_request_stops_at_the_next_chunk),
        cmocka_unit_test(create_survives_every_failing_allocation),
    };
    const struct CMUnitTest cuda[] = {ON_BOTH, cmocka_unit_test(a_copy_overlaps_with_a_kernel)};
    return cmocka_run_group_tests_name("transfer: CPU", cpu, open_cpu, close_device) +
           cmocka_run_group_tests_name("transfer: CUDA", cuda, open_cuda, close_device);
}
