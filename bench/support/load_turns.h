/// What a load beside a live engine keeps, when the chain is with the device and with the CPU in turns: clocks and
/// memory change over minutes, so its rate without the resident kernel is measured in the same minutes.
#ifndef WT_BENCH_LOAD_TURNS_H
#define WT_BENCH_LOAD_TURNS_H

#include "gpu_load.h"

#include <warptone/live.h>

enum { LOAD_TURNS = 256 }; ///< at most

typedef struct load_turns {
    wt_live *live;
    const gpu_load *loads;
    int n_loads, n; ///< n: turns, the first with the device
    double turn_s;
    double rates[LOAD_TURNS][N_GPU_LOADS];
    atomic_bool quit;
    wt_status status;
    pthread_t thread;
} load_turns;

/// Begin to move the chain to and fro, for `seconds`; blocks are to be played all that time.
WT_CHECKED wt_status load_turns_start(load_turns *t, wt_live *live, const gpu_load *loads, int n_loads, double turn_s,
                                      double seconds);
/// End after the turn at hand, if there are more; the chain is with the device then.
WT_CHECKED wt_status load_turns_stop(load_turns *t);
/// Rates of both in each quarter of the time, and what is kept.
void load_turns_print(const load_turns *t);

#endif
