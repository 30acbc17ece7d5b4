// The thread of the remote control: one poll over the listening sockets, their clients, OSC and the session manager.
//
// Whoever changes a parameter only leaves it in `changes` and wakes the thread. A client has one buffer in and one out;
// who does not read until its buffer is full is disconnected, so no reader holds up another.
#include "control_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

enum { OUT_BYTES = 256 << 10, MAX_CLIENTS = 32, MAX_CHANGES = 256, MAX_WAIT_MS = 1000, RETRY_NS = 10000000 };

typedef struct client {
    int fd;
    bool tcp;
    bool skipping; ///< the rest of a line that was too long
    bool ended;    ///< nothing more comes; what it asked for is still answered
    size_t n_in;
    control_caller caller;
    char in[CONTROL_LINE_BYTES], out[OUT_BYTES];
} client;

typedef struct change {
    char name[CONTROL_NAME_BYTES];
    float value;
} change;

struct control {
    live_session *session;
    control_osc *osc;
    nsm *nsm;
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    int local, tcp, tcp_port, wake; ///< descriptors, -1 = none
    bool made_path, listening, running;
    pthread_t thread;
    atomic_bool stop;
    client *clients[MAX_CLIENTS];
    int n_clients;
    pthread_mutex_t lock; ///< of the next three
    change changes[MAX_CHANGES];
    int n_changes, n_lost;
};

// ---- changes, from any thread

/// Leave a change for the thread: the last value of a name that is there already counts.
static void on_change(void *user, const char *name, float value)
{
    control *c = user;
    pthread_mutex_lock(&c->lock);
    int k = 0;
    while (k < c->n_changes && strcmp(c->changes[k].name, name)) k++;
    if (k == MAX_CHANGES)
        c->n_lost++;
    else {
        snprintf(c->changes[k].name, sizeof c->changes[k].name, "%s", name);
        c->changes[k].value = value;
        if (k == c->n_changes) c->n_changes++;
    }
    pthread_mutex_unlock(&c->lock);
    ssize_t written = write(c->wake, &(uint64_t){1}, sizeof(uint64_t)); // full = it is awake anyway
    (void)written;
}

static void tell_client(control_caller *caller, const change *changes, int n, int n_lost)
{
    if (!caller->wishes.params) return;
    for (int k = 0; k < n; k++) control_put_change(caller, changes[k].name, changes[k].value);
    if (!n_lost) return;
    control_put(&caller->out, "overrun %d", n_lost);
    control_end(caller);
}

static void tell_changes(control *c)
{
    change changes[MAX_CHANGES];
    pthread_mutex_lock(&c->lock);
    int n = c->n_changes, n_lost = c->n_lost;
    memcpy(changes, c->changes, sizeof *changes * (size_t)n);
    c->n_changes = c->n_lost = 0;
    pthread_mutex_unlock(&c->lock);
    for (int k = 0; k < c->n_clients; k++) tell_client(&c->clients[k]->caller, changes, n, n_lost);
    for (int k = 0; k < n; k++) control_osc_changed(c->osc, changes[k].name, changes[k].value);
    if (n && c->nsm) nsm_dirty(c->nsm);
}

// ---- clients

static void drop(control *c, int k)
{
    close(c->clients[k]->fd);
    free(c->clients[k]);
    c->clients[k] = c->clients[--c->n_clients];
}

/// A page in a browser can make it post anything to a port of this machine, but only as HTTP.
static bool is_http(const char *line)
{
    static const char *const methods[] = {"GET ",     "POST ",   "PUT ",   "HEAD ",
                                          "OPTIONS ", "DELETE ", "PATCH ", "CONNECT "};
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++)
        if (!strncmp(line, methods[k], strlen(methods[k]))) return true;
    return false;
}

static void take_line(client *k, char *line, size_t length, char end)
{
    k->caller.end = end;
    line[length] = 0; // in the place of its end
    if (k->tcp && is_http(line)) {
        control_refuse(&k->caller, "this is no HTTP server");
        k->caller.leave = true;
    } else if (!k->skipping)
        control_line(&k->caller, line, length);
    k->skipping = false;
}

static char *line_end(const client *k, size_t begin)
{
    for (size_t at = begin; at < k->n_in; at++)
        if (k->in[at] == '\n' || k->in[at] == 0) return (char *)&k->in[at];
    return NULL;
}

/// Has it room for the answers to another line? Who does not read is not answered, and only holds up himself.
static bool has_room(const client *k) { return k->caller.out.used < OUT_BYTES / 2 && !k->caller.leave; }

/// Carry out the whole lines of the buffer and keep the rest.
static void run_lines(client *k)
{
    size_t begin = 0;
    for (char *end; has_room(k) && (end = line_end(k, begin)); begin = (size_t)(end - k->in) + 1)
        take_line(k, k->in + begin, (size_t)(end - k->in) - begin, *end);
    k->n_in -= begin;
    memmove(k->in, k->in + begin, k->n_in);
    if (k->n_in < sizeof k->in || line_end(k, 0)) return;
    if (!k->skipping) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "a line has more than %d bytes", CONTROL_LINE_BYTES - 1);
        control_refuse(&k->caller, sentence);
    }
    k->skipping = true;
    k->n_in = 0;
}

/// False: the connection is broken.
static bool read_client(client *k)
{
    if (k->n_in == sizeof k->in) return true; // its lines wait for room
    ssize_t n = recv(k->fd, k->in + k->n_in, sizeof k->in - k->n_in, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    k->n_in += (size_t)n;
    k->ended = n == 0;
    return true;
}

/// Has it said all, and waits for nothing?
static bool is_over(const client *k)
{
    const control_wishes *w = &k->caller.wishes;
    bool waits = line_end(k, 0) || w->params || w->levels_ns || w->stats_ns;
    return k->caller.leave || (k->ended && !waits);
}

/// Send what is there; what the socket does not take stays. False: the client is to be dropped.
static bool flush_client(client *k)
{
    control_text *out = &k->caller.out;
    while (out->used) {
        ssize_t n = send(k->fd, out->bytes, out->used, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
        if (n <= 0) break;
        out->used -= (size_t)n;
        memmove(out->bytes, out->bytes + n, out->used);
    }
    return !out->full && (out->used || !is_over(k));
}

static void accept_client(control *c, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        // out of descriptors: the listener stays ready, so do not ask at once again
        if (errno != EAGAIN && errno != EINTR) nanosleep(&(struct timespec){0, RETRY_NS}, NULL);
        return;
    }
    client *k = c->n_clients < MAX_CLIENTS ? calloc(1, sizeof *k) : NULL;
    if (!k) {
        static const char sentence[] = "resp -1 no room for another client\n";
        ssize_t sent = send(fd, sentence, sizeof sentence - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
        close(fd);
        return;
    }
    k->fd = fd;
    k->tcp = listener == c->tcp;
    k->caller = (control_caller){.session = c->session, .out = {.bytes = k->out, .size = sizeof k->out}, .end = '\n'};
    c->clients[c->n_clients++] = k;
}

/// The regular messages that are due; returns when the next one is.
static int64_t tell_figures(control_caller *caller, int64_t now_ns)
{
    control_wishes *w = &caller->wishes;
    int64_t next_ns = INT64_MAX;
    if (w->levels_ns && w->levels_due_ns <= now_ns) {
        w->levels_due_ns = now_ns + w->levels_ns;
        control_put(&caller->out, "levels");
        control_put_levels(&caller->out, caller->session);
        control_end(caller);
    }
    if (w->stats_ns && w->stats_due_ns <= now_ns) {
        w->stats_due_ns = now_ns + w->stats_ns;
        control_put(&caller->out, "stats");
        control_put_stats(&caller->out, caller->session);
        control_end(caller);
    }
    if (w->levels_ns) next_ns = w->levels_due_ns;
    if (w->stats_ns && w->stats_due_ns < next_ns) next_ns = w->stats_due_ns;
    return next_ns;
}

// ---- the thread

enum { FD_WAKE, FD_LOCAL, FD_TCP, FD_OSC, FD_NSM, N_FDS };

static int64_t tell_all(control *c)
{
    int64_t now_ns = wt_clock_now_ns(NULL), next_ns = now_ns + MAX_WAIT_MS * INT64_C(1000000);
    for (int k = c->n_clients; k-- > 0;) {
        client *client = c->clients[k];
        run_lines(client);
        int64_t due_ns = tell_figures(&client->caller, now_ns);
        if (due_ns < next_ns) next_ns = due_ns;
        if (!flush_client(client))
            drop(c, k);
        else if (has_room(client) && line_end(client, 0))
            next_ns = now_ns;
    }
    return next_ns - now_ns;
}

static void *serve(void *user)
{
    control *c = user;
    struct pollfd fds[N_FDS + MAX_CLIENTS];
    while (!atomic_load(&c->stop)) {
        int64_t wait_ns = tell_all(c);
        int n_clients = c->n_clients; // accepting adds behind them
        for (int k = 0; k < N_FDS; k++) fds[k].events = POLLIN;
        fds[FD_WAKE].fd = c->wake;
        fds[FD_LOCAL].fd = c->local;
        fds[FD_TCP].fd = c->tcp;
        fds[FD_OSC].fd = control_osc_fd(c->osc);
        fds[FD_NSM].fd = c->nsm ? nsm_fd(c->nsm) : -1;
        for (int k = 0; k < n_clients; k++) {
            const client *client = c->clients[k];
            short in = has_room(client) && !client->ended ? POLLIN : 0, out = client->caller.out.used ? POLLOUT : 0;
            fds[N_FDS + k] = (struct pollfd){.fd = client->fd, .events = (short)(in | out)};
        }
        if (poll(fds, (nfds_t)(N_FDS + n_clients), (int)(wait_ns / 1000000 + 1)) < 0) continue;
        uint64_t wakes;
        if (fds[FD_WAKE].revents && read(c->wake, &wakes, sizeof wakes) < 0) continue;
        tell_changes(c);                    // before a new subscriber is heard, who asks for what comes after
        for (int k = n_clients; k-- > 0;) { // from behind: dropping moves the last one, which was looked at, forward
            short events = fds[N_FDS + k].revents;
            bool whole = events & POLLIN ? read_client(c->clients[k]) : !(events & (POLLHUP | POLLERR));
            if (!whole) drop(c, k);
        }
        if (fds[FD_OSC].revents) control_osc_receive(c->osc);
        if (fds[FD_NSM].revents) nsm_receive(c->nsm);
        if (fds[FD_LOCAL].revents) accept_client(c, c->local);
        if (fds[FD_TCP].revents) accept_client(c, c->tcp);
    }
    return NULL;
}

// ---- opening

void control_default_path(const char *name, char *path, size_t size)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    char file[128];
    snprintf(file, sizeof file, "%s", name ? name : "warptone");
    for (char *slash = file; (slash = strchr(slash, '/'));) *slash = '_';
    if (folder && *folder)
        snprintf(path, size, "%s/%s.sock", folder, file);
    else
        snprintf(path, size, "/tmp/%s-%d.sock", file, (int)getuid());
}

static wt_status fail_socket(const char *what)
{
    return wt_fail(WT_ERR_FILE, "control: %s: %s", what, strerror(errno));
}

/// A socket that nobody listens at any more is removed; one that answers is somebody else's.
static wt_status clear_path(const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(address->sun_path, &info)) return WT_OK;
    if (!S_ISSOCK(info.st_mode))
        return wt_fail(WT_ERR_FILE, "control: %s is there and is no socket", address->sun_path);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return fail_socket("socket");
    bool answers = !connect(probe, (const struct sockaddr *)address, sizeof *address) || errno != ECONNREFUSED;
    close(probe);
    if (answers) return wt_fail(WT_ERR_STATE, "control: another process listens at %s", address->sun_path);
    return unlink(address->sun_path) ? fail_socket(address->sun_path) : WT_OK;
}

/// The mode is set before listen, and nobody can connect before it.
static wt_status open_local(control *c, const char *name, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char standard[256];
    if (!path) control_default_path(name, standard, sizeof standard), path = standard;
    if (strlen(path) >= sizeof address.sun_path)
        return wt_fail(WT_ERR_BAD_ARG, "control: the socket's path has %d bytes, want at most %d", (int)strlen(path),
                       (int)sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    wt_status status = clear_path(&address);
    if (status) return status;
    c->local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->local < 0) return fail_socket("socket");
    if (bind(c->local, (struct sockaddr *)&address, sizeof address)) return fail_socket(path);
    strcpy(c->path, path);
    c->made_path = true;
    return chmod(path, 0600) || listen(c->local, MAX_CLIENTS) ? fail_socket(path) : WT_OK;
}

static wt_status open_tcp(control *c, const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port < 0 ? 0 : port))};
    socklen_t size = sizeof address;
    if (port > 65535) return wt_fail(WT_ERR_BAD_ARG, "control: TCP port %d, want at most 65535", port);
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return wt_fail(WT_ERR_BAD_ARG, "control: \"%s\" is no IPv4 address", host);
    c->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->tcp < 0 || setsockopt(c->tcp, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(c->tcp, (struct sockaddr *)&address, size) || listen(c->tcp, MAX_CLIENTS) ||
        getsockname(c->tcp, (struct sockaddr *)&address, &size))
        return errno == EADDRINUSE ? wt_fail(WT_ERR_STATE, "control: another process listens at TCP port %d", port)
                                   : fail_socket("TCP");
    c->tcp_port = ntohs(address.sin_port);
    return WT_OK;
}

static wt_status open_all(control *c, const control_config *config)
{
    const char *host = config->bind ? config->bind : "127.0.0.1";
    wt_status status = WT_OK;
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake < 0) return fail_socket("eventfd");
    if (!config->no_socket) status = open_local(c, config->name, config->socket_path);
    if (!status && config->tcp_port) status = open_tcp(c, host, config->tcp_port);
    if (!status && config->osc_port) status = control_osc_open(c->session, host, config->osc_port, &c->osc);
    if (!status && c->nsm) status = nsm_attach(c->nsm, c->session);
    if (!status) status = live_session_listen(c->session, on_change, c);
    if (status) return status;
    c->listening = true;
    c->running = !pthread_create(&c->thread, NULL, serve, c);
    return c->running ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "control: the system gives no thread");
}

wt_status control_open(const control_config *config, control **control_out)
{
    *control_out = NULL;
    control *c = calloc(1, sizeof *c);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "control: handle");
    c->session = config->session;
    c->nsm = config->nsm;
    c->local = c->tcp = c->wake = -1;
    pthread_mutex_init(&c->lock, NULL);
    wt_status status = open_all(c, config);
    if (status)
        control_close(c);
    else
        *control_out = c;
    return status;
}

static void close_fd(int fd)
{
    if (fd >= 0) close(fd);
}

void control_close(control *c)
{
    if (!c) return;
    if (c->listening) (void)live_session_listen(c->session, NULL, c);
    if (c->running) {
        atomic_store(&c->stop, true);
        ssize_t written = write(c->wake, &(uint64_t){1}, sizeof(uint64_t));
        (void)written;
        pthread_join(c->thread, NULL);
    }
    while (c->n_clients) drop(c, 0);
    control_osc_close(c->osc);
    close_fd(c->local);
    close_fd(c->tcp);
    close_fd(c->wake);
    if (c->made_path) unlink(c->path);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const char *control_socket_path(const control *c) { return c->made_path ? c->path : NULL; }

int control_tcp_port(const control *c) { return c->tcp_port; }

int control_osc_port(const control *c) { return control_osc_udp_port(c->osc); }
