// Making and ending the live engine: its configuration, and the buffers of a format.
#include "live_far.h"
#include "live_internal.h"

#include <stdlib.h>
#include <string.h>

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

// ---- create, destroy

wt_status wt__live_check_format(double rate_hz, int max_frames)
{
    if (!(rate_hz >= 1000 && rate_hz <= 768000))
        return wt_fail(WT_ERR_BAD_ARG, "live: rate %g Hz, want 1000..768000", rate_hz);
    if (max_frames < 1 || max_frames > LIVE_MAX_FRAMES)
        return wt_fail(WT_ERR_BAD_ARG, "live: blocks of %d frames, want 1..%d", max_frames, LIVE_MAX_FRAMES);
    return WT_OK;
}

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
    return wt__live_check_format(config->rate_hz, config->max_frames ? config->max_frames : 1024);
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
    wt__live_disarm(live);
    wt__live_replace(live, NULL);
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
