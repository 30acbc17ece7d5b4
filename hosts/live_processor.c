#include "live_processor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { LOOK_NS = 50000000, ALL_NS = 2000000000, HOLE_NS = 2000 }; // a reading of the clock takes 20 to 60 ns

/// What is lost while only the clock is read, of the time.
static double lost_here(int64_t look_ns)
{
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    int64_t before_ns = begin_ns, lost_ns = 0;
    while (before_ns - begin_ns < look_ns) {
        const int64_t now_ns = wt_clock_now_ns(NULL);
        if (now_ns - before_ns > HOLE_NS) lost_ns += now_ns - before_ns;
        before_ns = now_ns;
    }
    return (double)lost_ns / (double)(before_ns - begin_ns);
}

int live_processor_measure(const cpu_set_t *set, double *lost)
{
    const int n = CPU_COUNT(set);
    const int64_t look_ns = (int64_t)n * LOOK_NS < ALL_NS ? LOOK_NS : ALL_NS / n;
    int least = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        cpu_set_t one;
        if (!CPU_ISSET((size_t)cpu, set)) continue;
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        lost[cpu] = 1;
        if (pthread_setaffinity_np(pthread_self(), sizeof one, &one)) continue;
        lost[cpu] = lost_here(look_ns);
        if (least < 0 || lost[cpu] < lost[least]) least = cpu;
    }
    return least;
}

static void leave_out_siblings(int cpu, cpu_set_t *set)
{
    char path[96], list[256] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (file && !fgets(list, sizeof list, file)) *list = 0;
    if (file) fclose(file);
    for (char *at = list, *end; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) { // "3,7" or "2-3"
        const long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long k = first; k <= last && k < CPU_SETSIZE; k++) CPU_CLR((size_t)k, set);
    }
    CPU_CLR((size_t)cpu, set);
}

static wt_status choose_quiet(live_processor *p, const cpu_set_t *all)
{
    double *lost = malloc(sizeof *lost * CPU_SETSIZE);
    if (!lost) return wt_fail(WT_ERR_NO_MEMORY, "live: processors");
    p->cpu = live_processor_measure(all, lost);
    p->lost = p->cpu < 0 ? -1 : lost[p->cpu];
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, all) && lost[cpu] > p->most_lost) p->most_lost = lost[cpu];
    free(lost);
    if (p->cpu >= 0) return WT_OK;
    return wt_fail(WT_ERR_UNSUPPORTED, "live: the system gives no processor of its own to a thread");
}

static wt_status choose_number(const char *text, live_processor *p, const cpu_set_t *all)
{
    char *end;
    const long cpu = strtol(text, &end, 10);
    if (end == text || *end)
        return wt_fail(WT_ERR_BAD_ARG, "--processor is '%s', want a processor's number or quiet", text);
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, all))
        return wt_fail(WT_ERR_BAD_ARG, "--processor is %ld, want one that this program may use (`taskset -p $$`)", cpu);
    p->cpu = (int)cpu;
    return WT_OK;
}

wt_status live_processor_choose(const char *text, live_processor *p)
{
    cpu_set_t all;
    *p = (live_processor){.lost = -1, .most_lost = -1};
    if (sched_getaffinity(0, sizeof all, &all))
        return wt_fail(WT_ERR_UNSUPPORTED, "live: processors: %s", strerror(errno));
    wt_status status = !strcmp(text, "quiet") ? choose_quiet(p, &all) : choose_number(text, p, &all);
    if (status) return status;
    CPU_ZERO(&p->own);
    CPU_SET((size_t)p->cpu, &p->own);
    p->others = all;
    leave_out_siblings(p->cpu, &p->others);
    p->chosen = CPU_COUNT(&p->others) > 0;
    const int error = pthread_setaffinity_np(pthread_self(), sizeof all, p->chosen ? &p->others : &all);
    if (!p->chosen)
        return wt_fail(WT_ERR_UNSUPPORTED, "live: beside processor %d and its siblings there is none for other threads",
                       p->cpu);
    return error ? wt_fail(WT_ERR_UNSUPPORTED, "live: processors: %s", strerror(error)) : WT_OK;
}

void live_processor_place(const live_processor *p, pthread_t thread, bool own)
{
    // refused only when processors have gone since: then the thread stays where it is
    if (p->chosen) (void)pthread_setaffinity_np(thread, sizeof(cpu_set_t), own ? &p->own : &p->others);
}
