// Graphs of the driver. Capture is thread-local, so other threads go on taking memory meanwhile. The captured nodes
// come back in the order in which they were queued; since the engine recorded a line of nodes itself, it compares kind
// by kind and launch by launch, and so knows the driver's node of each of its own. (Not by function: in a green context
// the driver may name a kernel by another handle.)
#include "graph_internal.h"
#include "kernel_internal.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    int type;
    const char *name;
} driver_kinds[WT__N_NODE_KINDS] = {
    [WT__NODE_KERNEL] = {CU_GRAPH_NODE_TYPE_KERNEL, "a kernel"},
    [WT__NODE_RUN] = {-1, "a function"}, // never on a GPU
    [WT__NODE_COPY] = {CU_GRAPH_NODE_TYPE_MEMCPY, "a copy"},
    [WT__NODE_FILL] = {CU_GRAPH_NODE_TYPE_MEMSET, "a fill"},
};

wt_status wt__graph_cuda_begin(wt_graph *graph, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    if (!d->cuda->GraphInstantiateWithFlags || !d->cuda->GraphKernelNodeGetParams ||
        !d->cuda->GraphExecKernelNodeSetParams)
        return wt_fail(WT_ERR_UNSUPPORTED, "graph: the driver is CUDA %d.%d, want 12.0 or newer",
                       d->cuda->driver_version / 1000, d->cuda->driver_version % 1000 / 10);
    wt_status status = wt__cuda_enter(d);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->StreamBeginCapture(wt__cuda_stream_of(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  "graph: begin");
}

void wt__graph_cuda_abandon(wt_graph *graph, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    CUgraph captured = NULL;
    if (wt__cuda_enter(d) || d->cuda->StreamEndCapture(wt__cuda_stream_of(stream), &captured)) return;
    if (captured) d->cuda->GraphDestroy(captured);
}

static wt_status match_node(const wt__cuda *cuda, wt__node *node, int index, CUgraphNode cuda_node)
{
    int type = -1;
    wt_status status = wt__cu(cuda, cuda->GraphNodeGetType(cuda_node, &type), "graph: node %d", index);
    if (status) return status;
    if (type != driver_kinds[node->kind].type)
        return wt_fail(WT_ERR_STATE, "graph: node %d has the driver's kind %d, want %s (%d)", index, type,
                       driver_kinds[node->kind].name, driver_kinds[node->kind].type);
    if (node->kind != WT__NODE_KERNEL) return WT_OK;
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    status = wt__cu(cuda, cuda->GraphKernelNodeGetParams(cuda_node, &params), "graph: node %d", index);
    if (status) return status;
    const int *grid = node->kernel.launch.grid, *block = node->kernel.launch.block;
    const unsigned got[] = {params.gridDimX,  params.gridDimY,  params.gridDimZ,
                            params.blockDimX, params.blockDimY, params.blockDimZ};
    for (int a = 0; a < 6; a++) {
        int want = a < 3 ? grid[a] : block[a - 3];
        if (got[a] != (unsigned)(want ? want : 1))
            return wt_fail(WT_ERR_STATE, "graph: node %d is not the launch of %s: %s %c is %u, want %d", index,
                           wt__kernel_name(node->kernel.kernel), a < 3 ? "grid" : "block", "xyz"[a % 3], got[a],
                           want ? want : 1);
    }
    node->cuda_node = cuda_node;
    return WT_OK;
}

/// The driver's graph holds what was queued, and maybe what a library put there.
static wt_status match_nodes(wt_graph *graph)
{
    const wt__cuda *cuda = wt__cuda_device_of(graph->device)->cuda;
    size_t n_all = 0;
    wt_status status = wt__cu(cuda, cuda->GraphGetNodes(graph->cuda_graph, NULL, &n_all), "graph: count nodes");
    if (status) return status;
    if (n_all < (size_t)graph->n_nodes)
        return wt_fail(WT_ERR_STATE, "graph: the driver kept %zu nodes of %d", n_all, graph->n_nodes);
    graph->n_foreign = (int)(n_all - (size_t)graph->n_nodes);
    if (!n_all) return wt_fail(WT_ERR_STATE, "graph: nothing was recorded");
    if (graph->n_foreign) return WT_OK; // which is which cannot be told
    CUgraphNode *all = malloc(sizeof *all * n_all);
    if (!all) return wt_fail(WT_ERR_NO_MEMORY, "graph: no memory for %zu nodes", n_all);
    status = wt__cu(cuda, cuda->GraphGetNodes(graph->cuda_graph, all, &n_all), "graph: nodes");
    for (int k = 0; k < graph->n_nodes && !status; k++) status = match_node(cuda, &graph->nodes[k], k, all[k]);
    free(all);
    return status;
}

wt_status wt__graph_cuda_end(wt_graph *graph, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    wt_status status = wt__cuda_enter(d);
    if (!status)
        status =
            wt__cu(d->cuda, d->cuda->StreamEndCapture(wt__cuda_stream_of(stream), &graph->cuda_graph), "graph: end");
    if (!status && !graph->cuda_graph) status = wt_fail(WT_ERR_STATE, "graph: the driver captured nothing");
    if (!status) status = match_nodes(graph);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->GraphInstantiateWithFlags(&graph->cuda_exec, graph->cuda_graph, 0),
                  "graph: instantiate %d nodes", graph->n_nodes);
}

// Capture the nodes again, with their present arguments, on the stream that is about to launch them.
static wt_status capture_again(wt_graph *graph, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    wt_status status = wt__graph_cuda_begin(graph, stream);
    if (status) return status;
    for (int k = 0; k < graph->n_nodes && !status; k++) status = wt__node_issue(&graph->nodes[k], stream);
    if (status) {
        wt__graph_cuda_abandon(graph, stream);
        return status;
    }
    d->cuda->GraphExecDestroy(graph->cuda_exec); // one that still runs is freed when it ends
    d->cuda->GraphDestroy(graph->cuda_graph);
    graph->cuda_exec = NULL, graph->cuda_graph = NULL;
    status = wt__graph_cuda_end(graph, stream);
    graph->stale = status != WT_OK;
    return status;
}

wt_status wt__graph_cuda_launch(wt_graph *graph, wt_stream *stream)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    wt_status status = wt__cuda_enter(d);
    if (!status && graph->stale) status = capture_again(graph, stream);
    if (status) return status;
    return wt__cu(d->cuda, d->cuda->GraphLaunch(graph->cuda_exec, wt__cuda_stream_of(stream)),
                  "graph: launch of %d nodes", graph->n_nodes);
}

wt_status wt__graph_cuda_update(wt_graph *graph, const wt__node *node, const wt_arg *args, int n_args)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    const char *name = wt__kernel_name(node->kernel.kernel);
    wt__kernel_call call;
    wt_status status =
        wt__kernel_prepare(node->kernel.kernel, graph->device, &node->kernel.launch, args, n_args, &call);
    if (status) return status;
    if (graph->partition) { // the driver ignores the context of a node that names a function: it would leave its SMs
        graph->stale = true;
        return WT_OK;
    }
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    status = wt__cu(d->cuda, d->cuda->GraphKernelNodeGetParams(node->cuda_node, &params), "graph: %s", name);
    if (status) return status;
    params.kernelParams = call.params;
    params.extra = NULL;
    return wt__cu(d->cuda, d->cuda->GraphExecKernelNodeSetParams(graph->cuda_exec, node->cuda_node, &params),
                  "graph: arguments of %s", name);
}

void wt__graph_cuda_destroy(wt_graph *graph)
{
    const wt__cuda_device *d = wt__cuda_device_of(graph->device);
    if (!wt__cuda_enter_to_free(d)) return;
    if (graph->cuda_exec) d->cuda->GraphExecDestroy(graph->cuda_exec);
    if (graph->cuda_graph) d->cuda->GraphDestroy(graph->cuda_graph);
}
