// A live session on a JACK server of its own: jackd's dummy driver at 64 frames and 48 kHz, stereo.
//
//   bench_jack [seconds] [preset] [backend]     20 s of presets/voice-clean.yaml on the CPU
//
//   jack  cpu voice-clean  ch=2  block=64  seconds=20  p50 .. p99 .. p99.9 .. max .. us | 0.3 % of 1333 us at p99.9 |
//   .. blocks, .. missed, .. xruns; beside it 10 s of a client that does nothing: .. xruns a minute, the session ..
//
// Xruns are the server's count, and the dummy driver counts one whenever its own timer wakes it late, whoever its
// clients are. So a client that does nothing is measured first, on the same server: what it has, too, tells of the
// machine's other work and of missing real-time rights (`warptone doctor`), not of the session. What the callback took
// is told in any case: below a period it cannot have been the cause.
#include "../hosts/jack_api.h"
#include "../hosts/live_rights.h"
#include "../hosts/live_session.h"

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

/// Xruns a minute with a client that does nothing, below 0 when it cannot be had.
static double idle_xruns(double seconds)
{
    const jack_api *jack;
    atomic_uint n = 0;
    jack_client_t *client = NULL;
    if (jack_api_open(&jack)) return -1;
    for (int k = 0; k < 100 && !client; k++) { // the server was just started
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        client = jack->client_open("idle", JackNoStartServer | JackServerName, NULL, server);
    }
    if (!client) return -1;
    jack->set_process_callback(client, do_nothing, NULL);
    jack->set_xrun_callback(client, count_xrun, &n);
    const bool runs = !jack->activate(client);
    nanosleep(&(struct timespec){1, 0}, NULL); // as below
    const unsigned before = atomic_load(&n);
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    const unsigned after = atomic_load(&n);
    jack->client_close(client);
    return runs ? (after - before) * 60 / seconds : -1;
}

static void print_row(const live_session_stats *s, const char *backend, double seconds, uint64_t n_early, double idle)
{
    const double n_xruns = (double)(s->host.n_xruns - n_early);
    const wt_histogram_summary *p = s->live.round_trip_ns.count ? &s->live.round_trip_ns : &s->live.process_ns;
    const double period_us = 1e6 * BLOCK / RATE;
    printf("jack  %s %-14s ch=2  block=%d  seconds=%.0f  p50 %.2f  p99 %.2f  p99.9 %.2f  p99.99 %.2f  max %.2f us | "
           "%.2f %% of %.0f us at p99.9 | %llu blocks, %llu missed, %.0f xruns; beside it %d s of a client that does "
           "nothing: %.1f xruns a minute, "
           "the session %.1f%s\n",
           backend, s->preset, BLOCK, seconds, (double)p->p50 * 1e-3, (double)p->p99 * 1e-3, (double)p->p99_9 * 1e-3,
           (double)p->p99_99 * 1e-3, (double)p->max * 1e-3, (double)p->p99_9 * 1e-1 / period_us, period_us,
           (unsigned long long)s->live.n_blocks, (unsigned long long)s->live.n_misses, n_xruns, IDLE_SECONDS, idle,
           n_xruns * 60 / seconds, s->host.realtime ? "" : " (no real-time rights)");
}

static wt_status run(const char *preset, const char *backend, double seconds)
{
    const live_session_config config = {
        .preset = preset,
        .host_type = &jack_host_type,
        .backend = backend,
        .wait = true, // for the server that was just started
        .host = {.device = server, .channels = 2, .auto_connect = true},
    };
    live_session *session;
    live_session_stats early, stats;
    const double idle = idle_xruns(IDLE_SECONDS);
    wt_status status = live_session_open(&config, &session);
    if (status) return status;
    status = live_session_start(session);
    char missing[512];
    if (!live_rights(missing, sizeof missing))
        fprintf(stderr, "bench_jack: %s\n", missing); // locks memory, as live does
    nanosleep(&(struct timespec){1, 0}, NULL);        // connecting changes the graph, which may cost cycles
    live_session_get_stats(session, &early);
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    live_session_get_stats(session, &stats);
    if (!status) print_row(&stats, backend, seconds, early.host.n_xruns, idle);
    live_session_close(session);
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
    wt_status status = run(argc > 2 ? argv[2] : "presets/voice-clean.yaml", argc > 3 ? argv[3] : "cpu", seconds);
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
