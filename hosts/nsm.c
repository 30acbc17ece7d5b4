#include "nsm.h"

#ifdef WT_HAVE_LIBLO

#    include "atomic_file.h"
#    include "interrupt.h"
#    include "osc.h"

#    include <errno.h>
#    include <jansson.h>
#    include <limits.h>
#    include <netdb.h>
#    include <poll.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/stat.h>
#    include <unistd.h>
#    include <warptone/clock.h>

enum { MAX_STATE_BYTES = 1 << 20, API_MAJOR = 1, API_MINOR = 1, ERR_GENERAL = -1, ERR_NOT_NOW = -8 };

struct nsm {
    int fd;
    struct sockaddr_in server;
    char *folder, *client_id;
    json_t *state;         ///< as it was saved; NULL = never
    char why[512];         ///< of a refused announce
    bool dirty;            ///< as the manager knows it
    live_session *session; ///< NULL = not attached
};

// ---- messages

static void send_to_manager(nsm *n, const char *path, lo_message m) { osc_send(n->fd, &n->server, path, m); }

/// `error`: one of NSM's, 0 = none.
static void reply(nsm *n, const char *to, int error, const char *sentence)
{
    lo_message m = lo_message_new();
    if (m && error)
        lo_message_add(m, "sis", to, error, sentence);
    else if (m)
        lo_message_add(m, "ss", to, sentence);
    send_to_manager(n, error ? "/error" : "/reply", m);
}

static void say_progress(nsm *n, float share)
{
    lo_message m = lo_message_new();
    if (m) lo_message_add_float(m, share);
    send_to_manager(n, "/nsm/client/progress", m);
}

static void say(nsm *n, int priority, const char *sentence)
{
    lo_message m = lo_message_new();
    if (m) lo_message_add(m, "is", priority, sentence);
    send_to_manager(n, "/nsm/client/message", m);
}

/// The manager's own port may answer from another address of its machine (127.0.0.1 for a name that is 127.0.1.1).
static bool from_manager(const nsm *n, const osc_message *m)
{
    bool loopback = ntohl(m->from.sin_addr.s_addr) >> 24 == 127;
    return m->from.sin_port == n->server.sin_port && (loopback || m->from.sin_addr.s_addr == n->server.sin_addr.s_addr);
}

// ---- the state

static char *state_path(const nsm *n)
{
    char *path = NULL;
    return asprintf(&path, "%s/session.json", n->folder) < 0 ? NULL : path;
}

static wt_status check_state(const json_t *state, const char *path)
{
    if (json_is_string(json_object_get(state, "preset")) && json_is_object(json_object_get(state, "params")))
        return WT_OK;
    return wt_fail(WT_ERR_FORMAT, "%s: want a text \"preset\" and an object \"params\"", path);
}

static wt_status read_state(nsm *n)
{
    struct stat info;
    json_error_t error;
    char *path = state_path(n);
    if (!path) return wt_fail(WT_ERR_NO_MEMORY, "nsm: path");
    wt_status status = WT_OK;
    if (stat(path, &info))
        status = errno == ENOENT || errno == ENOTDIR ? WT_OK : wt_fail(WT_ERR_FILE, "%s: %s", path, strerror(errno));
    else if (info.st_size > MAX_STATE_BYTES)
        status = wt_fail(WT_ERR_FORMAT, "%s: more than %d bytes", path, MAX_STATE_BYTES);
    else if (!(n->state = json_load_file(path, 0, &error)))
        status = wt_fail(WT_ERR_FORMAT, "%s:%d: %s", path, error.line, error.text);
    else
        status = check_state(n->state, path);
    free(path);
    return status;
}

static json_t *present_state(live_session *session)
{
    live_session_stats stats;
    char absolute[PATH_MAX];
    live_session_get_stats(session, &stats);
    const char *preset = realpath(stats.preset, absolute) ? absolute : stats.preset; // else it is a name
    json_t *params = json_object(), *state = json_pack("{s:s, s:b}", "preset", preset, "bypass", stats.live.bypass);
    int n = live_session_n_params(session);
    for (int k = 0; k < n; k++) {
        live_param p;
        char name[sizeof p.node + sizeof p.name];
        if (live_session_param(session, k, &p)) continue;
        snprintf(name, sizeof name, "%s/%s", p.node, p.name);
        json_object_set_new(params, name, json_real((double)p.value));
    }
    json_object_set_new(state, "params", params);
    return state;
}

static wt_status write_state(const char *path, const json_t *state)
{
    wt__atomic_file file = {0};
    wt_status status = wt__atomic_file_open(path, &file);
    if (status) return status;
    if (!state || json_dumpfd(state, file.fd, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9))) {
        wt__atomic_file_discard(&file);
        return wt_fail(WT_ERR_FILE, "%s: the state cannot be written", path);
    }
    return wt__atomic_file_commit(&file, true);
}

static wt_status save(nsm *n)
{
    char *path = state_path(n);
    if (!path) return wt_fail(WT_ERR_NO_MEMORY, "nsm: path");
    wt_status status = WT_OK;
    if (mkdir(n->folder, 0777) && errno != EEXIST) status = wt_fail(WT_ERR_FILE, "%s: %s", n->folder, strerror(errno));
    json_t *state = status ? NULL : present_state(n->session);
    if (!status) status = write_state(path, state);
    json_decref(state);
    free(path);
    return status;
}

wt_status nsm_save(nsm *n) { return n->session ? save(n) : WT_OK; }

// ---- joining

static void on_open(nsm *n, const osc_message *m)
{
    const char *folder = osc_text(m, 0), *client_id = osc_text(m, 2);
    if (!folder || !client_id || n->folder) return;
    n->folder = strdup(folder);
    n->client_id = strdup(client_id);
}

static void on_joining(void *user, const osc_message *m)
{
    nsm *n = user;
    const char *to = osc_text(m, 0), *sentence = osc_text(m, 2);
    if (!from_manager(n, m)) return;
    if (!strcmp(m->path, "/nsm/client/open")) on_open(n, m);
    if (!strcmp(m->path, "/error") && to && !strcmp(to, "/nsm/server/announce"))
        snprintf(n->why, sizeof n->why, "%s", sentence ? sentence : "no reason given");
}

static wt_status find_server(nsm *n, const char *url)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    char *host = lo_url_get_hostname(url), *port = lo_url_get_port(url);
    bool udp = lo_url_get_protocol_id(url) == LO_UDP;
    int error = host && port && udp ? getaddrinfo(host, port, &hints, &found) : EAI_NONAME;
    if (!error) memcpy(&n->server, found->ai_addr, sizeof n->server);
    if (found) freeaddrinfo(found);
    free(host);
    free(port);
    return error ? wt_fail(WT_ERR_BAD_ARG, "nsm: the manager's address is \"%s\", want osc.udp://HOST:PORT/", url)
                 : WT_OK;
}

static void announce(nsm *n, const char *program)
{
    const char *slash = strrchr(program, '/');
    lo_message m = lo_message_new();
    if (m)
        lo_message_add(m, "sssiii", "Warptone", ":dirty:progress:message:", slash ? slash + 1 : program, API_MAJOR,
                       API_MINOR, (int)getpid());
    send_to_manager(n, "/nsm/server/announce", m);
}

static wt_status wait_for_open(nsm *n, const char *url, double timeout_s)
{
    int64_t until_ns = wt_clock_now_ns(NULL) + (int64_t)(timeout_s * 1e9);
    while (!n->client_id && !*n->why) {
        struct pollfd fd = {.fd = n->fd, .events = POLLIN};
        if (wt_interrupted()) return wt_fail(WT_ERR_CANCELLED, "nsm: interrupted");
        if (wt_clock_now_ns(NULL) > until_ns)
            return wt_fail(WT_ERR_TIMEOUT, "nsm: no session manager answers at %s", url);
        if (poll(&fd, 1, 50) > 0) osc_receive(n->fd, on_joining, n);
    }
    return *n->why ? wt_fail(WT_ERR_REJECTED, "nsm: the manager refuses: %s", n->why) : WT_OK;
}

wt_status nsm_join(const char *url, const char *program, double timeout_s, nsm **nsm_out)
{
    *nsm_out = NULL;
    nsm *n = calloc(1, sizeof *n);
    if (!n) return wt_fail(WT_ERR_NO_MEMORY, "nsm: handle");
    n->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    wt_status status = n->fd < 0 ? wt_fail(WT_ERR_FILE, "nsm: socket: %s", strerror(errno)) : WT_OK;
    if (!status) status = find_server(n, url);
    if (!status) announce(n, program);
    if (!status) status = wait_for_open(n, url, timeout_s > 0 ? timeout_s : 10);
    if (!status) status = read_state(n);
    if (status)
        nsm_leave(n);
    else
        *nsm_out = n;
    return status;
}

void nsm_leave(nsm *n)
{
    if (!n) return;
    if (n->client_id && !n->session) reply(n, "/nsm/client/open", ERR_GENERAL, wt_last_error());
    if (n->fd >= 0) close(n->fd);
    json_decref(n->state);
    free(n->folder);
    free(n->client_id);
    free(n);
}

const char *nsm_client_id(const nsm *n) { return n->client_id; }

const char *nsm_preset(const nsm *n) { return json_string_value(json_object_get(n->state, "preset")); }

// ---- while the session runs

int nsm_fd(const nsm *n) { return n->fd; }

static wt_status restore_param(nsm *n, const char *name, const json_t *value)
{
    if (json_is_number(value)) return live_session_set(n->session, name, (float)json_number_value(value));
    return wt_fail(WT_ERR_FORMAT, "nsm: the saved value of %s is no number", name);
}

/// What the preset of today lacks is told to the user and left out.
static void restore(nsm *n)
{
    json_t *params = json_object_get(n->state, "params");
    live_session_set_bypass(n->session, json_is_true(json_object_get(n->state, "bypass")));
    for (void *at = json_object_iter(params); at; at = json_object_iter_next(params, at))
        if (restore_param(n, json_object_iter_key(at), json_object_iter_value(at))) say(n, 2, wt_last_error());
}

wt_status nsm_attach(nsm *n, live_session *session)
{
    n->session = session;
    say_progress(n, 0.5f);
    if (n->state) restore(n);
    say_progress(n, 1);
    reply(n, "/nsm/client/open", 0, "the preset plays");
    return WT_OK;
}

static void on_message(void *user, const osc_message *m)
{
    nsm *n = user;
    if (!from_manager(n, m)) return;
    if (!strcmp(m->path, "/nsm/client/open"))
        reply(n, m->path, ERR_NOT_NOW, "a project is open already; start another warptone");
    if (strcmp(m->path, "/nsm/client/save")) return;
    wt_status status = save(n);
    if (!status && n->dirty) send_to_manager(n, "/nsm/client/is_clean", NULL);
    if (!status) n->dirty = false;
    reply(n, m->path, status ? ERR_GENERAL : 0, status ? wt_last_error() : "saved");
}

void nsm_receive(nsm *n) { osc_receive(n->fd, on_message, n); }

void nsm_dirty(nsm *n)
{
    if (!n->dirty) send_to_manager(n, "/nsm/client/is_dirty", NULL);
    n->dirty = true;
}

#else

wt_status nsm_join(const char *url, const char *program, double timeout_s, nsm **nsm)
{
    (void)url, (void)program, (void)timeout_s;
    *nsm = NULL;
    return wt_fail(WT_ERR_NO_LIBRARY, "nsm: left out: liblo was not there when Warptone was built");
}

// nothing joins, so the others are called with NULL or not at all
void nsm_leave(nsm *n) { (void)n; }

wt_status nsm_save(nsm *n)
{
    (void)n;
    return WT_OK;
}

const char *nsm_client_id(const nsm *n)
{
    (void)n;
    return NULL;
}

const char *nsm_preset(const nsm *n) { return nsm_client_id(n); }

int nsm_fd(const nsm *n)
{
    (void)n;
    return -1;
}

wt_status nsm_attach(nsm *n, live_session *session)
{
    (void)session;
    return nsm_join(NULL, NULL, 0, &n);
}

void nsm_receive(nsm *n) { (void)n; }

void nsm_dirty(nsm *n) { (void)n; }

#endif
