/// Copies between host and device beside the work: own streams for each direction, priorities, chunks, cancellation.
///
/// A request waits in the queue of its direction, highest priority first, equal ones in the order they came. Its copy
/// is cut into chunks; before each chunk the queue is looked at again, so an urgent request overtakes a long one within
/// the chunks in flight. While the device is armed no chunk is larger than WT_TRANSFER_ARMED_CHUNK_BYTES.
///
/// A request may belong to a partition. Then it counts among its max_pending_transfers until it is final, and its
/// copies take no more of the time of their direction than the partition's bandwidth_share.
///
/// Three threads belong to it: one for each direction, and one that calls back. No call to this header is for the audio
/// thread.
#ifndef WARPTONE_TRANSFER_H
#define WARPTONE_TRANSFER_H

#include <warptone/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WT_TRANSFER_CHUNK_BYTES = 4 << 20,        ///< the default
    WT_TRANSFER_ARMED_CHUNK_BYTES = 64 << 10, ///< for while audio is running
};

typedef struct wt_transfer wt_transfer;

/// A handle; copy it freely. {0} is no request.
typedef struct wt_transfer_ticket {
    uint64_t engine;
    uint32_t slot, generation;
} wt_transfer_ticket;

typedef enum wt_transfer_direction {
    WT_TRANSFER_TO_DEVICE,
    WT_TRANSFER_TO_HOST,
    WT_N_TRANSFER_DIRECTIONS
} wt_transfer_direction;

typedef enum wt_transfer_state {
    WT_TRANSFER_QUEUED,
    WT_TRANSFER_RUNNING,
    WT_TRANSFER_COMPLETED, ///< this and the following are final
    WT_TRANSFER_FAILED,
    WT_TRANSFER_CANCELLED,
} wt_transfer_state;

typedef struct wt_transfer_config {
    size_t chunk_bytes; ///< 0 = 4 MB, at least 4096
    int max_requests;   ///< queued and remembered requests, 0 = 1024, at most 2^16
    int max_in_flight;  ///< chunks on a stream at a time, at most 64; 0 = 1 MB of them, but at least 2, at most 16
} wt_transfer_config;

/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY, WT_ERR_CUDA.  [worker, not armed]
WT_CHECKED wt_status wt_transfer_create(wt_device *device, const wt_transfer_config *config, wt_transfer **transfer);
/// Cancels what is queued, waits for the chunks in flight and for the callbacks. NULL is allowed; not from a callback.
/// [worker]
void wt_transfer_destroy(wt_transfer *transfer);

typedef struct wt_transfer_request {
    wt_transfer_direction direction;
    uintptr_t device_address; ///< as kernels use it: wt_buffer_address, wt_pool_access; borrowed until final
    void *host;               ///< borrowed until final. Pinned memory copies at full rate; ordinary memory holds the
                              ///< direction's thread during each chunk
    size_t size_bytes;        ///< 1 or more
    int priority;             ///< higher goes first
    wt_event *after;          ///< start after its last record; NULL = at once. Borrowed until started
    /// Called once when the request is final: WT_OK, WT_ERR_CANCELLED or what failed. May submit and cancel.
    void (*done)(void *user, wt_transfer_ticket ticket, wt_status status);
    void *user;
    wt_partition *partition; ///< whose limits hold; NULL = none. Borrowed until final
} wt_transfer_request;

/// Queue a request; it is copied. `ticket` may be NULL.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_FULL (max_requests, or the partition's max_pending_transfers, are not final yet).
/// [worker]
WT_CHECKED wt_status wt_transfer_submit(wt_transfer *transfer, const wt_transfer_request *request,
                                        wt_transfer_ticket *ticket);
/// A queued request is final at once, a running one when its chunks in flight have landed: then the destination is
/// partly written, or, if these were its last chunks, the request completes.
/// Errors: WT_ERR_BAD_ARG (not, or no longer, known), WT_ERR_STATE (final already).  [worker]
WT_CHECKED wt_status wt_transfer_cancel(wt_transfer *transfer, wt_transfer_ticket ticket);
/// Wait until it is final. Returns WT_OK, WT_ERR_CANCELLED or what failed; WT_ERR_BAD_ARG when not, or no longer, known
/// (the last max_requests are).  [worker]
WT_CHECKED wt_status wt_transfer_wait(wt_transfer *transfer, wt_transfer_ticket ticket);

typedef struct wt_transfer_info {
    wt_transfer_state state;
    wt_transfer_direction direction;
    size_t size_bytes, done_bytes;
    int position; ///< requests of its direction before it while queued, else 0
} wt_transfer_info;
/// Errors: WT_ERR_BAD_ARG (not, or no longer, known).  [any but rt]
WT_CHECKED wt_status wt_transfer_query(wt_transfer *transfer, wt_transfer_ticket ticket, wt_transfer_info *info);

/// Size of the chunks issued from now on; 0 = back to the configured one. On an armed device they are no larger than
/// WT_TRANSFER_ARMED_CHUNK_BYTES anyway. Errors: WT_ERR_BAD_ARG below 4096.  [any but rt]
WT_CHECKED wt_status wt_transfer_set_chunk_bytes(wt_transfer *transfer, size_t chunk_bytes);

typedef struct wt_transfer_stats {
    uint64_t n_bytes;  ///< copied
    double busy_us;    ///< device time while chunks were in flight, by events
    double rate_gbps;  ///< n_bytes / busy_us in 10^9 bytes a second; 0 before the first
    uint64_t n_chunks, n_submitted, n_completed, n_failed, n_cancelled;
    int n_queued, n_running, n_in_flight; ///< n_in_flight in chunks
} wt_transfer_stats;
/// Of all requests of a direction since create.  [any but rt]
void wt_transfer_query_stats(wt_transfer *transfer, wt_transfer_direction direction, wt_transfer_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
