/// How a layout is planned, and what a backend does to make one.
#ifndef WT_PARTITION_INTERNAL_H
#define WT_PARTITION_INTERNAL_H

#include "device_internal.h"

#include <warptone/pacing.h>

enum { WT_MAX_UNITS = 1024 };

struct wt_partition {
    wt_layout *layout;
    char name[WT_PARTITION_NAME_BYTES];
    wt_partition_config config; ///< with defaults filled in
    int priority;
    atomic_int n_streams; ///< the variants' included
    bool idle;
    _Atomic size_t limits[WT__N_USES], used[WT__N_USES];
    pthread_mutex_t mutex; ///< guards what follows; inside the mutex of a member, which is only tried from here
    wt__member *members;
    wt_pacer pacers[WT__N_LINKS];
    wt__copied copied;
};

/// partition_use.c: make and take down what counts the uses of a partition; set the limits of `config`.
void wt__partition_uses_init(wt_partition *partition);
void wt__partition_uses_term(wt_partition *partition);
void wt__partition_uses_limit(wt_partition *partition);
/// Errors: WT_ERR_STATE naming the partition while pools, dispatches or transfers use it.
wt_status wt__partition_uses_none(wt_partition *partition);
/// Errors: WT_ERR_QUOTA when more is in use than `config` allows.
wt_status wt__partition_uses_fit(const wt_partition *partition, const wt_partition_config *config);

/// A device's SMs (or processors), cut into equal units and a rest that fills none.
typedef struct wt__units {
    int n_units, unit_sms, rest_sms;
} wt__units;

/// Some of them.
typedef struct wt__unit_set {
    bool rest;
    bool has[WT_MAX_UNITS];
} wt__unit_set;

/// What each partition of a layout gets.
typedef struct wt__plan {
    wt__unit_set sets[WT_LAYOUT_MAX_PARTITIONS];
    int unassigned_sms;
} wt__plan;

/// Check a whole configuration, without a device's help.
wt_status wt__layout_check(const wt_layout_config *config, const wt_device_info *info);
/// Deal out the units. `config` was checked. Errors: WT_ERR_QUOTA with what is left.
wt_status wt__layout_plan(const wt_layout_config *config, const wt_device_info *info, const wt__units *units,
                          wt__plan *plan);
/// Where nobody has SMs of his own nothing is dealt out, and many may share few: only what is asked for is added up.
/// Errors: WT_ERR_QUOTA.
wt_status wt__layout_share(const wt_layout_config *config, const wt__units *units);

/// The cut of a device, and a slice of it in which streams run; both belong to the backend.
typedef struct wt__cut wt__cut;
typedef struct wt__slice wt__slice;

typedef struct wt__slicing {
    /// Not `confined`: units are single SMs, and `cut` is enough for slices of the whole device.
    wt_status (*cut)(wt_device *device, bool confined, bool fine, wt__cut **cut, wt__units *units);
    void (*cut_free)(wt__cut *cut); ///< its slices are gone; NULL is allowed
    /// `set` NULL = the whole device, unconfined. `n_sms`: really got.
    wt_status (*slice_create)(wt_device *device, const wt__cut *cut, const wt__unit_set *set, int priority,
                              wt__slice **slice, int *n_sms);
    void (*slice_destroy)(wt_device *device, wt__slice *slice); ///< its streams are gone; NULL is allowed
    wt_status (*stream_create)(wt_device *device, wt__slice *slice, int priority, wt_stream **stream);
    wt_status (*stream_move)(wt_stream *stream, wt__slice *slice, int priority);
} wt__slicing;

extern const wt__slicing wt__cuda_slicing, wt__cpu_slicing;

#endif
