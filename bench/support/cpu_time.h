/// The time that processors worked for this process: other programs' turns do not count, as they do on a wall clock.
#ifndef WT_BENCH_CPU_TIME_H
#define WT_BENCH_CPU_TIME_H

#include <time.h>

/// Seconds, the sum over all threads.
static inline double bench_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
