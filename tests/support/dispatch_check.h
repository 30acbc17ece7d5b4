/// For tests of a dispatch: one with two streams, and what they launch, on either backend.
#ifndef WT_DISPATCH_CHECK_H
#define WT_DISPATCH_CHECK_H

#include "device_check.h"

#include <stdatomic.h>
#include <warptone/dispatch.h>

typedef struct rig {
    wt_device *device;
    wt_module *module; ///< NULL on the CPU
    wt_kernel *note, *gate;
    wt_stream *streams[2];
    wt_buffer *memory; ///< the gate's word in its last place, else the log; mapped on both backends
    wt_dispatch *dispatch;
    int lanes[2];
} rig;

rig rig_on(wt_device *device, const wt_dispatch_config *config, const wt_dispatch_stream_config *lane);
void rig_free(rig *r);

typedef struct note_args {
    atomic_int *log;
    int tag;
} note_args;
/// What a note is on the CPU: it writes its tag to the log, behind the others.
void note_item(const void *args, int item);
atomic_int *log_of(const rig *r); ///< how many tags, and these
void assert_log(const rig *r, const int *tags, int n);

/// Submit a note with what `like` has besides the work.
wt_status submit_note(const rig *r, int tag, wt_dispatch_request like, wt_dispatch_ticket *ticket);
/// Likewise a gate, which runs until it is opened, at most 5 s.
wt_status submit_gate(const rig *r, wt_dispatch_request like, wt_dispatch_ticket *ticket);
void await_gate(const rig *r); ///< until it runs
void open_gate(const rig *r);

wt_dispatch_info info_of_ticket(const rig *r, wt_dispatch_ticket ticket);

#endif
