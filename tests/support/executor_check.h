/// For tests of the scheduler on a device: a rig with a scheduler and an executor for all of the device, and work that
/// spins for a given time.
#ifndef WT_EXECUTOR_CHECK_H
#define WT_EXECUTOR_CHECK_H

#include "device_check.h"

#include <stdatomic.h>
#include <warptone/device_executor.h>
#include <warptone/kernel.h>

enum { MS = 1000000 };
#define EXECUTOR_WAIT_NS (5000LL * MS)

/// CUDA text: spin, gate, add, stray.
extern const char executor_text[];

typedef struct executor_rig {
    wt_scheduler *scheduler;
    wt_layout *layout;
    wt_device_executor *executor;
    wt_module *module;
    wt_kernel *kernel; ///< NULL on the CPU
    int partition;
    atomic_int n_hung;
    wt_hang hang; ///< the last one, written before n_hung
} executor_rig;

typedef struct spinning {
    wt_device_work work;
    executor_rig *rig;
    int64_t ns;        ///< of the whole, or of each item
    int64_t next_item; ///< where the next slice must begin
    int64_t largest;   ///< items of the largest slice
    atomic_int n_queued;
    int order;            ///< n-th of all to be queued
    atomic_int *n_before; ///< counts them; may be NULL
    wt_status status;     ///< what queueing returns
} spinning;

/// Queue it, with its `ns` for the whole or each item.
wt_status queue_spin(void *user, wt_stream *stream, int64_t offset_item, int64_t n_items);

void executor_rig_start(executor_rig *r, void **state, double pacing_share, int64_t hang_ns);
void executor_rig_end(executor_rig *r);

spinning spin_of(executor_rig *r, int64_t ns);
/// Work of `n_items`, in slices of at most `bound_us`.
spinning sliced_of(executor_rig *r, int64_t ns, int64_t n_items, double bound_us);
wt_task submit_spin(executor_rig *r, spinning *s, int priority);
wt_device_executor_info info_of_executor(executor_rig *r);

#endif
