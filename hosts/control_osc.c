// OSC beside the line protocol: /warptone/NODE/PARAM turns a parameter, without an argument it asks for the value, and
// the answer has the same address and goes to the sender.
//
// A sender's address costs nothing to forge, so nothing that is sent to it may make another session answer: one packet
// would keep the two busy for ever. Values are sent as what turns, which nobody answers; what else is sent has
// addresses that are ignored where they come in.
#include "control_internal.h"

#ifdef WT_HAVE_LIBLO

#    include "osc.h"

#    include <arpa/inet.h>
#    include <errno.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <unistd.h>
#    include <warptone/clock.h>

#    define ROOT "/warptone/"
#    define ANSWER "/answer" // behind a command's address

enum { MAX_SUBSCRIBERS = 16, PATH_BYTES = CONTROL_NAME_BYTES + 16, STATS_BYTES = 8192, MAX_STARS = 3 };

static const float standard_lease_s = 60, min_lease_s = 0.01f, max_lease_s = 86400;

typedef struct subscriber {
    struct sockaddr_in address;
    int64_t until_ns;
} subscriber;

struct control_osc {
    live_session *session;
    int fd;
    struct sockaddr_in own; ///< of the socket
    subscriber subscribers[MAX_SUBSCRIBERS];
    int n_subscribers;
};

typedef struct osc_command {
    const char *name;
    wt_status (*run)(control_osc *osc, const osc_message *m);
} osc_command;

// ---- answers

static lo_message message_of_float(float value)
{
    lo_message m = lo_message_new();
    if (m) lo_message_add_float(m, value);
    return m;
}

static lo_message message_of_text(const char *text)
{
    lo_message m = lo_message_new();
    if (m) lo_message_add_string(m, text);
    return m;
}

/// To who sent `m`, a command; the message is taken, NULL = one without arguments.
static void send_answer(control_osc *osc, const osc_message *m, lo_message message)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s" ANSWER, m->path);
    osc_send(osc->fd, &m->from, path, message);
}

static void send_value(control_osc *osc, const struct sockaddr_in *to, const char *name, float value)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, ROOT "%s", name);
    osc_send(osc->fd, to, path, message_of_float(value));
}

static void send_preset(control_osc *osc, const struct sockaddr_in *to)
{
    live_session_stats stats;
    live_session_get_stats(osc->session, &stats);
    osc_send(osc->fd, to, ROOT "preset", message_of_text(stats.preset));
}

static void send_error(control_osc *osc, const osc_message *m)
{
    lo_message answer = lo_message_new();
    if (answer) lo_message_add(answer, "ss", m->path, wt_last_error());
    osc_send(osc->fd, &m->from, ROOT "error", answer);
}

// ---- addresses with a meaning of their own

static bool same_address(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
    return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static void forget(control_osc *osc, const struct sockaddr_in *address, int64_t now_ns)
{
    int n_kept = 0;
    for (int k = 0; k < osc->n_subscribers; k++) {
        const subscriber *s = &osc->subscribers[k];
        if (s->until_ns > now_ns && !(address && same_address(&s->address, address))) osc->subscribers[n_kept++] = *s;
    }
    osc->n_subscribers = n_kept;
}

static wt_status osc_subscribe(control_osc *osc, const osc_message *m)
{
    float seconds = standard_lease_s;
    int64_t now_ns = wt_clock_now_ns(NULL);
    if (m->n_args && (!osc_number(m, 0, &seconds) || seconds < min_lease_s || seconds > max_lease_s))
        return wt_fail(WT_ERR_BAD_ARG, "subscribe: want seconds in %g..%g", (double)min_lease_s, (double)max_lease_s);
    forget(osc, &m->from, now_ns);
    if (osc->n_subscribers == MAX_SUBSCRIBERS)
        return wt_fail(WT_ERR_FULL, "subscribe: there are %d subscribers already", MAX_SUBSCRIBERS);
    osc->subscribers[osc->n_subscribers++] = (subscriber){m->from, now_ns + (int64_t)((double)seconds * 1e9)};
    send_answer(osc, m, message_of_float(seconds));
    return WT_OK;
}

static wt_status osc_unsubscribe(control_osc *osc, const osc_message *m)
{
    forget(osc, &m->from, wt_clock_now_ns(NULL));
    send_answer(osc, m, NULL);
    return WT_OK;
}

static wt_status osc_bypass(control_osc *osc, const osc_message *m)
{
    float on;
    live_session_stats stats;
    if (m->n_args && !osc_number(m, 0, &on)) return wt_fail(WT_ERR_BAD_ARG, "bypass: want 0 or 1");
    if (m->n_args)
        live_session_set_bypass(osc->session, on != 0);
    else {
        live_session_get_stats(osc->session, &stats);
        send_value(osc, &m->from, "bypass", stats.live.bypass);
    }
    return WT_OK;
}

static wt_status osc_preset(control_osc *osc, const osc_message *m)
{
    if (m->n_args && !osc_text(m, 0)) return wt_fail(WT_ERR_BAD_ARG, "preset: want a name or path");
    if (m->n_args) return live_session_load(osc->session, osc_text(m, 0));
    send_preset(osc, &m->from);
    return WT_OK;
}

static wt_status osc_save(control_osc *osc, const osc_message *m)
{
    if (m->n_args && !osc_text(m, 0)) return wt_fail(WT_ERR_BAD_ARG, "save: want a path");
    wt_status status = live_session_save(osc->session, osc_text(m, 0));
    if (!status) send_answer(osc, m, NULL);
    return status;
}

static wt_status osc_list(control_osc *osc, const osc_message *m)
{
    int n = live_session_n_params(osc->session), n_told = 0;
    live_param p;
    for (int k = 0; k < n; k++) {
        char path[PATH_BYTES];
        lo_message answer = live_session_param(osc->session, k, &p) ? NULL : lo_message_new();
        if (!answer) continue;
        snprintf(path, sizeof path, ROOT "%s/%s", p.node, p.name);
        lo_message_add(answer, "sffffsi", path, p.value, p.min, p.max, p.standard, p.unit, p.logarithmic ? 1 : 0);
        send_answer(osc, m, answer);
        n_told++;
    }
    lo_message end = lo_message_new();
    if (end) lo_message_add_int32(end, n_told);
    send_answer(osc, m, end);
    return WT_OK;
}

static wt_status osc_levels(control_osc *osc, const osc_message *m)
{
    float peak[CONTROL_CHANNELS], rms[CONTROL_CHANNELS];
    for (int output = 0; output < 2; output++) {
        lo_message answer = message_of_text(output ? "out" : "in");
        int n = live_session_levels(osc->session, output, peak, rms, CONTROL_CHANNELS);
        for (int c = 0; answer && c < n; c++) lo_message_add(answer, "ff", peak[c], rms[c]);
        send_answer(osc, m, answer);
    }
    return WT_OK;
}

static wt_status osc_stats(control_osc *osc, const osc_message *m)
{
    char json[STATS_BYTES] = "";
    control_text text = {.bytes = json, .size = sizeof json};
    control_put_stats(&text, osc->session);
    if (text.full) return wt_fail(WT_ERR_FULL, "stats: more than %d bytes", STATS_BYTES);
    send_answer(osc, m, message_of_text(json + 1)); // after the blank
    return WT_OK;
}

static const osc_command commands[] = {
    {"subscribe", osc_subscribe}, {"unsubscribe", osc_unsubscribe},
    {"bypass", osc_bypass},       {"preset", osc_preset},
    {"save", osc_save},           {"list", osc_list},
    {"levels", osc_levels},       {"stats", osc_stats},
};

// ---- parameters

static wt_status turn(control_osc *osc, const osc_message *m, const char *name)
{
    float value;
    if (m->n_args && !osc_number(m, 0, &value)) return wt_fail(WT_ERR_BAD_ARG, "%s: want a number", name);
    if (m->n_args) return live_session_set(osc->session, name, value);
    wt_status status = live_session_get(osc->session, name, &value);
    if (!status) send_value(osc, &m->from, name, value);
    return status;
}

/// An address with * ? [] {} stands for every parameter that it matches. Each * multiplies the work, so few are
/// allowed.
static wt_status turn_all(control_osc *osc, const osc_message *m)
{
    int n_stars = 0, n_matched = 0, n = live_session_n_params(osc->session);
    live_param p;
    for (const char *at = m->path; *at; at++) n_stars += *at == '*';
    if (n_stars > MAX_STARS) return wt_fail(WT_ERR_BAD_ARG, "more than %d * in an address", MAX_STARS);
    for (int k = 0; k < n; k++) {
        char path[PATH_BYTES];
        if (live_session_param(osc->session, k, &p)) continue;
        snprintf(path, sizeof path, ROOT "%s/%s", p.node, p.name);
        if (!lo_pattern_match(path, m->path)) continue;
        n_matched++;
        wt_status status = turn(osc, m, path + strlen(ROOT));
        if (status) return status;
    }
    return n_matched ? WT_OK : wt_fail(WT_ERR_NOT_FOUND, "no parameter matches");
}

static wt_status run_message(control_osc *osc, const osc_message *m)
{
    if (strncmp(m->path, ROOT, strlen(ROOT))) return wt_fail(WT_ERR_NOT_FOUND, "want an address below " ROOT);
    const char *name = m->path + strlen(ROOT);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        if (!strcmp(name, commands[k].name)) return commands[k].run(osc, m);
    if (strpbrk(name, "*?[{")) return turn_all(osc, m);
    if (strlen(name) >= CONTROL_NAME_BYTES) return wt_fail(WT_ERR_NOT_FOUND, "no parameter has so long a name");
    return turn(osc, m, name);
}

/// Is it what a session sends, or forged to come from this one?
static bool is_answer(const control_osc *osc, const osc_message *m)
{
    const size_t length = strlen(m->path), end = strlen(ANSWER);
    return same_address(&m->from, &osc->own) || !strcmp(m->path, ROOT "error") ||
           (length > end && !strcmp(m->path + length - end, ANSWER));
}

static void handle(void *user, const osc_message *m)
{
    control_osc *osc = user;
    if (!is_answer(osc, m) && run_message(osc, m)) send_error(osc, m);
}

void control_osc_receive(control_osc *osc)
{
    if (osc) osc_receive(osc->fd, handle, osc);
}

void control_osc_changed(control_osc *osc, const char *name, float value)
{
    if (!osc || !osc->n_subscribers) return;
    forget(osc, NULL, wt_clock_now_ns(NULL));
    for (int k = 0; k < osc->n_subscribers; k++)
        if (!strcmp(name, "preset"))
            send_preset(osc, &osc->subscribers[k].address);
        else
            send_value(osc, &osc->subscribers[k].address, name, value);
}

// ---- the socket

wt_status control_osc_open(live_session *session, const char *bind_to, int port, control_osc **osc_out)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port < 0 ? 0 : port))};
    socklen_t size = sizeof address;
    *osc_out = NULL;
    if (port > 65535) return wt_fail(WT_ERR_BAD_ARG, "control: OSC port %d, want at most 65535", port);
    if (inet_pton(AF_INET, bind_to, &address.sin_addr) != 1)
        return wt_fail(WT_ERR_BAD_ARG, "control: \"%s\" is no IPv4 address", bind_to);
    control_osc *osc = calloc(1, sizeof *osc);
    if (!osc) return wt_fail(WT_ERR_NO_MEMORY, "control: OSC");
    osc->session = session;
    osc->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (osc->fd < 0 || bind(osc->fd, (struct sockaddr *)&address, size) ||
        getsockname(osc->fd, (struct sockaddr *)&address, &size)) {
        wt_status status = wt_fail(errno == EADDRINUSE ? WT_ERR_STATE : WT_ERR_FILE, "control: OSC at UDP port %d: %s",
                                   port, strerror(errno));
        control_osc_close(osc);
        return status;
    }
    osc->own = address;
    *osc_out = osc;
    return WT_OK;
}

void control_osc_close(control_osc *osc)
{
    if (osc && osc->fd >= 0) close(osc->fd);
    free(osc);
}

int control_osc_fd(const control_osc *osc) { return osc ? osc->fd : -1; }

int control_osc_udp_port(const control_osc *osc) { return osc ? ntohs(osc->own.sin_port) : 0; }

#else

wt_status control_osc_open(live_session *session, const char *bind_to, int port, control_osc **osc)
{
    (void)session, (void)bind_to, (void)port;
    *osc = NULL;
    return wt_fail(WT_ERR_NO_LIBRARY, "control: OSC is left out: liblo was not there when Warptone was built");
}

// nothing opens, so the others are called with NULL
void control_osc_close(control_osc *osc) { (void)osc; }

int control_osc_fd(const control_osc *osc)
{
    (void)osc;
    return -1;
}

int control_osc_udp_port(const control_osc *osc)
{
    (void)osc;
    return 0;
}

void control_osc_receive(control_osc *osc) { (void)osc; }

void control_osc_changed(control_osc *osc, const char *name, float value) { (void)osc, (void)name, (void)value; }

#endif
