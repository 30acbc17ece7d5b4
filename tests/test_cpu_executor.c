// Pinned workers that run a scheduler's tasks as functions.
#include "support/failing_alloc.h"
#include "support/testing.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <warptone/cpu_executor.h>
#include <warptone/graph.h>

enum { MS = 1000000 };
#define WAIT_NS 60000000000 // nothing takes so long, whatever else runs on the machine

typedef struct rig {
    wt_scheduler *scheduler;
    wt_cpu_executor *workers;
    int partition;
} rig;

static void set_up(rig *r, int n_threads, const int *cpus, int n_cpus, wt_policy policy)
{
    assert_ok(wt_scheduler_create(&(wt_scheduler_config){.timer_thread = true}, &r->scheduler));
    assert_ok(wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = r->scheduler, .n_threads = n_threads,
                                                               .cpus = cpus, .n_cpus = n_cpus}, &r->workers));
    assert_ok(wt_scheduler_add_partition(r->scheduler, &(wt_scheduler_partition_config){
        .name = "cpu", .executor = wt_cpu_executor_callbacks(r->workers), .n_lanes = n_threads, .policy = policy},
        &r->partition));
}

static void tear_down(rig *r)
{
    wt_cpu_executor_destroy(r->workers);
    wt_scheduler_destroy(r->scheduler);
}

static wt_task submit(rig *r, wt_status (*run)(void *, wt_job *), void *user, int priority)
{
    wt_task task;
    assert_ok(wt_scheduler_submit(r->scheduler, &(wt_task_config){.partition = r->partition, .work = {.run = run,
                                  .user = user}, .priority = priority}, &task, NULL));
    return task;
}

static wt_status tell_cpu(void *user, wt_job *job)
{
    (void)job;
    *(int *)user = sched_getcpu();
    return WT_OK;
}

static void workers_stay_on_their_processors(void **state)
{
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0, n_tried = 0; cpu < CPU_SETSIZE && n_tried < 4; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &allowed)) continue;
        n_tried++;
        rig r;
        set_up(&r, 2, &cpu, 1, WT_POLICY_FIFO);
        int where[50];
        wt_task tasks[50];
        for (int k = 0; k < 50; k++) tasks[k] = submit(&r, tell_cpu, &where[k], 0);
        for (int k = 0; k < 50; k++) assert_ok(wt_scheduler_wait(r.scheduler, tasks[k], WAIT_NS));
        wt_cpu_executor_info info;
        wt_cpu_executor_get_info(r.workers, &info);
        assert_true(info.n_threads == 2 && info.n_pinned == 2);
        tear_down(&r);
        for (int k = 0; k < 50; k++) assert_int_equal(where[k], cpu);
    }
}

typedef struct counting {
    atomic_int n_calls, n_steps;
    atomic_bool go;
    int n_wanted;
} counting;

// Counts until asked to stop, and goes on where it was.
static wt_status count_up(void *user, wt_job *job)
{
    counting *c = user;
    atomic_fetch_add(&c->n_calls, 1);
    while (atomic_load(&c->n_steps) < c->n_wanted || !atomic_load(&c->go)) {
        if (wt_job_is_cancelled(job)) return WT_OK;
        if (wt_job_should_stop(job)) {
            wt_job_continue_later(job);
            return WT_OK;
        }
        atomic_fetch_add(&c->n_steps, 1);
        sched_yield();
    }
    return WT_OK;
}

static wt_status note_steps(void *user, wt_job *job)
{
    (void)job;
    counting *c = user;
    c->n_wanted = atomic_load(&c->n_steps);
    return WT_OK;
}

static void a_running_function_gives_way_and_goes_on(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_PRIORITY);
    counting slow = {.n_wanted = 1000}, at = {.n_wanted = 0};
    wt_task first = submit(&r, count_up, &slow, 0);
    while (!atomic_load(&slow.n_steps)) sched_yield();
    wt_task urgent = submit(&r, note_steps, &at, 5); // would never start if the other kept the only thread
    assert_ok(wt_scheduler_wait(r.scheduler, urgent, WAIT_NS));
    atomic_store(&slow.go, true);
    assert_ok(wt_scheduler_wait(r.scheduler, first, WAIT_NS));
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r.scheduler, first, &info));
    assert_int_equal(info.n_yields, 1);
    assert_int_equal(atomic_load(&slow.n_calls), 2);
    assert_true(atomic_load(&slow.n_steps) >= 1000 && info.device_ns > 0);
    tear_down(&r);
}

static void cancel_and_the_watchdog_reach_a_running_function(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 2, NULL, 0, WT_POLICY_FIFO);
    counting endless = {.n_wanted = 0};
    wt_task task = submit(&r, count_up, &endless, 0);
    while (!atomic_load(&endless.n_steps)) sched_yield();
    assert_fails(wt_scheduler_wait(r.scheduler, task, MS), WT_ERR_TIMEOUT, "task 1: not over within 1000000 ns");
    assert_ok(wt_scheduler_cancel(r.scheduler, task));
    assert_int_equal(wt_scheduler_wait(r.scheduler, task, WAIT_NS), WT_ERR_CANCELLED);
    wt_task watched;
    assert_ok(wt_scheduler_submit(r.scheduler, &(wt_task_config){.partition = r.partition, .timeout_ns = 5 * MS,
                                  .work = {.run = count_up, .user = &endless}}, &watched, NULL));
    assert_fails(wt_scheduler_wait(r.scheduler, watched, WAIT_NS), WT_ERR_TIMEOUT,
                 "task 2: ended: the work did not end in time");
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r.scheduler, watched, &info));
    assert_true(info.state == WT_TASK_FAILED && info.ended_ns - info.started_ns >= 5 * MS);
    tear_down(&r);
}

static wt_status count_period(void *user, wt_job *job)
{
    (void)job;
    atomic_fetch_add((atomic_int *)user, 1);
    return WT_OK;
}

static void periods_run_without_anyone_calling(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_FIFO);
    atomic_int n = 0;
    wt_task task;
    assert_ok(wt_scheduler_submit(r.scheduler, &(wt_task_config){
        .partition = r.partition, .tier = WT_TIER_GUARANTEED, .cost_ns = MS / 10, .period_ns = MS, .n_jobs = 20,
        .work = {.run = count_period, .user = &n}}, &task, NULL));
    assert_ok(wt_scheduler_wait(r.scheduler, task, WAIT_NS));
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r.scheduler, task, &info));
    assert_int_equal(atomic_load(&n), 20);
    assert_true(info.ended_ns - info.admitted_ns >= 19 * MS); // none before its period
    tear_down(&r);
}

static wt_status fail_with(void *user, wt_job *job)
{
    (void)job;
    return *(wt_status *)user;
}

static void the_status_of_a_function_is_that_of_its_task(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_FIFO);
    wt_status statuses[] = {WT_OK, WT_ERR_FILE, WT_ERR_CANCELLED};
    for (int k = 0; k < 3; k++)
        assert_int_equal(wt_scheduler_wait(r.scheduler, submit(&r, fail_with, &statuses[k], 0), WAIT_NS), statuses[k]);
    wt_task none = submit(&r, NULL, NULL, 0);
    assert_int_equal(wt_scheduler_wait(r.scheduler, none, WAIT_NS), WT_ERR_BAD_ARG);
    tear_down(&r);
}

static void destroy_ends_what_is_running_and_ready(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 2, NULL, 0, WT_POLICY_FIFO);
    counting endless = {.n_wanted = 0};
    wt_task tasks[10];
    for (int k = 0; k < 10; k++) tasks[k] = submit(&r, count_up, &endless, 0);
    wt_cpu_executor_destroy(r.workers);
    for (int k = 0; k < 10; k++) assert_int_equal(wt_scheduler_wait(r.scheduler, tasks[k], 0), WT_ERR_CANCELLED);
    wt_scheduler_destroy(r.scheduler);
    wt_cpu_executor_destroy(NULL);
}

// ---- graphs

typedef struct step {
    counting *c;
    int n;
} step;

/// Counts, and stays until it may go.
static void take_step(const void *args, int item)
{
    const step *s = args;
    if (item == 0) atomic_fetch_add(&s->c->n_calls, 1);
    atomic_fetch_add(&s->c->n_steps, s->n);
    while (s->n == 1 && !atomic_load(&s->c->go)) sched_yield();
}

static wt_graph *record_steps(wt_device *device, counting *c, wt_buffer *buffer)
{
    wt_stream *stream;
    wt_graph *graph;
    assert_ok(wt_stream_create(device, NULL, &stream));
    assert_ok(wt_graph_begin(stream, &graph));
    for (int n = 1; n <= 3; n++) assert_ok(wt_stream_run(stream, take_step, &(step){c, n}, sizeof(step), 2));
    assert_ok(wt_stream_fill(stream, buffer, 0, 7, 16));
    assert_ok(wt_stream_copy(stream, buffer, 16, buffer, 0, 16));
    assert_ok(wt_graph_end(graph));
    wt_stream_destroy(stream);
    return graph;
}

static wt_task submit_graph(rig *r, wt_graph *graph)
{
    wt_task task;
    assert_ok(wt_scheduler_submit(r->scheduler, &(wt_task_config){.partition = r->partition, .work = {.graph = graph}},
                                  &task, NULL));
    return task;
}

static void a_graph_runs_and_stops_between_its_nodes(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_PRIORITY);
    counting c = {.n_wanted = 0}, at = {.n_wanted = 0};
    wt_device *device;
    wt_buffer *buffer;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_buffer_create(device, WT_MEMORY_PINNED, 32, &buffer));
    wt_graph *graph = record_steps(device, &c, buffer);
    wt_task first = submit_graph(&r, graph);
    while (!atomic_load(&c.n_steps)) sched_yield(); // inside node 0
    wt_task urgent = submit(&r, note_steps, &at, 5);
    atomic_store(&c.go, true);
    assert_ok(wt_scheduler_wait(r.scheduler, urgent, WAIT_NS));
    assert_ok(wt_scheduler_wait(r.scheduler, first, WAIT_NS));
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r.scheduler, first, &info));
    assert_int_equal(info.n_yields, 1); // behind node 0, and it went on with node 1
    assert_int_equal(atomic_load(&c.n_calls), 3);
    assert_int_equal(atomic_load(&c.n_steps), 2 * (1 + 2 + 3));
    for (int k = 0; k < 32; k++) assert_int_equal(((unsigned char *)wt_buffer_host(buffer))[k], 7);
    // Cancelled half-way it begins anew.
    atomic_store(&c.go, false);
    atomic_store(&c.n_calls, 0);
    wt_task second = submit_graph(&r, graph);
    while (!atomic_load(&c.n_calls)) sched_yield();
    assert_ok(wt_scheduler_cancel(r.scheduler, second));
    atomic_store(&c.go, true);
    assert_int_equal(wt_scheduler_wait(r.scheduler, second, WAIT_NS), WT_ERR_CANCELLED);
    assert_int_equal(atomic_load(&c.n_calls), 1);
    assert_ok(wt_scheduler_wait(r.scheduler, submit_graph(&r, graph), WAIT_NS));
    assert_int_equal(atomic_load(&c.n_calls), 4);
    tear_down(&r);
    wt_graph_destroy(graph);
    wt_buffer_destroy(buffer);
    wt_device_close(device);
}

// An urgent one overtakes another half-way through the same graph; then two on two threads, node by node in turns.
static void tasks_that_share_a_graph_each_run_all_of_it(void **state)
{
    (void)state;
    counting c = {.n_wanted = 0};
    wt_device *device;
    wt_buffer *buffer;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_buffer_create(device, WT_MEMORY_PINNED, 32, &buffer));
    wt_graph *graph = record_steps(device, &c, buffer);
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        rig r;
        set_up(&r, n_threads, NULL, 0, WT_POLICY_PRIORITY);
        atomic_store(&c.go, false);
        atomic_store(&c.n_calls, 0);
        wt_task tasks[2];
        for (int k = 0; k < 2; k++) {
            assert_ok(wt_scheduler_submit(r.scheduler, &(wt_task_config){.partition = r.partition, .priority = k,
                                          .work = {.graph = graph}}, &tasks[k], NULL));
            while (!atomic_load(&c.n_calls)) sched_yield(); // inside node 0
        }
        atomic_store(&c.go, true);
        for (int k = 0; k < 2; k++) assert_ok(wt_scheduler_wait(r.scheduler, tasks[k], WAIT_NS));
        assert_int_equal(atomic_load(&c.n_calls), 2 * 3);
        tear_down(&r);
    }
    wt_graph_destroy(graph);
    wt_buffer_destroy(buffer);
    wt_device_close(device);
}

static wt_status stay(void *user, wt_job *job)
{
    (void)job;
    while (!atomic_load(&((counting *)user)->go)) sched_yield();
    return WT_OK;
}

static wt_task_state state_of(rig *r, wt_task task)
{
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(r->scheduler, task, &info));
    return info.state;
}

static wt_task submit_first(rig *r, wt_graph *graph, counting *c)
{
    atomic_store(&c->go, false);
    atomic_store(&c->n_calls, 0);
    wt_task task = submit_graph(r, graph);
    while (!atomic_load(&c->n_calls)) sched_yield();
    return task;
}

/// A graph that gives way to another task; in the line, half-way, it is cancelled if it `is_cancelled`.
static void give_way(rig *r, wt_graph *graph, counting *c, bool is_cancelled)
{
    counting hold = {.n_wanted = 0};
    wt_task first = submit_first(r, graph, c), urgent = submit(r, stay, &hold, 5);
    atomic_store(&c->go, true);
    while (state_of(r, urgent) != WT_TASK_RUNNING) sched_yield(); // so the first is in the line
    if (is_cancelled) assert_ok(wt_scheduler_cancel(r->scheduler, first));
    atomic_store(&hold.go, true);
    assert_ok(wt_scheduler_wait(r->scheduler, urgent, WAIT_NS));
    assert_int_equal(wt_scheduler_wait(r->scheduler, first, WAIT_NS), is_cancelled ? WT_ERR_CANCELLED : WT_OK);
    assert_int_equal(atomic_load(&c->n_calls), is_cancelled ? 1 : 3);
}

// Whoever was cancelled in the line, half-way, is no trouble to those that come after.
static void graphs_that_gave_way_and_were_cancelled_are_forgotten(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_PRIORITY);
    counting c = {.n_wanted = 0};
    wt_device *device;
    wt_buffer *buffer;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_buffer_create(device, WT_MEMORY_PINNED, 32, &buffer));
    wt_graph *graph = record_steps(device, &c, buffer);
    for (int k = 0; k < 20; k++) give_way(&r, graph, &c, k < 19);
    tear_down(&r);
    wt_graph_destroy(graph);
    wt_buffer_destroy(buffer);
    wt_device_close(device);
}

// ---- a function that does not end

static void note_hang(void *user, const wt_hang *hang)
{
    counting *c = user;
    c->n_wanted = (int)(hang->running_ns / MS);
    atomic_fetch_add(&c->n_calls, 1);
}

static wt_status spin_until(void *user, wt_job *job)
{
    (void)job; // deaf to what it is asked
    while (!atomic_load((atomic_bool *)user)) sched_yield();
    return WT_OK;
}

static void a_deaf_function_is_reported_and_blocks_its_partition(void **state)
{
    (void)state;
    rig r;
    set_up(&r, 1, NULL, 0, WT_POLICY_FIFO);
    counting hangs = {.n_wanted = 0};
    atomic_bool go = false, open = true;
    wt_cpu_executor *workers;
    int partition;
    assert_ok(wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = r.scheduler}, &workers));
    assert_ok(
        wt_scheduler_add_partition(r.scheduler,
                                   &(wt_scheduler_partition_config){.name = "deaf",
                                                                    .executor = wt_cpu_executor_callbacks(workers),
                                                                    .hang_ns = 5 * MS,
                                                                    .hung = note_hang,
                                                                    .hung_user = &hangs},
                                   &partition));
    wt_task_config config = {.partition = partition, .work = {.run = spin_until, .user = &go}};
    wt_task deaf, behind;
    assert_ok(wt_scheduler_submit(r.scheduler, &config, &deaf, NULL));
    for (int k = 0; k < 5000 && !atomic_load(&hangs.n_calls); k++) nanosleep(&(struct timespec){0, MS}, NULL);
    assert_int_equal(atomic_load(&hangs.n_calls), 1);
    assert_true(hangs.n_wanted >= 5);
    assert_ok(wt_scheduler_cancel(r.scheduler, deaf)); // it does not hear that either
    wt_admission admission;
    config.work.user = &open;
    assert_ok(wt_scheduler_submit(r.scheduler, &config, &behind, &admission));
    assert_true(admission.outcome == WT_QUEUED && admission.reason == WT_REASON_HUNG);
    config.tier = WT_TIER_GUARANTEED;
    assert_ok(wt_scheduler_evaluate(r.scheduler, &config, &admission));
    assert_true(admission.outcome == WT_REJECTED && admission.reason == WT_REASON_HUNG);
    assert_ok(wt_scheduler_wait(r.scheduler, submit(&r, spin_until, &open, 0), WAIT_NS)); // another partition goes on
    assert_int_equal(wt_scheduler_wait(r.scheduler, behind, 2 * MS), WT_ERR_TIMEOUT);
    assert_int_equal(atomic_load(&hangs.n_calls), 1);
    atomic_store(&go, true);
    assert_int_equal(wt_scheduler_wait(r.scheduler, deaf, WAIT_NS), WT_ERR_CANCELLED);
    assert_ok(wt_scheduler_wait(r.scheduler, behind, WAIT_NS));
    wt_cpu_executor_destroy(workers);
    tear_down(&r);
}

#ifdef WT_SANITIZED
enum { N_MADE = 300 }; // a sanitizer's threads cost more
#else
enum { N_MADE = 10000 };
#endif

static void many_of_them_leave_nothing(void **state)
{
    (void)state;
    failing_alloc_start(-1);
    for (int k = 0; k < N_MADE; k++) {
        rig r;
        assert_ok(wt_scheduler_create(&(wt_scheduler_config){.max_tasks = 4, .history = 2}, &r.scheduler));
        assert_ok(wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = r.scheduler}, &r.workers));
        assert_ok(wt_scheduler_add_partition(
            r.scheduler, &(wt_scheduler_partition_config){.executor = wt_cpu_executor_callbacks(r.workers)},
            &r.partition));
        wt_task task;
        wt_status none = WT_OK;
        assert_ok(wt_scheduler_submit(r.scheduler, &(wt_task_config){.work = {.run = fail_with, .user = &none}}, &task,
                                      NULL));
        tear_down(&r); // with the task in flight, or ended
    }
    failing_alloc_counts counts = failing_alloc_stop();
    assert_int_equal(counts.n_live, 0);
}

static void tasks_of_another_scheduler_are_refused(void **state)
{
    (void)state;
    rig r, other;
    set_up(&r, 1, NULL, 0, WT_POLICY_FIFO);
    set_up(&other, 1, NULL, 0, WT_POLICY_FIFO);
    assert_ok(wt_scheduler_add_partition(
        other.scheduler, &(wt_scheduler_partition_config){.executor = wt_cpu_executor_callbacks(r.workers)},
        &other.partition));
    int cpu = -1;
    assert_int_equal(wt_scheduler_wait(other.scheduler, submit(&other, tell_cpu, &cpu, 0), WAIT_NS), WT_ERR_BAD_ARG);
    tear_down(&other);
    tear_down(&r);
}

static wt_status create(void *user)
{
    rig *r = user;
    return wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = r->scheduler}, &r->workers);
}

static void destroy(void *user) { wt_cpu_executor_destroy(((rig *)user)->workers); }

static void it_survives_failing_allocations(void **state)
{
    (void)state;
    rig r = {0};
    assert_ok(wt_scheduler_create(NULL, &r.scheduler));
    assert_true(assert_survives_failing_alloc(create, destroy, &r) >= 3); // handle, processors, progress
    wt_scheduler_destroy(r.scheduler);
}

static void figures_out_of_range_are_refused(void **state)
{
    (void)state;
    wt_scheduler *s;
    wt_cpu_executor *e;
    assert_ok(wt_scheduler_create(NULL, &s));
    const int cpus[] = {0, -1};
    const wt_cpu_executor_config bad[] = {
        {.n_threads = 1},
        {.scheduler = s, .n_threads = -1},
        {.scheduler = s, .n_threads = 65},
        {.scheduler = s, .n_cpus = 2},
        {.scheduler = s, .n_cpus = 2, .cpus = cpus},
        {.scheduler = s, .nice = 20},
        {.scheduler = s, .realtime_priority = 100},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_int_equal(wt_cpu_executor_create(&bad[k], &e), WT_ERR_BAD_ARG);
        assert_null(e);
    }
    assert_fails(wt_cpu_executor_create(&bad[4], &e), WT_ERR_BAD_ARG, "cpu executor: cpu -1, want 0..1023");
    wt_scheduler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_stay_on_their_processors),
        cmocka_unit_test(a_running_function_gives_way_and_goes_on),
        cmocka_unit_test(cancel_and_the_watchdog_reach_a_running_function),
        cmocka_unit_test(periods_run_without_anyone_calling),
        cmocka_unit_test(the_status_of_a_function_is_that_of_its_task),
        cmocka_unit_test(destroy_ends_what_is_running_and_ready),
        cmocka_unit_test(a_graph_runs_and_stops_between_its_nodes),
        cmocka_unit_test(tasks_that_share_a_graph_each_run_all_of_it),
        cmocka_unit_test(graphs_that_gave_way_and_were_cancelled_are_forgotten),
        cmocka_unit_test(a_deaf_function_is_reported_and_blocks_its_partition),
        cmocka_unit_test(many_of_them_leave_nothing),
        cmocka_unit_test(tasks_of_another_scheduler_are_refused),
        cmocka_unit_test(it_survives_failing_allocations),
        cmocka_unit_test(figures_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
