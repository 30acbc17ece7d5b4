/// The calls of test_all_calls on schedulers and executors, telemetry, arming, and small things.
#ifndef WT_TEST_ALL_CALLS_TASKS_H
#define WT_TEST_ALL_CALLS_TASKS_H

#include "all_calls_world.h"

#include <warptone/arena.h>
#include <warptone/arm.h>
#include <warptone/clock.h>
#include <warptone/histogram.h>

// ---- scheduler and executors

static wt_status job(void *user, wt_job *j)
{
    world *w = user;
    wt_job_task(j);
    atomic_fetch_add(&w->n_work, 1);
    if (wt_job_should_stop(j) && !wt_job_is_cancelled(j)) wt_job_continue_later(j);
    return WT_OK;
}

static wt_status queue(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items)
{
    (void)offset_item, (void)n_items;
    return count_on(user, stream);
}

static wt_task_config task_config(worker *me)
{
    wt_task_config c = {.name = "task",
                        .partition = me->w->on_cpu,
                        .work = {.run = job, .user = me->w},
                        .tier = (wt_tier)pick(me, WT_N_TIERS),
                        .priority = (int)pick(me, 4),
                        .memory_bytes = pick(me, 4096),
                        .cost_ns = pick(me, 3) * 1000,
                        .kind = (int)pick(me, 4),
                        .held = pick(me, 8) == 0,
                        .timeout_ns = pick(me, 4) ? 0 : 1000000000};
    if (pick(me, 4) == 0) c.work = (wt_work){.graph = me->w->graph};
    if (pick(me, 8) == 0) c.period_ns = 1000000, c.n_jobs = 3;
    return c;
}

static void submit(worker *me)
{
    wt_task task, after;
    wt_admission admission;
    wt_task_config c = task_config(me);
    GET(tasks, &after);
    if (after.serial && pick(me, 3) == 0) c.after = &after, c.n_after = 1;
    MAY(wt_scheduler_evaluate(me->w->scheduler, &c, &admission), WT_ERR_BAD_ARG);
    if (!MAY(wt_scheduler_submit(me->w->scheduler, &c, &task, &admission), WT_ERR_REJECTED, WT_ERR_BAD_ARG))
        PUT(tasks, task);
}

static void submit_to_device(worker *me)
{
    if (me->task.serial)
        MAY(wt_scheduler_wait(me->w->scheduler, me->task, -1), WT_ERR_CANCELLED, WT_ERR_BAD_ARG, WT_ERR_TIMEOUT);
    me->work = (wt_device_work){.queue = queue, .user = me->w, .n_items = 20};
    MAY(wt_slicer_init(&me->work.slicer, &(wt_slicer_config){.bound_us = 100, .max_items = 4}), WT_OK);
    const wt_task_config c = {
        .partition = me->w->on_device, .work = {.device = &me->work}, .priority = (int)pick(me, 4)};
    if (!MAY(wt_scheduler_submit(me->w->scheduler, &c, &me->task, NULL), WT_ERR_REJECTED)) PUT(tasks, me->task);
}

static void ask_about_a_task(worker *me)
{
    wt_task task;
    wt_task_info info;
    int64_t start_ns;
    GET(tasks, &task);
    MAY(wt_scheduler_get_task(me->w->scheduler, task, &info), WT_ERR_BAD_ARG);
    MAY(wt_scheduler_predict(me->w->scheduler, task, &start_ns), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_NOT_FOUND);
    MAY(wt_telemetry_sample_task(me->w->row, me->w->scheduler, task), WT_ERR_BAD_ARG);
}

static void change_a_task(worker *me)
{
    wt_task task, after;
    GET(tasks, &task);
    GET(tasks, &after);
    MAY(wt_scheduler_depend(me->w->scheduler, task, after), WT_ERR_BAD_ARG, WT_ERR_STATE, WT_ERR_FULL);
    MAY(wt_scheduler_release(me->w->scheduler, task), WT_ERR_BAD_ARG, WT_ERR_STATE);
    if (pick(me, 3) == 0) MAY(wt_scheduler_cancel(me->w->scheduler, task), WT_ERR_BAD_ARG, WT_ERR_STATE);
    MAY(wt_scheduler_wait(me->w->scheduler, task, 100000), WT_ERR_BAD_ARG, WT_ERR_TIMEOUT, WT_ERR_CANCELLED,
        WT_ERR_REJECTED);
}

static void ask_the_scheduler(worker *me)
{
    wt_scheduler_partition_stats stats;
    wt_kind_cost cost;
    wt_cpu_executor_info cpu;
    wt_device_executor_info device;
    MAY(wt_scheduler_poll(me->w->scheduler, NULL), WT_OK);
    MAY(wt_scheduler_get_partition(me->w->scheduler, me->w->on_device, &stats), WT_OK);
    MAY(wt_scheduler_get_cost(me->w->scheduler, me->w->on_cpu, 1, &cost), WT_OK);
    MAY(wt_telemetry_sample_scheduler(me->w->row, me->w->scheduler, me->w->on_cpu), WT_OK);
    wt_cpu_executor_get_info(me->w->workers, &cpu);
    wt_device_executor_get_info(me->w->executor, &device);
}

static void use_a_scheduler_partition(worker *me)
{
    int partition;
    const wt_scheduler_partition_config c = {.name = "own", .executor = wt_cpu_executor_callbacks(me->w->workers)};
    if (!MAY(wt_scheduler_add_partition(me->w->scheduler, &c, &partition), WT_ERR_FULL))
        MAY(wt_scheduler_remove_partition(me->w->scheduler, partition), WT_OK);
}

static void use_an_executor(worker *me)
{
    wt_cpu_executor *workers;
    wt_device_executor *executor;
    if (!MAY(wt_cpu_executor_create(&(wt_cpu_executor_config){.scheduler = me->w->scheduler}, &workers), WT_OK))
        wt_cpu_executor_destroy(workers);
    const wt_device_executor_config c = {.scheduler = me->w->scheduler, .partition = me->w->borrower};
    if (!MAY(wt_device_executor_create(&c, &executor), WT_ERR_FULL)) wt_device_executor_destroy(executor);
}

// ---- telemetry, arming, small things

static void use_telemetry(worker *me)
{
    wt_telemetry_row *row;
    char text[256];
    wt_telemetry_view *view = malloc(sizeof *view);
    int64_t pids[4];
    if (!MAY(wt_telemetry_open_row(me->w->telemetry, &(wt_telemetry_row_config){.name = "own"}, &row), WT_ERR_FULL)) {
        wt_telemetry_add(row, WT_FIGURE_RUNS, 1);
        wt_telemetry_sample_partition(row, me->w->borrower);
        wt_telemetry_sample_pool(row, me->w->pool);
        wt_telemetry_close_row(row);
    }
    wt_telemetry_add(me->w->row, WT_FIGURE_LAUNCHES, 1);
    wt_telemetry_set(me->w->row, WT_FIGURE_SMS, 1);
    wt_telemetry_snapshot(me->w->telemetry, view);
    wt_telemetry_prometheus(view, text, sizeof text);
    wt_telemetry_list(pids, 4);
    if (me->index == 0) MAY(wt_telemetry_publish(me->w->telemetry), WT_ERR_FILE, WT_ERR_STATE); // one thread's call
    free(view);
}

static wt_status nothing(void *user) { return (void)user, WT_OK; }

static void arm(worker *me)
{
    wt_arm_counts counts;
    if (!MAY(wt_device_arm(me->w->device), WT_ERR_STATE)) {
        wt_device_is_armed(me->w->device);
        MAY(wt_quiesce(me->w->device, nothing, NULL, 10000), WT_ERR_TIMEOUT);
        MAY(wt_device_disarm(me->w->device), WT_OK);
    }
    MAY(wt_device_set_safe_point(me->w->device, NULL), WT_ERR_STATE);
    wt_arm_stats(me->w->device, &counts);
}

static void use_small_things(worker *me)
{
    wt_arena *arena;
    wt_histogram *histogram;
    void *memory;
    wt_clock_now_ns(NULL);
    if (!MAY(wt_arena_create(1000, &arena), WT_OK)) {
        MAY(wt_arena_alloc(arena, 100, 16, &memory), WT_OK);
        wt_arena_destroy(arena);
    }
    if (MAY(wt_histogram_create(&histogram), WT_OK)) return;
    wt_histogram_record(histogram, 5);
    wt_histogram_destroy(histogram);
}

#endif
