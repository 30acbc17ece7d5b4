// What any thread may ask of the chain that plays, and figures. Callers count themselves in around their use of
// `shown`, in the counter of the present turn; a worker that took a chain away changes the turn twice and each time
// waits for the other counter to come to nothing (McKenney's sleepable RCU: once would miss a caller that has read
// the turn but not counted yet).
#include "live_far.h"
#include "live_internal.h"

#include <time.h>

static const live_player *begin_use(const wt_live *live, unsigned *turn)
{
    wt_live *counted = (wt_live *)live;
    *turn = atomic_load(&counted->reader_turn) & 1;
    atomic_fetch_add(&counted->readers[*turn], 1);
    return atomic_load(&live->shown);
}

static void end_use(const wt_live *live, unsigned turn) { atomic_fetch_sub(&((wt_live *)live)->readers[turn], 1); }

void wt__live_settle_readers(wt_live *live)
{
    for (int pass = 0; pass < 2; pass++) {
        unsigned turn = atomic_fetch_add(&live->reader_turn, 1) & 1;
        while (atomic_load(&live->readers[turn]) > 0) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

WT_RT wt_status wt_live_set(wt_live *live, int node, int param, float value)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    wt_status status = player ? wt_chain_set(player->chain, node, param, value) : WT_ERR_STATE;
    end_use(live, turn);
    return status;
}

WT_RT wt_status wt_live_set_if(wt_live *live, uint64_t number, int node, int param, float value)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    const bool plays = player && player->chain->number == number;
    wt_status status = plays ? wt_chain_set(player->chain, node, param, value) : WT_ERR_STATE;
    end_use(live, turn);
    return status;
}

WT_RT float wt_live_get(const wt_live *live, int node, int param)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    float value = player ? wt_chain_get(player->chain, node, param) : 0;
    end_use(live, turn);
    return value;
}

WT_RT int wt_live_readings(const wt_live *live, int node, float *values, int max_values)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    int n = player ? wt_chain_readings(player->chain, node, values, max_values) : 0;
    end_use(live, turn);
    return n;
}

wt_status wt_live_find(const wt_live *live, const char *node_id, const char *param, int *node, int *param_index)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    wt_status status = player ? wt_chain_find(player->chain, node_id, param, node, param_index)
                              : wt_fail(WT_ERR_NOT_FOUND, "live: no chain is loaded, so no node '%s'", node_id);
    end_use(live, turn);
    return status;
}

int wt_live_latency_frames(const wt_live *live)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    int latency = player ? player->latency_frames : 0;
    end_use(live, turn);
    return latency;
}

int wt_live_out_channels(const wt_live *live) { return wt__live_out_channels(live); }

const wt_chain *wt_live_chain(const wt_live *live)
{
    const live_player *player = atomic_load(&live->shown);
    return player ? player->chain : NULL;
}

const char *wt_live_miss_name(wt_live_miss miss)
{
#define NAME(code, name, sentence) name,
    static const char *const names[] = {WT_LIVE_MISS_LIST(NAME)};
#undef NAME
    return (unsigned)miss < WT_N_LIVE_MISSES ? names[miss] : "unknown";
}

void wt_live_get_stats(const wt_live *live, wt_live_stats *stats)
{
    unsigned turn;
    const live_player *player = begin_use(live, &turn);
    *stats = (wt_live_stats){
        .path = player && player->far ? wt__live_far_path(player->far) : WT_LIVE_CPU,
        .n_blocks = atomic_load_explicit(&live->n_blocks, memory_order_relaxed),
        .n_frames = atomic_load_explicit(&live->n_frames, memory_order_relaxed),
        .n_launches = atomic_load_explicit(&live->n_launches, memory_order_relaxed) +
                      (player && player->far ? wt__live_far_launches(player->far) : 0),
        .n_moves = atomic_load_explicit(&live->n_moves, memory_order_relaxed),
        .n_loads = atomic_load_explicit(&live->n_loads, memory_order_relaxed),
        .n_helped = live->workers ? atomic_load_explicit(&live->workers->n_taken, memory_order_relaxed) : 0,
        .rate_hz = atomic_load_explicit(&live->rate_hz, memory_order_relaxed),
        .block_frames = atomic_load_explicit(&live->block_frames, memory_order_relaxed),
        .latency_frames = player ? player->latency_frames : 0,
        .load = atomic_load_explicit(&live->load, memory_order_relaxed),
        .bypass = atomic_load_explicit(&live->bypass, memory_order_relaxed),
    };
    if (stats->path != WT_LIVE_CPU && player->far->on_gpu) {
        stats->n_threads = player->far->launch.block[0];
        stats->n_threads_wanted = wt__chain_cuda_threads(player->chain);
    }
    end_use(live, turn);
    for (int k = 0; k < WT_N_LIVE_MISSES; k++) {
        stats->misses[k] = atomic_load_explicit(&live->misses[k], memory_order_relaxed);
        stats->n_misses += stats->misses[k];
    }
    wt_histogram_summarize(live->process_ns, &stats->process_ns);
    wt_histogram_summarize(live->round_trip_ns, &stats->round_trip_ns);
}

const wt_histogram *wt_live_histogram(const wt_live *live)
{
    return wt__live_uses_device(live) ? live->round_trip_ns : live->process_ns;
}
