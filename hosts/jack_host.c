// JACK. The server's threads call us: process on the audio thread, which touches ports' buffers, the transport and MIDI
// events (all of them real-time safe calls) and our own callbacks; everything else on a thread that may wait.
//
// Ports keep short names (in_1, out_1, midi_in), so that session managers find them again; the preset's name stands in
// an alias. Latency is told as ranges: a signal that comes in with [min, max] goes out with [min + n,
// max + n], where n is what the chain adds, and likewise against the stream for playback.
#include "audio_host.h"
#include "jack_api.h"

#ifdef WT_HAVE_JACK
#    include <stdatomic.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>

enum { MAX_CHANNELS = 64, MAX_PATTERNS = 16, NAME_BYTES = 64, ALIAS_BYTES = 256, OPEN_TRIES = 5 };
enum { MAX_NAME = 63 }; // of a client: jackd 1.9.21 refuses more, though jack_client_name_size says 65 with the NUL

typedef struct jack_host {
    audio_host base;
    const jack_api *jack;
    audio_callbacks call;
    jack_client_t *client;
    int channels, out_channels, n_connect;
    bool auto_connect, activated;
    live_processor processor;
    char *connect[MAX_PATTERNS];
    jack_port_t *in[MAX_CHANNELS], *out[MAX_CHANNELS], *midi;
    char in_prefix[NAME_BYTES], out_prefix[NAME_BYTES], label[NAME_BYTES];
    char why[256]; ///< of `lost`
    // written by the server's threads, read by any: plain figures, relaxed
    atomic_uint rate_hz, block_frames;
    atomic_ullong n_xruns;
    atomic_bool lost, freewheel, running;
} jack_host;

// ---- callbacks

static void pass_midi(jack_host *h, jack_nframes_t n_frames)
{
    void *buffer = h->jack->port_get_buffer(h->midi, n_frames);
    uint32_t n = buffer ? h->jack->midi_get_event_count(buffer) : 0;
    for (uint32_t k = 0; k < n; k++) {
        jack_midi_event_t event;
        if (!h->jack->midi_event_get(&event, buffer, k))
            h->call.midi(h->call.user, (int)event.time, event.buffer, (int)event.size);
    }
}

static void pass_transport(jack_host *h)
{
    jack_position_t at = {.valid = 0};
    audio_transport t = {.rolling = h->jack->transport_query(h->client, &at) == JackTransportRolling};
    t.frame = at.frame;
    if (at.valid & JackPositionBBT) {
        t.bpm = at.beats_per_minute;
        t.beats_per_bar = at.beats_per_bar;
        t.beat_unit = at.beat_type;
    }
    h->call.transport(h->call.user, &t);
}

static int on_process(jack_nframes_t n_frames, void *user)
{
    jack_host *h = user;
    const float *in[MAX_CHANNELS];
    float *out[MAX_CHANNELS];
    for (int c = 0; c < h->channels; c++) in[c] = h->jack->port_get_buffer(h->in[c], n_frames);
    for (int c = 0; c < h->out_channels; c++) out[c] = h->jack->port_get_buffer(h->out[c], n_frames);
    if (h->midi && h->call.midi) pass_midi(h, n_frames);
    if (h->call.transport) pass_transport(h);
    h->call.process(h->call.user, in, out, (int)n_frames);
    return 0;
}

static void pass_format(jack_host *h)
{
    if (h->call.format) h->call.format(h->call.user, atomic_load(&h->rate_hz), (int)atomic_load(&h->block_frames));
}

static int on_buffer_size(jack_nframes_t n_frames, void *user)
{
    jack_host *h = user;
    if (atomic_exchange(&h->block_frames, n_frames) != n_frames) pass_format(h);
    return 0;
}

static int on_sample_rate(jack_nframes_t rate_hz, void *user)
{
    jack_host *h = user;
    if (atomic_exchange(&h->rate_hz, rate_hz) != rate_hz) pass_format(h);
    return 0;
}

static int on_xrun(void *user)
{
    jack_host *h = user;
    atomic_fetch_add_explicit(&h->n_xruns, 1, memory_order_relaxed);
    if (h->call.xrun) h->call.xrun(h->call.user);
    return 0;
}

static void on_freewheel(int starting, void *user)
{
    jack_host *h = user;
    atomic_store(&h->freewheel, starting != 0);
    if (h->call.freewheel) h->call.freewheel(h->call.user, starting != 0);
}

static void on_shutdown(jack_status_t code, const char *reason, void *user)
{
    (void)code;
    jack_host *h = user;
    snprintf(h->why, sizeof h->why, "jack: the server ended the connection: %.200s",
             reason && *reason ? reason : "no reason given");
    atomic_store(&h->running, false);
    if (!atomic_exchange(&h->lost, true) && h->call.lost) h->call.lost(h->call.user, h->why);
}

/// The range over all connected ports on one side; of all ports when none is connected.
static jack_latency_range_t range_of(const jack_host *h, jack_port_t *const *ports, int n_ports,
                                     jack_latency_callback_mode_t mode)
{
    jack_latency_range_t all = {0, 0}, one;
    bool some_connected = false, first = true;
    for (int c = 0; c < n_ports; c++) some_connected |= h->jack->port_connected(ports[c]) > 0;
    for (int c = 0; c < n_ports; c++) {
        if (some_connected && !h->jack->port_connected(ports[c])) continue;
        h->jack->port_get_latency_range(ports[c], mode, &one);
        if (first || one.min < all.min) all.min = one.min;
        if (first || one.max > all.max) all.max = one.max;
        first = false;
    }
    return all;
}

static void on_latency(jack_latency_callback_mode_t mode, void *user)
{
    jack_host *h = user;
    const bool capture = mode == JackCaptureLatency;
    jack_port_t *const *from = capture ? h->in : h->out, *const *to = capture ? h->out : h->in;
    jack_latency_range_t range = range_of(h, from, capture ? h->channels : h->out_channels, mode);
    const int added = h->call.latency ? h->call.latency(h->call.user) : 0;
    range.min += (jack_nframes_t)added;
    range.max += (jack_nframes_t)added;
    for (int c = 0; c < (capture ? h->out_channels : h->channels); c++)
        h->jack->port_set_latency_range(to[c], mode, &range);
}

// ---- open

static wt_status refuse_open(const char *server, jack_status_t code)
{
    const char *name = server ? server : "default";
    if (code & JackServerFailed)
        return wt_fail(WT_ERR_UNSUPPORTED, "jack: no server '%s' is running, want one: start jackd or PipeWire", name);
    if (code & JackVersionError)
        return wt_fail(WT_ERR_UNSUPPORTED, "jack: server '%s' speaks another protocol than libjack", name);
    return wt_fail(WT_ERR_STATE, "jack: server '%s' refuses the client (status 0x%x)", name, (unsigned)code);
}

static wt_status open_client(jack_host *h, const audio_host_config *config)
{
    const char *name = config->client_name ? config->client_name : "warptone";
    jack_status_t code = JackServerError;
    if (!*name || strlen(name) > MAX_NAME)
        return wt_fail(WT_ERR_BAD_ARG, "jack: the client's name has %d bytes, want 1..%d", (int)strlen(name), MAX_NAME);
    // A client's socket is named after the client alone: one of the same name that opens on another server at the same
    // time takes it away, and then the server cannot reach us.
    for (int k = 0; k < OPEN_TRIES && !h->client && code & JackServerError; k++) {
        if (k) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        h->client = config->device
                        ? h->jack->client_open(name, JackNoStartServer | JackServerName, &code, config->device)
                        : h->jack->client_open(name, JackNoStartServer, &code);
    }
    if (!h->client) return refuse_open(config->device, code);
    if (config->block_frames && h->jack->set_buffer_size(h->client, (jack_nframes_t)config->block_frames))
        return wt_fail(WT_ERR_UNSUPPORTED, "jack: the server refuses blocks of %d frames", config->block_frames);
    const unsigned rate_hz = h->jack->get_sample_rate(h->client);
    atomic_store(&h->rate_hz, rate_hz);
    atomic_store(&h->block_frames, h->jack->get_buffer_size(h->client));
    if (config->rate_hz != 0 && config->rate_hz != rate_hz)
        return wt_fail(WT_ERR_UNSUPPORTED, "jack: the server runs at %u Hz, want %g; its rate is set when it starts",
                       rate_hz, config->rate_hz);
    return WT_OK;
}

static wt_status set_callbacks(jack_host *h)
{
    const jack_api *j = h->jack;
    j->on_info_shutdown(h->client, on_shutdown, h);
    if (j->set_process_callback(h->client, on_process, h) ||
        j->set_buffer_size_callback(h->client, on_buffer_size, h) ||
        j->set_sample_rate_callback(h->client, on_sample_rate, h) || j->set_xrun_callback(h->client, on_xrun, h) ||
        j->set_freewheel_callback(h->client, on_freewheel, h) || j->set_latency_callback(h->client, on_latency, h))
        return wt_fail(WT_ERR_STATE, "jack: the server takes no callbacks");
    return WT_OK;
}

static wt_status register_port(jack_host *h, const char *name, const char *type, unsigned long flags,
                               jack_port_t **port)
{
    *port = h->jack->port_register(h->client, name, type, flags, 0);
    return *port ? WT_OK : wt_fail(WT_ERR_FULL, "jack: port '%s' cannot be registered", name);
}

static wt_status register_ports(jack_host *h, bool midi)
{
    char name[NAME_BYTES + 16];
    wt_status status = WT_OK;
    for (int c = 0; c < h->channels && !status; c++) {
        snprintf(name, sizeof name, "%s_%d", h->in_prefix, c + 1);
        status = register_port(h, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, &h->in[c]);
    }
    for (int c = 0; c < h->out_channels && !status; c++) {
        snprintf(name, sizeof name, "%s_%d", h->out_prefix, c + 1);
        status = register_port(h, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, &h->out[c]);
    }
    if (midi && !status) status = register_port(h, "midi_in", JACK_DEFAULT_MIDI_TYPE, JackPortIsInput, &h->midi);
    return status;
}

static wt_status copy_config(jack_host *h, const audio_host_config *config)
{
    h->call = config->callbacks;
    h->channels = config->channels ? config->channels : 2;
    h->out_channels = config->out_channels ? config->out_channels : h->channels;
    h->auto_connect = config->auto_connect;
    h->processor = config->processor;
    snprintf(h->in_prefix, sizeof h->in_prefix, "%s", config->in_prefix ? config->in_prefix : "in");
    snprintf(h->out_prefix, sizeof h->out_prefix, "%s", config->out_prefix ? config->out_prefix : "out");
    if (h->channels < 1 || h->channels > MAX_CHANNELS || h->out_channels < 1 || h->out_channels > MAX_CHANNELS)
        return wt_fail(WT_ERR_BAD_ARG, "jack: %d channels in, %d out, want 1..%d", h->channels, h->out_channels,
                       MAX_CHANNELS);
    if (config->n_connect > MAX_PATTERNS)
        return wt_fail(WT_ERR_BAD_ARG, "jack: %d patterns to connect, want at most %d", config->n_connect,
                       MAX_PATTERNS);
    for (; h->n_connect < config->n_connect; h->n_connect++)
        if (!(h->connect[h->n_connect] = strdup(config->connect[h->n_connect])))
            return wt_fail(WT_ERR_NO_MEMORY, "jack: patterns");
    return WT_OK;
}

static void jack_host_close(audio_host *host)
{
    jack_host *h = (jack_host *)host;
    if (!h) return;
    if (h->client) h->jack->client_close(h->client);
    for (int k = 0; k < h->n_connect; k++) free(h->connect[k]);
    free(h);
}

static wt_status jack_host_open(const audio_host_config *config, audio_host **host)
{
    *host = NULL;
    jack_host *h = calloc(1, sizeof *h);
    if (!h) return wt_fail(WT_ERR_NO_MEMORY, "jack: handle");
    h->base.type = &jack_host_type;
    wt_status status = jack_api_open(&h->jack);
    if (!status) status = copy_config(h, config);
    if (!status) status = open_client(h, config);
    if (!status) status = set_callbacks(h);
    if (!status) status = register_ports(h, config->midi);
    if (status) {
        jack_host_close(&h->base);
        return status;
    }
    *host = &h->base;
    return WT_OK;
}

// ---- connections

/// Connect `ours` [n] in order to the ports of others that match; `flags` says which. Returns how many matched.
static int connect_side(jack_host *h, jack_port_t *const *ours, int n, const char *pattern, const char *type,
                        unsigned long flags)
{
    const char **names = h->jack->get_ports(h->client, pattern, type, flags);
    int n_matched = 0;
    for (int k = 0; names && names[k]; k++) {
        jack_port_t *port = h->jack->port_by_name(h->client, names[k]);
        if (!port || h->jack->port_is_mine(h->client, port)) continue;
        if (n_matched < n) { // a connection that exists is no error
            const char *own = h->jack->port_name(ours[n_matched]);
            (void)(flags & JackPortIsOutput ? h->jack->connect(h->client, names[k], own)
                                            : h->jack->connect(h->client, own, names[k]));
        }
        n_matched++;
    }
    h->jack->free(names);
    return n_matched;
}

static int connect_matching(jack_host *h, const char *pattern, unsigned long flags)
{
    int n = connect_side(h, h->in, h->channels, pattern, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput | flags);
    n += connect_side(h, h->out, h->out_channels, pattern, JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput | flags);
    if (h->midi) n += connect_side(h, &h->midi, 1, pattern, JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput | flags);
    return n;
}

// ---- the row

static void jack_host_stop(audio_host *host)
{
    jack_host *h = (jack_host *)host;
    atomic_store(&h->running, false);
    if (h->activated && !atomic_load(&h->lost)) h->jack->deactivate(h->client);
    h->activated = false;
}

static wt_status jack_host_start(audio_host *host)
{
    jack_host *h = (jack_host *)host;
    if (h->jack->activate(h->client)) return wt_fail(WT_ERR_STATE, "jack: the server does not activate the client");
    h->activated = true;
    live_processor_place(&h->processor, h->jack->client_thread_id(h->client), true);
    atomic_store(&h->running, !atomic_load(&h->lost));
    if (h->auto_connect) connect_matching(h, NULL, JackPortIsPhysical);
    for (int k = 0; k < h->n_connect; k++) {
        if (connect_matching(h, h->connect[k], 0)) continue;
        jack_host_stop(host);
        return wt_fail(WT_ERR_NOT_FOUND, "jack: no port matches '%s'; `jack_lsp` lists those there are", h->connect[k]);
    }
    return WT_OK;
}

static double range_ms(const jack_host *h, jack_port_t *port, jack_latency_callback_mode_t mode)
{
    jack_latency_range_t range = {0, 0};
    h->jack->port_get_latency_range(port, mode, &range);
    return 1e3 * range.max / atomic_load(&h->rate_hz);
}

static void jack_host_stats(const audio_host *host, audio_host_stats *stats)
{
    const jack_host *h = (const jack_host *)host;
    *stats = (audio_host_stats){.rate_hz = atomic_load(&h->rate_hz),
                                .block_frames = (int)atomic_load(&h->block_frames),
                                .n_xruns = atomic_load_explicit(&h->n_xruns, memory_order_relaxed),
                                .running = atomic_load(&h->running),
                                .freewheel = atomic_load(&h->freewheel)};
    if (atomic_load(&h->lost)) return; // the rest lies in the server's memory
    stats->realtime = h->jack->is_realtime(h->client);
    stats->cpu_load = (double)h->jack->cpu_load(h->client) * 0.01;
    stats->in_latency_ms = range_ms(h, h->in[0], JackCaptureLatency);
    stats->out_latency_ms = range_ms(h, h->out[0], JackPlaybackLatency);
}

static void jack_host_latency_changed(audio_host *host)
{
    jack_host *h = (jack_host *)host;
    if (!atomic_load(&h->lost)) h->jack->recompute_total_latencies(h->client);
}

static void set_alias(jack_host *h, jack_port_t *port, const char *label, bool set)
{
    char alias[ALIAS_BYTES];
    const char *name = h->jack->port_name(port), *colon = strchr(name, ':');
    if (!colon) return;
    snprintf(alias, sizeof alias, "%.*s:%s %s", (int)(colon - name), name, label, colon + 1);
    if (set)
        h->jack->port_set_alias(port, alias);
    else
        h->jack->port_unset_alias(port, alias);
}

static void jack_host_label(audio_host *host, const char *text)
{
    jack_host *h = (jack_host *)host;
    if (atomic_load(&h->lost)) return;
    for (int set = 0; set < 2; set++) {
        if (set) snprintf(h->label, sizeof h->label, "%s", text);
        for (int c = 0; c < h->channels && h->label[0]; c++) set_alias(h, h->in[c], h->label, set);
        for (int c = 0; c < h->out_channels && h->label[0]; c++) set_alias(h, h->out[c], h->label, set);
    }
}

const audio_host_type jack_host_type = {
    .name = "jack",
    .open = jack_host_open,
    .start = jack_host_start,
    .stop = jack_host_stop,
    .close = jack_host_close,
    .stats = jack_host_stats,
    .latency_changed = jack_host_latency_changed,
    .label = jack_host_label,
};
#endif
