// Workers that bring chains: load and prepare.
#include "live_far.h"
#include "live_internal.h"

#include <stdlib.h>
#include <time.h>
#include <warptone/clock.h>

// ---- the audio thread, seen from workers

void wt__live_settle(const wt_live *live)
{
    const unsigned epoch = atomic_load(&live->epoch);
    while (epoch & 1 && atomic_load(&live->epoch) == epoch) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void wt__live_close_gate(wt_live *live)
{
    atomic_fetch_add(&live->closed, 1);
    wt__live_settle(live);
}

void wt__live_open_gate(wt_live *live) { atomic_fetch_sub(&live->closed, 1); }

// ---- players

void wt__live_player_destroy(live_player *player)
{
    if (!player) return;
    if (player->far) {
        wt_live *live = player->far->live;
        atomic_fetch_add_explicit(&live->n_launches, wt__live_far_launches(player->far), memory_order_relaxed);
        wt__live_far_destroy(player->far);
    }
    wt_chain_destroy(player->chain);
    free(player);
}

static wt_status check_channels(wt_live *live, const wt_chain *chain)
{
    int wanted = 0;
    atomic_compare_exchange_strong(&live->out_channels, &wanted, chain->out_channels);
    if (!wanted || chain->out_channels == 1 || chain->out_channels == wanted) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "%s: gives %d channels, want 1 or %d as the output has", chain->name,
                   chain->out_channels, wanted);
}

static wt_status build_player(wt_live *live, double rate_hz, const wt_chain_desc *desc, wt_chain_fault *fault,
                              live_player **player)
{
    live_player *p = calloc(1, sizeof *p);
    *player = NULL;
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "live: a chain's handle");
    const wt_chain_config config = {.rate_hz = rate_hz,
                                    .channels = live->config.channels,
                                    .device = live->config.device,
                                    .n_instances = live->config.n_streams,
                                    .ramp_ms = live->config.ramp_ms,
                                    .load = live->config.load,
                                    .load_user = live->config.load_user,
                                    .fault = fault};
    wt_status status = wt__chain_build(&config, desc, &p->chain);
    if (!status) status = check_channels(live, p->chain);
    if (status) {
        wt__live_player_destroy(p);
        return status;
    }
    p->latency_frames = p->chain->latency_frames;
    p->chain->visit = wt__live_visit;
    p->chain->visit_user = &live->visit;
    *player = p;
    return WT_OK;
}

// Destroy what the audio thread has put aside.
static void reclaim(wt_live *live)
{
    live_player *left = atomic_exchange_explicit(&live->left, NULL, memory_order_acquire);
    wt__live_player_destroy(left);
}

// The present values of the chain that plays, for its successor of the same description.
static void carry_values(const live_player *from, live_player *to)
{
    if (from) to->chain->number = from->chain->number;
    for (int k = 0; from && k < to->chain->n_described; k++)
        for (int p = 0; p < wt_node_type_n_params(wt_chain_node_type(to->chain, k)); p++) {
            float value = wt_chain_get(from->chain, k, p);
            if (value != wt_chain_get(to->chain, k, p)) (void)!wt_chain_set(to->chain, k, p, value);
        }
    for (int s = 0; s < to->chain->n_instances; s++) (void)!wt_chain_reset(to->chain, s);
}

// Show `player` to all and hand it to the audio thread, which takes it up at its next block. What nobody heard of goes
// at once.
static void publish(wt_live *live, live_player *player)
{
    live_player *unheard = atomic_exchange_explicit(&live->next, player, memory_order_acq_rel);
    atomic_store(&live->shown, player);
    wt__live_settle_readers(live); // of the one that is leaving too: it was shown before this
    wt__live_player_destroy(unheard);
}

void wt__live_replace(wt_live *live, live_player *player)
{
    live_player *shown = atomic_load(&live->shown);
    live_player *all[] = {atomic_exchange(&live->next, NULL), atomic_exchange(&live->left, NULL), live->current,
                          live->leaving, shown};
    live->current = player;
    live->leaving = NULL;
    atomic_store(&live->fading, false);
    atomic_store(&live->shown, player);
    wt__live_settle_readers(live);
    for (int k = 0; k < 5; k++) {
        bool again = all[k] == player;
        for (int j = 0; j < k; j++) again |= all[j] == all[k];
        if (!again) wt__live_player_destroy(all[k]);
    }
}

bool wt__live_wait(wt_live *live, bool (*done)(void *user), void *user)
{
    uint64_t n_played = atomic_load(&live->n_played);
    const int64_t begin_ns = wt_clock_now_ns(NULL);
    int64_t since_ns = begin_ns;
    while (n_played && !atomic_load(&live->closed) && !done(user)) {
        const uint64_t now = atomic_load(&live->n_played);
        const int64_t now_ns = wt_clock_now_ns(NULL);
        if (now != n_played) since_ns = now_ns;
        n_played = now;
        if (now_ns - since_ns > 200000000 || now_ns - begin_ns > 5000000000) break;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return done(user);
}

// The audio thread plays what was shown to it, and that alone. What has left goes at once: before, nothing is taken up.
static bool is_settled(void *user)
{
    wt_live *live = user;
    reclaim(live);
    return !atomic_load(&live->next) && !atomic_load(&live->fading) && !atomic_load(&live->left);
}

static bool has_left(void *user) { return atomic_load(&((wt_live *)user)->left); }

// Crossfade to `player` and see the old one out, so that its device memory can be given back now.
static void change_over(wt_live *live, live_player *player)
{
    const bool first = !atomic_load(&live->shown);
    publish(live, player);
    if (first || wt__live_wait(live, has_left, live)) {
        reclaim(live);
        return;
    }
    wt__live_close_gate(live);
    wt__live_replace(live, player);
    wt__live_open_gate(live);
}

// ---- bringing a chain

// What is to be brought in, and in which format.
typedef struct bringing {
    wt_live *live;
    live_player *player; // NULL = none
    wt_live_path path;   // of the device; WT_LIVE_CPU = none
    double rate_hz;
    int max_frames;
    bool prepare; // behind the gate, into a new format
    bool done;
} bringing;

static wt_status take_format(bringing *b)
{
    wt_live *live = b->live;
    if (!b->prepare) return WT_OK;
    // planes also large enough for the old format, should the next step fail
    wt_status status =
        wt__live_resize_points(live, b->max_frames > live->max_frames ? b->max_frames : live->max_frames);
    return status ? status : wt__live_take_buffers(live, b->rate_hz, b->max_frames);
}

// In a quiesce where the device is armed: loads kernels and gives memory back. The old chain plays on the CPU by now.
static wt_status bring_in(void *user)
{
    bringing *b = user;
    wt_live *live = b->live;
    live_player *p = b->player;
    wt_status status = WT_OK;
    if (live->far) status = wt__live_far_end(live->far, 1000000); // not armed: a graph
    if (!status && p && p->far) status = wt__live_far_load(p->far);
    if (!status) status = take_format(b);
    if (status) return status;
    if (p) wt__live_find_points(live, p);
    pthread_mutex_lock(&live->far_mutex);
    live->far = p ? p->far : NULL;
    pthread_mutex_unlock(&live->far_mutex);
    b->done = true;
    if (b->prepare)
        wt__live_replace(live, p);
    else if (b->path == WT_LIVE_CPU)
        publish(live, p);
    else
        change_over(live, p);
    return WT_OK;
}

// The way that is asked for; another's resident kernel on the device leaves the graph.
static wt_live_path choose_path(const wt_live *live)
{
    if (!wt__live_uses_device(live)) return WT_LIVE_CPU;
    if (live->config.path != WT_LIVE_AUTO) return live->config.path;
    return wt_device_is_armed(live->config.device) && !live->armed ? WT_LIVE_GRAPH : WT_LIVE_RESIDENT;
}

// ---- from one resident kernel to another

// A kernel has a thread block a stream at most. One beside one runs on any partition; of more, two kernels surely run
// at once when each has half of the SMs to itself.
static bool both_have_room(const wt_live *live)
{
    const wt_device_info *info = wt_device_get_info(live->config.device);
    wt_partition_info partition = {.n_sms = info->n_sms};
    if (live->config.partition) wt_partition_get_info(live->config.partition, &partition);
    return live->config.n_streams == 1 || info->backend != WT_BACKEND_CUDA ||
           2 * live->config.n_streams <= partition.n_sms;
}

static bool plays_beside(const bringing *b)
{
    const wt_live *live = b->live;
    return b->player && !b->prepare && live->armed && live->far && !atomic_load(&live->parked) &&
           both_have_room(live) && atomic_load(&live->n_played) > 0;
}

// In a quiesce, which is to be short: the new kernel is loaded, and both are started when it ends.
static wt_status load_beside(void *user)
{
    bringing *b = user;
    wt_live *live = b->live;
    wt_status status = wt__live_far_load(b->player->far);
    if (status) return status;
    pthread_mutex_lock(&live->far_mutex);
    live->far_leaving = live->far;
    live->far = live->far_coming = b->player->far;
    pthread_mutex_unlock(&live->far_mutex);
    b->done = true;
    return WT_OK;
}

// The kernel of the chain that faded out, or of the one that did not start, leaves.
static live_far *take_leaving(wt_live *live, bool back)
{
    pthread_mutex_lock(&live->far_mutex);
    live_far *far = back ? live->far : live->far_leaving;
    if (back) live->far = live->far_leaving;
    live->far_leaving = live->far_coming = NULL;
    if (wt__live_far_end(far, 1000000)) wt__live_far_abandon(far);
    pthread_mutex_unlock(&live->far_mutex);
    return far;
}

// Let the audio thread hear of a chain whose kernel began. Where it is now does not matter, and may be the CPU:
// another's quiesce may have come since. From here on such a quiesce asks for it back, and waits for the next block at
// most.
static bool show_coming(wt_live *live, live_player *player)
{
    pthread_mutex_lock(&live->far_mutex);
    const bool begun = player->far->begun;
    if (begun) live->far_coming = NULL;
    pthread_mutex_unlock(&live->far_mutex);
    if (!begun) return false;
    wt__live_find_points(live, player);
    publish(live, player);
    return true;
}

// Both chains play on the device while one fades into the other; nobody has to stand in but while the new kernel is
// loaded, and again while the old one's memory is given back.
static wt_status bring_beside(bringing *b)
{
    wt_live *live = b->live;
    live_player *p = b->player;
    wt_status status = wt_quiesce(live->config.device, load_beside, b, 0);
    if (!b->done) return status;
    if (!show_coming(live, p)) {
        (void)take_leaving(live, true);
        b->done = false;
        return status;
    }
    const bool left = wt__live_wait(live, has_left, live);
    (void)take_leaving(live, false);
    if (left) {
        reclaim(live);
    } else {
        wt__live_close_gate(live);
        wt__live_replace(live, p);
        wt__live_open_gate(live);
    }
    return wt_quiesce(live->config.device, NULL, NULL, 0);
}

static wt_status make_far(const bringing *b)
{
    live_player *p = b->player;
    if (!p) return WT_OK;
    wt_status status = wt__live_far_create(b->live, p->chain, b->path, b->max_frames, &p->far);
    if (!status) p->latency_frames += p->far->delay_frames;
    return status;
}

static wt_status refuse_resident(void)
{
    return wt_fail(WT_ERR_STATE, "live: the device has another's resident kernel, want the graph path");
}

// The device for a resident kernel, which somebody may have taken since the path was chosen: then the chain goes by a
// graph where it may choose.
static wt_status take_device(bringing *b)
{
    wt_live *live = b->live;
    live_player *p = b->player;
    if (!wt__live_arm(live)) return WT_OK;
    if (live->config.path != WT_LIVE_AUTO) return refuse_resident();
    p->latency_frames -= p->far->delay_frames;
    wt__live_far_destroy(p->far);
    p->far = NULL;
    b->path = WT_LIVE_GRAPH;
    return make_far(b);
}

static wt_status bring(bringing *b)
{
    wt_live *live = b->live;
    b->path = choose_path(live);
    if (b->path == WT_LIVE_CPU) return bring_in(b);
    if (b->path == WT_LIVE_RESIDENT && !live->armed && wt_device_is_armed(live->config.device))
        return refuse_resident();
    wt_status status = make_far(b);
    if (!status && b->path == WT_LIVE_RESIDENT && b->player) status = take_device(b);
    // A fade between chains of the CPU is not waited for by the load that brings it. One that begins here is, and is to
    // be the only one, so that what leaves is what it leaves from.
    if (!status) (void)wt__live_wait(live, is_settled, live);
    if (!status && plays_beside(b)) return bring_beside(b);
    if (!status) status = wt_quiesce(live->config.device, bring_in, b, 0);
    if (b->done) { // what fails now leaves the new chain on the CPU
        status = wt__live_begin_far(live);
        return status && live->far && live->far->runs_on_cpu ? WT_OK : status;
    }
    if (!live->far || live->far->path != WT_LIVE_RESIDENT) wt__live_disarm(live);
    if (!live->armed) (void)!wt__live_begin_far(live);
    if (status && live->config.path == WT_LIVE_AUTO && !live->far && b->player &&
        wt__chain_runs_on_cpu(b->player->chain)) { // no NVRTC, say, or too little shared memory
        if (b->player->far) b->player->latency_frames -= b->player->far->delay_frames;
        wt__live_far_destroy(b->player->far);
        b->player->far = NULL;
        b->path = WT_LIVE_CPU;
        return bring_in(b);
    }
    return status;
}

wt_status wt_live_load(wt_live *live, const wt_chain_desc *desc, wt_chain_fault *fault)
{
    live_desc *copy = NULL;
    pthread_mutex_lock(&live->mutex);
    reclaim(live);
    bringing b = {.live = live, .rate_hz = atomic_load(&live->rate_hz), .max_frames = live->max_frames};
    wt_status status = build_player(live, b.rate_hz, desc, fault, &b.player);
    if (!status && !(copy = wt__live_desc_copy(desc)))
        status = wt_fail(WT_ERR_NO_MEMORY, "%s: a copy of its description", b.player->chain->name);
    if (!status) status = bring(&b);
    if (b.done) {
        live_desc *old = live->desc;
        live->desc = copy;
        copy = old;
        atomic_fetch_add_explicit(&live->n_loads, 1, memory_order_relaxed);
    } else {
        wt__live_player_destroy(b.player);
    }
    free(copy);
    pthread_mutex_unlock(&live->mutex);
    return status;
}

wt_status wt_live_prepare(wt_live *live, double rate_hz, int max_frames)
{
    wt_status status = wt__live_check_format(rate_hz, max_frames);
    if (status) return status;
    pthread_mutex_lock(&live->mutex);
    wt__live_close_gate(live);
    bringing b = {.live = live, .rate_hz = rate_hz, .max_frames = max_frames, .prepare = true};
    if (live->desc) status = build_player(live, rate_hz, &live->desc->desc, NULL, &b.player);
    if (!status && b.player) carry_values(atomic_load(&live->shown), b.player);
    if (!status) status = bring(&b);
    if (!b.done) wt__live_player_destroy(b.player);
    wt__live_open_gate(live);
    pthread_mutex_unlock(&live->mutex);
    return status;
}
