/// A client of the New Session Manager: says that it is there, learns its name and folder, saves and restores.
///
///     if (nsm_join(getenv("NSM_URL"), argv[0], 0, &nsm)) ...     before the session: it gives the client name
///     config.host.client_name = nsm_client_id(nsm);
///     if (nsm_preset(nsm)) config.preset = nsm_preset(nsm);   what was saved last time
///     live_session_open, live_session_start, control_open(&(control_config){.nsm = nsm, ...})
///     control_close, nsm_leave, live_session_close
///
/// The state is NSM's folder + "/session.json": path of the preset, bypass, and the value of every parameter.
/// Source: the NSM OSC protocol, API version 1.1 (jackaudio/new-session-manager, docs/src/api/index.adoc).
#ifndef WT_NSM_H
#define WT_NSM_H

#include "live_session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nsm nsm;

/// Announce to the manager at `url` ("osc.udp://host:port/") and wait for its open, `timeout_s` at most, 0 = 10.
/// `program` is the executable by which the manager starts it again, without arguments.
/// Errors: WT_ERR_BAD_ARG (url), WT_ERR_NO_LIBRARY (no liblo), WT_ERR_TIMEOUT, WT_ERR_REJECTED (its sentence),
/// WT_ERR_FORMAT (a saved state that is damaged), WT_ERR_CANCELLED (a signal came).  [main]
WT_CHECKED wt_status nsm_join(const char *url, const char *program, double timeout_s, nsm **nsm);
/// When the session was never attached, the manager is told the thread's last message as the reason. NULL is allowed.
void nsm_leave(nsm *nsm);

const char *nsm_client_id(const nsm *nsm); ///< to be the audio client's name; borrowed until nsm_leave
const char *nsm_preset(const nsm *nsm);    ///< of the saved state; NULL = nothing was saved

/// Write the state now, when a session was attached: for a program that is told to end. Errors: WT_ERR_FILE,
/// WT_ERR_NO_MEMORY.  [main, after control_close]
WT_CHECKED wt_status nsm_save(nsm *nsm);

// ---- for control.c, whose thread serves it

int nsm_fd(const nsm *nsm);
/// Restore the saved parameters and tell the manager that the project is open.  [control_open]
WT_CHECKED wt_status nsm_attach(nsm *nsm, live_session *session);
void nsm_receive(nsm *nsm); ///< one message, when there is one
void nsm_dirty(nsm *nsm);   ///< something changed since the last save

#ifdef __cplusplus
}
#endif
#endif
