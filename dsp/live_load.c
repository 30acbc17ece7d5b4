// Workers that bring chains: load and prepare, and the buffers of a format.
#include "live_far.h"
#include "live_internal.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- the audio thread, seen from workers

void wt__live_settle(const wt_live *live)
{
    const unsigned epoch = atomic_load(&live->epoch);
    while (epoch & 1 && atomic_load(&live->epoch) == epoch) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void wt__live_close_gate(wt_live *live)
{
    atomic_store(&live->closed, true);
    wt__live_settle(live);
}

void wt__live_open_gate(wt_live *live) { atomic_store(&live->closed, false); }

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
    for (int k = 0; from && k < to->chain->n_described; k++)
        for (int p = 0; p < wt_chain_node_type(to->chain, k)->n_params; p++) {
            float value = wt_chain_get(from->chain, k, p);
            if (value != wt_chain_get(to->chain, k, p)) (void)!wt_chain_set(to->chain, k, p, value);
        }
    for (int s = 0; s < to->chain->n_instances; s++) (void)!wt_chain_reset(to->chain, s);
}

wt_status wt_live_load(wt_live *live, const wt_chain_desc *desc, wt_chain_fault *fault)
{
    live_player *player = NULL;
    live_desc *copy = NULL;
    pthread_mutex_lock(&live->mutex);
    reclaim(live);
    wt_status status = build_player(live, atomic_load(&live->rate_hz), desc, fault, &player);
    if (!status && !(copy = wt__live_desc_copy(desc)))
        status = wt_fail(WT_ERR_NO_MEMORY, "%s: a copy of its description", player->chain->name);
    if (status) {
        wt__live_player_destroy(player);
        pthread_mutex_unlock(&live->mutex);
        return status;
    }
    free(live->desc);
    live->desc = copy;
    wt__live_find_points(live, player);
    live_player *unheard = atomic_exchange_explicit(&live->next, player, memory_order_acq_rel);
    atomic_store(&live->shown, player);
    wt__live_settle_readers(live); // of the one that left too: it was shown before this
    wt__live_player_destroy(unheard);
    atomic_fetch_add_explicit(&live->n_loads, 1, memory_order_relaxed);
    pthread_mutex_unlock(&live->mutex);
    return WT_OK;
}

// Behind the gate: the players that were, but for the one shown, which others may still be asking.
static void drop_players(wt_live *live)
{
    live_player *shown = atomic_load(&live->shown);
    live_player *all[] = {atomic_exchange(&live->next, NULL), atomic_exchange(&live->left, NULL), live->current,
                          live->leaving};
    for (int k = 0; k < 4; k++)
        if (all[k] != shown) wt__live_player_destroy(all[k]);
    live->current = live->leaving = NULL;
    live->fading = false;
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
    live_player *player = NULL, *old;
    pthread_mutex_lock(&live->mutex);
    wt__live_close_gate(live);
    old = atomic_load(&live->shown);
    if (live->desc) status = build_player(live, rate_hz, &live->desc->desc, NULL, &player);
    if (!status) // also large enough for the old format, should the next step fail
        status = wt__live_resize_points(live, max_frames > live->max_frames ? max_frames : live->max_frames);
    if (!status) status = wt__live_take_buffers(live, rate_hz, max_frames);
    if (status) {
        wt__live_player_destroy(player);
    } else {
        if (player) {
            carry_values(old, player);
            wt__live_find_points(live, player);
        }
        drop_players(live);
        live->current = player;
        atomic_store(&live->shown, player);
        wt__live_settle_readers(live);
        wt__live_player_destroy(old);
    }
    wt__live_open_gate(live);
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
    l->config = *config;
    resolve_defaults(&l->config);
    l->lines = l->config.channels * l->config.n_streams;
    atomic_init(&l->out_channels, l->config.out_channels);
    status = wt_histogram_create(&l->process_ns);
    if (!status) status = wt_histogram_create(&l->round_trip_ns);
    if (!status) status = wt__live_take_buffers(l, l->config.rate_hz, l->config.max_frames);
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
    live_player *shown = atomic_load(&live->shown);
    drop_players(live);
    wt__live_player_destroy(shown);
    wt__live_close_points(live);
    wt_histogram_destroy(live->process_ns);
    wt_histogram_destroy(live->round_trip_ns);
    pthread_mutex_destroy(&live->mutex);
    free(live->desc);
    free(live->memory);
    free(live);
}
