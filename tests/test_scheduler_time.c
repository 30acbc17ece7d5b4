// The scheduler's orders, its admission by deadlines, its predictions and its trace, all in virtual time.
#include "support/testing.h"
#include "support/virtual_executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, US = 1000 };

static int64_t below(uint64_t *seed, int64_t end) { return (int64_t)((1 + (double)noise(seed)) / 2 * (double)end); }

// ---- orders

static void assert_order(const virtual_executor *v, const int *ids, int n)
{
    assert_int_equal(v->n_log, n);
    for (int k = 0; k < n; k++)
        if (v->log[k] != ids[k]) fail_msg("start %d is of task %d, want %d", k, v->log[k], ids[k]);
}

// Task 0 holds the lane while 1 .. 6 gather; none can interrupt it.
static virtual_executor *gather(wt_policy policy, virtual_job jobs[7])
{
    static const int64_t costs[] = {1, 5, 3, 3, 6, 2, 4}, deadlines[] = {0, 0, 90, 40, 60, 0, 50};
    static const int priorities[] = {0, 1, 2, 3, 3, -4, 0};
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){.policy = policy}, false);
    for (int k = 0; k < 7; k++) {
        jobs[k] = (virtual_job){.cost_ns = costs[k] * MS, .id = k};
        (void)virtual_submit(v, &(wt_task_config){.partition = p,
                                                  .cost_ns = jobs[k].cost_ns,
                                                  .work.user = &jobs[k],
                                                  .deadline_ns = deadlines[k] * MS,
                                                  .priority = priorities[k],
                                                  .tier = k == 6 ? WT_TIER_BURSTABLE : WT_TIER_BEST_EFFORT});
    }
    virtual_play(v, INT64_MAX);
    return v;
}

static void each_policy_has_its_order_and_tiers_come_first(void **test)
{
    (void)test;
    static const int orders[4][7] = {
        [WT_POLICY_FIFO] = {0, 6, 1, 2, 3, 4, 5},
        [WT_POLICY_SHORTEST_JOB] = {0, 6, 5, 2, 3, 1, 4},
        [WT_POLICY_PRIORITY] = {0, 6, 3, 4, 2, 1, 5},
        [WT_POLICY_EARLIEST_DEADLINE] = {0, 6, 3, 4, 2, 1, 5},
    };
    for (int policy = 0; policy < 4; policy++) {
        virtual_job jobs[7];
        virtual_executor *v = gather((wt_policy)policy, jobs);
        assert_order(v, orders[policy], 7);
        virtual_destroy(v);
    }
}

static void guaranteed_work_goes_by_deadline_under_every_policy(void **test)
{
    (void)test;
    for (int policy = 0; policy < WT_N_POLICIES; policy++) {
        virtual_executor *v = virtual_create(NULL);
        int p = virtual_partition(v, (wt_scheduler_partition_config){.policy = (wt_policy)policy}, true);
        virtual_job jobs[4];
        for (int k = 0; k < 4; k++) {
            jobs[k] = (virtual_job){.cost_ns = MS, .id = k};
            (void)virtual_submit(v, &(wt_task_config){.partition = p,
                                                      .cost_ns = MS,
                                                      .work.user = &jobs[k],
                                                      .priority = k,
                                                      .tier = k ? WT_TIER_GUARANTEED : WT_TIER_BEST_EFFORT,
                                                      .deadline_ns = (10 - 2 * k) * MS});
        }
        virtual_play(v, INT64_MAX);
        static const int order[] = {0, 1, 2, 3, 2, 1, 0}; // each comes with an earlier deadline and takes the lane
        assert_order(v, order, 7);
        virtual_destroy(v);
    }
}

static void urgent_work_takes_the_lane_where_the_policy_preempts(void **test)
{
    (void)test;
    for (int policy = 0; policy < WT_N_POLICIES; policy++) {
        bool preempts = policy == WT_POLICY_PRIORITY || policy == WT_POLICY_EARLIEST_DEADLINE;
        virtual_executor *v = virtual_create(NULL);
        int p = virtual_partition(v, (wt_scheduler_partition_config){.policy = (wt_policy)policy}, true);
        virtual_job slow = {.cost_ns = 10 * MS, .id = 1}, quick = {.cost_ns = MS, .id = 2};
        wt_task first = virtual_submit(v, &(wt_task_config){.partition = p, .cost_ns = 10 * MS, .work.user = &slow});
        virtual_play(v, 3 * MS);
        wt_task second = virtual_submit(
            v, &(wt_task_config){
                   .partition = p, .cost_ns = MS, .work.user = &quick, .priority = 5, .deadline_ns = 5 * MS});
        virtual_play(v, INT64_MAX);
        assert_int_equal(virtual_info(v, second).started_ns, preempts ? 3 * MS : 10 * MS);
        assert_int_equal(virtual_info(v, first).ended_ns, preempts ? 11 * MS : 10 * MS);
        assert_int_equal(virtual_info(v, first).n_yields, preempts);
        assert_int_equal(virtual_info(v, first).device_ns, 10 * MS);
        virtual_destroy(v);
    }
}

static void every_urgent_task_waits_for_one_slice_only(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    v->slice_ns = MS;
    int p = virtual_partition(v, (wt_scheduler_partition_config){.n_lanes = 3, .blocking_ns = MS}, true);
    virtual_job slow[3], quick[3];
    wt_task tasks[3];
    for (int k = 0; k < 3; k++) {
        slow[k] = (virtual_job){.cost_ns = 100 * MS};
        (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &slow[k]});
    }
    virtual_play(v, 5 * MS);
    for (int k = 0; k < 3; k++) { // each more urgent than the last, and before a lane is free
        quick[k] = (virtual_job){.cost_ns = MS};
        tasks[k] = virtual_submit(v, &(wt_task_config){.partition = p,
                                                       .tier = WT_TIER_GUARANTEED,
                                                       .cost_ns = MS,
                                                       .deadline_ns = (9 - 2 * k) * MS,
                                                       .work.user = &quick[k]});
        virtual_play(v, 5 * MS + (k + 1) * MS / 4);
    }
    virtual_play(v, INT64_MAX);
    for (int k = 0; k < 3; k++) assert_int_equal(virtual_info(v, tasks[k]).started_ns, 6 * MS);
    assert_int_equal(virtual_stats(v, p).n_yields, 3);
    virtual_destroy(v);
}

// Start-time fair queueing: two flows that always have work differ in normalised service by at most
// cost_a / weight_a + cost_b / weight_b (Goyal, Vin & Cheng 1996, theorem 1), whatever their costs.
static void weighted_fair_flows_share_by_weight(void **test)
{
    (void)test;
    enum { N_FLOWS = 3, N_TASKS = 600 };
    static const double weights[N_FLOWS] = {1, 2, 5};
    static const int64_t costs[N_FLOWS] = {3 * MS, MS, 2 * MS};
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){.policy = WT_POLICY_WEIGHTED_FAIR}, true);
    virtual_job *jobs = calloc(N_FLOWS * N_TASKS, sizeof *jobs);
    for (int k = 0; k < N_FLOWS * N_TASKS; k++) {
        int flow = k / N_TASKS;
        jobs[k] = (virtual_job){.cost_ns = costs[flow], .id = flow};
        (void)virtual_submit(
            v,
            &(wt_task_config){
                .partition = p, .cost_ns = costs[flow], .flow = flow, .weight = weights[flow], .work.user = &jobs[k]});
    }
    virtual_play(v, 1000 * MS); // flow 2 has 1200 ms of work and gets 625: all have work throughout
    double service_ms[N_FLOWS] = {0};
    for (int k = 0; k + 1 < v->n_log; k++) {
        service_ms[v->log[k]] += (double)costs[v->log[k]] / MS;
        if (k < N_FLOWS) continue;
        for (int a = 0; a < N_FLOWS; a++)
            for (int b = 0; b < a; b++) {
                double apart = service_ms[a] / weights[a] - service_ms[b] / weights[b];
                double most = (double)costs[a] / MS / weights[a] + (double)costs[b] / MS / weights[b];
                if (apart > most || -apart > most) fail_msg("start %d: flows %d, %d are %g ms apart", k, a, b, apart);
            }
    }
    virtual_destroy(v);
    free(jobs);
}

// ---- deadlines

typedef struct load {
    virtual_job jobs[64];
    wt_task tasks[64];
    int n;
} load;

// Offer random periodic tasks, implicit or constrained deadlines, until `n_offers` were made; keep what is admitted.
static void offer_periodic(virtual_executor *v, int p, load *l, int n_offers, bool constrained, uint64_t seed)
{
    for (int k = 0; k < n_offers && l->n < 64; k++) {
        int64_t period_ns = (1 + below(&seed, 50)) * MS / 2, cost_ns = 1 + below(&seed, period_ns / 4);
        int64_t deadline_ns = constrained ? cost_ns + below(&seed, period_ns - cost_ns) + 1 : 0;
        l->jobs[l->n] = (virtual_job){.cost_ns = cost_ns, .id = l->n};
        if (!wt_scheduler_submit(v->scheduler, &(wt_task_config){
                .partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = cost_ns, .period_ns = period_ns,
                .deadline_ns = deadline_ns, .work.user = &l->jobs[l->n]}, &l->tasks[l->n], NULL))
            l->n++;
    }
}

// Each set runs until it has had 10^6 / 20 jobs, beside work without end that gives way at once, or after a slice.
// Utilisation is filled to over 98 % in some.
static void admitted_periods_miss_no_deadline_in_a_million_jobs(void **test)
{
    (void)test;
    uint64_t n_jobs = 0;
    double fullest = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        virtual_executor *v = virtual_create(NULL);
        v->slice_ns = seed % 4 < 2 ? 0 : MS / 5;
        int p = virtual_partition(v, (wt_scheduler_partition_config){.blocking_ns = v->slice_ns}, true);
        load *l = calloc(1, sizeof *l);
        virtual_job background = {.cost_ns = 3600 * (int64_t)1000 * MS, .id = -1};
        (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &background});
        offer_periodic(v, p, l, 200, seed % 2, seed);
        assert_true(l->n > 0);
        double share = virtual_stats(v, p).time_share;
        if (share > fullest) fullest = share;
        for (int64_t at_ns = 0; virtual_stats(v, p).n_jobs < 50000;) virtual_play(v, at_ns += 1000 * (int64_t)MS);
        assert_int_equal(virtual_stats(v, p).n_missed, 0);
        n_jobs += virtual_stats(v, p).n_jobs;
        for (int k = 0; k < l->n; k++) assert_true(virtual_info(v, l->tasks[k]).n_jobs > 0);
        virtual_destroy(v);
        free(l);
    }
    assert_true(n_jobs >= 1000000);
    assert_true(fullest > 0.98);
}

// The bound is exact on one lane: an admitted set one nanosecond of cost beyond it is refused, and would miss.
static void one_nanosecond_above_the_bound_is_rejected(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = 5 * MS};
    const wt_tier g = WT_TIER_GUARANTEED;
    (void)virtual_submit(
        v, &(wt_task_config){.partition = p, .tier = g, .cost_ns = 5 * MS, .period_ns = 10 * MS, .work.user = &job});
    wt_admission a;
    const wt_task_config full = {.partition = p, .tier = g, .cost_ns = 10 * MS, .period_ns = 20 * MS,
                                 .work.user = &job};
    wt_task_config more = full;
    more.cost_ns++;
    assert_ok(wt_scheduler_evaluate(v->scheduler, &full, &a));
    assert_int_equal(a.outcome, WT_ADMITTED);
    assert_ok(wt_scheduler_evaluate(v->scheduler, &more, &a));
    assert_true(a.outcome == WT_REJECTED && a.reason == WT_REASON_TIME);
    // Deadlines before the periods' ends: of the first 10 ms, 5 are left, wherever the deadline lies in them.
    for (int deadline = 5; deadline <= 10; deadline++)
        for (int above = 0; above < 2; above++) {
            const wt_task_config tight = {.partition = p, .tier = g, .cost_ns = 5 * MS + above, .period_ns = 40 * MS,
                                          .deadline_ns = deadline * MS, .work.user = &job};
            assert_ok(wt_scheduler_evaluate(v->scheduler, &tight, &a));
            assert_int_equal(a.outcome, above ? WT_REJECTED : WT_ADMITTED);
        }
    virtual_destroy(v);
}

// A task of 5 in 10 runs: its density counts, though nothing else is ready. One of 6 in 6 would make it end at 11.
static void the_time_of_a_running_task_is_not_given_twice(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = 5 * MS};
    const wt_task_config first = {.partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = 5 * MS,
                                  .deadline_ns = 10 * MS, .work.user = &job};
    wt_task_config second = first;
    second.cost_ns = second.deadline_ns = 6 * MS;
    wt_admission a;
    (void)virtual_submit(v, &first);
    assert_ok(wt_scheduler_evaluate(v->scheduler, &second, &a));
    assert_int_equal(a.outcome, WT_REJECTED);
    virtual_play(v, 6 * MS); // idle since 5: nothing was moved to later
    assert_ok(wt_scheduler_evaluate(v->scheduler, &second, &a));
    assert_int_equal(a.outcome, WT_ADMITTED);
    virtual_destroy(v);
}

// Single dated tasks, beside periods and work that cannot be interrupted at once: whatever is admitted is in time.
static void admitted_single_tasks_are_in_time(void **test)
{
    (void)test;
    for (int variant = 0; variant < 4; variant++) {
        int lanes = variant % 2 ? 4 : 1;
        bool preempts = variant / 2; // then other work is long, and gives way after a slice of 1 ms; else it takes 1 ms
        uint64_t seed = (uint64_t)variant + 1, n_admitted = 0, n_offered = 0;
        virtual_executor *v = virtual_create(NULL);
        int p = virtual_partition(v, (wt_scheduler_partition_config){.n_lanes = lanes, .blocking_ns = MS}, preempts);
        load *l = calloc(1, sizeof *l);
        virtual_job job = {.cost_ns = MS}, filler = {.cost_ns = MS}, endless[4];
        v->slice_ns = MS;
        for (int k = 0; k < lanes && preempts; k++) {
            endless[k] = (virtual_job){.cost_ns = INT64_MAX / 4};
            (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &endless[k]});
        }
        for (int k = 0; k < 3; k++)
            (void)virtual_submit(v, &(wt_task_config){.partition = p,
                                                      .tier = WT_TIER_GUARANTEED,
                                                      .cost_ns = MS,
                                                      .period_ns = (10 + 7 * k) * MS,
                                                      .work.user = &l->jobs[k]}),
                l->jobs[k].cost_ns = MS;
        for (int k = 0; k < 20000; k++) {
            wt_task task;
            for (int f = 0; f < lanes && !preempts; f++)
                (void)virtual_submit(v, &(wt_task_config){.partition = p, .cost_ns = MS, .work.user = &filler});
            n_offered++;
            n_admitted += !wt_scheduler_submit(v->scheduler, &(wt_task_config){
                .partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = MS, .work.user = &job,
                .deadline_ns = (3 + below(&seed, 20)) * MS}, &task, NULL);
            virtual_play(v, v->clock.time_ns + below(&seed, 3 * MS / (lanes * lanes)));
            if (virtual_stats(v, p).n_ready > 5000) virtual_play(v, v->clock.time_ns + 1000 * (int64_t)MS);
        }
        assert_int_equal(virtual_stats(v, p).n_missed, 0);
        assert_true(n_admitted > n_offered / 20 && n_admitted < n_offered - n_offered / 20); // else nothing was tried
        virtual_destroy(v);
        free(l);
    }
}

static void an_overrun_is_counted_and_skipped_periods_too(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, true);
    virtual_job job = {.cost_ns = 25 * MS};
    wt_task task = virtual_submit(v, &(wt_task_config){.partition = p,
                                                       .tier = WT_TIER_GUARANTEED,
                                                       .cost_ns = 5 * MS,
                                                       .period_ns = 10 * MS,
                                                       .n_jobs = 10,
                                                       .skip_missed = true,
                                                       .kind = 3,
                                                       .work.user = &job});
    virtual_play(v, 26 * MS);
    job.cost_ns = 5 * MS;
    virtual_play(v, INT64_MAX);
    wt_task_info info = virtual_info(v, task); // 0 .. 25, then the periods from 30 on: 10 and 20 are skipped
    assert_true(info.n_jobs == 8 && info.n_missed == 3 && info.n_overruns == 1 && info.state == WT_TASK_COMPLETED);
    assert_int_equal(info.worst_device_ns, 25 * MS);
    assert_int_equal(info.ended_ns, 95 * MS);
    wt_kind_cost cost;
    assert_ok(wt_scheduler_get_cost(v->scheduler, p, 3, &cost));
    assert_true(cost.n_runs == 8 && cost.worst_ns == 25 * MS && cost.mean_ns == (25 + 7 * 5) * MS / 8);
    virtual_destroy(v);
}

// A paced partition uses its share of one lane; the guaranteed work in it is not held back.
static void pacing_holds_a_partition_to_its_share(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){.pacing_share = 0.25}, true);
    virtual_job job = {.cost_ns = MS}, audio = {.cost_ns = MS};
    wt_task periodic = virtual_submit(
        v, &(wt_task_config){
               .partition = p, .tier = WT_TIER_GUARANTEED, .cost_ns = MS, .period_ns = 10 * MS, .work.user = &audio});
    for (int k = 0; k < 2000; k++) (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    virtual_play(v, 4000 * (int64_t)MS);
    wt_task_info info = virtual_info(v, periodic);
    assert_true(info.n_missed == 0 && info.n_throttled == 0 && info.n_jobs == 400);
    double share = (double)virtual_stats(v, p).device_ns / (4000.0 * MS);
    assert_true(share > 0.245 && share < 0.255); // all of it is charged, the guaranteed part too
    assert_true(virtual_stats(v, p).n_throttled > 0);
    virtual_destroy(v);
}

// ---- predictions

static void the_predicted_start_is_the_actual_one(void **test)
{
    (void)test;
    enum { N = 400 };
    for (int variant = 0; variant < 12; variant++) {
        uint64_t seed = (uint64_t)variant + 1;
        virtual_executor *v = virtual_create(NULL);
        wt_policy policy = (wt_policy)(variant % 4); // not weighted-fair: its tags move with what was measured
        int p = virtual_partition(v, (wt_scheduler_partition_config){
            .policy = policy, .n_lanes = 1 + variant / 4 * 2, .memory_bytes = variant % 2 ? 1000 : 0}, false);
        static virtual_job jobs[N];
        wt_task tasks[N];
        int64_t predicted_ns[N];
        for (int k = 0; k < N; k++) {
            jobs[k] = (virtual_job){.cost_ns = 1 + below(&seed, 10 * MS), .id = k};
            tasks[k] = virtual_submit(v, &(wt_task_config){.partition = p,
                                                           .cost_ns = jobs[k].cost_ns,
                                                           .priority = (int)below(&seed, 9),
                                                           .work.user = &jobs[k],
                                                           .memory_bytes = (size_t)below(&seed, 600),
                                                           .deadline_ns = below(&seed, 2) * below(&seed, 900) * MS,
                                                           .tier = (wt_tier)below(&seed, 2)});
            if (k == N / 2) virtual_play(v, 7 * MS); // part of a run has passed
        }
        for (int k = 0; k < N; k++)
            if (wt_scheduler_predict(v->scheduler, tasks[k], &predicted_ns[k])) predicted_ns[k] = -1; // has ended
        virtual_play(v, INT64_MAX);
        int n_predicted = 0;
        for (int k = 0; k < N; k++) {
            if (predicted_ns[k] < 0) continue;
            if (virtual_info(v, tasks[k]).started_ns != predicted_ns[k])
                fail_msg("variant %d, task %d: started %lld, predicted %lld", variant, k,
                         (long long)virtual_info(v, tasks[k]).started_ns, (long long)predicted_ns[k]);
            n_predicted++;
        }
        assert_true(n_predicted > N - 30);
        virtual_destroy(v);
    }
}

static void behind_an_unknown_cost_nothing_is_predicted(void **test)
{
    (void)test;
    virtual_executor *v = virtual_create(NULL);
    int p = virtual_partition(v, (wt_scheduler_partition_config){0}, false);
    virtual_job job = {.cost_ns = MS};
    int64_t start_ns;
    wt_task running = virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    wt_task second = virtual_submit(v, &(wt_task_config){.partition = p, .cost_ns = MS, .work.user = &job});
    assert_ok(wt_scheduler_predict(v->scheduler, running, &start_ns));
    assert_int_equal(start_ns, 0);
    assert_fails(wt_scheduler_predict(v->scheduler, second, &start_ns), WT_ERR_NOT_FOUND,
                 "task 2: no start can be predicted");
    virtual_destroy(v);
}

// ---- determinism

typedef struct text {
    char *bytes;
    size_t length, size;
} text;

static void write_line(void *user, const wt_trace *line)
{
    text *t = user;
    if (t->length + 200 > t->size) t->bytes = realloc(t->bytes, t->size = 2 * t->size + 4096);
    t->length += (size_t)sprintf(t->bytes + t->length, "%lld %llu %d %s %s %d %d\n", (long long)line->time_ns,
                                 (unsigned long long)line->serial, line->partition, wt_task_state_text(line->from),
                                 wt_task_state_text(line->to), (int)line->reason, (int)line->status);
}

static text run_and_trace(uint64_t seed)
{
    enum { N = 3000 };
    text t = {0};
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.trace = write_line, .trace_user = &t});
    virtual_job *jobs = calloc(N, sizeof *jobs);
    for (int k = 0; k < WT_N_POLICIES; k++)
        (void)virtual_partition(v, (wt_scheduler_partition_config){.policy = (wt_policy)k, .n_lanes = 1 + k % 2,
                                                                   .memory_bytes = 2000}, true);
    wt_task last = {0};
    for (int k = 0; k < N; k++) {
        jobs[k] = (virtual_job){.cost_ns = 1 + below(&seed, MS), .id = k, .status = k % 17 ? WT_OK : WT_ERR_CUDA};
        const wt_task_config config = {
            .partition = (int)below(&seed, WT_N_POLICIES), .tier = (wt_tier)below(&seed, 3), .kind = 1 + k % 3,
            .memory_bytes = (size_t)below(&seed, 900), .cost_ns = k % 4 ? jobs[k].cost_ns : 0, .flow = k % 5,
            .deadline_ns = below(&seed, 2) * 9 * MS, .work.user = &jobs[k], .after = &last,
            .n_after = last.serial && k % 6 == 0, .timeout_ns = k % 9 ? 0 : MS / 2, .priority = (int)below(&seed, 5)};
        if (wt_scheduler_submit(v->scheduler, &config, &last, NULL)) last.serial = 0;
        if (last.serial && k % 13 == 0) (void)!wt_scheduler_cancel(v->scheduler, last);
        virtual_play(v, v->clock.time_ns + below(&seed, MS / 4));
    }
    virtual_play(v, INT64_MAX);
    virtual_destroy(v);
    free(jobs);
    return t;
}

static void the_same_inputs_give_the_same_trace(void **test)
{
    (void)test;
    text a = run_and_trace(1), b = run_and_trace(1), other = run_and_trace(2);
    assert_true(a.length > 100000 && a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0);
    assert_true(other.length != a.length || memcmp(a.bytes, other.bytes, a.length) != 0);
    free(a.bytes), free(b.bytes), free(other.bytes);
}

static void a_rejection_in_the_trace_has_its_serial(void **test)
{
    (void)test;
    text t = {0};
    virtual_executor *v = virtual_create(&(wt_scheduler_config){.trace = write_line, .trace_user = &t});
    int p = virtual_partition(v, (wt_scheduler_partition_config){.memory_bytes = 10}, true);
    virtual_job job = {.cost_ns = MS};
    wt_task task;
    (void)virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job});
    t.length = 0;
    assert_int_equal(wt_scheduler_submit(v->scheduler, &(wt_task_config){.partition = p, .memory_bytes = 11}, &task,
                                         NULL), WT_ERR_REJECTED);
    char want[100];
    snprintf(want, sizeof want, "0 2 0 pending pending %d %d\n", WT_REASON_MEMORY, WT_ERR_REJECTED);
    assert_string_equal(t.bytes, want);
    assert_int_equal(virtual_submit(v, &(wt_task_config){.partition = p, .work.user = &job}).serial, 3);
    virtual_destroy(v);
    free(t.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_policy_has_its_order_and_tiers_come_first),
        cmocka_unit_test(guaranteed_work_goes_by_deadline_under_every_policy),
        cmocka_unit_test(urgent_work_takes_the_lane_where_the_policy_preempts),
        cmocka_unit_test(every_urgent_task_waits_for_one_slice_only),
        cmocka_unit_test(weighted_fair_flows_share_by_weight),
        cmocka_unit_test(admitted_periods_miss_no_deadline_in_a_million_jobs),
        cmocka_unit_test(one_nanosecond_above_the_bound_is_rejected),
        cmocka_unit_test(the_time_of_a_running_task_is_not_given_twice),
        cmocka_unit_test(admitted_single_tasks_are_in_time),
        cmocka_unit_test(an_overrun_is_counted_and_skipped_periods_too),
        cmocka_unit_test(pacing_holds_a_partition_to_its_share),
        cmocka_unit_test(the_predicted_start_is_the_actual_one),
        cmocka_unit_test(behind_an_unknown_cost_nothing_is_predicted),
        cmocka_unit_test(the_same_inputs_give_the_same_trace),
        cmocka_unit_test(a_rejection_in_the_trace_has_its_serial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
