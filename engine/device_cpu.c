// The CPU backend: what a machine has, memory, and the list of streams.
#include "cpu_stream.h"
#include "partition_internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN_BYTES = 64, MAX_CACHES = 8, TEXT_BYTES = 8192 };

typedef struct cpu_device {
    wt_device base;
    wt__guard guard;
    wt__pool *pool;
    wt__placement placement; ///< of all threads that are not a partition's
} cpu_device;

// ---- facts

/// The first bytes of a small file as text; false when it cannot be read. (No stdio: it would allocate.)
static bool read_text(const char *path, char *text, size_t text_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, text, text_bytes - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

/// What stands after "key   :" in a file of such lines; false when it is not there.
static bool find_line(const char *path, const char *key, char *value, size_t value_bytes)
{
    char text[TEXT_BYTES];
    if (!read_text(path, text, sizeof text)) return false;
    for (char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, key, strlen(key))) continue;
        line += strlen(key);
        line += strspn(line, " \t:");
        snprintf(value, value_bytes, "%.*s", (int)strcspn(line, "\n"), line);
        return true;
    }
    return false;
}

static size_t memory_line(const char *key)
{
    char text[64];
    return find_line("/proc/meminfo", key, text, sizeof text) ? (size_t)strtoull(text, NULL, 10) * 1024 : 0;
}

/// Size of the largest cache of processor 0, as Linux tells it ("32768K").
static size_t last_level_cache_bytes(void)
{
    size_t largest = 0;
    for (int k = 0; k < MAX_CACHES; k++) {
        char path[96], text[32], *unit;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", k);
        if (!read_text(path, text, sizeof text)) break;
        size_t bytes = (size_t)strtoull(text, &unit, 10) * (*unit == 'K' ? 1024 : *unit == 'M' ? 1048576 : 1);
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

/// The calling thread's. Empty when the system does not tell: then threads stay where they are.
static cpu_set_t usable_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) CPU_ZERO(&set);
    return set;
}

wt_status wt__cpu_device_query(wt_device_info *info)
{
    const cpu_set_t processors = usable_processors();
    const int n = CPU_COUNT(&processors);
    *info = (wt_device_info){.backend = WT_BACKEND_CPU, .n_sms = n > 0 ? n : 1};
    if (!find_line("/proc/cpuinfo", "model name", info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "CPU");
    info->memory_bytes = memory_line("MemTotal");
    info->memory_free_bytes = memory_line("MemAvailable");
    info->l2_bytes = last_level_cache_bytes();
    if (!info->memory_bytes)
        return wt_fail(WT_ERR_FILE, "device: /proc/meminfo does not tell MemTotal; is /proc mounted?");
    return WT_OK;
}

// ---- memory

static cpu_device *cpu_device_of(wt_device *device)
{
    return (cpu_device *)device;
}

const cpu_set_t *wt__cpu_device_processors(const wt_device *device)
{
    return &((const cpu_device *)device)->placement.cpus;
}

static wt_status synchronize(wt_device *device)
{
    wt_status status = WT_OK;
    pthread_mutex_lock(&device->mutex);
    for (wt_stream *stream = device->streams; stream && !status; stream = stream->next)
        status = wt__cpu_stream_synchronize(stream);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

static wt_status buffer_create(wt_device *device, wt_memory memory, size_t size_bytes, wt_buffer **buffer)
{
    size_t limit = device->info.memory_bytes;
    if (size_bytes > limit)
        return wt_fail(WT_ERR_BAD_ARG, "buffer: %zu bytes, want 1..%zu, the memory of this machine", size_bytes, limit);
    wt_buffer *b = calloc(1, sizeof *b);
    size_t padded = (size_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    void *host = b ? aligned_alloc(ALIGN_BYTES, padded) : NULL;
    if (!host) {
        free(b);
        return wt_fail(WT_ERR_NO_MEMORY, "buffer: no memory for %zu bytes", size_bytes);
    }
    memset(host, 0, padded);
    *b = (wt_buffer){.device = device, .memory = memory, .size_bytes = size_bytes, .host = host};
    b->address = (uintptr_t)host;
    *buffer = b;
    return WT_OK;
}

/// Queued work may still use the buffer, so wait for it, as CUDA's free does.
static void buffer_destroy(wt_buffer *buffer)
{
    wt_status status = synchronize(buffer->device);
    (void)status; // waiting cannot fail on this backend
    free(buffer->host);
    free(buffer);
}

// ---- streams

static wt_status stream_create(wt_device *device, int priority, wt_stream **stream)
{
    (void)priority; // the system's scheduler decides; partitions have threads with a nice value (partition.h)
    return wt__cpu_stream_create(device, cpu_device_of(device)->pool, stream);
}

// ---- the device

static void close_device(wt_device *device)
{
    cpu_device *d = cpu_device_of(device);
    while (device->streams) wt_stream_destroy(device->streams);
    wt__pool_destroy(d->pool);
    wt__guard_term(&d->guard);
    wt__device_term(device);
    free(d);
}

static const wt__device_ops cpu_ops = {
    .close = close_device,
    .synchronize = synchronize,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .stream_create = stream_create,
    .stream_destroy = wt__cpu_stream_destroy,
    .copy = wt__cpu_stream_copy,
    .fill = wt__cpu_stream_fill,
    .stream_synchronize = wt__cpu_stream_synchronize,
    .stream_idle = wt__cpu_stream_idle,
    .stream_takes = wt__cpu_stream_takes,
    .event_create = wt__cpu_event_create,
    .event_destroy = wt__cpu_event_destroy,
    .record = wt__cpu_event_record,
    .wait = wt__cpu_stream_wait,
    .event_done = wt__cpu_event_done,
    .event_synchronize = wt__cpu_event_synchronize,
    .elapsed_us = wt__cpu_event_elapsed_us,
    .slicing = &wt__cpu_slicing,
};

wt_status wt__cpu_device_open(int n_threads, wt_device **device)
{
    cpu_device *d = calloc(1, sizeof *d);
    if (!d) return wt_fail(WT_ERR_NO_MEMORY, "device: no memory for a handle");
    wt_device_info info;
    wt_status status = wt__cpu_device_query(&info);
    if (!n_threads) n_threads = info.n_sms;
    d->placement.cpus = usable_processors();
    if (!status) status = wt__pool_create(n_threads - 1, &d->placement, &d->pool); // the stream's own thread works too
    if (status) {
        free(d);
        return status;
    }
    wt__guard_init(&d->guard);
    wt__device_init(&d->base, &cpu_ops, &info, &d->guard);
    *device = &d->base;
    return WT_OK;
}
