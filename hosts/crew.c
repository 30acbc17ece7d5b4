#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <warptone/clock.h>

enum { TICK_NS = 50000000 };

typedef struct crew {
    void (*work)(void *user, int k);
    void *user;
    pthread_mutex_t mutex;
    pthread_cond_t ended; ///< the last of them
    int n_working;
} crew;

typedef struct member {
    crew *crew;
    pthread_t thread;
    int k;
} member;

static void init(crew *c)
{
    pthread_condattr_t monotonic; // the other clock may jump
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&c->mutex, NULL);
}

static void leave(crew *c)
{
    pthread_mutex_lock(&c->mutex);
    if (!--c->n_working) pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->mutex);
}

static void *begin(void *user)
{
    const member *m = user;
    m->crew->work(m->crew->user, m->k);
    leave(m->crew);
    return NULL;
}

static bool start(member *m)
{
    crew *c = m->crew;
    pthread_mutex_lock(&c->mutex);
    c->n_working++;
    pthread_mutex_unlock(&c->mutex);
    if (!pthread_create(&m->thread, NULL, begin, m)) return true;
    leave(c);
    return false;
}

/// Until all have ended.
static void watch(crew *c, void (*tick)(void *user), void *tick_user)
{
    pthread_mutex_lock(&c->mutex);
    while (c->n_working) {
        const int64_t until_ns = wt_clock_now_ns(NULL) + TICK_NS;
        const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
        if (pthread_cond_timedwait(&c->ended, &c->mutex, &until) != ETIMEDOUT) continue;
        pthread_mutex_unlock(&c->mutex);
        tick(tick_user);
        pthread_mutex_lock(&c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

wt_status wt__crew_run(const char *name, int n, void (*work)(void *user, int k), void *user,
                       void (*tick)(void *user), void *tick_user)
{
    member *members = calloc((size_t)n, sizeof *members);
    if (!members) return wt_fail(WT_ERR_NO_MEMORY, "%s: %d workers", name, n);
    crew c = {.work = work, .user = user};
    init(&c);
    int n_started = 0;
    for (; n_started < n; n_started++) {
        members[n_started] = (member){.crew = &c, .k = n_started};
        if (!start(&members[n_started])) break;
    }
    watch(&c, tick, tick_user);
    for (int k = 0; k < n_started; k++) pthread_join(members[k].thread, NULL);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.mutex);
    free(members);
    return n_started ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: no thread can be started", name);
}
