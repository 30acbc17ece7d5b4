// Partitions of a GPU: green contexts. One split makes all units of a device, because only outputs of the same split
// may be joined in one descriptor (cuDevResourceGenerateDesc), and only they are disjoint for certain. A partition
// joins several units, and perhaps what the split left over. The green contexts are never made current.
//
// The driver (580.159, on an H200) keeps 4 MB of device memory for every green context that is made and destroyed,
// until the primary context goes. So a device keeps its two splits and the green contexts that nobody uses, and gives a
// layout with the same SMs one of those: layouts that come and go, and resizes back and forth, then take nothing more.
#include "device_cuda.h"
#include "partition_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FINE_SMS = 2, MAX_SPARE = 32 }; // spare ones: twice the partitions of a layout

struct wt__cut {
    bool fine;
    int n_units;
    CUdevResource all, rest;
    CUdevResource units[];
};

struct wt__slice {
    wt__aside aside;    ///< first member
    CUgreenCtx context; ///< NULL = the whole device: streams of the primary context
    int n_sms;
    bool fine;
    wt__unit_set set;
    wt__slice *next; ///< in the list of spare ones, the last used first
};

static wt_status split(const wt__cuda_device *d, unsigned int flags, unsigned int n_sms, CUdevResource *units,
                       unsigned int *n_units, const CUdevResource *all, CUdevResource *rest)
{
    return wt__cu(d->cuda, d->cuda->DevSmResourceSplitByCount(units, n_units, all, rest, flags, n_sms),
                  "layout: split the %u SMs of %s into units of %u", all->sm.smCount, d->base.info.name, n_sms);
}

static wt_status make_cut(const wt__cuda_device *d, bool fine, wt__cut **out)
{
    const wt_device_info *info = &d->base.info;
    const unsigned int flags = fine ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
    const unsigned int n_sms = fine ? FINE_SMS : (unsigned)info->partition_sms;
    unsigned int n_units = 0;
    CUdevResource all;
    memset(&all, 0, sizeof all);
    wt_status status = wt__cuda_enter(d);
    if (!status)
        status = wt__cu(d->cuda, d->cuda->DeviceGetDevResource(d->device, &all, CU_DEV_RESOURCE_TYPE_SM),
                        "layout: SMs of %s", info->name);
    if (!status) status = split(d, flags, n_sms, NULL, &n_units, &all, NULL);
    if (status) return status;
    if (n_units < 1 || n_units > WT_MAX_UNITS)
        return wt_fail(WT_ERR_UNSUPPORTED, "layout: %s splits into %u units, want 1..%d", info->name, n_units,
                       WT_MAX_UNITS);
    wt__cut *c = calloc(1, sizeof *c + sizeof c->units[0] * n_units);
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for %u units", n_units);
    status = split(d, flags, n_sms, c->units, &n_units, &all, &c->rest);
    if (status) {
        free(c);
        return status;
    }
    c->fine = fine;
    c->n_units = (int)n_units;
    c->all = all;
    *out = c;
    return WT_OK;
}

static wt_status cut(wt_device *device, bool confined, bool fine, wt__cut **out, wt__units *units)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    *out = NULL;
    *units = (wt__units){.n_units = device->info.n_sms, .unit_sms = 1};
    if (!confined) return WT_OK;
    if (!device->info.partition_sms)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "layout: the driver of %s has no green contexts (CUDA %d.%d, want 12.4 or newer); "
                       "isolation priority works",
                       device->info.name, device->info.driver_version / 1000, device->info.driver_version % 1000 / 10);
    pthread_mutex_lock(&d->kept.mutex);
    wt__cut **kept = &d->kept.cuts[fine];
    wt_status status = *kept ? WT_OK : make_cut(d, fine, kept);
    pthread_mutex_unlock(&d->kept.mutex);
    if (status) return status;
    const wt__cut *c = *out = *kept;
    *units = (wt__units){.n_units = c->n_units, .unit_sms = (int)c->units[0].sm.smCount};
    units->rest_sms = (int)c->all.sm.smCount - units->n_units * units->unit_sms;
    return WT_OK;
}

static void cut_free(wt__cut *c) { (void)c; } // the device keeps it

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

static void destroy_green(const wt__cuda_device *d, wt__slice *slice)
{
    if (slice->context && wt__cuda_enter_to_free(d)) d->cuda->GreenCtxDestroy(slice->context);
    free(slice);
}

static wt__slice *take_spare(wt__cuda_device *d, bool fine, const wt__unit_set *set)
{
    pthread_mutex_lock(&d->kept.mutex);
    wt__slice **link = &d->kept.spare;
    while (*link && ((*link)->fine != fine || memcmp(&(*link)->set, set, sizeof *set))) link = &(*link)->next;
    wt__slice *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&d->kept.mutex);
    return found;
}

/// Put it in front; what must go for it is returned, or NULL.
static wt__slice *keep_spare(wt__cuda_device *d, wt__slice *slice)
{
    pthread_mutex_lock(&d->kept.mutex);
    slice->next = d->kept.spare;
    d->kept.spare = slice;
    wt__slice **link = &d->kept.spare;
    for (int k = 0; k < MAX_SPARE && *link; k++) link = &(*link)->next;
    wt__slice *oldest = *link;
    *link = NULL;
    pthread_mutex_unlock(&d->kept.mutex);
    return oldest;
}

static void slice_destroy(wt_device *device, wt__slice *slice)
{
    if (!slice) return;
    wt__cuda_device *d = wt__cuda_device_of(device);
    const bool useless = !slice->context || wt__cuda_is_lost(d->device);
    wt__slice *gone = useless ? slice : keep_spare(d, slice);
    if (gone) destroy_green(d, gone);
}

static void release_spare(wt_device *device, wt__aside *aside)
{
    destroy_green(wt__cuda_device_of(device), (wt__slice *)aside); // its first member
}

/// False: there were none.
static bool drop_spare(wt__cuda_device *d)
{
    pthread_mutex_lock(&d->kept.mutex);
    wt__slice *all = d->kept.spare, *next;
    d->kept.spare = NULL;
    pthread_mutex_unlock(&d->kept.mutex);
    for (wt__slice *slice = all; slice; slice = next) {
        next = slice->next;
        slice->aside.release = release_spare;
        if (!wt__guard_enter_or_put_aside(d->base.guard, &slice->aside)) continue; // armed by another handle
        destroy_green(d, slice);
        wt__guard_leave(d->base.guard);
    }
    return all;
}

void wt__cuda_kept_free(wt__cuda_device *d)
{
    drop_spare(d);
    for (int fine = 0; fine < 2; fine++) free(d->kept.cuts[fine]);
    pthread_mutex_destroy(&d->kept.mutex);
}

static wt_status make_green(const wt__cuda_device *d, const wt__cut *c, wt__slice *slice)
{
    CUdevResource *resources = calloc((size_t)c->n_units + 1, sizeof *resources);
    if (!resources) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a slice");
    int n = 0;
    for (int k = 0; k < c->n_units; k++)
        if (slice->set.has[k]) resources[n++] = c->units[k];
    if (slice->set.rest) resources[n++] = c->rest;
    wt_status status = create_context(d, resources, n, &slice->context, &slice->n_sms);
    free(resources);
    return status;
}

static wt_status slice_create(wt_device *device, const wt__cut *c, const wt__unit_set *set, int priority,
                              wt__slice **slice, int *n_sms)
{
    (void)priority; // is each stream's own
    wt__cuda_device *d = wt__cuda_device_of(device);
    *slice = set ? take_spare(d, c->fine, set) : NULL;
    if (*slice) {
        *n_sms = (*slice)->n_sms;
        return WT_OK;
    }
    wt__slice *made = calloc(1, sizeof *made);
    if (!made) return wt_fail(WT_ERR_NO_MEMORY, "layout: no memory for a slice");
    made->n_sms = device->info.n_sms;
    if (set) {
        made->fine = c->fine;
        made->set = *set;
        wt_status status = make_green(d, c, made);
        if (status && !made->context && drop_spare(d)) status = make_green(d, c, made); // they may have been in the way
        if (status) {
            destroy_green(d, made);
            return status;
        }
    }
    *slice = made;
    *n_sms = made->n_sms;
    return WT_OK;
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

const wt__slicing wt__cuda_slicing = {cut, cut_free, slice_create, slice_destroy, stream_create, stream_move};
