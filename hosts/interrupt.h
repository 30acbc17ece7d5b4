/// SIGINT, SIGTERM and SIGHUP as a flag: long work looks at it between blocks, discards its unfinished outputs, and
/// leaves.
#ifndef WT_INTERRUPT_H
#define WT_INTERRUPT_H

#include <stdbool.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Called once by a program, before its threads. The first SIGINT or SIGTERM sets the flag and ends a blocking call;
/// a second one ends the process at once. A SIGHUP sets the flag, too, any number of them, unless it was ignored
/// (nohup). SIGPIPE and SIGXFSZ are ignored: a closed pipe and a file-size limit are
/// errors of the write that met them.  [main]
WT_CHECKED wt_status wt_interrupt_install(void);

/// Has a signal come? Always false in a program that installed nothing.  [any]
bool wt_interrupted(void);

/// The signal that came, 0 = none; a program ends with 128 + this.  [any]
int wt_interrupt_signal(void);

/// Forget a SIGINT and take the next as the first, as a program with a prompt wants it; SIGTERM and SIGHUP stay.
/// Errors: WT_ERR_STATE.  [main]
WT_CHECKED wt_status wt_interrupt_clear(void);

/// Waits until fd has input, its end or an error to read; false when a signal came first. A read by itself would sleep
/// through a signal that comes just before it, or that another thread takes.  [main]
bool wt_interrupt_wait_input(int fd);

#ifdef __cplusplus
}
#endif
#endif
