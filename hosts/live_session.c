#include "backend.h"
#include "interrupt.h"
#include "live_rights.h"
#include "live_session_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { AUDIO_SMS = 8, MIN_MAX_FRAMES = 1024 };

static const float rms_seconds = 0.3f, fall_db_per_second = 20 / 1.7f; // as a peak meter falls, IEC 60268-10 type I
static const float loudest = 1e6f; // what a meter shows at most: from infinity it would never fall

// ---- the audio thread

/// Peak and mean square of one side, as they fall over n_frames.
static void meter(live_levels *levels, const float *const *audio, int channels, int n_frames, double rate_hz)
{
    const float seconds = (float)(n_frames / rate_hz);
    const float keep = expf(-seconds / rms_seconds), fall = powf(10, -fall_db_per_second / 20 * seconds);
    for (int c = 0; c < channels; c++) {
        float peak = atomic_load_explicit(&levels->peak[c], memory_order_relaxed) * fall, sum = 0;
        for (int n = 0; n < n_frames; n++) {
            const float x = fminf(fabsf(audio[c][n]), loudest);
            peak = x > peak ? x : peak;
            sum += x * x;
        }
        float square = atomic_load_explicit(&levels->square[c], memory_order_relaxed) * keep;
        square += (1 - keep) * sum / (float)n_frames;
        atomic_store_explicit(&levels->peak[c], peak > 1e-9f ? peak : 0, memory_order_relaxed);
        atomic_store_explicit(&levels->square[c], square > 1e-18f ? square : 0, memory_order_relaxed);
    }
}

static void on_process(void *user, const float *const *in, float *const *out, int n_frames)
{
    live_session *s = user;
    const double rate_hz = atomic_load_explicit(&s->wanted_rate_hz, memory_order_relaxed);
    midi_map_drain(s->midi);
    if (n_frames > 0) meter(&s->in_levels, in, s->channels, n_frames, rate_hz);
    (void)wt_live_process(s->live, in, out, n_frames); // what was bypassed is counted there
    if (n_frames > 0) meter(&s->out_levels, (const float *const *)out, s->out_channels, n_frames, rate_hz);
}

static void on_transport(void *user, const audio_transport *t)
{
    live_session *s = user;
    atomic_store_explicit(&s->bpm, t->bpm, memory_order_relaxed);
    atomic_store_explicit(&s->beats_per_bar, t->beats_per_bar, memory_order_relaxed);
    atomic_store_explicit(&s->beat_unit, t->beat_unit, memory_order_relaxed);
    atomic_store_explicit(&s->transport_frame, t->frame, memory_order_relaxed);
    atomic_store_explicit(&s->rolling, t->rolling, memory_order_relaxed);
}

// ---- the host's other threads

static void on_format(void *user, double rate_hz, int max_frames)
{
    live_session *s = user;
    atomic_store(&s->wanted_rate_hz, rate_hz);
    atomic_store(&s->wanted_frames, max_frames);
    live__apply_format(s);
}

static void on_freewheel(void *user, bool on) { wt_live_set_freewheel(((live_session *)user)->live, on); }
static int on_latency(void *user) { return wt_live_latency_frames(((live_session *)user)->live); }

static void on_lost(void *user, const char *why)
{
    live_session *s = user;
    atomic_store(&s->lost, why);
    live__wake(s);
}

/// Room for the blocks the host makes, and for longer ones, so that most changes need no new chain; but in pipelined
/// mode that room is the latency.
static int max_frames_of(const live_session *s)
{
    const int frames = atomic_load(&s->wanted_frames);
    if (s->config.mode == WT_LIVE_PIPELINED && frames > 0) return frames;
    return frames > MIN_MAX_FRAMES ? frames : MIN_MAX_FRAMES;
}

/// Within a second, by the clock that does not jump; pthread_mutex_timedlock knows only the one that does.
static bool lock_soon(pthread_mutex_t *mutex)
{
    const int64_t end_ns = wt_clock_now_ns(NULL) + 1000000000;
    bool locked = false;
    while (!(locked = !pthread_mutex_trylock(mutex)) && wt_clock_now_ns(NULL) < end_ns)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return locked;
}

/// A load that takes long must not hold the host's thread: then the keeper does this when the load is through.
void live__apply_format(live_session *s)
{
    if (!lock_soon(&s->change)) {
        live__wake(s);
        return;
    }
    const double rate_hz = atomic_load(&s->wanted_rate_hz);
    const int max_frames = max_frames_of(s);
    const bool fits = s->config.mode == WT_LIVE_PIPELINED ? max_frames == s->max_frames : max_frames <= s->max_frames;
    if (rate_hz != s->rate_hz || !fits) {
        if (wt_live_prepare(s->live, rate_hz, max_frames)) live__fail(s, wt_last_error());
        s->rate_hz = rate_hz, s->max_frames = max_frames;
        atomic_store(&s->latency_changed, true);
    }
    pthread_mutex_unlock(&s->change);
}

// ---- open

static wt_status keep_text(live_session *s, const char **text)
{
    if (!*text) return WT_OK;
    *text = s->texts[s->n_texts++] = strdup(*text);
    return *text ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "live: configuration");
}

static wt_status copy_config(live_session *s, const live_session_config *config)
{
    s->config = *config;
    audio_host_config *host = &s->config.host;
    const char **texts[] = {&s->config.preset, &s->config.record_in, &s->config.record_out, &host->client_name,
                            &host->device,     &host->input_device,  &host->in_prefix,      &host->out_prefix};
    wt_status status = WT_OK;
    for (size_t k = 0; k < sizeof texts / sizeof *texts && !status; k++) status = keep_text(s, texts[k]);
    s->patterns = calloc((size_t)host->n_connect + 1, sizeof *s->patterns);
    if (!s->patterns) return wt_fail(WT_ERR_NO_MEMORY, "live: configuration");
    for (int k = 0; k < host->n_connect && !status; k++)
        if (!(s->patterns[k] = strdup(config->host.connect[k])))
            status = wt_fail(WT_ERR_NO_MEMORY, "live: configuration");
    host->connect = s->patterns;
    host->callbacks = (audio_callbacks){.user = s,
                                        .process = on_process,
                                        .midi = live__midi_message,
                                        .transport = on_transport,
                                        .format = on_format,
                                        .freewheel = on_freewheel,
                                        .lost = on_lost,
                                        .latency = on_latency};
    return status;
}

/// The preset must stand on its own before a server or a GPU is touched; it tells the channels, too.
static wt_status check_preset(live_session *s)
{
    wt_preset *preset;
    wt_chain *chain = NULL;
    wt_status status = wt_preset_load(s->config.preset, &preset);
    if (status) return status;
    const int wanted = s->config.host.channels ? s->config.host.channels : wt_preset_channels(preset);
    int channels = wanted ? wanted : 2, out_channels = channels;
    if (!wt_preset_needs_gpu(preset))
        status = wt_preset_build(preset, &(wt_chain_config){.rate_hz = 48000, .channels = channels}, &chain);
    if (chain && wt_chain_out_channels(chain) != 1) out_channels = wt_chain_out_channels(chain);
    if (s->config.host.out_channels) out_channels = s->config.host.out_channels;
    if (!s->config.n_streams) s->config.n_streams = 1;
    s->config.host.channels = s->channels = channels * s->config.n_streams;
    s->config.host.out_channels = s->out_channels = out_channels * s->config.n_streams;
    if (s->channels > LIVE_MAX_CHANNELS || s->out_channels > LIVE_MAX_CHANNELS)
        status = wt_fail(WT_ERR_BAD_ARG, "live: %d channels in, %d out, want at most %d", s->channels, s->out_channels,
                         LIVE_MAX_CHANNELS);
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    return status;
}

wt_status live__open_host(live_session *s, audio_host **host)
{
    audio_host_stats stats;
    wt_status status = s->config.host_type->open(&s->config.host, host);
    if (status) return status;
    (*host)->type->stats(*host, &stats);
    atomic_store(&s->wanted_rate_hz, stats.rate_hz);
    atomic_store(&s->wanted_frames, stats.block_frames);
    return WT_OK;
}

/// With `wait` a host that is not there yet is waited for.
static wt_status open_host(live_session *s)
{
    wt_status status;
    for (bool told = false; (status = live__open_host(s, &s->host)) && s->config.wait; told = true) {
        if (status == WT_ERR_BAD_ARG) return status; // which no server mends
        if (s->config.waiting && !told) s->config.waiting(wt_last_error());
        if (wt_interrupted()) return wt_fail(WT_ERR_CANCELLED, "live: interrupted while waiting for a server");
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    }
    return status;
}

static wt_status open_device(live_session *s)
{
    wt_status status = backend_open(s->config.backend, &s->device);
    if (status || s->device) return status;
    if (s->config.mode == WT_LIVE_PIPELINED)
        return wt_fail(WT_ERR_UNSUPPORTED, "--mode pipelined is for a GPU: on the CPU each block is answered at once");
    if (s->config.path != WT_LIVE_AUTO)
        return wt_fail(WT_ERR_UNSUPPORTED, "--gpu-path is for a GPU, and here the chain runs on the CPU");
    return WT_OK;
}

/// The audio partition on a GPU: its own SMs where the driver can cut them.
static wt_status open_partition(live_session *s, wt_partition **partition)
{
    wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS];
    wt_layout_config config;
    *partition = NULL;
    if (!s->device) return WT_OK;
    wt_status status = wt_layout_preset("audio+llm", wt_device_get_info(s->device), partitions, &config);
    if (status == WT_ERR_QUOTA) return WT_OK; // a device too small to be cut is used whole
    if (status) return status;
    partitions[0].n_sms = s->config.audio_sms ? s->config.audio_sms : AUDIO_SMS;
    partitions[0].sm_share = 0;
    status = wt_layout_create(s->device, &config, &s->layout);
    if (!status) *partition = wt_layout_find(s->layout, "audio");
    return status;
}

static wt_status open_live(live_session *s)
{
    wt_partition *partition;
    wt_status status = open_device(s);
    if (!status) status = open_partition(s, &partition);
    if (status) return status;
    s->rate_hz = atomic_load(&s->wanted_rate_hz);
    s->max_frames = max_frames_of(s);
    const wt_live_config config = {.rate_hz = s->rate_hz,
                                   .channels = s->channels / s->config.n_streams,
                                   .out_channels = s->out_channels / s->config.n_streams,
                                   .n_streams = s->config.n_streams,
                                   .n_workers = s->config.n_workers,
                                   .worker_priority = 1, // the audio thread's is higher
                                   .max_frames = s->max_frames,
                                   .device = s->device,
                                   .partition = partition,
                                   .path = s->config.path,
                                   .mode = s->config.mode,
                                   .load = wt_preset_load_audio};
    return wt_live_create(&config, &s->live);
}

wt_status live_session_open(const live_session_config *config, live_session **session)
{
    live_session *s = calloc(1, sizeof *s);
    *session = NULL;
    if (!s) return wt_fail(WT_ERR_NO_MEMORY, "live: session");
    pthread_mutex_init(&s->change, NULL);
    pthread_mutex_init(&s->table, NULL);
    pthread_mutex_init(&s->host_lock, NULL);
    pthread_mutex_init(&s->listen, NULL);
    s->awake_fd = -1;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wt_status status = s->wake_fd < 0 ? wt_fail(WT_ERR_STATE, "live: eventfd: %s", strerror(errno)) : WT_OK;
    if (!status && config->awake) status = live_rights_awake(NULL, &s->awake_fd);
    if (!status) status = copy_config(s, config);
    if (!status) status = check_preset(s);
    if (!status) status = open_host(s);
    if (!status) status = open_live(s);
    if (!status) status = live_telemetry_open(s->layout, &s->telemetry);
    if (!status) status = live__midi_open(s);
    if (!status) status = live__load(s, s->config.preset);
    if (!status && s->config.watch) status = live_watch_open(&s->watch);
    if (status) {
        char why[1024]; // closing may fail in its turn
        snprintf(why, sizeof why, "%s", wt_last_error());
        live_session_close(s);
        return wt_fail(status, "%s", why);
    }
    *session = s;
    return WT_OK;
}

wt_status live_session_start(live_session *s)
{
    const live_record_config record = {.live = s->live,
                                       .in_path = s->config.record_in,
                                       .out_path = s->config.record_out,
                                       .rate_hz = (int)(s->rate_hz + 0.5)};
    wt_status status = WT_OK;
    if (record.in_path || record.out_path) status = live_record_open(&record, &s->record);
    s->start_ns = wt_clock_now_ns(NULL);
    if (!status) status = s->host->type->start(s->host);
    if (!status) status = live__keeper_start(s);
    return status;
}

wt_status live_session_close(live_session *s)
{
    if (!s) return WT_OK;
    live__keeper_stop(s);
    if (s->host) {
        s->host->type->stop(s->host);
        s->host->type->close(s->host);
    }
    wt_status recorded = live_record_close(s->record);
    live__midi_close(s);
    live_telemetry_close(s->telemetry);
    wt_live_destroy(s->live);
    wt_status unused = wt_layout_destroy(s->layout);
    (void)unused; // nothing of it is in use any more
    wt_device_close(s->device);
    live_watch_close(s->watch);
    live__playing_destroy(s->playing);
    live__playing_destroy(s->retired);
    live__playing_destroy(s->failed);
    for (int k = 0; k < s->config.host.n_connect && s->patterns; k++) free((char *)s->patterns[k]);
    for (int k = 0; k < s->n_texts; k++) free(s->texts[k]);
    free(s->patterns);
    if (s->wake_fd >= 0) close(s->wake_fd);
    if (s->awake_fd >= 0) close(s->awake_fd);
    pthread_mutex_destroy(&s->change);
    pthread_mutex_destroy(&s->table);
    pthread_mutex_destroy(&s->host_lock);
    pthread_mutex_destroy(&s->listen);
    free(s);
    return recorded;
}

// ---- figures, and the end

void live_session_set_bypass(live_session *s, bool bypass)
{
    wt_live_set_bypass(s->live, bypass);
    live__notify(s, "bypass", bypass ? 1 : 0);
}

wt_layout *live_session_layout(live_session *s) { return s->layout; }

int live_session_levels(live_session *s, bool output, float *peak, float *rms, int max_channels)
{
    live_levels *levels = output ? &s->out_levels : &s->in_levels;
    int n = output ? s->out_channels : s->channels;
    if (n > max_channels) n = max_channels;
    for (int c = 0; c < n; c++) {
        peak[c] = atomic_load_explicit(&levels->peak[c], memory_order_relaxed);
        rms[c] = sqrtf(atomic_load_explicit(&levels->square[c], memory_order_relaxed));
    }
    return n;
}

void live__keep_error(live_session *s, const char *sentence)
{
    pthread_mutex_lock(&s->table);
    snprintf(s->last_error, sizeof s->last_error, "%.255s", sentence);
    pthread_mutex_unlock(&s->table);
}

void live_session_get_stats(live_session *s, live_session_stats *stats)
{
    const char *recording;
    *stats = (live_session_stats){.host_name = s->config.host_type->name,
                                  .seconds = (double)(wt_clock_now_ns(NULL) - s->start_ns) * 1e-9,
                                  .n_reloads = atomic_load(&s->n_reloads),
                                  .n_reload_errors = atomic_load(&s->n_reload_errors),
                                  .n_reconnects = atomic_load(&s->n_reconnects),
                                  .transport = {.rolling = atomic_load(&s->rolling),
                                                .bpm = atomic_load(&s->bpm),
                                                .beats_per_bar = atomic_load(&s->beats_per_bar),
                                                .beat_unit = atomic_load(&s->beat_unit),
                                                .frame = atomic_load(&s->transport_frame)}};
    wt_live_get_stats(s->live, &stats->live);
    pthread_mutex_lock(&s->host_lock);
    if (s->host) s->host->type->stats(s->host, &stats->host);
    stats->host.n_xruns += s->n_xruns_before;
    stats->live.latency_frames += stats->host.block_latency_frames;
    pthread_mutex_unlock(&s->host_lock);
    live_record_stats(s->record, &stats->n_recorded_frames, &stats->n_record_lost, &recording);
    pthread_mutex_lock(&s->table);
    stats->preset = s->playing->asked;
    snprintf(stats->last_error, sizeof stats->last_error, "%s", s->last_error[0] ? s->last_error : recording);
    pthread_mutex_unlock(&s->table);
}

const wt_histogram *live_session_histogram(const live_session *s) { return wt_live_histogram(s->live); }

bool live_session_ended(const live_session *s, const char **why)
{
    if (atomic_load(&s->end_state) < 2) return false;
    if (why) *why = s->end_why;
    return true;
}

bool live_session_failed(const live_session *s) { return live_session_ended(s, NULL) && s->end_failed; }

static void end(live_session *s, const char *why, bool failed)
{
    if (!atomic_compare_exchange_strong(&s->end_state, &(int){0}, 1)) return; // the first reason stands
    snprintf(s->end_why, sizeof s->end_why, "%s", why);
    s->end_failed = failed;
    atomic_store(&s->end_state, 2);
}

void live_session_end(live_session *s, const char *why) { end(s, why, false); }
void live__fail(live_session *s, const char *why) { end(s, why, true); }
