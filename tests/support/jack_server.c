#include "jack_server.h"
#include "testing.h"
#include "../../hosts/jack_api.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef WT_HAVE_JACK

enum { WAIT_S = 300 }; // for the tests of another checkout

static void sleep_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

static bool on_path(const char *program)
{
    char command[256];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

static void need_jack(void)
{
    const jack_api *jack;
    if (jack_api_open(&jack)) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    if (!on_path("jackd")) {
        print_message("skipped: jackd is not installed (Debian: jackd2)\n");
        skip();
    }
}

/// What jackd prints. Under the lock of its name.
static void log_path(const char *name, char *path, size_t size)
{
    snprintf(path, size, "/tmp/%s-%ld.log", name, (long)getuid());
}

static void become_jackd(const char *name, int block_frames, pid_t test)
{
    char block[16], path[128];
    snprintf(block, sizeof block, "%d", block_frames);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != test) _exit(127); // it died before it could be watched
    log_path(name, path, sizeof path);
    const int null = open("/dev/null", O_RDWR), log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(null, 0), dup2(log < 0 ? null : log, 1), dup2(log < 0 ? null : log, 2);
    setenv("JACK_NO_AUDIO_RESERVATION", "1", 1);
    execlp("jackd", "jackd", "--no-realtime", "--sync", "-t", "5000", "-n", name, "-d", "dummy", "-r", "48000", "-p",
           block, "-C", "2", "-P", "2", (char *)NULL);
    _exit(127);
}

int jack_server_n_printed(const jack_server *server, const char *words)
{
    char path[128], line[1024];
    int n = 0;
    log_path(server->name, path, sizeof path);
    FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof line, log)) n += strstr(line, words) != NULL;
    if (log) fclose(log);
    return n;
}

static bool takes_clients(const jack_api *jack, const char *name)
{
    jack_status_t code;
    jack_client_t *client = jack->client_open("probe", JackNoStartServer | JackServerName, &code, name);
    if (client) jack->client_close(client);
    return client != NULL;
}

static bool ended(jack_server *server, int signal_number, int wait_ms)
{
    if (signal_number) kill(server->pid, signal_number);
    for (int k = 0; k <= wait_ms / 10; k++) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return true;
        }
        sleep_ms(10);
    }
    return false;
}

static bool try_start(jack_server *server)
{
    const jack_api *jack;
    assert_ok(jack_api_open(&jack));
    const pid_t test = getpid();
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) become_jackd(server->name, server->block_frames, test);
    for (int k = 0; k < 600; k++) { // half a minute: machines may be busy
        if (takes_clients(jack, server->name)) return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        sleep_ms(50);
    }
    (void)ended(server, SIGKILL, 10000);
    return false;
}

static bool starts(jack_server *server)
{
    server->killed = false;
    for (int k = 0; k < 20; k++) { // one of that name may still be ending
        if (try_start(server)) return true;
        sleep_ms(500);
    }
    return false;
}

void jack_server_restart(jack_server *server)
{
    if (!starts(server))
        fail_msg("jackd does not start as '%s'; `jackd -n %s -d dummy` says why", server->name, server->name);
}

void jack_server_revive(jack_server *server)
{
    const jack_api *jack;
    assert_ok(jack_api_open(&jack));
    if (takes_clients(jack, server->name)) return;
    print_message("jackd '%s' takes no clients any more and is started again\n", server->name);
    (void)ended(server, SIGKILL, 10000);
    jack_server_restart(server);
}

/// A machine that has 8 servers already, or no room in /dev/shm, is no fault of ours: then all tests of a program skip.
static const char *no_server; // why, NULL = one was never refused

static void give_up(jack_server *server, const char *why)
{
    no_server = why;
    if (server->lock > 0) close(server->lock);
    server->lock = 0;
    print_message("skipped: %s\n", why);
    skip();
}

/// One server at a time on a machine, and one name, with a lock: clients that call themselves alike on two servers take
/// each other's socket away while they connect (JACK calls it by the client's name alone), and the place of a server
/// that crashed, of which JACK has 8, goes to its own name only.
static void take_name(jack_server *server)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/wt-test-jack-%ld.lock", (long)getuid());
    server->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(server->lock > 0);
    for (int k = 0; flock(server->lock, LOCK_EX | LOCK_NB); k++) {
        if (k == WAIT_S * 10) give_up(server, "other tests hold the JACK server's name");
        sleep_ms(100);
    }
    snprintf(server->name, sizeof server->name, "wt-test");
    log_path(server->name, path, sizeof path);
    unlink(path); // of one that crashed
}

void jack_server_start(jack_server *server, int block_frames)
{
    memset(server, 0, sizeof *server);
    need_jack();
    if (no_server) give_up(server, no_server);
    take_name(server);
    alarm(600); // a program whose server hangs ends all the same, and jackd with it
    server->block_frames = block_frames;
    if (!starts(server)) give_up(server, "jackd does not start; `jackd -n wt-test -d dummy` says why");
}

void jack_server_kill(jack_server *server)
{
    if (!server->pid) return;
    (void)ended(server, SIGKILL, 10000);
    server->killed = true;
}

/// What clients of a killed server left.
static void remove_semaphores(const char *name)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "/dev/shm/jack_sem.*_%s_*", name);
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t n = 0; n < found.gl_pathc; n++) unlink(found.gl_pathv[n]);
    globfree(&found);
}

/// What went wrong on the server's side, which tests see as a client that cannot be had or a port that is gone.
static void print_complaints(const char *name)
{
    static const char *const words[] = {"ERROR", "rror", "annot", "imeout", "imed out", "broken"};
    char path[128], line[256];
    log_path(name, path, sizeof path);
    FILE *file = fopen(path, "r");
    int n = 0;
    while (file && n < 12 && fgets(line, sizeof line, file))
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (strstr(line, words[k])) {
                print_message("jackd said: %s", line);
                n++;
                break;
            }
    if (file) fclose(file);
    unlink(path);
}

void jack_server_stop(jack_server *server)
{
    if (server->pid && ended(server, 0, 0)) print_message("jackd had ended by itself\n");
    if (server->killed) (void)starts(server); // to be ended in good order
    if (server->pid && !ended(server, SIGTERM, 10000)) (void)ended(server, SIGKILL, 10000);
    if (!server->lock) return;
    print_complaints(server->name);
    remove_semaphores(server->name);
    close(server->lock);
    server->lock = 0;
}

#else

void jack_server_start(jack_server *server, int block_frames)
{
    (void)block_frames;
    memset(server, 0, sizeof *server);
    print_message("skipped: this build has no JACK\n");
    skip();
}

void jack_server_restart(jack_server *server) { jack_server_start(server, 0); }
void jack_server_revive(jack_server *server) { (void)server; }
void jack_server_kill(jack_server *server) { (void)server; }
void jack_server_stop(jack_server *server) { (void)server; }

#endif
