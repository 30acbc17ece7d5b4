/// Threads that take streams of a chain off the audio thread, on the CPU.
///
/// Memory order. The audio thread writes the block's fields and then `claim` (release); who takes a stream does so by
/// an exchange of `claim` (acquire). Each stream that is done is counted in `n_done` (release), and the audio thread,
/// having seen all of them (acquire), may write the next block's fields. A worker that lost its race reads no field.
#ifndef WT_LIVE_WORKERS_H
#define WT_LIVE_WORKERS_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include "../chain/chain_internal.h"

typedef struct live_workers {
    // of a block
    wt_chain *chain;
    const float *const *in;
    float *const *out;
    int channels, out_channels, n_frames;
    // between the threads
    alignas(64) atomic_ullong claim; // the block's turn << 32 | the next stream
    alignas(64) atomic_uint n_done;  // streams of the block
    atomic_ullong n_taken;           // streams that workers took, in all
    _Atomic int64_t begun_ns, period_ns;
    atomic_bool quit;
    int n_streams, n_threads, priority;
    pthread_t threads[];
} live_workers;

/// NULL without threads to start. Errors: WT_ERR_NO_MEMORY, WT_ERR_STATE (no threads).  [worker]
WT_CHECKED wt_status wt__live_workers_create(int n_threads, int n_streams, int priority, live_workers **workers);
void wt__live_workers_destroy(live_workers *workers); ///< Waits for the threads. NULL is allowed.  [worker]

/// All streams of `chain` through one block, each by whoever comes first. The audio thread waits only for streams that
/// a worker has begun; without workers awake it does them all.  [rt, running]
WT_RT void wt__live_workers_run(live_workers *workers, wt_chain *chain, const float *const *in, float *const *out,
                                int out_channels, int n_frames);

#endif
