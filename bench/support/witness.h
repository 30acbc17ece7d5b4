/// A kernel beside a resident one, on another SM of its partition, that notes when it stood still: a block that was
/// late because the resident kernel did not look is then known to be the SM's own, or the partition's, or the bus's.
/// One warp reads the clock and nothing else; another also asks host memory for a word, every 4 us.
#ifndef WT_BENCH_WITNESS_H
#define WT_BENCH_WITNESS_H

#include <warptone/kernel.h>

typedef struct witness {
    wt_module *module;
    wt_kernel *kernel;
    wt_stream *stream;
    wt_buffer *record;
    int64_t begin_ns, end_ns; ///< the host's clock, when the kernel had begun and when it ended
} witness;

/// While nothing is armed; the stream is taken.
WT_CHECKED wt_status witness_open(witness *w, wt_device *device, wt_stream *stream);
void witness_close(witness *w);

WT_CHECKED wt_status witness_start(witness *w);
WT_CHECKED wt_status witness_stop(witness *w);
/// How often each warp stood still, and when, by the clock of the host.
void witness_print(const witness *w);

#endif
