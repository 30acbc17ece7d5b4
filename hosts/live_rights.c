#include "live_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *nothing(void *user) { return user; }

int live_rights_try_fifo(int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &param);
    int error = pthread_create(&thread, &attributes, nothing, NULL);
    if (!error) pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

bool live_rights(char *sentence, size_t size)
{
    // only what is there now: MCL_FUTURE would let later allocations fail where the limit is small
    const bool locked = mlockall(MCL_CURRENT) == 0;
    const bool fifo = !live_rights_try_fifo(sched_get_priority_min(SCHED_FIFO));
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

// The kernel's PM QoS: the largest latency, in us, that anyone who holds the file open still wants. At 0 idle
// processors poll, and a virtual one is not given back to its host.
wt_status live_rights_awake(const char *path, int *fd)
{
    const int32_t latency_us = 0;
    if (!path) path = "/dev/cpu_dma_latency";
    *fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool written = *fd >= 0 && write(*fd, &latency_us, sizeof latency_us) == sizeof latency_us;
    if (written) return WT_OK;
    const int error = errno;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return wt_fail(WT_ERR_UNSUPPORTED,
                   "live: %s: %s; to keep processors awake put KERNEL==\"cpu_dma_latency\", GROUP=\"audio\", "
                   "MODE=\"0660\" into /etc/udev/rules.d/99-audio.rules",
                   path, strerror(error));
}
