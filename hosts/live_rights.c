#include "live_rights.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *nothing(void *user) { return user; }

static bool may_run_fifo(void)
{
    const struct sched_param priority = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &priority);
    int error = pthread_create(&thread, &attributes, nothing, NULL);
    if (!error) pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return !error;
}

bool live_rights(char *sentence, size_t size)
{
    // only what is there now: MCL_FUTURE would let later allocations fail where the limit is small
    const bool locked = mlockall(MCL_CURRENT) == 0, fifo = may_run_fifo();
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    *sentence = 0;
    if (locked && fifo) return true;
    char memory[96] = "";
    if (!locked)
        snprintf(memory, sizeof memory, "its memory is not locked (limit %llu KiB)",
                 (unsigned long long)limit.rlim_cur / 1024);
    snprintf(sentence, size,
             "%s%s%s: expect dropouts under load; put \"@audio - rtprio 95\" and \"@audio - memlock unlimited\" into "
             "/etc/security/limits.d/audio.conf, join the group audio and log in again",
             fifo ? "" : "real-time priority is not permitted", !fifo && !locked ? " and " : "", memory);
    return false;
}
