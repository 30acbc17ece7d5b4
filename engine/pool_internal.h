/// The pool's books (pool_blocks.c), where its memory comes from (pool_memory.c, pool_memory_cuda.c) and the public
/// calls (pool.c, pool_arena.c).
///
/// Order between streams. A *mark* is a number of the pool's one counter, taken when something was queued on a stream
/// that the pool must come after (a free, a release of an access, a copy of its own). A known stream has one event, and
/// the number at which it was last recorded: a record made after a mark covers it. So freeing costs no driver call; the
/// event is recorded only when another stream wants the memory, and then perhaps later than needed, never earlier.
///
/// Stream 0 is the pool's own: all copies of evictions and restores, and all allocation from and return to the device,
/// are ordered there, so what one block gives up the next may take although nothing has run yet.
#ifndef WT_POOL_INTERNAL_H
#define WT_POOL_INTERNAL_H

#include "device_internal.h"

#include <pthread.h>
#include <warptone/pool.h>

enum {
    WT__MAX_STREAMS = 64,  ///< one bit each in a block's `users`; the first is the pool's own
    WT__MAX_CLASSES = 160, ///< 256 bytes .. 2^47, four to a doubling
    WT__EXACT = -1,        ///< class of an arena: its own size
    WT__NONE = -1,
    WT__OWN = 0,           ///< index of the pool's own stream
    WT__MAX_SLABS = 64,
};

typedef enum wt__space { WT__DEVICE, WT__PINNED, WT__N_SPACES } wt__space;

typedef enum wt__slot_state { WT__UNUSED, WT__CACHED, WT__RESIDENT, WT__EVICTED } wt__slot_state;

typedef struct wt__slot {
    uint64_t users;      ///< bit s: stream s is ordered after `ready` and may still use the memory
    uint64_t ready;      ///< mark on `owner` from which the memory may be used
    uint64_t last;       ///< mark after the last use, on any of `users`
    uintptr_t address;
    size_t bytes, asked;
    uint32_t generation; ///< counts uses of the slot
    int next, prev;      ///< in a list of free blocks (next only) or in the LRU list
    int host;            ///< slot of the copy in pinned memory while EVICTED
    int n_accesses;
    short class;
    unsigned char state, space, owner;
    bool no_evict;
} wt__slot;

typedef struct wt__pool_stream {
    wt_stream *stream; ///< NULL = entry not in use
    wt_event *event;
    uint64_t recorded, done; ///< marks at the event's last record, and covered by one known to be reached
    int lists[WT__N_SPACES][WT__MAX_CLASSES]; ///< newest free block
} wt__pool_stream;

/// Free stretches of one piece of memory, sorted; nothing is written into the memory itself.
typedef struct wt__region {
    uintptr_t base;
    size_t size;
    struct wt__hole {
        size_t begin, size;
    } *holes;
    int n_holes, max_holes;
} wt__region;

typedef struct wt__slab {
    wt_buffer *buffer;
    wt__region region;
} wt__slab;

typedef struct wt__account {
    size_t limit, used, cached;
    int n_cached[WT__MAX_CLASSES];
    int n_slabs;
    size_t slab_bytes;
    wt__slab slabs[WT__MAX_SLABS];
} wt__account;

struct wt_pool {
    wt__member member; ///< of the partition
    wt__handle handle;
    wt_device *device;
    wt_partition *partition; ///< NULL = none
    bool joined;             ///< a member, with a hard quota taken from the partition's
    pthread_mutex_t mutex;
    char name[32];
    uint64_t tag; ///< in every handle
    uint64_t mark;
    bool soft, no_eviction;
    int max_blocks, max_streams, n_classes;
    void (*on_pressure)(void *user, wt_pool_level level);
    void *user;
    size_t soft_bytes, hard_bytes; ///< thresholds of the levels
    wt_pool_stats stats;
    wt__account accounts[WT__N_SPACES];
    size_t evictable; ///< bytes in the LRU list
    int lru_oldest, lru_newest;
    int n_slots, max_slots, unused; ///< ever used; and a list of those unused again
    wt__slot *slots;
    int n_streams, last_stream;
    wt__pool_stream *streams;
    void *cuda_pool; ///< pool_memory_cuda.c
};

// ---- pool_blocks.c; all with the lock held

int wt__pool_class(size_t bytes);
/// Later work of stream `to` comes after mark `mark` of stream `from`. Errors: WT_ERR_STATE (`from` is being captured).
WT_CHECKED wt_status wt__pool_order(wt_pool *pool, int from, uint64_t mark, int to);
/// A RESIDENT slot of a class, or of exactly `bytes` with WT__EXACT, that `stream` may use at once.
WT_CHECKED wt_status wt__pool_take(wt_pool *pool, wt__space space, int class, size_t bytes, int stream, int *slot);
/// To the free list of its owner; the handle ends.
void wt__pool_cache(wt_pool *pool, int slot);
void wt__pool_end(wt_pool *pool, int slot); ///< The slot is nobody's.
/// Return a RESIDENT or CACHED (already unlinked) slot's memory to the device and end the slot.
void wt__pool_give(wt_pool *pool, int slot);
bool wt__pool_trim_one(wt_pool *pool, wt__space space);
WT_CHECKED wt_status wt__pool_evict(wt_pool *pool, int slot);
/// Bring an EVICTED slot back by a copy on `stream`, whose it then is.
WT_CHECKED wt_status wt__pool_restore(wt_pool *pool, int slot, int stream);
/// Free the host copy of an EVICTED slot, as of the stream's present end.
void wt__pool_drop_copy(wt_pool *pool, int slot, int stream);
void wt__pool_lru_add(wt_pool *pool, int slot); ///< as the newest, if it may be evicted
void wt__pool_lru_remove(wt_pool *pool, int slot);

// ---- pool.c

/// The stream's index, entering it when new. Errors: WT_ERR_BAD_ARG (another device), WT_ERR_FULL.
WT_CHECKED wt_status wt__pool_find_stream(wt_pool *pool, wt_stream *stream, int *index);
void wt__pool_enter(wt_pool *pool);
void wt__pool_leave(wt_pool *pool); ///< Unlocks and reports a new level.

// ---- pool_memory.c, pool_memory_cuda.c

/// Memory as of the own stream's present end. Errors: WT_ERR_NO_MEMORY.
WT_CHECKED wt_status wt__pool_memory_take(wt_pool *pool, wt__space space, size_t bytes, uintptr_t *address);
/// Back, as of the own stream's present end.
void wt__pool_memory_give(wt_pool *pool, wt__space space, uintptr_t address, size_t bytes);
WT_CHECKED wt_status wt__pool_memory_open(wt_pool *pool, bool pinned_now);
void wt__pool_memory_close(wt_pool *pool); ///< Streams are idle; everything was given back.
size_t wt__pool_memory_reserved(const wt_pool *pool);
bool wt__pool_is_captured(const wt_pool *pool, const wt_stream *stream);

WT_CHECKED wt_status wt__region_create(wt__region *region, uintptr_t base, size_t size, int max_holes);
void wt__region_destroy(wt__region *region);
bool wt__region_take(wt__region *region, size_t size, uintptr_t *address); ///< false = no hole is large enough
void wt__region_give(wt__region *region, uintptr_t address, size_t size);

WT_CHECKED wt_status wt__cuda_pool_open(wt_pool *pool);
void wt__cuda_pool_close(wt_pool *pool);
WT_CHECKED wt_status wt__cuda_pool_take(wt_pool *pool, size_t bytes, uintptr_t *address);
void wt__cuda_pool_give(wt_pool *pool, uintptr_t address);
size_t wt__cuda_pool_reserved(const wt_pool *pool);
bool wt__cuda_is_captured(const wt_stream *stream);

#endif
