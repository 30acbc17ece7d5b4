// Recording, launching, updating and copying graphs, for both backends. On the CPU backend a launch queues the nodes
// one by one: a node costs what queueing it costs (about 0.2 us), and nothing waits for the stream.
#include "graph_internal.h"

#include <stdlib.h>
#include <string.h>

static wt_graph *create_graph(wt_stream *stream)
{
    wt_graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->device = stream->device;
    g->partition = stream->partition;
    g->generation = stream->partition ? wt__partition_generation(stream->partition) : 0;
    pthread_mutex_init(&g->mutex, NULL);
    wt__handle_open(&g->handle, g, WT__A_GRAPH);
    return g;
}

wt_status wt_graph_begin(wt_stream *stream, wt_graph **graph)
{
    *graph = NULL;
    if (stream->recording) return wt_fail(WT_ERR_STATE, "graph: one is being recorded on this stream already");
    wt_graph *g = create_graph(stream);
    if (!g) return wt_fail(WT_ERR_NO_MEMORY, "graph: no memory for a handle");
    wt_status status = wt__graph_on_cuda(g) ? wt__graph_cuda_begin(g, stream) : WT_OK;
    if (status) {
        wt_graph_destroy(g);
        return status;
    }
    g->stream = stream;
    stream->recording = g;
    atomic_fetch_add(&g->device->n_recording, 1);
    *graph = g;
    return WT_OK;
}

/// The stream queues again; it is returned.
static wt_stream *leave_stream(wt_graph *g)
{
    wt_stream *stream = g->stream;
    stream->recording = NULL;
    g->stream = NULL;
    atomic_fetch_sub(&g->device->n_recording, 1);
    return stream;
}

void wt__record_abandon(wt_graph *graph)
{
    wt_stream *stream = leave_stream(graph);
    if (wt__graph_on_cuda(graph)) wt__graph_cuda_abandon(graph, stream);
}

wt_status wt_graph_end(wt_graph *graph)
{
    if (!graph->stream) return wt_fail(WT_ERR_STATE, "graph: it is not being recorded");
    wt_stream *stream = leave_stream(graph);
    wt_status status = WT_OK;
    if (wt__graph_on_cuda(graph))
        status = wt__graph_cuda_end(graph, stream);
    else if (!graph->n_nodes)
        status = wt_fail(WT_ERR_STATE, "graph: nothing was recorded");
    graph->ready = !status;
    return status;
}

static void free_graph(wt_graph *g)
{
    if (wt__graph_on_cuda(g)) wt__graph_cuda_destroy(g);
    for (int k = 0; k < g->n_nodes; k++) wt__node_free(&g->nodes[k]);
    free(g->nodes);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}

static void release_graph(wt_device *device, wt__aside *aside)
{
    wt_graph *graph = (wt_graph *)aside; // its first member
    graph->device = device;
    free_graph(graph);
}

void wt_graph_destroy(wt_graph *graph)
{
    if (!graph || wt__handle_close(graph, WT__A_GRAPH)) return;
    if (graph->stream) wt__record_abandon(graph);
    wt__guard *guard = graph->device->guard;
    graph->aside.release = release_graph;
    if (!wt__guard_enter_or_put_aside(guard, &graph->aside)) return;
    free_graph(graph);
    wt__guard_leave(guard);
}

// ---- launching

static wt_status check_stream(const wt_graph *g, const wt_stream *stream)
{
    if (!g->ready) return wt_fail(WT_ERR_STATE, "graph: it was not recorded to its end");
    if (stream->device != g->device) return wt_fail(WT_ERR_BAD_ARG, "graph: the stream belongs to another device");
    if (stream->recording)
        return wt_fail(WT_ERR_STATE, "graph: launch: not possible while a graph is recorded on the stream");
    if (stream->partition != g->partition)
        return wt_fail(WT_ERR_BAD_ARG, "graph: recorded in another partition than the stream's; clone it there");
    int generation = g->partition ? wt__partition_generation(g->partition) : 0;
    if (generation != g->generation)
        return wt_fail(WT_ERR_STATE, "graph: recorded in layout %d, which is %d now; clone it on a stream of it",
                       g->generation, generation);
    return WT_OK;
}

static wt_status issue_nodes(const wt_graph *g, wt_stream *stream)
{
    wt_status status = WT_OK;
    for (int k = 0; k < g->n_nodes && !status; k++) status = wt__node_issue(&g->nodes[k], stream);
    return status;
}

void wt__graph_load(wt_graph *graph, int *n_commands, size_t *args_bytes)
{
    *n_commands = 0, *args_bytes = 0;
    if (wt__handle_check(graph, WT__A_GRAPH)) return;
    pthread_mutex_lock(&graph->mutex);
    *n_commands = graph->n_nodes;
    for (int k = 0; k < graph->n_nodes; k++)
        for (int n = 0; n < graph->nodes[k].n_args; n++) *args_bytes += graph->nodes[k].args[n].size_bytes;
    pthread_mutex_unlock(&graph->mutex);
}

wt_status wt_graph_launch(wt_graph *graph, wt_stream *stream)
{
    wt_status status = wt__handle_check(graph, WT__A_GRAPH);
    if (!status) status = check_stream(graph, stream);
    if (status) return status;
    pthread_mutex_lock(&graph->mutex);
    status = wt__graph_on_cuda(graph) ? wt__graph_cuda_launch(graph, stream) : issue_nodes(graph, stream);
    pthread_mutex_unlock(&graph->mutex);
    return status;
}

// ---- updating

static wt_status check_args(const wt_graph *g, int index, const wt_arg *args, int n_args)
{
    if (!g->ready) return wt_fail(WT_ERR_STATE, "graph: it was not recorded to its end");
    if (g->n_foreign)
        return wt_fail(WT_ERR_UNSUPPORTED, "graph: a library put %d nodes in it, so its nodes cannot be told apart",
                       g->n_foreign);
    if (index < 0 || index >= g->n_nodes)
        return wt_fail(WT_ERR_BAD_ARG, "graph: node %d, want 0..%d", index, g->n_nodes - 1);
    const wt__node *node = &g->nodes[index];
    if (node->kind != WT__NODE_KERNEL && node->kind != WT__NODE_RUN)
        return wt_fail(WT_ERR_BAD_ARG, "graph: node %d is a copy or fill, which has no arguments", index);
    if (n_args != node->n_args)
        return wt_fail(WT_ERR_BAD_ARG, "graph: %d arguments for node %d, want %d", n_args, index, node->n_args);
    for (int k = 0; k < n_args; k++)
        if (args[k].size_bytes != node->args[k].size_bytes)
            return wt_fail(WT_ERR_BAD_ARG, "graph: argument %d of node %d has %zu bytes, want %zu", k, index,
                           args[k].size_bytes, node->args[k].size_bytes);
    return WT_OK;
}

wt_status wt_graph_set_args(wt_graph *graph, int node, const wt_arg *args, int n_args)
{
    wt_status status = check_args(graph, node, args, n_args);
    if (status) return status;
    pthread_mutex_lock(&graph->mutex);
    const wt__node *n = &graph->nodes[node];
    if (wt__graph_on_cuda(graph)) status = wt__graph_cuda_update(graph, n, args, n_args);
    for (int k = 0; k < n_args && !status; k++)
        if (args[k].size_bytes) memcpy((void *)n->args[k].data, args[k].data, args[k].size_bytes); // our own copy
    pthread_mutex_unlock(&graph->mutex);
    return status;
}

// ---- copying and checking

static wt_status refuse_foreign(const wt_graph *g, const char *what)
{
    if (!g->ready) return wt_fail(WT_ERR_STATE, "graph: it was not recorded to its end");
    return g->n_foreign ? wt_fail(WT_ERR_UNSUPPORTED, "graph: a library put %d nodes in it, which %s cannot repeat",
                                  g->n_foreign, what)
                        : WT_OK;
}

wt_status wt_graph_clone(wt_graph *graph, wt_stream *stream, wt_graph **clone)
{
    *clone = NULL;
    wt_status live = wt__handle_check(graph, WT__A_GRAPH);
    if (live) return live;
    if (stream->device != graph->device) return wt_fail(WT_ERR_BAD_ARG, "graph: the stream belongs to another device");
    wt_graph *g = NULL;
    wt_status status = refuse_foreign(graph, "clone");
    if (!status) status = wt_graph_begin(stream, &g);
    if (status) return status;
    pthread_mutex_lock(&graph->mutex);
    status = issue_nodes(graph, stream);
    pthread_mutex_unlock(&graph->mutex);
    if (!status) status = wt_graph_end(g);
    if (status) {
        wt_graph_destroy(g);
        return status;
    }
    *clone = g;
    return WT_OK;
}

typedef enum check_copy { BEFORE, DIRECT, REPLAY, N_COPIES } check_copy;

static wt_status move_all(wt_stream *stream, wt_buffer *const *buffers, int n_buffers, unsigned char *host, bool up)
{
    wt_status status = WT_OK;
    for (int k = 0; k < n_buffers && !status; k++) {
        size_t bytes = wt_buffer_size_bytes(buffers[k]);
        status = up ? wt_stream_upload(stream, buffers[k], 0, host, bytes)
                    : wt_stream_download(stream, host, buffers[k], 0, bytes);
        host += bytes;
    }
    return status ? status : wt_stream_synchronize(stream);
}

static wt_status compare(wt_buffer *const *buffers, int n_buffers, const unsigned char *direct,
                         const unsigned char *replay)
{
    for (int k = 0; k < n_buffers; k++) {
        size_t bytes = wt_buffer_size_bytes(buffers[k]);
        for (size_t at = 0; at < bytes; at++)
            if (direct[at] != replay[at])
                return wt_fail(WT_ERR_STATE, "graph: buffer %d, byte %zu is %d after the graph, %d node by node", k, at,
                               replay[at], direct[at]);
        direct += bytes;
        replay += bytes;
    }
    return WT_OK;
}

wt_status wt_graph_check(wt_graph *graph, wt_stream *stream, wt_buffer *const *buffers, int n_buffers)
{
    wt_status status = check_stream(graph, stream);
    if (!status) status = refuse_foreign(graph, "a check");
    if (status) return status;
    size_t bytes = 0;
    for (int k = 0; k < n_buffers; k++) bytes += wt_buffer_size_bytes(buffers[k]);
    unsigned char *host = malloc(N_COPIES * (bytes ? bytes : 1));
    if (!host) return wt_fail(WT_ERR_NO_MEMORY, "graph: no memory to compare %zu bytes", bytes);
    unsigned char *copies[N_COPIES] = {host, host + bytes, host + 2 * bytes};
    status = move_all(stream, buffers, n_buffers, copies[BEFORE], false);
    for (check_copy run = DIRECT; run <= REPLAY && !status; run++) {
        status = move_all(stream, buffers, n_buffers, copies[BEFORE], true);
        if (!status) status = run == DIRECT ? issue_nodes(graph, stream) : wt_graph_launch(graph, stream);
        if (!status) status = move_all(stream, buffers, n_buffers, copies[run], false);
    }
    if (!status) status = compare(buffers, n_buffers, copies[DIRECT], copies[REPLAY]);
    free(host);
    return status;
}

void wt_graph_get_info(wt_graph *graph, wt_graph_info *info)
{
    *info = (wt_graph_info){.n_nodes = graph->n_nodes,
                            .n_foreign = graph->n_foreign,
                            .generation = graph->generation,
                            .ready = graph->ready};
    int *const counts[WT__N_NODE_KINDS] = {&info->n_kernels, &info->n_runs, &info->n_copies, &info->n_fills};
    for (int k = 0; k < graph->n_nodes; k++) ++*counts[graph->nodes[k].kind];
}
