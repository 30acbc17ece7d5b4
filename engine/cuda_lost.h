/// Which GPUs of this process a fault has taken. A kernel that faults spoils the device's primary context, whichever
/// handle launched it, so the state is the GPU's and not a handle's; it ends when the last handle is closed.
#ifndef WT_CUDA_LOST_H
#define WT_CUDA_LOST_H

#include "cuda_api.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { WT__MAX_GPUS = 64 };

extern atomic_bool wt__cuda_lost[WT__MAX_GPUS]; ///< written by cuda_lost.c

/// One load in every call that reaches the driver.
static inline bool wt__cuda_is_lost(CUdevice device)
{
    return device >= 0 && device < WT__MAX_GPUS && atomic_load_explicit(&wt__cuda_lost[device], memory_order_relaxed);
}

/// The calling thread's next driver calls concern this device.
void wt__cuda_entering(CUdevice device);
/// A driver call of the device that this thread entered last met a fault; `why` is kept, the first one of a loss.
void wt__cuda_note_lost(const char *why);
wt_status wt__cuda_say_lost(CUdevice device); ///< WT_ERR_DEVICE_LOST with what was kept.

/// Handles of a device. To open while a lost one is open is refused: its context would be the lost one.
WT_CHECKED wt_status wt__cuda_retain(const wt__cuda *cuda, CUdevice device, const char *name, CUcontext *context);
/// Give the context back. With the last handle of a lost device the context is destroyed, whoever else holds it, and
/// the next open makes a new one; no context is current to this thread then.
void wt__cuda_release(const wt__cuda *cuda, CUdevice device);

#endif
