// States, dependencies, history, misuse and threads of the scheduler; test_scheduler_admission.c and _time.c have the
// rest.
#include "support/failing_alloc.h"
#include "support/testing.h"
#include "support/virtual_executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MS = 1000000 };

static wt_task_state state_of(virtual_executor *v, wt_task task) { return virtual_info(v, task).state; }

// One task in each state. Of the two that have memory, one runs and one is ready; the third queues for it.
typedef struct one_of_each {
    virtual_executor *v;
    int partition;
    virtual_job jobs[WT_N_TASK_STATES];
    wt_task tasks[WT_N_TASK_STATES];
} one_of_each;

static one_of_each *make_one_of_each(void)
{
    one_of_each *all = calloc(1, sizeof *all);
    all->v = virtual_create(NULL);
    all->partition = virtual_partition(all->v, (wt_scheduler_partition_config){.name = "p", .memory_bytes = 100}, true);
    for (int k = 0; k < WT_N_TASK_STATES; k++) all->jobs[k] = (virtual_job){.cost_ns = MS, .id = k};
    all->jobs[WT_TASK_FAILED].status = WT_ERR_CUDA;
    static const wt_task_state order[] = {WT_TASK_COMPLETED, WT_TASK_FAILED, WT_TASK_CANCELLED, WT_TASK_RUNNING,
                                          WT_TASK_ADMITTED,  WT_TASK_QUEUED, WT_TASK_PENDING};
    for (int k = 0; k < WT_N_TASK_STATES; k++) {
        wt_task_state state = order[k];
        bool small = state == WT_TASK_PENDING;
        all->tasks[state] = virtual_submit(all->v, &(wt_task_config){.partition = all->partition,
                                                                     .held = small,
                                                                     .memory_bytes = small ? 1 : 50,
                                                                     .work.user = &all->jobs[state]});
        if (state == WT_TASK_CANCELLED) assert_ok(wt_scheduler_cancel(all->v->scheduler, all->tasks[state]));
        if (k < 3) virtual_play(all->v, INT64_MAX);
    }
    return all;
}

static void free_one_of_each(one_of_each *all)
{
    virtual_destroy(all->v);
    free(all);
}

static void a_task_passes_through_every_state(void **test)
{
    (void)test;
    one_of_each *all = make_one_of_each();
    for (int k = 0; k < WT_N_TASK_STATES; k++) assert_int_equal(state_of(all->v, all->tasks[k]), k);
    assert_int_equal(virtual_info(all->v, all->tasks[WT_TASK_QUEUED]).waits_for, WT_REASON_MEMORY);
    assert_int_equal(virtual_info(all->v, all->tasks[WT_TASK_QUEUED]).position, 0);
    assert_int_equal(virtual_info(all->v, all->tasks[WT_TASK_FAILED]).status, WT_ERR_CUDA);
    assert_ok(wt_scheduler_release(all->v->scheduler, all->tasks[WT_TASK_PENDING]));
    assert_int_equal(state_of(all->v, all->tasks[WT_TASK_PENDING]), WT_TASK_QUEUED);
    assert_int_equal(virtual_info(all->v, all->tasks[WT_TASK_PENDING]).position, 1);
    virtual_play(all->v, INT64_MAX);
    for (int k = WT_TASK_PENDING; k <= WT_TASK_RUNNING; k++)
        assert_int_equal(state_of(all->v, all->tasks[k]), WT_TASK_COMPLETED);
    wt_scheduler_partition_stats stats = virtual_stats(all->v, all->partition);
    assert_true(stats.n_completed == 5 && stats.n_failed == 1 && stats.n_cancelled == 1 && stats.memory_bytes == 0);
    assert_int_equal(stats.peak_memory_bytes, 100);
    assert_int_equal(stats.device_ns, 6 * MS);
    free_one_of_each(all);
}

static void what_is_not_allowed_in_a_state_is_refused(void **test)
{
    (void)test;
    one_of_each *all = make_one_of_each();
    wt_scheduler *s = all->v->scheduler;
    for (int k = 0; k < WT_N_TASK_STATES; k++) {
        wt_task task = all->tasks[k];
        if (k != WT_TASK_RUNNING) {
            assert_int_equal(wt_scheduler_finish(s, task, WT_OK, 1), WT_ERR_STATE);
            assert_int_equal(wt_scheduler_yield(s, task, 1), WT_ERR_STATE);
        }
        if (k != WT_TASK_PENDING) {
            assert_int_equal(wt_scheduler_release(s, task), WT_ERR_STATE);
            assert_int_equal(wt_scheduler_depend(s, task, all->tasks[WT_TASK_RUNNING]), WT_ERR_STATE);
        }
        if (k >= WT_TASK_COMPLETED) assert_int_equal(wt_scheduler_cancel(s, task), WT_ERR_STATE);
        int64_t start_ns;
        if (k == WT_TASK_PENDING || k >= WT_TASK_COMPLETED)
            assert_int_equal(wt_scheduler_predict(s, task, &start_ns), WT_ERR_STATE);
        assert_int_equal(state_of(all->v, task), k);
    }
    assert_fails(wt_scheduler_finish(s, all->tasks[WT_TASK_COMPLETED], WT_OK, 1), WT_ERR_STATE,
                 "task 1: is completed, not started");
    assert_fails(wt_scheduler_depend(s, all->tasks[WT_TASK_PENDING], all->tasks[WT_TASK_FAILED]), WT_ERR_STATE,
                 "task 2: is failed; nothing can wait for it");
    assert_ok(wt_scheduler_depend(s, all->tasks[WT_TASK_PENDING], all->tasks[WT_TASK_COMPLETED]));
    assert_int_equal(wt_scheduler_remove_partition(s, all->partition), WT_ERR_STATE);
    free_one_of_each(all);
}

static void cancel_ends_a_task_in_every_live_state(void **test)
{
    (void)test;
    for (int k = 0; k <= WT_TASK_RUNNING; k++) {
        one_of_each *all = make_one_of_each();
        assert_ok(wt_scheduler_cancel(all->v->scheduler, all->tasks[k]));
        assert_int_equal(state_of(all->v, all->tasks[k]), WT_TASK_CANCELLED);
        assert_int_equal(wt_scheduler_wait(all->v->scheduler, all->tasks[k], 0), WT_ERR_CANCELLED);
        virtual_play(all->v, INT64_MAX);
        assert_int_equal(virtual_stats(all->v, all->partition).n_cancelled, 2);
        if (k != WT_TASK_PENDING) assert_ok(wt_scheduler_cancel(all->v->scheduler, all->tasks[WT_TASK_PENDING]));
        assert_int_equal(virtual_stats(all->v, all->partition).memory_bytes, 0);
        assert_ok(wt_scheduler_remove_partition(all->v->scheduler, all->partition));
        free_one_of_each(all);
    }
}

static void a_waiting_period_can_be_cancelled(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task task = virtual_submit(
        v, &(wt_task_config){
               .partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = MS, .period_ns = 10 * MS, .work.user = &job});
    virtual_play(v, 25 * MS);
    assert_int_equal(virtual_info(v, task).n_jobs, 3);
    assert_int_equal(virtual_stats(v, p).n_waiting, 1);
    assert_ok(wt_scheduler_cancel(v->scheduler, task));
    assert_int_equal(virtual_stats(v, p).n_waiting, 0);
    virtual_play(v, INT64_MAX);
    assert_int_equal(v->n_log, 3);
    assert_true(virtual_stats(v, p).time_share == 0);
    virtual_destroy(v);
}

static void a_start_that_fails_fails_the_task(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    v->start_status = WT_ERR_CUDA;
    wt_task task = virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    assert_int_equal(state_of(v, task), WT_TASK_FAILED);
    assert_int_equal(virtual_info(v, task).status, WT_ERR_CUDA);
    virtual_destroy(v);
}

static void the_watchdog_ends_a_run_that_lasts_too_long(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job slow = {.cost_ns = 50 * MS}, quick = {.cost_ns = 4 * MS};
    wt_task late = virtual_submit(v, &(wt_task_config){.partition = p, .timeout_ns = 5 * MS, .work.user = &slow});
    wt_task good = virtual_submit(v, &(wt_task_config){.partition = p, .timeout_ns = 5 * MS, .work.user = &quick});
    virtual_play(v, INT64_MAX);
    assert_int_equal(virtual_info(v, late).ended_ns, 5 * MS);
    assert_int_equal(virtual_info(v, good).ended_ns, 9 * MS);
    assert_int_equal(state_of(v, late), WT_TASK_FAILED);
    assert_int_equal(virtual_info(v, late).status, WT_ERR_TIMEOUT);
    assert_int_equal(state_of(v, good), WT_TASK_COMPLETED);
    assert_int_equal(virtual_stats(v, p).n_timeouts, 1);
    virtual_destroy(v);
}

static void wait_inside(void *user, wt_task task, wt_task_state state, wt_status status)
{
    (void)state, (void)status;
    virtual_executor *v = user;
    assert_fails(wt_scheduler_wait(v->scheduler, task, -1), WT_ERR_STATE,
                 "task 1: cannot be waited for inside a callback");
    assert_int_equal(wt_scheduler_remove_partition(v->scheduler, 0), WT_ERR_STATE);
    virtual_job *job = calloc(1, sizeof *job); // and yet a callback may submit
    *job = (virtual_job){.cost_ns = MS};
    (void)virtual_submit(v, &(wt_task_config){.work.user = job, .done = NULL});
}

static void a_callback_may_call_but_not_wait(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    (void)virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task task = virtual_submit(v, &(wt_task_config){.work.user = &job, .done = wait_inside, .done_user = v});
    virtual_play(v, MS);
    assert_ok(wt_scheduler_wait(v->scheduler, task, -1));
    free(v->running[0].job);
    virtual_destroy(v);
}

// ---- dependencies

static void a_cycle_of_dependencies_is_refused(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task chain[100];
    for (int k = 0; k < 100; k++) {
        chain[k] = virtual_submit(v, &(wt_task_config){.partition = p, .held = true, .work.user = &job});
        if (k) assert_ok(wt_scheduler_depend(v->scheduler, chain[k], chain[k - 1]));
    }
    assert_fails(wt_scheduler_depend(v->scheduler, chain[0], chain[99]), WT_ERR_BAD_ARG,
                 "task 1: waiting for task 100 would close a cycle");
    assert_int_equal(wt_scheduler_depend(v->scheduler, chain[7], chain[7]), WT_ERR_BAD_ARG);
    assert_ok(wt_scheduler_depend(v->scheduler, chain[99], chain[0]));
    for (int k = 99; k >= 0; k--) assert_ok(wt_scheduler_release(v->scheduler, chain[k]));
    virtual_play(v, INT64_MAX);
    for (int k = 0; k < 100; k++) assert_int_equal(virtual_info(v, chain[k]).ended_ns, (k + 1) * MS);
    virtual_destroy(v);
}

static void a_failure_ends_all_that_wait_for_it(void **test)
{
    (void)test;
    enum { LENGTH = 5000 };
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        virtual_executor *v = virtual_create(&(wt_scheduler_config){.history = 3 * LENGTH});
        int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
        virtual_job bad = {.cost_ns = MS, .status = WT_ERR_CUDA}, job = {.cost_ns = MS};
        wt_task first = virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &bad}), last = first, aside;
        for (int k = 0; k < LENGTH; k++)
            last =
                virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job, .after = &last, .n_after = 1});
        aside = virtual_submit(
            v, &(wt_task_config){.partition = p, .work.user = &job, .after = &(wt_task){0}, .n_after = 0});
        if (cancelled) assert_ok(wt_scheduler_cancel(v->scheduler, first));
        virtual_play(v, INT64_MAX);
        assert_int_equal(state_of(v, last), cancelled ? WT_TASK_CANCELLED : WT_TASK_FAILED);
        assert_int_equal(virtual_info(v, last).status, cancelled ? WT_ERR_CANCELLED : WT_ERR_CUDA);
        assert_int_equal(state_of(v, aside), WT_TASK_COMPLETED);
        assert_int_equal(v->n_log, 2);
        wt_task none;
        assert_fails(wt_scheduler_submit(v->scheduler, &(wt_task_config){.name = "late", .partition = p,
                                         .work.user = &job, .after = &last, .n_after = 1}, &none, NULL),
                     WT_ERR_REJECTED, "task late: rejected: dependencies");
        virtual_destroy(v);
    }
}

// ---- history and handles

static void the_history_is_bounded(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.max_tasks = 4, .history = 10});
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task tasks[1000];
    for (int k = 0; k < 1000; k++) {
        tasks[k] = virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
        virtual_play(v, INT64_MAX);
    }
    wt_task_info info;
    for (int k = 0; k < 1000; k++)
        assert_int_equal(wt_scheduler_get_task(v->scheduler, tasks[k], &info), k < 990 ? WT_ERR_BAD_ARG : WT_OK);
    assert_fails(wt_scheduler_get_task(v->scheduler, tasks[0], &info), WT_ERR_BAD_ARG,
                 "scheduler: task 1 has ended and left the history of 10");
    for (int k = 0; k < 4; k++) (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    wt_task fifth;
    assert_fails(wt_scheduler_submit(v->scheduler, &(wt_task_config){.partition = p, .work.user = &job}, &fifth, NULL),
                 WT_ERR_REJECTED, "task : rejected: the scheduler holds as many tasks as it has room for");
    virtual_destroy(v);
}

// The slot of a task is kept while a callback about it is under way; those that ended meanwhile fill all others.
static void fill_history(void *user, wt_task task, wt_task_state state, wt_status status)
{
    (void)task, (void)state, (void)status;
    virtual_executor *v = user;
    wt_task held;
    while (!wt_scheduler_submit(v->scheduler, &(wt_task_config){.held = true}, &held, NULL))
        assert_ok(wt_scheduler_cancel(v->scheduler, held));
}

static void a_full_history_makes_room_again(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.max_tasks = 4, .history = 10});
    (void)virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task first = virtual_submit(v, &(wt_task_config){.work.user = &job, .done = fill_history, .done_user = v}),
            after;
    virtual_play(v, INT64_MAX);
    const wt_task_config late = {.work.user = &job, .after = &first, .n_after = 1}; // of what makes the room
    assert_fails(wt_scheduler_submit(v->scheduler, &late, &after, NULL), WT_ERR_BAD_ARG,
                 "scheduler: task 1 has ended and left the history of 10");
    for (int k = 0; k < 4; k++) (void)virtual_submit(v, &(wt_task_config){.work.user = &job});
    virtual_play(v, INT64_MAX);
    assert_int_equal(virtual_stats(v, 0).n_completed, 5);
    virtual_destroy(v);
}

static void handles_of_others_are_refused(void **test)
{
    (void)test;
    virtual_executor *a = virtual_create(NULL), *b = virtual_create(NULL);
    virtual_job job = {.cost_ns = MS};
    int p = virtual_partition(a, (wt_scheduler_partition_config){0}, true);
    wt_task task = virtual_submit(a, &(wt_task_config){.partition = p, .work.user = &job});
    const wt_task forged[] = {task, {0}, {1, 1u << 31, task.salt}, {UINT64_MAX, task.slot, task.salt},
                              {task.serial + 1, task.slot, task.salt}};
    for (int k = 0; k < 5; k++) {
        wt_scheduler *s = k ? a->scheduler : b->scheduler;
        wt_task_info info;
        int64_t start_ns;
        assert_int_equal(wt_scheduler_get_task(s, forged[k], &info), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_cancel(s, forged[k]), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_finish(s, forged[k], WT_OK, 0), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_yield(s, forged[k], 0), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_release(s, forged[k]), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_wait(s, forged[k], 0), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_predict(s, forged[k], &start_ns), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_depend(s, forged[k], forged[k]), WT_ERR_BAD_ARG);
    }
    virtual_destroy(a);
    a = virtual_create(NULL); // perhaps at the same address: the salt still differs
    wt_task_info info;
    assert_fails(wt_scheduler_get_task(a->scheduler, task, &info), WT_ERR_BAD_ARG,
                 "scheduler: not a task of this scheduler");
    virtual_destroy(a);
    virtual_destroy(b);
}

static void figures_out_of_range_are_refused(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    const wt_task_config bad[] = {
        {.partition = -1},          {.partition = 7},           {.tier = (wt_tier)9},     {.cost_ns = -1},
        {.cost_ns = INT64_MAX},     {.period_ns = -5},          {.deadline_ns = -5},      {.timeout_ns = INT64_MIN},
        {.memory_bytes = SIZE_MAX}, {.bandwidth_share = -0.1},  {.bandwidth_share = 1.5}, {.weight = -1},
        {.flow = 64},               {.kind = -1},               {.n_after = -1},          {.n_after = 3},
        {.n_jobs = 4},              {.period_ns = 1, .n_jobs = -1}, {.skip_missed = true}, {.start_ns = -1},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        wt_task task;
        wt_admission a;
        assert_int_equal(wt_scheduler_submit(v->scheduler, &bad[k], &task, NULL), WT_ERR_BAD_ARG);
        assert_int_equal(wt_scheduler_evaluate(v->scheduler, &bad[k], &a), WT_ERR_BAD_ARG);
    }
    virtual_job job = {.cost_ns = MS};
    wt_task task = virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    assert_fails(wt_scheduler_finish(v->scheduler, task, WT_OK, -1), WT_ERR_BAD_ARG, "task 1: device time -1 ns");
    assert_int_equal(wt_scheduler_finish(v->scheduler, task, WT_OK, INT64_MAX), WT_ERR_BAD_ARG);
    assert_int_equal(state_of(v, task), WT_TASK_RUNNING);
    assert_int_equal(virtual_stats(v, p).n_submitted, 1);
    wt_scheduler *none;
    assert_fails(wt_scheduler_create(&(wt_scheduler_config){.max_tasks = -1}, &none), WT_ERR_BAD_ARG,
                 "scheduler: max_tasks -1, want 0..1048576");
    assert_null(none);
    int other;
    assert_fails(wt_scheduler_add_partition(v->scheduler, &(wt_scheduler_partition_config){.name = "x"}, &other),
                 WT_ERR_BAD_ARG, "partition x: the executor has no start");
    virtual_destroy(v);
}

static wt_status create_one(void *user) { return wt_scheduler_create(&(wt_scheduler_config){.max_tasks = 9}, user); }
static void destroy_one(void *user) { wt_scheduler_destroy(*(wt_scheduler **)user); }

static void survives_memory_running_out(void **test)
{
    (void)test;
    wt_scheduler *s;
    assert_true(assert_survives_failing_alloc(create_one, destroy_one, &s) > 5);
}

// ---- threads: an executor that hands tasks to whoever comes, and eight threads that call everything

enum { N_THREADS = 8, N_ROUNDS = 4000, N_SLOTS = 64 };

typedef struct crowd {
    wt_scheduler *scheduler;
    int partition;
    pthread_mutex_t mutex;
    wt_task started[N_THREADS * N_ROUNDS], known[N_SLOTS]; // started: also what a stranger has reported meanwhile
    int n_started;
    atomic_int n_done, n_submitted;
    atomic_bool stop;
} crowd;

static wt_status crowd_start(void *user, wt_task task, const wt_work *work)
{
    (void)work;
    crowd *c = user;
    pthread_mutex_lock(&c->mutex);
    c->started[c->n_started++] = task;
    pthread_mutex_unlock(&c->mutex);
    return WT_OK;
}

static void crowd_ask(void *user, wt_task task) { (void)user, (void)task; }

static void crowd_done(void *user, wt_task task, wt_task_state state, wt_status status)
{
    (void)task, (void)status;
    crowd *c = user;
    if (state >= WT_TASK_COMPLETED) atomic_fetch_add(&c->n_done, 1);
}

// Report one of the started tasks; false when there is none.
static bool crowd_report(crowd *c, bool yield)
{
    pthread_mutex_lock(&c->mutex);
    bool any = c->n_started > 0;
    wt_task task = any ? c->started[--c->n_started] : (wt_task){0};
    pthread_mutex_unlock(&c->mutex);
    if (any && yield) (void)!wt_scheduler_yield(c->scheduler, task, 1000);
    else if (any) (void)!wt_scheduler_finish(c->scheduler, task, WT_OK, 1000);
    return any;
}

static void crowd_submit(crowd *c, int k, int which)
{
    wt_task task, after;
    pthread_mutex_lock(&c->mutex);
    after = c->known[which];
    pthread_mutex_unlock(&c->mutex);
    const wt_task_config config = {.partition = c->partition, .tier = (wt_tier)(k % 3), .memory_bytes = 10,
                                   .cost_ns = k % 2 ? 1000 : 0, .priority = k % 7, .held = k % 11 == 0,
                                   .kind = 1 + k % 5,
                                   .after = &after, .n_after = k % 5 == 0 && after.serial, .done = crowd_done,
                                   .done_user = c, .timeout_ns = k % 13 ? 0 : 1000};
    if (wt_scheduler_submit(c->scheduler, &config, &task, NULL)) return;
    atomic_fetch_add(&c->n_submitted, 1);
    pthread_mutex_lock(&c->mutex);
    c->known[which] = task;
    pthread_mutex_unlock(&c->mutex);
}

static void *crowd_main(void *user)
{
    crowd *c = user;
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    for (int k = 0; k < N_ROUNDS; k++) {
        int which = (int)(N_SLOTS / 2 * (1 + noise(&seed))), verb = (int)(8 * (1 + noise(&seed)));
        wt_task_info info;
        wt_scheduler_partition_stats stats;
        wt_kind_cost cost;
        int64_t ns;
        int other;
        pthread_mutex_lock(&c->mutex);
        wt_task task = c->known[which], second = c->known[(which + 1) % N_SLOTS];
        pthread_mutex_unlock(&c->mutex);
        switch (verb) {
        case 0: (void)!wt_scheduler_cancel(c->scheduler, task); break;
        case 1: (void)!wt_scheduler_release(c->scheduler, task); break;
        case 2: (void)!wt_scheduler_depend(c->scheduler, task, second); break;
        case 3: (void)!wt_scheduler_get_task(c->scheduler, task, &info); break;
        case 4: (void)!wt_scheduler_get_partition(c->scheduler, c->partition, &stats); break;
        case 5: (void)!wt_scheduler_predict(c->scheduler, task, &ns); break;
        case 6: (void)!wt_scheduler_poll(c->scheduler, &ns); break;
        case 7: (void)!wt_scheduler_wait(c->scheduler, task, 1000); break;
        case 8: (void)!wt_scheduler_get_cost(c->scheduler, c->partition, 1, &cost); break;
        case 9: (void)!wt_scheduler_finish(c->scheduler, task, WT_ERR_CUDA, 5); break; // not ours to report
        case 10:
            if (!wt_scheduler_add_partition(c->scheduler, &(wt_scheduler_partition_config){
                                            .executor = {.start = crowd_start, .user = c}}, &other))
                (void)!wt_scheduler_remove_partition(c->scheduler, other);
            break;
        case 11: (void)crowd_report(c, true); break;
        case 12: (void)crowd_report(c, false); break;
        default: crowd_submit(c, k, which);
        }
    }
    return NULL;
}

static void eight_threads_may_call_everything(void **test)
{
    (void)test;
    static crowd c = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[N_THREADS];
    assert_ok(wt_scheduler_create(&(wt_scheduler_config){.max_tasks = 500, .history = 50, .timer_thread = true},
                                  &c.scheduler));
    assert_ok(wt_scheduler_add_partition(c.scheduler, &(wt_scheduler_partition_config){
        .policy = WT_POLICY_PRIORITY, .n_lanes = 4, .memory_bytes = 200,
        .executor = {&c, crowd_start, crowd_ask, crowd_ask}}, &c.partition));
    for (int k = 0; k < N_THREADS; k++) assert_int_equal(pthread_create(&threads[k], NULL, crowd_main, &c), 0);
    for (int k = 0; k < N_THREADS; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < N_SLOTS; k++) (void)!wt_scheduler_release(c.scheduler, c.known[k]);
    for (int idle = 0; idle < 1000;) idle = crowd_report(&c, false) ? 0 : idle + 1;
    // What is left are held tasks no one remembers; tasks reported by a stranger are in `started` and were refused.
    wt_scheduler_partition_stats stats;
    assert_ok(wt_scheduler_get_partition(c.scheduler, c.partition, &stats));
    assert_int_equal(stats.n_queued + stats.n_ready + stats.n_running, 0);
    assert_int_equal(stats.memory_bytes, 0);
    assert_int_equal(atomic_load(&c.n_done) + stats.n_pending, atomic_load(&c.n_submitted));
    assert_int_equal(stats.n_completed + stats.n_failed + stats.n_cancelled, atomic_load(&c.n_done));
    wt_scheduler_destroy(c.scheduler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_passes_through_every_state),
        cmocka_unit_test(what_is_not_allowed_in_a_state_is_refused),
        cmocka_unit_test(cancel_ends_a_task_in_every_live_state),
        cmocka_unit_test(a_waiting_period_can_be_cancelled),
        cmocka_unit_test(a_start_that_fails_fails_the_task),
        cmocka_unit_test(the_watchdog_ends_a_run_that_lasts_too_long),
        cmocka_unit_test(a_callback_may_call_but_not_wait),
        cmocka_unit_test(a_cycle_of_dependencies_is_refused),
        cmocka_unit_test(a_failure_ends_all_that_wait_for_it),
        cmocka_unit_test(the_history_is_bounded),
        cmocka_unit_test(a_full_history_makes_room_again),
        cmocka_unit_test(handles_of_others_are_refused),
        cmocka_unit_test(figures_out_of_range_are_refused),
        cmocka_unit_test(survives_memory_running_out),
        cmocka_unit_test(eight_threads_may_call_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
