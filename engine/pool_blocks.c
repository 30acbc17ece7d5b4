// Slots, free lists, the LRU list, and the order between streams. Everything here runs with the pool's lock held.
//
// Where a block comes from, in this order: a free one of its class on the same stream (no driver call); a free one of
// another stream that has passed it; new memory within the quota; a free one of another stream, which is waited for on
// the device; after free memory of other classes was given back; after the least recently used blocks were moved out.
#include "pool_internal.h"

enum { SMALLEST_BITS = 8 }; // 256 bytes

// ---- classes: 256 * {1, 1.25, 1.5, 1.75} * 2^k

int wt__pool_class(size_t bytes)
{
    if (bytes <= (size_t)1 << SMALLEST_BITS) return 0;
    size_t last = bytes - 1;
    int top = 63 - __builtin_clzll(last);
    return (top - SMALLEST_BITS) * 4 + (int)(last >> (top - 2) & 3) + 1;
}

static size_t class_bytes(const wt_pool *p, wt__space space, int class)
{
    size_t bytes = (size_t)1 << SMALLEST_BITS, limit = p->accounts[space].limit;
    if (class > 0) bytes = (size_t)(5 + (class - 1) % 4) << (SMALLEST_BITS - 2 + (class - 1) / 4);
    return bytes < limit ? bytes : limit; // the top class is the quota itself
}

// ---- order between streams

/// Make the stream's event cover `mark`.
static wt_status cover(wt_pool *p, int stream, uint64_t mark)
{
    wt__pool_stream *s = &p->streams[stream];
    if (s->recorded >= mark) return WT_OK;
    if (wt__pool_is_captured(p, s->stream))
        return wt_fail(WT_ERR_STATE, "pool %s: a stream of it is being captured, so nothing can be ordered after it",
                       p->name);
    wt_status status = wt_event_record(s->event, s->stream);
    if (!status) s->recorded = p->mark;
    return status;
}

static bool passed(wt_pool *p, int stream, uint64_t mark)
{
    wt__pool_stream *s = &p->streams[stream];
    if (s->done >= mark) return true;
    if (cover(p, stream, mark) || !wt_event_done(s->event)) return false;
    s->done = s->recorded;
    return true;
}

wt_status wt__pool_order(wt_pool *p, int from, uint64_t mark, int to)
{
    wt__pool_stream *s = &p->streams[from];
    if (from == to || s->done >= mark) return WT_OK;
    wt_status status = cover(p, from, mark);
    if (status) return status;
    if (wt_event_done(s->event)) {
        s->done = s->recorded;
        return WT_OK;
    }
    p->stats.n_waits++;
    return wt_stream_wait(p->streams[to].stream, s->event);
}

/// `to` comes after everything that may use the slot's memory.
static wt_status order_after_users(wt_pool *p, const wt__slot *slot, int to)
{
    wt_status status = wt__pool_order(p, slot->owner, slot->ready, to);
    for (uint64_t left = slot->users; left && !status; left &= left - 1)
        status = wt__pool_order(p, __builtin_ctzll(left), slot->last, to);
    return status;
}

// ---- slots and lists

static int new_slot(wt_pool *p)
{
    while (p->unused == WT__NONE && p->n_slots == p->max_slots)
        if (!wt__pool_trim_one(p, WT__DEVICE) && !wt__pool_trim_one(p, WT__PINNED)) return WT__NONE;
    int k = p->unused;
    if (k == WT__NONE) k = p->n_slots++;
    else p->unused = p->slots[k].next;
    return k;
}

void wt__pool_end(wt_pool *p, int k)
{
    p->slots[k].state = WT__UNUSED;
    p->slots[k].generation++;
    p->slots[k].next = p->unused;
    p->unused = k;
}

void wt__pool_lru_add(wt_pool *p, int k)
{
    wt__slot *slot = &p->slots[k];
    if (slot->no_evict || slot->space != WT__DEVICE || slot->n_accesses) return;
    slot->next = WT__NONE;
    slot->prev = p->lru_newest;
    if (p->lru_newest == WT__NONE) p->lru_oldest = k;
    else p->slots[p->lru_newest].next = k;
    p->lru_newest = k;
    p->evictable += slot->bytes;
}

void wt__pool_lru_remove(wt_pool *p, int k)
{
    wt__slot *slot = &p->slots[k];
    if (slot->no_evict || slot->space != WT__DEVICE || slot->n_accesses) return;
    if (slot->prev == WT__NONE) p->lru_oldest = slot->next;
    else p->slots[slot->prev].next = slot->next;
    if (slot->next == WT__NONE) p->lru_newest = slot->prev;
    else p->slots[slot->next].prev = slot->prev;
    p->evictable -= slot->bytes;
}

void wt__pool_cache(wt_pool *p, int k)
{
    wt__slot *slot = &p->slots[k];
    wt__account *a = &p->accounts[slot->space];
    a->used -= slot->bytes;
    a->cached += slot->bytes;
    a->n_cached[slot->class]++;
    int *list = &p->streams[slot->owner].lists[slot->space][slot->class];
    slot->state = WT__CACHED;
    slot->generation++;
    slot->next = *list;
    *list = k;
}

/// The newest free block of a stream and class, still CACHED but in no list.
static int pop(wt_pool *p, int stream, int space, int class)
{
    int *list = &p->streams[stream].lists[space][class], k = *list;
    if (k == WT__NONE) return k;
    *list = p->slots[k].next;
    p->accounts[space].cached -= p->slots[k].bytes;
    p->accounts[space].n_cached[class]--;
    return k;
}

void wt__pool_give(wt_pool *p, int k)
{
    wt__slot *slot = &p->slots[k];
    if (slot->state == WT__RESIDENT) p->accounts[slot->space].used -= slot->bytes;
    wt__pool_memory_give(p, (wt__space)slot->space, slot->address, slot->bytes);
    wt__pool_end(p, k);
}

bool wt__pool_trim_one(wt_pool *p, wt__space space)
{
    for (int class = p->n_classes - 1; class >= 0; class--) {
        if (!p->accounts[space].n_cached[class]) continue;
        for (int s = 0; s < p->n_streams; s++) {
            int k = p->streams[s].lists[space][class];
            if (k == WT__NONE || wt__pool_order(p, s, p->slots[k].ready, WT__OWN)) continue;
            wt__pool_give(p, pop(p, s, space, class));
            return true;
        }
    }
    return false;
}

// ---- taking

static void start_use(wt_pool *p, int k, int stream)
{
    wt__slot *slot = &p->slots[k];
    p->accounts[slot->space].used += slot->bytes;
    slot->state = WT__RESIDENT;
    slot->users = (uint64_t)1 << stream;
    slot->owner = (unsigned char)stream;
    slot->ready = slot->last = ++p->mark;
    slot->n_accesses = 0;
    slot->no_evict = false;
    slot->host = WT__NONE;
}

/// A free block of another stream: one that has passed it or, with `may_wait`, any.
static int pop_other(wt_pool *p, wt__space space, int class, int stream, bool may_wait)
{
    for (int s = 0; s < p->n_streams; s++) {
        int k = p->streams[s].lists[space][class];
        if (k == WT__NONE) continue;
        bool free_now = may_wait ? !wt__pool_order(p, s, p->slots[k].ready, stream) : passed(p, s, p->slots[k].ready);
        if (free_now) return pop(p, s, space, class);
    }
    return WT__NONE;
}

static wt_status take_fresh(wt_pool *p, wt__space space, int class, size_t bytes, int stream, int *taken)
{
    int k = new_slot(p);
    if (k == WT__NONE) return wt_fail(WT_ERR_FULL, "pool %s: %d blocks, no more fit", p->name, p->max_slots);
    wt__slot *slot = &p->slots[k];
    wt_status status = wt__pool_memory_take(p, space, bytes, &slot->address);
    if (status) {
        wt__pool_end(p, k);
        return status;
    }
    slot->bytes = bytes;
    slot->class = (short)class;
    slot->space = (unsigned char)space;
    start_use(p, k, stream);
    status = wt__pool_order(p, WT__OWN, p->mark, stream);
    if (status) {
        wt__pool_give(p, k);
        return status;
    }
    p->stats.n_fresh++;
    *taken = k;
    return WT_OK;
}

static wt_status refuse(wt_pool *p, wt__space space, size_t bytes)
{
    const wt__account *a = &p->accounts[space];
    p->stats.n_refusals++;
    if (space == WT__PINNED)
        return wt_fail(WT_ERR_QUOTA, "pool %s: %zu bytes do not fit: %zu of %zu bytes of pinned memory are in use",
                       p->name, bytes, a->used, a->limit);
    if (p->soft && bytes <= a->limit - a->used && wt__partition_left(p->partition, WT__USE_MEMORY) < bytes)
        return wt_fail(WT_ERR_QUOTA, "pool %s: %zu bytes do not fit: %zu of the quota of partition %s are left",
                       p->name, bytes, wt__partition_left(p->partition, WT__USE_MEMORY),
                       wt__partition_name(p->partition));
    return wt_fail(WT_ERR_QUOTA, "pool %s: %zu bytes do not fit: %zu of the quota of %zu are in use, %zu of them can "
                   "be moved out", p->name, bytes, a->used, a->limit, p->no_eviction ? 0 : p->evictable);
}

/// A soft pool shares its partition's quota: is there so much, with what this pool and the others can give up?
static bool partition_has(wt_pool *p, size_t bytes, size_t movable)
{
    size_t own = p->accounts[WT__DEVICE].cached + movable;
    if (!p->soft || own >= bytes || wt__partition_left(p->partition, WT__USE_MEMORY) >= bytes - own) return true;
    wt__partition_ask(p->partition, &p->member, WT__USE_MEMORY);
    return wt__partition_left(p->partition, WT__USE_MEMORY) >= bytes - own;
}

/// Make more room: free memory of other classes first, then the least recently used block.
static wt_status make_room(wt_pool *p, wt__space space, size_t bytes)
{
    if (wt__pool_trim_one(p, space)) return WT_OK;
    if (space == WT__PINNED || p->no_eviction || p->lru_oldest == WT__NONE) return refuse(p, space, bytes);
    return wt__pool_evict(p, p->lru_oldest);
}

wt_status wt__pool_take(wt_pool *p, wt__space space, int class, size_t bytes, int stream, int *taken)
{
    wt__account *a = &p->accounts[space];
    if (class != WT__EXACT) {
        *taken = pop(p, stream, space, class);
        if (*taken != WT__NONE) goto reuse;
        bytes = class_bytes(p, space, class);
    }
    size_t movable = space == WT__DEVICE && !p->no_eviction ? p->evictable : 0;
    if (bytes > a->limit - (a->used - movable)) return refuse(p, space, bytes);
    if (space == WT__DEVICE && !partition_has(p, bytes, movable)) return refuse(p, space, bytes);
    for (;;) {
        bool room = bytes <= a->limit - a->used - a->cached;
        if (class != WT__EXACT && a->n_cached[class]) {
            *taken = pop_other(p, space, class, stream, !room);
            if (*taken != WT__NONE) goto reuse;
        }
        wt_status why = room ? take_fresh(p, space, class, bytes, stream, taken) : WT_ERR_NO_MEMORY;
        if (why != WT_ERR_NO_MEMORY) return why;
        wt_status status = make_room(p, space, bytes);
        if (status && room && wt__partition_left(p->partition, WT__USE_MEMORY) >= bytes)
            return wt_fail(WT_ERR_NO_MEMORY, "pool %s: the quota has %zu bytes left, the machine has not", p->name,
                           bytes);
        if (status) return status;
    }
reuse:
    p->stats.n_reuses++;
    start_use(p, *taken, stream);
    return WT_OK;
}

// ---- moving out and back

static wt_status copy(wt_pool *p, int stream, const wt__slot *to, const wt__slot *from, size_t bytes)
{
    wt__place there = {to->space == WT__DEVICE, to->address}, here = {from->space == WT__DEVICE, from->address};
    return p->device->ops->copy(p->streams[stream].stream, there, here, bytes);
}

/// The memory of a slot whose last use is queued on `stream` becomes free there.
static void cache_on(wt_pool *p, int k, int stream)
{
    p->slots[k].owner = (unsigned char)stream;
    p->slots[k].ready = ++p->mark;
    wt__pool_cache(p, k);
}

wt_status wt__pool_evict(wt_pool *p, int k)
{
    wt__slot *slot = &p->slots[k];
    if (slot->asked > p->accounts[WT__PINNED].limit) return refuse(p, WT__PINNED, slot->asked);
    int host, left = new_slot(p); // `left` gets the memory, the handle's slot goes on without
    if (left == WT__NONE) return wt_fail(WT_ERR_FULL, "pool %s: %d blocks, no more fit", p->name, p->max_slots);
    p->slots[left].state = WT__EVICTED; // nobody's meanwhile
    wt_status status = wt__pool_take(p, WT__PINNED, wt__pool_class(slot->asked), 0, WT__OWN, &host);
    if (status) {
        wt__pool_end(p, left);
        return status;
    }
    status = order_after_users(p, slot, WT__OWN);
    if (!status) status = copy(p, WT__OWN, &p->slots[host], slot, slot->asked);
    if (status) {
        wt__pool_end(p, left);
        cache_on(p, host, WT__OWN);
        return status;
    }
    p->slots[host].ready = ++p->mark; // after the copy
    wt__pool_lru_remove(p, k);
    uint32_t generation = p->slots[left].generation;
    p->slots[left] = *slot;
    p->slots[left].generation = generation;
    cache_on(p, left, WT__OWN);
    slot->state = WT__EVICTED;
    slot->host = host;
    p->stats.n_evictions++;
    p->stats.n_evicted++;
    p->stats.evicted_bytes += slot->bytes;
    p->stats.asked_bytes -= slot->asked;
    return WT_OK;
}

void wt__pool_drop_copy(wt_pool *p, int k, int stream)
{
    wt__slot *slot = &p->slots[k];
    cache_on(p, slot->host, stream);
    slot->host = WT__NONE;
    p->stats.n_evicted--;
    p->stats.evicted_bytes -= slot->bytes;
}

// The copy runs on the stream that asked: blocks that come back one after the other queue nothing between their copies,
// since what moved them out is known to have run after the first of them.
wt_status wt__pool_restore(wt_pool *p, int k, int stream)
{
    wt__slot *slot = &p->slots[k];
    int taken;
    wt_status status = wt__pool_take(p, WT__DEVICE, slot->class, 0, stream, &taken);
    if (status) return status;
    const wt__slot *host = &p->slots[slot->host];
    status = wt__pool_order(p, host->owner, host->ready, stream);
    if (!status) status = copy(p, stream, &p->slots[taken], host, slot->asked);
    if (status) {
        cache_on(p, taken, stream);
        return status;
    }
    slot->address = p->slots[taken].address;
    wt__pool_end(p, taken); // its memory, counted as used, is the block's now
    wt__pool_drop_copy(p, k, stream);
    slot->state = WT__RESIDENT;
    slot->owner = (unsigned char)stream;
    slot->users = (uint64_t)1 << stream;
    slot->ready = slot->last = ++p->mark;
    p->stats.n_restores++;
    p->stats.asked_bytes += slot->asked;
    return WT_OK;
}
