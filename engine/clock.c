#include <warptone/clock.h>

#include <time.h>

WT_RT int64_t wt_clock_now_ns(const wt_clock *clock)
{
    if (clock && clock->now_ns) return clock->now_ns(clock->user);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t manual_now_ns(void *user) { return ((const wt_manual_clock *)user)->time_ns; }

void wt_manual_clock_init(wt_manual_clock *clock, int64_t start_ns)
{
    *clock = (wt_manual_clock){.clock = {manual_now_ns, clock}, .time_ns = start_ns};
}

void wt_manual_clock_advance(wt_manual_clock *clock, int64_t delta_ns) { clock->time_ns += delta_ns; }
