/// Devices: one NVIDIA GPU through the CUDA Driver API, or this machine's CPU behind the same calls.
///
/// Buffers, streams, events and kernels belong to a device and are created and destroyed on any thread but the audio
/// thread. A stream runs what it is given in order; everything on it is asynchronous on both backends (the CPU backend
/// gives each stream a worker thread).
///
/// A buffer or stream that was destroyed, or is none, is refused by destroy (which does nothing; wt_last_error tells),
/// by copies and fills, and by wt_stream_synchronize, unless a new one lies at the same address. So are the engine's
/// other large objects by their destroy; docs/memory.md says which further calls ask.
///
/// The first call that looks for GPUs sets CUDA_MODULE_LOADING=EAGER in the environment unless it is set; make it
/// before other threads read the environment (wt_device_count is enough).
#ifndef WARPTONE_DEVICE_H
#define WARPTONE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wt_backend {
    WT_BACKEND_AUTO, ///< WARPTONE_BACKEND=auto|cuda|cpu, else CUDA when a device is usable, else CPU
    WT_BACKEND_CUDA,
    WT_BACKEND_CPU,
} wt_backend;

typedef struct wt_device wt_device;
typedef struct wt_buffer wt_buffer;
typedef struct wt_stream wt_stream;
typedef struct wt_event wt_event;

typedef struct wt_device_config {
    wt_backend backend; ///< 0 = auto
    int ordinal;        ///< CUDA device, 0 = the first; devices below compute capability 8.0 are counted last
    int n_threads;      ///< CPU backend: workers of a parallel launch, 0 = one per processor
} wt_device_config;

typedef struct wt_device_info {
    wt_backend backend;       ///< WT_BACKEND_CUDA or WT_BACKEND_CPU
    int ordinal;              ///< CUDA device number; 0 on the CPU
    char name[128];           ///< "NVIDIA H200", or the processor's model name
    int compute_major, compute_minor; ///< CUDA compute capability; 0 on the CPU
    int n_sms;                ///< streaming multiprocessors, or processors that the thread which opened it may use
    size_t memory_bytes;      ///< total
    size_t memory_free_bytes; ///< at the time of the call
    size_t l2_bytes;          ///< GPU L2, or the CPU's last-level cache; 0 unknown
    size_t shared_bytes;      ///< shared memory a block may opt in to; 0 on the CPU
    int driver_version;       ///< 13000 = CUDA 13.0; 0 on the CPU
    int partition_sms;        ///< smallest green-context partition; 0 = no green contexts
    int partition_align_sms;  ///< and its granularity
    char pci_bus_id[32];      ///< "0000:41:00.0", "" on the CPU
} wt_device_info;

/// Number of CUDA devices with compute capability 8.0 or newer; 0 with `wt_last_error()` saying why. Ordinals 0 ..
/// count-1 are these; wt_device_query also knows the older ones that follow, which wt_device_open refuses.  [any but
/// rt]
int wt_device_count(void);

/// Facts of one CUDA device (`ordinal` >= 0) or of the CPU (-1), without opening it.
/// Errors: WT_ERR_NO_GPU with a sentence such as "CUDA driver not detected ..."; WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt_device_query(int ordinal, wt_device_info *info);

/// Open a device. `config` NULL = auto. With AUTO and no usable GPU the CPU backend opens and `wt_last_error()` says
/// "Falling back to CPU backend: <why>".
/// Errors: WT_ERR_NO_GPU, WT_ERR_UNSUPPORTED (compute capability below 8.0), WT_ERR_NO_MEMORY, WT_ERR_DEVICE_LOST (it
/// was lost, and handles of it are open, or the driver does not give it back).  [any but rt]
WT_CHECKED wt_status wt_device_open(const wt_device_config *config, wt_device **device);

/// Close it. Streams, buffers and kernels of it must be gone. NULL is allowed.  [any but rt]
void wt_device_close(wt_device *device);

/// A kernel has faulted (or the hardware has), and the engine has met that: every call for the device, of any handle,
/// returns WT_ERR_DEVICE_LOST at once, and memory on it is gone; pinned and mapped memory can be read until it is
/// destroyed. Destroy everything of it and close all its handles, in the usual order; then it can be opened again, or
/// gives WT_ERR_DEVICE_LOST when the driver does not give it back to this process (docs/dispatch.md), which then goes
/// on with the CPU backend or is started again. Which kernel it was is told by dispatch and the device executor. Other
/// libraries' work on the same device ends with the last close.  [any]
bool wt_device_is_lost(const wt_device *device);

/// Facts of an open device; borrowed until it is closed (memory_free_bytes as of opening).  [any]
const wt_device_info *wt_device_get_info(const wt_device *device);

/// Wait until all streams of the device are idle. Errors: WT_ERR_ARMED, WT_ERR_CUDA, WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_device_synchronize(wt_device *device);

// ---- memory

typedef enum wt_memory {
    WT_MEMORY_DEVICE, ///< on the GPU, 256-byte aligned; on the CPU backend host memory, 64-byte aligned
    WT_MEMORY_PINNED, ///< page-locked host memory: fast to copy from and to
    WT_MEMORY_MAPPED, ///< page-locked host memory that kernels read and write at wt_buffer_address
} wt_memory;

/// Take `size_bytes` (1 or more) of zeroed memory.
/// Errors: WT_ERR_BAD_ARG (0 bytes, or above the device's memory), WT_ERR_NO_MEMORY.  [worker, not armed]
WT_CHECKED wt_status wt_buffer_create(wt_device *device, wt_memory memory, size_t size_bytes, wt_buffer **buffer);
/// Waits for all work queued on the device, which may still use it; on an armed device it is put aside until disarming
/// or the next quiesce (arm.h). NULL is allowed.  [worker]
void wt_buffer_destroy(wt_buffer *buffer);

size_t wt_buffer_size_bytes(const wt_buffer *buffer); ///< as created  [any]
/// The host's pointer; NULL for device memory of a GPU.  [any]
void *wt_buffer_host(const wt_buffer *buffer);
/// The address kernels use: a CUdeviceptr on a GPU, the host pointer on the CPU; 0 for pinned memory on a GPU.  [any]
uintptr_t wt_buffer_address(const wt_buffer *buffer);

// ---- streams and events

typedef struct wt_stream_config {
    int priority; ///< 0 = ordinary, 1 = the device's highest, -1 = its lowest
} wt_stream_config;

/// `config` NULL = all zero. The device is borrowed until the stream is destroyed.
/// Errors: WT_ERR_BAD_ARG (priority), WT_ERR_NO_MEMORY, WT_ERR_CUDA, WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_stream_create(wt_device *device, const wt_stream_config *config, wt_stream **stream);
void wt_stream_destroy(wt_stream *stream); ///< Waits for what is queued. NULL is allowed.  [worker]
wt_device *wt_stream_device(const wt_stream *stream); ///< [any]

/// Copy between two ranges: each end a buffer with an offset. Asynchronous when the host end is pinned or mapped.
/// Errors: WT_ERR_BAD_ARG naming the range that does not fit, WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_stream_copy(wt_stream *stream, wt_buffer *to, size_t to_offset, const wt_buffer *from,
                                    size_t from_offset, size_t size_bytes);
/// Copy from or to ordinary memory, which is borrowed until the stream passes this point (use wt_stream_synchronize).
/// Errors: as wt_stream_copy.  [worker]
WT_CHECKED wt_status wt_stream_upload(wt_stream *stream, wt_buffer *to, size_t to_offset, const void *from,
                                      size_t size_bytes);
WT_CHECKED wt_status wt_stream_download(wt_stream *stream, void *to, const wt_buffer *from, size_t from_offset,
                                        size_t size_bytes);
/// Set every byte of a range. Errors: as wt_stream_copy.  [worker]
WT_CHECKED wt_status wt_stream_fill(wt_stream *stream, wt_buffer *buffer, size_t offset, unsigned char value,
                                    size_t size_bytes);
/// Wait until everything queued has run; returns the first error any of it met since the last call.
/// Errors: WT_ERR_CUDA, WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_stream_synchronize(wt_stream *stream);
/// Nothing is queued or running, or the device is lost.  [worker]
bool wt_stream_idle(const wt_stream *stream);

/// The device is borrowed until the event is destroyed. Errors: WT_ERR_NO_MEMORY, WT_ERR_CUDA, WT_ERR_DEVICE_LOST.
/// [worker]
WT_CHECKED wt_status wt_event_create(wt_device *device, wt_event **event);
void wt_event_destroy(wt_event *event); ///< NULL is allowed.  [worker]
/// Mark this point of the stream, with a time stamp.
/// Errors: WT_ERR_BAD_ARG (another device's), WT_ERR_STATE (a graph is recorded on the stream), WT_ERR_CUDA,
/// WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_event_record(wt_event *event, wt_stream *stream);
/// Later work of `stream` waits for the last record of `event` made so far, which may be on another stream; recording
/// the event again does not move it. An event never recorded holds up nobody. Errors: as wt_event_record.  [worker]
WT_CHECKED wt_status wt_stream_wait(wt_stream *stream, wt_event *event);
/// True when the last record was reached, or nothing was recorded.  [worker]
bool wt_event_done(const wt_event *event);
/// Wait for that. Errors: WT_ERR_CUDA, WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_event_synchronize(wt_event *event);
/// Device time between two reached records, in microseconds; 0 after an error.
/// Errors: WT_ERR_BAD_ARG (of different devices), WT_ERR_STATE (never recorded, or not reached), WT_ERR_CUDA.  [worker]
WT_CHECKED wt_status wt_event_elapsed_us(const wt_event *begin, const wt_event *end, double *elapsed_us);

#ifdef __cplusplus
}
#endif
#endif
