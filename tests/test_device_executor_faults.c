// Work on a device that fails, hangs, never ends, or loses its device: on the CPU device and on a GPU.
#include "support/executor_check.h"
#include "support/testing.h"
#include "../engine/device_internal.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <warptone/clock.h>

static void gate_cpu(const void *args, int item)
{
    (void)item;
    atomic_int *word = *(atomic_int *const *)args;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    while (!atomic_load(word) && wt_clock_now_ns(NULL) - begin_ns < 10000LL * MS) sched_yield();
}

static void a_failing_function_fails_its_task(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 0);
    spinning bad = spin_of(&r, 10000), good = spin_of(&r, 10000);
    bad.status = WT_ERR_FORMAT;
    assert_int_equal(wt_scheduler_wait(r.scheduler, submit_spin(&r, &bad, 0), EXECUTOR_WAIT_NS), WT_ERR_FORMAT);
    assert_ok(wt_scheduler_wait(r.scheduler, submit_spin(&r, &good, 0), EXECUTOR_WAIT_NS));
    spinning no_slicer = {.rig = &r, .work.n_items = 5};
    assert_int_equal(wt_scheduler_wait(r.scheduler, submit_spin(&r, &no_slicer, 0), EXECUTOR_WAIT_NS), WT_ERR_BAD_ARG);
    executor_rig_end(&r);
}

static void a_launch_that_hangs_is_reported_once(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 20 * MS);
    spinning brief = spin_of(&r, 100000), endless = spin_of(&r, 60 * MS);
    assert_ok(wt_scheduler_wait(r.scheduler, submit_spin(&r, &endless, 0), EXECUTOR_WAIT_NS));
    assert_int_equal(atomic_load(&r.n_hung), 1);
    assert_true(r.hang.running_ns >= 20 * MS);
    if (r.kernel) assert_string_equal(r.hang.what, "kernel spin");
    assert_ok(wt_scheduler_wait(r.scheduler, submit_spin(&r, &brief, 0), EXECUTOR_WAIT_NS));
    wt_scheduler_partition_stats stats;
    assert_ok(wt_scheduler_get_partition(r.scheduler, r.partition, &stats));
    assert_int_equal(stats.n_hangs, atomic_load(&r.n_hung));
    assert_int_equal(stats.n_hung, 0); // it ended after all
    executor_rig_end(&r);
}

// ---- work that does not end

typedef struct shut {
    wt_device_work work;
    wt_kernel *kernel; ///< NULL on the CPU
    wt_buffer *word;
} shut;

static wt_status queue_gate(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    const shut *g = user;
    uintptr_t address = wt_buffer_address(g->word);
    if (!g->kernel) return wt_stream_run(stream, gate_cpu, &address, sizeof address, 1);
    return wt_kernel_launch(g->kernel, stream, &(wt_launch){.grid = {1}}, &WT_ARG(address), 1);
}

/// A partition beside that of the rig, on all SMs too: what it runs does not wait for the other's.
static int add_other(executor_rig *r, wt_layout *layout, wt_device_executor **executor)
{
    int partition;
    assert_ok(wt_device_executor_create(
        &(wt_device_executor_config){.scheduler = r->scheduler, .partition = wt_layout_at(layout, 0)}, executor));
    assert_ok(wt_scheduler_add_partition(
        r->scheduler,
        &(wt_scheduler_partition_config){.name = "other", .executor = wt_device_executor_callbacks(*executor)},
        &partition));
    return partition;
}

static void endless_work_blocks_its_partition_alone(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 10 * MS);
    wt_device_executor *executor;
    int other = add_other(&r, r.layout, &executor);
    shut gate = {.work = {.queue = queue_gate, .user = &gate}};
    if (r.module) assert_ok(wt_module_get_kernel(r.module, "gate", &gate.kernel));
    assert_ok(wt_buffer_create(device_of(state), WT_MEMORY_MAPPED, sizeof(int), &gate.word));
    wt_task endless, after, late, rejected, elsewhere;
    spinning brief = spin_of(&r, 1000), third = spin_of(&r, 1000), free_one = spin_of(&r, 1000);
    assert_ok(wt_scheduler_submit(
        r.scheduler, &(wt_task_config){.name = "endless", .partition = r.partition, .work = {.device = &gate.work}},
        &endless, NULL));
    after = submit_spin(&r, &brief, 0); // stands in the line when the hang is found
    for (int k = 0; k < 5000 && !atomic_load(&r.n_hung); k++) nanosleep(&(struct timespec){0, MS}, NULL);
    assert_int_equal(atomic_load(&r.n_hung), 1);
    assert_string_equal(r.hang.name, "endless");
    if (gate.kernel) assert_string_equal(r.hang.what, "kernel gate");
    assert_true(r.hang.running_ns >= 10 * MS);
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r.scheduler, endless, &info));
    assert_true(info.hung && info.state == WT_TASK_RUNNING);
    assert_ok(wt_scheduler_get_task(r.scheduler, after, &info));
    assert_true(info.state == WT_TASK_ADMITTED && info.waits_for == WT_REASON_HUNG);
    // New work: the guaranteed is rejected, the rest queued, both with the reason.
    wt_admission admission;
    wt_task_config config = {.partition = r.partition, .tier = WT_TIER_GUARANTEED, .work = {.device = &third.work}};
    third.work.queue = queue_spin, third.work.user = &third;
    assert_int_equal(wt_scheduler_submit(r.scheduler, &config, &rejected, &admission), WT_ERR_REJECTED);
    assert_int_equal(admission.reason, WT_REASON_HUNG);
    config.tier = WT_TIER_BURSTABLE;
    assert_ok(wt_scheduler_submit(r.scheduler, &config, &late, &admission));
    assert_true(admission.outcome == WT_QUEUED && admission.reason == WT_REASON_HUNG);
    int64_t start_ns;
    assert_int_equal(wt_scheduler_predict(r.scheduler, after, &start_ns), WT_ERR_NOT_FOUND);
    // The other partition goes on, and what waits here can be cancelled.
    free_one.work.queue = queue_spin, free_one.work.user = &free_one;
    assert_ok(wt_scheduler_submit(
        r.scheduler, &(wt_task_config){.partition = other, .work = {.device = &free_one.work}}, &elsewhere, NULL));
    assert_ok(wt_scheduler_wait(r.scheduler, elsewhere, EXECUTOR_WAIT_NS));
    assert_ok(wt_scheduler_cancel(r.scheduler, after));
    assert_int_equal(wt_scheduler_wait(r.scheduler, after, EXECUTOR_WAIT_NS), WT_ERR_CANCELLED);
    // It ends after all: the queue moves.
    atomic_store((atomic_int *)wt_buffer_host(gate.word), 1);
    assert_ok(wt_scheduler_wait(r.scheduler, endless, EXECUTOR_WAIT_NS));
    assert_ok(wt_scheduler_wait(r.scheduler, late, EXECUTOR_WAIT_NS));
    wt_scheduler_partition_stats stats;
    assert_ok(wt_scheduler_get_partition(r.scheduler, r.partition, &stats));
    assert_int_equal(stats.n_hung, 0);
    assert_int_equal(atomic_load(&brief.n_queued), 0);
    wt_device_executor_destroy(executor);
    wt_buffer_destroy(gate.word);
    executor_rig_end(&r);
}

// ---- an event that the driver does not record

static struct {
    const wt__device_ops *real;
    atomic_int n_records;
} failing;

static wt_status second_record_fails(wt_event *event, wt_stream *stream)
{
    if (atomic_fetch_add(&failing.n_records, 1) == 1) return wt_fail(WT_ERR_NO_MEMORY, "no event");
    return failing.real->record(event, stream);
}

typedef struct opener {
    const shut *gate;
    atomic_bool opened;
} opener;

static void *open_later(void *user)
{
    opener *o = user;
    nanosleep(&(struct timespec){0, 50 * MS}, NULL);
    atomic_store(&o->opened, true);
    atomic_store((atomic_int *)wt_buffer_host(o->gate->word), 1);
    return NULL;
}

// The event behind the work fails: the task is over when the work is, whose memory may then go.
static void a_task_whose_end_cannot_be_told_is_waited_for(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 0);
    shut gate = {.work = {.queue = queue_gate, .user = &gate}};
    if (r.module) assert_ok(wt_module_get_kernel(r.module, "gate", &gate.kernel));
    wt_device *device = device_of(state);
    assert_ok(wt_buffer_create(device, WT_MEMORY_MAPPED, sizeof(int), &gate.word));
    wt__device_ops ops = *device->ops;
    failing.real = device->ops;
    atomic_store(&failing.n_records, 0);
    ops.record = second_record_fails;
    device->ops = &ops;
    opener o = {.gate = &gate};
    pthread_t thread;
    wt_task task;
    assert_int_equal(pthread_create(&thread, NULL, open_later, &o), 0);
    assert_ok(wt_scheduler_submit(
        r.scheduler, &(wt_task_config){.partition = r.partition, .work = {.device = &gate.work}}, &task, NULL));
    const wt_status status = wt_scheduler_wait(r.scheduler, task, EXECUTOR_WAIT_NS);
    const bool opened = atomic_load(&o.opened);
    pthread_join(thread, NULL);
    device->ops = failing.real;
    assert_int_equal(status, WT_ERR_NO_MEMORY);
    assert_true(opened);
    spinning good = spin_of(&r, 10000);
    assert_ok(wt_scheduler_wait(r.scheduler, submit_spin(&r, &good, 0), EXECUTOR_WAIT_NS));
    wt_buffer_destroy(gate.word);
    executor_rig_end(&r);
}

// ---- a lost device

/// A rig's executor with or without the way to the CPU, in a partition of its own.
static int add_lossy(executor_rig *r, bool fall_back, wt_device_executor **executor)
{
    int partition;
    assert_ok(wt_device_executor_create(&(wt_device_executor_config){.scheduler = r->scheduler,
                                                                     .partition = wt_layout_at(r->layout, 0),
                                                                     .fall_back_to_cpu = fall_back},
                                        executor));
    assert_ok(wt_scheduler_add_partition(
        r->scheduler,
        &(wt_scheduler_partition_config){.name = "lossy", .executor = wt_device_executor_callbacks(*executor)},
        &partition));
    return partition;
}

typedef struct lossy {
    wt_device_work work;
    int64_t lost_at;            ///< the slice that begins here or later meets the loss
    atomic_int n_device, n_cpu; ///< items queued
    int64_t next_cpu;           ///< the first item the CPU got, -1 = none
} lossy;

static wt_status queue_lossy(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)stream;
    lossy *l = user;
    if (offset_item >= l->lost_at) return wt_fail(WT_ERR_DEVICE_LOST, "gone");
    atomic_fetch_add(&l->n_device, (int)(n_items ? n_items : 1));
    return WT_OK;
}

static wt_status queue_on_cpu(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    lossy *l = user;
    if (wt_device_get_info(wt_stream_device(stream))->backend != WT_BACKEND_CPU) return WT_ERR_STATE;
    if (l->next_cpu < 0) l->next_cpu = offset_item;
    atomic_fetch_add(&l->n_cpu, (int)(n_items ? n_items : 1));
    return WT_OK;
}

static lossy lossy_of(int64_t lost_at, bool with_cpu)
{
    lossy l = {.lost_at = lost_at, .next_cpu = -1, .work = {.queue = queue_lossy, .n_items = 10}};
    if (with_cpu) l.work.queue_cpu = queue_on_cpu;
    assert_ok(wt_slicer_init(&l.work.slicer, &(wt_slicer_config){.bound_us = 1000, .max_items = 2}));
    return l;
}

static wt_status run_lossy(executor_rig *r, int partition, lossy *l, const char *name)
{
    wt_task task;
    l->work.user = l;
    assert_ok(wt_scheduler_submit(r->scheduler,
                                  &(wt_task_config){.name = name, .partition = partition, .work = {.device = &l->work}},
                                  &task, NULL));
    return wt_scheduler_wait(r->scheduler, task, EXECUTOR_WAIT_NS);
}

static void work_goes_on_with_the_cpu_where_it_may(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 0);
    wt_device_executor *executor;
    int partition = add_lossy(&r, true, &executor);
    lossy before = lossy_of(100, true), struck = lossy_of(4, true), later = lossy_of(100, true);
    lossy alone = lossy_of(100, false);
    assert_ok(run_lossy(&r, partition, &before, "before"));
    assert_int_equal(atomic_load(&before.n_cpu), 0);
    assert_ok(run_lossy(&r, partition, &struck, "struck"));
    assert_true(struck.next_cpu >= 4 && atomic_load(&struck.n_device) == struck.next_cpu);
    assert_int_equal(atomic_load(&struck.n_cpu), 10 - struck.next_cpu); // each item done, in slices, none left out
    assert_ok(run_lossy(&r, partition, &later, "later"));
    assert_true(atomic_load(&later.n_cpu) == 10 && atomic_load(&later.n_device) == 0);
    assert_int_equal(run_lossy(&r, partition, &alone, "alone"), WT_ERR_DEVICE_LOST);
    wt_device_executor_info info;
    wt_device_executor_get_info(executor, &info);
    assert_true(info.lost);
    assert_string_equal(info.why_lost, "the device is lost; running was task struck: gone");
    wt_device_executor_destroy(executor);
    executor_rig_end(&r);
}

static void without_that_flag_all_fails_at_once(void **state)
{
    executor_rig r;
    executor_rig_start(&r, state, 0, 0);
    wt_device_executor *executor;
    int partition = add_lossy(&r, false, &executor);
    lossy struck = lossy_of(0, true), later = lossy_of(100, true);
    assert_int_equal(run_lossy(&r, partition, &struck, "struck"), WT_ERR_DEVICE_LOST);
    assert_int_equal(run_lossy(&r, partition, &later, "later"), WT_ERR_DEVICE_LOST);
    assert_int_equal(atomic_load(&later.n_device) + atomic_load(&later.n_cpu), 0);
    wt_device_executor_destroy(executor);
    executor_rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_function_fails_its_task),
        cmocka_unit_test(a_launch_that_hangs_is_reported_once),
        cmocka_unit_test(endless_work_blocks_its_partition_alone),
        cmocka_unit_test(a_task_whose_end_cannot_be_told_is_waited_for),
        cmocka_unit_test(work_goes_on_with_the_cpu_where_it_may),
        cmocka_unit_test(without_that_flag_all_fails_at_once),
    };
    return cmocka_run_group_tests_name("device executor faults: CPU", tests, open_cpu, close_device) +
           cmocka_run_group_tests_name("device executor faults: CUDA", tests, open_cuda, close_device);
}
