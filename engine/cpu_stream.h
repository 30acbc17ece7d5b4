/// Streams and events of the CPU backend: a worker thread takes commands in order from a ring of bytes.
#ifndef WT_CPU_STREAM_H
#define WT_CPU_STREAM_H

#include "cpu_pool.h"
#include "device_internal.h"

/// The processors that the thread which opened the device could use then.
const cpu_set_t *wt__cpu_device_processors(const wt_device *device);

/// The pool is borrowed until the stream is destroyed or moved; the stream's thread stands where the pool's threads do.
/// Errors: WT_ERR_NO_MEMORY.
wt_status wt__cpu_stream_create(wt_device *device, wt__pool *pool, wt_stream **stream);
void wt__cpu_stream_destroy(wt_stream *stream); ///< Runs what is queued first.
/// From its next command on, an idle stream works with another pool. Errors: WT_ERR_STATE when it is not idle.
wt_status wt__cpu_stream_move(wt_stream *stream, wt__pool *pool);

wt_status wt__cpu_stream_copy(wt_stream *stream, wt__place to, wt__place from, size_t size_bytes);
wt_status wt__cpu_stream_fill(wt_stream *stream, uintptr_t address, unsigned char value, size_t size_bytes);
wt_status wt__cpu_stream_synchronize(wt_stream *stream);
bool wt__cpu_stream_idle(const wt_stream *stream);
/// More than the ring holds is taken when it is empty.
bool wt__cpu_stream_takes(const wt_stream *stream, int n_commands, size_t args_bytes);

wt_status wt__cpu_event_create(wt_device *device, wt_event **event);
void wt__cpu_event_destroy(wt_event *event);
wt_status wt__cpu_event_record(wt_event *event, wt_stream *stream);
wt_status wt__cpu_stream_wait(wt_stream *stream, wt_event *event);
bool wt__cpu_event_done(const wt_event *event);
wt_status wt__cpu_event_synchronize(wt_event *event);
wt_status wt__cpu_event_elapsed_us(const wt_event *begin, const wt_event *end, double *elapsed_us);

#endif
