// Workers that bring chains: load and prepare, and the buffers of a format.
#include "live_far.h"
#include "live_internal.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
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

// ---- buffers

// `n` lines of `frames` floats from *at on.
static float **take_lines(float ***pointers, float **at, int n, int frames)
{
    float **lines = *pointers;
    for (int k = 0; k < n; k++, *at += frames) lines[k] = *at;
    *pointers += n;
    return lines;
}

wt_status wt__live_take_buffers(wt_live *live, double rate_hz, int max_frames)
{
    const int room = live->config.out_channels ? live->config.out_channels : WT_MAX_CHANNELS;
    const int lines = live->lines, outs = room * live->config.n_streams, frames = (max_frames + 15) & ~15;
    const size_t n_pointers = (size_t)(3 * lines + 3 * outs);
    const size_t pointer_bytes = (n_pointers * sizeof(float *) + 63) & ~(size_t)63;
    const size_t n_floats =
        (size_t)frames * (size_t)(2 * lines + 2 * outs) + 2 * (size_t)outs + (size_t)lines * LIVE_DRY_FRAMES;
    unsigned char *memory = aligned_alloc(64, (pointer_bytes + sizeof(float) * n_floats + 63) & ~(size_t)63);
    if (!memory) return wt_fail(WT_ERR_NO_MEMORY, "live: buffers for blocks of %d frames", max_frames);
    memset(memory, 0, pointer_bytes + sizeof(float) * n_floats);
    free(live->memory);
    live->memory = memory;
    float **pointers = (float **)memory, *at = (float *)(memory + pointer_bytes);
    live->wet = take_lines(&pointers, &at, outs, frames);
    live->wet_old = take_lines(&pointers, &at, outs, frames);
    live->dry = take_lines(&pointers, &at, lines, frames);
    live->heard = take_lines(&pointers, &at, lines, frames);
    live->in_at = (const float **)pointers;
    live->out_at = pointers + lines;
    live->jump = at;
    live->last = at + outs;
    live->dry_line = at + 2 * outs;
    live->dry_at = LIVE_DRY_FRAMES;
    live->jump_left = 0;
    live->max_frames = max_frames;
    live->visit.stride = frames;
    live->fade_frames = (int)(live->config.fade_ms * 1e-3 * rate_hz) + 1;
    live->wet_frames = live->fade_frames;
    atomic_store(&live->rate_hz, rate_hz);
    return WT_OK;
}

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

// Behind the gate: make `player` the only one.
static void replace(wt_live *live, live_player *player)
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
    replace(live, player);
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
        replace(live, p);
    else if (b->path == WT_LIVE_CPU)
        publish(live, p);
    else
        change_over(live, p);
    return WT_OK;
}

// ---- the safe point

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
    if (status && !live->parked) (void)!wt__live_far_begin(live->far); // no quiesce, no restart
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
    live_far *const chains[] = {live->parked ? NULL : live->far, live->far_leaving};
    const int first = chains[1] && !chains[1]->runs_on_cpu;
    for (int k = 0; k < 2; k++) {
        live_far *far = chains[k ^ first];
        const wt_status begun = far ? wt__live_far_begin(far) : WT_OK;
        if (!status) status = begun;
    }
    pthread_mutex_unlock(&live->far_mutex);
    return status;
}

// Outside of quiesces of our own: what another's has stopped begins when that one ends.
static wt_status begin_far(wt_live *live)
{
    wt_status status = WT_OK;
    pthread_mutex_lock(&live->far_mutex);
    if (live->far && !live->parked && !live->quiesced) status = wt__live_far_begin(live->far);
    pthread_mutex_unlock(&live->far_mutex);
    return status;
}

// A resident kernel may stay only where the calls that would hang beside it are refused.
static wt_status arm(wt_live *live)
{
    if (live->armed || !live->far || live->far->path != WT_LIVE_RESIDENT) return WT_OK;
    live->safe_point = (wt_safe_point){.stop = stop_far, .restart = restart_far, .user = live};
    wt_status status = wt_device_set_safe_point(live->config.device, &live->safe_point);
    if (!status) status = wt_device_arm(live->config.device);
    live->armed = !status;
    return status;
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
    return b->player && !b->prepare && live->armed && live->far && !live->parked && both_have_room(live) &&
           atomic_load(&live->n_played) > 0;
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
        replace(live, p);
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

static wt_status bring(bringing *b)
{
    wt_live *live = b->live;
    b->path = choose_path(live);
    if (b->path == WT_LIVE_CPU) return bring_in(b);
    if (b->path == WT_LIVE_RESIDENT && !live->armed && wt_device_is_armed(live->config.device))
        return wt_fail(WT_ERR_STATE, "live: the device has another's resident kernel, want the graph path");
    wt_status status = make_far(b);
    // A fade between chains of the CPU is not waited for by the load that brings it. One that begins here is, and is to
    // be the only one, so that what leaves is what it leaves from.
    if (!status) (void)wt__live_wait(live, is_settled, live);
    if (!status && plays_beside(b)) return bring_beside(b);
    if (!status) status = wt_quiesce(live->config.device, bring_in, b, 0);
    if (b->done) { // what fails now leaves the new chain on the CPU
        status = arm(live);
        if (!status) status = begin_far(live);
        return status && live->far && live->far->runs_on_cpu ? WT_OK : status;
    }
    if (!live->armed) (void)!begin_far(live);
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

static wt_status check_format(double rate_hz, int max_frames)
{
    if (!(rate_hz >= 1000 && rate_hz <= 768000))
        return wt_fail(WT_ERR_BAD_ARG, "live: rate %g Hz, want 1000..768000", rate_hz);
    if (max_frames < 1 || max_frames > LIVE_MAX_FRAMES)
        return wt_fail(WT_ERR_BAD_ARG, "live: blocks of %d frames, want 1..%d", max_frames, LIVE_MAX_FRAMES);
    return WT_OK;
}

wt_status wt_live_prepare(wt_live *live, double rate_hz, int max_frames)
{
    wt_status status = check_format(rate_hz, max_frames);
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

wt_status wt_live_move(wt_live *live, bool to_cpu)
{
    wt_status status;
    pthread_mutex_lock(&live->mutex);
    pthread_mutex_lock(&live->far_mutex);
    if (!live->far) {
        status = wt_fail(WT_ERR_STATE, "live: the chain has no device to be moved from or to");
    } else {
        live->parked = to_cpu;
        status = live->quiesced ? WT_OK : to_cpu ? wt__live_far_end(live->far, 1000000) : wt__live_far_begin(live->far);
    }
    pthread_mutex_unlock(&live->far_mutex);
    pthread_mutex_unlock(&live->mutex);
    return status;
}

// ---- create, destroy

static wt_status check_config(const wt_live_config *config)
{
    if (config->channels < 1 || config->channels > WT_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "live: %d channels, want 1..%d", config->channels, WT_MAX_CHANNELS);
    if (config->out_channels < 0 || config->out_channels > WT_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "live: %d output channels, want 1..%d, or 0 for those of the chain",
                       config->out_channels, WT_MAX_CHANNELS);
    if (config->n_streams < 0 || config->n_streams > LIVE_MAX_LINES / WT_MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "live: %d streams, want 1..%d", config->n_streams,
                       LIVE_MAX_LINES / WT_MAX_CHANNELS);
    if (config->n_workers < 0 || config->n_workers > 64 || config->worker_priority < 0 || config->worker_priority > 99)
        return wt_fail(WT_ERR_BAD_ARG, "live: %d workers of priority %d, want 0..64, 0..99", config->n_workers,
                       config->worker_priority);
    if (config->pipeline_blocks < 0 || config->pipeline_blocks > 8)
        return wt_fail(WT_ERR_BAD_ARG, "live: %d blocks of pipeline, want 1..8", config->pipeline_blocks);
    if (!(config->wait_share >= 0 && config->wait_share <= 1 && config->life_s >= 0 && config->life_s <= 60 &&
          config->fade_ms >= 0 && config->fade_ms <= 1000 && config->ramp_ms >= 0 && config->ramp_ms <= 10000))
        return wt_fail(WT_ERR_BAD_ARG,
                       "live: wait_share %g, life_s %g, fade_ms %g, ramp_ms %g; want 0..1, 0..60, "
                       "0..1000, 0..10000",
                       config->wait_share, config->life_s, (double)config->fade_ms, (double)config->ramp_ms);
    if (!config->device && (config->path == WT_LIVE_RESIDENT || config->path == WT_LIVE_GRAPH))
        return wt_fail(WT_ERR_UNSUPPORTED, "live: a resident kernel or a graph needs a device, none is given");
    return check_format(config->rate_hz, config->max_frames ? config->max_frames : 1024);
}

static void resolve_defaults(wt_live_config *config)
{
    if (!config->n_streams) config->n_streams = 1;
    if (!config->out_channels && config->n_streams > 1) config->out_channels = config->channels;
    if (!config->max_frames) config->max_frames = 1024;
    if (!config->pipeline_blocks) config->pipeline_blocks = 1;
    if (config->wait_share == 0) config->wait_share = 0.8;
    if (config->life_s == 0) config->life_s = 2;
    if (config->fade_ms == 0) config->fade_ms = 5;
    if (config->path == WT_LIVE_CPU) config->device = NULL;
}

wt_status wt_live_create(const wt_live_config *config, wt_live **live)
{
    *live = NULL;
    wt_status status = check_config(config);
    if (status) return status;
    wt_live *l = calloc(1, sizeof *l);
    if (!l) return wt_fail(WT_ERR_NO_MEMORY, "live: handle");
    pthread_mutex_init(&l->mutex, NULL);
    pthread_mutex_init(&l->far_mutex, NULL);
    l->config = *config;
    resolve_defaults(&l->config);
    l->lines = l->config.channels * l->config.n_streams;
    atomic_init(&l->out_channels, l->config.out_channels);
    status = wt_histogram_create(&l->process_ns);
    if (!status) status = wt_histogram_create(&l->round_trip_ns);
    if (!status) status = wt__live_take_buffers(l, l->config.rate_hz, l->config.max_frames);
    if (!status)
        status = wt__live_workers_create(l->config.n_streams > 1 ? l->config.n_workers : 0, l->config.n_streams,
                                         l->config.worker_priority, &l->workers);
    if (status) {
        wt_live_destroy(l);
        return status;
    }
    *live = l;
    return WT_OK;
}

void wt_live_destroy(wt_live *live)
{
    if (!live) return;
    // moved, so that a quiesce of another's until we have disarmed does not begin it again
    if (live->far && wt_live_move(live, true)) wt__live_far_abandon(live->far);
    if (live->armed) {
        (void)!wt_device_disarm(live->config.device);
        (void)!wt_device_set_safe_point(live->config.device, NULL);
    }
    replace(live, NULL);
    wt__live_workers_destroy(live->workers);
    wt__live_close_points(live);
    wt_histogram_destroy(live->process_ns);
    wt_histogram_destroy(live->round_trip_ns);
    pthread_mutex_destroy(&live->mutex);
    pthread_mutex_destroy(&live->far_mutex);
    free(live->desc);
    free(live->memory);
    free(live);
}
