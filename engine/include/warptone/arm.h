/// Arming: while a resident kernel runs on a GPU, driver calls that would stop the whole device are refused.
///
/// Some driver calls wait until the GPU is idle, and hold up everything else meanwhile. Beside a resident kernel, which
/// never ends by itself, they hang, and so does the audio (docs/partitions.md has what was measured). Between
/// wt_device_arm and wt_device_disarm such calls return WT_ERR_ARMED at once and are counted; what is destroyed is put
/// aside and given back after disarming, or in the next quiesce. Everything that goes through the engine's table of
/// driver entry points is covered, on every thread; what a library calls inside itself (cuBLASLt loading a kernel at
/// its first use) is not, so warm such libraries before arming.
///
/// Armed is the GPU, not the handle: two wt_devices of one GPU share the state. The CPU backend, where nothing hangs,
/// refuses and puts aside the same public calls, so that a program tested there behaves alike on a GPU.
#ifndef WARPTONE_ARM_H
#define WARPTONE_ARM_H

#include <stdint.h>
#include <warptone/device.h>

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
/// X(code, driver call, public calls that come to it)
#define WT_ARM_LIST(X)                                                                                  \
    X(WT_ARM_CTX_SYNCHRONIZE,     "cuCtxSynchronize",            "wt_device_synchronize")               \
    X(WT_ARM_MODULE_LOAD,         "cuModuleLoadData",            "wt_module_create")                    \
    X(WT_ARM_MODULE_UNLOAD,       "cuModuleUnload",              "wt_module_destroy, put aside")        \
    X(WT_ARM_FUNC_LOAD,           "cuFuncLoad",                  "wt_module_get_kernel, first time")    \
    X(WT_ARM_MEM_FREE,            "cuMemFree",                   "wt_buffer_destroy, put aside")        \
    X(WT_ARM_MEM_FREE_HOST,       "cuMemFreeHost",               "wt_buffer_destroy, put aside")        \
    X(WT_ARM_MEM_POOL_DESTROY,    "cuMemPoolDestroy",            "wt_pool_destroy, put aside")          \
    X(WT_ARM_MEM_POOL_TRIM,       "cuMemPoolTrimTo",             "trimming a memory pool")              \
    X(WT_ARM_GREEN_CTX_CREATE,    "cuGreenCtxCreate",            "wt_layout_create, wt_layout_resize")  \
    X(WT_ARM_GREEN_CTX_DESTROY,   "cuGreenCtxDestroy",           "wt_layout_destroy, wt_layout_resize")
// clang-format on

typedef enum wt_arm_call {
#define WT_ARM_ENUM(code, call, reached_by) code,
    WT_ARM_LIST(WT_ARM_ENUM)
#undef WT_ARM_ENUM
        WT_N_ARM_CALLS
} wt_arm_call;

/// The driver's name of a call, "cuMemFree".  [any]
const char *wt_arm_call_name(wt_arm_call call);

/// Arm: returns when no forbidden call is under way on any thread, and from then on none starts.
/// Errors: WT_ERR_STATE (already armed).  [worker]
WT_CHECKED wt_status wt_device_arm(wt_device *device);
/// Disarm, and give back what was put aside. The resident kernel must have left: giving back waits for the device.
/// Errors: WT_ERR_STATE (not armed).  [worker]
WT_CHECKED wt_status wt_device_disarm(wt_device *device);
bool wt_device_is_armed(const wt_device *device); ///< [any]

/// How to stop and restart what runs for ever: set while disarmed, borrowed until replaced by NULL; the live engine
/// arms with its own.
/// `stop` returns WT_OK when the resident kernel has left, WT_ERR_TIMEOUT when it did not within `timeout_us` (then it
/// goes on and `restart` is not called). Both are called on the thread of wt_quiesce, one quiesce at a time.
typedef struct wt_safe_point {
    wt_status (*stop)(void *user, int64_t timeout_us);
    wt_status (*restart)(void *user);
    void *user;
} wt_safe_point;

/// Errors: WT_ERR_BAD_ARG (a callback is missing), WT_ERR_STATE (armed).  [worker]
WT_CHECKED wt_status wt_device_set_safe_point(wt_device *device, const wt_safe_point *safe_point);

/// Arm with a safe point of its own instead of the one that was set, borrowed until disarmed. That is one step: of two
/// who arm at the same moment one is refused, and no quiesce stops the one and leaves the other.
/// Errors: WT_ERR_BAD_ARG (a callback is missing), WT_ERR_STATE (already armed).  [worker]
WT_CHECKED wt_status wt_device_arm_at(wt_device *device, const wt_safe_point *safe_point);

typedef wt_status (*wt_quiesce_function)(void *user);

/// Run `function` while forbidden calls are allowed: stop the resident kernel (without a safe point: wait until every
/// stream of the device is idle), give back what was put aside, call `function` (NULL = only give back), forbid again,
/// restart. On a device that is not armed it just calls `function`. `timeout_us` bounds the stopping, 0 = 1 s.
/// Returns the function's status, or the restart's error. The function must not arm, disarm or quiesce.
/// Errors: WT_ERR_TIMEOUT (nothing was called), WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_quiesce(wt_device *device, wt_quiesce_function function, void *user, int64_t timeout_us);

typedef struct wt_arm_counts {
    bool armed;
    uint64_t refused[WT_N_ARM_CALLS]; ///< calls refused since the process began
    uint64_t n_refused;               ///< their sum
    uint64_t n_put_aside;             ///< objects whose destruction was put off, ever
    int n_waiting;                    ///< of them, not given back yet
    uint64_t n_quiesces;              ///< that ran their function
    double quiesce_last_us, quiesce_max_us; ///< from the kernel's leaving to its return
} wt_arm_counts;

void wt_arm_stats(const wt_device *device, wt_arm_counts *counts); ///< [any but rt]

#ifdef __cplusplus
}
#endif
#endif
