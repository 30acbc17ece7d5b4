#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct member {
    pthread_t thread;
    void (*work)(void *user, int k);
    void *user;
    int k;
} member;

static void *begin(void *user)
{
    member *m = user;
    m->work(m->user, m->k);
    return NULL;
}

static void join(pthread_t thread, void (*tick)(void *user), void *tick_user)
{
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT) return;
        tick(tick_user);
    }
}

wt_status wt__crew_run(const char *name, int n, void (*work)(void *user, int k), void *user,
                       void (*tick)(void *user), void *tick_user)
{
    int started = 0;
    member *members = calloc((size_t)n, sizeof *members);
    if (!members) return wt_fail(WT_ERR_NO_MEMORY, "%s: %d workers", name, n);
    for (; started < n; started++) {
        members[started] = (member){.work = work, .user = user, .k = started};
        if (pthread_create(&members[started].thread, NULL, begin, &members[started])) break;
    }
    for (int k = 0; k < started; k++) join(members[k].thread, tick, tick_user);
    free(members);
    return started ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "%s: no thread can be started", name);
}
