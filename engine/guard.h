/// The guard of armed devices: who may make a call that waits for the whole device, and what is put aside meanwhile.
///
/// A GPU has one guard in a process, however often it is opened, because its primary context is shared; each CPU device
/// has its own. Enter and leave order themselves with arming like Dekker's algorithm, in sequentially consistent order:
/// a caller first counts itself in, then looks whether the guard is armed; arming first sets the flag, then waits until
/// the count is zero. So either the caller sees the flag or arming waits for it, and nothing slips by.
#ifndef WT_GUARD_H
#define WT_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <warptone/arm.h>

/// Embedded in an object whose destruction may be put aside. `release` must not use the handle of a device other than
/// the one it is given, since its own may have been closed.
typedef struct wt__aside {
    struct wt__aside *next;
    void (*release)(wt_device *device, struct wt__aside *self);
} wt__aside;

typedef struct wt__guard {
    atomic_bool armed;
    atomic_int n_inside;
    _Atomic uint64_t refused[WT_N_ARM_CALLS];
    pthread_mutex_t mutex; ///< guards what follows
    wt__aside *aside;
    int n_waiting;
    uint64_t n_put_aside, n_quiesces;
    double quiesce_last_us, quiesce_max_us;
    const wt_device *armed_by;
    const wt_safe_point *safe_point, *armed_at; ///< set; of the one who armed
    pthread_mutex_t changing; ///< held while arming, disarming and quiescing; outside `mutex`
} wt__guard;

void wt__guard_init(wt__guard *guard);
void wt__guard_term(wt__guard *guard); ///< Nothing may be put aside.

/// True when the call may go on; then wt__guard_leave must follow on the same thread. False: it was counted as refused.
/// A thread that is inside goes in again freely, so what has begun can be ended.
bool wt__guard_enter(wt__guard *guard, wt_arm_call call);
void wt__guard_leave(wt__guard *guard);

/// As wt__guard_enter, with the sentence: "<what>: cuX is refused while audio is running; ...".
WT_CHECKED wt_status wt__guard_check(wt__guard *guard, wt_arm_call call, const char *what);
wt_status wt__guard_refusal(wt_arm_call call, const char *what); ///< The sentence alone; WT_ERR_ARMED.

/// Inside the guard with `true`, or the object was put aside: `release` will be called later.
bool wt__guard_enter_or_put_aside(wt__guard *guard, wt__aside *aside);

/// Called when a device is closed: what it armed is disarmed, what it put aside is given back where that is allowed.
void wt__guard_close(wt_device *device);

#endif
