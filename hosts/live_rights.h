/// What the machine permits a real-time program.
#ifndef WT_LIVE_RIGHTS_H
#define WT_LIVE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <warptone/status.h>

/// May this process run threads at a real-time priority, and lock the memory it has? What is permitted is tried, and
/// memory stays locked. When something is not, `sentence` says what and what to grant; "" otherwise.  [any but rt]
bool live_rights(char *sentence, size_t size);

/// Start a thread with SCHED_FIFO at `priority`, which ends at once. Returns 0, or the errno of the refusal.
/// [any but rt]
int live_rights_try_fifo(int priority);

/// Let no processor of the machine sleep until `fd` is closed (-1 on error; all spin idle instead, at the price of
/// power). `path` NULL = the kernel's own, /dev/cpu_dma_latency. Errors: WT_ERR_UNSUPPORTED, with what to grant.
/// [any but rt]
WT_CHECKED wt_status live_rights_awake(const char *path, int *fd);

#endif
