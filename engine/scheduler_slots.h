/// For executors that keep tables by a task's slot. Both read what is set when the scheduler is created.
#ifndef WT_SCHEDULER_SLOTS_H
#define WT_SCHEDULER_SLOTS_H

#include <warptone/scheduler.h>

int wt__scheduler_n_slots(const wt_scheduler *scheduler);
/// Has it given this handle out? Then its slot is below the number of slots.
bool wt__scheduler_owns(const wt_scheduler *scheduler, wt_task task);

#endif
