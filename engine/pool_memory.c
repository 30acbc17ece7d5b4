// Where a pool's memory comes from: pinned memory in slabs on both backends; device memory from a driver's pool on a
// GPU (pool_memory_cuda.c), on the CPU from one slab taken at create (hard) and the C library (soft, and a hard pool
// whose slab is in pieces too small: the books still keep to the quota).
#include "pool_internal.h"

#include <stdlib.h>

enum { MIN_SLAB_BYTES = 1 << 20, SLABS_TO_LIMIT = 16, ALIGN = 64 };

static bool on_cpu(const wt_pool *p) { return p->device->info.backend == WT_BACKEND_CPU; }

static wt_status add_slab(wt_pool *p, wt__space space, size_t bytes)
{
    wt__account *a = &p->accounts[space];
    wt__slab *slab = &a->slabs[a->n_slabs];
    wt_status status =
        wt_buffer_create(p->device, space == WT__DEVICE ? WT_MEMORY_DEVICE : WT_MEMORY_PINNED, bytes, &slab->buffer);
    if (status) return status;
    // n slots leave at most n + 1 holes
    status = wt__region_create(&slab->region, (uintptr_t)wt_buffer_host(slab->buffer), bytes, p->max_slots + 2);
    if (status) {
        wt_buffer_destroy(slab->buffer);
        return status;
    }
    a->n_slabs++;
    a->slab_bytes += bytes;
    return WT_OK;
}

static bool take_from_slabs(wt__account *a, size_t bytes, uintptr_t *address)
{
    for (int k = 0; k < a->n_slabs; k++)
        if (wt__region_take(&a->slabs[k].region, bytes, address)) return true;
    return false;
}

static bool give_to_slabs(wt__account *a, uintptr_t address, size_t bytes)
{
    for (int k = 0; k < a->n_slabs; k++) {
        wt__region *region = &a->slabs[k].region;
        if (address < region->base || address >= region->base + region->size) continue;
        wt__region_give(region, address, bytes);
        return true;
    }
    return false;
}

static wt_status take_pinned(wt_pool *p, size_t bytes, uintptr_t *address)
{
    wt__account *a = &p->accounts[WT__PINNED];
    if (take_from_slabs(a, bytes, address)) return WT_OK;
    size_t left = a->limit - a->slab_bytes, wish = a->limit / SLABS_TO_LIMIT;
    if (wish < MIN_SLAB_BYTES) wish = MIN_SLAB_BYTES;
    if (wish < bytes) wish = bytes;
    if (wish > left) wish = left;
    if (wish < bytes || a->n_slabs == WT__MAX_SLABS)
        return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no stretch of %zu bytes is left in %zu bytes of pinned memory",
                       p->name, bytes, a->limit);
    wt_status status = add_slab(p, WT__PINNED, wish);
    if (!status && !take_from_slabs(a, bytes, address))
        return wt_fail(WT_ERR_NO_MEMORY, "pool %s: %zu bytes of pinned memory are left", p->name, wish);
    return status;
}

static wt_status take_host(wt_pool *p, size_t bytes, uintptr_t *address)
{
    if (take_from_slabs(&p->accounts[WT__DEVICE], bytes, address)) return WT_OK;
    void *memory = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    if (!memory) return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no memory for %zu bytes", p->name, bytes);
    *address = (uintptr_t)memory;
    return WT_OK;
}

static void free_item(const void *args, int item)
{
    (void)item;
    free(*(void *const *)args);
}

/// Work queued before on the own stream may still use the memory, so it is freed there.
static void give_host(wt_pool *p, uintptr_t address, size_t bytes)
{
    if (give_to_slabs(&p->accounts[WT__DEVICE], address, bytes)) return;
    void *memory = (void *)address;
    if (wt_stream_run(p->streams[WT__OWN].stream, free_item, &memory, sizeof memory, 1)) free(memory);
}

wt_status wt__pool_memory_take(wt_pool *p, wt__space space, size_t bytes, uintptr_t *address)
{
    if (space == WT__PINNED) return take_pinned(p, bytes, address);
    wt_partition *shared = p->soft ? p->partition : NULL; // a hard pool has its whole quota already
    if (!wt__partition_take(shared, WT__USE_MEMORY, bytes))
        return wt_fail(WT_ERR_NO_MEMORY, "pool %s: partition %s has no %zu bytes left", p->name,
                       wt__partition_name(shared), bytes);
    wt_status status = on_cpu(p) ? take_host(p, bytes, address) : wt__cuda_pool_take(p, bytes, address);
    if (status) wt__partition_give(shared, WT__USE_MEMORY, bytes);
    return status;
}

void wt__pool_memory_give(wt_pool *p, wt__space space, uintptr_t address, size_t bytes)
{
    if (space == WT__PINNED) {
        give_to_slabs(&p->accounts[WT__PINNED], address, bytes);
        return;
    }
    if (on_cpu(p))
        give_host(p, address, bytes);
    else wt__cuda_pool_give(p, address);
    if (p->soft) wt__partition_give(p->partition, WT__USE_MEMORY, bytes);
}

wt_status wt__pool_memory_open(wt_pool *p, bool pinned_now)
{
    wt_status status = WT_OK;
    if (!on_cpu(p)) status = wt__cuda_pool_open(p);
    else if (!p->soft) status = add_slab(p, WT__DEVICE, p->accounts[WT__DEVICE].limit);
    if (!status && pinned_now) status = add_slab(p, WT__PINNED, p->accounts[WT__PINNED].limit);
    return status;
}

void wt__pool_memory_close(wt_pool *p)
{
    for (int space = 0; space < WT__N_SPACES; space++) {
        wt__account *a = &p->accounts[space];
        for (int k = 0; k < a->n_slabs; k++) {
            wt__region_destroy(&a->slabs[k].region);
            wt_buffer_destroy(a->slabs[k].buffer);
        }
    }
    if (!on_cpu(p)) wt__cuda_pool_close(p);
}

size_t wt__pool_memory_reserved(const wt_pool *p)
{
    if (!on_cpu(p)) return wt__cuda_pool_reserved(p);
    const wt__account *a = &p->accounts[WT__DEVICE];
    return p->soft ? a->used + a->cached : a->slab_bytes;
}

bool wt__pool_is_captured(const wt_pool *p, const wt_stream *stream)
{
    return stream->recording || (!on_cpu(p) && wt__cuda_is_captured(stream));
}
