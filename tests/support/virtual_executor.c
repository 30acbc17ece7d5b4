#include "virtual_executor.h"

#include "testing.h"

#include <stdlib.h>
#include <string.h>

static int64_t now_of(const virtual_executor *v) { return v->clock.time_ns; }

static wt_status start(void *user, wt_task task, const wt_work *work)
{
    virtual_executor *v = user;
    virtual_job *job = work->user;
    if (v->start_status) return wt_fail(v->start_status, "virtual executor: told to refuse");
    assert_true(v->n_running < VIRTUAL_MAX_RUNNING);
    if (!job->left_ns) job->left_ns = job->cost_ns;
    v->running[v->n_running].task = task;
    v->running[v->n_running].job = job;
    v->running[v->n_running].stop_ns = INT64_MAX;
    v->running[v->n_running++].begin_ns = now_of(v);
    if (v->n_log < VIRTUAL_MAX_LOG) {
        v->log_ns[v->n_log] = now_of(v);
        v->log[v->n_log++] = job->id;
    }
    return WT_OK;
}

static int index_of(const virtual_executor *v, wt_task task)
{
    int k = 0;
    while (k < v->n_running && v->running[k].task.serial != task.serial) k++;
    assert_true(k < v->n_running);
    return k;
}

// In order, so that of two that end together the one that started first is reported first.
static void remove_at(virtual_executor *v, int k)
{
    v->n_running--;
    memmove(&v->running[k], &v->running[k + 1], sizeof v->running[0] * (size_t)(v->n_running - k));
}

static void give_way(virtual_executor *v, int k)
{
    wt_task task = v->running[k].task;
    int64_t ran_ns = now_of(v) - v->running[k].begin_ns;
    v->running[k].job->left_ns -= ran_ns;
    remove_at(v, k);
    assert_ok(wt_scheduler_yield(v->scheduler, task, ran_ns));
}

static int64_t end_of(const virtual_executor *v, int k) { return v->running[k].begin_ns + v->running[k].job->left_ns; }

// A run that would end within the slice ends.
static void yield(void *user, wt_task task)
{
    virtual_executor *v = user;
    int k = index_of(v, task);
    if (now_of(v) + v->slice_ns >= end_of(v, k)) return;
    v->running[k].stop_ns = now_of(v) + v->slice_ns;
    if (!v->slice_ns) give_way(v, k);
}

static void cancel(void *user, wt_task task)
{
    virtual_executor *v = user;
    int k = index_of(v, task);
    int64_t ran_ns = now_of(v) - v->running[k].begin_ns;
    remove_at(v, k);
    assert_ok(wt_scheduler_finish(v->scheduler, task, WT_ERR_CANCELLED, ran_ns));
}

virtual_executor *virtual_create(const wt_scheduler_config *config)
{
    virtual_executor *v = calloc(1, sizeof *v);
    wt_scheduler_config mine = config ? *config : (wt_scheduler_config){0};
    wt_manual_clock_init(&v->clock, 0);
    mine.clock = &v->clock.clock;
    assert_ok(wt_scheduler_create(&mine, &v->scheduler));
    return v;
}

void virtual_destroy(virtual_executor *v)
{
    wt_scheduler_destroy(v->scheduler);
    free(v);
}

int virtual_partition(virtual_executor *v, wt_scheduler_partition_config config, bool preempts)
{
    int partition = -1;
    config.executor = (wt_executor){.user = v, .start = start, .yield = preempts ? yield : NULL, .cancel = cancel};
    assert_ok(wt_scheduler_add_partition(v->scheduler, &config, &partition));
    return partition;
}

void virtual_play(virtual_executor *v, int64_t until_ns)
{
    for (;;) {
        int64_t next_ns;
        assert_ok(wt_scheduler_poll(v->scheduler, &next_ns));
        int first = -1;
        for (int k = 0; k < v->n_running; k++) {
            int64_t end_ns = v->running[k].stop_ns < end_of(v, k) ? v->running[k].stop_ns : end_of(v, k);
            if (end_ns < next_ns || (end_ns == next_ns && first < 0)) next_ns = end_ns, first = k;
        }
        if (next_ns == INT64_MAX) return;
        if (next_ns > until_ns) break;
        if (next_ns > now_of(v)) v->clock.time_ns = next_ns;
        if (first < 0) continue;
        if (v->running[first].stop_ns < end_of(v, first)) {
            give_way(v, first);
            continue;
        }
        wt_task task = v->running[first].task;
        virtual_job *job = v->running[first].job;
        int64_t ran_ns = job->left_ns;
        job->left_ns = 0;
        remove_at(v, first);
        assert_ok(wt_scheduler_finish(v->scheduler, task, job->status, ran_ns));
    }
    v->clock.time_ns = until_ns;
}

wt_task virtual_submit(virtual_executor *v, const wt_task_config *config)
{
    wt_task task;
    assert_ok(wt_scheduler_submit(v->scheduler, config, &task, NULL));
    return task;
}

wt_task_info virtual_info(virtual_executor *v, wt_task task)
{
    wt_task_info info;
    assert_ok(wt_scheduler_get_task(v->scheduler, task, &info));
    return info;
}

wt_scheduler_partition_stats virtual_stats(virtual_executor *v, int partition)
{
    wt_scheduler_partition_stats stats;
    assert_ok(wt_scheduler_get_partition(v->scheduler, partition, &stats));
    return stats;
}
