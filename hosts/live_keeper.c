// The session's own thread. What a callback may not do (it has no time, or stands inside the host) it notes and wakes
// the keeper for: the host went away, wants another format, should hear of another latency.
#include "live_session_internal.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { ROUND_MS = 50, RETRY_MS = 500, MAX_PATHS = 64 };

void live__wake(live_session *s)
{
    ssize_t put = write(s->wake_fd, &(uint64_t){1}, sizeof(uint64_t)); // full = awake already
    (void)put;
}

// ---- the host's end, and its return

static audio_host *take_host(live_session *s)
{
    audio_host_stats stats;
    pthread_mutex_lock(&s->host_lock);
    audio_host *host = s->host;
    s->host = NULL;
    if (host) {
        host->type->stats(host, &stats);
        s->n_xruns_before += stats.n_xruns;
    }
    pthread_mutex_unlock(&s->host_lock);
    return host;
}

static bool reconnect(live_session *s)
{
    audio_host *host;
    if (live__open_host(s, &host)) return false;
    live__apply_format(s);
    if (host->type->start(host)) {
        host->type->close(host);
        return false;
    }
    pthread_mutex_lock(&s->host_lock);
    s->host = host;
    pthread_mutex_unlock(&s->host_lock);
    atomic_store(&s->latency_changed, true);
    atomic_store(&s->playing_changed, true);
    live__keep_error(s, "");
    atomic_fetch_add(&s->n_reconnects, 1);
    return true;
}

static void follow_loss(live_session *s, const char *why)
{
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s", why); // it is the host's
    audio_host *host = take_host(s);
    if (host) {
        host->type->stop(host);
        host->type->close(host);
    }
    if (!s->config.wait) {
        live__fail(s, sentence);
        return;
    }
    live__keep_error(s, sentence);
    while (!atomic_load(&s->closing) && !live_session_ended(s, NULL)) {
        if (reconnect(s)) return;
        struct pollfd wake = {.fd = s->wake_fd, .events = POLLIN};
        poll(&wake, 1, RETRY_MS);
        uint64_t n;
        if (wake.revents & POLLIN && read(s->wake_fd, &n, sizeof n) < 0) return;
    }
}

// ---- files

static int paths_of(const live_playing *p, const char **paths, int n)
{
    if (!p) return n;
    const wt_chain_desc *chain = wt_preset_chain(p->preset);
    if (n < MAX_PATHS) paths[n++] = wt_preset_path(p->preset);
    for (int k = 0; k < chain->n_nodes; k++)
        for (int i = 0; i < chain->nodes[k].n_settings; i++)
            if (!strcmp(chain->nodes[k].settings[i].name, "file") && n < MAX_PATHS)
                paths[n++] = chain->nodes[k].settings[i].text;
    return n;
}

static void watch_what_plays(live_session *s)
{
    const char *paths[MAX_PATHS];
    if (!s->watch) return;
    pthread_mutex_lock(&s->change); // the presets stay while their paths are copied
    int n = paths_of(s->failed, paths, paths_of(s->playing, paths, 0));
    live_watch_files(s->watch, paths, n);
    pthread_mutex_unlock(&s->change);
}

static void reload(live_session *s)
{
    pthread_mutex_lock(&s->change);
    wt_status status = live__load(s, s->playing->asked);
    pthread_mutex_unlock(&s->change);
    if (status) live__keep_error(s, wt_last_error());
    atomic_fetch_add(status ? &s->n_reload_errors : &s->n_reloads, 1);
    if (!status) live__notify(s, "preset", 0);
}

// ---- the round

static void tell_host(live_session *s)
{
    const bool latency = atomic_exchange(&s->latency_changed, false);
    pthread_mutex_lock(&s->host_lock);
    audio_host *host = s->host;
    if (host && latency) host->type->latency_changed(host);
    if (host && host->type->label) {
        char label[64];
        pthread_mutex_lock(&s->table);
        snprintf(label, sizeof label, "%s", wt_preset_name(s->playing->preset));
        pthread_mutex_unlock(&s->table);
        host->type->label(host, label);
    }
    pthread_mutex_unlock(&s->host_lock);
}

static void publish(live_session *s)
{
    wt_live_stats stats;
    wt_live_get_stats(s->live, &stats);
    live_telemetry_publish(s->telemetry, &stats);
}

static void look_around(live_session *s)
{
    const char *why = atomic_exchange(&s->lost, NULL);
    if (why) follow_loss(s, why);
    live__apply_format(s);
    if (s->watch && live_watch_changed(s->watch)) reload(s);
    live__midi_round(s);
    live__tempo_round(s);
    bool other = atomic_exchange(&s->playing_changed, false);
    if (other) watch_what_plays(s);
    if (other || atomic_load(&s->latency_changed)) tell_host(s);
    publish(s);
}

static void *keep(void *user)
{
    live_session *s = user;
    while (!atomic_load(&s->closing)) {
        struct pollfd wake = {.fd = s->wake_fd, .events = POLLIN};
        uint64_t n;
        look_around(s);
        if (poll(&wake, 1, ROUND_MS) > 0 && read(s->wake_fd, &n, sizeof n) < 0) break;
    }
    return NULL;
}

wt_status live__keeper_start(live_session *s)
{
    if (pthread_create(&s->keeper, NULL, keep, s)) return wt_fail(WT_ERR_NO_MEMORY, "live: thread");
    s->keeper_runs = true;
    return WT_OK;
}

void live__keeper_stop(live_session *s)
{
    atomic_store(&s->closing, true);
    if (!s->keeper_runs) return;
    live__wake(s);
    pthread_join(s->keeper, NULL);
    s->keeper_runs = false;
}
