/// The inside of a flow, to the ops that it may go through.
#ifndef WT_ANALYZE_FLOW_H
#define WT_ANALYZE_FLOW_H

#include "analyze_sound.h"

typedef struct analyze_flow_kind {
    const analyze_array *like;
    bool together; ///< a file's channels are one signal of the op's, not one each
    /// Into flow->op. Errors: WT_ERR_BAD_ARG naming the option, those of the op.
    wt_status (*create)(analyze_flow *flow);
    void (*destroy)(void *op);
    wt_status (*reset)(analyze_flow *flow);
    wt_status (*begin)(analyze_flow *flow, const analyze_batch *b,
                       int n);                       ///< the first block lies in flow->in; NULL = nothing
    wt_status (*enqueue)(analyze_flow *flow, int n); ///< the next n frames, from flow->in to flow->out
    int64_t (*latency)(const analyze_flow *flow);    ///< NULL = none
} analyze_flow_kind;

extern const analyze_flow_kind analyze_flow_kinds[ANALYZE_FLOWS];

struct analyze_flow {
    const analyze_flow_kind *kind;
    analyze_options options; // a copy: the flow may outlive the signal's
    int rate_hz;
    wt_device *device, *own; // own: a CPU's, NULL on a GPU
    wt_stream *stream;
    wt_buffer *in, *out, *beside; // [n_lines][n of the block]; beside: the playback, or levels to begin from
    void *op;
    struct analyze_source *playback;
    int n_lines, channels, most; // channels: of a signal of the op's; most: frames of a block
    int64_t n_taps, latency;     // latency: frames that come before the signal's own
    int64_t n_given;             // frames so far
};

/// Samples `from` .. from + n of a file at the flow's rate, all channels one behind the other, or the mean of them;
/// silence behind its end.
WT_CHECKED wt_status analyze_flow_read(const analyze_flow *flow, const char *path, int channels, int64_t from,
                                       int64_t n, float *out, int64_t *n_there);

#endif
