/// A JACK server of a test's own: jackd's dummy driver under a private name, which ends with the test whatever happens.
#ifndef WT_JACK_SERVER_H
#define WT_JACK_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct jack_server {
    char name[64];
    pid_t pid; ///< 0 = not running
    int block_frames;
    bool killed; ///< and not restarted
    int lock;    ///< file descriptor that holds the name; 0 = none
} jack_server;

/// Start `jackd -d dummy` at 48 kHz and wait until it takes clients. It runs in synchronous mode, so that a busy
/// machine makes cycles longer and drops nothing. Skips the test, saying why, where jackd, libjack or the build's JACK
/// is absent, or the machine has no room for another server.
void jack_server_start(jack_server *server, int block_frames);
void jack_server_restart(jack_server *server); ///< after it was killed: it comes back under its name
void jack_server_kill(jack_server *server);    ///< SIGKILL, as a crash

/// A server that takes no clients any more is ended and started again, which is told. jackd does that now and then on a
/// busy machine: it waits for a client that closes ("ClientCloseAux wait error"), and for every one after it.
void jack_server_revive(jack_server *server);
void jack_server_stop(jack_server *server);    ///< a zeroed or stopped one is allowed
/// How often the words stand in what servers of this name have printed so far.
int jack_server_n_printed(const jack_server *server, const char *words);

#endif
