// A live session on a JACK server of its own: jackd's dummy driver at 64 frames and 48 kHz, stereo.
//
//   bench_jack [seconds] [preset] [backend] [load] [idle seconds]
//
// 20 s of presets/voice-clean.yaml on the CPU, beside no load; on a GPU beside reads, gemm or prefill
// (support/gpu_load.h), "none" for none.
//
//   jack  cpu voice-clean  ch=2  block=64  seconds=20  p50 .. p99 .. p99.9 .. max .. us | 0.3 % of 1333 us at p99.9 |
//   .. blocks, .. missed, .. xruns, another client ..; before it 10 s of a client that does nothing: .. xruns a minute,
//   the session ..
//
// Xruns are what the server told the session, and what it told another client in the same time: they must agree. The
// dummy driver counts one whenever its own timer wakes it late, whoever its clients are. So a client that does nothing
// is measured first, on the same server: what it has, too, tells of the machine's other work and of missing real-time
// rights (`warptone doctor`), not of the session. What the callback took is told in any case: below a period it cannot
// have been the cause.
#include "../hosts/jack_api.h"
#include "../hosts/live_rights.h"
#include "../hosts/live_session.h"
#include "support/gpu_load.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

#ifdef WT_HAVE_JACK

enum { BLOCK = 64, RATE = 48000, IDLE_SECONDS = 10 };

static char server[64];

static pid_t start_server(void)
{
    snprintf(server, sizeof server, "wt-bench-%ld", (long)getpid());
    pid_t pid = fork();
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1), dup2(null, 2);
    setenv("JACK_NO_AUDIO_RESERVATION", "1", 1);
    // real-time when the machine grants it: jackd itself goes on without
    execlp("jackd", "jackd", "-n", server, "-d", "dummy", "-r", "48000", "-p", "64", "-C", "2", "-P", "2",
           (char *)NULL);
    _exit(127);
}

static int do_nothing(jack_nframes_t n_frames, void *user)
{
    (void)n_frames, (void)user;
    return 0;
}

static int count_xrun(void *n)
{
    atomic_fetch_add((atomic_uint *)n, 1);
    return 0;
}

/// A client that does nothing but count what the server tells its clients.
typedef struct watcher {
    const jack_api *jack;
    jack_client_t *client; ///< NULL = cannot be had
    atomic_uint n_xruns;
} watcher;

static void open_watcher(watcher *w)
{
    if (jack_api_open(&w->jack)) return;
    for (int k = 0; k < 100 && !w->client; k++) { // the server was just started
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        w->client = w->jack->client_open("idle", JackNoStartServer | JackServerName, NULL, server);
    }
    if (!w->client) return;
    w->jack->set_process_callback(w->client, do_nothing, NULL);
    w->jack->set_xrun_callback(w->client, count_xrun, &w->n_xruns);
    w->jack->activate(w->client);
    nanosleep(&(struct timespec){1, 0}, NULL); // as below
}

static void close_watcher(watcher *w)
{
    if (w->client) w->jack->client_close(w->client);
}

/// Xruns a minute with a client that does nothing, below 0 when it cannot be had.
static double idle_xruns(watcher *w, double seconds)
{
    if (!w->client) return -1;
    const unsigned before = atomic_load(&w->n_xruns);
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    return (atomic_load(&w->n_xruns) - before) * 60 / seconds;
}

// ---- a load on the GPU's other partition

typedef struct neighbour {
    const char *name; ///< NULL = none
    gpu_load_kind kind;
    wt_partition *partition;
    gpu_loads all;
    gpu_load load;
    wt_stream *stream;
    double alone[N_GPU_LOADS], beside; ///< rates
    bool started;
} neighbour;

/// In a quiesce: loads kernels.
static wt_status start_neighbour(void *user)
{
    neighbour *n = user;
    wt_partition_info info;
    wt_partition_get_info(n->partition, &info);
    wt_status status = gpu_loads_open(wt_partition_device(n->partition), &n->all);
    if (!status && (int)n->kind >= gpu_loads_count(&n->all))
        status = wt_fail(WT_ERR_UNSUPPORTED, "%s needs cuBLASLt", n->name);
    if (!status) status = wt_partition_stream_create(n->partition, NULL, &n->stream);
    if (!status) status = gpu_load_alone(&n->all, &n->kind, &n->stream, 1, info.n_sms, 0.5, n->alone);
    if (!status) status = gpu_load_start(&n->load, &n->all, n->kind, n->stream, info.n_sms);
    n->started = !status;
    return status;
}

static wt_status open_neighbour(live_session *session, const char *name, neighbour *n)
{
    *n = (neighbour){.name = name};
    if (!name) return WT_OK;
    wt_layout *layout = live_session_layout(session);
    while (n->kind < N_GPU_LOADS && strcmp(name, gpu_load_names[n->kind])) n->kind++;
    if (n->kind == N_GPU_LOADS) return wt_fail(WT_ERR_BAD_ARG, "load \"%s\", want reads, gemm or prefill", name);
    if (!layout) return wt_fail(WT_ERR_UNSUPPORTED, "%s: a load needs a GPU with partitions", name);
    n->partition = wt_layout_find(layout, "llm");
    return wt_quiesce(wt_partition_device(n->partition), start_neighbour, n, 0);
}

static void close_neighbour(neighbour *n)
{
    if (n->started && gpu_load_stop(&n->load)) fprintf(stderr, "bench_jack: %s\n", wt_last_error());
    wt_stream_destroy(n->stream);
    if (n->all.device) gpu_loads_close(&n->all);
}

static void print_row(const live_session_stats *s, const char *backend, double seconds, const live_session_stats *early,
                      unsigned n_watched, double idle, double idle_seconds)
{
    const double n_xruns = (double)(s->host.n_xruns - early->host.n_xruns);
    const wt_histogram_summary *p = s->live.round_trip_ns.count ? &s->live.round_trip_ns : &s->live.process_ns;
    const double period_us = 1e6 * BLOCK / RATE;
    printf(
        "jack  %s %-14s ch=2  block=%d  seconds=%.0f  p50 %.2f  p99 %.2f  p99.9 %.2f  p99.99 %.2f  max %.2f us | "
        "%.2f %% of %.0f us at p99.9 | %llu blocks, %llu missed, %.0f xruns, another client %u; before it %.0f s of a "
        "client that does nothing: %.1f xruns a minute, "
        "the session %.1f%s\n",
        backend, s->preset, BLOCK, seconds, (double)p->p50 * 1e-3, (double)p->p99 * 1e-3, (double)p->p99_9 * 1e-3,
        (double)p->p99_99 * 1e-3, (double)p->max * 1e-3, (double)p->p99_9 * 1e-1 / period_us, period_us,
        (unsigned long long)(s->live.n_blocks - early->live.n_blocks),
        (unsigned long long)(s->live.n_misses - early->live.n_misses), n_xruns, n_watched, idle_seconds, idle,
        n_xruns * 60 / seconds, s->host.realtime ? "" : " (no real-time rights)");
}

/// One row: the figures of `seconds` of a session that runs, beside the load.
static wt_status measure(live_session *session, watcher *w, const char *backend, const char *load, double seconds,
                         double idle, double idle_seconds)
{
    live_session_stats early, stats;
    neighbour n;
    wt_status status = open_neighbour(session, load, &n);
    if (!status) {
        nanosleep(&(struct timespec){1, 0}, NULL); // connecting changes the graph, which may cost cycles
        live_session_get_stats(session, &early);
        const unsigned n_watched = atomic_load(&w->n_xruns);
        const long long n_before = atomic_load(&n.load.n_done);
        const int64_t begin_ns = wt_clock_now_ns(NULL);
        nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
        if (load) n.beside = gpu_load_rate(&n.load, n_before, begin_ns);
        live_session_get_stats(session, &stats);
        print_row(&stats, backend, seconds, &early, atomic_load(&w->n_xruns) - n_watched, idle, idle_seconds);
        if (load) printf("jack  beside %s, which kept %.1f %% of its rate\n", load, 100 * n.beside / n.alone[n.kind]);
    }
    close_neighbour(&n);
    return status;
}

static wt_status run(const char *preset, const char *backend, const char *load, double seconds, double idle_seconds)
{
    const live_session_config config = {
        .preset = preset,
        .host_type = &jack_host_type,
        .backend = backend,
        .wait = true, // for the server that was just started
        .host = {.device = server, .channels = 2, .auto_connect = true},
    };
    live_session *session;
    watcher w = {.jack = NULL};
    open_watcher(&w);
    const double idle = idle_xruns(&w, idle_seconds);
    wt_status status = live_session_open(&config, &session);
    if (status) {
        close_watcher(&w);
        return status;
    }
    status = live_session_start(session);
    char missing[512];
    if (!live_rights(missing, sizeof missing))
        fprintf(stderr, "bench_jack: %s\n", missing); // locks memory, as live does
    if (!status) status = measure(session, &w, backend, load, seconds, idle, idle_seconds);
    live_session_close(session);
    close_watcher(&w);
    return status;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    const jack_api *jack;
    if (jack_api_open(&jack) || system("command -v jackd >/dev/null 2>&1")) {
        printf("bench_jack: skipped, libjack or jackd is not installed\n");
        return 0;
    }
    pid_t pid = start_server();
    wt_status status =
        run(argc > 2 ? argv[2] : "presets/voice-clean.yaml", argc > 3 ? argv[3] : "cpu",
            argc > 4 && strcmp(argv[4], "none") ? argv[4] : NULL, seconds, argc > 5 ? atof(argv[5]) : IDLE_SECONDS);
    if (status) fprintf(stderr, "bench_jack: %s\n", wt_last_error());
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    return status != WT_OK;
}

#else

int main(void)
{
    printf("bench_jack: skipped, this build has no JACK\n");
    return 0;
}

#endif
