/// The CUDA backend's handles, for the engine's other files (kernels, graphs, partitions).
#ifndef WT_DEVICE_CUDA_H
#define WT_DEVICE_CUDA_H

#include "cuda_api.h"
#include "cuda_guard.h"
#include "cuda_lost.h"
#include "device_internal.h"

/// What the partitions of a device keep for its next layout (partition_cuda.c).
typedef struct wt__kept {
    pthread_mutex_t mutex;   ///< guards the rest
    struct wt__cut *cuts[2]; ///< [fine]; NULL = not split yet
    struct wt__slice *spare; ///< green contexts without streams
} wt__kept;

typedef struct wt__cuda_device {
    wt_device base;
    const wt__cuda *cuda;
    CUdevice device;
    CUcontext context; ///< the primary context, retained
    CUstream own;      ///< for zeroing new memory: nothing ever runs on the NULL stream
    int lowest_priority, highest_priority;
    bool has_domains; ///< of memory synchronisation, several (9.0 and newer)
    wt__kept kept;
} wt__cuda_device;

typedef struct wt__cuda_stream {
    wt_stream base;
    CUstream stream;
} wt__cuda_stream;

static inline wt__cuda_device *wt__cuda_device_of(const wt_device *device)
{
    return (wt__cuda_device *)device;
}
static inline CUstream wt__cuda_stream_of(const wt_stream *stream)
{
    return ((const wt__cuda_stream *)stream)->stream;
}

/// A stream of the engine around one of the driver, which it takes (also when it fails). Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__cuda_stream_wrap(wt_device *device, CUstream cuda_stream, wt_stream **stream);
/// The driver's number for a priority of -1, 0 or 1.
int wt__cuda_priority(const wt__cuda_device *device, int priority);

/// Give back what is kept, when the device is closed.
void wt__cuda_kept_free(wt__cuda_device *device);

/// Make the device's context current to the calling thread: first in every call that reaches the driver.
/// Errors: WT_ERR_DEVICE_LOST, without a call of the driver once it is known.
WT_CHECKED wt_status wt__cuda_enter(const wt__cuda_device *device);
/// The same to give something back. True also on a lost device, whatever the driver says to making its context
/// current: a green context holds the primary context until it is destroyed, and what is gone already fails without
/// harm.
bool wt__cuda_enter_to_free(const wt__cuda_device *device);

#endif
