/// Memory that runs out on command: the test program's own malloc family stands before the C library's.
///
/// All of it concerns the calling thread only. In sanitizer builds it stands before the sanitizer's own.
#ifndef WT_FAILING_ALLOC_H
#define WT_FAILING_ALLOC_H

#include <warptone/status.h>

/// From now on count this thread's allocations, and let number `k` (0 = the next) return NULL; -1 = none.
void failing_alloc_start(long k);

typedef struct failing_alloc_counts {
    long n_allocations; ///< calls of malloc, calloc, realloc and the rest since start, the failed one included
    long n_live;        ///< blocks taken and not given back since start, on this thread
} failing_alloc_counts;

/// Back to normal.
failing_alloc_counts failing_alloc_stop(void);

/// Call `create(user)` with allocation 0 failing, then with 1, 2 and so on until it meets no failing one and succeeds;
/// then `destroy(user)`. Fails the test unless each failure gives WT_ERR_NO_MEMORY with a sentence and gives back all
/// it took. A first round without failure lets tables be made that are made once. Returns the number of allocations of
/// `create`.
long assert_survives_failing_alloc(wt_status (*create)(void *user), void (*destroy)(void *user), void *user);

#endif
