// RtMidi's C interface: a call that failed leaves `ok` false, and a message that points into an exception which is gone
// (rtmidi_c.cpp, 5.0), so the sentences are ours. Its callback comes on a thread that may be the JACK server's, where
// nothing may wait: messages go through a ring to a thread of the port, which hands them on.
//
// Interfaces are opened one by one: left to choose, RtMidi gives up at the first that is not there.
#include "midi_port.h"

#include <stdlib.h>

#ifdef WT_HAVE_RTMIDI
#    include "optional_library.h"

#    include <errno.h>
#    include <pthread.h>
#    include <rtmidi_c.h>
#    include <semaphore.h>
#    include <stdatomic.h>
#    include <stdio.h>
#    include <string.h>
#    include <warptone/names.h>
#    include <warptone/ring.h>

// clang-format off
#    define RTMIDI_API_LIST(X)                                                                             \
        X(get_compiled_api) X(api_name) X(in_create) X(in_free) X(get_port_count) X(get_port_name)         \
        X(open_port) X(open_virtual_port) X(close_port) X(in_set_callback) X(in_cancel_callback)           \
        X(in_ignore_types)
// clang-format on

#    define RTMIDI_FIELD(name) __typeof__(rtmidi_##name) *name;
static struct rtmidi_table {
    RTMIDI_API_LIST(RTMIDI_FIELD)
} rtmidi;

#    define RTMIDI_NAME(name) "rtmidi_" #    name,
static const char *const files[] = {"librtmidi.so.6", "librtmidi.so.7", "librtmidi.so.5", NULL};
static const char *const names[] = {RTMIDI_API_LIST(RTMIDI_NAME)};
enum { N_NAMES = sizeof names / sizeof *names, MAX_APIS = 8, MAX_PORTS = 256, QUEUE_MESSAGES = 1024 };
static optional_library library = {.who = "midi",
                                   .files = files,
                                   .install = "install RtMidi (Debian: librtmidi6)",
                                   .names = names,
                                   .n_names = N_NAMES,
                                   .n_required = N_NAMES,
                                   .table = &rtmidi};

typedef struct message {
    uint8_t n, bytes[3];
} message;

struct midi_port {
    RtMidiInPtr in;
    char name[128];
    void *user;
    void (*call)(void *user, const uint8_t *bytes, int n_bytes);
    wt_ring *queue; ///< of message: the callback pushes, the thread pops
    sem_t ready;    ///< once for each message, and once to end
    pthread_t thread;
    bool has_thread;
    atomic_bool ending;
    atomic_ullong n_lost;
};

// ---- interfaces and ports

/// The interfaces RtMidi was built with, without its dummy; `only` leaves one of them.
static int list_apis(const char *only, enum RtMidiApi apis[MAX_APIS])
{
    enum RtMidiApi all[MAX_APIS];
    int n = 0;
    const int n_all = rtmidi.get_compiled_api(all, MAX_APIS);
    for (int k = 0; k < n_all && k < MAX_APIS; k++)
        if (all[k] != RTMIDI_API_RTMIDI_DUMMY && (!only || !strcmp(only, rtmidi.api_name(all[k])))) apis[n++] = all[k];
    return n;
}

/// NULL when the interface is not there.
static RtMidiInPtr open_api(enum RtMidiApi api, const char *client_name)
{
    RtMidiInPtr in = rtmidi.in_create(api, client_name, 64);
    if (in && in->ok && in->ptr) return in;
    if (in) rtmidi.in_free(in);
    return NULL;
}

static bool name_of(RtMidiInPtr in, unsigned port, char *name, int size)
{
    int length = size;
    name[0] = 0;
    return rtmidi.get_port_name(in, port, name, &length) >= 0 && in->ok && name[0];
}

/// Add an interface's ports to the list of at most MAX_PORTS.
static void list_ports(enum RtMidiApi api, midi_port_info *ports, int *n_ports)
{
    RtMidiInPtr in = open_api(api, "warptone-list");
    if (!in) return;
    const unsigned n = rtmidi.get_port_count(in);
    for (unsigned k = 0; k < n && *n_ports < MAX_PORTS; k++) {
        midi_port_info *p = &ports[*n_ports];
        if (!name_of(in, k, p->name, sizeof p->name)) continue;
        snprintf(p->api, sizeof p->api, "%s", rtmidi.api_name(api));
        ++*n_ports;
    }
    rtmidi.in_free(in);
}

wt_status midi_ports(midi_port_info **ports, int *n_ports)
{
    enum RtMidiApi apis[MAX_APIS];
    *ports = NULL, *n_ports = 0;
    wt_status status = optional_library_open(&library);
    if (status) return status;
    if (!(*ports = calloc(MAX_PORTS, sizeof **ports))) return wt_fail(WT_ERR_NO_MEMORY, "midi: ports");
    quiet_begin();
    const int n_apis = list_apis(NULL, apis);
    for (int k = 0; k < n_apis; k++) list_ports(apis[k], *ports, n_ports);
    quiet_end();
    return WT_OK;
}

/// The place in the list of the port that is asked for by number, whole name or part of it.
static wt_status find_port(const midi_port_info *ports, int n, const midi_port_config *config, int *found)
{
    const char *known[MAX_PORTS], *wanted = config->port;
    int n_known = 0, partly = -1;
    *found = -1;
    if (*wanted && wanted[strspn(wanted, "0123456789")] == 0) {
        if (strlen(wanted) < 6 && atoi(wanted) < n) *found = atoi(wanted);
        return *found >= 0 ? WT_OK
                           : wt_fail(WT_ERR_NOT_FOUND,
                                     "midi: no port %s, there are %d (`warptone info --midi` lists "
                                     "them)",
                                     wanted, n);
    }
    for (int k = 0; k < n; k++) {
        if (config->api && strcmp(config->api, ports[k].api)) continue;
        known[n_known++] = ports[k].name;
        if (*found < 0 && !strcasecmp(ports[k].name, wanted)) *found = k;
        if (partly < 0 && strcasestr(ports[k].name, wanted)) partly = k;
    }
    if (*found < 0) *found = partly;
    if (*found >= 0) return WT_OK;
    if (!n_known) return wt_fail(WT_ERR_NOT_FOUND, "midi: no port '%s', and no other to hear", wanted);
    return wt_fail(WT_ERR_NOT_FOUND, "midi: no port '%s'; the nearest is '%s' (`warptone info --midi` lists all)",
                   wanted, wt_nearest_name(wanted, known, n_known));
}

// ---- messages

static void on_message(double time, const unsigned char *bytes, size_t n_bytes, void *user)
{
    (void)time;
    midi_port *p = user;
    message m = {.n = (uint8_t)n_bytes};
    if (n_bytes < 1 || n_bytes > sizeof m.bytes) return;
    memcpy(m.bytes, bytes, n_bytes);
    if (wt_ring_push(p->queue, &m, 1))
        sem_post(&p->ready);
    else
        atomic_fetch_add_explicit(&p->n_lost, 1, memory_order_relaxed);
}

static void *deliver(void *user)
{
    midi_port *p = user;
    message m;
    while (!atomic_load(&p->ending)) {
        while (sem_wait(&p->ready) && errno == EINTR) {
        }
        while (!atomic_load(&p->ending) && wt_ring_pop(p->queue, &m, 1)) p->call(p->user, m.bytes, m.n);
    }
    return NULL;
}

// ---- open

/// RtMidi numbers the ports of each interface by itself, and they may have changed since they were listed: by name.
static bool open_named(midi_port *p, const midi_port_info *info)
{
    char name[128];
    const unsigned n = rtmidi.get_port_count(p->in);
    for (unsigned k = 0; k < n; k++) {
        if (!name_of(p->in, k, name, sizeof name) || strcmp(name, info->name)) continue;
        rtmidi.open_port(p->in, k, "midi_in");
        return p->in->ok;
    }
    return false;
}

static wt_status hear_port(midi_port *p, const midi_port_config *config, const char *client)
{
    enum RtMidiApi apis[MAX_APIS];
    midi_port_info *ports;
    int n, found;
    wt_status status = midi_ports(&ports, &n);
    if (!status) status = find_port(ports, n, config, &found);
    if (!status) {
        snprintf(p->name, sizeof p->name, "%s", ports[found].name);
        if (list_apis(ports[found].api, apis)) p->in = open_api(apis[0], client);
        if (p->in) rtmidi.in_set_callback(p->in, on_message, p);
        if (!p->in || !open_named(p, &ports[found]))
            status = wt_fail(WT_ERR_UNSUPPORTED, "midi: port '%s' does not open", p->name);
    }
    free(ports);
    return status;
}

static wt_status make_port(midi_port *p, const midi_port_config *config, const char *client)
{
    enum RtMidiApi apis[MAX_APIS];
    const int n = list_apis(config->api, apis);
    snprintf(p->name, sizeof p->name, "%s", config->virtual_name ? config->virtual_name : "midi_in");
    for (int k = 0; k < n; k++) {
        if (!(p->in = open_api(apis[k], client))) continue;
        rtmidi.in_set_callback(p->in, on_message, p);
        rtmidi.open_virtual_port(p->in, p->name);
        if (p->in->ok) return WT_OK;
        rtmidi.in_free(p->in);
        p->in = NULL;
    }
    return wt_fail(WT_ERR_UNSUPPORTED, "midi: no interface%s%s takes a virtual port", config->api ? " " : "",
                   config->api ? config->api : "");
}

void midi_port_close(midi_port *p)
{
    if (!p) return;
    quiet_begin();
    if (p->in) rtmidi.in_free(p->in);
    quiet_end();
    atomic_store(&p->ending, true);
    sem_post(&p->ready);
    if (p->has_thread) pthread_join(p->thread, NULL);
    sem_destroy(&p->ready);
    wt_ring_destroy(p->queue);
    free(p);
}

wt_status midi_port_open(const midi_port_config *config, midi_port **port)
{
    *port = NULL;
    wt_status status = optional_library_open(&library);
    if (status) return status;
    midi_port *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "midi: port");
    p->user = config->user;
    p->call = config->message;
    sem_init(&p->ready, 0, 0);
    status = wt_ring_create(&(wt_ring_config){.element_bytes = sizeof(message), .capacity = QUEUE_MESSAGES}, &p->queue);
    if (!status && pthread_create(&p->thread, NULL, deliver, p))
        status = wt_fail(WT_ERR_NO_MEMORY, "midi: no thread can be started");
    p->has_thread = !status;
    if (!status) {
        const char *client = config->client_name ? config->client_name : "warptone";
        quiet_begin();
        status = config->port ? hear_port(p, config, client) : make_port(p, config, client);
        quiet_end();
    }
    if (status) {
        midi_port_close(p);
        return status;
    }
    *port = p;
    return WT_OK;
}

const char *midi_port_name(const midi_port *port) { return port->name; }

uint64_t midi_port_n_lost(const midi_port *port) { return atomic_load_explicit(&port->n_lost, memory_order_relaxed); }

#else

static wt_status refuse(void)
{
    return wt_fail(WT_ERR_UNSUPPORTED, "midi: this build lacks RtMidi; install librtmidi-dev and build again");
}

wt_status midi_ports(midi_port_info **ports, int *n_ports)
{
    *ports = NULL, *n_ports = 0;
    return refuse();
}

wt_status midi_port_open(const midi_port_config *config, midi_port **port)
{
    (void)config;
    *port = NULL;
    return refuse();
}

void midi_port_close(midi_port *port) { (void)port; }
const char *midi_port_name(const midi_port *port) { return port ? "" : NULL; }
uint64_t midi_port_n_lost(const midi_port *port) { return port ? 0 : 0; }

#endif
