// Arguments are checked here, once for both backends; then the backend's function is called.
#include "graph_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- finding and opening

int wt_device_count(void)
{
    int n_usable = 0, n_all = 0;
    if (wt__cuda_device_count(&n_usable, &n_all)) return 0;
    if (!n_usable) {
        wt_device_info info = {0};
        if (wt__cuda_device_query(0, &info)) return 0;
        wt_fail(WT_ERR_UNSUPPORTED,
                "No GPU devices found: %s has compute capability %d.%d, want 8.0 or newer; work on the CPU", info.name,
                info.compute_major, info.compute_minor);
    }
    return n_usable;
}

wt_status wt_device_query(int ordinal, wt_device_info *info)
{
    *info = (wt_device_info){0};
    if (ordinal < -1) return wt_fail(WT_ERR_BAD_ARG, "device: ordinal %d, want -1 (CPU) or more", ordinal);
    return ordinal < 0 ? wt__cpu_device_query(info) : wt__cuda_device_query(ordinal, info);
}

static wt_status backend_of_environment(wt_backend *backend)
{
    const char *name = getenv("WARPTONE_BACKEND");
    *backend = WT_BACKEND_AUTO;
    if (!name || !*name || !strcmp(name, "auto")) return WT_OK;
    if (!strcmp(name, "cuda"))
        *backend = WT_BACKEND_CUDA;
    else if (!strcmp(name, "cpu"))
        *backend = WT_BACKEND_CPU;
    else
        return wt_fail(WT_ERR_BAD_ARG, "WARPTONE_BACKEND is \"%s\", want auto, cuda or cpu", name);
    return WT_OK;
}

wt_status wt_device_open(const wt_device_config *config, wt_device **device)
{
    *device = NULL;
    wt_device_config c = config ? *config : (wt_device_config){0};
    if (c.ordinal < 0 || c.n_threads < 0 || c.n_threads > 4096)
        return wt_fail(WT_ERR_BAD_ARG, "device: ordinal %d, %d threads; want 0 or more, 0..4096", c.ordinal,
                       c.n_threads);
    if (c.backend == WT_BACKEND_AUTO) {
        wt_status status = backend_of_environment(&c.backend);
        if (status) return status;
    }
    switch (c.backend) {
    case WT_BACKEND_CUDA:
        return wt__cuda_device_open(c.ordinal, device);
    case WT_BACKEND_CPU:
        return wt__cpu_device_open(c.n_threads, device);
    case WT_BACKEND_AUTO:
        break;
    default:
        return wt_fail(WT_ERR_BAD_ARG, "device: backend %d, want auto, cuda or cpu", (int)c.backend);
    }
    wt_status status = wt__cuda_device_open(c.ordinal, device);
    if (!status || status == WT_ERR_BAD_ARG) return status; // an ordinal that does not exist is a mistake, not a reason
    char why[1024];
    snprintf(why, sizeof why, "%s", wt_last_error());
    status = wt__cpu_device_open(c.n_threads, device);
    return status ? status : wt_fail(WT_OK, "Falling back to CPU backend: %s", why);
}

void wt_device_close(wt_device *device)
{
    if (!device) return;
    wt__guard_close(device);
    device->ops->close(device);
}

void wt__device_init(wt_device *device, const wt__device_ops *ops, const wt_device_info *info, wt__guard *guard)
{
    *device = (wt_device){.ops = ops, .info = *info, .guard = guard, .mutex = PTHREAD_MUTEX_INITIALIZER};
}

void wt__device_term(wt_device *device)
{
    pthread_mutex_destroy(&device->mutex);
}

const wt_device_info *wt_device_get_info(const wt_device *device)
{
    return &device->info;
}

bool wt_device_is_lost(const wt_device *device) { return device->ops->lost && device->ops->lost(device); }

wt_status wt_device_synchronize(wt_device *device)
{
    if (atomic_load(&device->n_recording))
        return wt_fail(WT_ERR_STATE, "device: cannot synchronize while a graph is being recorded");
    wt_status status = wt__guard_check(device->guard, WT_ARM_CTX_SYNCHRONIZE, "device: synchronize");
    if (status) return status;
    status = device->ops->synchronize(device);
    wt__guard_leave(device->guard);
    return status;
}

// ---- memory

wt_status wt_buffer_create(wt_device *device, wt_memory memory, size_t size_bytes, wt_buffer **buffer)
{
    *buffer = NULL;
    if ((unsigned)memory > WT_MEMORY_MAPPED)
        return wt_fail(WT_ERR_BAD_ARG, "buffer: memory kind %d, want device, pinned or mapped", (int)memory);
    if (size_bytes < 1) return wt_fail(WT_ERR_BAD_ARG, "buffer: 0 bytes, want 1 or more");
    size_t limit = device->info.memory_bytes;
    if (memory == WT_MEMORY_DEVICE && size_bytes > limit)
        return wt_fail(WT_ERR_BAD_ARG, "buffer: %zu bytes, want 1..%zu, the memory of %s", size_bytes, limit,
                       device->info.name);
    wt_status status = device->ops->buffer_create(device, memory, size_bytes, buffer);
    if (!status) wt__handle_open(&(*buffer)->handle, *buffer, WT__A_BUFFER);
    return status;
}

static void release_buffer(wt_device *device, wt__aside *aside)
{
    wt_buffer *buffer = (wt_buffer *)aside; // its first member
    buffer->device = device;
    device->ops->buffer_destroy(buffer);
}

void wt_buffer_destroy(wt_buffer *buffer)
{
    if (!buffer || wt__handle_close(buffer, WT__A_BUFFER)) return;
    wt__guard *guard = buffer->device->guard;
    buffer->aside.release = release_buffer;
    if (!wt__guard_enter_or_put_aside(guard, &buffer->aside)) return;
    buffer->device->ops->buffer_destroy(buffer);
    wt__guard_leave(guard);
}

size_t wt_buffer_size_bytes(const wt_buffer *buffer)
{
    return buffer->size_bytes;
}

void *wt_buffer_host(const wt_buffer *buffer)
{
    return buffer->host;
}

uintptr_t wt_buffer_address(const wt_buffer *buffer)
{
    bool hidden = buffer->memory == WT_MEMORY_PINNED && buffer->device->info.backend == WT_BACKEND_CUDA;
    return hidden ? 0 : buffer->address;
}

// ---- streams

wt_status wt_stream_create(wt_device *device, const wt_stream_config *config, wt_stream **stream)
{
    *stream = NULL;
    int priority = config ? config->priority : 0;
    if (priority < -1 || priority > 1) return wt_fail(WT_ERR_BAD_ARG, "stream: priority %d, want -1, 0 or 1", priority);
    wt_status status = device->ops->stream_create(device, priority, stream);
    if (!status) wt__device_add_stream(device, *stream, NULL, priority);
    return status;
}

void wt__device_add_stream(wt_device *device, wt_stream *stream, wt_partition *partition, int priority)
{
    stream->partition = partition;
    stream->priority = priority;
    pthread_mutex_lock(&device->mutex);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->mutex);
    wt__handle_open(&stream->handle, stream, WT__A_STREAM);
}

void wt_stream_destroy(wt_stream *stream)
{
    if (!stream || wt__handle_close(stream, WT__A_STREAM)) return;
    wt_device *device = stream->device;
    wt_partition *partition = stream->partition;
    pthread_mutex_lock(&device->mutex);
    wt_stream **link = &device->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&device->mutex);
    if (stream->recording) wt__record_abandon(stream->recording);
    device->ops->stream_destroy(stream);
    if (partition) wt__partition_forget(partition);
}

bool wt__device_is_idle(wt_device *device)
{
    bool idle = true;
    pthread_mutex_lock(&device->mutex);
    for (const wt_stream *s = device->streams; s && idle; s = s->next) idle = device->ops->stream_idle(s);
    pthread_mutex_unlock(&device->mutex);
    return idle;
}

wt_device *wt_stream_device(const wt_stream *stream)
{
    return stream->device;
}

static wt_status check_range(const char *what, const wt_stream *stream, const wt_buffer *buffer, size_t offset,
                             size_t size_bytes)
{
    wt_status status = wt__handle_check(stream, WT__A_STREAM);
    if (!status) status = wt__handle_check(buffer, WT__A_BUFFER);
    if (status) return status;
    if (buffer->device != stream->device)
        return wt_fail(WT_ERR_BAD_ARG, "%s: the buffer and the stream belong to different devices", what);
    if (offset > buffer->size_bytes || size_bytes > buffer->size_bytes - offset)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %zu bytes at offset %zu do not fit a buffer of %zu bytes", what, size_bytes,
                       offset, buffer->size_bytes);
    return WT_OK;
}

static wt__place place_of(const wt_buffer *buffer, size_t offset)
{
    bool on_device = buffer->memory == WT_MEMORY_DEVICE;
    return (wt__place){on_device, (on_device ? buffer->address : (uintptr_t)buffer->host) + offset};
}

wt_status wt__stream_copy(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes)
{
    if (stream->recording) return wt__record_copy(stream->recording, to, from, size_bytes);
    return stream->device->ops->copy(stream, to, from, size_bytes);
}

wt_status wt__stream_fill(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes)
{
    if (stream->recording) return wt__record_fill(stream->recording, address, value, size_bytes);
    return stream->device->ops->fill(stream, address, value, size_bytes);
}

wt_status wt_stream_copy(wt_stream *stream, wt_buffer *to, size_t to_offset, const wt_buffer *from, size_t from_offset,
                         size_t size_bytes)
{
    wt_status status = check_range("copy, destination", stream, to, to_offset, size_bytes);
    if (!status) status = check_range("copy, source", stream, from, from_offset, size_bytes);
    if (status || !size_bytes) return status;
    size_t apart = to_offset > from_offset ? to_offset - from_offset : from_offset - to_offset;
    if (to == from && apart < size_bytes)
        return wt_fail(WT_ERR_BAD_ARG, "copy: %zu bytes at offsets %zu and %zu of one buffer overlap", size_bytes,
                       from_offset, to_offset);
    return wt__stream_copy(stream, place_of(to, to_offset), place_of(from, from_offset), size_bytes);
}

wt_status wt_stream_upload(wt_stream *stream, wt_buffer *to, size_t to_offset, const void *from, size_t size_bytes)
{
    wt_status status = check_range("upload", stream, to, to_offset, size_bytes);
    if (status || !size_bytes) return status;
    return wt__stream_copy(stream, place_of(to, to_offset), (wt__place){false, (uintptr_t)from}, size_bytes);
}

wt_status wt_stream_download(wt_stream *stream, void *to, const wt_buffer *from, size_t from_offset, size_t size_bytes)
{
    wt_status status = check_range("download", stream, from, from_offset, size_bytes);
    if (status || !size_bytes) return status;
    return wt__stream_copy(stream, (wt__place){false, (uintptr_t)to}, place_of(from, from_offset), size_bytes);
}

wt_status wt_stream_fill(wt_stream *stream, wt_buffer *buffer, size_t offset, unsigned char value, size_t size_bytes)
{
    wt_status status = check_range("fill", stream, buffer, offset, size_bytes);
    if (status || !size_bytes) return status;
    return wt__stream_fill(stream, buffer->address + offset, value, size_bytes);
}

/// What waits, or reaches over to other streams, has no place in a graph.
static wt_status refuse_recording(const wt_stream *stream, const char *what)
{
    return stream->recording ? wt_fail(WT_ERR_STATE, "%s: not possible while a graph is recorded on the stream", what)
                             : WT_OK;
}

wt_status wt_stream_synchronize(wt_stream *stream)
{
    wt_status status = wt__handle_check(stream, WT__A_STREAM);
    if (!status) status = refuse_recording(stream, "stream: synchronize");
    if (status) return status;
    return stream->device->ops->stream_synchronize(stream);
}

bool wt_stream_idle(const wt_stream *stream) { return stream->device->ops->stream_idle(stream); }

wt_status wt_stream_run(wt_stream *stream, wt_cpu_function function, const void *args, size_t args_bytes, int n_items)
{
    if (stream->device->info.backend != WT_BACKEND_CPU)
        return wt_fail(WT_ERR_UNSUPPORTED, "run: %s runs kernels, not C functions; want a stream of the CPU backend",
                       stream->device->info.name);
    if (args_bytes > WT_MAX_ARGS_BYTES)
        return wt_fail(WT_ERR_BAD_ARG, "run: %zu bytes of arguments, want 0..%d", args_bytes, WT_MAX_ARGS_BYTES);
    if (!function || n_items < 0)
        return wt_fail(WT_ERR_BAD_ARG, "run: %d items, want a function and 0 or more", n_items);
    if (!n_items) return WT_OK;
    return stream->recording ? wt__record_run(stream->recording, function, args, args_bytes, n_items)
                             : wt__cpu_stream_run(stream, function, args, args_bytes, n_items);
}

// ---- events

wt_status wt_event_create(wt_device *device, wt_event **event)
{
    *event = NULL;
    return device->ops->event_create(device, event);
}

void wt_event_destroy(wt_event *event)
{
    if (event) event->device->ops->event_destroy(event);
}

wt_status wt_event_record(wt_event *event, wt_stream *stream)
{
    if (event->device != stream->device)
        return wt_fail(WT_ERR_BAD_ARG, "record: the event and the stream belong to different devices");
    wt_status status = refuse_recording(stream, "record");
    if (!status) status = event->device->ops->record(event, stream);
    if (!status) atomic_store(&event->recorded, true);
    return status;
}

wt_status wt_stream_wait(wt_stream *stream, wt_event *event)
{
    if (event->device != stream->device)
        return wt_fail(WT_ERR_BAD_ARG, "wait: the event and the stream belong to different devices");
    wt_status status = refuse_recording(stream, "wait");
    return status || !atomic_load(&event->recorded) ? status : stream->device->ops->wait(stream, event);
}

bool wt_event_done(const wt_event *event)
{
    return !atomic_load(&event->recorded) || event->device->ops->event_done(event);
}

wt_status wt_event_synchronize(wt_event *event)
{
    return atomic_load(&event->recorded) ? event->device->ops->event_synchronize(event) : WT_OK;
}

wt_status wt_event_elapsed_us(const wt_event *begin, const wt_event *end, double *elapsed_us)
{
    *elapsed_us = 0;
    if (begin->device != end->device)
        return wt_fail(WT_ERR_BAD_ARG, "elapsed: the two events belong to different devices");
    const wt_event *ends[] = {begin, end};
    for (int k = 0; k < 2; k++) {
        const char *which = k ? "end" : "begin";
        if (!atomic_load(&ends[k]->recorded))
            return wt_fail(WT_ERR_STATE, "elapsed: the %s event was never recorded", which);
        if (!wt_event_done(ends[k])) return wt_fail(WT_ERR_STATE, "elapsed: the %s event is not reached yet", which);
    }
    return begin->device->ops->elapsed_us(begin, end, elapsed_us);
}
