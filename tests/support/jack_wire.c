#include "jack_wire.h"
#include "testing.h"
#include "../../hosts/jack_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warptone/clock.h>

#ifdef WT_HAVE_JACK

enum { IDLE, ARMED, RUNNING };

struct jack_wire {
    const jack_api *jack;
    jack_client_t *player, *recorder;
    jack_port_t *out[WIRE_CHANNELS], *in[WIRE_CHANNELS], *midi;
    const float *signal;
    const wire_event *events;
    float *recorded;
    int n_events, n_frames;
    jack_nframes_t begin; ///< the server's frame of the signal's first
    atomic_int state;     ///< release by who changes it, acquire by who reads what it guards
    int next_play, next_look; ///< of the signal, when no cycle is skipped
    atomic_int n_recorded, sleep_ms, sleep_in_run_ms, n_skips;
    atomic_uint n_plays, n_looks; ///< callbacks that have ended
    _Atomic double bpm;
};

static void pause_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

static void play_events(jack_wire *w, int at, int n)
{
    void *midi = w->jack->port_get_buffer(w->midi, (jack_nframes_t)n);
    w->jack->midi_clear_buffer(midi);
    for (int k = 0; at >= 0 && k < w->n_events; k++)
        if (w->events[k].frame >= at && w->events[k].frame < at + n)
            w->jack->midi_event_write(midi, (jack_nframes_t)(w->events[k].frame - at), w->events[k].bytes, 3);
}

/// Frames that no callback came for: a server that was late goes on where it should be.
static void expect(jack_wire *w, int *next, int at, int n)
{
    if (at != *next) atomic_fetch_add(&w->n_skips, 1);
    *next = at + n;
}

static int on_xrun(void *user)
{
    jack_wire *w = user;
    atomic_fetch_add(&w->n_skips, 1);
    return 0;
}

static int on_play(jack_nframes_t n, void *user)
{
    jack_wire *w = user;
    int sleep = atomic_exchange(&w->sleep_ms, 0);
    if (sleep) pause_ms(sleep);
    if (atomic_load(&w->state) == ARMED) {
        w->begin = w->jack->last_frame_time(w->player);
        atomic_store(&w->state, RUNNING);
    }
    int at = atomic_load(&w->state) == RUNNING ? (int)(w->jack->last_frame_time(w->player) - w->begin) : -1;
    if (at >= 0 && at < w->n_frames) expect(w, &w->next_play, at, (int)n);
    sleep = at > 0 ? atomic_exchange(&w->sleep_in_run_ms, 0) : 0;
    if (sleep) pause_ms(sleep);
    for (int c = 0; c < WIRE_CHANNELS; c++) {
        float *out = w->jack->port_get_buffer(w->out[c], n);
        for (int k = 0; k < (int)n; k++)
            out[k] =
                at >= 0 && at + k < w->n_frames ? w->signal[(size_t)c * (size_t)w->n_frames + (size_t)(at + k)] : 0;
    }
    play_events(w, at, (int)n);
    atomic_fetch_add(&w->n_plays, 1);
    return 0;
}

static void record(jack_wire *w, jack_nframes_t n)
{
    if (atomic_load(&w->state) != RUNNING) return;
    int at = (int)(w->jack->last_frame_time(w->recorder) - w->begin);
    if (at < 0) return;
    if (at < w->n_frames) expect(w, &w->next_look, at, (int)n);
    for (int c = 0; c < WIRE_CHANNELS; c++) {
        const float *in = w->jack->port_get_buffer(w->in[c], n);
        for (int k = 0; k < (int)n && at + k < w->n_frames; k++)
            w->recorded[(size_t)c * (size_t)w->n_frames + (size_t)(at + k)] = in[k];
    }
    atomic_store(&w->n_recorded, at + (int)n);
}

static int on_record(jack_nframes_t n, void *user)
{
    jack_wire *w = user;
    record(w, n);
    atomic_fetch_add(&w->n_looks, 1);
    return 0;
}

/// Servers of a machine share one registry: while another starts or ends, this one may refuse a client.
static jack_client_t *open_client(const jack_api *jack, const char *name, const jack_server *server)
{
    jack_client_t *client = NULL;
    const int64_t until_ns = wt_clock_now_ns(NULL) + 30000000000; // one refusal takes up to 5 s
    while (!client && wt_clock_now_ns(NULL) < until_ns) {
        client = jack->client_open(name, JackNoStartServer | JackServerName, NULL, server->name);
        if (!client) pause_ms(100);
    }
    assert_non_null(client);
    return client;
}

jack_wire *jack_wire_open(const jack_server *server)
{
    jack_wire *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_ok(jack_api_open(&w->jack));
    const jack_api *j = w->jack;
    w->player = open_client(j, "player", server);
    w->recorder = open_client(j, "recorder", server);
    for (int c = 0; c < WIRE_CHANNELS; c++) {
        char name[24];
        snprintf(name, sizeof name, "port_%d", c + 1);
        w->out[c] = j->port_register(w->player, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
        w->in[c] = j->port_register(w->recorder, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    }
    w->midi = j->port_register(w->player, "midi", JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput, 0);
    assert_non_null(w->midi);
    j->set_process_callback(w->player, on_play, w);
    j->set_process_callback(w->recorder, on_record, w);
    j->set_xrun_callback(w->player, on_xrun, w);
    assert_int_equal(j->activate(w->player), 0);
    assert_int_equal(j->activate(w->recorder), 0);
    return w;
}

void jack_wire_close(jack_wire *w)
{
    if (!w) return;
    w->jack->client_close(w->player);
    w->jack->client_close(w->recorder);
    free(w);
}

bool jack_wire_connect(jack_wire *w, const char *from, const char *to)
{
    int result = w->jack->connect(w->player, from, to);
    if (result && result != EEXIST) fail_msg("%s does not connect to %s: %d", from, to, result);
    return result == EEXIST;
}

void jack_wire_between(jack_wire *w, const char *from, const char *to)
{
    for (int c = 1; c <= WIRE_CHANNELS; c++) {
        char out[128], in[128];
        snprintf(out, sizeof out, strcmp(from, "player") ? "%s:out_%d" : "%s:port_%d", from, c);
        snprintf(in, sizeof in, strcmp(to, "recorder") ? "%s:in_%d" : "%s:port_%d", to, c);
        (void)jack_wire_connect(w, out, in);
    }
}

void jack_wire_through(jack_wire *w, const char *client)
{
    char midi[128];
    jack_wire_between(w, "player", client);
    jack_wire_between(w, client, "recorder");
    snprintf(midi, sizeof midi, "%s:midi_in", client);
    if (jack_wire_has_port(w, midi)) (void)jack_wire_connect(w, "player:midi", midi);
}

// Until each callback has begun and ended, a second at most: a server may be gone.
static void wait_for_callbacks(jack_wire *w)
{
    const unsigned plays = atomic_load(&w->n_plays), looks = atomic_load(&w->n_looks);
    for (int k = 0; k < 1000 && (atomic_load(&w->n_plays) - plays < 2 || atomic_load(&w->n_looks) - looks < 2); k++)
        pause_ms(1);
}

void jack_wire_run(jack_wire *w, bool freewheel, const float *signal, const wire_event *events, int n_events,
                   float *recorded, int n_frames)
{
    w->signal = signal, w->events = events, w->n_events = n_events;
    w->recorded = recorded, w->n_frames = n_frames;
    memset(recorded, 0, sizeof *recorded * WIRE_CHANNELS * (size_t)n_frames);
    w->next_play = w->next_look = 0;
    atomic_store(&w->n_recorded, 0);
    atomic_store(&w->n_skips, 0);
    if (freewheel) {
        assert_int_equal(w->jack->set_freewheel(w->player, 1), 0);
        wait_for_callbacks(w); // of the other driver, over the connections there are now
    }
    atomic_store(&w->state, ARMED);
    for (int k = 0; k < 30000 && atomic_load(&w->n_recorded) < n_frames; k++) pause_ms(1);
    atomic_store(&w->state, IDLE);
    if (freewheel) assert_int_equal(w->jack->set_freewheel(w->player, 0), 0);
    assert_true(atomic_load(&w->n_recorded) >= n_frames);
    wait_for_callbacks(w); // who still looked at the buffers is through
}

int jack_wire_n_skips(const jack_wire *w) { return atomic_load(&w->n_skips); }

void jack_wire_set_block(jack_wire *w, int block_frames)
{
    assert_int_equal(w->jack->set_buffer_size(w->player, (jack_nframes_t)block_frames), 0);
}

void jack_wire_oversleep(jack_wire *w, int ms) { atomic_store(&w->sleep_ms, ms); }

void jack_wire_oversleep_in_run(jack_wire *w, int ms) { atomic_store(&w->sleep_in_run_ms, ms); }

static void latency(jack_wire *w, jack_port_t *port, jack_latency_callback_mode_t mode, int *min, int *max)
{
    jack_latency_range_t range;
    w->jack->port_get_latency_range(port, mode, &range);
    *min = (int)range.min, *max = (int)range.max;
}

void jack_wire_latency(jack_wire *w, int *min, int *max) { latency(w, w->in[0], JackCaptureLatency, min, max); }

void jack_wire_playback_latency(jack_wire *w, int *min, int *max)
{
    latency(w, w->out[0], JackPlaybackLatency, min, max);
}

bool jack_wire_has_port(jack_wire *w, const char *name) { return w->jack->port_by_name(w->player, name) != NULL; }

static void lead(jack_transport_state_t state, jack_nframes_t n, jack_position_t *at, int is_new, void *user)
{
    (void)state, (void)n, (void)is_new;
    const jack_wire *w = user;
    at->valid = JackPositionBBT;
    at->bar = at->beat = 1, at->tick = 0;
    at->bar_start_tick = 0, at->ticks_per_beat = 960;
    at->beats_per_bar = 3, at->beat_type = 4, at->beats_per_minute = w->bpm;
}

void jack_wire_transport(jack_wire *w, double bpm)
{
    w->bpm = bpm;
    if (bpm > 0) {
        assert_int_equal(w->jack->set_timebase_callback(w->player, 0, lead, w), 0);
        w->jack->transport_start(w->player);
    } else {
        w->jack->transport_stop(w->player);
    }
}

#endif
