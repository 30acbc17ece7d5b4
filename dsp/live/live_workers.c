#include "live_workers.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

static const int64_t EARLY_NS = 150000; // a worker wakes so long before the block it expects
static const int64_t IDLE_NS = 1000000; // and looks so often when none comes
enum { LATE_PERIODS = 4 };

static void pause_briefly(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/// The next stream of the present block, -1 = all are taken.
static int take(live_workers *w)
{
    unsigned long long at = atomic_load_explicit(&w->claim, memory_order_acquire);
    while ((int)(uint32_t)at < w->n_streams)
        if (atomic_compare_exchange_weak_explicit(&w->claim, &at, at + 1, memory_order_acq_rel, memory_order_acquire))
            return (int)(uint32_t)at;
    return -1;
}

/// Take streams until there are none; returns how many.
static int work(live_workers *w)
{
    int n = 0;
    for (int s; (s = take(w)) >= 0; n++) {
        wt__chain_span(w->chain, s, w->in + s * w->channels, w->out + s * w->out_channels, w->n_frames);
        atomic_fetch_add_explicit(&w->n_done, 1, memory_order_release);
    }
    return n;
}

WT_RT void wt__live_workers_run(live_workers *w, wt_chain *chain, const float *const *in, float *const *out,
                                int out_channels, int n_frames)
{
    w->chain = chain;
    w->in = in;
    w->out = out;
    w->channels = chain->channels;
    w->out_channels = out_channels;
    w->n_frames = n_frames;
    atomic_store_explicit(&w->n_done, 0, memory_order_relaxed);
    atomic_store_explicit(&w->begun_ns, wt_clock_now_ns(NULL), memory_order_relaxed);
    atomic_store_explicit(&w->period_ns, (int64_t)(n_frames * 1e9 / chain->rate_hz), memory_order_relaxed);
    const unsigned long long turn = (atomic_load_explicit(&w->claim, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&w->claim, turn << 32, memory_order_release);
    work(w);
    while (atomic_load_explicit(&w->n_done, memory_order_acquire) < (unsigned)w->n_streams) pause_briefly();
}

// ---- the threads

/// Between blocks: sleep until shortly before the next one is due, then look; sleep more when none comes.
static void rest(const live_workers *w)
{
    const int64_t begun_ns = atomic_load_explicit(&w->begun_ns, memory_order_relaxed);
    const int64_t period_ns = atomic_load_explicit(&w->period_ns, memory_order_relaxed);
    const int64_t wait_ns = begun_ns + period_ns - EARLY_NS - wt_clock_now_ns(NULL);
    const bool idle = wait_ns < -LATE_PERIODS * period_ns - IDLE_NS;
    if (wait_ns > 0 || idle)
        nanosleep(&(struct timespec){0, wait_ns > 0 && wait_ns < IDLE_NS ? (long)wait_ns : (long)IDLE_NS}, NULL);
    else
        pause_briefly();
}

static void *worker_main(void *user)
{
    live_workers *w = user;
    const struct sched_param priority = {.sched_priority = w->priority};
    if (w->priority) (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority); // ordinary if not permitted
    wt__denormals_off();
    while (!atomic_load_explicit(&w->quit, memory_order_relaxed)) {
        const int n = work(w);
        if (n)
            atomic_fetch_add_explicit(&w->n_taken, (unsigned long long)n, memory_order_relaxed);
        else
            rest(w);
    }
    return NULL;
}

wt_status wt__live_workers_create(int n_threads, int n_streams, int priority, live_workers **workers)
{
    *workers = NULL;
    if (!n_threads) return WT_OK;
    const size_t bytes = (sizeof(live_workers) + sizeof(pthread_t) * (size_t)n_threads + 63) & ~(size_t)63;
    live_workers *w = aligned_alloc(64, bytes);
    if (!w) return wt_fail(WT_ERR_NO_MEMORY, "live: workers");
    memset(w, 0, bytes);
    w->n_streams = n_streams;
    w->priority = priority;
    atomic_init(&w->claim, (unsigned long long)n_streams); // nothing to take before the first block
    for (; w->n_threads < n_threads; w->n_threads++)
        if (pthread_create(&w->threads[w->n_threads], NULL, worker_main, w)) {
            const int n = w->n_threads + 1;
            wt__live_workers_destroy(w);
            return wt_fail(WT_ERR_STATE, "live: worker thread %d of %d does not start", n, n_threads);
        }
    *workers = w;
    return WT_OK;
}

void wt__live_workers_destroy(live_workers *w)
{
    if (!w) return;
    atomic_store(&w->quit, true);
    for (int k = 0; k < w->n_threads; k++) pthread_join(w->threads[k], NULL);
    free(w);
}
