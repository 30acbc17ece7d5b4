/// Partitions: named, disjoint slices of one device, each with its own SMs (processors, on the CPU backend) and limits.
///
///     wt_partition_config two[] = {{.name = "audio", .tier = WT_TIER_GUARANTEED, .n_sms = 8}, {.name = "llm"}};
///     wt_layout_create(device, &(wt_layout_config){.partitions = two, .n_partitions = 2}, &layout);
///     wt_partition_stream_create(wt_layout_find(layout, "audio"), NULL, &stream);
///
/// A layout makes all partitions of a device at once, since the driver cuts SMs that way. What a partition confines is
/// the SMs; L2, memory bandwidth, copy engines and clocks stay shared (docs/partitions.md). On CUDA 12.4 and newer a
/// partition is a green context, which is never made current; on older drivers its streams have a priority, no more. On
/// the CPU backend it is a pool of threads pinned to processors, with a nice value by tier where that is permitted.
#ifndef WARPTONE_PARTITION_H
#define WARPTONE_PARTITION_H

#include <warptone/device.h>
#include <warptone/tier.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_layout wt_layout;
typedef struct wt_partition wt_partition; ///< belongs to its layout and lives as long

enum { WT_LAYOUT_MAX_PARTITIONS = 16, WT_LAYOUT_MAX_LENDERS = 2, WT_PARTITION_NAME_BYTES = 32 };

typedef enum wt_isolation {
    WT_ISOLATION_AUTO,     ///< SMs where the device can, else priority
    WT_ISOLATION_SMS,      ///< own SMs: green contexts, or pinned threads
    WT_ISOLATION_PRIORITY, ///< all SMs, streams (threads) in priority bands
    WT_ISOLATION_NONE,     ///< all SMs, one priority: for comparison
} wt_isolation;

typedef enum wt_band { WT_BAND_BY_TIER, WT_BAND_LOW, WT_BAND_MIDDLE, WT_BAND_HIGH } wt_band;

typedef struct wt_partition_config {
    const char *name;          ///< 1 .. 31 characters, unlike the others; copied
    wt_tier tier;              ///< 0 = best effort
    int n_sms;                 ///< at least this many, rounded up to the device's granularity
    double sm_share;           ///< instead of n_sms: 0 .. 1 of the device, rounded up while that many are left;
                               ///< both 0 = what the others leave
    size_t memory_quota_bytes; ///< of all pools made for the partition together; 0 = no limit
    double bandwidth_share;    ///< 0 .. 1 of the time of each copy direction, and what a pacer is given; 0 = no limit
    int max_streams;           ///< that wt_partition_stream_create makes, 0 = 16
    int max_pending_kernels;   ///< launches in flight of all its dispatches together; more are queued there; 0 = 1024
    int max_pending_transfers; ///< not final yet, of all transfer engines; more are refused; 0 = 64
    wt_band band;              ///< of its streams; 0 = high, middle, low by tier
    bool lends;   ///< its SMs go to the borrower while it is idle; not for best effort; at most 2 of a layout
    bool borrows; ///< best effort only, at most one of a layout
} wt_partition_config;

typedef struct wt_layout_config {
    const wt_partition_config *partitions; ///< [n_partitions], copied
    int n_partitions;                      ///< 1 .. WT_LAYOUT_MAX_PARTITIONS
    wt_isolation isolation; ///< of all, because one partition on all SMs would undo the confinement of the others
    bool fine;              ///< cut finer (2 SMs on sm_90), at the price of large thread block clusters
    bool overcommit;        ///< shares and quotas may add up to more than the device; SMs are then shared
} wt_layout_config;

/// Make all partitions. The device is borrowed until destroy.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_QUOTA (more SMs, memory or bandwidth than is left), WT_ERR_UNSUPPORTED (own SMs
/// wanted of a driver older than CUDA 12.4), WT_ERR_ARMED, WT_ERR_NO_MEMORY, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_layout_create(wt_device *device, const wt_layout_config *config, wt_layout **layout);

/// New shares for the same partitions (names, tiers, lending and order unchanged), or another cut. Streams keep their
/// handles and move; graphs captured before do not and must be captured again (`generation` counts up). What was made
/// for a partition's number of SMs (wt_matmul, wt_nn, wt_arrays, wt_cublaslt) keeps that number, and from whole units
/// to `fine` is refused by CUDA where it has larger clusters: make it anew. A session of a language model does all of
/// that itself (docs/llm.md).
/// Errors: WT_ERR_STATE while work is pending in any partition or a step is open, WT_ERR_QUOTA (a memory quota below
/// what its pools hold), and those of create; then nothing is changed.  [worker; nobody may queue work meanwhile]
WT_CHECKED wt_status wt_layout_resize(wt_layout *layout, const wt_layout_config *config);

/// Destroy the partitions. NULL is allowed.
/// Errors: WT_ERR_STATE with work in flight, or while streams, pools, dispatches or transfers of a partition exist;
/// WT_ERR_ARMED.  [worker]
WT_CHECKED wt_status wt_layout_destroy(wt_layout *layout);

enum { WT_LAYOUT_PRESET_PARTITIONS = 3 };
/// A preset of `info`'s size into `partitions` and `config`, which may be changed before create:
/// "audio+speech+llm" (of 132 SMs: 8, 56, 64 and what is over), "audio+llm" (8, the rest), "all" (one partition).
/// Errors: WT_ERR_NOT_FOUND naming the presets, WT_ERR_QUOTA (the device is too small).  [any]
WT_CHECKED wt_status wt_layout_preset(const char *name, const wt_device_info *info,
                                      wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS],
                                      wt_layout_config *config);

typedef struct wt_layout_info {
    wt_isolation isolation; ///< in effect: never AUTO
    int n_partitions;
    int n_sms;          ///< of the device
    int unit_sms;       ///< SMs are given in units of so many
    int remainder_sms;  ///< that fill no unit; they go to the last partition without a share, else to nobody
    int unassigned_sms; ///< in no partition
    int generation;     ///< 1, and 1 more with every resize
} wt_layout_info;

typedef struct wt_partition_info {
    char name[WT_PARTITION_NAME_BYTES];
    wt_tier tier;
    wt_isolation isolation;
    int n_sms;                 ///< really got, as the driver tells; all of the device without confinement
    size_t memory_quota_bytes; ///< 0 = none
    double bandwidth_share;    ///< 0 = no limit
    int max_streams, max_pending_kernels, max_pending_transfers;
    int priority;  ///< of its streams: -1, 0 or 1
    int n_streams; ///< that exist
    size_t memory_used_bytes;                   ///< of the quota: of hard pools all theirs, of soft ones what they hold
    int n_pending_kernels, n_pending_transfers; ///< now; a launch until its dispatch has noticed its end
    uint64_t copied_bytes;                      ///< by transfers of the partition
    double copied_us;                           ///< and the time of the link that took, both directions added
    uint64_t n_throttled;                       ///< times a transfer had to wait for the bandwidth share
    bool fine; ///< its SMs were cut finer (wt_layout_config): there is no room for large thread block clusters
    int generation; ///< of the layout: 1, and 1 more with every resize
    bool lends, borrows;
    bool idle; ///< marked idle
    bool lent; ///< a step of the borrower runs on its SMs, or is about to
} wt_partition_info;

void wt_layout_get_info(const wt_layout *layout, wt_layout_info *info);  ///< [any but rt]
wt_partition *wt_layout_at(const wt_layout *layout, int index);          ///< NULL outside 0 .. n_partitions - 1.  [any]
wt_partition *wt_layout_find(const wt_layout *layout, const char *name); ///< NULL when there is none.  [any]
void wt_partition_get_info(wt_partition *partition, wt_partition_info *info); ///< [any but rt]
wt_device *wt_partition_device(const wt_partition *partition);                ///< [any]

/// An ordinary stream whose work stays in the partition, also when it is captured into a graph and replayed from
/// another stream. `config` NULL or priority 0 = the partition's priority. Destroy it with wt_stream_destroy. Errors:
/// WT_ERR_FULL (max_streams), WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_partition_stream_create(wt_partition *partition, const wt_stream_config *config,
                                                wt_stream **stream);
/// True when a stream of the partition has work queued or running.  [worker]
bool wt_partition_is_busy(wt_partition *partition);

// ---- lending: idle SMs for best-effort work, one step at a time

/// Say whether a partition that lends needs its SMs. After `true` it must queue nothing. After `false` it may queue at
/// once; the borrower has the SMs for the rest of the step it is in, at a lower priority, and not for the next.
/// Errors: WT_ERR_STATE (idle, but work is pending), WT_ERR_BAD_ARG (it does not lend).  [worker]
WT_CHECKED wt_status wt_partition_idle(wt_partition *partition, bool idle);

typedef struct wt_partition_step {
    wt_stream *stream; ///< borrowed until the layout is destroyed
    int variant;       ///< which of the borrower's streams: bit k = with the SMs of the layout's k-th lender
    int n_sms;         ///< of that stream
} wt_partition_step;

/// Number of streams a borrower changes between (1 for other partitions), and each of them: a graph must be captured on
/// every one, since a graph keeps the SMs it was captured on. NULL outside 0 .. n_variants - 1.  [worker]
int wt_partition_n_variants(const wt_partition *partition);
wt_stream *wt_partition_variant_stream(const wt_partition *partition, int variant);
int wt_partition_variant_sms(const wt_partition *partition, int variant); ///< of that stream; 0 for NULL  [worker]

/// Begin a step: the borrower's widest stream whose lenders are all idle. It waits, on the device, for the step before.
/// Errors: WT_ERR_STATE (a step is open), WT_ERR_BAD_ARG (it does not borrow), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_partition_step_begin(wt_partition *partition, wt_partition_step *step);
/// All work of the step is queued. Errors: WT_ERR_STATE (no step is open), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_partition_step_end(wt_partition *partition);

#ifdef __cplusplus
}
#endif
#endif
