// What the scheduler accepts, queues and rejects; by deadlines: test_scheduler_time.c.
#include "support/testing.h"
#include "support/virtual_executor.h"

enum { MS = 1000000 };

static void what_does_not_fit_is_rejected_with_its_reason(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){.memory_bytes = 100, .bandwidth_share = 0.5}, true);
    int stiff = virtual_partition(v, (wt_scheduler_partition_config){.blocking_ns = 2 * MS}, false);
    const wt_tier g = WT_TIER_GUARANTEED;
    const struct {
        wt_task_config config;
        wt_reason reason;
    } cases[] = {
        {{.partition = p, .memory_bytes = 101}, WT_REASON_MEMORY},
        {{.partition = p, .tier = g, .bandwidth_share = 0.6}, WT_REASON_BANDWIDTH},
        {{.partition = p, .tier = g, .period_ns = MS}, WT_REASON_COST_UNKNOWN},
        {{.partition = p, .tier = g, .period_ns = MS, .cost_ns = MS + 1}, WT_REASON_TIME},
        {{.partition = p, .tier = g, .deadline_ns = MS, .cost_ns = MS + 1}, WT_REASON_TIME},
        {{.partition = p, .tier = WT_TIER_BURSTABLE, .period_ns = MS, .cost_ns = 2 * MS}, WT_REASON_TIME},
        {{.partition = p, .tier = g, .period_ns = 1, .cost_ns = 1000 * MS}, WT_REASON_TIME},
        {{.partition = p, .tier = g, .deadline_ns = 1, .cost_ns = 1000 * MS}, WT_REASON_TIME},
        {{.partition = p, .tier = WT_TIER_BURSTABLE, .period_ns = 1, .cost_ns = 1000 * MS}, WT_REASON_TIME},
        {{.partition = stiff, .cost_ns = 3 * MS}, WT_REASON_BLOCKING},
        {{.partition = stiff}, WT_REASON_BLOCKING},
        {{.partition = stiff, .tier = g, .cost_ns = MS, .period_ns = 5 * MS, .deadline_ns = 2 * MS}, WT_REASON_TIME},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wt_admission a;
        wt_task task = {9, 9, 9};
        assert_ok(wt_scheduler_evaluate(v->scheduler, &cases[k].config, &a));
        assert_true(a.outcome == WT_REJECTED && a.position == -1);
        assert_int_equal(a.reason, cases[k].reason);
        assert_int_equal(wt_scheduler_submit(v->scheduler, &cases[k].config, &task, &a), WT_ERR_REJECTED);
        assert_int_equal(a.reason, cases[k].reason);
        assert_int_equal(task.serial, 0);
    }
    assert_int_equal(virtual_stats(v, p).n_rejected + virtual_stats(v, stiff).n_rejected, sizeof cases / sizeof *cases);
    virtual_destroy(v);
}

static void evaluate_says_what_submit_does_and_changes_nothing(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){.memory_bytes = 1000}, true);
    virtual_job job = {.cost_ns = MS};
    uint64_t seed = 1;
    int outcomes[3] = {0};
    for (int k = 0; k < 2000; k++) {
        const wt_task_config config = {.partition = p, .tier = (wt_tier)(k % 3), .cost_ns = MS, .work.user = &job,
                                       .memory_bytes = (size_t)(300 + 300 * noise(&seed)),
                                       .deadline_ns = k % 3 == 2 ? 20 * MS : 0};
        wt_admission foretold, again, got;
        wt_task task;
        assert_ok(wt_scheduler_evaluate(v->scheduler, &config, &foretold));
        assert_ok(wt_scheduler_evaluate(v->scheduler, &config, &again));
        wt_status status = wt_scheduler_submit(v->scheduler, &config, &task, &got);
        assert_int_equal(status, got.outcome == WT_REJECTED ? WT_ERR_REJECTED : WT_OK);
        assert_memory_equal(&foretold, &again, sizeof got);
        assert_memory_equal(&foretold, &got, sizeof got);
        outcomes[got.outcome]++;
        virtual_play(v, v->clock.time_ns + MS / 2);
    }
    for (int k = 0; k < 3; k++) assert_true(outcomes[k] > 20); // else this has not tried it
    virtual_destroy(v);
}

// Reserved at admission, given back at the end, never exceeded, whatever comes.
static void quotas_hold_at_every_moment(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.memory_bytes = 1000});
    int p = virtual_partition(v, (wt_scheduler_partition_config){.memory_bytes = 600, .bandwidth_share = 0.5,
                                                                 .n_lanes = 4}, true);
    virtual_job jobs[500];
    uint64_t seed = 2;
    for (int k = 0; k < 500; k++) {
        jobs[k] = (virtual_job){.cost_ns = (int64_t)(1 + MS * (1 + noise(&seed)))};
        wt_task task;
        (void)!wt_scheduler_submit(v->scheduler, &(wt_task_config){.partition = p, .tier = (wt_tier)(k % 3),
                                   .memory_bytes = (size_t)(200 + 199 * noise(&seed)), .bandwidth_share = 0.2,
                                   .work.user = &jobs[k]}, &task, NULL);
        virtual_play(v, v->clock.time_ns + MS / 4);
        wt_scheduler_partition_stats stats = virtual_stats(v, p);
        assert_true(stats.memory_bytes <= 600 && stats.bandwidth_share <= 0.5 + 1e-9 && stats.n_running <= 4);
    }
    virtual_play(v, INT64_MAX);
    assert_true(virtual_stats(v, p).memory_bytes == 0 && virtual_stats(v, p).bandwidth_share == 0);
    virtual_destroy(v);
}

// What ended work keeps of its time is free at its deadline, or when nothing runs; then the queue moves, though nobody
// calls and nothing ends.
static void a_queued_period_begins_when_the_time_of_ended_work_is_free(void **test)
{
    (void)test;
    for (int busy = 0; busy < 2; busy++) {
        virtual_executor *v = virtual_create(NULL);
        int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
        virtual_job endless = {.cost_ns = INT64_MAX / 4}, first = {.cost_ns = 6 * MS}, second = first;
        wt_task_config config = {.partition = p, .work.user = &endless};
        wt_task ends, waits;
        wt_task_info info;
        if (busy) assert_ok(wt_scheduler_submit(v->scheduler, &config, &ends, NULL));
        config = (wt_task_config){.partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = 6 * MS, .period_ns = 10 * MS,
                                  .work.user = &first};
        assert_ok(wt_scheduler_submit(v->scheduler, &config, &ends, NULL));
        config.tier = WT_TIER_BURSTABLE, config.work.user = &second;
        assert_ok(wt_scheduler_submit(v->scheduler, &config, &waits, NULL));
        assert_ok(wt_scheduler_get_task(v->scheduler, waits, &info));
        assert_int_equal(info.waits_for, WT_REASON_TIME);
        virtual_play(v, 7 * MS); // the first run ended at 6; its time is taken until 10
        assert_ok(wt_scheduler_cancel(v->scheduler, ends));
        virtual_play(v, 30 * MS);
        assert_ok(wt_scheduler_get_task(v->scheduler, waits, &info));
        assert_int_equal(info.admitted_ns, busy ? 10 * MS : 7 * MS);
        virtual_destroy(v);
    }
}

static void a_period_that_never_began_leaves_nothing(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job endless = {.cost_ns = INT64_MAX / 4}, job = {.cost_ns = 6 * MS};
    wt_task task;
    wt_admission a;
    wt_task_config config = {.partition = p, .work.user = &endless}; // the partition is never idle
    assert_ok(wt_scheduler_submit(v->scheduler, &config, &task, NULL));
    config = (wt_task_config){.partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = 6 * MS, .period_ns = 10 * MS,
                              .start_ns = 100 * MS, .work.user = &job};
    assert_ok(wt_scheduler_submit(v->scheduler, &config, &task, NULL));
    assert_ok(wt_scheduler_cancel(v->scheduler, task));
    assert_true(virtual_stats(v, p).time_share == 0);
    assert_ok(wt_scheduler_evaluate(v->scheduler, &config, &a));
    assert_int_equal(a.outcome, WT_ADMITTED);
    virtual_destroy(v);
}

static wt_status never_started(void *user, wt_task task, const wt_work *work)
{
    (void)user, (void)task, (void)work;
    return WT_OK;
}

static void shares_above_what_is_left_are_refused(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.memory_bytes = 1000, .max_partitions = 3});
    int p = virtual_partition(v, (wt_scheduler_partition_config){.memory_bytes = 600, .bandwidth_share = 0.75}, true);
    wt_scheduler_partition_config config = {.name = "b", .executor = {.start = never_started}, .memory_bytes = 500};
    int other = -1;
    assert_fails(wt_scheduler_add_partition(v->scheduler, &config, &other), WT_ERR_QUOTA,
                 "partition b: a quota of 500 bytes, but 400 are left");
    config.memory_bytes = SIZE_MAX;
    assert_int_equal(wt_scheduler_add_partition(v->scheduler, &config, &other), WT_ERR_QUOTA);
    config.memory_bytes = 400, config.bandwidth_share = 0.5;
    assert_fails(wt_scheduler_add_partition(v->scheduler, &config, &other), WT_ERR_QUOTA,
                 "partition b: a bandwidth share of 0.5, but 0.25 is left");
    config.bandwidth_share = 0.25;
    assert_ok(wt_scheduler_add_partition(v->scheduler, &config, &other));
    assert_int_equal(other, 1);
    config.memory_bytes = 0, config.bandwidth_share = 0;
    assert_ok(wt_scheduler_add_partition(v->scheduler, &config, &other));
    assert_int_equal(wt_scheduler_add_partition(v->scheduler, &config, &other), WT_ERR_FULL);
    assert_ok(wt_scheduler_remove_partition(v->scheduler, p));
    assert_int_equal(wt_scheduler_remove_partition(v->scheduler, p), WT_ERR_BAD_ARG);
    assert_ok(wt_scheduler_add_partition(v->scheduler, &config, &other));
    assert_int_equal(other, p);
    virtual_destroy(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_rejected_with_its_reason),
        cmocka_unit_test(evaluate_says_what_submit_does_and_changes_nothing),
        cmocka_unit_test(quotas_hold_at_every_moment),
        cmocka_unit_test(a_queued_period_begins_when_the_time_of_ended_work_is_free),
        cmocka_unit_test(a_period_that_never_began_leaves_nothing),
        cmocka_unit_test(shares_above_what_is_left_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
