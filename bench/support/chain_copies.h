/// A stereo chain on a GPU block by block without the live engine: copy in, launch, copy out, wait.
#ifndef WT_BENCH_CHAIN_COPIES_H
#define WT_BENCH_CHAIN_COPIES_H

#include <warptone/chain.h>
#include <warptone/partition.h>

typedef struct chain_copies {
    wt_chain *chain;
    wt_stream *stream;
    wt_buffer *pinned, *audio;
    wt_chain_job job;
} chain_copies;

/// For blocks of `n_frames`, on a stream of the partition with the highest priority; a zeroed struct is wanted. Close
/// it also after an error.
WT_CHECKED wt_status chain_copies_open(wt_device *device, wt_partition *partition, double rate_hz,
                                       const wt_chain_desc *desc, int n_frames, chain_copies *c);
void chain_copies_close(chain_copies *c); ///< A zeroed struct is allowed.
/// One block, in and out [2][n_frames].
WT_CHECKED wt_status chain_copies_play(chain_copies *c, const float *const *in, float *const *out, int n_frames);

#endif
