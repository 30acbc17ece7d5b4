// One lane a stream: free -> launching -> running -> free. The scheduler gives its callbacks one at a time, so starts
// and cancels of one scheduler never meet; the mutex orders them against the thread that looks for ends. Launches are
// made where the scheduler decides, which after an end is this thread: from one piece to the next there is no hand-over
// between threads. Ends are found by asking the event, since a driver callback would run on a thread of the driver that
// may not call it again; the pause between two looks is the price, and bounds how long a stream stands idle.
#include <warptone/device_executor.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

typedef enum lane_state { LANE_FREE, LANE_LAUNCHING, LANE_RUNNING } lane_state;

typedef struct lane {
    wt_stream *stream;
    wt_event *begin, *end;
    lane_state state;
    bool cancelled, hung;
    wt_task task;
    wt_device_work *work;
    wt_status status;  ///< of queueing
    int64_t n_items;   ///< of the slice, 0 = one piece
    int64_t launch_ns; ///< on CLOCK_MONOTONIC
} lane;

struct wt_device_executor {
    wt_device_executor_config config;
    pthread_mutex_t mutex;
    pthread_cond_t launched;
    pthread_t thread;
    bool has_thread, stopping;
    wt_device_executor_info info;
    lane lanes[WT_SCHEDULER_MAX_LANES];
};

// ---- the scheduler's side

static lane *take_lane(wt_device_executor *e, wt_task task, wt_status *status)
{
    lane *found = NULL;
    pthread_mutex_lock(&e->mutex);
    for (int k = 0; k < e->config.n_streams && !found && !e->stopping; k++)
        if (e->lanes[k].state == LANE_FREE) found = &e->lanes[k];
    if (found) {
        found->state = LANE_LAUNCHING;
        found->cancelled = found->hung = false;
        found->task = task;
    }
    *status = e->stopping ? WT_ERR_CANCELLED : WT_OK;
    pthread_mutex_unlock(&e->mutex);
    if (!found && !*status)
        *status = wt_fail(WT_ERR_FULL, "device executor: the partition has more lanes than the %d streams",
                          e->config.n_streams);
    return found;
}

static void set_lane(wt_device_executor *e, lane *l, lane_state state)
{
    pthread_mutex_lock(&e->mutex);
    l->state = state;
    pthread_cond_signal(&e->launched);
    pthread_mutex_unlock(&e->mutex);
}

static wt_status launch(lane *l)
{
    wt_device_work *w = l->work;
    l->n_items = wt_slicer_next(&w->slicer, w->n_items - w->done_items);
    l->launch_ns = wt_clock_now_ns(NULL);
    wt_status status = wt_event_record(l->begin, l->stream);
    if (status) return status;
    l->status = w->queue(w->user, l->stream, w->done_items, l->n_items);
    return wt_event_record(l->end, l->stream);
}

static wt_status check_work(const wt_device_executor *e, const wt_device_work *w)
{
    if (!w || !w->queue) return wt_fail(WT_ERR_BAD_ARG, "device executor: the task has no work to queue");
    if (w->n_items < 0 || w->done_items < 0 || (w->n_items && w->done_items >= w->n_items))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: %lld items of %lld done, want 0 or more, and some left",
                       (long long)w->done_items, (long long)w->n_items);
    if (w->n_items && !(w->slicer.target_us > 0))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: the work has items, and no slicer");
    if (!w->n_items && e->config.only_slices)
        return wt_fail(WT_ERR_BAD_ARG, "device executor: work in one piece, where only slices are allowed");
    return WT_OK;
}

static wt_status start_task(void *user, wt_task task, const wt_work *work)
{
    wt_device_executor *e = user;
    wt_status status = check_work(e, work->graph);
    if (status) return status;
    lane *l = take_lane(e, task, &status);
    if (!l) return status;
    l->work = work->graph;
    status = launch(l);
    set_lane(e, l, status ? LANE_FREE : LANE_RUNNING);
    return status;
}

static void cancel_task(void *user, wt_task task)
{
    wt_device_executor *e = user;
    pthread_mutex_lock(&e->mutex);
    for (int k = 0; k < e->config.n_streams; k++)
        if (e->lanes[k].state != LANE_FREE && e->lanes[k].task.serial == task.serial) e->lanes[k].cancelled = true;
    pthread_mutex_unlock(&e->mutex);
}

/// Every slice yields at its end, asked or not.
static void yield_task(void *user, wt_task task) { (void)user, (void)task; }

wt_executor wt_device_executor_callbacks(wt_device_executor *e)
{
    return (wt_executor){.user = e, .start = start_task, .yield = e->config.only_slices ? yield_task : NULL,
                         .cancel = cancel_task};
}

// ---- the executor's thread

/// Take in what was measured; true when items are left.
static bool account(wt_device_work *w, int64_t n_items, double us)
{
    w->n_slices++;
    w->worst_slice_us = fmax(w->worst_slice_us, us);
    wt_slicer_measured(&w->slicer, n_items, us);
    w->done_items += n_items;
    if (w->done_items < w->n_items) return true;
    w->done_items = 0;
    return false;
}

/// Called, and returns, with the mutex held.
static void report_end(wt_device_executor *e, lane *l)
{
    double us = 0;
    wt_status status = wt_event_elapsed_us(l->begin, l->end, &us);
    if (l->status) status = l->status;
    bool more = !status && account(l->work, l->n_items, us);
    if (!status && l->cancelled) status = WT_ERR_CANCELLED; // also when only destroy asked
    wt_task task = l->task;
    l->state = LANE_FREE; // before the report, which may start the next task
    e->info.n_launches++;
    e->info.device_us += us;
    pthread_mutex_unlock(&e->mutex);
    // Refused only when someone else reported the task: a mistake of theirs that the scheduler has answered.
    if (more && !status) (void)!wt_scheduler_yield(e->config.scheduler, task, llrint(us * 1e3));
    else (void)!wt_scheduler_finish(e->config.scheduler, task, status, llrint(us * 1e3));
    pthread_mutex_lock(&e->mutex);
}

/// Called, and returns, with the mutex held.
static void report_hang(wt_device_executor *e, lane *l)
{
    double us = (double)(wt_clock_now_ns(NULL) - l->launch_ns) * 1e-3;
    if (e->config.hang_us <= 0 || l->hung || us < e->config.hang_us) return;
    wt_task task = l->task;
    l->hung = true;
    e->info.n_hangs++;
    pthread_mutex_unlock(&e->mutex);
    if (e->config.hung) e->config.hung(e->config.hung_user, task, us);
    pthread_mutex_lock(&e->mutex);
}

/// Report what has ended; false when nothing had.
static bool look(wt_device_executor *e)
{
    bool any = false;
    for (int k = 0; k < e->config.n_streams; k++) {
        lane *l = &e->lanes[k];
        if (l->state != LANE_RUNNING) continue;
        if (wt_event_done(l->end)) {
            report_end(e, l);
            any = true;
        } else {
            report_hang(e, l);
        }
    }
    return any;
}

static int count_lanes(const wt_device_executor *e, lane_state least)
{
    int n = 0;
    for (int k = 0; k < e->config.n_streams; k++) n += e->lanes[k].state >= least;
    return n;
}

static void *thread_main(void *user)
{
    wt_device_executor *e = user;
    const long poll_ns = lrint(e->config.poll_us * 1e3);
    const struct timespec pause = {.tv_sec = poll_ns / 1000000000, .tv_nsec = poll_ns % 1000000000};
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); // the default of 50 us would more than triple the usual pause
    pthread_mutex_lock(&e->mutex);
    while (!e->stopping || count_lanes(e, LANE_LAUNCHING)) {
        if (!count_lanes(e, LANE_RUNNING)) {
            pthread_cond_wait(&e->launched, &e->mutex);
        } else if (!look(e)) {
            pthread_mutex_unlock(&e->mutex);
            nanosleep(&pause, NULL);
            pthread_mutex_lock(&e->mutex);
        }
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

// ---- creation

static wt_status check_config(const wt_device_executor_config *c)
{
    if (!c->scheduler) return wt_fail(WT_ERR_BAD_ARG, "device executor: no scheduler");
    if (!c->partition) return wt_fail(WT_ERR_BAD_ARG, "device executor: no partition");
    if (c->n_streams < 0 || c->n_streams > WT_SCHEDULER_MAX_LANES)
        return wt_fail(WT_ERR_BAD_ARG, "device executor: %d streams, want 0..%d", c->n_streams,
                       WT_SCHEDULER_MAX_LANES);
    if (!(c->poll_us >= 0 && c->poll_us <= 1e6))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: poll every %g us, want 0..1e6", c->poll_us);
    if (!(c->hang_us >= 0))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: hang after %g us, want 0 or more", c->hang_us);
    return WT_OK;
}

static wt_status create_lane(wt_partition *partition, lane *l)
{
    wt_device *device = wt_partition_device(partition);
    wt_status status = wt_partition_stream_create(partition, NULL, &l->stream);
    if (!status) status = wt_event_create(device, &l->begin);
    if (!status) status = wt_event_create(device, &l->end);
    return status;
}

wt_status wt_device_executor_create(const wt_device_executor_config *config, wt_device_executor **executor)
{
    *executor = NULL;
    wt_status status = check_config(config);
    if (status) return status;
    wt_device_executor *e = calloc(1, sizeof *e);
    if (!e) return wt_fail(WT_ERR_NO_MEMORY, "device executor: handle");
    e->config = *config;
    e->config.n_streams = config->n_streams ? config->n_streams : 1;
    e->config.poll_us = config->poll_us > 0 ? config->poll_us : 20;
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->launched, NULL);
    for (int k = 0; k < e->config.n_streams && !status; k++) status = create_lane(config->partition, &e->lanes[k]);
    if (status) goto fail;
    e->has_thread = !pthread_create(&e->thread, NULL, thread_main, e);
    if (!e->has_thread) {
        status = wt_fail(WT_ERR_NO_MEMORY, "device executor: cannot start its thread");
        goto fail;
    }
    *executor = e;
    return WT_OK;

fail:
    wt_device_executor_destroy(e);
    return status;
}

void wt_device_executor_destroy(wt_device_executor *e)
{
    if (!e) return;
    pthread_mutex_lock(&e->mutex);
    e->stopping = true;
    for (int k = 0; k < e->config.n_streams; k++) e->lanes[k].cancelled = true;
    pthread_cond_signal(&e->launched);
    pthread_mutex_unlock(&e->mutex);
    if (e->has_thread) pthread_join(e->thread, NULL);
    for (int k = 0; k < e->config.n_streams; k++) {
        wt_event_destroy(e->lanes[k].begin);
        wt_event_destroy(e->lanes[k].end);
        wt_stream_destroy(e->lanes[k].stream);
    }
    pthread_cond_destroy(&e->launched);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

void wt_device_executor_get_info(wt_device_executor *e, wt_device_executor_info *info)
{
    pthread_mutex_lock(&e->mutex);
    *info = e->info;
    info->n_running = count_lanes(e, LANE_LAUNCHING);
    for (int k = 0; k < e->config.n_streams; k++) info->n_hung += e->lanes[k].state == LANE_RUNNING && e->lanes[k].hung;
    pthread_mutex_unlock(&e->mutex);
}
