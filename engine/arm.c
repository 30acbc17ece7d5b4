// Arming, the guard, and quiescing. See guard.h for how nothing slips by.
#include "device_internal.h"

#include <sched.h>
#include <time.h>
#include <warptone/clock.h>

enum { DEFAULT_TIMEOUT_US = 1000000, POLL_NS = 20000 };

// How deep the calling thread stands in guarded calls.
static _Thread_local int depth;

const char *wt_arm_call_name(wt_arm_call call)
{
#define NAME(code, call, reached_by) call,
    static const char *const names[] = {WT_ARM_LIST(NAME)};
#undef NAME
    return (unsigned)call < WT_N_ARM_CALLS ? names[call] : "an unknown call";
}

// ---- the guard

void wt__guard_init(wt__guard *guard)
{
    *guard = (wt__guard){.mutex = PTHREAD_MUTEX_INITIALIZER, .changing = PTHREAD_MUTEX_INITIALIZER};
}

void wt__guard_term(wt__guard *guard)
{
    pthread_mutex_destroy(&guard->changing);
    pthread_mutex_destroy(&guard->mutex);
}

bool wt__guard_enter(wt__guard *guard, wt_arm_call call)
{
    if (depth > 0) {
        depth++;
        return true;
    }
    atomic_fetch_add(&guard->n_inside, 1);
    if (!atomic_load(&guard->armed)) {
        depth++;
        return true;
    }
    atomic_fetch_sub(&guard->n_inside, 1);
    atomic_fetch_add_explicit(&guard->refused[call], 1, memory_order_relaxed);
    return false;
}

void wt__guard_leave(wt__guard *guard)
{
    if (--depth == 0) atomic_fetch_sub(&guard->n_inside, 1);
}

wt_status wt__guard_refusal(wt_arm_call call, const char *what)
{
    return wt_fail(WT_ERR_ARMED, "%s: %s is refused while audio is running; do it before arming, or inside wt_quiesce",
                   what, wt_arm_call_name(call));
}

wt_status wt__guard_check(wt__guard *guard, wt_arm_call call, const char *what)
{
    return wt__guard_enter(guard, call) ? WT_OK : wt__guard_refusal(call, what);
}

bool wt__guard_enter_or_put_aside(wt__guard *guard, wt__aside *aside)
{
    pthread_mutex_lock(&guard->mutex); // the flag changes under it too, so neither arming nor disarming passes between
    bool allowed = depth > 0 || !atomic_load(&guard->armed);
    if (allowed) {
        if (depth++ == 0) atomic_fetch_add(&guard->n_inside, 1);
    } else {
        aside->next = guard->aside;
        guard->aside = aside;
        guard->n_waiting++;
        guard->n_put_aside++;
    }
    pthread_mutex_unlock(&guard->mutex);
    return allowed;
}

static void set_armed(wt__guard *guard, bool armed)
{
    pthread_mutex_lock(&guard->mutex);
    atomic_store(&guard->armed, armed);
    pthread_mutex_unlock(&guard->mutex);
    while (armed && atomic_load(&guard->n_inside) > 0) sched_yield();
}

/// Give back all that was put aside. The guard is open.
static void give_back(wt_device *device)
{
    wt__guard *guard = device->guard;
    pthread_mutex_lock(&guard->mutex);
    wt__aside *list = guard->aside;
    guard->aside = NULL;
    guard->n_waiting = 0;
    pthread_mutex_unlock(&guard->mutex);
    while (list) {
        wt__aside *next = list->next; // release frees the object around it
        list->release(device, list);
        list = next;
    }
}

static void disarm(wt__guard *guard)
{
    guard->armed_by = NULL;
    guard->armed_at = NULL;
    set_armed(guard, false);
}

void wt__guard_close(wt_device *device)
{
    wt__guard *guard = device->guard;
    if (!guard) return;
    pthread_mutex_lock(&guard->changing);
    bool mine = guard->armed_by == device;
    if (mine) {
        guard->safe_point = NULL;
        disarm(guard);
    }
    if (!atomic_load(&guard->armed)) give_back(device);
    pthread_mutex_unlock(&guard->changing);
}

// ---- arming

// NULL: at the safe point that was set.
static wt_status arm(wt_device *device, const wt_safe_point *safe_point)
{
    wt__guard *guard = device->guard;
    wt_status status = WT_OK;
    pthread_mutex_lock(&guard->changing);
    if (atomic_load(&guard->armed)) {
        status = wt_fail(WT_ERR_STATE, "arm: %s is armed already", device->info.name);
    } else {
        guard->armed_by = device;
        guard->armed_at = safe_point ? safe_point : guard->safe_point;
        set_armed(guard, true);
    }
    pthread_mutex_unlock(&guard->changing);
    return status;
}

wt_status wt_device_arm(wt_device *device) { return arm(device, NULL); }

static wt_status check_safe_point(const wt_safe_point *safe_point)
{
    if (safe_point && safe_point->stop && safe_point->restart) return WT_OK;
    return wt_fail(WT_ERR_BAD_ARG, "safe point: a callback is NULL, want stop and restart");
}

wt_status wt_device_arm_at(wt_device *device, const wt_safe_point *safe_point)
{
    wt_status status = check_safe_point(safe_point);
    return status ? status : arm(device, safe_point);
}

wt_status wt_device_disarm(wt_device *device)
{
    wt__guard *guard = device->guard;
    wt_status status = WT_OK;
    pthread_mutex_lock(&guard->changing);
    if (!atomic_load(&guard->armed)) {
        status = wt_fail(WT_ERR_STATE, "disarm: %s is not armed", device->info.name);
    } else {
        disarm(guard);
        give_back(device);
    }
    pthread_mutex_unlock(&guard->changing);
    return status;
}

bool wt_device_is_armed(const wt_device *device)
{
    return atomic_load(&device->guard->armed);
}

wt_status wt_device_set_safe_point(wt_device *device, const wt_safe_point *safe_point)
{
    wt__guard *guard = device->guard;
    wt_status status = safe_point ? check_safe_point(safe_point) : WT_OK;
    if (status) return status;
    pthread_mutex_lock(&guard->changing);
    if (atomic_load(&guard->armed))
        status = wt_fail(WT_ERR_STATE, "safe point: %s is armed; set it before arming", device->info.name);
    else
        guard->safe_point = safe_point;
    pthread_mutex_unlock(&guard->changing);
    return status;
}

// ---- quiescing

static wt_status wait_for_idle_streams(wt_device *device, int64_t timeout_us)
{
    int64_t end_ns = wt_clock_now_ns(NULL) + timeout_us * 1000;
    while (!wt__device_is_idle(device)) {
        if (wt_clock_now_ns(NULL) >= end_ns)
            return wt_fail(WT_ERR_TIMEOUT, "quiesce: streams of %s still have work after %lld us", device->info.name,
                           (long long)timeout_us);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    return WT_OK;
}

static wt_status run_at_safe_point(wt_device *device, wt_quiesce_function function, void *user, int64_t timeout_us)
{
    wt__guard *guard = device->guard;
    const wt_safe_point *point = guard->armed_at;
    wt_status status = point ? point->stop(point->user, timeout_us) : wait_for_idle_streams(device, timeout_us);
    if (status) return status;
    int64_t begin_ns = wt_clock_now_ns(NULL);
    set_armed(guard, false);
    give_back(device);
    if (function) status = function(user);
    set_armed(guard, true);
    wt_status restarted = point ? point->restart(point->user) : WT_OK;
    double us = (double)(wt_clock_now_ns(NULL) - begin_ns) * 1e-3;
    pthread_mutex_lock(&guard->mutex);
    guard->n_quiesces++;
    guard->quiesce_last_us = us;
    if (us > guard->quiesce_max_us) guard->quiesce_max_us = us;
    pthread_mutex_unlock(&guard->mutex);
    return restarted ? restarted : status;
}

wt_status wt_quiesce(wt_device *device, wt_quiesce_function function, void *user, int64_t timeout_us)
{
    if (timeout_us < 0 || timeout_us > INT64_MAX / 2000)
        return wt_fail(WT_ERR_BAD_ARG, "quiesce: timeout %lld us, want 0 (1 s) or more", (long long)timeout_us);
    wt__guard *guard = device->guard;
    pthread_mutex_lock(&guard->changing);
    wt_status status = WT_OK;
    if (atomic_load(&guard->armed))
        status = run_at_safe_point(device, function, user, timeout_us ? timeout_us : DEFAULT_TIMEOUT_US);
    else if (function)
        status = function(user);
    pthread_mutex_unlock(&guard->changing);
    return status;
}

void wt_arm_stats(const wt_device *device, wt_arm_counts *counts)
{
    wt__guard *guard = device->guard;
    *counts = (wt_arm_counts){.armed = atomic_load(&guard->armed)};
    for (int k = 0; k < WT_N_ARM_CALLS; k++) {
        counts->refused[k] = atomic_load_explicit(&guard->refused[k], memory_order_relaxed);
        counts->n_refused += counts->refused[k];
    }
    pthread_mutex_lock(&guard->mutex);
    counts->n_put_aside = guard->n_put_aside;
    counts->n_waiting = guard->n_waiting;
    counts->n_quiesces = guard->n_quiesces;
    counts->quiesce_last_us = guard->quiesce_last_us;
    counts->quiesce_max_us = guard->quiesce_max_us;
    pthread_mutex_unlock(&guard->mutex);
}
