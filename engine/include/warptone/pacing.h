/// Pacing and slicing: a share of measured device time, and work cut into pieces of bounded duration.
///
/// All of it is arithmetic on figures the caller measured: no clock is read, no lock taken, no memory held but that of
/// a slice queue. One thread at a time per object; the scheduler calls them under its own lock.
#ifndef WARPTONE_PACING_H
#define WARPTONE_PACING_H

#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- a share of the device: a token bucket of measured device time

typedef struct wt_pacer_config {
    double share;    ///< of the device's time, above 0, at most 1
    double burst_us; ///< device time that may be saved up while idle, at most 1e9; 0 = 1000
} wt_pacer_config;

/// A token bucket: it fills with `share` nanoseconds of device time per nanosecond, up to the burst; measured time is
/// taken out after the work ran, so it may go below zero; work may start while it is not. Fields are private.
///
/// While there is always work, the device time used in any window differs from share * window by at most
/// burst + the longest single piece of work (times the pieces in flight at once). 3 points of 100 ms are 3 ms:
/// with the default burst of 1 ms, pieces up to 2 ms keep within them. Cut longer work with a wt_slicer.
typedef struct wt_pacer {
    double share, burst_ns, tokens_ns;
    int64_t filled_ns; ///< time up to which tokens_ns is right
} wt_pacer;

/// Start with a full bucket. Errors: WT_ERR_BAD_ARG for a share outside (0, 1] or a burst outside 0 .. 1e9.  [any]
WT_CHECKED wt_status wt_pacer_init(wt_pacer *pacer, const wt_pacer_config *config, int64_t now_ns);

/// Change the share from `now_ns` on; what is saved or owed stays. Errors: as wt_pacer_init.  [any]
WT_CHECKED wt_status wt_pacer_set_share(wt_pacer *pacer, double share, int64_t now_ns);

/// Earliest time at which the next piece may start; `now_ns` or earlier means at once.  [any]
WT_RT int64_t wt_pacer_ready_at(const wt_pacer *pacer, int64_t now_ns);

/// Take out what a piece of work was measured to use, after its event. Negative or non-finite times count as 0.  [any]
WT_RT void wt_pacer_charge(wt_pacer *pacer, int64_t now_ns, double measured_us);

// ---- pieces of bounded duration

typedef struct wt_slicer_config {
    double bound_us;       ///< a slice should not take longer, above 0
    int64_t granule_items; ///< slices are multiples of this (the last may be shorter), 0 = 1
    int64_t max_items;     ///< largest slice, 0 = no limit
    double us_per_item;    ///< measured before, 0 = begin with one granule and learn
    double margin;         ///< part of the bound kept free for noise, 0 = 0.1, below 1
} wt_slicer_config;

/// Chooses slice sizes from the cost of earlier ones. The cost per item follows a rise at once and a fall by a
/// sixteenth a slice, and a slice is at most twice the largest one measured, so that a first piece that was all launch
/// overhead, or an idle moment, leads to no slice far beyond the bound. Fields are private.
typedef struct wt_slicer {
    double target_us, us_per_item;
    int64_t granule_items, max_items, largest_items;
} wt_slicer;

/// Errors: WT_ERR_BAD_ARG naming the field.  [any]
WT_CHECKED wt_status wt_slicer_init(wt_slicer *slicer, const wt_slicer_config *config);

/// Items of the next slice when `items_left` remain: 1 .. items_left, and 0 when none do.  [any]
WT_RT int64_t wt_slicer_next(const wt_slicer *slicer, int64_t items_left);

/// Tell what a slice took. Calls with items < 1 or a time that is negative or not finite are ignored.  [any]
WT_RT void wt_slicer_measured(wt_slicer *slicer, int64_t items, double measured_us);

// ---- several sliced works on one stream: by priority, in turn within one

typedef struct wt_slice_queue wt_slice_queue;

typedef struct wt_slice {
    int work;            ///< number from wt_slice_queue_add
    int64_t offset_item; ///< first item of the slice
    int64_t n_items;
} wt_slice;

/// A queue for up to `capacity` works (1 .. 1024). Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_slice_queue_create(int capacity, wt_slice_queue **queue);
void wt_slice_queue_destroy(wt_slice_queue *queue); ///< NULL is allowed.  [any but rt]

/// Add a work of `n_items` (1 or more). Higher priorities go first. `slicer` is copied.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_FULL.  [worker]
WT_CHECKED wt_status wt_slice_queue_add(wt_slice_queue *queue, const wt_slicer *slicer, int priority, int64_t n_items,
                                        int *work);

/// The next slice: of the highest priority, the work that waited longest. A work has at most one slice out.
/// Errors: WT_ERR_NOT_FOUND when nothing waits (no message is written).  [worker]
WT_CHECKED wt_status wt_slice_queue_next(wt_slice_queue *queue, wt_slice *slice);

/// Report a slice as run. `*items_left` 0: the work is complete and its number is free; the pointer may be NULL.
/// Errors: WT_ERR_BAD_ARG (no such work), WT_ERR_STATE (it has no slice out).  [worker]
WT_CHECKED wt_status wt_slice_queue_done(wt_slice_queue *queue, int work, double measured_us, int64_t *items_left);

/// Take a work out; a slice of it that is out must still be reported, then its number is free.
/// Errors: WT_ERR_BAD_ARG (no such work).  [worker]
WT_CHECKED wt_status wt_slice_queue_remove(wt_slice_queue *queue, int work);

#ifdef __cplusplus
}
#endif
#endif
