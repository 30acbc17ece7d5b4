/// What a backend implements. device.c checks arguments once and calls through wt__device_ops; each backend's structs
/// begin with the ones here.
#ifndef WT_DEVICE_INTERNAL_H
#define WT_DEVICE_INTERNAL_H

#include "guard.h"
#include "handle.h"

#include <stdatomic.h>
#include <warptone/device.h>
#include <warptone/kernel.h>
#include <warptone/partition.h>

enum { WT_MAX_ARGS_BYTES = 4096 }; ///< of one launch, as CUDA's own limit for parameters

/// One end of a copy: device memory at an address, or host memory (pinned or not) at a pointer.
typedef struct wt__place {
    bool on_device;
    uintptr_t address;
} wt__place;

typedef struct wt__device_ops {
    void (*close)(wt_device *device);
    bool (*lost)(const wt_device *device); ///< NULL = never
    wt_status (*synchronize)(wt_device *device);
    wt_status (*buffer_create)(wt_device *device, wt_memory memory, size_t size_bytes, wt_buffer **buffer);
    void (*buffer_destroy)(wt_buffer *buffer);
    wt_status (*stream_create)(wt_device *device, int priority, wt_stream **stream);
    void (*stream_destroy)(wt_stream *stream);
    wt_status (*copy)(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes);
    wt_status (*fill)(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes);
    wt_status (*stream_synchronize)(wt_stream *stream);
    bool (*stream_idle)(const wt_stream *stream); ///< nothing is queued or running; true on a lost device
    /// So many commands with arguments of so many bytes in all can be queued now and nobody waits; NULL = not known.
    bool (*stream_takes)(const wt_stream *stream, int n_commands, size_t args_bytes);
    wt_status (*event_create)(wt_device *device, wt_event **event);
    void (*event_destroy)(wt_event *event);
    wt_status (*record)(wt_event *event, wt_stream *stream);
    wt_status (*wait)(wt_stream *stream, wt_event *event);
    bool (*event_done)(const wt_event *event);
    wt_status (*event_synchronize)(wt_event *event);
    wt_status (*elapsed_us)(const wt_event *begin, const wt_event *end, double *elapsed_us);
    const struct wt__slicing *slicing; ///< partition_internal.h
} wt__device_ops;

struct wt_device {
    const wt__device_ops *ops;
    wt_device_info info;
    wt__guard *guard;
    pthread_mutex_t mutex; ///< guards the list; held while waiting for all streams, so that none is destroyed meanwhile
    wt_stream *streams;
    atomic_int n_recording; ///< streams that a graph is being recorded on
};

struct wt_buffer {
    wt__aside aside;
    wt__handle handle;
    wt_device *device;
    wt_memory memory;
    size_t size_bytes;
    void *host;        ///< NULL for device memory of a GPU
    uintptr_t address; ///< where the device reaches it
};

struct wt_stream {
    wt__handle handle;
    wt_device *device;
    wt_stream *next;         ///< in the device's list
    wt_partition *partition; ///< that it runs in; NULL = none
    int priority;            ///< -1, 0 or 1
    _Atomic(struct wt_graph *) recording; ///< the graph that takes what is queued; NULL = none. Any thread asks
    _Atomic(const char *) last_kernel; ///< name of the kernel queued last; NULL = none yet, or forgotten
};

struct wt_event {
    wt_device *device;
    atomic_bool recorded;
};

/// Set up the common part and take it down: the list of streams, what is armed. `guard` is borrowed.
void wt__device_init(wt_device *device, const wt__device_ops *ops, const wt_device_info *info, wt__guard *guard);
void wt__device_term(wt_device *device);
/// Put a new stream in the device's list; wt_stream_destroy takes it out.
void wt__device_add_stream(wt_device *device, wt_stream *stream, wt_partition *partition, int priority);
bool wt__device_is_idle(wt_device *device);

/// A copy or fill whose range was checked: queued, or recorded while a graph is being recorded.
WT_CHECKED wt_status wt__stream_copy(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes);
WT_CHECKED wt_status wt__stream_fill(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes);

/// Of the partition's layout: 1, and 1 more with every resize.
int wt__partition_generation(const wt_partition *partition);
/// A partition hears that a stream of it is gone.
void wt__partition_forget(wt_partition *partition);

/// What a partition limits, counted over all pools, dispatches and transfers that are said to belong to it.
typedef enum wt__use { WT__USE_MEMORY, WT__USE_KERNELS, WT__USE_TRANSFERS, WT__N_USES } wt__use;
enum { WT__N_LINKS = 2 }; ///< to the device, to the host

/// Take so much, or nothing and false when the limit would be passed. A NULL partition limits nothing.  [any]
bool wt__partition_take(wt_partition *partition, wt__use use, size_t amount);
void wt__partition_give(wt_partition *partition, wt__use use, size_t amount);
size_t wt__partition_left(wt_partition *partition, wt__use use);  ///< SIZE_MAX without a limit
size_t wt__partition_limit(wt_partition *partition, wt__use use); ///< likewise
const char *wt__partition_name(const wt_partition *partition);

/// Embedded in what shares the partition's limits. `yield` gives back what it can spare without waiting; it may only
/// try to lock its own object, since the caller holds another one's lock.
typedef struct wt__member {
    struct wt__member *next;
    void (*yield)(struct wt__member *self, wt__use use);
} wt__member;

/// A partition with members is not destroyed. NULL partition: nothing is done.  [any but rt]
void wt__partition_join(wt_partition *partition, wt__member *member);
void wt__partition_leave(wt_partition *partition, wt__member *member);
/// Ask all members but this one to give back what they can spare.  [any but rt]
void wt__partition_ask(wt_partition *partition, const wt__member *asker, wt__use use);

typedef struct wt__copied {
    uint64_t n_bytes, n_throttled;
    double us; ///< device time of copies
} wt__copied;

/// Earliest time at which a copy of the partition may start on a link. NULL and partitions without a share: now.
int64_t wt__partition_copy_at(wt_partition *partition, int link, int64_t now_ns);
void wt__partition_copied(wt_partition *partition, int link, int64_t now_ns, size_t bytes, double us);
void wt__partition_throttled(wt_partition *partition); ///< a copy waited for its share

wt_status wt__cpu_device_query(wt_device_info *info);
wt_status wt__cpu_device_open(int n_threads, wt_device **device);
wt_status wt__cpu_stream_run(wt_stream *stream, wt_cpu_function function, const void *args, size_t args_bytes,
                             int n_items);

/// CUDA devices in this engine's order: usable ones first, then those below compute capability 8.0.
wt_status wt__cuda_device_count(int *n_usable, int *n_all);
wt_status wt__cuda_device_query(int ordinal, wt_device_info *info);
wt_status wt__cuda_device_open(int ordinal, wt_device **device);

#endif
