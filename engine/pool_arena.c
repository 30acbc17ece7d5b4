// Weights: one exact allocation that is never moved, handed out front to back.
#include "pool_internal.h"

#include <stdlib.h>

enum { ALIGN = 256 };

struct wt_pool_arena {
    wt_pool *pool;
    int slot;
    uintptr_t base;
    size_t size, used; ///< under the pool's lock
    bool sealed;
};

static wt_status take(wt_pool *p, size_t size_bytes, int *slot)
{
    size_t limit = p->accounts[WT__DEVICE].limit;
    if (size_bytes < 1 || size_bytes > limit)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: an arena of %zu bytes, want 1..%zu, its quota", p->name, size_bytes,
                       limit);
    if (p->stats.n_blocks == p->max_blocks)
        return wt_fail(WT_ERR_FULL, "pool %s: %d blocks are in use, its most", p->name, p->max_blocks);
    size_t bytes = (size_bytes + ALIGN - 1) / ALIGN * ALIGN;
    wt_status status = wt__pool_take(p, WT__DEVICE, WT__EXACT, bytes < limit ? bytes : limit, WT__OWN, slot);
    if (status) return status;
    p->slots[*slot].asked = size_bytes;
    p->slots[*slot].no_evict = true;
    p->stats.asked_bytes += size_bytes;
    p->stats.n_blocks++;
    return WT_OK;
}

wt_status wt_pool_arena_create(wt_pool *p, size_t size_bytes, wt_pool_arena **arena)
{
    *arena = NULL;
    wt_pool_arena *a = calloc(1, sizeof *a);
    if (!a) return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no memory for an arena's handle", p->name);
    wt__pool_enter(p);
    wt_status status = take(p, size_bytes, &a->slot);
    a->pool = p;
    a->base = status ? 0 : p->slots[a->slot].address;
    a->size = size_bytes;
    wt__pool_leave(p);
    if (status) {
        free(a);
        return status;
    }
    status = wt_stream_synchronize(p->streams[WT__OWN].stream); // ready on every stream
    if (status)
        wt_pool_arena_destroy(a, NULL);
    else
        *arena = a;
    return status;
}

void wt_pool_arena_destroy(wt_pool_arena *a, wt_stream *stream)
{
    if (!a) return;
    wt_pool *p = a->pool;
    int index;
    wt__pool_enter(p);
    // An order that cannot be had (a lost device) leaves nothing running that the memory must be kept for.
    if (stream && !wt__pool_find_stream(p, stream, &index)) {
        wt_status status = wt__pool_order(p, index, ++p->mark, WT__OWN);
        (void)status;
    }
    p->stats.asked_bytes -= a->size;
    p->stats.n_blocks--;
    wt__pool_give(p, a->slot);
    wt__pool_leave(p);
    free(a);
}

wt_status wt_pool_arena_take(wt_pool_arena *a, size_t size_bytes, size_t align_bytes, uintptr_t *address)
{
    *address = 0;
    size_t align = align_bytes ? align_bytes : ALIGN;
    if (size_bytes < 1 || align > ALIGN || (align & (align - 1)))
        return wt_fail(WT_ERR_BAD_ARG,
                       "pool %s: %zu bytes of an arena aligned to %zu, want 1 or more and a power of "
                       "two up to %d",
                       a->pool->name, size_bytes, align, ALIGN);
    wt_status status = WT_OK;
    wt__pool_enter(a->pool);
    size_t begin = ((a->base + a->used + align - 1) & ~(uintptr_t)(align - 1)) - a->base;
    if (a->sealed) {
        status = wt_fail(WT_ERR_STATE, "pool %s: the arena is sealed", a->pool->name);
    } else if (begin > a->size || size_bytes > a->size - begin) {
        status = wt_fail(WT_ERR_FULL, "pool %s: %zu bytes aligned to %zu, %zu of the arena's %zu are left",
                         a->pool->name, size_bytes, align, a->size - a->used, a->size);
    } else {
        *address = a->base + begin;
        a->used = begin + size_bytes;
    }
    wt__pool_leave(a->pool);
    return status;
}

static wt_status check_range(const wt_pool_arena *a, uintptr_t address, size_t size_bytes)
{
    if (address < a->base || address - a->base > a->used || size_bytes > a->used - (address - a->base))
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: %zu bytes lie outside of what was taken of the arena", a->pool->name,
                       size_bytes);
    return WT_OK;
}

static wt_status copy(wt_pool_arena *a, wt_stream *stream, uintptr_t address, uintptr_t host, size_t size_bytes,
                      bool up)
{
    const wt__place there = {true, address}, here = {false, host};
    if (stream->device != a->pool->device)
        return wt_fail(WT_ERR_BAD_ARG, "pool %s: the stream belongs to another device", a->pool->name);
    wt__pool_enter(a->pool);
    wt_status status = up && a->sealed ? wt_fail(WT_ERR_STATE, "pool %s: the arena is sealed", a->pool->name)
                                       : check_range(a, address, size_bytes);
    wt__pool_leave(a->pool);
    if (status || !size_bytes) return status;
    return up ? wt__stream_copy(stream, there, here, size_bytes) : wt__stream_copy(stream, here, there, size_bytes);
}

wt_status wt_pool_arena_upload(wt_pool_arena *a, wt_stream *stream, uintptr_t address, const void *from,
                               size_t size_bytes)
{
    return copy(a, stream, address, (uintptr_t)from, size_bytes, true);
}

wt_status wt_pool_arena_download(wt_pool_arena *a, wt_stream *stream, uintptr_t address, void *to, size_t size_bytes)
{
    return copy(a, stream, address, (uintptr_t)to, size_bytes, false);
}

void wt_pool_arena_seal(wt_pool_arena *a)
{
    wt__pool_enter(a->pool);
    a->sealed = true;
    wt__pool_leave(a->pool);
}

size_t wt_pool_arena_used_bytes(const wt_pool_arena *a)
{
    wt__pool_enter(a->pool);
    size_t used = a->used;
    wt__pool_leave(a->pool);
    return used;
}
