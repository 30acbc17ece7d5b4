/// Graphs: what is queued on a stream between begin and end is kept instead of run, and then launched as a whole.
///
///     wt_graph_begin(stream, &graph);
///     ... wt_kernel_launch, wt_stream_run, wt_stream_copy, wt_stream_fill on `stream` ...
///     wt_graph_end(graph);
///     wt_graph_launch(graph, stream);        // as often as wanted
///
/// On a GPU a graph is the driver's, made by stream capture; on the CPU backend a list of the same functions and
/// copies. Its nodes form a line and are numbered 0, 1 ... in the order of the calls (a copy or run of nothing is no
/// node). Buffers, modules and ordinary memory that nodes use are borrowed until the graph is destroyed.
///
/// A graph belongs to the partition of the stream it was recorded on, and to the layout as it was then: keep one a
/// partition, and make it anew with wt_graph_clone after wt_layout_resize.
#ifndef WARPTONE_GRAPH_H
#define WARPTONE_GRAPH_H

#include <warptone/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt_graph wt_graph;

/// Begin to record on `stream`: until wt_graph_end nothing that is queued on it runs, by this thread only. Refused on
/// the stream meanwhile: synchronising, recording and waiting for events, launching graphs (WT_ERR_STATE each); and
/// wt_device_synchronize. On a GPU this thread must not take or free memory nor load modules meanwhile.
/// Errors: WT_ERR_STATE (already recording), WT_ERR_NO_MEMORY, WT_ERR_UNSUPPORTED (driver before CUDA 12), WT_ERR_CUDA.
/// [worker]
WT_CHECKED wt_status wt_graph_begin(wt_stream *stream, wt_graph **graph);

/// End recording and make the graph ready, by the thread that began. The driver's nodes are compared with what was
/// queued, in number, kind and shape of the launches. What a library queued on the stream itself is taken too
/// (n_foreign). Errors: WT_ERR_STATE (not recording, nothing was recorded, or the driver's graph is not what was
/// queued), WT_ERR_NO_MEMORY, WT_ERR_CUDA. After an error the graph can only be destroyed.  [worker]
WT_CHECKED wt_status wt_graph_end(wt_graph *graph);

/// Wait for nothing: launches of it must have run. Ends a recording. NULL is allowed; on an armed device what the
/// driver holds is put aside (arm.h).  [worker]
void wt_graph_destroy(wt_graph *graph);

/// Queue all nodes on `stream`, without waiting for the device. Launches of one graph run one after the other.
/// Errors: WT_ERR_STATE (not ended, or the layout was resized since), WT_ERR_BAD_ARG (a stream of another partition or
/// device), WT_ERR_CUDA, WT_ERR_DEVICE_LOST.  [worker]
WT_CHECKED wt_status wt_graph_launch(wt_graph *graph, wt_stream *stream);

/// New arguments for a kernel (as many and as large as before) or for a run (one, as large as before), in place: the
/// next launch takes them, earlier ones keep theirs. Of a graph in a GPU partition the next launch records it anew.
/// Errors: WT_ERR_BAD_ARG (no such node, no arguments, sizes), WT_ERR_STATE, WT_ERR_UNSUPPORTED (foreign nodes).
/// [worker]
WT_CHECKED wt_status wt_graph_set_args(wt_graph *graph, int node, const wt_arg *args, int n_args);

/// Record the same nodes, with their present arguments, on another stream: another partition, or the same one after a
/// resize. Errors: WT_ERR_BAD_ARG (another device), WT_ERR_UNSUPPORTED (foreign nodes), those of begin and end.
/// [worker]
WT_CHECKED wt_status wt_graph_clone(wt_graph *graph, wt_stream *stream, wt_graph **clone);

/// Run the nodes one by one and then the graph, from the same contents of `buffers` (all that the nodes change), and
/// compare what they leave there to the bit. Waits for `stream`.
/// Errors: WT_ERR_STATE naming the buffer and byte that differ, WT_ERR_NO_MEMORY, WT_ERR_UNSUPPORTED (foreign nodes),
/// those of launch.  [worker]
WT_CHECKED wt_status wt_graph_check(wt_graph *graph, wt_stream *stream, wt_buffer *const *buffers, int n_buffers);

typedef struct wt_graph_info {
    int n_nodes;                              ///< that were queued through the engine
    int n_kernels, n_runs, n_copies, n_fills; ///< of these
    int n_foreign;                            ///< queued by a library: such a graph cannot be updated or cloned
    int generation;                           ///< of the layout it was recorded in, 0 = no partition
    bool ready;                               ///< ended without error
} wt_graph_info;
void wt_graph_get_info(wt_graph *graph, wt_graph_info *info); ///< [worker]

#ifdef __cplusplus
}
#endif
#endif
