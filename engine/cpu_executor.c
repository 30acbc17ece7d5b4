// Worker threads of one CPU partition. The scheduler never starts more tasks than the partition has lanes, so a start
// always finds an idle worker's slot. The two flags of a job are the only things a running function shares with
// others: relaxed atomics, since they order nothing.
#include "graph_internal.h"
#include "scheduler_slots.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <warptone/cpu_executor.h>

struct wt_job {
    wt_task task;
    wt_work work;
    atomic_bool stop, cancelled;
    bool later, busy, taken; ///< busy: holds a task; taken: a worker runs it
};

/// How far the graph of a task has come that gave way. Serials are never used again, so what is left behind by a task
/// that was cancelled in the line means nothing to the next one in its slot.
typedef struct progress {
    uint64_t serial; ///< 0 = none
    int next_node;
} progress;

typedef struct worker {
    wt_cpu_executor *executor;
    pthread_t thread;
    int index;
} worker;

struct wt_cpu_executor {
    wt_cpu_executor_config config;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stopping;
    int n_started;
    wt_cpu_executor_info info;
    int *cpus;
    progress *halfway; ///< [the scheduler's slots]
    wt_job jobs[WT_SCHEDULER_MAX_LANES];
    worker workers[WT_SCHEDULER_MAX_LANES];
};

WT_RT bool wt_job_should_stop(const wt_job *job)
{
    return atomic_load_explicit(&job->stop, memory_order_relaxed) || wt_job_is_cancelled(job);
}

WT_RT bool wt_job_is_cancelled(const wt_job *job)
{
    return atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

void wt_job_continue_later(wt_job *job) { job->later = true; }

wt_task wt_job_task(const wt_job *job) { return job->task; }

static void set_up_thread(wt_cpu_executor *e, int index)
{
    const wt_cpu_executor_config *c = &e->config;
    bool pinned = false, priority = false;
    if (c->n_cpus) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)e->cpus[index % c->n_cpus], &set);
        pinned = !pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    if (c->realtime_priority)
        priority = !pthread_setschedparam(pthread_self(), SCHED_FIFO,
                                          &(struct sched_param){.sched_priority = c->realtime_priority});
    else if (c->nice)
        priority = !setpriority(PRIO_PROCESS, 0, c->nice); // 0: on Linux the calling thread alone
    pthread_mutex_lock(&e->mutex);
    e->info.n_pinned += pinned;
    e->info.n_priority += priority;
    e->n_started++;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->mutex);
}

static int64_t thread_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static wt_job *find_job(wt_cpu_executor *e, bool (*fits)(const wt_job *, const wt_task *), const wt_task *task)
{
    for (int k = 0; k < e->config.n_threads; k++)
        if (fits(&e->jobs[k], task)) return &e->jobs[k];
    return NULL;
}

static bool is_free(const wt_job *job, const wt_task *task) { return (void)task, !job->busy; }
static bool is_waiting(const wt_job *job, const wt_task *task) { return (void)task, job->busy && !job->taken; }
static bool is_of(const wt_job *job, const wt_task *task) { return job->busy && job->task.serial == task->serial; }

/// The node with which the task goes on.
static int take_progress(wt_cpu_executor *e, wt_task task)
{
    progress *p = &e->halfway[task.slot];
    pthread_mutex_lock(&e->mutex);
    const int node = p->serial == task.serial ? p->next_node : 0;
    *p = (progress){0};
    pthread_mutex_unlock(&e->mutex);
    return node;
}

static void keep_progress(wt_cpu_executor *e, wt_task task, int next_node)
{
    pthread_mutex_lock(&e->mutex);
    e->halfway[task.slot] = (progress){task.serial, next_node};
    pthread_mutex_unlock(&e->mutex);
}

/// Node by node; between two it can be stopped, and goes on later.
static wt_status run_graph(wt_cpu_executor *e, wt_job *job)
{
    int node = take_progress(e, job->task);
    bool more = true;
    wt_status status = WT_OK;
    while (more && !status && !job->later) {
        status = wt__graph_run_here(job->work.graph, node++, &more);
        if (more && wt_job_should_stop(job)) wt_job_continue_later(job);
    }
    if (!status && job->later) keep_progress(e, job->task, node);
    return status;
}

static void run_job(wt_cpu_executor *e, wt_job *job)
{
    const wt_work *w = &job->work;
    int64_t begin_ns = thread_time_ns();
    wt_status status = wt_job_is_cancelled(job) ? WT_ERR_CANCELLED
                       : w->run                 ? w->run(w->user, job)
                                                : run_graph(e, job);
    int64_t device_ns = thread_time_ns() - begin_ns;
    wt_task task = job->task;
    if (!status && wt_job_is_cancelled(job)) status = WT_ERR_CANCELLED; // also when only destroy asked
    bool later = job->later && !status;
    pthread_mutex_lock(&e->mutex);
    job->busy = false; // before the report, which may start the next task
    pthread_mutex_unlock(&e->mutex);
    // Refused only when someone else reported the task: a mistake of theirs that the scheduler has answered.
    if (later) (void)!wt_scheduler_yield(e->config.scheduler, task, device_ns);
    else (void)!wt_scheduler_finish(e->config.scheduler, task, status, device_ns);
}

static void *worker_main(void *user)
{
    worker *w = user;
    wt_cpu_executor *e = w->executor;
    set_up_thread(e, w->index);
    pthread_mutex_lock(&e->mutex);
    for (;;) {
        wt_job *job = find_job(e, is_waiting, NULL);
        if (!job && e->stopping) break;
        if (!job) {
            pthread_cond_wait(&e->work, &e->mutex);
            continue;
        }
        job->taken = true;
        pthread_mutex_unlock(&e->mutex);
        run_job(e, job);
        pthread_mutex_lock(&e->mutex);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

static wt_status start_task(void *user, wt_task task, const wt_work *work)
{
    wt_cpu_executor *e = user;
    if (!work->run == !work->graph)
        return wt_fail(WT_ERR_BAD_ARG, "cpu executor: want a function or a graph, the task has %s",
                       work->run ? "both" : "neither");
    if (!wt__scheduler_owns(e->config.scheduler, task))
        return wt_fail(WT_ERR_BAD_ARG, "cpu executor: a task of another scheduler");
    pthread_mutex_lock(&e->mutex);
    wt_job *job = find_job(e, is_free, NULL);
    if (job && !e->stopping) {
        job->task = task;
        job->work = *work;
        job->busy = true;
        job->taken = job->later = false;
        atomic_store_explicit(&job->stop, false, memory_order_relaxed);
        atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);
        pthread_cond_signal(&e->work);
    }
    bool stopping = e->stopping;
    pthread_mutex_unlock(&e->mutex);
    if (stopping) return WT_ERR_CANCELLED;
    return job ? WT_OK : wt_fail(WT_ERR_FULL, "cpu executor: the partition has more lanes than the %d threads",
                                 e->config.n_threads);
}

static void flag_task(wt_cpu_executor *e, wt_task task, bool cancel)
{
    pthread_mutex_lock(&e->mutex);
    wt_job *job = find_job(e, is_of, &task);
    if (job) atomic_store_explicit(cancel ? &job->cancelled : &job->stop, true, memory_order_relaxed);
    pthread_mutex_unlock(&e->mutex);
}

static void yield_task(void *user, wt_task task) { flag_task(user, task, false); }
static void cancel_task(void *user, wt_task task) { flag_task(user, task, true); }

wt_executor wt_cpu_executor_callbacks(wt_cpu_executor *e)
{
    return (wt_executor){.user = e, .start = start_task, .yield = yield_task, .cancel = cancel_task};
}

static wt_status check_config(const wt_cpu_executor_config *c)
{
    if (!c->scheduler) return wt_fail(WT_ERR_BAD_ARG, "cpu executor: no scheduler");
    if (c->n_threads < 0 || c->n_threads > WT_SCHEDULER_MAX_LANES)
        return wt_fail(WT_ERR_BAD_ARG, "cpu executor: %d threads, want 0..%d", c->n_threads, WT_SCHEDULER_MAX_LANES);
    if (c->n_cpus < 0 || (c->n_cpus && !c->cpus)) return wt_fail(WT_ERR_BAD_ARG, "cpu executor: %d cpus", c->n_cpus);
    for (int k = 0; k < c->n_cpus; k++)
        if (c->cpus[k] < 0 || c->cpus[k] >= CPU_SETSIZE)
            return wt_fail(WT_ERR_BAD_ARG, "cpu executor: cpu %d, want 0..%d", c->cpus[k], CPU_SETSIZE - 1);
    if (c->nice < -20 || c->nice > 19) return wt_fail(WT_ERR_BAD_ARG, "cpu executor: nice %d, want -20..19", c->nice);
    if (c->realtime_priority < 0 || c->realtime_priority > 99)
        return wt_fail(WT_ERR_BAD_ARG, "cpu executor: real-time priority %d, want 0..99", c->realtime_priority);
    return WT_OK;
}

wt_status wt_cpu_executor_create(const wt_cpu_executor_config *config, wt_cpu_executor **executor)
{
    *executor = NULL;
    wt_status status = check_config(config);
    if (status) return status;
    wt_cpu_executor *e = calloc(1, sizeof *e);
    if (!e) return wt_fail(WT_ERR_NO_MEMORY, "cpu executor: handle");
    e->config = *config;
    e->config.n_threads = config->n_threads ? config->n_threads : 1;
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->work, NULL);
    const int n_slots = wt__scheduler_n_slots(config->scheduler);
    e->cpus = calloc((size_t)config->n_cpus + 1, sizeof *e->cpus);
    e->halfway = calloc((size_t)n_slots, sizeof *e->halfway);
    if (!e->cpus || !e->halfway) {
        wt_cpu_executor_destroy(e);
        return wt_fail(WT_ERR_NO_MEMORY, "cpu executor: %d cpus, %d tasks", config->n_cpus, n_slots);
    }
    for (int k = 0; k < config->n_cpus; k++) e->cpus[k] = config->cpus[k];
    for (int k = 0; k < e->config.n_threads; k++) {
        e->workers[k] = (worker){.executor = e, .index = k};
        if (pthread_create(&e->workers[k].thread, NULL, worker_main, &e->workers[k])) {
            wt_cpu_executor_destroy(e);
            return wt_fail(WT_ERR_NO_MEMORY, "cpu executor: cannot start thread %d", k);
        }
        e->info.n_threads++;
    }
    pthread_mutex_lock(&e->mutex);
    while (e->n_started < e->info.n_threads) pthread_cond_wait(&e->work, &e->mutex);
    pthread_mutex_unlock(&e->mutex);
    *executor = e;
    return WT_OK;
}

void wt_cpu_executor_destroy(wt_cpu_executor *e)
{
    if (!e) return;
    pthread_mutex_lock(&e->mutex);
    e->stopping = true;
    for (int k = 0; k < e->config.n_threads; k++)
        if (e->jobs[k].busy) atomic_store_explicit(&e->jobs[k].cancelled, true, memory_order_relaxed);
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->mutex);
    for (int k = 0; k < e->info.n_threads; k++) pthread_join(e->workers[k].thread, NULL);
    pthread_mutex_destroy(&e->mutex);
    pthread_cond_destroy(&e->work);
    free(e->cpus);
    free(e->halfway);
    free(e);
}

void wt_cpu_executor_get_info(const wt_cpu_executor *e, wt_cpu_executor_info *info)
{
    wt_cpu_executor *locked = (wt_cpu_executor *)e; // only its mutex changes
    pthread_mutex_lock(&locked->mutex);
    *info = e->info;
    pthread_mutex_unlock(&locked->mutex);
}
