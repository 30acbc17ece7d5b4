// The CUDA backend: the primary context of one device, plain allocations, non-blocking streams.
#include "device_cuda.h"
#include "partition_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 64, MIN_MAJOR = 8 };

typedef struct cuda_event {
    wt_event base;
    CUevent event;
} cuda_event;

// ---- finding

typedef struct device_list {
    const wt__cuda *cuda;
    int n_usable, n_all;
    CUdevice devices[MAX_DEVICES]; ///< usable ones first
} device_list;

static int attribute_of(const wt__cuda *cuda, int attribute, CUdevice device)
{
    int value = 0;
    return cuda->DeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

static wt_status list_devices(device_list *list)
{
    *list = (device_list){0};
    wt_status status = wt__cuda_open(&list->cuda);
    if (status) return status;
    const wt__cuda *cuda = list->cuda;
    int n_devices = 0, n_old = 0;
    CUdevice old[MAX_DEVICES];
    status = wt__cu(cuda, cuda->DeviceGetCount(&n_devices), "device: count");
    if (status) return status;
    for (int k = 0; k < n_devices && k < MAX_DEVICES; k++) {
        CUdevice device;
        status = wt__cu(cuda, cuda->DeviceGet(&device, k), "device: CUDA device %d", k);
        if (status) return status;
        bool usable = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) >= MIN_MAJOR;
        if (usable)
            list->devices[list->n_usable++] = device;
        else
            old[n_old++] = device;
    }
    memcpy(list->devices + list->n_usable, old, sizeof *old * (size_t)n_old);
    list->n_all = list->n_usable + n_old;
    if (!list->n_all)
        return wt_fail(WT_ERR_NO_GPU, "No GPU devices found: the driver is there but offers no device; see what "
                                      "nvidia-smi lists and whether CUDA_VISIBLE_DEVICES hides it");
    return WT_OK;
}

wt_status wt__cuda_device_count(int *n_usable, int *n_all)
{
    device_list list;
    wt_status status = list_devices(&list);
    *n_usable = list.n_usable;
    *n_all = list.n_all;
    return status;
}

static wt_status find_device(device_list *list, int ordinal)
{
    wt_status status = list_devices(list);
    if (status) return status;
    if (ordinal < 0 || ordinal >= list->n_all)
        return wt_fail(WT_ERR_BAD_ARG, "device: CUDA device %d, want 0..%d", ordinal, list->n_all - 1);
    return WT_OK;
}

// ---- facts

/// Smallest group of SMs that the driver splits off, for a wish of `n_sms`; 0 when it refuses.
static int trial_split(const wt__cuda *cuda, const CUdevResource *all, unsigned int n_sms)
{
    CUdevResource group, remaining;
    memset(&group, 0, sizeof group);
    unsigned int n_groups = 1;
    if (cuda->DevSmResourceSplitByCount(&group, &n_groups, all, &remaining, 0, n_sms) || !n_groups) return 0;
    return (int)group.sm.smCount;
}

static void query_partitions(const wt__cuda *cuda, CUdevice device, wt_device_info *info)
{
    if (!cuda->DeviceGetDevResource || !cuda->DevSmResourceSplitByCount || !cuda->GreenCtxCreate ||
        !cuda->GreenCtxStreamCreate)
        return;
    CUdevResource all;
    memset(&all, 0, sizeof all);
    if (cuda->DeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM)) return;
    info->partition_sms = trial_split(cuda, &all, 1);
    int next = info->partition_sms ? trial_split(cuda, &all, (unsigned int)info->partition_sms + 1) : 0;
    info->partition_align_sms = next > info->partition_sms ? next - info->partition_sms : info->partition_sms;
}

static wt_status query_device(const device_list *list, int ordinal, wt_device_info *info)
{
    const wt__cuda *cuda = list->cuda;
    CUdevice device = list->devices[ordinal];
    *info = (wt_device_info){.backend = WT_BACKEND_CUDA, .ordinal = ordinal, .driver_version = cuda->driver_version};
    wt_status status = wt__cu(cuda, cuda->DeviceGetName(info->name, sizeof info->name, device), "device: name");
    if (!status) status = wt__cu(cuda, cuda->DeviceTotalMem(&info->memory_bytes, device), "device: memory");
    if (status) return status;
    info->compute_major = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    info->compute_minor = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    info->n_sms = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    info->l2_bytes = (size_t)attribute_of(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    info->shared_bytes = (size_t)attribute_of(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    if (cuda->DeviceGetPCIBusId(info->pci_bus_id, sizeof info->pci_bus_id, device)) info->pci_bus_id[0] = 0;
    query_partitions(cuda, device, info);
    return WT_OK;
}

wt_status wt__cuda_device_query(int ordinal, wt_device_info *info)
{
    device_list list;
    wt_status status = find_device(&list, ordinal);
    if (!status) status = query_device(&list, ordinal, info);
    if (status) return status;
    const wt__cuda *cuda = list.cuda;
    CUdevice device = list.devices[ordinal];
    CUcontext before = NULL, context = NULL;
    if (wt__cuda_is_lost(device)) return wt__cuda_say_lost(device);
    wt__cuda_entering(device);
    status = wt__cu(cuda, cuda->CtxGetCurrent(&before), "device: current context");
    if (!status) status = wt__cu(cuda, cuda->DevicePrimaryCtxRetain(&context, device), "device: %s", info->name);
    if (status) return status;
    size_t total_bytes = 0; // free memory is known in a context only
    status = wt__cu(cuda, cuda->CtxSetCurrent(context), "device: %s", info->name);
    if (!status) status = wt__cu(cuda, cuda->MemGetInfo(&info->memory_free_bytes, &total_bytes), "device: free memory");
    cuda->CtxSetCurrent(before);
    cuda->DevicePrimaryCtxRelease(device);
    return status;
}

// ---- the device

wt_status wt__cuda_enter(const wt__cuda_device *d)
{
    if (wt__cuda_is_lost(d->device)) return wt__cuda_say_lost(d->device);
    wt__cuda_entering(d->device);
    return wt__cu(d->cuda, d->cuda->CtxSetCurrent(d->context), "device %s: make current", d->base.info.name);
}

bool wt__cuda_enter_to_free(const wt__cuda_device *d)
{
    return !d->cuda->CtxSetCurrent(d->context) || wt__cuda_is_lost(d->device);
}

static bool cuda_lost(const wt_device *device) { return wt__cuda_is_lost(((const wt__cuda_device *)device)->device); }

static wt_status cuda_synchronize(wt_device *device)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    wt_status status = wt__cuda_enter(d);
    return status ? status : wt__cu(d->cuda, d->cuda->CtxSynchronize(), "device: synchronize");
}

static void cuda_close(wt_device *device)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    wt__cuda_kept_free(d);
    if (d->context && wt__cuda_enter_to_free(d)) {
        if (d->own) d->cuda->StreamDestroy(d->own);
        d->cuda->CtxSetCurrent(NULL);
    }
    if (d->context) wt__cuda_release(d->cuda, d->device);
    wt__device_term(device);
    free(d);
}

// ---- memory

static wt_status take_device_memory(wt__cuda_device *d, wt_buffer *b)
{
    CUdeviceptr address = 0;
    wt_status status = wt__cu(d->cuda, d->cuda->MemAlloc(&address, b->size_bytes), "buffer: %zu bytes of device memory",
                              b->size_bytes);
    if (status) return status;
    b->address = (uintptr_t)address;
    status = wt__cu(d->cuda, d->cuda->MemsetD8Async(address, 0, b->size_bytes, d->own), "buffer: zero");
    return status ? status : wt__cu(d->cuda, d->cuda->StreamSynchronize(d->own), "buffer: zero");
}

static wt_status take_host_memory(wt__cuda_device *d, wt_buffer *b)
{
    wt_status status = wt__cu(
        d->cuda, d->cuda->MemHostAlloc(&b->host, b->size_bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        "buffer: %zu bytes of page-locked memory", b->size_bytes);
    if (status) return status;
    memset(b->host, 0, b->size_bytes);
    CUdeviceptr address = 0;
    status = wt__cu(d->cuda, d->cuda->MemHostGetDevicePointer(&address, b->host, 0), "buffer: device address");
    b->address = (uintptr_t)address;
    return status;
}

static void cuda_buffer_destroy(wt_buffer *b)
{
    wt__cuda_device *d = wt__cuda_device_of(b->device);
    if (wt__cuda_enter_to_free(d)) {
        if (b->host)
            d->cuda->MemFreeHost(b->host);
        else if (b->address)
            d->cuda->MemFree((CUdeviceptr)b->address);
    }
    free(b);
}

static wt_status cuda_buffer_create(wt_device *device, wt_memory memory, size_t size_bytes, wt_buffer **buffer)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    wt_buffer *b = calloc(1, sizeof *b);
    if (!b) return wt_fail(WT_ERR_NO_MEMORY, "buffer: no memory for a handle");
    *b = (wt_buffer){.device = device, .memory = memory, .size_bytes = size_bytes};
    status = memory == WT_MEMORY_DEVICE ? take_device_memory(d, b) : take_host_memory(d, b);
    if (status) {
        cuda_buffer_destroy(b);
        return status;
    }
    *buffer = b;
    return WT_OK;
}

// ---- streams

int wt__cuda_priority(const wt__cuda_device *d, int priority)
{
    if (priority) return priority > 0 ? d->highest_priority : d->lowest_priority;
    return d->highest_priority < -1 ? (d->lowest_priority + d->highest_priority) / 2 : 0;
}

wt_status wt__cuda_stream_wrap(wt_device *device, CUstream cuda_stream, wt_stream **stream)
{
    wt__cuda_stream *s = calloc(1, sizeof *s);
    if (!s) {
        wt__cuda_device_of(device)->cuda->StreamDestroy(cuda_stream);
        return wt_fail(WT_ERR_NO_MEMORY, "stream: no memory for a handle");
    }
    s->base.device = device;
    s->stream = cuda_stream;
    *stream = &s->base;
    return WT_OK;
}

static wt_status cuda_stream_create(wt_device *device, int priority, wt_stream **stream)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    CUstream made = NULL;
    wt_status status = wt__cuda_enter(d);
    if (!status)
        status = wt__cu(
            d->cuda, d->cuda->StreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, wt__cuda_priority(d, priority)),
            "stream: create");
    return status ? status : wt__cuda_stream_wrap(device, made, stream);
}

static bool cuda_stream_idle(const wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    CUstream s = wt__cuda_stream_of(stream);
    int capturing = 0;
    if (d->cuda->CtxSetCurrent(d->context) || d->cuda->StreamIsCapturing(s, &capturing)) return true;
    if (capturing) return false; // asking further would spoil the capture
    return d->cuda->StreamQuery(s) != CUDA_ERROR_NOT_READY;
}

static void cuda_stream_destroy(wt_stream *stream)
{
    wt__cuda_device *d = wt__cuda_device_of(stream->device);
    CUstream s = wt__cuda_stream_of(stream);
    if (wt__cuda_enter_to_free(d)) {
        d->cuda->StreamSynchronize(s);
        d->cuda->StreamDestroy(s);
    }
    free(stream);
}

static wt_status cuda_copy(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    CUstream s = wt__cuda_stream_of(stream);
    CUresult result;
    if (to.on_device && from.on_device)
        result = d->cuda->MemcpyDtoDAsync(to.address, from.address, size_bytes, s);
    else if (to.on_device)
        result = d->cuda->MemcpyHtoDAsync(to.address, (const void *)from.address, size_bytes, s);
    else if (from.on_device)
        result = d->cuda->MemcpyDtoHAsync((void *)to.address, from.address, size_bytes, s);
    else
        result = d->cuda->MemcpyAsync(to.address, from.address, size_bytes, s);
    return wt__cu(d->cuda, result, "copy of %zu bytes", size_bytes);
}

static wt_status cuda_fill(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->MemsetD8Async(address, value, size_bytes, wt__cuda_stream_of(stream)),
                  "fill of %zu bytes", size_bytes);
}

static wt_status cuda_stream_synchronize(wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(stream->device);
    wt_status status = wt__cuda_enter(d);
    return status ? status : wt__cu(d->cuda, d->cuda->StreamSynchronize(wt__cuda_stream_of(stream)), "stream");
}

// ---- events

static CUevent event_of(const wt_event *event)
{
    return ((const cuda_event *)event)->event;
}

static wt_status cuda_event_create(wt_device *device, wt_event **event)
{
    wt__cuda_device *d = wt__cuda_device_of(device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    cuda_event *e = calloc(1, sizeof *e);
    if (!e) return wt_fail(WT_ERR_NO_MEMORY, "event: no memory for a handle");
    e->base.device = device;
    status = wt__cu(d->cuda, d->cuda->EventCreate(&e->event, CU_EVENT_DEFAULT), "event: create");
    if (status) {
        free(e);
        return status;
    }
    *event = &e->base;
    return WT_OK;
}

static void cuda_event_destroy(wt_event *event)
{
    const wt__cuda_device *d = wt__cuda_device_of(event->device);
    if (wt__cuda_enter_to_free(d)) d->cuda->EventDestroy(event_of(event));
    free(event);
}

static wt_status cuda_record(wt_event *event, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(event->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->EventRecord(event_of(event), wt__cuda_stream_of(stream)), "event: record");
}

static wt_status cuda_wait(wt_stream *stream, wt_event *event)
{
    const wt__cuda_device *d = wt__cuda_device_of(event->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->StreamWaitEvent(wt__cuda_stream_of(stream), event_of(event), 0), "event: wait");
}

static bool cuda_event_done(const wt_event *event)
{
    const wt__cuda_device *d = wt__cuda_device_of(event->device);
    return d->cuda->CtxSetCurrent(d->context) || d->cuda->EventQuery(event_of(event)) != CUDA_ERROR_NOT_READY;
}

static wt_status cuda_event_synchronize(wt_event *event)
{
    const wt__cuda_device *d = wt__cuda_device_of(event->device);
    wt_status status = wt__cuda_enter(d);
    return status ? status : wt__cu(d->cuda, d->cuda->EventSynchronize(event_of(event)), "event: synchronize");
}

static wt_status cuda_elapsed_us(const wt_event *begin, const wt_event *end, double *elapsed_us)
{
    const wt__cuda_device *d = wt__cuda_device_of(begin->device);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    float milliseconds = 0;
    status = wt__cu(d->cuda, d->cuda->EventElapsedTime(&milliseconds, event_of(begin), event_of(end)), "elapsed");
    *elapsed_us = milliseconds * 1e3;
    return status;
}

// ---- opening

static const wt__device_ops cuda_ops = {
    .close = cuda_close,
    .lost = cuda_lost,
    .synchronize = cuda_synchronize,
    .buffer_create = cuda_buffer_create,
    .buffer_destroy = cuda_buffer_destroy,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_idle = cuda_stream_idle,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .record = cuda_record,
    .wait = cuda_wait,
    .event_done = cuda_event_done,
    .event_synchronize = cuda_event_synchronize,
    .elapsed_us = cuda_elapsed_us,
    .slicing = &wt__cuda_slicing,
};

static wt_status start(wt__cuda_device *d)
{
    const wt__cuda *cuda = d->cuda;
    const char *name = d->base.info.name;
    wt_status status = wt__cuda_retain(cuda, d->device, name, &d->context);
    if (status) return status;
    size_t total_bytes = 0;
    status = wt__cuda_enter(d);
    if (!status)
        status =
            wt__cu(cuda, cuda->MemGetInfo(&d->base.info.memory_free_bytes, &total_bytes), "device %s: memory", name);
    if (!status)
        status = wt__cu(cuda, cuda->CtxGetStreamPriorityRange(&d->lowest_priority, &d->highest_priority),
                        "device %s: stream priorities", name);
    if (!status)
        status = wt__cu(cuda, cuda->StreamCreateWithPriority(&d->own, CU_STREAM_NON_BLOCKING, d->lowest_priority),
                        "device %s: stream", name);
    return status;
}

wt_status wt__cuda_device_open(int ordinal, wt_device **device)
{
    device_list list;
    wt_device_info info;
    wt_status status = find_device(&list, ordinal);
    if (!status) status = query_device(&list, ordinal, &info);
    if (status) return status;
    if (ordinal >= list.n_usable)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "device: %s has compute capability %d.%d, want 8.0 or newer; work on the CPU", info.name,
                       info.compute_major, info.compute_minor);
    wt__cuda_device *d = calloc(1, sizeof *d);
    if (!d) return wt_fail(WT_ERR_NO_MEMORY, "device: no memory for a handle");
    d->cuda = list.cuda;
    d->device = list.devices[ordinal];
    d->has_domains = attribute_of(d->cuda, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, d->device) > 1;
    pthread_mutex_init(&d->kept.mutex, NULL);
    wt__device_init(&d->base, &cuda_ops, &info, wt__cuda_guard_of(d->device));
    status = start(d);
    if (status) {
        cuda_close(&d->base);
        return status;
    }
    *device = &d->base;
    return WT_OK;
}
