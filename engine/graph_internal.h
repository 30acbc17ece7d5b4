/// A graph's nodes as they were queued, and what the CUDA backend adds.
#ifndef WT_GRAPH_INTERNAL_H
#define WT_GRAPH_INTERNAL_H

#include "device_cuda.h"

#include <warptone/graph.h>

typedef enum wt__node_kind {
    WT__NODE_KERNEL,
    WT__NODE_RUN,
    WT__NODE_COPY,
    WT__NODE_FILL,
    WT__N_NODE_KINDS
} wt__node_kind;

typedef struct wt__node {
    wt__node_kind kind;
    union {
        struct {
            wt_kernel *kernel;
            wt_launch launch;
        } kernel;
        struct {
            wt_cpu_function function;
            int n_items;
        } run;
        struct {
            wt__place to, from;
            size_t size_bytes;
        } copy;
        struct {
            uintptr_t address;
            size_t size_bytes;
            unsigned char value;
        } fill;
    };
    wt_arg *args; ///< [n_args], with their values behind them in one allocation; a run has one
    int n_args;
    CUgraphNode cuda_node; ///< of a kernel, in the driver's graph
} wt__node;

struct wt_graph {
    wt__aside aside;
    wt__handle handle;
    wt_device *device;
    wt_partition *partition; ///< NULL = none
    int generation;
    wt_stream *stream;     ///< while recording, else NULL
    pthread_mutex_t mutex; ///< launching, updating and reading the nodes
    wt__node *nodes;
    int n_nodes, capacity;
    int n_foreign;
    bool ready;
    bool stale; ///< CUDA: arguments changed since the driver's graph was captured
    CUgraph cuda_graph;
    CUgraphExec cuda_exec;
};

/// What a stream in recording calls instead of (CPU) or along with (CUDA) queueing.
WT_CHECKED wt_status wt__record_kernel(wt_graph *graph, wt_kernel *kernel, const wt_launch *launch, const wt_arg *args,
                                       int n_args);
WT_CHECKED wt_status wt__record_run(wt_graph *graph, wt_cpu_function function, const void *args, size_t args_bytes,
                                    int n_items);
WT_CHECKED wt_status wt__record_copy(wt_graph *graph, wt__place to, wt__place from, size_t size_bytes);
WT_CHECKED wt_status wt__record_fill(wt_graph *graph, uintptr_t address, unsigned char value, size_t size_bytes);
/// The stream goes away: the recording ends and the graph is never ready.
void wt__record_abandon(wt_graph *graph);

/// Queue one node by itself; on a stream in recording it becomes a node there.
WT_CHECKED wt_status wt__node_issue(const wt__node *node, wt_stream *stream);
/// Run a node of a CPU graph on the calling thread, one of the graph's at a time. `*more`: nodes are left behind it.
/// Errors: WT_ERR_STATE (not ended), WT_ERR_BAD_ARG (a GPU's).
WT_CHECKED wt_status wt__graph_run_here(wt_graph *graph, int node, bool *more);
/// "graph of 3 nodes, the last kernel conv".
void wt__graph_describe(wt_graph *graph, char *text, size_t text_bytes);
void wt__node_free(wt__node *node);

WT_CHECKED wt_status wt__graph_cuda_begin(wt_graph *graph, wt_stream *stream);
void wt__graph_cuda_abandon(wt_graph *graph, wt_stream *stream);
WT_CHECKED wt_status wt__graph_cuda_end(wt_graph *graph, wt_stream *stream);
WT_CHECKED wt_status wt__graph_cuda_launch(wt_graph *graph, wt_stream *stream);
/// What a launch queues on a stream of the CPU backend: commands, and bytes of arguments. 0 of a handle that is none.
void wt__graph_load(wt_graph *graph, int *n_commands, size_t *args_bytes);
WT_CHECKED wt_status wt__graph_cuda_update(wt_graph *graph, const wt__node *node, const wt_arg *args, int n_args);
void wt__graph_cuda_destroy(wt_graph *graph);

static inline bool wt__graph_on_cuda(const wt_graph *graph)
{
    return graph->device->info.backend == WT_BACKEND_CUDA;
}

#endif
