// Device memory of a pool on a GPU: an own cuMemPool that gives nothing back to the system by itself (release threshold
// at its maximum), grown to the quota once when the pool is hard. All takes and gives are ordered on the pool's own
// stream, so what is given may be taken again before the work that used it has run.
#include "device_cuda.h"
#include "pool_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 }; // CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE

/// Outlives the wt_pool when that is destroyed while the device is armed.
typedef struct cuda_pool {
    wt__aside aside;
    CUmemoryPool pool;
} cuda_pool;

static CUmemoryPool pool_of(const wt_pool *p) { return ((const cuda_pool *)p->cuda_pool)->pool; }

static CUstream own_of(const wt_pool *p) { return wt__cuda_stream_of(p->streams[WT__OWN].stream); }

/// Take the whole quota and give it back: the pool keeps it.
static wt_status grow(wt_pool *p)
{
    const wt__cuda *cuda = wt__cuda_device_of(p->device)->cuda;
    size_t quota = p->accounts[WT__DEVICE].limit;
    uintptr_t address = 0;
    wt_status status = wt__cuda_pool_take(p, quota, &address);
    if (status) return status;
    wt__cuda_pool_give(p, address);
    return wt__cu(cuda, cuda->StreamSynchronize(own_of(p)), "pool %s: reserve %zu bytes", p->name, quota);
}

wt_status wt__cuda_pool_open(wt_pool *p)
{
    wt__cuda_device *d = wt__cuda_device_of(p->device);
    const wt__cuda *cuda = d->cuda;
    int supported = 0;
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    if (cuda->DeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d->device) || !supported ||
        !cuda->MemPoolCreate || !cuda->MemPoolDestroy || !cuda->MemPoolSetAttribute || !cuda->MemPoolGetAttribute ||
        !cuda->MemAllocFromPoolAsync || !cuda->MemFreeAsync)
        return wt_fail(WT_ERR_UNSUPPORTED, "pool %s: %s with driver %d has no stream-ordered memory pools, want driver "
                       "11.2 or newer", p->name, p->device->info.name, p->device->info.driver_version);
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = ALLOCATION_PINNED;
    props.location.type = LOCATION_DEVICE;
    props.location.id = d->device;
    cuda_pool *created = calloc(1, sizeof *created);
    if (!created) return wt_fail(WT_ERR_NO_MEMORY, "pool %s: no memory for a handle", p->name);
    status = wt__cu(cuda, cuda->MemPoolCreate(&created->pool, &props), "pool %s: create", p->name);
    if (status) {
        free(created);
        return status;
    }
    p->cuda_pool = created;
    uint64_t threshold = UINT64_MAX;
    status = wt__cu(cuda, cuda->MemPoolSetAttribute(created->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                    "pool %s: release threshold", p->name);
    return status || p->soft ? status : grow(p);
}

static void release_pool(wt_device *device, wt__aside *aside)
{
    cuda_pool *c = (cuda_pool *)aside; // its first member
    const wt__cuda_device *d = wt__cuda_device_of(device);
    if (wt__cuda_enter_to_free(d)) d->cuda->MemPoolDestroy(c->pool);
    free(c);
}

void wt__cuda_pool_close(wt_pool *p)
{
    cuda_pool *c = p->cuda_pool;
    if (!c) return;
    p->cuda_pool = NULL;
    c->aside.release = release_pool;
    if (!wt__guard_enter_or_put_aside(p->device->guard, &c->aside)) return;
    release_pool(p->device, &c->aside);
    wt__guard_leave(p->device->guard);
}

wt_status wt__cuda_pool_take(wt_pool *p, size_t bytes, uintptr_t *address)
{
    const wt__cuda_device *d = wt__cuda_device_of(p->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    CUdeviceptr taken = 0;
    status = wt__cu(d->cuda, d->cuda->MemAllocFromPoolAsync(&taken, bytes, pool_of(p), own_of(p)),
                    "pool %s: %zu bytes of device memory", p->name, bytes);
    *address = (uintptr_t)taken;
    return status;
}

void wt__cuda_pool_give(wt_pool *p, uintptr_t address)
{
    const wt__cuda_device *d = wt__cuda_device_of(p->device);
    if (!wt__cuda_enter(d)) d->cuda->MemFreeAsync((CUdeviceptr)address, own_of(p));
}

size_t wt__cuda_pool_reserved(const wt_pool *p)
{
    const wt__cuda_device *d = wt__cuda_device_of(p->device);
    uint64_t bytes = 0;
    if (wt__cuda_enter(d) || d->cuda->MemPoolGetAttribute(pool_of(p), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes))
        return 0;
    return (size_t)bytes;
}

bool wt__cuda_is_captured(const wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    int status = 0;
    return wt__cuda_enter(d) || d->cuda->StreamIsCapturing(wt__cuda_stream_of(stream), &status) || status;
}
