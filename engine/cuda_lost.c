// After a fault every driver call in the device's primary context answers with the fault, and so does retaining it
// again, since it is the same context. It goes away when everyone has released it, green contexts included, which hold
// it until they are destroyed; or by cuDevicePrimaryCtxReset ("explicitly destroys and cleans up all resources
// associated with the current device in the current process", CUDA Driver API, "Primary Context Management"). So the
// last close gives back its own first and resets only what others still hold. NVIDIA's text for most of these errors
// asks for a new process; whether the driver gives a working context is found out by opening.
#include "cuda_lost.h"

#include <pthread.h>
#include <stdio.h>

atomic_bool wt__cuda_lost[WT__MAX_GPUS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; ///< guards the rest
static struct {
    int n_open;
    bool taken; ///< was lost before, and its context destroyed
    char why[400];
} gpus[WT__MAX_GPUS];

static _Thread_local CUdevice entered = -1;

void wt__cuda_entering(CUdevice device) { entered = device; }

void wt__cuda_note_lost(const char *why)
{
    if (entered < 0 || entered >= WT__MAX_GPUS) return;
    pthread_mutex_lock(&mutex);
    if (!wt__cuda_is_lost(entered)) snprintf(gpus[entered].why, sizeof gpus[entered].why, "%s", why);
    atomic_store(&wt__cuda_lost[entered], true);
    pthread_mutex_unlock(&mutex);
}

wt_status wt__cuda_say_lost(CUdevice device)
{
    char why[sizeof gpus->why];
    pthread_mutex_lock(&mutex);
    snprintf(why, sizeof why, "%s", gpus[device].why);
    pthread_mutex_unlock(&mutex);
    return wt_fail(WT_ERR_DEVICE_LOST, "%s", why);
}

wt_status wt__cuda_retain(const wt__cuda *cuda, CUdevice device, const char *name, CUcontext *context)
{
    if (device < 0 || device >= WT__MAX_GPUS)
        return wt_fail(WT_ERR_UNSUPPORTED, "device %s: CUDA device %d, want 0..%d", name, device, WT__MAX_GPUS - 1);
    pthread_mutex_lock(&mutex);
    const int n_open = gpus[device].n_open;
    const bool lost = wt__cuda_is_lost(device), taken = gpus[device].taken;
    CUresult result = lost ? CUDA_SUCCESS : cuda->DevicePrimaryCtxRetain(context, device);
    if (!lost && !result) gpus[device].n_open++;
    pthread_mutex_unlock(&mutex);
    if (lost)
        return wt_fail(WT_ERR_DEVICE_LOST, "device %s: it is lost, and %d handles of it are open; close them first",
                       name, n_open);
    if (result && taken)
        return wt_fail(WT_ERR_DEVICE_LOST,
                       "device %s: it was lost to a fault and the driver does not give it back to this process "
                       "(CUDA error %d); start the program again, or work on the CPU",
                       name, result);
    wt__cuda_entering(device);
    return wt__cu(cuda, result, "device %s: open", name);
}

/// Destroy the primary context if somebody still holds it. What the driver answers, the next open meets.
static void reset_held(const wt__cuda *cuda, CUdevice device)
{
    unsigned int flags;
    int active;
    if (!cuda->DevicePrimaryCtxReset) return;
    if (cuda->DevicePrimaryCtxGetState(device, &flags, &active) || active) cuda->DevicePrimaryCtxReset(device);
}

void wt__cuda_release(const wt__cuda *cuda, CUdevice device)
{
    pthread_mutex_lock(&mutex);
    const bool last_of_lost = --gpus[device].n_open == 0 && wt__cuda_is_lost(device);
    if (last_of_lost) cuda->CtxSetCurrent(NULL);
    cuda->DevicePrimaryCtxRelease(device);
    if (last_of_lost) {
        reset_held(cuda, device);
        gpus[device].taken = true;
        gpus[device].why[0] = 0;
        atomic_store(&wt__cuda_lost[device], false);
    }
    pthread_mutex_unlock(&mutex);
}
