// Jobs lie on their callers' stacks in a linked list under one mutex; items are handed out by an atomic counter. A
// worker counts itself into a job under the mutex before it touches it, so a caller that waits for the count to fall to
// zero may drop the job.
#include "cpu_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

typedef struct job {
    wt_cpu_function function;
    const void *args;
    int n_items;
    _Atomic long long next; ///< relaxed: the mutex orders the work's data
    int n_helpers;          ///< workers inside; under the pool's mutex
    struct job *after;
} job;

struct wt__pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, idle;
    job *jobs;
    bool quit;
    bool placed;
    wt__placement placement;
    int n_workers;
    pthread_t workers[];
};

static void run_items(job *j)
{
    for (;;) {
        long long item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (item >= j->n_items) return;
        j->function(j->args, (int)item);
    }
}

static job *job_with_items(wt__pool *pool)
{
    for (job *j = pool->jobs; j; j = j->after)
        if (atomic_load_explicit(&j->next, memory_order_relaxed) < j->n_items) return j;
    return NULL;
}

static void *worker(void *user)
{
    wt__pool *pool = user;
    wt__pool_place_thread(pool);
    pthread_mutex_lock(&pool->mutex);
    while (!pool->quit) {
        job *j = job_with_items(pool);
        if (!j) {
            pthread_cond_wait(&pool->work, &pool->mutex);
            continue;
        }
        j->n_helpers++;
        pthread_mutex_unlock(&pool->mutex);
        run_items(j);
        pthread_mutex_lock(&pool->mutex);
        if (--j->n_helpers == 0) pthread_cond_broadcast(&pool->idle);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

void wt__pool_place_thread(const wt__pool *pool)
{
    if (!pool->placed) return;
    sched_setaffinity(0, sizeof pool->placement.cpus, &pool->placement.cpus);
    if (pool->placement.nice) setpriority(PRIO_PROCESS, 0, pool->placement.nice); // on Linux 0 is the calling thread
}

wt_status wt__pool_create(int n_workers, const wt__placement *placement, wt__pool **pool)
{
    wt__pool *p = *pool = calloc(1, sizeof *p + sizeof(pthread_t) * (size_t)n_workers);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "device: no memory for a pool of %d threads", n_workers);
    p->placed = placement != NULL;
    if (placement) p->placement = *placement;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    for (; p->n_workers < n_workers; p->n_workers++) {
        if (!pthread_create(&p->workers[p->n_workers], NULL, worker, p)) continue;
        wt__pool_destroy(p);
        *pool = NULL;
        return wt_fail(WT_ERR_NO_MEMORY, "device: the system gives no more threads, want %d", n_workers);
    }
    return WT_OK;
}

void wt__pool_destroy(wt__pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int k = 0; k < pool->n_workers; k++) pthread_join(pool->workers[k], NULL);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

void wt__pool_run(wt__pool *pool, wt_cpu_function function, const void *args, int n_items)
{
    job j = {.function = function, .args = args, .n_items = n_items};
    if (n_items < 2 || !pool->n_workers) {
        run_items(&j);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    j.after = pool->jobs;
    pool->jobs = &j;
    if (n_items == 2)
        pthread_cond_signal(&pool->work);
    else
        pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);

    run_items(&j);

    pthread_mutex_lock(&pool->mutex);
    job **link = &pool->jobs;
    while (*link != &j) link = &(*link)->after;
    *link = j.after;
    while (j.n_helpers) pthread_cond_wait(&pool->idle, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}
