// A live session on a JACK server of its own: jackd's dummy driver at 64 frames and 48 kHz, stereo.
//
//   bench_jack [seconds] [preset | idle | bare] [backend] [load] [idle seconds] [awake]
//
// 20 s of presets/voice-clean.yaml on the CPU, beside no load; on a GPU beside reads, gemm, prefill
// (support/gpu_load.h) or both of the first two, "none" for none. "idle" has no session, only a client that does
// nothing, "bare" no client. "awake": no processor sleeps meanwhile, as in `warptone live --awake`.
//
//   jack  cpu voice-clean  ch=2  block=64  seconds=20  p50 .. p99 .. p99.9 .. max .. us | 0.3 % of 1333 us at p99.9 |
//   .. blocks, .. missed
//   jack  xruns in 20 s: the session's .., another client's .., jackd's own lines .. (its timer late .., the session
//   not done .., the other client not done ..); 0.02 s stolen; before it 10 s of a client that does nothing: .. a
//   minute
//
// Xruns are what the server told the session, what it told another client in the same time, and what it wrote into its
// own log: they must agree. The dummy driver counts one when its own timer wakes it a period late, whoever its clients
// are, and one for each client that had not been done when the next period began: one that was not woken in time, too.
// So a client that does nothing is measured first, on the same server: what it has, too, tells of the machine's other
// work and of missing real-time rights (`warptone doctor`), not of the session. What the callback took is told in any
// case: below a period it cannot have been the cause. Stolen is the time in which the processors that the bench may use
// had work and were given to somebody else by the hypervisor, as far as it says so.
#include "../hosts/jack_api.h"
#include "../hosts/live_rights.h"
#include "../hosts/live_session.h"
#include "support/gpu_load.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <warptone/clock.h>

#ifdef WT_HAVE_JACK

enum { BLOCK = 64, RATE = 48000, IDLE_SECONDS = 10 };

static char server[64];
static int server_log; ///< what jackd writes, in memory

static pid_t start_server(void)
{
    snprintf(server, sizeof server, "wt-bench-%ld", (long)getpid());
    server_log = memfd_create("jackd", MFD_CLOEXEC);
    pid_t pid = fork();
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(server_log, 1), dup2(server_log, 2);
    setenv("JACK_NO_AUDIO_RESERVATION", "1", 1);
    // real-time when the machine grants it: jackd itself goes on without
    execlp("jackd", "jackd", "-n", server, "-d", "dummy", "-r", "48000", "-p", "64", "-C", "2", "-P", "2",
           (char *)NULL);
    _exit(127);
}

/// How often the words stand in jackd's log.
static unsigned count_logged(const char *words)
{
    struct stat log;
    unsigned n = 0;
    if (fstat(server_log, &log) || !log.st_size) return 0;
    const size_t size = (size_t)log.st_size;
    char *text = mmap(NULL, size, PROT_READ, MAP_SHARED, server_log, 0);
    if (text == MAP_FAILED) return 0;
    for (const char *at = text; (at = memmem(at, size - (size_t)(at - text), words, strlen(words))); at++) n++;
    munmap(text, size);
    return n;
}

/// Seconds that were stolen from the processors that this process may use.
static double stolen_seconds(void)
{
    cpu_set_t mine;
    char line[512];
    double ticks = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file || sched_getaffinity(0, sizeof mine, &mine)) CPU_ZERO(&mine);
    while (file && fgets(line, sizeof line, file)) {
        int cpu;
        long long stolen;
        if (sscanf(line, "cpu%d %*d %*d %*d %*d %*d %*d %*d %lld", &cpu, &stolen) == 2 && CPU_ISSET(cpu, &mine))
            ticks += (double)stolen;
    }
    if (file) fclose(file);
    return ticks / (double)sysconf(_SC_CLK_TCK);
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

/// What is counted from the server's start, each by whom it says.
typedef struct xruns {
    unsigned session, watcher, timer, session_late, watcher_late; ///< the last three from the server's log
    double stolen;
} xruns;

static xruns count_xruns(const watcher *w, unsigned session)
{
    return (xruns){.session = session,
                   .watcher = atomic_load(&w->n_xruns),
                   .timer = count_logged("Driver::Process XRun"),
                   .session_late = count_logged("XRun: client = warptone") + count_logged("XRun: client warptone"),
                   .watcher_late = count_logged("XRun: client = idle") + count_logged("XRun: client idle"),
                   .stolen = stolen_seconds()};
}

static void print_xruns(const xruns *a, const xruns *b, double seconds)
{
    const unsigned timer = b->timer - a->timer, session = b->session_late - a->session_late,
                   watcher = b->watcher_late - a->watcher_late;
    printf("jack  xruns in %.0f s: the session's %u, another client's %u, jackd's own lines %u (its timer late %u, the "
           "session not done %u, the other client not done %u); %.2f s stolen",
           seconds, b->session - a->session, b->watcher - a->watcher, timer + session + watcher, timer, session,
           watcher, b->stolen - a->stolen);
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
    int n; ///< loads, 0 = none
    gpu_load_kind kinds[N_GPU_LOADS];
    wt_partition *partition;
    gpu_loads all;
    gpu_load loads[N_GPU_LOADS];
    wt_stream *streams[N_GPU_LOADS];
    double alone[N_GPU_LOADS]; ///< rates of kinds, with as many threads
    long long before[N_GPU_LOADS];
    int64_t begin_ns;
    int n_started;
} neighbour;

/// In a quiesce: loads kernels.
static wt_status start_neighbour(void *user)
{
    neighbour *n = user;
    wt_partition_info info;
    wt_partition_get_info(n->partition, &info);
    wt_status status = gpu_loads_open(wt_partition_device(n->partition), &n->all);
    for (int k = 0; k < n->n && !status; k++)
        if ((int)n->kinds[k] >= gpu_loads_count(&n->all))
            status = wt_fail(WT_ERR_UNSUPPORTED, "%s needs cuBLASLt", gpu_load_names[n->kinds[k]]);
    for (int k = 0; k < n->n && !status; k++) status = wt_partition_stream_create(n->partition, NULL, &n->streams[k]);
    if (!status) status = gpu_load_alone(&n->all, n->kinds, n->streams, n->n, info.n_sms, 0.5, n->alone);
    for (; n->n_started < n->n && !status; n->n_started += !status)
        status = gpu_load_start(&n->loads[n->n_started], &n->all, n->kinds[n->n_started], n->streams[n->n_started],
                                info.n_sms);
    return status;
}

static wt_status choose_loads(const char *name, neighbour *n)
{
    *n = (neighbour){.n = 0};
    if (!name) return WT_OK;
    for (int k = 0; k < N_GPU_LOADS; k++)
        if (!strcmp(name, gpu_load_names[k])) n->kinds[n->n++] = (gpu_load_kind)k;
    if (!strcmp(name, "both")) n->kinds[n->n++] = GPU_READS, n->kinds[n->n++] = GPU_GEMMS;
    return n->n ? WT_OK : wt_fail(WT_ERR_BAD_ARG, "load \"%s\", want reads, gemm, prefill or both", name);
}

static wt_status open_neighbour(live_session *session, const char *name, neighbour *n)
{
    wt_status status = choose_loads(name, n);
    if (status || !n->n) return status;
    wt_layout *layout = live_session_layout(session);
    if (!layout) return wt_fail(WT_ERR_UNSUPPORTED, "%s: a load needs a GPU with partitions", name);
    n->partition = wt_layout_find(layout, "llm");
    return wt_quiesce(wt_partition_device(n->partition), start_neighbour, n, 0);
}

static void begin_neighbour(neighbour *n)
{
    for (int k = 0; k < n->n; k++) n->before[k] = atomic_load(&n->loads[k].n_done);
    n->begin_ns = wt_clock_now_ns(NULL);
}

static void print_neighbour(neighbour *n)
{
    double rates[N_GPU_LOADS];
    if (!n->n) return;
    gpu_load_rates(n->loads, n->n, n->before, n->begin_ns, rates);
    printf("jack  beside it");
    for (int k = 0; k < n->n; k++)
        printf("%s %s, which kept %.1f %% of its rate", k ? "," : "", gpu_load_names[n->kinds[k]],
               100 * rates[n->kinds[k]] / n->alone[n->kinds[k]]);
    printf("\n");
}

static void close_neighbour(neighbour *n)
{
    for (int k = 0; k < n->n_started; k++)
        if (gpu_load_stop(&n->loads[k])) fprintf(stderr, "bench_jack: %s\n", wt_last_error());
    for (int k = 0; k < n->n; k++) wt_stream_destroy(n->streams[k]);
    if (n->all.device) gpu_loads_close(&n->all);
}

static void print_row(const live_session_stats *s, const char *backend, double seconds, const live_session_stats *early)
{
    const wt_histogram_summary *p = s->live.round_trip_ns.count ? &s->live.round_trip_ns : &s->live.process_ns;
    const double period_us = 1e6 * BLOCK / RATE;
    printf("jack  %s %-14s ch=2  block=%d  seconds=%.0f  p50 %.2f  p99 %.2f  p99.9 %.2f  p99.99 %.2f  max %.2f us | "
           "%.2f %% of %.0f us at p99.9 | %llu blocks, %llu missed%s\n",
           backend, s->preset, BLOCK, seconds, (double)p->p50 * 1e-3, (double)p->p99 * 1e-3, (double)p->p99_9 * 1e-3,
           (double)p->p99_99 * 1e-3, (double)p->max * 1e-3, (double)p->p99_9 * 1e-1 / period_us, period_us,
           (unsigned long long)(s->live.n_blocks - early->live.n_blocks),
           (unsigned long long)(s->live.n_misses - early->live.n_misses),
           s->host.realtime ? "" : " (no real-time rights)");
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
        const xruns before = count_xruns(w, (unsigned)early.host.n_xruns);
        begin_neighbour(&n);
        nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
        live_session_get_stats(session, &stats);
        const xruns after = count_xruns(w, (unsigned)stats.host.n_xruns);
        print_row(&stats, backend, seconds, &early);
        print_xruns(&before, &after, seconds);
        printf("; before it %.0f s of a client that does nothing: %.1f a minute\n", idle_seconds, idle);
        print_neighbour(&n);
    }
    close_neighbour(&n);
    return status;
}

/// No session: a client that does nothing, or none.
static wt_status run_without(bool with_client, double seconds, bool awake)
{
    watcher w = {.jack = NULL};
    int awake_fd; // until the process ends
    if (awake && live_rights_awake(NULL, &awake_fd)) return WT_ERR_UNSUPPORTED;
    if (with_client)
        open_watcher(&w);
    else
        nanosleep(&(struct timespec){1, 0}, NULL); // the server was just started
    if (with_client && !w.client) return wt_fail(WT_ERR_UNSUPPORTED, "the server takes no client");
    const xruns before = count_xruns(&w, 0);
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    const xruns after = count_xruns(&w, 0);
    print_xruns(&before, &after, seconds);
    printf("; %s\n", with_client ? "a client that does nothing" : "no client");
    close_watcher(&w);
    return WT_OK;
}

static wt_status run(const char *preset, const char *backend, const char *load, double seconds, double idle_seconds,
                     bool awake)
{
    const live_session_config config = {
        .preset = preset,
        .host_type = &jack_host_type,
        .backend = backend,
        .awake = awake,
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
    const char *preset = argc > 2 ? argv[2] : "presets/voice-clean.yaml";
    const bool idle = !strcmp(preset, "idle"), bare = !strcmp(preset, "bare");
    const bool awake = argc > 6 && !strcmp(argv[6], "awake");
    pid_t pid = start_server();
    wt_status status =
        idle || bare ? run_without(idle, seconds, awake)
                     : run(preset, argc > 3 ? argv[3] : "cpu", argc > 4 && strcmp(argv[4], "none") ? argv[4] : NULL,
                           seconds, argc > 5 ? atof(argv[5]) : IDLE_SECONDS, awake);
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
