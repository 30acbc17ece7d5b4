/// Time: the machine's monotonic clock, or one that a test or a simulation moves by hand.
#ifndef WARPTONE_CLOCK_H
#define WARPTONE_CLOCK_H

#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A source of nanoseconds. `now_ns` NULL = CLOCK_MONOTONIC. Pass structs of this by pointer; borrowed.
typedef struct wt_clock {
    int64_t (*now_ns)(void *user);
    void *user;
} wt_clock;

/// Nanoseconds of `clock`; NULL or a zeroed struct = CLOCK_MONOTONIC (read through the vDSO, no system call).  [rt]
WT_RT int64_t wt_clock_now_ns(const wt_clock *clock);

/// A clock that stands still until it is moved.
typedef struct wt_manual_clock {
    wt_clock clock;
    int64_t time_ns;
} wt_manual_clock;

/// Set it, and move it by `delta_ns`. Its reader and who moves it are one thread, or take turns.  [any]
void wt_manual_clock_init(wt_manual_clock *clock, int64_t start_ns);
void wt_manual_clock_advance(wt_manual_clock *clock, int64_t delta_ns);

#ifdef __cplusplus
}
#endif
#endif
