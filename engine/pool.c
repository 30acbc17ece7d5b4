// The public calls: arguments and handles are checked here, under the lock.
#include "pool_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/clock.h>

enum { DEFAULT_BLOCKS = 4096, MAX_BLOCKS = 1 << 20, DEFAULT_STREAMS = 16, SLOTS_PER_BLOCK = 3 };

static const size_t max_quota = (size_t)1 << 47; // the top class

// ---- lock and level

void wt__pool_enter(wt_pool *p) { pthread_mutex_lock(&p->mutex); }

void wt__pool_leave(wt_pool *p)
{
    size_t used = p->accounts[WT__DEVICE].used;
    if (used > p->stats.peak_bytes) p->stats.peak_bytes = used;
    wt_pool_level level = used >= p->hard_bytes ? WT_POOL_HARD : used >= p->soft_bytes ? WT_POOL_SOFT : WT_POOL_CALM;
    bool report = level != p->stats.level && p->on_pressure;
    p->stats.level = level;
    pthread_mutex_unlock(&p->mutex);
    if (report) p->on_pressure(p->user, level);
}

// ---- create, destroy

/// Different for every pool of a process, also for one that lies where another lay.
static uint64_t make_tag(const wt_pool *p)
{
    uint64_t x = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u + (uint64_t)wt_clock_now_ns(NULL);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; // splitmix64's finaliser, Steele et al. 2014
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) | 1;
}

/// A quota of 0 is what the partition has to give.
static size_t quota_of(const wt_pool_config *c)
{
    if (c->quota_bytes || wt__partition_limit(c->partition, WT__USE_MEMORY) == SIZE_MAX) return c->quota_bytes;
    return c->soft ? wt__partition_limit(c->partition, WT__USE_MEMORY)
                   : wt__partition_left(c->partition, WT__USE_MEMORY);
}

static wt_status check_config(const wt_device *device, const wt_pool_config *c, const char *name)
{
    if (c->partition && wt_partition_device(c->partition) != device)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: partition %s belongs to another device", name,
                       wt__partition_name(c->partition));
    size_t most = device->info.memory_bytes < max_quota ? device->info.memory_bytes : max_quota;
    if (c->quota_bytes < 1 || c->quota_bytes > most)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: quota of %zu bytes, want 1..%zu, the memory of %s", name,
                       c->quota_bytes, most, device->info.name);
    if (c->pinned_bytes > max_quota)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: %zu bytes of pinned memory, want at most %zu", name, c->pinned_bytes,
                       max_quota);
    if (c->max_blocks < 0 || c->max_blocks > MAX_BLOCKS || c->max_streams < 0 || c->max_streams >= WT__MAX_STREAMS)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: %d blocks and %d streams, want at most %d and %d", name, c->max_blocks,
                       c->max_streams, MAX_BLOCKS, WT__MAX_STREAMS - 1);
    return WT_OK;
}

static void set_up(wt_pool *p, const wt_pool_config *c)
{
    p->tag = make_tag(p);
    p->partition = c->partition;
    p->soft = c->soft;
    p->no_eviction = c->no_eviction;
    p->max_blocks = c->max_blocks ? c->max_blocks : DEFAULT_BLOCKS;
    p->max_streams = (c->max_streams ? c->max_streams : DEFAULT_STREAMS) + 1;
    p->max_slots = p->max_blocks * SLOTS_PER_BLOCK + 2; // a live block, its copy on the host, a free block
    p->on_pressure = c->on_pressure;
    p->user = c->user;
    p->soft_bytes = c->quota_bytes - c->quota_bytes / 5;  // 80 %, rounded up
    p->hard_bytes = c->quota_bytes - c->quota_bytes / 20; // 95 %
    p->accounts[WT__DEVICE].limit = c->quota_bytes;
    p->accounts[WT__PINNED].limit = c->pinned_bytes ? c->pinned_bytes : 2 * c->quota_bytes;
    for (int space = 0; space < WT__N_SPACES; space++) {
        int n = wt__pool_class(p->accounts[space].limit) + 1;
        if (n > p->n_classes) p->n_classes = n;
    }
    p->lru_oldest = p->lru_newest = p->unused = WT__NONE;
}

/// All streams that may be known get their event and empty lists now; entry 0 is the pool's own.
static wt_status make_streams(wt_pool *p)
{
    p->slots = calloc((size_t)p->max_slots, sizeof *p->slots);
    p->streams = calloc((size_t)p->max_streams, sizeof *p->streams);
    if (!p->slots || !p->streams) return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no memory for its lists", p->name);
    for (int s = 0; s < p->max_streams; s++) {
        memset(p->streams[s].lists, 0xff, sizeof p->streams[s].lists); // all WT__NONE
        wt_status status = wt_event_create(p->device, &p->streams[s].event);
        if (status) return status;
    }
    wt_status status = wt_stream_create(p->device, NULL, &p->streams[WT__OWN].stream);
    if (!status) p->n_streams = 1;
    return status;
}

/// Another pool of the partition needs memory: cached blocks of a soft pool go back.
static void yield_memory(wt__member *self, wt__use use)
{
    wt_pool *p = (wt_pool *)self; // its first member
    if (use != WT__USE_MEMORY || !p->soft || pthread_mutex_trylock(&p->mutex)) return;
    while (wt__pool_trim_one(p, WT__DEVICE)) continue;
    pthread_mutex_unlock(&p->mutex);
}

/// Share the partition's quota: a hard pool takes all of its own now.
static wt_status join_partition(wt_pool *p)
{
    size_t quota = p->accounts[WT__DEVICE].limit;
    bool fits = quota <= wt__partition_limit(p->partition, WT__USE_MEMORY);
    if (fits && !p->soft && !wt__partition_take(p->partition, WT__USE_MEMORY, quota)) {
        wt__partition_ask(p->partition, &p->member, WT__USE_MEMORY);
        fits = wt__partition_take(p->partition, WT__USE_MEMORY, quota);
    }
    if (!fits)
        return wt_fail(WT_ERR_QUOTA, "pool %s: quota of %zu bytes, partition %s has %zu of %zu left", p->name, quota,
                       wt__partition_name(p->partition), wt__partition_left(p->partition, WT__USE_MEMORY),
                       wt__partition_limit(p->partition, WT__USE_MEMORY));
    p->joined = true;
    p->member.yield = yield_memory;
    wt__partition_join(p->partition, &p->member);
    return WT_OK;
}

/// Everything queued on the streams it knows has run; a stream that fails has lost its device and runs nothing more.
static void wait_for_streams(wt_pool *p)
{
    for (int s = p->n_streams - 1; s >= 0; s--) {
        wt__pool_stream *known = &p->streams[s];
        if (known->stream && !wt__pool_is_captured(p, known->stream) && !wt_event_record(known->event, known->stream) &&
            wt_event_synchronize(known->event))
            return;
    }
}

static void free_pool(wt_pool *p)
{
    wt__partition_leave(p->partition, &p->member); // nobody asks it for memory any more
    wait_for_streams(p);
    for (int k = 0; k < p->n_slots; k++)
        if (p->slots[k].state == WT__RESIDENT || p->slots[k].state == WT__CACHED) wt__pool_give(p, k);
    wt_stream *own = p->streams ? p->streams[WT__OWN].stream : NULL;
    wt_status status = own ? wt_stream_synchronize(own) : WT_OK;
    (void)status; // a lost device holds nothing up
    wt__pool_memory_close(p);
    if (p->joined && !p->soft) wt__partition_give(p->partition, WT__USE_MEMORY, p->accounts[WT__DEVICE].limit);
    for (int s = 0; p->streams && s < p->max_streams; s++) wt_event_destroy(p->streams[s].event);
    wt_stream_destroy(own);
    free(p->streams);
    free(p->slots);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

wt_status wt_pool_create(wt_device *device, const wt_pool_config *config, wt_pool **pool)
{
    *pool = NULL;
    const char *name = config->name ? config->name : "memory";
    wt_pool_config c = *config;
    c.quota_bytes = quota_of(config);
    wt_status status = check_config(device, &c, name);
    if (status) return status;
    wt_pool *p = calloc(1, sizeof *p);
    if (!p) return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no memory for a handle", name);
    p->device = device;
    pthread_mutex_init(&p->mutex, NULL);
    snprintf(p->name, sizeof p->name, "%s", name);
    set_up(p, &c);
    status = join_partition(p);
    if (!status) status = make_streams(p);
    if (!status) status = wt__pool_memory_open(p, config->pinned_now);
    if (status) {
        free_pool(p);
        return status;
    }
    wt__handle_open(&p->handle, p, WT__A_POOL);
    *pool = p;
    return WT_OK;
}

void wt_pool_destroy(wt_pool *p)
{
    if (p && !wt__handle_close(p, WT__A_POOL)) free_pool(p);
}

// ---- streams

wt_status wt__pool_find_stream(wt_pool *p, wt_stream *stream, int *index)
{
    *index = p->last_stream;
    if (stream && p->streams[p->last_stream].stream == stream) return WT_OK;
    if (!stream) return wt_fail(WT_ERR_BAD_ARG, "pool %s: no stream given", p->name);
    int empty = WT__NONE;
    for (int s = 1; s < p->n_streams; s++) {
        if (p->streams[s].stream == stream) {
            *index = p->last_stream = s;
            return WT_OK;
        }
        if (!p->streams[s].stream) empty = s;
    }
    if (stream->device != p->device)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: the stream belongs to another device", p->name);
    if (empty == WT__NONE && p->n_streams == p->max_streams)
        return wt_fail(WT_ERR_FULL, "pool %s: %d streams are in use; detach one first", p->name, p->max_streams - 1);
    if (empty == WT__NONE) empty = p->n_streams++;
    p->streams[empty].stream = stream;
    p->streams[empty].recorded = p->streams[empty].done = p->mark;
    *index = p->last_stream = empty;
    return WT_OK;
}

/// The stream is idle: what it freed is free for all, and no block waits for it.
static void forget(wt_pool *p, int index)
{
    wt__pool_stream *known = &p->streams[index];
    for (int k = 0; k < p->n_slots; k++) {
        wt__slot *slot = &p->slots[k];
        slot->users &= ~((uint64_t)1 << index);
        if (slot->owner != index) continue;
        slot->owner = WT__OWN;
        slot->ready = 0;
    }
    for (int space = 0; space < WT__N_SPACES; space++)
        for (int class = 0; class < p->n_classes; class++) {
            int *link = &known->lists[space][class];
            int *to = &p->streams[WT__OWN].lists[space][class];
            while (*to != WT__NONE) to = &p->slots[*to].next; // behind what is there already
            *to = *link;
            *link = WT__NONE;
        }
    known->stream = NULL;
    p->last_stream = WT__OWN;
}

wt_status wt_pool_detach_stream(wt_pool *p, wt_stream *stream)
{
    if (!stream) return wt_fail(WT_ERR_BAD_ARG, "pool %s: no stream given", p->name);
    wt_status status = wt_stream_synchronize(stream); // outside the lock; an error means that it runs no more
    wt__pool_enter(p);
    for (int s = 1; s < p->n_streams; s++)
        if (p->streams[s].stream == stream) forget(p, s);
    wt__pool_leave(p);
    return status;
}

// ---- blocks

static wt_status find_block(wt_pool *p, wt_pool_block block, wt__slot **slot)
{
    *slot = NULL;
    if (block.pool != p->tag) return wt_fail(WT_ERR_BAD_ARG, "pool %s: the block belongs to another pool", p->name);
    wt__slot *s = block.slot < (uint32_t)p->n_slots ? &p->slots[block.slot] : NULL;
    if (!s || s->generation != block.generation || s->state < WT__RESIDENT)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: the block was freed already", p->name);
    *slot = s;
    return WT_OK;
}

static wt_status check_request(const wt_pool *p, const wt_pool_request *r)
{
    if (r->memory != WT_MEMORY_DEVICE && r->memory != WT_MEMORY_PINNED)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: memory kind %d, want device or pinned", p->name, (int)r->memory);
    size_t limit = p->accounts[r->memory == WT_MEMORY_DEVICE ? WT__DEVICE : WT__PINNED].limit;
    if (r->size_bytes < 1 || r->size_bytes > limit)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: a block of %zu bytes, want 1..%zu, its quota", p->name, r->size_bytes,
                       limit);
    return WT_OK;
}

static wt_status allocate(wt_pool *p, const wt_pool_request *r, wt_stream *stream, int *k)
{
    int index;
    wt_status status = wt__pool_find_stream(p, stream, &index);
    if (status) return status;
    if (p->stats.n_blocks == p->max_blocks)
        return wt_fail(WT_ERR_FULL, "pool %s: %d blocks are in use, its most", p->name, p->max_blocks);
    wt__space space = r->memory == WT_MEMORY_DEVICE ? WT__DEVICE : WT__PINNED;
    status = wt__pool_take(p, space, wt__pool_class(r->size_bytes), 0, index, k);
    if (status) return status;
    wt__slot *slot = &p->slots[*k];
    slot->asked = r->size_bytes;
    slot->no_evict = r->no_evict;
    wt__pool_lru_add(p, *k);
    if (space == WT__DEVICE) p->stats.asked_bytes += slot->asked;
    p->stats.n_blocks++;
    p->stats.n_allocations++;
    return WT_OK;
}

wt_status wt_pool_allocate(wt_pool *p, const wt_pool_request *request, wt_stream *stream, wt_pool_block *block)
{
    *block = (wt_pool_block){0};
    wt_status status = wt__handle_check(p, WT__A_POOL);
    if (!status) status = check_request(p, request);
    if (status) return status;
    int k;
    wt__pool_enter(p);
    status = allocate(p, request, stream, &k);
    if (!status) *block = (wt_pool_block){p->tag, (uint32_t)k, p->slots[k].generation};
    wt__pool_leave(p);
    return status;
}

/// The memory belongs to `stream` from its present end on, after everyone who used it.
static wt_status hand_over(wt_pool *p, wt__slot *slot, int stream)
{
    wt_status status = WT_OK;
    uint64_t others = slot->users & ~((uint64_t)1 << stream);
    if (slot->owner != stream) status = wt__pool_order(p, slot->owner, slot->ready, stream);
    for (; others && !status; others &= others - 1)
        status = wt__pool_order(p, __builtin_ctzll(others), slot->last, stream);
    if (status) return status;
    slot->owner = (unsigned char)stream;
    slot->ready = ++p->mark;
    return WT_OK;
}

static wt_status free_block(wt_pool *p, wt_pool_block block, wt_stream *stream)
{
    int index;
    wt__slot *slot;
    wt_status status = find_block(p, block, &slot);
    if (!status) status = wt__pool_find_stream(p, stream, &index);
    if (status) return status;
    if (slot->n_accesses)
        return wt_fail(WT_ERR_STATE, "pool %s: the block has %d accesses that were not released", p->name,
                       slot->n_accesses);
    int k = (int)block.slot;
    if (slot->state == WT__EVICTED) {
        wt__pool_drop_copy(p, k, WT__OWN);
        wt__pool_end(p, k);
    } else {
        status = hand_over(p, slot, index);
        if (status) return status; // the device is lost, or a stream is captured: the block stays
        wt__pool_lru_remove(p, k);
        if (slot->space == WT__DEVICE) p->stats.asked_bytes -= slot->asked;
        wt__pool_cache(p, k);
    }
    p->stats.n_blocks--;
    p->stats.n_frees++;
    return WT_OK;
}

wt_status wt_pool_free(wt_pool *p, wt_pool_block block, wt_stream *stream)
{
    wt__pool_enter(p);
    wt_status status = free_block(p, block, stream);
    wt__pool_leave(p);
    return status;
}

static wt_status access_block(wt_pool *p, wt_pool_block block, wt_stream *stream, uintptr_t *address)
{
    int index;
    wt__slot *slot;
    wt_status status = find_block(p, block, &slot);
    if (!status) status = wt__pool_find_stream(p, stream, &index);
    if (!status && slot->state == WT__EVICTED) {
        if (wt__pool_is_captured(p, stream))
            return wt_fail(WT_ERR_STATE, "pool %s: the block is moved out, and a graph is being recorded on the stream",
                           p->name);
        status = wt__pool_restore(p, (int)block.slot, index);
        if (!status) wt__pool_lru_add(p, (int)block.slot);
    }
    uint64_t bit = status ? 0 : (uint64_t)1 << index;
    if (!status && !(slot->users & bit)) status = wt__pool_order(p, slot->owner, slot->ready, index);
    if (status) return status;
    slot->users |= bit;
    wt__pool_lru_remove(p, (int)block.slot);
    slot->n_accesses++;
    *address = slot->address;
    return WT_OK;
}

wt_status wt_pool_access(wt_pool *p, wt_pool_block block, wt_stream *stream, uintptr_t *address)
{
    *address = 0;
    wt__pool_enter(p);
    wt_status status = access_block(p, block, stream, address);
    wt__pool_leave(p);
    return status;
}

static wt_status release_access(wt_pool *p, wt_pool_block block, wt_stream *stream)
{
    int index;
    wt__slot *slot;
    wt_status status = find_block(p, block, &slot);
    if (!status) status = wt__pool_find_stream(p, stream, &index);
    if (status) return status;
    if (!slot->n_accesses) return wt_fail(WT_ERR_STATE, "pool %s: the block is not accessed", p->name);
    slot->users |= (uint64_t)1 << index;
    slot->last = ++p->mark;
    slot->n_accesses--;
    wt__pool_lru_add(p, (int)block.slot);
    return WT_OK;
}

wt_status wt_pool_release_access(wt_pool *p, wt_pool_block block, wt_stream *stream)
{
    wt__pool_enter(p);
    wt_status status = release_access(p, block, stream);
    wt__pool_leave(p);
    return status;
}

static wt_status copy_block(wt_pool *p, wt_pool_block block, wt_stream *stream, size_t offset, uintptr_t host,
                            size_t size_bytes, bool up)
{
    wt_pool_block_info info;
    uintptr_t address;
    wt_status status = wt_pool_query_block(p, block, &info);
    if (status) return status;
    if (offset > info.size_bytes || size_bytes > info.size_bytes - offset)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: %zu bytes at offset %zu do not fit a block of %zu bytes", p->name,
                       size_bytes, offset, info.size_bytes);
    status = wt_pool_access(p, block, stream, &address);
    if (status) return status;
    wt__place inside = {info.memory == WT_MEMORY_DEVICE, address + offset}, outside = {false, host};
    if (size_bytes) status = wt__stream_copy(stream, up ? inside : outside, up ? outside : inside, size_bytes);
    wt_status released = wt_pool_release_access(p, block, stream);
    return status ? status : released;
}

wt_status wt_pool_upload(wt_pool *p, wt_pool_block block, wt_stream *stream, size_t offset, const void *from,
                         size_t size_bytes)
{
    return copy_block(p, block, stream, offset, (uintptr_t)from, size_bytes, true);
}

wt_status wt_pool_download(wt_pool *p, wt_pool_block block, wt_stream *stream, size_t offset, void *to,
                           size_t size_bytes)
{
    return copy_block(p, block, stream, offset, (uintptr_t)to, size_bytes, false);
}

static wt_status evict_block(wt_pool *p, wt_pool_block block)
{
    wt__slot *slot;
    wt_status status = find_block(p, block, &slot);
    if (status || slot->state == WT__EVICTED) return status;
    if (slot->n_accesses)
        return wt_fail(WT_ERR_STATE, "pool %s: the block has %d accesses that were not released", p->name,
                       slot->n_accesses);
    if (slot->no_evict || slot->space != WT__DEVICE)
        return wt_fail(WT_ERR_STATE, "pool %s: the block is never moved out", p->name);
    return wt__pool_evict(p, (int)block.slot);
}

wt_status wt_pool_evict(wt_pool *p, wt_pool_block block)
{
    wt__pool_enter(p);
    wt_status status = evict_block(p, block);
    wt__pool_leave(p);
    return status;
}

// ---- facts

wt_status wt_pool_query_block(wt_pool *p, wt_pool_block block, wt_pool_block_info *info)
{
    *info = (wt_pool_block_info){0};
    wt__slot *slot;
    wt__pool_enter(p);
    wt_status status = find_block(p, block, &slot);
    if (!status)
        *info = (wt_pool_block_info){
            .size_bytes = slot->asked,
            .class_bytes = slot->bytes,
            .memory = slot->space == WT__DEVICE ? WT_MEMORY_DEVICE : WT_MEMORY_PINNED,
            .resident = slot->state == WT__RESIDENT,
            .n_accesses = slot->n_accesses,
        };
    wt__pool_leave(p);
    return status;
}

void wt_pool_trim(wt_pool *p)
{
    wt__pool_enter(p);
    while (wt__pool_trim_one(p, WT__DEVICE) || wt__pool_trim_one(p, WT__PINNED)) continue;
    wt__pool_leave(p);
}

void wt_pool_query(wt_pool *p, wt_pool_stats *stats)
{
    wt__pool_enter(p);
    const wt__account *device = &p->accounts[WT__DEVICE], *pinned = &p->accounts[WT__PINNED];
    *stats = p->stats;
    stats->quota_bytes = device->limit;
    stats->used_bytes = device->used;
    stats->cached_bytes = device->cached;
    stats->reserved_bytes = wt__pool_memory_reserved(p);
    stats->pinned_used_bytes = pinned->used;
    stats->pinned_cached_bytes = pinned->cached;
    stats->pinned_reserved_bytes = pinned->slab_bytes;
    stats->waste = device->used ? 1 - (double)stats->asked_bytes / (double)device->used : 0;
    wt__pool_leave(p);
}
