// The list of nodes. A node owns a copy of its arguments, so that a graph can be run node by node, recorded again on
// another stream, and updated.
#include "graph_internal.h"
#include "kernel_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_ALIGN = 16, FIRST_NODES = 16 };

static size_t padded(size_t bytes)
{
    return (bytes + VALUE_ALIGN - 1) / VALUE_ALIGN * VALUE_ALIGN;
}

/// Copy arguments and their values into one allocation.
static wt_status keep_args(wt__node *node, const wt_arg *args, int n_args)
{
    size_t bytes = padded(sizeof *args * (size_t)n_args);
    for (int k = 0; k < n_args; k++) bytes += padded(args[k].size_bytes);
    node->n_args = n_args;
    node->args = bytes ? malloc(bytes) : NULL;
    if (bytes && !node->args) return wt_fail(WT_ERR_NO_MEMORY, "graph: no memory for %d arguments", n_args);
    unsigned char *value = (unsigned char *)node->args + padded(sizeof *args * (size_t)n_args);
    for (int k = 0; k < n_args; k++) {
        node->args[k] = (wt_arg){value, args[k].size_bytes};
        if (args[k].size_bytes) memcpy(value, args[k].data, args[k].size_bytes);
        value += padded(args[k].size_bytes);
    }
    return WT_OK;
}

static wt_status add_node(wt_graph *g, wt__node node, const wt_arg *args, int n_args)
{
    if (g->n_nodes == g->capacity) {
        int capacity = g->capacity ? 2 * g->capacity : FIRST_NODES;
        wt__node *nodes = realloc(g->nodes, sizeof *nodes * (size_t)capacity);
        if (!nodes) return wt_fail(WT_ERR_NO_MEMORY, "graph: no memory for %d nodes", capacity);
        g->nodes = nodes;
        g->capacity = capacity;
    }
    wt_status status = keep_args(&node, args, n_args);
    if (!status) g->nodes[g->n_nodes++] = node;
    return status;
}

wt_status wt__record_kernel(wt_graph *graph, wt_kernel *kernel, const wt_launch *launch, const wt_arg *args, int n_args)
{
    return add_node(graph, (wt__node){.kind = WT__NODE_KERNEL, .kernel = {kernel, *launch}}, args, n_args);
}

wt_status wt__record_run(wt_graph *graph, wt_cpu_function function, const void *args, size_t args_bytes, int n_items)
{
    return add_node(graph, (wt__node){.kind = WT__NODE_RUN, .run = {function, n_items}}, &(wt_arg){args, args_bytes},
                    1);
}

wt_status wt__record_copy(wt_graph *graph, wt__place to, wt__place from, size_t size_bytes)
{
    wt_status status = add_node(graph, (wt__node){.kind = WT__NODE_COPY, .copy = {to, from, size_bytes}}, NULL, 0);
    if (status || !wt__graph_on_cuda(graph)) return status;
    return graph->device->ops->copy(graph->stream, to, from, size_bytes);
}

wt_status wt__record_fill(wt_graph *graph, uintptr_t address, unsigned char value, size_t size_bytes)
{
    wt_status status =
        add_node(graph, (wt__node){.kind = WT__NODE_FILL, .fill = {address, size_bytes, value}}, NULL, 0);
    if (status || !wt__graph_on_cuda(graph)) return status;
    return graph->device->ops->fill(graph->stream, address, value, size_bytes);
}

wt_status wt__node_issue(const wt__node *node, wt_stream *stream)
{
    switch (node->kind) {
    case WT__NODE_KERNEL:
        return wt_kernel_launch(node->kernel.kernel, stream, &node->kernel.launch, node->args, node->n_args);
    case WT__NODE_RUN:
        return wt_stream_run(stream, node->run.function, node->args->data, node->args->size_bytes, node->run.n_items);
    case WT__NODE_COPY:
        return wt__stream_copy(stream, node->copy.to, node->copy.from, node->copy.size_bytes);
    default:
        return wt__stream_fill(stream, node->fill.address, node->fill.value, node->fill.size_bytes);
    }
}

void wt__node_free(wt__node *node)
{
    free(node->args);
}

// ---- on the calling thread

static void run_node(const wt__node *node)
{
    if (node->kind == WT__NODE_COPY)
        memmove((void *)node->copy.to.address, (const void *)node->copy.from.address, node->copy.size_bytes);
    else if (node->kind == WT__NODE_FILL)
        memset((void *)node->fill.address, node->fill.value, node->fill.size_bytes);
    else
        for (int item = 0; item < node->run.n_items; item++) node->run.function(node->args->data, item);
}

wt_status wt__graph_run_here(wt_graph *graph, int node, bool *more)
{
    *more = false;
    pthread_mutex_lock(&graph->mutex);
    wt_status status = WT_OK;
    if (!graph->ready)
        status = wt_fail(WT_ERR_STATE, "graph: it was not recorded to its end");
    else if (wt__graph_on_cuda(graph))
        status = wt_fail(WT_ERR_BAD_ARG, "graph: of a GPU, want one of the CPU backend");
    if (!status) {
        run_node(&graph->nodes[node]);
        *more = node + 1 < graph->n_nodes;
    }
    pthread_mutex_unlock(&graph->mutex);
    return status;
}

void wt__graph_describe(wt_graph *graph, char *text, size_t text_bytes)
{
    const char *kernel = NULL; // the nodes do not change after the end of recording
    for (int k = 0; k < graph->n_nodes; k++)
        if (graph->nodes[k].kind == WT__NODE_KERNEL) kernel = wt__kernel_name(graph->nodes[k].kernel.kernel);
    snprintf(text, text_bytes, "graph of %d nodes%s%s", graph->n_nodes, kernel ? ", the last kernel " : "",
             kernel ? kernel : "");
}
