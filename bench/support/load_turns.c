#include "load_turns.h"

#include <stdio.h>
#include <time.h>
#include <warptone/clock.h>

enum { QUARTERS = 4 };
static const double SETTLE_S = 0.1; // after a move

static void sleep_s(double seconds)
{
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

static void *take_turns(void *user)
{
    load_turns *t = user;
    long long before[GPU_LOAD_THREADS];
    int k = 0;
    for (; k < t->n && !t->status && !atomic_load(&t->quit); k++) {
        t->status = wt_live_move(t->live, k % 2 != 0);
        sleep_s(SETTLE_S);
        for (int i = 0; i < t->n_loads; i++) before[i] = atomic_load(&t->loads[i].n_done);
        const int64_t begin_ns = wt_clock_now_ns(NULL);
        sleep_s(t->turn_s - SETTLE_S);
        gpu_load_rates(t->loads, t->n_loads, before, begin_ns, t->rates[k]);
    }
    if (!t->status) t->status = wt_live_move(t->live, false);
    t->n = k & ~1;
    return NULL;
}

wt_status load_turns_start(load_turns *t, wt_live *live, const gpu_load *loads, int n_loads, double turn_s,
                           double seconds)
{
    const double n = seconds / turn_s - 1; // the last one ends before the blocks do
    *t = (load_turns){.live = live, .loads = loads, .n_loads = n_loads, .turn_s = turn_s};
    t->n = n < 2 ? 2 : n > LOAD_TURNS ? LOAD_TURNS : (int)n & ~1;
    return pthread_create(&t->thread, NULL, take_turns, t) ? wt_fail(WT_ERR_NO_MEMORY, "no thread for turns") : WT_OK;
}

wt_status load_turns_stop(load_turns *t)
{
    atomic_store(&t->quit, true);
    pthread_join(t->thread, NULL);
    return t->status ? wt_fail(t->status, "the chain could not be moved") : WT_OK;
}

void load_turns_print(const load_turns *t)
{
    for (int q = 0; q < QUARTERS; q++) {
        const int from = t->n / 2 * q / QUARTERS * 2, to = t->n / 2 * (q + 1) / QUARTERS * 2;
        if (from == to) continue;
        printf("roundtrip    turns of %.0f s, from %.0f s:", t->turn_s, from * t->turn_s);
        for (int kind = 0; kind < N_GPU_LOADS; kind++) {
            double with = 0, without = 0;
            for (int k = from; k < to; k += 2) with += t->rates[k][kind], without += t->rates[k + 1][kind];
            if (!(without > 0)) continue;
            printf(" %s beside the kernel", gpu_load_names[kind]);
            gpu_load_print_rate((gpu_load_kind)kind, 2 * with / (to - from));
            printf(", without it");
            gpu_load_print_rate((gpu_load_kind)kind, 2 * without / (to - from));
            printf(", kept %.1f %%", 100 * with / without);
        }
        printf("\n");
    }
}
