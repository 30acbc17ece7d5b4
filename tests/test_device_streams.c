// Streams, events and runs of a device.

#include "support/device_check.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <warptone/device.h>
#include <warptone/kernel.h>

enum { ARGS_BYTES = 4096 }; // the most that wt_stream_run takes

// The tests of BOTH_BACKENDS run once on the CPU and once on a GPU; `state` holds the device, NULL without a GPU.

static void streams_refuse_unknown_priorities(void **state)
{
    wt_device *device = device_of(state);
    for (int priority = -1; priority <= 1; priority++) {
        wt_stream *stream = NULL;
        assert_ok(wt_stream_create(device, &(wt_stream_config){priority}, &stream));
        assert_ptr_equal(wt_stream_device(stream), device);
        wt_stream_destroy(stream);
    }
    wt_stream *stream = NULL;
    assert_fails(wt_stream_create(device, &(wt_stream_config){2}, &stream), WT_ERR_BAD_ARG,
                 "stream: priority 2, want -1, 0 or 1");
    assert_null(stream);
    wt_stream_destroy(NULL);
}

static void an_event_never_recorded_holds_up_nobody(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_event *event = event_of(device), *other = event_of(device);
    assert_true(wt_event_done(event));
    assert_ok(wt_event_synchronize(event));
    assert_ok(wt_stream_wait(stream, event));
    double us = 1;
    assert_fails(wt_event_elapsed_us(event, other, &us), WT_ERR_STATE, "elapsed: the begin event was never recorded");
    assert_ok(wt_event_record(event, stream));
    assert_ok(wt_stream_synchronize(stream));
    assert_fails(wt_event_elapsed_us(event, other, &us), WT_ERR_STATE, "elapsed: the end event was never recorded");
    wt_event_destroy(event);
    wt_event_destroy(other);
    wt_event_destroy(NULL);
    wt_stream_destroy(stream);
}

static void another_stream_waits_for_an_event(void **state)
{
    enum { BYTES = 8 << 20, ROUNDS = 20 };
    wt_device *device = device_of(state);
    wt_stream *first = new_stream(device), *second = new_stream(device);
    wt_buffer *from = buffer_of(device, WT_MEMORY_DEVICE, BYTES), *to = buffer_of(device, WT_MEMORY_DEVICE, BYTES);
    wt_event *filled = event_of(device), *copied = event_of(device);
    for (int round = 1; round <= ROUNDS; round++) {
        assert_ok(wt_stream_wait(first, copied)); // of the round before
        assert_ok(wt_stream_fill(first, from, 0, (unsigned char)round, BYTES));
        assert_ok(wt_event_record(filled, first));
        assert_ok(wt_stream_wait(second, filled));
        assert_ok(wt_stream_copy(second, to, 0, from, 0, BYTES));
        assert_ok(wt_event_record(copied, second));
    }
    assert_ok(wt_event_synchronize(copied));
    assert_true(wt_event_done(copied) && wt_event_done(filled));
    unsigned char last = 0;
    assert_ok(wt_stream_download(second, &last, to, BYTES - 1, 1));
    assert_ok(wt_stream_synchronize(second));
    assert_int_equal(last, ROUNDS);
    double us = -1;
    assert_ok(wt_event_elapsed_us(filled, copied, &us));
    assert_true(us > 0);
    wt_event_destroy(filled);
    wt_event_destroy(copied);
    wt_buffer_destroy(from);
    wt_buffer_destroy(to);
    wt_stream_destroy(first);
    wt_stream_destroy(second);
}

static void destroying_with_work_queued_waits_for_it(void **state)
{
    enum { BYTES = 16 << 20 };
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_buffer *from = buffer_of(device, WT_MEMORY_DEVICE, BYTES), *to = buffer_of(device, WT_MEMORY_PINNED, BYTES);
    wt_event *event = event_of(device);
    assert_ok(wt_stream_fill(stream, from, 0, 5, BYTES));
    for (int k = 0; k < 8; k++) assert_ok(wt_stream_copy(stream, to, 0, from, 0, BYTES));
    assert_ok(wt_event_record(event, stream));
    wt_event_destroy(event);
    wt_buffer_destroy(from);
    wt_stream_destroy(stream);
    assert_int_equal(((unsigned char *)wt_buffer_host(to))[BYTES - 1], 5);
    wt_buffer_destroy(to);
}

// ---- the CPU backend alone

typedef struct sum_args {
    long long *sums; ///< [1000]
    atomic_int *inside;
    int value;
} sum_args;

static void add_item(const void *args, int item)
{
    const sum_args *a = args;
    atomic_fetch_add(a->inside, 1);
    a->sums[item] += a->value * (item + 1);
}

static void a_run_visits_every_item_once_in_stream_order(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_buffer *buffer = buffer_of(device, WT_MEMORY_DEVICE, 1000 * sizeof(long long));
    long long got[1000];
    atomic_int inside = 0;
    sum_args args = {wt_buffer_host(buffer), &inside, 1};
    assert_ok(wt_stream_run(stream, add_item, &args, sizeof args, 1000));
    args.value = 10; // the first run has its own copy
    assert_ok(wt_stream_run(stream, add_item, &args, sizeof args, 1000));
    assert_ok(wt_stream_run(stream, add_item, &args, sizeof args, 1));
    assert_ok(wt_stream_run(stream, add_item, &args, sizeof args, 0));
    assert_ok(wt_stream_download(stream, got, buffer, 0, sizeof got));
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(atomic_load(&inside), 2001);
    assert_int_equal(got[0], 21);
    for (int k = 1; k < 1000; k++) assert_int_equal(got[k], 11 * (k + 1));
    wt_buffer_destroy(buffer);
    wt_stream_destroy(stream);
}

static void count_bytes(const void *args, int item)
{
    (void)item;
    const unsigned char *bytes = args;
    atomic_int *total;
    memcpy(&total, bytes, sizeof total);
    atomic_fetch_add(total, bytes[ARGS_BYTES - 1]);
}

static void a_full_queue_holds_the_caller_and_loses_nothing(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *stream = new_stream(device);
    wt_buffer *buffer = buffer_of(device, WT_MEMORY_DEVICE, 1);
    unsigned char args[ARGS_BYTES] = {0};
    atomic_int total = 0, *address = &total;
    memcpy(args, &address, sizeof address);
    args[ARGS_BYTES - 1] = 1;
    for (int k = 0; k < 500; k++) { // 2 MB of arguments through a ring of 64 KB, and sizes that do not divide it
        assert_ok(wt_stream_run(stream, count_bytes, args, sizeof args, 1));
        assert_ok(wt_stream_run(stream, count_bytes, args, sizeof args, 2));
        assert_ok(wt_stream_fill(stream, buffer, 0, 1, 1));
    }
    assert_ok(wt_stream_synchronize(stream));
    assert_int_equal(atomic_load(&total), 1500);
    assert_fails(wt_stream_run(stream, count_bytes, args, ARGS_BYTES + 1, 1), WT_ERR_BAD_ARG,
                 "run: 4097 bytes of arguments, want 0..4096");
    wt_buffer_destroy(buffer);
    wt_stream_destroy(stream);
}

typedef struct turn_args {
    int *now;          ///< [5]
    const int *before; ///< [5] of the run before
} turn_args;

static void take_turn(const void *args, int item)
{
    const turn_args *a = args;
    a->now[item] = a->before[(item + 1) % 5] + 1;
}

/// With two threads, which look for each other where there are two processors; each run needs all items of the one
/// before.
static void runs_that_follow_each_other_wait_for_all_items(void **state)
{
    (void)state;
    enum { RUNS = 3000, STREAMS = 2 };
    wt_device *device = NULL;
    wt_stream *streams[STREAMS];
    int turns[STREAMS][2][5] = {{{0}}};
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 2}, &device));
    for (int s = 0; s < STREAMS; s++) streams[s] = new_stream(device);
    for (int k = 0; k < RUNS; k++)
        for (int s = 0; s < STREAMS; s++) {
            const turn_args args = {turns[s][k % 2], turns[s][(k + 1) % 2]};
            assert_ok(wt_stream_run(streams[s], take_turn, &args, sizeof args, 5));
            if (k % 1000 == 999) assert_ok(wt_stream_synchronize(streams[s])); // its threads go to sleep
        }
    for (int s = 0; s < STREAMS; s++) {
        assert_ok(wt_stream_synchronize(streams[s]));
        for (int k = 0; k < 5; k++) assert_int_equal(turns[s][(RUNS - 1) % 2][k], RUNS);
        wt_stream_destroy(streams[s]);
    }
    wt_device_close(device);
}

static void hold(const void *args, int item)
{
    (void)item;
    atomic_int *gate;
    memcpy(&gate, args, sizeof gate);
    while (!atomic_load(gate)) usleep(100);
}

static void a_wait_keeps_the_point_it_saw(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *slow = new_stream(device), *quick = new_stream(device), *waiting = new_stream(device);
    wt_event *event = event_of(device), *after = event_of(device);
    atomic_int gate = 0, *address = &gate;
    assert_ok(wt_stream_run(slow, hold, &address, sizeof address, 1));
    assert_ok(wt_event_record(event, slow));
    assert_ok(wt_stream_wait(waiting, event));
    assert_ok(wt_event_record(after, waiting));
    assert_ok(wt_event_record(event, quick)); // recorded anew where nothing holds it up
    assert_ok(wt_event_synchronize(event));
    assert_true(wt_event_done(event));
    assert_false(wt_event_done(after));
    assert_false(wt_stream_idle(slow));
    double us = 0;
    assert_fails(wt_event_elapsed_us(event, after, &us), WT_ERR_STATE, "elapsed: the end event is not reached yet");
    atomic_store(&gate, 1);
    assert_ok(wt_device_synchronize(device));
    assert_true(wt_event_done(after));
    assert_true(wt_stream_idle(slow));
    wt_event_destroy(event);
    wt_event_destroy(after);
    wt_stream_destroy(slow);
    wt_stream_destroy(quick);
    wt_stream_destroy(waiting);
}

static void a_waiting_stream_outlives_what_it_waits_for(void **state)
{
    wt_device *device = device_of(state);
    wt_stream *first = new_stream(device), *second = new_stream(device);
    wt_event *event = event_of(device);
    atomic_int gate = 0, *address = &gate;
    assert_ok(wt_stream_run(first, hold, &address, sizeof address, 1));
    assert_ok(wt_event_record(event, first));
    assert_ok(wt_stream_wait(second, event));
    wt_event_destroy(event);
    atomic_store(&gate, 1);
    wt_stream_destroy(first);
    assert_ok(wt_stream_synchronize(second));
    wt_stream_destroy(second);
}

// What callers share: a stream whose functions count without atomics.
typedef struct shared {
    wt_stream *stream;
    atomic_int inside, met;
    long count;
} shared;

static void count_alone(const void *args, int item)
{
    shared *s = *(shared *const *)args;
    (void)item;
    if (atomic_fetch_add(&s->inside, 1)) atomic_store(&s->met, 1);
    s->count++;
    atomic_fetch_sub(&s->inside, 1);
}

enum { CALLERS = 3, CALLS = 3000 };

static void *queue_and_wait(void *user)
{
    shared *s = user;
    for (int k = 0; k < CALLS; k++) {
        if (wt_stream_run(s->stream, count_alone, &s, sizeof s, 1)) return s;
        if (k % 3 == 0 && wt_stream_synchronize(s->stream)) return s;
    }
    return wt_stream_synchronize(s->stream) ? s : NULL;
}

static void callers_that_wait_run_one_command_at_a_time(void **state)
{
    shared s = {.stream = new_stream(device_of(state))};
    pthread_t threads[CALLERS];
    for (int k = 0; k < CALLERS; k++) assert_int_equal(pthread_create(&threads[k], NULL, queue_and_wait, &s), 0);
    for (int k = 0; k < CALLERS; k++) {
        void *failed;
        assert_int_equal(pthread_join(threads[k], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(s.count, CALLERS * CALLS);
    assert_int_equal(s.met, 0);
    wt_stream_destroy(s.stream);
}

static void tell_thread(const void *args, int item) { (*(pthread_t *const *)args)[item] = pthread_self(); }

// The work of a device, or of a partition, stays on its processors.
static void a_caller_on_other_processors_waits_only(void **state)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) skip();
    wt_stream *stream = new_stream(device_of(state));
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int round = 0; round < 100; round++) {
        pthread_t ran, *to = &ran;
        assert_ok(wt_stream_run(stream, tell_thread, &to, sizeof to, 1));
        assert_ok(wt_stream_synchronize(stream));
        assert_false(pthread_equal(ran, pthread_self()));
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    wt_stream_destroy(stream);
}

#define BOTH_BACKENDS                                                                                                  \
    cmocka_unit_test(streams_refuse_unknown_priorities), cmocka_unit_test(an_event_never_recorded_holds_up_nobody),    \
        cmocka_unit_test(another_stream_waits_for_an_event),                                                           \
        cmocka_unit_test(destroying_with_work_queued_waits_for_it)

int main(void)
{
    const struct CMUnitTest cpu[] = {
        BOTH_BACKENDS,
        cmocka_unit_test(a_run_visits_every_item_once_in_stream_order),
        cmocka_unit_test(a_full_queue_holds_the_caller_and_loses_nothing),
        cmocka_unit_test(runs_that_follow_each_other_wait_for_all_items),
        cmocka_unit_test(a_wait_keeps_the_point_it_saw),
        cmocka_unit_test(a_waiting_stream_outlives_what_it_waits_for),
        cmocka_unit_test(callers_that_wait_run_one_command_at_a_time),
        cmocka_unit_test(a_caller_on_other_processors_waits_only),
    };
    const struct CMUnitTest cuda[] = {BOTH_BACKENDS};
    return cmocka_run_group_tests_name("device streams: CPU", cpu, open_three_threads, close_device) +
           cmocka_run_group_tests_name("device streams: CUDA", cuda, open_cuda, close_device);
}
