// Partitions of a GPU: green contexts. One split makes all units of a device, because only outputs of the same split
// may be joined in one descriptor (cuDevResourceGenerateDesc), and only they are disjoint for certain. A partition
// joins several units, and perhaps what the split left over. The green contexts are never made current.
#include "device_cuda.h"
#include "partition_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FINE_SMS = 2 };

struct wt__cut {
    int n_units;
    CUdevResource rest;
    CUdevResource units[];
};

struct wt__slice {
    CUgreenCtx context; ///< NULL = the whole device: streams of the primary context
};

static wt_status split(const wt__cuda_device *d, unsigned int flags, unsigned int n_sms, CUdevResource *units,
                       unsigned int *n_units, const CUdevResource *all, CUdevResource *rest)
{
    return wt__cu(d->cuda, d->cuda->DevSmResourceSplitByCount(units, n_units, all, rest, flags, n_sms),
                  "layout: split the %u SMs of %s into units of %u", all->sm.smCount, d->base.info.name, n_sms);
}

static wt_status cut(wt_device *device, bool confined, bool fine, wt__cut **out, wt__units *units)
{
    const wt__cuda_device *d = wt__cuda_device_of(device);
    *out = NULL;
    *units = (wt__units){.n_units = device->info.n_sms, .unit_sms = 1};
    if (!confined) return WT_OK;
    if (!device->info.partition_sms)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "layout: the driver of %s has no green contexts (CUDA %d.%d, want 12.4 or newer); "
                       "isolation priority works",
                       device->info.name, device->info.driver_version / 1000, device->info.driver_version % 1000 / 10);
    const unsigned int flags = fine ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
    const unsigned int n_sms = fine ? FINE_SMS : (unsigned)device->info.partition_sms;
    unsigned int n_units = 0;
    CUdevResource all;
    memset(&all, 0, sizeof all);
    wt_status status = wt__cuda_enter(d);
    if (!status)
        status = wt__cu(d->cuda, d->cuda->DeviceGetDevResource(d->device, &all, CU_DEV_RESOURCE_TYPE_SM),
                        "layout: SMs of %s", device->info.name);
    if (!status) status = split(d, flags, n_sms, NULL, &n_units, &all, NULL);
    if (status) return status;
    if (n_units < 1 || n_units > WT_MAX_UNITS)
        return wt_fail(WT_ERR_UNSUPPORTED, "layout: %s splits into %u units, want 1..%d", device->info.name, n_units,
                       WT_MAX_UNITS);
    wt__cut *c = calloc(1, sizeof *c + sizeof c->units[0] * n_units);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for %u units", n_units);
    status = split(d, flags, n_sms, c->units, &n_units, &all, &c->rest);
    if (status) {
        free(c);
        return status;
    }
    c->n_units = (int)n_units;
    units->n_units = (int)n_units;
    units->unit_sms = (int)c->units[0].sm.smCount;
    units->rest_sms = (int)all.sm.smCount - units->n_units * units->unit_sms;
    *out = c;
    return WT_OK;
}

static wt_status create_context(const wt__cuda_device *d, CUdevResource *resources, int n_resources,
                                CUgreenCtx *context, int *n_sms)
{
    const wt__cuda *cuda = d->cuda;
    CUdevResourceDesc desc = NULL;
    wt_status status = wt__cuda_enter(d);
    if (!status)
        status = wt__cu(cuda, cuda->DevResourceGenerateDesc(&desc, resources, (unsigned)n_resources),
                        "layout: join %d units", n_resources);
    if (!status)
        status = wt__cu(cuda, cuda->GreenCtxCreate(context, desc, d->device, CU_GREEN_CTX_DEFAULT_STREAM),
                        "layout: green context of %d units", n_resources);
    if (status) return status;
    CUdevResource got;
    memset(&got, 0, sizeof got);
    status = wt__cu(cuda, cuda->GreenCtxGetDevResource(*context, &got, CU_DEV_RESOURCE_TYPE_SM),
                    "layout: SMs of a green context");
    *n_sms = (int)got.sm.smCount;
    return status;
}

static void slice_destroy(wt_device *device, wt__slice *slice)
{
    if (!slice) return;
    const wt__cuda_device *d = wt__cuda_device_of(device);
    if (slice->context && wt__cuda_enter_to_free(d)) d->cuda->GreenCtxDestroy(slice->context);
    free(slice);
}

static wt_status slice_create(wt_device *device, const wt__cut *c, const wt__unit_set *set, int priority,
                              wt__slice **slice, int *n_sms)
{
    (void)priority; // is each stream's own
    *slice = calloc(1, sizeof **slice);
    CUdevResource *resources = set ? calloc((size_t)c->n_units + 1, sizeof *resources) : NULL;
    if (!*slice || (set && !resources)) {
        free(*slice);
        free(resources);
        *slice = NULL;
        return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a slice");
    }
    *n_sms = device->info.n_sms;
    if (!set) return WT_OK;
    int n = 0;
    for (int k = 0; k < c->n_units; k++)
        if (set->has[k]) resources[n++] = c->units[k];
    if (set->rest) resources[n++] = c->rest;
    wt_status status = create_context(wt__cuda_device_of(device), resources, n, &(*slice)->context, n_sms);
    free(resources);
    if (status) {
        slice_destroy(device, *slice);
        *slice = NULL;
    }
    return status;
}

static wt_status make_stream(const wt__cuda_device *d, const wt__slice *slice, int priority, CUstream *made)
{
    const int number = wt__cuda_priority(d, priority);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    CUresult result = slice->context
                          ? d->cuda->GreenCtxStreamCreate(made, slice->context, CU_STREAM_NON_BLOCKING, number)
                          : d->cuda->StreamCreateWithPriority(made, CU_STREAM_NON_BLOCKING, number);
    return wt__cu(d->cuda, result, "partition: stream");
}

static wt_status stream_create(wt_device *device, wt__slice *slice, int priority, wt_stream **stream)
{
    CUstream made = NULL;
    wt_status status = make_stream(wt__cuda_device_of(device), slice, priority, &made);
    return status ? status : wt__cuda_stream_wrap(device, made, stream);
}

static wt_status stream_move(wt_stream *stream, wt__slice *slice, int priority)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    CUstream made = NULL;
    wt_status status = make_stream(d, slice, priority, &made);
    if (status) return status;
    d->cuda->StreamDestroy(wt__cuda_stream_of(stream));
    ((wt__cuda_stream *)stream)->stream = made;
    return WT_OK;
}

const wt__slicing wt__cuda_slicing = {cut, slice_create, slice_destroy, stream_create, stream_move};
