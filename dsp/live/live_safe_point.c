// How quiesces stop and restart what the device plays, and when a kernel begins outside of them.
#include "live_far.h"
#include "live_internal.h"

typedef struct block_end {
    const wt_live *live;
    uint64_t n_blocks;
} block_end;

static bool has_ended(void *user)
{
    const block_end *b = user;
    return atomic_load(&b->live->n_blocks) != b->n_blocks;
}

static wt_status stop_both(wt_live *live, int64_t timeout_us)
{
    wt_status status = live->far ? wt__live_far_end(live->far, timeout_us) : WT_OK;
    if (status || !live->far_leaving) return status;
    status = wt__live_far_end(live->far_leaving, timeout_us);
    if (status && !atomic_load(&live->parked)) (void)!wt__live_far_begin(live->far); // no quiesce, no restart
    return status;
}

// Just after a block, so that most of a period passes before the device is asked for again: a chain that only the
// device can play has nobody to stand in.
static wt_status stop_far(void *user, int64_t timeout_us)
{
    wt_live *live = user;
    pthread_mutex_lock(&live->far_mutex);
    block_end end = {live, atomic_load(&live->n_blocks)};
    if (live->far && !live->far->runs_on_cpu) (void)wt__live_wait(live, has_ended, &end);
    wt_status status = stop_both(live, timeout_us);
    live->quiesced = !status;
    pthread_mutex_unlock(&live->far_mutex);
    return status;
}

// First what only the device can play: the audio thread may be waiting for its answer, in freewheel without end, and
// gives the other chain back at the end of that wait.
static wt_status restart_far(void *user)
{
    wt_live *live = user;
    wt_status status = WT_OK;
    pthread_mutex_lock(&live->far_mutex);
    live->quiesced = false;
    live_far *const chains[] = {atomic_load(&live->parked) ? NULL : live->far, live->far_leaving};
    const int first = chains[1] && !chains[1]->runs_on_cpu;
    for (int k = 0; k < 2; k++) {
        live_far *far = chains[k ^ first];
        const wt_status begun = far ? wt__live_far_begin(far) : WT_OK;
        if (!status) status = begun;
    }
    pthread_mutex_unlock(&live->far_mutex);
    return status;
}

wt_status wt__live_begin_far(wt_live *live)
{
    wt_status status = WT_OK;
    pthread_mutex_lock(&live->far_mutex);
    if (live->far && !atomic_load(&live->parked) && !live->quiesced) status = wt__live_far_begin(live->far);
    pthread_mutex_unlock(&live->far_mutex);
    return status;
}

wt_status wt__live_arm(wt_live *live)
{
    if (live->armed) return WT_OK;
    live->safe_point = (wt_safe_point){.stop = stop_far, .restart = restart_far, .user = live};
    wt_status status = wt_device_arm_at(live->config.device, &live->safe_point);
    live->armed = !status;
    return status;
}

void wt__live_disarm(wt_live *live)
{
    if (live->armed) (void)!wt_device_disarm(live->config.device);
    live->armed = false;
}

wt_status wt_live_move(wt_live *live, bool to_cpu)
{
    wt_status status;
    pthread_mutex_lock(&live->mutex);
    pthread_mutex_lock(&live->far_mutex);
    if (!live->far) {
        status = wt_fail(WT_ERR_STATE, "live: the chain has no device to be moved from or to");
    } else {
        atomic_store(&live->parked, to_cpu); // before the audio thread finds that the device is gone
        status = live->quiesced ? WT_OK : to_cpu ? wt__live_far_end(live->far, 1000000) : wt__live_far_begin(live->far);
    }
    pthread_mutex_unlock(&live->far_mutex);
    pthread_mutex_unlock(&live->mutex);
    return status;
}
