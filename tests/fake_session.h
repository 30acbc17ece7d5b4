/// A session of two nodes without audio, for tests of what speaks through live_session.h. A test program that includes
/// this defines those functions itself, and the dynamic linker takes its ones, also for calls from the library.
#ifndef WT_FAKE_SESSION_H
#define WT_FAKE_SESSION_H

#include "../hosts/live_session.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { FAKE_PARAMS = 4, FAKE_LISTENERS = 8 };

struct live_session {
    pthread_mutex_t lock;   ///< of all but the listeners
    pthread_mutex_t listen; ///< of those
    live_param params[FAKE_PARAMS];
    bool bypass;
    char preset[256], saved[256], map[256]; ///< as load, save and the MIDI calls were given
    char error[64];                         ///< of the figures
    atomic_bool ended;
    const char *why;
    live_listener listeners[FAKE_LISTENERS];
    void *users[FAKE_LISTENERS];
    wt_histogram *histogram;
};

static inline void fake_session_init(live_session *s)
{
    *s = (live_session){.params = {{"low_cut", "frequency_hz", "Hz", 80, 10, 20000, 100, true},
                                   {"gain", "gain_db", "dB", -6, -60, 24, 0, false},
                                   {"gain", "balance", "", 0, -1, 1, 0, false},
                                   {"gain", "bypass", "", 0, 0, 1, 0, false}},
                        .preset = "voice"};
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->listen, NULL);
}

static inline void fake_session_tell(live_session *s, const char *name, float value)
{
    pthread_mutex_lock(&s->listen);
    for (int k = 0; k < FAKE_LISTENERS; k++)
        if (s->listeners[k]) s->listeners[k](s->users[k], name, value);
    pthread_mutex_unlock(&s->listen);
}

static inline live_param *fake_session_find(live_session *s, const char *name)
{
    for (int k = 0; k < FAKE_PARAMS; k++) {
        char own[160];
        snprintf(own, sizeof own, "%s/%s", s->params[k].node, s->params[k].name);
        if (!strcmp(own, name)) return &s->params[k];
    }
    (void)wt_fail(WT_ERR_NOT_FOUND, "no parameter \"%s\"", name);
    return NULL;
}

int live_session_n_params(live_session *s)
{
    (void)s;
    return FAKE_PARAMS;
}

wt_status live_session_param(live_session *s, int index, live_param *param)
{
    if (index < 0 || index >= FAKE_PARAMS) return wt_fail(WT_ERR_BAD_ARG, "parameter %d of %d", index, FAKE_PARAMS);
    pthread_mutex_lock(&s->lock);
    *param = s->params[index];
    pthread_mutex_unlock(&s->lock);
    return WT_OK;
}

wt_status live_session_set(live_session *s, const char *name, float value)
{
    live_param *p = fake_session_find(s, name);
    if (!p) return WT_ERR_NOT_FOUND;
    value = value < p->min ? p->min : value > p->max ? p->max : value;
    pthread_mutex_lock(&s->lock);
    p->value = value;
    pthread_mutex_unlock(&s->lock);
    fake_session_tell(s, name, value);
    return WT_OK;
}

wt_status live_session_get(live_session *s, const char *name, float *value)
{
    live_param *p = fake_session_find(s, name);
    if (!p) return WT_ERR_NOT_FOUND;
    pthread_mutex_lock(&s->lock);
    *value = p->value;
    pthread_mutex_unlock(&s->lock);
    return WT_OK;
}

void live_session_set_bypass(live_session *s, bool bypass)
{
    pthread_mutex_lock(&s->lock);
    s->bypass = bypass;
    pthread_mutex_unlock(&s->lock);
    fake_session_tell(s, "bypass", bypass);
}

wt_status live_session_listen(live_session *s, live_listener function, void *user)
{
    wt_status status = wt_fail(WT_ERR_FULL, "%d listeners", FAKE_LISTENERS);
    pthread_mutex_lock(&s->listen);
    for (int k = 0; k < FAKE_LISTENERS && status; k++) {
        if (function ? s->listeners[k] != NULL : s->users[k] != user) continue;
        s->listeners[k] = function;
        s->users[k] = function ? user : NULL;
        status = WT_OK;
    }
    pthread_mutex_unlock(&s->listen);
    return status;
}

wt_status live_session_load(live_session *s, const char *preset)
{
    if (!strcmp(preset, "broken")) return wt_fail(WT_ERR_FORMAT, "broken.yaml:3:\nno node is named \"x\"");
    pthread_mutex_lock(&s->lock);
    snprintf(s->preset, sizeof s->preset, "%s", preset);
    pthread_mutex_unlock(&s->lock);
    fake_session_tell(s, "preset", 0);
    return WT_OK;
}

wt_status live_session_save(live_session *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->saved, sizeof s->saved, "%s", path ? path : s->preset);
    pthread_mutex_unlock(&s->lock);
    return WT_OK;
}

int live_session_levels(live_session *s, bool output, float *peak, float *rms, int max_channels)
{
    (void)s;
    for (int c = 0; c < 2 && c < max_channels; c++) {
        peak[c] = output ? 0.5f : c ? 0 : 1;
        rms[c] = output ? 0.25f : c ? 0 : 0.5f;
    }
    return max_channels < 2 ? max_channels : 2;
}

wt_status live_session_reading(live_session *s, const char *name, float *value)
{
    (void)s;
    *value = 4.5f;
    return strcmp(name, "gain/gain_reduction_db") ? wt_fail(WT_ERR_NOT_FOUND, "no reading \"%s\"", name) : WT_OK;
}

void live_session_get_stats(live_session *s, live_session_stats *stats)
{
    pthread_mutex_lock(&s->lock);
    *stats = (live_session_stats){
        .live = {.path = WT_LIVE_CPU,
                 .n_blocks = 1000,
                 .n_frames = 64000,
                 .misses = {[WT_LIVE_MISS_LATE] = 2, [WT_LIVE_MISS_SIZE] = 1},
                 .n_misses = 3,
                 .rate_hz = 48000,
                 .block_frames = 64,
                 .latency_frames = 96,
                 .n_threads = 512,
                 .n_threads_wanted = 512,
                 .load = 0.125,
                 .process_ns = {1000, 100000, 90000, 150000, 160000, 170000, 180000},
                 .bypass = s->bypass},
        .host = {.rate_hz = 48000, .block_frames = 64, .n_xruns = 4, .cpu_load = 0.25, .running = true},
        .preset = s->preset,
        .host_name = "fake",
        .seconds = 1.5,
        .n_reloads = 1,
    };
    strcpy(stats->last_error, s->error);
    pthread_mutex_unlock(&s->lock);
}

const wt_histogram *live_session_histogram(const live_session *s) { return s->histogram; }

wt_status live_session_midi_learn(live_session *s, const char *name, float min, float max)
{
    if (isnan(min))
        snprintf(s->map, sizeof s->map, "learn %s", name);
    else
        snprintf(s->map, sizeof s->map, "learn %s %g %g", name, (double)min, (double)max);
    return fake_session_find(s, name) ? WT_OK : WT_ERR_NOT_FOUND;
}

wt_status live_session_midi_map(live_session *s, const char *name, int channel, int controller, float min, float max,
                                const char *curve)
{
    snprintf(s->map, sizeof s->map, "map %s %d %d %g %g %s", name, channel, controller, (double)min, (double)max,
             curve);
    return fake_session_find(s, name) ? WT_OK : WT_ERR_NOT_FOUND;
}

wt_status live_session_midi_unmap(live_session *s, const char *name)
{
    snprintf(s->map, sizeof s->map, "unmap %s", name);
    return fake_session_find(s, name) ? WT_OK : WT_ERR_NOT_FOUND;
}

bool live_session_ended(const live_session *s, const char **why)
{
    if (why) *why = s->why;
    return atomic_load(&s->ended);
}

void live_session_end(live_session *s, const char *why)
{
    s->why = why;
    atomic_store(&s->ended, true);
}

#endif
