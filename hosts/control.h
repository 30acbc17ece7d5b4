/// Remote control of a live session: lines over a local socket and TCP (control.c, control_socket.c), OSC
/// (control_osc.c), and session management (nsm.h). One thread serves them all by poll; nothing of it is ever called
/// from, or waited for by, the audio thread. The protocol is docs/control.md.
#ifndef WT_CONTROL_H
#define WT_CONTROL_H

#include "live_session.h"
#include "nsm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct control control;

typedef struct control_config {
    live_session *session;   ///< borrowed until control_close
    const char *name;        ///< of the audio client, for the default path; NULL = "warptone"
    const char *socket_path; ///< NULL = control_default_path(name); made with mode 0600
    bool no_socket;
    int tcp_port;     ///< of the line protocol; 0 = none, -1 = any that is free
    int osc_port;     ///< UDP; 0 = none, -1 = any that is free
    const char *bind; ///< IPv4 address of both; NULL = 127.0.0.1. Whoever reaches it may do all that the protocol can
    nsm *nsm;         ///< borrowed until control_close; NULL = none
} control_config;

/// Starts listening. Errors: WT_ERR_STATE (another process listens there), WT_ERR_FILE (the socket cannot be made),
/// WT_ERR_BAD_ARG (bind, port), WT_ERR_NO_LIBRARY (OSC without liblo), WT_ERR_NO_MEMORY.  [main]
WT_CHECKED wt_status control_open(const control_config *config, control **control);
void control_close(control *control); ///< Before the session is closed. NULL is allowed.  [main]

const char *control_socket_path(const control *control); ///< borrowed until control_close; NULL = none
int control_tcp_port(const control *control);            ///< 0 = none
int control_osc_port(const control *control);

/// $XDG_RUNTIME_DIR/NAME.sock, else /tmp/NAME-UID.sock; name NULL = "warptone", a slash in it becomes '_'.
void control_default_path(const char *name, char *path, size_t size);

#ifdef __cplusplus
}
#endif
#endif
