// Partitions of the CPU: a unit is a processor of the device, a slice a pool of threads pinned to some.
#include "cpu_stream.h"
#include "partition_internal.h"

#include <stdlib.h>

enum { NICE_LOW = 10, NICE_HIGH = -10 }; // half way to the ends of the scale

struct wt__cut {
    cpu_set_t usable;
};

struct wt__slice {
    wt__pool *pool;
};

static wt_status cut(wt_device *device, bool confined, bool fine, wt__cut **out, wt__units *units)
{
    (void)confined;
    (void)fine; // one processor is fine enough
    *out = calloc(1, sizeof **out);
    if (!*out) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a handle");
    (*out)->usable = *wt__cpu_device_processors(device);
    const int n_units = CPU_COUNT(&(*out)->usable);
    if (!n_units) {
        free(*out);
        *out = NULL;
        return wt_fail(WT_ERR_UNSUPPORTED, "layout: the system does not tell the processors of %s", device->info.name);
    }
    *units = (wt__units){.n_units = n_units, .unit_sms = 1};
    return WT_OK;
}

static void cut_free(wt__cut *c) { free(c); }

/// The k-th usable processor is unit k.
static void cpus_of(const wt__cut *c, const wt__unit_set *set, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    int unit = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &c->usable)) continue;
        if (!set || set->has[unit]) CPU_SET(cpu, cpus);
        unit++;
    }
}

static void slice_destroy(wt_device *device, wt__slice *slice)
{
    (void)device;
    if (!slice) return;
    wt__pool_destroy(slice->pool);
    free(slice);
}

static wt_status slice_create(wt_device *device, const wt__cut *c, const wt__unit_set *set, int priority,
                              wt__slice **slice, int *n_sms)
{
    *slice = calloc(1, sizeof **slice);
    if (!*slice) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a slice");
    wt__placement placement = {.nice = priority > 0 ? NICE_HIGH : priority < 0 ? NICE_LOW : 0};
    cpus_of(c, set, &placement.cpus);
    *n_sms = CPU_COUNT(&placement.cpus);
    wt_status status = wt__pool_create(*n_sms - 1, &placement, &(*slice)->pool); // a stream's own thread works too
    if (status) {
        slice_destroy(device, *slice);
        *slice = NULL;
    }
    return status;
}

static wt_status stream_create(wt_device *device, wt__slice *slice, int priority, wt_stream **stream)
{
    (void)priority; // threads have the slice's nice value
    return wt__cpu_stream_create(device, slice->pool, stream);
}

static wt_status stream_move(wt_stream *stream, wt__slice *slice, int priority)
{
    (void)priority;
    return wt__cpu_stream_move(stream, slice->pool);
}

const wt__slicing wt__cpu_slicing = {cut, cut_free, slice_create, slice_destroy, stream_create, stream_move};
