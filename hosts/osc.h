/// OSC over UDP sockets of our own, so that they bind where we say and wait in our poll; liblo reads and makes
/// messages.
#ifndef WT_OSC_H
#define WT_OSC_H

#ifdef WT_HAVE_LIBLO

#    include <lo/lo.h>
#    include <netinet/in.h>
#    include <stdbool.h>

typedef struct osc_message {
    const char *path, *types;
    lo_arg **args;
    int n_args;
    struct sockaddr_in from;
} osc_message;

/// Take one datagram if there is one, and hand over its message, or those of its bundle in order (their time is now).
/// What is no OSC is ignored.  [any but rt]
void osc_receive(int fd, void (*handle)(void *user, const osc_message *message), void *user);

/// Send `message`, which is taken; NULL = no arguments. Who cannot be reached is not told.  [any but rt]
void osc_send(int fd, const struct sockaddr_in *to, const char *path, lo_message message);

/// Argument k as a number (any numeric type, true and false), as a text.
bool osc_number(const osc_message *message, int k, float *value);
const char *osc_text(const osc_message *message, int k); ///< NULL = it is none

#endif
#endif
