/// Memory pool of one partition: device blocks by handle, in stream order, under a quota, with eviction to page-locked
/// host memory and their return on access. The same on a GPU and on the CPU backend. docs/memory.md tells the whole.
///
/// A block is a handle, not an address: its memory may be moved out and come back elsewhere. wt_pool_access gives the
/// address and pins the block until wt_pool_release_access. A handle that was freed, or belongs to another pool, is
/// refused with WT_ERR_BAD_ARG by every call.
///
/// Streams: a block is allocated, accessed and freed *on* a stream, and the pool orders everything it does to the
/// memory after what was queued there. A stream that a pool has seen must be handed to wt_pool_detach_stream before it
/// is destroyed. While a graph is recorded on the stream, only blocks that are not moved out can be accessed on it, and
/// uploads and downloads are recorded; hold an access for as long as the graph lives.
///
/// Every function takes the pool's lock for a moment and may be called from any thread but the audio thread.
#ifndef WARPTONE_POOL_H
#define WARPTONE_POOL_H

#include <warptone/partition.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_pool wt_pool;
typedef struct wt_pool_arena wt_pool_arena;

/// A handle; copy it freely. {0} is no block of any pool.
typedef struct wt_pool_block {
    uint64_t pool;
    uint32_t slot, generation;
} wt_pool_block;

/// How full the quota is with blocks that are in use: the callbacks' argument.
typedef enum wt_pool_level {
    WT_POOL_CALM, ///< below 80 %
    WT_POOL_SOFT, ///< 80 % and more
    WT_POOL_HARD, ///< 95 % and more
} wt_pool_level;

typedef struct wt_pool_config {
    const char *name;    ///< stands in sentences, "pool NAME: ..."; NULL = "memory"; copied, 31 bytes kept
    size_t quota_bytes;  ///< 1 .. the device's memory; 0 = what the partition's quota leaves (soft: all of that quota)
    bool soft;           ///< default hard: the quota is taken at create and guaranteed. soft: taken as it is used
    wt_partition *partition; ///< whose memory quota all its pools share: hard ones take theirs at create, soft ones as
                             ///< they use it. NULL = none. Borrowed until destroy
    size_t pinned_bytes; ///< most page-locked host memory, 0 = twice the quota: two full sets change places
    bool pinned_now;     ///< take all of it at create, so that nothing is page-locked later (default: as it is used)
    bool no_eviction;    ///< refuse instead of moving blocks out
    int max_blocks;      ///< live blocks and arenas, 0 = 4096, at most 2^20
    int max_streams;     ///< streams known at a time, 0 = 16, at most 63
    /// Called after a call that changed the level, by its thread, outside the lock; it may call the pool. Two threads
    /// may be in it at once: wt_pool_query has the present level.
    void (*on_pressure)(void *user, wt_pool_level level);
    void *user;
} wt_pool_config;

/// Errors: WT_ERR_BAD_ARG (sizes, a partition of another device), WT_ERR_QUOTA (more than the partition has left),
/// WT_ERR_NO_MEMORY (a hard quota that the device cannot give now), WT_ERR_UNSUPPORTED (a GPU or driver without memory
/// pools).  [worker, not armed]
WT_CHECKED wt_status wt_pool_create(wt_device *device, const wt_pool_config *config, wt_pool **pool);
/// Waits for what is queued on the streams it knows; blocks that were not freed go with it, arenas must be destroyed
/// before. On an armed device its memory is put aside until disarming or the next quiesce (arm.h). NULL is allowed.
/// [worker]
void wt_pool_destroy(wt_pool *pool);

typedef struct wt_pool_request {
    size_t size_bytes; ///< 1 .. the quota (for pinned memory its limit)
    wt_memory memory;  ///< WT_MEMORY_DEVICE (0) or WT_MEMORY_PINNED
    bool no_evict;     ///< never move this block out
} wt_pool_request;

/// Take a block for use on `stream`. Its bytes are undefined. 64-byte aligned, device memory of a GPU 256.
/// Sizes are rounded up to classes 256, 320, 384, 448, 512, 640 ... bytes: at most a quarter more than asked above 256.
/// Errors: WT_ERR_BAD_ARG (size, stream of another device), WT_ERR_QUOTA (what is in use and cannot be moved out leaves
/// too little; nothing was moved), WT_ERR_NO_MEMORY, WT_ERR_FULL (max_blocks, max_streams).  [worker]
WT_CHECKED wt_status wt_pool_allocate(wt_pool *pool, const wt_pool_request *request, wt_stream *stream,
                                      wt_pool_block *block);

/// Give a block back. What is queued on `stream` and on the streams that accessed the block may still use the memory.
/// Errors: WT_ERR_BAD_ARG (freed already, another pool's), WT_ERR_STATE (an access was not released).  [worker]
WT_CHECKED wt_status wt_pool_free(wt_pool *pool, wt_pool_block block, wt_stream *stream);

/// Bring the block back if it was moved out, keep it from being moved, and get the address that kernels on `stream` use
/// (a CUdeviceptr on a GPU, a host pointer for pinned memory and on the CPU). Work queued on `stream` from now on may
/// use it; the order of reads and writes of several streams is the caller's. Valid until wt_pool_release_access;
/// accesses nest.
/// A block that was moved out comes back by a copy on `stream` itself.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_QUOTA or WT_ERR_NO_MEMORY (no room to bring it back; it stays moved out),
/// WT_ERR_STATE (it is moved out, and a graph is being recorded on `stream`).  [worker]
WT_CHECKED wt_status wt_pool_access(wt_pool *pool, wt_pool_block block, wt_stream *stream, uintptr_t *address);
/// The work that uses the address is queued on `stream`: the block may be moved out after it has run.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (not accessed).  [worker]
WT_CHECKED wt_status wt_pool_release_access(wt_pool *pool, wt_pool_block block, wt_stream *stream);

/// Queue a copy between a range of a block and host memory, with an access around it. Ordinary memory is borrowed until
/// `stream` passes this point. Errors: WT_ERR_BAD_ARG (range), those of wt_pool_access.  [worker]
WT_CHECKED wt_status wt_pool_upload(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t offset,
                                    const void *from, size_t size_bytes);
WT_CHECKED wt_status wt_pool_download(wt_pool *pool, wt_pool_block block, wt_stream *stream, size_t offset, void *to,
                                      size_t size_bytes);

/// Move a block out now, as a full quota would. A block that is out already stays so.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_STATE (accessed, pinned memory, no_evict), WT_ERR_QUOTA or WT_ERR_NO_MEMORY (no
/// page-locked memory for it).  [worker]
WT_CHECKED wt_status wt_pool_evict(wt_pool *pool, wt_pool_block block);

typedef struct wt_pool_block_info {
    size_t size_bytes, class_bytes; ///< asked for, and taken
    wt_memory memory;
    bool resident; ///< false = moved out
    int n_accesses;
} wt_pool_block_info;
/// Errors: WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt_pool_query_block(wt_pool *pool, wt_pool_block block, wt_pool_block_info *info);

/// Forget a stream before it is destroyed; waits until it is idle. A stream the pool never saw is fine.
/// Errors: WT_ERR_BAD_ARG (NULL), those of wt_stream_synchronize; it is forgotten all the same.  [worker]
WT_CHECKED wt_status wt_pool_detach_stream(wt_pool *pool, wt_stream *stream);

/// Give cached memory back to the driver's pool (a hard pool keeps it reserved all the same).  [worker]
void wt_pool_trim(wt_pool *pool);

typedef struct wt_pool_stats {
    size_t quota_bytes;
    size_t used_bytes;     ///< blocks and arenas in device memory, by class size
    size_t asked_bytes;    ///< the same by what was asked for
    size_t cached_bytes;   ///< freed and kept for reuse, within the quota
    size_t reserved_bytes; ///< held from the device: the quota when hard, else used + cached, as the driver tells
    size_t evicted_bytes;  ///< blocks moved out
    size_t peak_bytes;     ///< most of used_bytes
    size_t pinned_used_bytes, pinned_cached_bytes, pinned_reserved_bytes;
    double waste;      ///< 1 - asked / used, 0 .. 0.2 but for blocks below 256 bytes
    int n_blocks;      ///< live, arenas included
    int n_evicted;     ///< of these, moved out
    uint64_t n_allocations, n_frees, n_reuses, n_fresh, n_evictions, n_restores, n_refusals;
    uint64_t n_waits; ///< one stream made to wait for another
    wt_pool_level level;
} wt_pool_stats;
void wt_pool_query(wt_pool *pool, wt_pool_stats *stats); ///< [any but rt]

// ---- weights: one allocation, many ranges

/// Take `size_bytes` in one piece, not rounded to a class, never moved out and never cached; ready on every stream.
/// Errors as wt_pool_allocate.  [worker]
WT_CHECKED wt_status wt_pool_arena_create(wt_pool *pool, size_t size_bytes, wt_pool_arena **arena);
/// Give it back; its readers must have run or be ordered before `stream` (NULL: they have run). NULL arena is allowed.
/// [worker]
void wt_pool_arena_destroy(wt_pool_arena *arena, wt_stream *stream);
/// The next `size_bytes` (1 or more), aligned to `align_bytes` (power of two to 256, 0 = 256); borrowed until the arena
/// is destroyed.
/// Errors: WT_ERR_BAD_ARG, WT_ERR_FULL (what is left), WT_ERR_STATE (sealed).  [worker]
WT_CHECKED wt_status wt_pool_arena_take(wt_pool_arena *arena, size_t size_bytes, size_t align_bytes,
                                        uintptr_t *address);
/// Queue a copy of ordinary memory (borrowed until `stream` passes this point) to a range taken before.
/// Errors: WT_ERR_BAD_ARG (not within what was taken), WT_ERR_STATE (sealed).  [worker]
WT_CHECKED wt_status wt_pool_arena_upload(wt_pool_arena *arena, wt_stream *stream, uintptr_t address, const void *from,
                                          size_t size_bytes);
/// Queue a copy of a range taken before to ordinary memory, likewise borrowed. Errors: WT_ERR_BAD_ARG.  [worker]
WT_CHECKED wt_status wt_pool_arena_download(wt_pool_arena *arena, wt_stream *stream, uintptr_t address, void *to,
                                            size_t size_bytes);
/// From now on nothing more is taken or uploaded: the arena is read-only, for any number of readers.  [worker]
void wt_pool_arena_seal(wt_pool_arena *arena);
size_t wt_pool_arena_used_bytes(const wt_pool_arena *arena); ///< of what was taken  [any but rt]

#ifdef __cplusplus
}
#endif
#endif
