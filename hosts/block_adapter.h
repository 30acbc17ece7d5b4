/// Block adapter: a host's blocks of any length become blocks of one length.
///
/// It adds no more latency than it must: with g the greatest common divisor of block_frames and of all lengths that
/// came so far, block_frames - g frames. A host that keeps to multiples of block_frames costs nothing; one that cuts as
/// it likes costs block_frames - 1. When a length comes that lowers g, the difference is inserted as silence, once.
#ifndef WT_BLOCK_ADAPTER_H
#define WT_BLOCK_ADAPTER_H

#include <warptone/status.h>

typedef struct block_adapter block_adapter;

typedef struct block_adapter_config {
    int channels;     ///< of the input, 1 .. 64
    int out_channels; ///< 1 .. 64
    int block_frames; ///< 1 .. 65536
    void *user;
    /// Gets blocks of exactly block_frames; outputs do not overlap inputs.  [rt]
    void (*process)(void *user, const float *const *in, float *const *out, int n_frames);
} block_adapter_config;

/// Errors: WT_ERR_BAD_ARG, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status block_adapter_create(const block_adapter_config *config, block_adapter **adapter);
void block_adapter_destroy(block_adapter *adapter); ///< NULL is allowed.  [any but rt]

/// n_frames in and as many out, which were in latency_frames earlier; `out` does not overlap `in`.  [rt]
WT_RT void block_adapter_process(block_adapter *adapter, const float *const *in, float *const *out, int n_frames);

int block_adapter_latency_frames(const block_adapter *adapter); ///< exact, of what process gave last  [any]

#endif
