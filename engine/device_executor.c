// One lane a stream: free -> launching -> running -> free. The scheduler gives its callbacks one at a time, so starts
// and cancels of one scheduler never meet; the mutex orders them against the thread that looks for ends. Launches are
// made where the scheduler decides, which after an end is this thread: from one piece to the next there is no hand-over
// between threads. Ends are found by asking the event, since a driver callback would run on a thread of the driver that
// may not call it again; the pause between two looks is the price, and bounds how long a stream stands idle.
#include "graph_internal.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <warptone/device_executor.h>

typedef enum lane_state { LANE_FREE, LANE_LAUNCHING, LANE_RUNNING } lane_state;
typedef enum side_of { ON_DEVICE, ON_CPU, N_SIDES } side_of; ///< CPU: where lost work goes on

typedef struct side {
    wt_stream *stream;
    wt_event *begin, *end;
} side;

typedef struct lane {
    side sides[N_SIDES]; ///< the second only with fall_back_to_cpu
    _Atomic side_of at;  ///< of the present launch
    lane_state state;
    bool cancelled;
    wt_task task;
    wt_device_work *work; ///< or
    wt_graph *graph;
    wt_status status; ///< of queueing
    int64_t n_items;  ///< of the slice, 0 = one piece
} lane;

struct wt_device_executor {
    wt_device_executor_config config;
    wt_device *cpu; ///< for fall_back_to_cpu
    pthread_mutex_t mutex;
    pthread_cond_t launched;
    pthread_t thread;
    bool has_thread, stopping;
    wt_device_executor_info info;
    lane lanes[WT_SCHEDULER_MAX_LANES];
};

// ---- launching

static lane *take_lane(wt_device_executor *e, wt_task task, const wt_work *work, wt_status *status)
{
    lane *found = NULL;
    pthread_mutex_lock(&e->mutex);
    for (int k = 0; k < e->config.n_streams && !found && !e->stopping; k++)
        if (e->lanes[k].state == LANE_FREE) found = &e->lanes[k];
    if (found) {
        found->state = LANE_LAUNCHING;
        found->cancelled = false;
        found->task = task;
        found->work = work->device;
        found->graph = work->graph;
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

static wt_status queue_work(const lane *l)
{
    wt_stream *stream = l->sides[l->at].stream;
    const wt_device_work *w = l->work;
    atomic_store_explicit(&stream->last_kernel, NULL, memory_order_relaxed);
    if (l->graph) return wt_graph_launch(l->graph, stream);
    return (l->at == ON_CPU ? w->queue_cpu : w->queue)(w->user, stream, w->done_items, l->n_items);
}

/// The slice that is next, on the side that is set. Only a lost device is told by the status: other errors of queueing
/// end the task after what was queued has run, as must one whose end nothing would tell.
static wt_status launch_slice(lane *l)
{
    const side *to = &l->sides[l->at];
    wt_status status = wt_event_record(to->begin, to->stream);
    if (status) return status;
    l->status = queue_work(l);
    status = l->status == WT_ERR_DEVICE_LOST ? l->status : wt_event_record(to->end, to->stream);
    if (!status || status == WT_ERR_DEVICE_LOST) return status;
    wt_status ended = wt_stream_synchronize(to->stream);
    return ended == WT_ERR_DEVICE_LOST ? ended : status;
}

static bool can_fall_back(const wt_device_executor *e, const lane *l)
{
    return e->config.fall_back_to_cpu && l->work && l->work->queue_cpu && l->at == ON_DEVICE;
}

/// The sentence names every launch that was under way: the driver does not tell which one it was.
static void note_lost(wt_device_executor *e)
{
    char why[160], who[160] = "nothing of this executor";
    snprintf(why, sizeof why, "%s", wt_last_error());
    wt_task tasks[WT_SCHEDULER_MAX_LANES];
    const char *kernels[WT_SCHEDULER_MAX_LANES];
    int n = 0;
    pthread_mutex_lock(&e->mutex);
    bool known = e->info.lost;
    e->info.lost = true;
    for (int k = 0; k < e->config.n_streams && !known; k++) {
        const lane *l = &e->lanes[k];
        if (l->state == LANE_FREE || l->at != ON_DEVICE) continue;
        kernels[n] = atomic_load_explicit(&l->sides[ON_DEVICE].stream->last_kernel, memory_order_relaxed);
        tasks[n++] = l->task;
    }
    pthread_mutex_unlock(&e->mutex);
    if (known) return;
    for (int k = 0, used = 0; k < n && used < (int)sizeof who; k++) {
        wt_task_info info = {0};
        (void)!wt_scheduler_get_task(e->config.scheduler, tasks[k], &info);
        used += snprintf(who + used, sizeof who - (size_t)used, "%stask %s%s%s", k ? ", " : "", info.name,
                         kernels[k] ? ", last kernel " : "", kernels[k] ? kernels[k] : "");
    }
    pthread_mutex_lock(&e->mutex);
    snprintf(e->info.why_lost, sizeof e->info.why_lost, "the device is lost; running was %s: %s", who, why);
    pthread_mutex_unlock(&e->mutex);
}

static bool is_lost(wt_device_executor *e)
{
    pthread_mutex_lock(&e->mutex);
    bool lost = e->info.lost;
    pthread_mutex_unlock(&e->mutex);
    return lost;
}

static wt_status say_lost(wt_device_executor *e)
{
    wt_device_executor_info info;
    wt_device_executor_get_info(e, &info);
    return wt_fail(WT_ERR_DEVICE_LOST, "device executor: %s", info.why_lost);
}

static wt_status launch(wt_device_executor *e, lane *l)
{
    wt_device_work *w = l->work;
    l->n_items = w ? wt_slicer_next(&w->slicer, w->n_items - w->done_items) : 0;
    l->at = ON_DEVICE;
    wt_status status = is_lost(e) ? WT_ERR_DEVICE_LOST : launch_slice(l);
    if (status != WT_ERR_DEVICE_LOST) return status;
    note_lost(e);
    if (!can_fall_back(e, l)) return say_lost(e);
    l->at = ON_CPU;
    return launch_slice(l);
}

// ---- the scheduler's side

static wt_status check_work(const wt_device_executor *e, const wt_work *work)
{
    const wt_device_work *w = work->device;
    if (!w == !work->graph || (w && !w->queue))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: want work to queue or a graph, the task has %s",
                       w && work->graph ? "both" : "neither");
    if (w && (w->n_items < 0 || w->done_items < 0 || (w->n_items && w->done_items >= w->n_items)))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: %lld items of %lld done, want 0 or more, and some left",
                       (long long)w->done_items, (long long)w->n_items);
    if (w && w->n_items && !(w->slicer.target_us > 0))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: the work has items, and no slicer");
    if (e->config.only_slices && (!w || !w->n_items))
        return wt_fail(WT_ERR_BAD_ARG, "device executor: work in one piece, where only slices are allowed");
    return WT_OK;
}

static wt_status start_task(void *user, wt_task task, const wt_work *work)
{
    wt_device_executor *e = user;
    wt_status status = check_work(e, work);
    if (status) return status;
    lane *l = take_lane(e, task, work, &status);
    if (!l) return status;
    status = launch(e, l);
    set_lane(e, l, status ? LANE_FREE : LANE_RUNNING);
    return status;
}

/// The lane of a task, with the mutex held; NULL when it has none.
static lane *find_lane(wt_device_executor *e, wt_task task)
{
    for (int k = 0; k < e->config.n_streams; k++)
        if (e->lanes[k].state != LANE_FREE && e->lanes[k].task.serial == task.serial) return &e->lanes[k];
    return NULL;
}

static void cancel_task(void *user, wt_task task)
{
    wt_device_executor *e = user;
    pthread_mutex_lock(&e->mutex);
    lane *l = find_lane(e, task);
    if (l) l->cancelled = true;
    pthread_mutex_unlock(&e->mutex);
}

/// Every slice yields at its end, asked or not.
static void yield_task(void *user, wt_task task) { (void)user, (void)task; }

static void describe_task(void *user, wt_task task, char *text, size_t text_bytes)
{
    wt_device_executor *e = user;
    pthread_mutex_lock(&e->mutex); // so that the lane, with it the kernel's name, stays
    const lane *l = find_lane(e, task);
    const char *kernel = l ? atomic_load_explicit(&l->sides[l->at].stream->last_kernel, memory_order_relaxed) : NULL;
    if (l && l->graph)
        wt__graph_describe(l->graph, text, text_bytes);
    else if (kernel)
        snprintf(text, text_bytes, "kernel %s", kernel);
    pthread_mutex_unlock(&e->mutex);
}

wt_executor wt_device_executor_callbacks(wt_device_executor *e)
{
    return (wt_executor){.user = e,
                         .start = start_task,
                         .yield = e->config.only_slices ? yield_task : NULL,
                         .cancel = cancel_task,
                         .describe = describe_task};
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

/// The slice was lost with the device: run it again on the CPU. Called, and returns, with the mutex held; WT_OK = it
/// runs again.
static wt_status recover(wt_device_executor *e, lane *l)
{
    l->state = LANE_LAUNCHING;
    pthread_mutex_unlock(&e->mutex);
    note_lost(e);
    wt_status status = WT_ERR_DEVICE_LOST;
    if (can_fall_back(e, l)) {
        l->at = ON_CPU;
        status = launch_slice(l);
    }
    pthread_mutex_lock(&e->mutex);
    l->state = LANE_RUNNING;
    return status;
}

/// Called, and returns, with the mutex held.
static void report_end(wt_device_executor *e, lane *l)
{
    double us = 0;
    wt_status status = wt_event_elapsed_us(l->sides[l->at].begin, l->sides[l->at].end, &us);
    // An event may answer with an error of its own; waiting, which is over at once, tells what became of the device.
    if (status) status = wt_event_synchronize(l->sides[l->at].end) == WT_ERR_DEVICE_LOST ? WT_ERR_DEVICE_LOST : status;
    if (!status) status = l->status;
    if (status == WT_ERR_DEVICE_LOST) {
        status = recover(e, l);
        if (!status) return; // it runs again
    }
    bool more = !status && l->work && account(l->work, l->n_items, us);
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

/// Report what has ended; false when nothing had.
static bool look(wt_device_executor *e)
{
    bool any = false;
    for (int k = 0; k < e->config.n_streams; k++) {
        lane *l = &e->lanes[k];
        if (l->state != LANE_RUNNING || !wt_event_done(l->sides[l->at].end)) continue;
        report_end(e, l);
        any = true;
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
    return WT_OK;
}

static wt_status create_events(wt_device *device, side *s)
{
    wt_status status = wt_event_create(device, &s->begin);
    return status ? status : wt_event_create(device, &s->end);
}

static wt_status create_lane(wt_device_executor *e, lane *l)
{
    wt_status status = wt_partition_stream_create(e->config.partition, NULL, &l->sides[ON_DEVICE].stream);
    if (!status) status = create_events(wt_partition_device(e->config.partition), &l->sides[ON_DEVICE]);
    if (status || !e->cpu) return status;
    status = wt_stream_create(e->cpu, NULL, &l->sides[ON_CPU].stream);
    return status ? status : create_events(e->cpu, &l->sides[ON_CPU]);
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
    if (config->fall_back_to_cpu) status = wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &e->cpu);
    for (int k = 0; k < e->config.n_streams && !status; k++) status = create_lane(e, &e->lanes[k]);
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
    for (int k = 0; k < N_SIDES * e->config.n_streams; k++) {
        side *s = &e->lanes[k / N_SIDES].sides[k % N_SIDES];
        wt_event_destroy(s->begin);
        wt_event_destroy(s->end);
        wt_stream_destroy(s->stream);
    }
    wt_device_close(e->cpu);
    pthread_cond_destroy(&e->launched);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

void wt_device_executor_get_info(wt_device_executor *e, wt_device_executor_info *info)
{
    pthread_mutex_lock(&e->mutex);
    *info = e->info;
    info->n_running = count_lanes(e, LANE_LAUNCHING);
    pthread_mutex_unlock(&e->mutex);
}
