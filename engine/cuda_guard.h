/// The guard in the table of driver entry points: each forbidden entry is replaced, once and for good, by a function
/// that asks the guard of the calling thread's current device and then calls the driver, or refuses.
#ifndef WT_CUDA_GUARD_H
#define WT_CUDA_GUARD_H

#include "cuda_api.h"
#include "guard.h"

/// A refused entry returns this plus its wt_arm_call, far outside the driver's own codes; wt__cu makes it WT_ERR_ARMED.
enum { WT_CUDA_REFUSED = 0x57540000 };

/// Replace the entries of a freshly filled table; called once in a process.
void wt__cuda_guard_table(wt__cuda *table);

/// The guard of one GPU, or NULL for a number above what the engine knows.
wt__guard *wt__cuda_guard_of(CUdevice device);

#endif
