/// A pool of worker threads that several callers share: each call spreads its items over the caller and the workers.
#ifndef WT_CPU_POOL_H
#define WT_CPU_POOL_H

#include <pthread.h>
#include <sched.h>
#include <warptone/kernel.h>

typedef struct wt__pool wt__pool;

/// Where a pool's threads stand.
typedef struct wt__placement {
    cpu_set_t cpus; ///< they may use
    int nice;       ///< -20 .. 19; 0, where the system does not permit it, and above 0 those who are nicer: as they are
} wt__placement;

/// `n_workers` threads beside the callers, 0 or more; `placement` is copied.
/// Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__pool_create(int n_workers, const wt__placement *placement, wt__pool **pool);
/// Put the calling thread where the pool's own stand.
void wt__pool_place_thread(const wt__pool *pool);
/// Whether the calling thread stands there, with ordinary priority: then it may do the work of a stream of the pool.
bool wt__pool_has_caller(const wt__pool *pool);
void wt__pool_destroy(wt__pool *pool); ///< Nothing may be running. NULL is allowed.

/// `function(args, k)` for k in 0 .. n_items - 1 in no order; returns when all are done. Any thread, also several at
/// once and from inside an item. `followed`: another call comes within microseconds, so workers that are done stay
/// awake for it, 50 us at most.
void wt__pool_run(wt__pool *pool, wt_cpu_function function, const void *args, int n_items, bool followed);

/// For a mutex that is held for a few steps only: who finds it taken looks again before sleeping.
void wt__mutex_init_brief(pthread_mutex_t *mutex);

#endif
