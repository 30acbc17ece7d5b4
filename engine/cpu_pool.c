// Jobs lie on their callers' stacks in a linked list under one mutex; items are handed out by an atomic counter. A
// worker counts itself into a job under the mutex before it touches it, so a caller that waits for the count to fall to
// zero may drop the job.
//
// A thread that sleeps comes back late: the kernel takes tens of microseconds, and the host of a virtual machine, which
// gives a halted processor to others, some hundreds. So before they sleep, a worker looks for the job that is announced
// to follow, and a caller for the last helper to leave, LOOK_NS at most. What is looked for may itself wait for the
// processor, so they do not look where there are more threads than processors, and after a caller has looked in vain
// the next RESTS do not.
#include "cpu_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <warptone/clock.h>

enum { LOOK_NS = 50000, LOOKS_A_TIME = 16, RESTS = 16 };

typedef struct job {
    wt_cpu_function function;
    const void *args;
    int n_items;
    bool followed;
    _Atomic long long next; ///< relaxed: the mutex and n_helpers order the work's data
    atomic_int n_helpers;   ///< workers inside; written under the pool's mutex
    struct job *after;
} job;

struct wt__pool {
    pthread_mutex_t mutex;
    pthread_cond_t work, idle;
    job *jobs;
    atomic_int n_posted; ///< jobs so far, modulo 2^32; written under the mutex
    bool quit;
    bool looks;         ///< before threads sleep
    atomic_int n_rests; ///< callers that do not, since one looked in vain
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

static void pause_processor(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/// Whether `word` became another than `value` while it was looked at.
static bool look_for_change(const atomic_int *word, int value)
{
    const int64_t end_ns = wt_clock_now_ns(NULL) + LOOK_NS;
    do {
        for (int k = 0; k < LOOKS_A_TIME; k++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            pause_processor();
        }
    } while (wt_clock_now_ns(NULL) < end_ns);
    return false;
}

static void *worker(void *user)
{
    wt__pool *pool = user;
    bool followed = false;
    wt__pool_place_thread(pool);
    pthread_mutex_lock(&pool->mutex);
    while (!pool->quit) {
        job *j = job_with_items(pool);
        if (!j && followed && pool->n_rests <= 0) {
            const int n_posted = pool->n_posted;
            pthread_mutex_unlock(&pool->mutex);
            followed = look_for_change(&pool->n_posted, n_posted);
            pthread_mutex_lock(&pool->mutex);
            continue;
        }
        if (!j) {
            pthread_cond_wait(&pool->work, &pool->mutex);
            continue;
        }
        j->n_helpers++;
        pthread_mutex_unlock(&pool->mutex);
        run_items(j);
        followed = j->followed;
        pthread_mutex_lock(&pool->mutex);
        if (--j->n_helpers == 0) pthread_cond_broadcast(&pool->idle);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

void wt__pool_place_thread(const wt__pool *pool)
{
    sched_setaffinity(0, sizeof pool->placement.cpus, &pool->placement.cpus);
    const int nice = pool->placement.nice; // on Linux 0 is the calling thread; to be nice is no way up for who is nicer
    if (nice < 0 || (nice && getpriority(PRIO_PROCESS, 0) < nice)) setpriority(PRIO_PROCESS, 0, nice);
}

bool wt__pool_has_caller(const wt__pool *pool)
{
    cpu_set_t cpus;
    if (pool->placement.nice || sched_getscheduler(0) != SCHED_OTHER) return false;
    return !sched_getaffinity(0, sizeof cpus, &cpus) && CPU_EQUAL(&cpus, &pool->placement.cpus);
}

void wt__mutex_init_brief(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &kind);
    pthread_mutexattr_destroy(&kind);
}

wt_status wt__pool_create(int n_workers, const wt__placement *placement, wt__pool **pool)
{
    wt__pool *p = *pool = calloc(1, sizeof *p + sizeof(pthread_t) * (size_t)n_workers);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "device: no memory for a pool of %d threads", n_workers);
    p->placement = *placement;
    p->looks = n_workers < CPU_COUNT(&placement->cpus);
    wt__mutex_init_brief(&p->mutex);
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

/// How many are still inside after a look; no more come.
static int helpers_left(wt__pool *pool, const job *j)
{
    int n = j->n_helpers;
    if (!n || !pool->looks) return n;
    if (pool->n_rests > 0) {
        pool->n_rests--;
        return n;
    }
    while (n && look_for_change(&j->n_helpers, n)) n = j->n_helpers;
    if (n) pool->n_rests = RESTS;
    return n;
}

void wt__pool_run(wt__pool *pool, wt_cpu_function function, const void *args, int n_items, bool followed)
{
    job j = {.function = function, .args = args, .n_items = n_items, .followed = followed && pool->looks};
    if (n_items < 2 || !pool->n_workers) {
        run_items(&j);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    j.after = pool->jobs;
    pool->jobs = &j;
    pool->n_posted++;
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
    pthread_mutex_unlock(&pool->mutex);

    if (!helpers_left(pool, &j)) return;
    pthread_mutex_lock(&pool->mutex);
    while (j.n_helpers) pthread_cond_wait(&pool->idle, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}
