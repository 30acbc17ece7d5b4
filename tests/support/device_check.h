/// Helpers of tests that run on both backends, and of those that cut devices into partitions.
#ifndef WT_DEVICE_CHECK_H
#define WT_DEVICE_CHECK_H

#include <warptone/partition.h>

/// The device in `state`, or the test is skipped.
wt_device *device_of(void **state);
/// Likewise, and skipped when the device has one processor, which cannot be shared out.
wt_device *wide_device_of(void **state);

wt_buffer *buffer_of(wt_device *device, wt_memory memory, size_t size_bytes);
wt_stream *new_stream(wt_device *device);
wt_event *event_of(wt_device *device);

wt_layout *layout_of(wt_device *device, const wt_layout_config *config);
wt_stream *stream_of(wt_partition *partition);
wt_partition_info info_of(wt_partition *partition);
wt_layout_info facts_of(const wt_layout *layout);

extern const wt_layout_config two_config;     ///< "audio", guaranteed, 5 % and 2 streams; "llm", the rest
extern const wt_layout_config lending_config; ///< "speech", guaranteed, half, lends; "llm", the rest, borrows

/// CUDA text compiles for sm_80, 90, 100 and 120; skipped without NVRTC.
void assert_compiles_everywhere(const char *name, const char *source);

/// Group fixtures: `state` becomes the device; NULL without a GPU.
int open_cpu(void **state); ///< two threads
int open_three_threads(void **state);
int open_cuda(void **state);
int close_device(void **state);

/// Of tests that open their devices themselves: group fixtures that say which backend is meant.
extern wt_backend group_backend;
int group_on_cpu(void **state);
int group_on_cuda(void **state);

#endif
